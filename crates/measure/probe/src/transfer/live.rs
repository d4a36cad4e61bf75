//! Real cores: one pinned thread for each, which play scenes on shared lines of a mapping.
//!
//! What each thread does is [`super::player`]'s. Never decides what is measured.
//!
//! Beside many others two threads hardly ever run at once, and what takes milliseconds takes seconds: a play that takes
//! long is given up as soon as nobody wants it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use isochrone_os::line_transfer::can_flush;
use isochrone_os::mapping::Mapping;
use isochrone_stats::tick_mean;
use isochrone_units::CoreId;

use super::meeting::Meeting;
use super::player::{Job, Player};
use super::scene::{Act, Part, Samples, Scene, Stage, check};
use crate::target::{TargetClock, TargetError};

/// Between two looks whether a play is still wanted. On a quiet machine it is over before the first.
const LOOK: Duration = Duration::from_millis(50);

/// Threads pinned to real cores.
#[derive(Debug)]
pub struct LiveStage {
    cores: Vec<CoreId>,
    workers: Vec<Worker>,
    lines: u64,
    clock: TargetClock,
    born: Instant,
    /// Whether nobody wants the play under way any more.
    given_up: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Worker {
    /// `None` once the stage goes away.
    jobs: Option<Sender<Job>>,
    results: Receiver<Result<Samples, TargetError>>,
    thread: Option<JoinHandle<()>>,
}

impl LiveStage {
    /// A thread for each of `cores`, on the lines of `arena`. `hz` and `tick` describe the
    /// time-stamp counter; its overhead is measured here, on the first core, warm.
    ///
    /// # Errors
    /// [`TargetError::System`] when a core may not be used or no thread can be made.
    pub fn new(
        cores: &[CoreId],
        arena: Arc<Mapping>,
        hz: f64,
        tick: u32,
        seed: u64,
    ) -> Result<Self, TargetError> {
        let mut cores = cores.to_vec();
        cores.sort_unstable();
        cores.dedup();
        let mut stage = Self {
            lines: arena.lines(),
            workers: Vec::with_capacity(cores.len()),
            clock: TargetClock { hz, tick, overhead: 0.0 },
            born: Instant::now(),
            given_up: Arc::default(),
            cores,
        };
        for core in stage.cores.clone() {
            let given_up = Arc::clone(&stage.given_up);
            let worker = Worker::start(core, Arc::clone(&arena), stage.clock, seed, given_up)?;
            stage.workers.push(worker);
        }
        // The first answer of each says whether it could be pinned.
        for (place, worker) in stage.workers.iter().enumerate() {
            let samples = worker.result(stage.cores[place], &mut || {})?;
            if place == 0 {
                stage.clock.overhead = overhead(&samples, tick);
            }
        }
        Ok(stage)
    }
}

impl Stage for LiveStage {
    fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    fn lines(&self) -> u64 {
        self.lines
    }

    fn clock(&self) -> TargetClock {
        self.clock
    }

    fn play(&mut self, scenes: &[Scene], repeats: u32) -> Result<Vec<Vec<Samples>>, TargetError> {
        self.play_until(scenes, repeats, &mut |_| false)
    }

    fn play_until(
        &mut self,
        scenes: &[Scene],
        repeats: u32,
        ends: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Vec<Vec<Samples>>, TargetError> {
        check(scenes, &self.cores, self.lines)?;
        let owns = |part: &Part| part.acts.iter().any(|act| matches!(act, Act::Own(_)));
        if !can_flush() && scenes.iter().flat_map(|scene| &scene.parts).any(owns) {
            return Err(TargetError::Unsupported(
                "this CPU cannot flush lines, so the exclusive and shared states cannot be made; \
                 measure modified lines only"
                    .to_owned(),
            ));
        }
        let place_of = |core: CoreId| self.cores.binary_search(&core).unwrap_or(0);
        for scene in scenes {
            let meeting = Arc::new(Meeting::new(scene.parts.len(), self.clock.hz));
            for (place, part) in scene.parts.iter().enumerate() {
                let meeting = Arc::clone(&meeting);
                let job = Job { part: part.clone(), place, repeats, meeting };
                self.workers[place_of(part.core)].send(job);
            }
        }
        // Every answer is taken, also after an error: each belongs to this play.
        let mut look = || {
            if ends(self.born.elapsed().as_secs_f64()) {
                // Relaxed: it hands nothing over.
                self.given_up.store(true, Ordering::Relaxed);
            }
        };
        let mut first_error = None;
        let mut played = Vec::with_capacity(scenes.len());
        for scene in scenes {
            let mut parts = Vec::with_capacity(scene.parts.len());
            for part in &scene.parts {
                match self.workers[place_of(part.core)].result(part.core, &mut look) {
                    Ok(samples) => parts.push(samples),
                    Err(error) => first_error = Some(graver(first_error, error)),
                }
            }
            played.push(parts);
        }
        let given_up = self.given_up.swap(false, Ordering::Relaxed);
        match first_error {
            Some(TargetError::System { .. }) if given_up => Err(TargetError::Stopped),
            Some(error) => Err(error),
            None => Ok(played),
        }
    }

    fn seconds(&mut self) -> f64 {
        self.born.elapsed().as_secs_f64()
    }
}

/// Of two errors the one that explains the other: a thread that was moved makes others stall.
fn graver(first: Option<TargetError>, second: TargetError) -> TargetError {
    match first {
        Some(moved @ TargetError::Moved { .. }) => moved,
        Some(other) if !matches!(second, TargetError::Moved { .. }) => other,
        _ => second,
    }
}

impl Drop for LiveStage {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.jobs = None;
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A worker that panicked has already been told as an error of its play.
                let _ = thread.join();
            }
        }
    }
}

impl Worker {
    fn start(
        core: CoreId,
        arena: Arc<Mapping>,
        clock: TargetClock,
        seed: u64,
        given_up: Arc<AtomicBool>,
    ) -> Result<Self, TargetError> {
        let (jobs, orders) = channel::<Job>();
        let (answers, results) = channel();
        let player = Player::new(core, arena, clock, seed, given_up);
        let thread = std::thread::Builder::new()
            .name(format!("measure {}", core.0))
            .spawn(move || player.serve(&orders, &answers))
            .map_err(|error| TargetError::System {
                what: format!("cannot start a thread for {core}"),
                why: error.to_string(),
                advice: "raise the limit on threads (ulimit -u)".to_owned(),
            })?;
        Ok(Self { jobs: Some(jobs), results, thread: Some(thread) })
    }

    /// Hands a job over; a worker that is gone is noticed when its result is taken.
    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// The next answer; `look` is called now and then until it is there.
    fn result(&self, core: CoreId, look: &mut dyn FnMut()) -> Result<Samples, TargetError> {
        loop {
            match self.results.recv_timeout(LOOK) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Timeout) => look(),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(TargetError::System {
                        what: format!("the thread of {core} ended"),
                        why: "it panicked".to_owned(),
                        advice: "report this with the panic message".to_owned(),
                    });
                }
            }
        }
    }
}

/// The mean cost of timing nothing, of a warm clock.
fn overhead(samples: &Samples, tick: u32) -> f64 {
    let warm: Vec<f64> =
        samples.raw.iter().skip(samples.raw.len() / 4).map(|c| f64::from(c.0)).collect();
    tick_mean(&warm, f64::from(tick)).map_or(0.0, |found| found.mean)
}

#[cfg(test)]
mod tests {
    use super::super::scene::Operation;
    use super::*;
    use isochrone_os::affinity;
    use isochrone_os::mapping::Backing;
    use isochrone_units::LineAddr;

    /// A stage on the first two cores that this process may use. With `CI=true` there must be two.
    #[allow(clippy::print_stderr, reason = "a test says why it was skipped")]
    fn stage() -> Option<LiveStage> {
        let mut allowed = [CoreId(0); 64];
        if affinity::allowed(&mut allowed) < 2 {
            assert!(option_env!("CI") != Some("true"), "one core; lines go between two");
            eprintln!("skipped: one core, and lines go between two");
            return None;
        }
        let chosen = &allowed[..2];
        let arena = Arc::new(Mapping::anonymous(64 * 4096, Backing::Small).unwrap());
        Some(LiveStage::new(chosen, arena, 2e9, 1, 1).unwrap())
    }

    fn some_lines() -> Vec<LineAddr> {
        (0..64).map(|i| LineAddr(i * 65)).collect()
    }

    #[test]
    fn two_cores_hand_lines_over_and_every_sample_is_there() {
        let Some(mut stage) = stage() else { return };
        let [asker, owner] = [stage.cores[0], stage.cores[1]];
        let rest = || Act::Rest;
        let scene = Scene {
            parts: vec![
                Part { core: asker, acts: vec![rest(), Act::Time(Operation::Rfo, some_lines())] },
                Part { core: owner, acts: vec![Act::Write(some_lines()), rest()] },
            ],
        };
        let played = stage.play(&[scene], 20).unwrap();
        assert_eq!((played[0][0].raw.len(), played[0][1].raw.len()), (64 * 20, 0));
        assert!(played[0][0].raw.iter().all(|cycles| cycles.0 > 0));
        // Each line was written 0, then added 1 to, last.
        let acts = some_lines().into_iter().map(|line| Act::Poll { line, value: 1 }).collect();
        let look = Scene { parts: vec![Part { core: owner, acts }] };
        assert!(stage.play(&[look], 1).is_ok());
    }

    #[test]
    fn a_core_that_never_answers_is_an_error_and_the_stage_still_works() {
        let Some(mut stage) = stage() else { return };
        let core = stage.cores[0];
        let poll = |value| Scene {
            parts: vec![Part { core, acts: vec![Act::Poll { line: LineAddr(3), value }] }],
        };
        let refused = stage.play(&[poll(99)], 1).unwrap_err().to_string();
        assert!(refused.contains("no answer") && refused.contains("fewer"), "{refused}");
        assert!(stage.play(&[poll(0)], 1).is_ok());
    }

    #[test]
    fn a_play_that_nobody_wants_any_more_is_given_up_and_the_stage_still_works() {
        let Some(mut stage) = stage() else { return };
        // Many more than are played between two looks.
        let (core, repeats) = (stage.cores[0], 50_000_000);
        let scene = |value| Scene {
            parts: vec![Part { core, acts: vec![Act::Poll { line: LineAddr(3), value }] }],
        };
        let mut looks = 0;
        let mut ends = |seconds: f64| {
            looks += 1;
            looks > 1 && seconds > 0.0
        };
        for value in [99, 0] {
            let ended = stage.play_until(&[scene(value)], repeats, &mut ends);
            assert_eq!(ended.unwrap_err(), TargetError::Stopped, "{value}");
        }
        assert!(stage.play(&[scene(0)], 1).is_ok());
    }

    #[test]
    fn a_core_that_may_not_be_used_is_named() {
        let arena = Arc::new(Mapping::anonymous(4096, Backing::Small).unwrap());
        let refused = LiveStage::new(&[CoreId(8191)], arena, 2e9, 1, 1).unwrap_err().to_string();
        assert!(refused.contains("8191"), "{refused}");
    }
}
