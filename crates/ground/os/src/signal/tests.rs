//! Work on shared stacks, signals that are held, and handlers that are put back.

use super::*;

#[test]
fn work_on_a_shared_stack_has_its_room_and_its_result() {
    let stack = SharedStack::new(256 << 10).expect("memory");
    let begin = stack.memory.as_ptr().addr();
    for round in 0..3_u64 {
        // SAFETY: of this thread alone.
        let (place, sum) = unsafe {
            stack.run(|| {
                let room = core::hint::black_box([round; 8 << 10]);
                (room.as_ptr().addr(), room.iter().sum::<u64>())
            })
        };
        assert_eq!(sum, round * (8 << 10));
        let is_there = (begin..begin + stack.memory.len()).contains(&place);
        assert_eq!(is_there, cfg!(any(target_arch = "x86_64", target_arch = "aarch64")));
    }
}

#[test]
fn signals_wait_for_work_on_a_shared_stack() {
    let blocked = || {
        let set = set_of_this_thread();
        // SAFETY: a valid set and signal.
        unsafe { libc::sigismember(&raw const set, libc::SIGUSR1) == 1 }
    };
    let stack = SharedStack::new(64 << 10).expect("memory");
    assert!(!blocked());
    // SAFETY: of this thread alone.
    assert!(unsafe { stack.run(blocked) });
    assert!(!blocked());
}

#[test]
fn work_on_a_new_stack_has_its_room_and_its_signals() {
    let here = 0_u8;
    let (place, sum, signals) = on_new_stack(256 << 10, || {
        let room = core::hint::black_box([3_u64; 8 << 10]);
        (room.as_ptr().addr(), room.iter().sum::<u64>(), signals_held())
    })
    .expect("memory");
    assert_eq!((sum, signals), (3 * (8 << 10), signals_held()));
    let is_elsewhere = place.abs_diff((&raw const here).addr()) > 256 << 10;
    assert_eq!(is_elsewhere, cfg!(any(target_arch = "x86_64", target_arch = "aarch64")));
}

fn set_of_this_thread() -> libc::sigset_t {
    let mut now = empty().sa_mask;
    // SAFETY: a valid set, which is written.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut now) };
    now
}

fn signals_held() -> u64 {
    let set = set_of_this_thread();
    bits_of(&raw const set)
}

#[test]
fn held_signals_are_those_that_are_sent() {
    let has = |signal: c_int| signals_held() & (1_u64 << (signal - 1)) != 0;
    let both = || [libc::SIGALRM, libc::SIGUSR1, libc::SIGSEGV, libc::SIGBUS].map(has);
    assert_eq!(both(), [false; 4]);
    let held = hold();
    assert_eq!(both(), [true, true, false, false]);
    drop(held);
    assert_eq!(both(), [false; 4]);
}

fn nobody(_: &Interrupted) -> Verdict {
    Verdict::HandOn
}

extern "C" fn own(_: c_int) {}
extern "C" fn other(_: c_int) {}

fn set(handler: extern "C" fn(c_int)) {
    let mut action = empty();
    action.sa_sigaction = handler as *const () as usize;
    // SAFETY: a handler that does nothing, for a signal that nobody sends.
    assert_eq!(unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) }, 0);
}

fn is_set(handler: extern "C" fn(c_int)) -> bool {
    now().sa_sigaction == handler as *const () as usize
}

fn now() -> libc::sigaction {
    let mut now = empty();
    // SAFETY: a valid `sigaction` value, which is written.
    unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut now) };
    now
}

#[test]
fn who_was_there_before_is_back_after_the_last_and_nobody_else_is_replaced() {
    for first_goes_first in [true, false] {
        set(own);
        let (first, second) = (catch_bus(nobody).unwrap(), catch_bus(nobody).unwrap());
        let mask = now().sa_mask;
        // SAFETY: a valid set and signals.
        let waits = |signal| unsafe { libc::sigismember(&raw const mask, signal) } == 1;
        assert!(waits(libc::SIGALRM) && !waits(libc::SIGSEGV));
        let (sooner, later) = if first_goes_first { (first, second) } else { (second, first) };
        drop(sooner);
        assert!(!is_set(own));
        drop(later);
        assert!(is_set(own));
        // One of the program's that came between two is the one before the second.
        set(other);
        let caught = catch_bus(nobody).unwrap();
        assert!(!is_set(other));
        drop(caught);
        assert!(is_set(other));
        // One that came in our place stays there.
        let caught = catch_bus(nobody).unwrap();
        set(own);
        drop(caught);
        assert!(is_set(own));
    }
}
