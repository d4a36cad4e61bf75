//! Threads of ours that read the faults of their process and resolve them, while the thread that has one sleeps in
//! the kernel. Slower than by a signal, but it asks nothing of the program's signals, and system calls may touch
//! missing pages, too, where the kernel tells us of its own faults.

use std::thread::JoinHandle;

use isochrone_os::OsError;
use isochrone_os::process::signal_thread;
use isochrone_os::signal::hold;
use isochrone_os::userfault::{Fault, Userfault};
use isochrone_units::PAGE_BYTES;

use super::acting::at_once;
use super::common::Timed;
use super::context::Context;
use super::handler::complain;
use super::poison::{self, Put};
use super::process::{Process, timed};
use crate::names::Access;
use crate::pages::Trouble;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Milliseconds after which a server looks whether it is over.
const LOOK_MS: i32 = 20;
/// Looks for a fault before sleeping.
const SPINS: u32 = 200;
/// `SIGBUS` (signal(7), x86-64 and AArch64).
const SIGBUS: i32 = 7;

/// Serves faults until dropped.
#[derive(Debug)]
pub(super) struct Server<'t> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The thread's; gone after it.
    _context: Box<Context<'t>>,
}

impl<'t> Server<'t> {
    /// Starts one for the tables of `context`.
    ///
    /// # Errors
    /// [`OsError`] where no thread can be made.
    ///
    /// # Safety
    /// The server must be dropped while the context's process lives.
    pub(super) unsafe fn start(context: Context<'t>) -> Result<Self, OsError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, context) = (stop.clone(), Box::new(context));
        let borrowed = Borrowed(std::ptr::from_ref(&*context).cast());
        // A handler of the program's in that thread would wait for itself, if it touched the area.
        let _held = hold();
        let thread =
            std::thread::Builder::new().name("isochrone-fault".to_owned()).spawn(move || {
                let borrowed = borrowed;
                // SAFETY: the server keeps it until this thread is joined, and the caller the process.
                let context = unsafe { &*borrowed.0 };
                serve(context, &seen);
            });
        let refused = |error: std::io::Error| OsError {
            what: "cannot start a thread",
            errno: error.raw_os_error().unwrap_or(0),
            advice: "raise ulimit -u",
        };
        Ok(Self { stop, thread: Some(thread.map_err(refused)?), _context: context })
    }
}

struct Borrowed(*const Context<'static>);
// SAFETY: a context is used through shared references to words that are atomic and to calls of the
// kernel; its buffers are used by the server's thread alone.
unsafe impl Send for Borrowed {}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(context: &Context<'_>, stop: &AtomicBool) {
    let Some(table) = context.process.userfault(context.caller.space) else { return };
    while !stop.load(Ordering::Acquire) {
        poison::age(context);
        match (0..SPINS).find_map(|_| table.next().ok().flatten()) {
            Some(fault) => resolve(context.process, context, table, fault),
            None => table.wait(LOOK_MS),
        }
    }
}

fn resolve(process: &Process, context: &Context<'_>, table: &Userfault, fault: Fault) {
    let Some(group) = process.area.group_at(fault.address) else { return };
    let access = if fault.write { Access::Write } else { Access::Read };
    let (result, cycles) = timed(|| {
        let pager = process.pager_at(group);
        at_once(pager.fault(context, context.caller, group, access))
    });
    process.common.time(context.caller.actor, Timed::Fault, cycles);
    let (address, bytes) = (process.area.address_of(group), process.area.group_bytes());
    if let Err(trouble) = result {
        let page = fault.address / PAGE_BYTES * PAGE_BYTES;
        if !process.poisons.had(page) {
            complain(fault.address, trouble);
        }
        let put = poison::put(context, table, page);
        // What is there and cannot be mapped would be tried for ever.
        let never = put == Put::Brought && matches!(trouble, Trouble::Kernel { .. });
        if put == Put::Refused || never {
            return signal_thread(fault.thread, SIGBUS);
        }
    }
    // Where nothing had to be done, nobody was woken.
    let _ = table.wake(address, bytes);
}
