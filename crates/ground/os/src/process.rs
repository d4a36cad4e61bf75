//! Processes of one program: forking, ending, waiting, handing descriptors over, and telling whether
//! another one still lives.

use crate::error::OsError;
use crate::syscall::syscall;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::WaitOptions;

/// A process, as the kernel numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId(pub i32);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The parent, and who the child is.
    Parent(ProcessId),
    /// The child.
    Child,
}

/// Threads of this process, `None` where the kernel does not say.
#[must_use]
pub fn threads() -> Option<u32> {
    let file = rustix::fs::open(
        c"/proc/self/stat",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    );
    let mut buffer = [0; 1024];
    let bytes = rustix::io::read(file.ok()?, &mut buffer).ok()?;
    // After the name in brackets, field 20 of proc_pid_stat(5) is the 18th.
    let text = core::str::from_utf8(buffer.get(..bytes)?).ok()?;
    text.rsplit(')').next()?.split_ascii_whitespace().nth(17)?.parse().ok()
}

/// How many forks, one after another, this process is the child of since forks are counted.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Whether they are.
static COUNTED: AtomicBool = AtomicBool::new(false);

extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Has children of `fork` noticed from here on; what [`forks`] says now.
///
/// # Errors
/// [`OsError`] where the C library has no room for a handler.
pub fn count_forks() -> Result<u32, OsError> {
    const CANNOT: OsError = OsError {
        what: "cannot have children of fork noticed",
        errno: libc::ENOMEM,
        advice: "free some memory",
    };
    // Two threads that come here at once have each fork counted twice, which is as good.
    if !COUNTED.load(Ordering::Relaxed) {
        // SAFETY: the handler is a function of this library; if that is unloaded, the C library forgets it.
        if unsafe { libc::pthread_atfork(None, None, Some(forked)) } != 0 {
            return Err(CANNOT);
        }
        COUNTED.store(true, Ordering::Relaxed);
    }
    Ok(forks())
}

/// A number that is another one in a child of `fork`, once somebody had forks counted.
#[inline]
#[must_use]
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Copies this process, which must have one thread: what another thread holds, a lock or a half-made
/// change, would never be let go in the child.
///
/// # Errors
/// [`OsError`] if there are more threads, or no more processes may be made.
pub fn fork() -> Result<Side, OsError> {
    if threads().is_some_and(|threads| threads > 1) {
        return Err(OsError::invalid(
            "cannot fork a process with several threads",
            "spawn workers before any thread is made",
        ));
    }
    // SAFETY: this thread is the only one, so the child has everything in the state that it sees here.
    match unsafe { libc::fork() } {
        -1 => Err(OsError::invalid("cannot make a process", "raise ulimit -u")),
        0 => Ok(Side::Child),
        child => Ok(Side::Parent(ProcessId(child))),
    }
}

/// Ends this process at once: no destructor, no exit handler of what it was forked from.
pub fn end(code: i32) -> ! {
    // SAFETY: ends the process; nothing of it is used afterwards.
    unsafe { libc::_exit(code) }
}

/// Waits for a child; with `block` until it ends, else `None` if it has not.
///
/// # Errors
/// [`OsError`] for somebody else's child.
pub fn wait(child: ProcessId, block: bool) -> Result<Option<End>, OsError> {
    const REFUSED: OsError =
        OsError::invalid("no such child", "wait for a child of one's own once");
    let pid = rustix::process::Pid::from_raw(child.0).ok_or(REFUSED)?;
    let options = if block { WaitOptions::empty() } else { WaitOptions::NOHANG };
    let status = loop {
        match rustix::process::waitpid(Some(pid), options) {
            Ok(Some((_, status))) => break status,
            Ok(None) => return Ok(None),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(REFUSED),
        }
    };
    let code = status.exit_status().map(End::Code);
    Ok(code.or(status.terminating_signal().map(End::Signal)))
}

/// Sends a signal.
///
/// # Errors
/// [`OsError`] where there is no such process.
pub fn signal(process: ProcessId, signal: i32) -> Result<(), OsError> {
    // SAFETY: sending a signal touches no memory.
    if unsafe { libc::kill(process.0, signal) } == 0 {
        return Ok(());
    }
    Err(OsError::invalid("cannot signal a process", "it may have ended"))
}

/// Sends a signal to one thread of this process.
pub fn signal_thread(thread: i32, signal: i32) {
    let number = |value: i32| usize::try_from(value).unwrap_or(0);
    let arguments = [number(this().0), number(thread), number(signal), 0, 0, 0];
    // SAFETY: sending a signal touches no memory. A thread that ended needs none.
    let _ = unsafe { syscall(libc::SYS_tgkill, arguments) };
}

/// This process.
#[must_use]
pub fn this() -> ProcessId {
    // SAFETY: asks for a number.
    ProcessId(unsafe { libc::getpid() })
}

/// The process that made this one, or the one that takes its place when it has ended.
#[must_use]
pub fn parent() -> ProcessId {
    // SAFETY: asks for a number.
    ProcessId(unsafe { libc::getppid() })
}

/// Lights, one for each process of a program: the kernel puts one out when its process ends, however it
/// ends. They are record locks on a file without a name, so no number can be taken for another's.
#[derive(Debug)]
pub struct Lights(OwnedFd);

impl Lights {
    /// All out.
    ///
    /// # Errors
    /// [`OsError`] where there is no file descriptor left.
    pub fn new() -> Result<Self, OsError> {
        let file = memfd_create(c"isochrone-lights", MemfdFlags::CLOEXEC);
        file.map(Self).map_err(|errno| {
            OsError::of("cannot make a file", errno, "close files, or raise ulimit -n")
        })
    }

    fn lock(index: u16) -> libc::flock {
        // SAFETY: all zeros are a valid `flock`.
        let mut lock = unsafe { MaybeUninit::<libc::flock>::zeroed().assume_init() };
        lock.l_type = i16::try_from(libc::F_WRLCK).unwrap_or(0);
        lock.l_start = i64::from(index);
        lock.l_len = 1;
        lock
    }

    /// Lights one for as long as this process lives. Not inherited by children.
    ///
    /// # Errors
    /// [`OsError`] if another process has it.
    pub fn light(&self, index: u16) -> Result<(), OsError> {
        let lock = Self::lock(index);
        // SAFETY: F_SETLK reads one `flock`.
        if unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLK, &raw const lock) } == 0 {
            return Ok(());
        }
        Err(OsError::invalid("a process's light is another's", "give each process its own"))
    }

    /// Whether another process has it lit. One's own does not show.
    #[must_use]
    pub fn is_lit(&self, index: u16) -> bool {
        let mut lock = Self::lock(index);
        // SAFETY: F_GETLK reads and writes one `flock`.
        let asked = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
        // A file system that does not say keeps everybody alive.
        asked != 0 || i32::from(lock.l_type) != libc::F_UNLCK
    }
}

/// One end of a pair of sockets that carries descriptors between processes.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// Descriptors in one message.
pub const CHANNEL_FDS: usize = 64;

impl Channel {
    /// Both ends.
    ///
    /// # Errors
    /// [`OsError`] where there is no file descriptor left.
    pub fn pair() -> Result<(Self, Self), OsError> {
        let pair =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        pair.map(|(a, b)| (Self(a), Self(b))).map_err(|errno| {
            OsError::of("cannot make a socket", errno, "close files, or raise ulimit -n")
        })
    }

    /// Sends up to [`CHANNEL_FDS`] descriptors and a few bytes.
    ///
    /// # Errors
    /// [`OsError`] if the other side ended.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), OsError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(CHANNEL_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(OsError::invalid("too many descriptors in one message", "send fewer"));
        }
        let parts = [rustix::io::IoSlice::new(bytes)];
        let sent = sendmsg(self.0.as_fd(), &parts, &mut control, SendFlags::NOSIGNAL);
        sent.map(drop)
            .map_err(|errno| OsError::of("cannot hand over", errno, "the other side ended"))
    }

    /// Whether the other side ended and nothing is left to receive.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let mut byte = [0; 1];
        let mut parts = [rustix::io::IoSliceMut::new(&mut byte)];
        let mut control = RecvAncillaryBuffer::default();
        let flags = RecvFlags::PEEK.union(RecvFlags::DONTWAIT);
        recvmsg(self.0.as_fd(), &mut parts, &mut control, flags)
            .is_ok_and(|received| received.bytes == 0)
    }

    /// Receives; each descriptor is given to `take`. Returns the bytes received, 0 if the other side
    /// ended.
    ///
    /// # Errors
    /// [`OsError`] if there is no descriptor left.
    pub fn receive(
        &self,
        bytes: &mut [u8],
        take: &mut dyn FnMut(OwnedFd),
    ) -> Result<usize, OsError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(CHANNEL_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [rustix::io::IoSliceMut::new(bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received =
            recvmsg(self.0.as_fd(), &mut parts, &mut control, flags).map_err(|errno| {
                OsError::of("cannot take over", errno, "close files, or raise ulimit -n")
            })?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                fds.for_each(&mut *take);
            }
        }
        Ok(received.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::Memfd;

    #[test]
    fn threads_are_counted_and_keep_from_forking() {
        let here = threads();
        assert!(here.is_some_and(|count| count >= 1));
        std::thread::scope(|scope| {
            let (stop, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || wait.recv());
            assert!(fork().is_err_and(|error| error.advice.contains("before any thread")));
            drop(stop);
        });
    }

    #[test]
    fn a_descriptor_is_handed_over() {
        let (a, b) = Channel::pair().expect("sockets");
        let file = Memfd::new(4096).expect("a file");
        a.send(b"hello", &[file.as_fd(), file.as_fd()]).expect("room");
        let mut seen = [0; 16];
        let mut taken = std::vec::Vec::new();
        let bytes = b.receive(&mut seen, &mut |fd| taken.push(fd)).expect("a message");
        assert_eq!((&seen[..bytes], taken.len()), (&b"hello"[..], 2));
        let sizes = taken.iter().map(|fd| rustix::fs::fstat(fd).expect("a file").st_size);
        assert!(sizes.into_iter().all(|size| size == 4096));
        drop(a);
        assert_eq!(b.receive(&mut seen, &mut |_| ()), Ok(0));
    }

    #[test]
    fn one_s_own_light_does_not_show_and_others_are_out() {
        let lights = Lights::new().expect("a file");
        lights.light(3).expect("nobody has it");
        assert!(!lights.is_lit(3) && !lights.is_lit(4));
    }
}
