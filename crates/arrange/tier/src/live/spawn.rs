//! Making workers and movers: processes by fork, from a process of one thread, and threads. Descriptors of
//! the tables that each opens for itself go to all by sockets.

use core::sync::atomic::Ordering;
use std::time::Instant;

use isochrone_os::OsError;
use isochrone_os::affinity::pin;
use isochrone_os::futex::{self, Scope};
use isochrone_os::process::{CHANNEL_FDS, Channel, End, ProcessId, Side, end, fork, wait};
use isochrone_os::userfault::Userfault;
use isochrone_units::CoreId;

use super::acting::at_once;
use super::check::Mode;
use super::common::MAIL_BYTES;
use super::config::{Tables, TierError};
use super::context::Context;
use super::process::Process;
use super::report::Ended;
use super::serving::{self, Serving};
use super::worker::Worker;
use crate::names::{Actor, Space};
use crate::pager::Mover;

/// What a worker does.
type Body<'b> = &'b (dyn Fn(&mut Worker<'_>) -> Result<u64, String> + Sync);

/// A child and the way to it.
struct Child {
    process: ProcessId,
    channel: Channel,
}

/// Codes of a child's end: all went well, or it says why not on standard error.
const WELL: i32 = 0;
const UNREADY: i32 = 81;

/// Forks a child that runs `act` and ends. Channels to earlier children are closed in it, so that each of
/// them notices when its parent ends.
fn child(
    earlier: &mut Vec<Child>,
    act: impl FnOnce(&Channel) -> Result<(), OsError>,
) -> Result<(), TierError> {
    let (mine, theirs) = Channel::pair()?;
    match fork()? {
        Side::Parent(process) => earlier.push(Child { process, channel: mine }),
        Side::Child => {
            earlier.clear();
            drop(mine);
            let code = match act(&theirs) {
                Ok(()) => WELL,
                Err(error) => {
                    isochrone_os::signal::say(format!("isochrone: {error}\n").as_bytes());
                    UNREADY
                }
            };
            end(code);
        }
    }
    Ok(())
}

/// Opens this process's tables, maps the area and registers it, before anything touches it.
fn open_tables(process: &Process, mode: Mode, space: Space) -> Result<(), OsError> {
    let table = Userfault::open(mode.features(), mode == Mode::Blocking)?;
    process.area.map()?;
    if let Some(region) = process.config.region {
        process.area.prefer(region)?;
    }
    for (address, bytes) in process.area.ranges() {
        table.register(address, bytes)?;
    }
    // Nobody else has set it: each process opens its own once.
    let _ = process.tables[space.index()].set(table);
    Ok(())
}

fn pinned(cores: &[CoreId], number: u16) -> Result<(), OsError> {
    match cores.get(usize::from(number) % cores.len().max(1)) {
        Some(core) => pin(*core),
        None => Ok(()),
    }
}

/// Takes the tables of all over, except those that this process opened itself.
fn take_tables(process: &Process, channel: &Channel) -> Result<(), OsError> {
    let mut next = 0;
    while next < process.tables.len() {
        let mut count = [0; 8];
        let mut fds = Vec::new();
        if channel.receive(&mut count, &mut |fd| fds.push(fd))? == 0 {
            isochrone_os::signal::say(b"isochrone: the parent ended\n");
            end(UNREADY);
        }
        for fd in fds {
            let _ = process.tables[next].set(Userfault::received(fd, process.features));
            next += 1;
        }
    }
    Ok(())
}

/// Gives the tables of all to a child.
fn give_tables(process: &Process, child: &Child) -> Result<(), OsError> {
    let all: Vec<_> = process.tables.iter().filter_map(|table| table.get()).collect();
    for some in all.chunks(CHANNEL_FDS) {
        let fds: Vec<_> = some.iter().map(|table| table.as_fd()).collect();
        child.channel.send(b"tables", &fds)?;
    }
    Ok(())
}

/// Says that this child is ready, and waits for all others.
fn ready(process: &Process, channel: &Channel) -> Result<(), OsError> {
    channel.send(b"ready", &[])?;
    let go = process.common.go();
    while go.load(Ordering::Acquire) == 0 {
        let _ = futex::wait(go, 0, Some(100_000_000), Scope::Shared);
        // The parent's end closes the channel, and nobody will ever say go.
        if go.load(Ordering::Acquire) == 0 && channel.is_closed() {
            end(UNREADY);
        }
    }
    Ok(())
}

/// Waits for every child's word, then lets all go.
fn gather(process: &Process, children: &[Child]) -> Result<(), TierError> {
    for (number, child) in children.iter().enumerate() {
        let mut word = [0; 8];
        if child.channel.receive(&mut word, &mut |_| ())? == 0 {
            return Err(TierError::Unready(format!("child {number}")));
        }
    }
    let go = process.common.go();
    go.store(1, Ordering::Release);
    let _ = futex::wake(go, u32::MAX >> 1, Scope::Shared);
    Ok(())
}

/// Ends everybody who waits to be ready.
fn abandon(children: &[Child]) {
    for child in children {
        let _ = isochrone_os::process::signal(child.process, 9);
        let _ = wait(child.process, true);
    }
}

/// A mover's life.
fn move_pages(process: &Process, number: u16, channel: &Channel) -> Result<(), OsError> {
    let actor = Actor(process.config.workers + number);
    let _ = process.number.set(process.process_of(actor));
    process.common.lights.light(process.process_of(actor))?;
    pinned(&process.config.mover_cores, number)?;
    take_tables(process, channel)?;
    let context = Context::new(process, actor, 0)?;
    let pager = process.pager();
    let mut mover = Mover::new(actor, process.config.habit, &pager);
    ready(process, channel)?;
    at_once(mover.run(&pager, &context, &context, |worker| process.space_of(worker)));
    Ok(())
}

/// Forks the movers of a team.
fn movers(process: &Process, children: &mut Vec<Child>) -> Result<(), TierError> {
    for number in 0..process.config.movers {
        child(children, |channel| move_pages(process, number, channel))?;
    }
    Ok(())
}

/// Runs a worker's program and leaves what came of it in its mail.
fn work(process: &Process, context: &Context<'_>, body: Body<'_>) {
    let number = context.caller.actor.0;
    let outcome =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&mut Worker::new(context))));
    let outcome = outcome.unwrap_or_else(|_| Err("it panicked (see standard error)".to_owned()));
    let mail = process.common.mail(number);
    let code = match outcome {
        Ok(value) => {
            mail[1].store(value, Ordering::Relaxed);
            1
        }
        Err(words) => {
            let mut bytes = words.into_bytes();
            bytes.resize(MAIL_BYTES, 0);
            for (word, eight) in mail[2..].iter().zip(bytes.chunks_exact(8)) {
                let eight = eight.try_into().unwrap_or([0; 8]);
                word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
            }
            2
        }
    };
    mail[0].store(code, Ordering::Release);
}

/// What a worker left.
fn mail(process: &Process, worker: u16) -> Option<Ended> {
    let mail = process.common.mail(worker);
    match mail[0].load(Ordering::Acquire) {
        1 => Some(Ended::Value(mail[1].load(Ordering::Relaxed))),
        2 => {
            let words = mail[2..].iter().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
            let mut bytes: Vec<u8> = words.flatten().collect();
            bytes.retain(|byte| *byte != 0);
            Some(Ended::Failed(String::from_utf8_lossy(&bytes).into_owned()))
        }
        _ => None,
    }
}

/// A worker's life, in a process of its own: from when its tables are known to all.
fn worker_life(
    process: &Process,
    mode: Mode,
    worker: u16,
    go: impl FnOnce() -> Result<(), OsError>,
    body: Body<'_>,
) -> Result<(), OsError> {
    let context = Context::new(process, Actor(worker), u32::from(worker))?;
    let _own = serving::own(&context, mode)?;
    let _serving = Serving::start(process, mode, worker)?;
    go()?;
    work(process, &context, body);
    Ok(())
}

/// A worker in a child.
fn worker_child(
    process: &Process,
    mode: Mode,
    worker: u16,
    channel: &Channel,
    body: Body<'_>,
) -> Result<(), OsError> {
    let _ = process.number.set(worker);
    process.common.lights.light(worker)?;
    pinned(&process.config.worker_cores, worker)?;
    let space = process.space_of(u32::from(worker));
    open_tables(process, mode, space)?;
    if let Some(table) = process.userfault(space) {
        channel.send(b"table", &[table.as_fd()])?;
    }
    take_tables(process, channel)?;
    worker_life(process, mode, worker, || ready(process, channel), body)
}

/// Waits for movers, which end when all is over.
fn dismiss(process: &Process, movers: &[Child]) {
    process.common.over().store(1, Ordering::Release);
    for number in 0..process.config.movers {
        let doorbell = process.common.doorbell(number);
        doorbell.store(0, Ordering::Release);
        let _ = futex::wake(doorbell, u32::MAX >> 1, Scope::Shared);
    }
    for mover in movers {
        let _ = wait(mover.process, true);
    }
}

/// Workers in processes of their own.
pub(super) fn processes(
    process: &Process,
    mode: Mode,
    body: Body<'_>,
) -> Result<(Vec<Ended>, Instant), TierError> {
    let mut children = Vec::new();
    let made = make_processes(process, mode, body, &mut children);
    let began = match made {
        Ok(began) => began,
        Err(error) => {
            abandon(&children);
            return Err(error);
        }
    };
    let (movers, workers) = children.split_at(usize::from(process.config.movers));
    if process.config.parent_works {
        worker_life(process, mode, 0, || Ok(()), body)?;
    }
    let first = u16::from(process.config.parent_works);
    let mut ended = Vec::new();
    ended.extend((0..first).filter_map(|worker| mail(process, worker)));
    for (worker, child) in (first..).zip(workers) {
        let how = wait(child.process, true)?;
        ended.push(match (how, mail(process, worker)) {
            (Some(End::Signal(signal)), None) => Ended::Killed(signal),
            (_, Some(mail)) => mail,
            (Some(End::Code(code)), None) => Ended::Silent(code),
            (None, None) => Ended::Silent(-1),
        });
    }
    dismiss(process, movers);
    Ok((ended, began))
}

fn make_processes(
    process: &Process,
    mode: Mode,
    body: Body<'_>,
    children: &mut Vec<Child>,
) -> Result<Instant, TierError> {
    movers(process, children)?;
    let first = u16::from(process.config.parent_works);
    for worker in first..process.config.workers {
        child(children, |channel| worker_child(process, mode, worker, channel, body))?;
    }
    if process.config.parent_works {
        let _ = process.number.set(0);
        process.common.lights.light(0)?;
        pinned(&process.config.worker_cores, 0)?;
        open_tables(process, mode, process.space_of(0))?;
    }
    let workers = children.iter().skip(usize::from(process.config.movers));
    for (worker, child) in (first..).zip(workers) {
        let mut word = [0; 8];
        let mut table = None;
        child.channel.receive(&mut word, &mut |fd| table = Some(fd))?;
        let table = table.ok_or_else(|| TierError::Unready(format!("worker {worker}")))?;
        let space = process.space_of(u32::from(worker));
        let _ = process.tables[space.index()].set(Userfault::received(table, process.features));
    }
    for child in children.iter() {
        give_tables(process, child)?;
    }
    gather(process, children)?;
    Ok(Instant::now())
}

/// Workers in threads of this process.
pub(super) fn threads(
    process: &Process,
    mode: Mode,
    body: Body<'_>,
) -> Result<(Vec<Ended>, Instant), TierError> {
    debug_assert!(process.config.tables == Tables::Shared, "threads have one set of tables");
    let mut children = Vec::new();
    let made = (|| {
        movers(process, &mut children)?;
        let _ = process.number.set(0);
        process.common.lights.light(0)?;
        open_tables(process, mode, Space(0))?;
        for child in &children {
            give_tables(process, child)?;
        }
        gather(process, &children)
    })();
    if let Err(error) = made {
        abandon(&children);
        return Err(error);
    }
    let began = Instant::now();
    let outcome = run_threads(process, mode, body);
    dismiss(process, &children);
    outcome?;
    let ended = (0..process.config.workers)
        .map(|worker| mail(process, worker).unwrap_or(Ended::Silent(-1)))
        .collect();
    Ok((ended, began))
}

fn run_threads(process: &Process, mode: Mode, body: Body<'_>) -> Result<(), OsError> {
    let _serving = Serving::start(process, mode, 0)?;
    let life = |worker: u16| -> Result<(), OsError> {
        pinned(&process.config.worker_cores, worker)?;
        let context = Context::new(process, Actor(worker), u32::from(worker))?;
        let _own = serving::own(&context, mode)?;
        work(process, &context, body);
        Ok(())
    };
    let first = u16::from(process.config.parent_works);
    std::thread::scope(|scope| {
        let all: Vec<_> = (first..process.config.workers)
            .map(|worker| scope.spawn(move || life(worker)))
            .collect();
        let mine = if first == 1 { life(0) } else { Ok(()) };
        let theirs = all.into_iter().map(|thread| thread.join().unwrap_or(Ok(())));
        theirs.fold(mine, Result::and)
    })
}
