//! A program that is text, run by threads of this process on real lines.
//!
//! A sample is an isolated call ([`isochrone_cla::live::Isolated`]). A program that does not count its calls finds
//! its lines at 0 and in memory in every window, as on its first call. What every rank holds after each call is
//! compared with what the same operations leave in plain memory. With more ranks than cores nothing is timed.

use std::hash::{DefaultHasher, Hasher};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use isochrone_cla::language::{Program, Setting};
use isochrone_cla::live::{Isolated, Meeting, Player, Settings, Team, Times, late_ns};
use isochrone_cla::program::{Buffer, Memory, Operation, Recorded};
use isochrone_os::affinity::{CoreSet, pin};
use isochrone_os::clock::Clock;
use isochrone_stats as stats;

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Live {
    /// Calls of all ranks.
    pub(super) calls: usize,
    /// How long a call took, ns; none where ranks had no cores of their own.
    pub(super) samples_ns: Vec<f64>,
    /// Windows in which a rank began late; they have no sample.
    pub(super) late: usize,
    /// From when on after its moment a rank was late, ns.
    pub(super) late_ns: f64,
    /// The first call after which a rank did not hold what it should, and the rank.
    pub(super) wrong: Option<(usize, usize)>,
}

impl Live {
    /// A quantile of the samples, ns.
    pub(super) fn quantile_ns(&self, q: f64) -> Option<f64> {
        let mut all = self.samples_ns.clone();
        all.sort_by(f64::total_cmp);
        stats::quantile(&all, q)
    }
}

/// Calls before the first sample.
const WARM: usize = 64;
/// Bytes that all calls together may move and write down: beyond, there are fewer calls.
const WORK_MAX: usize = 1 << 28;
/// The calls of a program, and what they must leave.
pub(super) struct Calls {
    calls: Vec<Recorded>,
    /// Whether lines are set back before each call.
    single: bool,
    count: usize,
    /// For each call and rank.
    expected: Vec<Vec<u64>>,
}

impl Calls {
    /// At most `most` calls to be timed, and some before.
    pub(super) fn of(program: &Program, setting: &Setting, most: usize) -> Result<Self> {
        let single = !program.counts_calls();
        let first = program.record(setting, 0, 1)?;
        let count = (WARM + most).min(WORK_MAX / work(&first)).max(1);
        let calls = if single {
            vec![first]
        } else {
            (0..u64::try_from(count)?)
                .map(|n| program.record(setting, n, n + 1))
                .collect::<Result<Vec<_>, _>>()?
        };
        let mut this = Self { calls, single, count, expected: Vec::with_capacity(count) };
        this.work_out()?;
        Ok(this)
    }

    fn call(&self, number: usize) -> usize {
        if self.single { 0 } else { number }
    }

    fn ranks(&self) -> usize {
        self.calls[0].ranks.len()
    }

    /// Does all calls in plain memory, rank by rank as far as each can go.
    fn work_out(&mut self) -> Result<()> {
        let [sends, receives] = [Buffer::Send, Buffer::Receive]
            .map(|buffer| self.calls.iter().map(|c| c.buffer_bytes(buffer)).max().unwrap_or(0));
        let lines = self.calls.iter().map(Recorded::lines).max().unwrap_or(0);
        let buffers = |bytes: u32| vec![vec![0; bytes.next_multiple_of(8) as usize]; self.ranks()];
        let fresh = Memory::new(lines, buffers(sends), buffers(receives));
        let mut memory = fresh.clone();
        for number in 0..self.count {
            if self.single {
                memory = fresh.clone();
            }
            for (rank, send) in memory.send.iter_mut().enumerate() {
                let bytes = given(rank, number, send.len());
                send.copy_from_slice(&bytes);
            }
            if !memory.call(&self.calls[self.call(number)]) {
                bail!(
                    "call {} does not come to its end: ranks wait for what nobody writes",
                    number + 1
                );
            }
            let both = memory.send.iter().zip(&memory.receive);
            self.expected.push(both.map(|(send, receive)| digest(send, receive)).collect());
        }
        Ok(())
    }
}

/// Bytes that a call writes down and moves.
fn work(call: &Recorded) -> usize {
    let operations: usize = call.ranks.iter().map(|rank| rank.operations.len()).sum();
    let bytes = call.buffer_bytes(Buffer::Send) + call.buffer_bytes(Buffer::Receive);
    1 + operations * size_of::<Operation>() + 4 * bytes as usize * call.ranks.len()
}

/// What a rank gives in a call: bytes that differ by rank, call and place.
fn given(rank: usize, call: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| ((rank * 31 + call * 7 + at * 3) % 251).to_le_bytes()[0]).collect()
}

/// One number for what a rank holds.
fn digest(send: &[u8], receive: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(send);
    hasher.write(receive);
    hasher.finish()
}

/// When a rank called, by the counter of rank 0, and what it held then.
#[derive(Clone, Copy, Debug)]
struct Seen {
    times: Times,
    digest: u64,
}

/// Runs the calls. Ranks that are not done after `limit` are stopped, which is an error.
pub(super) fn play(calls: &Calls, limit: Duration) -> Result<Live> {
    let ranks = calls.ranks();
    let cores: Vec<_> = CoreSet::of_this_thread()?.iter().collect();
    let own_cores = ranks <= cores.len();
    let clock = Clock::calibrate();
    let meeting = Meeting::new(u16::try_from(ranks)?, clock.tick);
    let players = Player::threads(calls.calls.clone(), &Settings::default())?;
    let stopper = players.first().map(Player::stopper);
    // It finds out how far the counters of the cores are apart.
    let team = Team::threads(u16::try_from(ranks)?, &Settings::default())?;
    let (done, finished) = mpsc::channel();
    let rows: Vec<Vec<Seen>> = thread::scope(|scope| {
        let rank = |((player, team), core): ((Player, Team), _)| {
            let (meeting, done) = (&meeting, done.clone());
            let timed = own_cores.then_some((team, clock.tick));
            scope.spawn(move || {
                let row = (|| {
                    if own_cores {
                        pin(core).with_context(|| format!("core {} cannot be used", core.0))?;
                    }
                    one_rank(player, calls, meeting, timed)
                })();
                if row.is_err() {
                    meeting.give_up();
                }
                // Nobody listens any more where the limit has passed.
                let _told = done.send(());
                row
            })
        };
        let all = players.into_iter().zip(team).zip(cores.iter().copied().cycle());
        let threads: Vec<_> = all.map(rank).collect();
        let end = Instant::now() + limit;
        let in_time =
            |_| finished.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok();
        let late = !(0..ranks).all(in_time);
        if late {
            meeting.give_up();
            stopper.iter().for_each(isochrone_cla::live::Stopper::stop);
        }
        let joined: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        if late {
            bail!("the ranks were not done after {} s", limit.as_secs());
        }
        joined.into_iter().map(|one| one.unwrap_or_else(|_| bail!("a rank panicked"))).collect()
    })?;
    Ok(evaluated(&rows, calls, &clock, own_cores))
}

/// The calls of one rank. A rank that is timed has a team, for the time being its own core, and the step of the
/// counter.
fn one_rank(
    mut player: Player,
    calls: &Calls,
    meeting: &Meeting,
    timed: Option<(Team, u32)>,
) -> Result<Vec<Seen>> {
    let me = player.rank();
    let ahead = match timed {
        Some((mut team, tick)) => team.ahead_of_first(tick)?,
        None => 0,
    };
    let sends = player.buffer(Buffer::Send).len();
    let none = vec![0; player.buffer(Buffer::Receive).len()];
    let mut row = Vec::with_capacity(calls.count);
    for number in 0..calls.count {
        player.give(Buffer::Send, &given(me.index(), number, sends));
        if calls.single {
            player.give(Buffer::Receive, &none);
        }
        let prepare = || {
            if calls.single {
                player.reset();
            }
        };
        let moment = meeting.moment(me, u64::try_from(number)? + 1, ahead, prepare);
        let moment = moment.context("another rank gave up")?;
        let (times, done) = Times::of(moment, || player.play(calls.call(number)));
        done?;
        let digest = digest(&player.buffer(Buffer::Send), &player.buffer(Buffer::Receive));
        row.push(Seen { times: times.by_one_behind(ahead), digest });
    }
    Ok(row)
}

#[allow(clippy::cast_precision_loss, reason = "differences of cycles are far below 2^52")]
fn evaluated(rows: &[Vec<Seen>], calls: &Calls, clock: &Clock, own_cores: bool) -> Live {
    let mut live = Live { calls: calls.count, late_ns: late_ns(clock), ..Live::default() };
    for number in 0..calls.count {
        let all = || rows.iter().map(|row| row[number]);
        let wrong = all().zip(&calls.expected[number]).position(|(seen, &e)| seen.digest != e);
        live.wrong = live.wrong.or(wrong.map(|rank| (number, rank)));
        if !own_cores || number < WARM.min(calls.count / 2) {
            continue;
        }
        let Some(seen) = Isolated::of(all().map(|seen| seen.times)) else { continue };
        if clock.ns(seen.late as f64) > live.late_ns {
            live.late += 1;
        } else {
            live.samples_ns.push(clock.ns(seen.cycles as f64 - clock.overhead));
        }
    }
    live
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_cla::collectives::Tree;
    use isochrone_cla::language::parse;
    use isochrone_cla::program::Rank;

    const REDUCE: &str = include_str!("../../../../../examples/cla/reduce.cla");
    const CIRCLE: &str = include_str!("../../../../../fuzz/corpus/cla_program/valid-deadlock.cla");

    fn program(text: &str) -> Program {
        parse("test.cla", text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn setting() -> Setting {
        Setting { tree: Tree::flat(2, Rank(0)), values: Vec::new() }
    }

    fn reduce() -> Calls {
        let calls = Calls::of(&program(REDUCE), &setting(), 10);
        calls.unwrap_or_else(|error| panic!("{error:#}"))
    }

    #[test]
    fn wrong_bytes_are_noticed() {
        let limit = Duration::from_secs(60);
        let mut calls = reduce();
        let right = play(&calls, limit).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!((right.calls, right.wrong), (74, None));
        calls.expected[3][1] ^= 1;
        let wrong = play(&calls, limit).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(wrong.wrong, Some((3, 1)));
    }

    #[test]
    fn what_does_not_end_is_told_before_and_stopped_after() {
        let error = Calls::of(&program(CIRCLE), &setting(), 10).err();
        let error = error.unwrap_or_else(|| panic!("nobody writes what both wait for"));
        assert!(error.to_string().contains("does not come to its end"), "{error}");
        let circle = program(CIRCLE).record(&setting(), 0, 1);
        let circle = circle.unwrap_or_else(|error| panic!("{error}"));
        let mut calls = reduce();
        calls.calls.iter_mut().for_each(|call| call.clone_from(&circle));
        let error = play(&calls, Duration::ZERO).err();
        let error = error.unwrap_or_else(|| panic!("both wait for ever"));
        assert!(error.to_string().contains("not done after 0 s"), "{error}");
    }
}
