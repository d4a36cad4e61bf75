//! Faults that the kernel reports by a signal: installing a handler for `SIGBUS`, what it is told, and how
//! it hands on what is not its own.
//!
//! A handler of this kind interrupts its thread at one instruction, an access to memory; never in the
//! middle of the system's own bookkeeping. It still must not run on the stack that it interrupts, which
//! may be small or, in a program's own hands, unusual.

use crate::arch;
use crate::error::OsError;
use crate::pages::kernel_page_bytes;
use crate::space::Space;
use crate::table::Table;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use rustix::mm::{MprotectFlags, mprotect};

/// What was interrupted, for as long as the handler runs.
#[derive(Debug)]
pub struct Interrupted {
    info: *mut libc::siginfo_t,
    context: *mut c_void,
}

/// What a handler says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Try the access again.
    Resume,
    /// It is not this handler's, or it cannot be had: hand it on to who was there before.
    HandOn,
}

/// A handler. It must not unwind, allocate, or take a lock that its thread may hold.
pub type Handler = fn(&Interrupted) -> Verdict;

static HANDLER: AtomicUsize = AtomicUsize::new(0);
/// What was installed before, for handlers to look at: who, and its flags.
static PREVIOUS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
/// And the signals that wait for it.
static PREVIOUS_MASK: AtomicU64 = AtomicU64::new(0);
/// What is installed, and for how many.
static INSTALLED: Installed =
    Installed { busy: AtomicBool::new(false), state: UnsafeCell::new(None) };

/// Of one thread at a time.
struct Installed {
    busy: AtomicBool,
    state: UnsafeCell<Option<(libc::sigaction, usize)>>,
}

// SAFETY: the state is used by `with` alone, by one thread at a time.
unsafe impl Sync for Installed {}

impl Installed {
    /// Works on what was installed before, and for how many there is a handler now; `None` while there is none.
    fn with<T>(&self, work: impl FnOnce(&mut Option<(libc::sigaction, usize)>) -> T) -> T {
        // A handler of the program's that installs one, while its own thread does, would wait for ever.
        let _held = hold();
        while self.busy.swap(true, Ordering::Acquire) {
            crate::pause::pause();
        }
        // SAFETY: nobody else is here until `busy` is false again, and `work` does not come back here.
        let result = work(unsafe { &mut *self.state.get() });
        self.busy.store(false, Ordering::Release);
        result
    }
}

impl Interrupted {
    /// The address of the access.
    #[must_use]
    pub fn address(&self) -> usize {
        // SAFETY: the kernel passes a valid `siginfo_t` for the time of the handler.
        let info = unsafe { &*self.info };
        // SAFETY: `SIGBUS` has an address in it.
        unsafe { info.si_addr() }.addr()
    }

    /// Whether the access was a write; true where this processor does not say.
    #[must_use]
    pub fn is_write(&self) -> bool {
        // SAFETY: the kernel passes a valid `ucontext_t` for the time of the handler.
        unsafe { arch::was_write(self.context) }.unwrap_or(true)
    }
}

/// The handler is installed as long as there is one of these. With the last, who was there before is back, unless
/// the program has put another in its place meanwhile.
#[derive(Debug)]
pub struct Caught(());

/// Installs the handler for `SIGBUS` in this process, on the alternate stack of whichever thread needs it. Done
/// again, only the handler changes: who was there before the first is who is handed on to.
///
/// Signals of the program's wait while the handler runs, except those that an instruction raises: their handlers
/// may themselves touch what it is about, and would find it in the middle of its work.
///
/// # Errors
/// [`OsError`] where the kernel refuses.
pub fn catch_bus(handler: Handler) -> Result<Caught, OsError> {
    const REFUSED: &str = "allow sigaction in the sandbox";
    INSTALLED.with(|installed| {
        let mut now = empty();
        // SAFETY: a valid `sigaction` value, which is written.
        unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut now) };
        let before = installed.map_or(now, |(before, _)| before);
        // Handlers read these from when ours is installed; while it is, they are what they were.
        let flags = usize::try_from(before.sa_flags).unwrap_or(0);
        PREVIOUS[1].store(flags, Ordering::Relaxed);
        PREVIOUS_MASK.store(bits_of(&raw const before.sa_mask), Ordering::Relaxed);
        PREVIOUS[0].store(before.sa_sigaction, Ordering::Release);
        HANDLER.store(handler as usize, Ordering::Release);
        if let Some((_, users)) = installed {
            *users += 1;
            return Ok(Caught(()));
        }
        let mut action = empty();
        action.sa_sigaction = entry as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        action.sa_mask = sent();
        // SAFETY: a valid `sigaction` value; `entry` has the signature that SA_SIGINFO demands and keeps to what
        // a handler may do.
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } != 0 {
            HANDLER.store(0, Ordering::Release);
            return Err(OsError::invalid("cannot install a handler for SIGBUS", REFUSED));
        }
        *installed = Some((before, 1));
        Ok(Caught(()))
    })
}

impl Drop for Caught {
    fn drop(&mut self) {
        INSTALLED.with(|installed| {
            let Some((before, users)) = installed else { return };
            *users -= 1;
            if *users > 0 {
                return;
            }
            let mut now = empty();
            // SAFETY: a valid `sigaction` value, which is written.
            unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut now) };
            if now.sa_sigaction == entry as *const () as usize {
                // SAFETY: what `sigaction` said was there before.
                unsafe { libc::sigaction(libc::SIGBUS, &raw const *before, ptr::null_mut()) };
            }
            // Whoever took its place may hand on to it: what it is told then is handed on further.
            HANDLER.store(0, Ordering::Release);
            *installed = None;
        });
    }
}

fn empty() -> libc::sigaction {
    // SAFETY: all zeros are a valid `sigaction`: no handler, no flags, an empty mask.
    unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() }
}

extern "C" fn entry(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: asks where this thread's own error number is.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the thread's own, to set it back: the interrupted code may be between a call and its look
    // at it.
    let errno = unsafe { *place };
    let handler = HANDLER.load(Ordering::Acquire);
    let verdict = if handler == 0 {
        Verdict::HandOn
    } else {
        // SAFETY: only `catch_bus` stores anything but 0 here, and that a `Handler`.
        let handler = unsafe { core::mem::transmute::<usize, Handler>(handler) };
        handler(&Interrupted { info, context })
    };
    if verdict == Verdict::HandOn {
        hand_on(signal, info, context);
    }
    // SAFETY: as above.
    unsafe { *place = errno };
}

/// In a signal's `si_errno`, which the kernel leaves 0 for an access to memory: it was handed on before.
const HANDED_ON: c_int = 0x6973_6f63;

/// Calls who was there before, with the signals blocked that it would have without us, or lets the access be tried
/// again under the default, which ends the process as if nobody had been there.
fn hand_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's for the time of the handler.
    let seen = unsafe { &mut (*info).si_errno };
    // One that took our place, and hands on to us, was there before our second time: it would go round for ever.
    let again = core::mem::replace(seen, HANDED_ON) == HANDED_ON;
    let previous = PREVIOUS[0].load(Ordering::Acquire);
    match previous {
        // The program wants it ignored; the kernel does not: the access would come again for ever.
        libc::SIG_IGN if !again => end_by(signal),
        previous if previous == libc::SIG_DFL || again => {
            let action = empty();
            // SAFETY: a valid `sigaction` value; the default needs no handler.
            unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
        }
        previous => {
            let flags = PREVIOUS[1].load(Ordering::Relaxed);
            let has = |flag: c_int| flags & usize::try_from(flag).unwrap_or(0) != 0;
            let context_now = context.cast::<libc::ucontext_t>().cast_const();
            // SAFETY: the kernel's for the time of the handler; only the place is computed.
            let interrupted = bits_of(unsafe { &raw const (*context_now).uc_sigmask });
            let itself = if has(libc::SA_NODEFER) { 0 } else { 1_u64 << (signal - 1) };
            let mask = interrupted | PREVIOUS_MASK.load(Ordering::Relaxed) | itself;
            set_signals(&set_of(mask));
            if has(libc::SA_SIGINFO) {
                type Full = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
                // SAFETY: `sigaction` gave this as a handler with SA_SIGINFO.
                let previous = unsafe { core::mem::transmute::<usize, Full>(previous) };
                previous(signal, info, context);
            } else {
                type Plain = extern "C" fn(c_int);
                // SAFETY: `sigaction` gave this as a handler without SA_SIGINFO.
                let previous = unsafe { core::mem::transmute::<usize, Plain>(previous) };
                previous(signal);
            }
        }
    }
}

/// Whether somebody was there before, who will be handed on to; if not the process will end.
#[must_use]
pub fn somebody_was_there() -> bool {
    !matches!(PREVIOUS[0].load(Ordering::Acquire), libc::SIG_DFL | libc::SIG_IGN)
}

fn end_by(signal: c_int) {
    let action = empty();
    // SAFETY: a valid `sigaction` value; the default needs no handler.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    // SAFETY: raising a signal touches no memory.
    unsafe { libc::raise(signal) };
}

/// A stack for this thread's handlers, for as long as the value lives; then the one from before is back.
#[derive(Debug)]
pub struct Stack {
    memory: Space,
    before: libc::stack_t,
}

impl Stack {
    /// Sets one of so many bytes.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory, or it is too small for what the processor saves.
    pub fn new(bytes: usize) -> Result<Self, OsError> {
        let memory = Space::new(bytes, false)?;
        let stack = libc::stack_t { ss_sp: memory.as_ptr().cast(), ss_flags: 0, ss_size: bytes };
        let mut before = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: 0, ss_size: 0 };
        // SAFETY: the memory is this value's, which outlives its use: `drop` sets the stack from before
        // first. The value is not `Send`, so that happens in this thread.
        if unsafe { libc::sigaltstack(&raw const stack, &raw mut before) } != 0 {
            return Err(OsError::invalid("cannot set a signal stack", "give it 64 KiB or more"));
        }
        Ok(Self { memory, before })
    }

    /// How many bytes it has.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(&self) -> usize {
        self.memory.len()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: what the kernel said was set before; whoever set it keeps it for this thread.
        let result = unsafe { libc::sigaltstack(&raw const self.before, ptr::null_mut()) };
        debug_assert!(result == 0, "a stack that was set can be set again");
    }
}

/// A stack that handlers of many threads use by turns: those of threads that nobody gave a [`Stack`]. What the
/// system's libraries give a thread may hold 8 KiB, of which a processor with AVX-512 saves 3.
#[derive(Debug)]
pub struct SharedStack {
    memory: Space,
}

impl SharedStack {
    /// One of so many bytes.
    ///
    /// # Errors
    /// [`OsError`] where there is no memory.
    pub fn new(bytes: usize) -> Result<Self, OsError> {
        let memory = Space::new(bytes, false)?;
        // A few small pages are touched. Where there are no huge ones this is refused.
        let _ = memory.huge(0, memory.len(), false);
        // Work that needs more ends the process instead of writing over what lies below.
        memory.protect(0, kernel_page_bytes(), false)?;
        Ok(Self { memory })
    }

    /// Works on it. This thread's signals wait meanwhile: the kernel does not know of this stack, and would run their
    /// handlers over what is left behind on the thread's own alternate one.
    ///
    /// # Safety
    /// No other thread works on it, and neither does this one.
    pub unsafe fn run<R, W: FnOnce() -> R>(&self, work: W) -> R {
        let mut job = Job { work: Some(work), result: None };
        let top = self.memory.as_ptr().wrapping_add(self.memory.len());
        let before = block(&all());
        // SAFETY: the memory is this value's, whole pages, and nobody else uses it, as the caller says; `execute`
        // gets the job that it is for, which lives until the call returns.
        unsafe { arch::call_on(top, execute::<R, W>, ptr::from_mut(&mut job).cast()) };
        set_signals(&before);
        match job.result {
            Some(result) => result,
            None => unreachable!("the call has returned"),
        }
    }

    /// Gives the memory back that work has made present; what works on it next has it anew. Nothing happens where that
    /// is refused.
    ///
    /// # Safety
    /// Nobody works on it.
    pub unsafe fn give_back(&self) {
        let guard = kernel_page_bytes();
        let _ = self.memory.release(guard, self.memory.len() - guard);
    }
}

/// Works on a stack of so many bytes that is there for this work alone, where that of the thread may be too small. For
/// libraries while they are loaded, who know no filter yet: nothing is called that the dynamic linker does not call, so
/// signals come as ever. No handler runs on the thread's alternate stack by then, unless it loads libraries itself.
///
/// # Errors
/// [`OsError`] where there is no memory; nothing was done then.
pub fn on_new_stack<R, W: FnOnce() -> R>(bytes: usize, work: W) -> Result<R, OsError> {
    let guard = kernel_page_bytes();
    let memory = Table::<u8>::zeroed((bytes + guard).next_multiple_of(guard))?;
    let start = memory.as_ptr().cast_mut();
    // SAFETY: the lowest page of a mapping of this function's own, which nobody reads.
    let refused = unsafe { mprotect(start.cast(), guard, MprotectFlags::empty()) };
    if refused.is_err() {
        return Err(OsError::invalid("cannot end a stack by a page", "raise ulimit -v"));
    }
    let mut job = Job { work: Some(work), result: None };
    let top = start.wrapping_add(memory.len());
    // SAFETY: whole pages, which are unmapped after the call has returned, and nobody else uses them; `execute` gets
    // the job that it is for.
    unsafe { arch::call_on(top, execute::<R, W>, ptr::from_mut(&mut job).cast()) };
    match job.result {
        Some(result) => Ok(result),
        None => unreachable!("the call has returned"),
    }
}

/// What is to be done on another stack, and what came of it.
struct Job<R, W> {
    work: Option<W>,
    result: Option<R>,
}

extern "C" fn execute<R, W: FnOnce() -> R>(job: *mut c_void) {
    // SAFETY: `SharedStack::run` passes its own job, which nobody else looks at now.
    let job = unsafe { &mut *job.cast::<Job<R, W>>() };
    job.result = job.work.take().map(|work| work());
}

/// Sets whether ends of children are ignored (`SIGCHLD`); says whether they were. Where they are, the kernel forgets a
/// child at its end, and nobody can wait for it (waitpid(2), "Linux notes"). A program that is started meanwhile
/// ignores its own.
pub fn ignore_children(ignored: bool) -> bool {
    let wanted = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: neither is a function of ours, so nothing runs at a signal; it cannot fail with this one.
    unsafe { libc::signal(libc::SIGCHLD, wanted) == libc::SIG_IGN }
}

/// From now on a write beyond the limit of a file's size (`ulimit -f`) fails (`EFBIG`), which can be said; as the
/// kernel has it, the process ends by `SIGXFSZ`. Programs that are started later find the signal as this process did: a
/// handler ends at `execve(2)`. Whoever ignores it, or hears it already, goes on so.
pub fn fail_at_file_limit() {
    extern "C" fn nothing(_: c_int) {}
    let mut now = empty();
    // SAFETY: a valid `sigaction` value, which is written.
    unsafe { libc::sigaction(libc::SIGXFSZ, ptr::null(), &raw mut now) };
    if now.sa_sigaction != libc::SIG_DFL {
        return;
    }
    let mut action = empty();
    action.sa_sigaction = nothing as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: a valid `sigaction` value; the handler does nothing, so it may interrupt anything.
    unsafe { libc::sigaction(libc::SIGXFSZ, &raw const action, ptr::null_mut()) };
}

/// Signals that are sent to this thread wait as long as the value lives; those that its own instructions raise come.
/// For work that a handler of the program's must not find half done.
#[derive(Debug)]
#[must_use = "signals wait as long as the value lives"]
pub struct Held {
    before: libc::sigset_t,
    /// Of this thread.
    _thread: PhantomData<*mut ()>,
}

/// Lets signals wait.
pub fn hold() -> Held {
    Held { before: block(&sent()), _thread: PhantomData }
}

/// Lets all signals wait, also those that instructions raise: for making a thread that inherits it.
pub(crate) fn hold_all() -> Held {
    Held { before: block(&all()), _thread: PhantomData }
}

impl Drop for Held {
    fn drop(&mut self) {
        set_signals(&self.before);
    }
}

/// All signals but those that an instruction raises. Blocked, these would end the process, where the program may
/// have a handler: one that reports what went wrong, or one that does a system call for a sandbox.
fn sent() -> libc::sigset_t {
    let mut set = all();
    let raised =
        [libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV, libc::SIGSYS, libc::SIGTRAP];
    for signal in raised {
        // SAFETY: a valid set and signal.
        unsafe { libc::sigdelset(&raw mut set, signal) };
    }
    set
}

fn all() -> libc::sigset_t {
    let mut all = empty().sa_mask;
    // SAFETY: a valid set, which is written.
    unsafe { libc::sigfillset(&raw mut all) };
    all
}

/// Blocks signals of this thread; those that were blocked before.
fn block(set: &libc::sigset_t) -> libc::sigset_t {
    let mut before = *set;
    // SAFETY: both are valid sets; it cannot fail with them.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::from_ref(set), &raw mut before) };
    before
}

/// The signals of a set that the kernel knows: it reads and writes 64 bits of one, whatever room the C library has.
fn bits_of(set: *const libc::sigset_t) -> u64 {
    // SAFETY: both callers have a set of at least so many bytes, aligned as words are.
    unsafe { set.cast::<u64>().read() }
}

fn set_of(bits: u64) -> libc::sigset_t {
    let mut set = empty().sa_mask;
    // SAFETY: a set has 64 bits and more, aligned as words are.
    unsafe { (&raw mut set).cast::<u64>().write(bits) };
    set
}

fn set_signals(set: &libc::sigset_t) {
    // SAFETY: a valid set; it cannot fail with it.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, ptr::from_ref(set), ptr::null_mut()) };
}

/// Writes one line to standard error, from anywhere.
pub fn say(line: &[u8]) {
    // SAFETY: the slice is valid for its length. If nobody reads it, there is nothing to do about it.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

#[cfg(test)]
mod tests;
