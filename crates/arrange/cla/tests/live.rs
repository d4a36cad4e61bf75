//! Collectives on real lines: the cross product of collective, tree, size, root and ranks, more ranks
//! than cores included; processes; a rank that is killed; what is refused.

#![allow(clippy::print_stdout, reason = "a child process answers on its output")]
#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use isochrone_cla::collectives::{Acks, Collective, Options, Shape, Tree};
use isochrone_cla::live::{
    Choose, Patience, Place, Plain, Reduction, Settings, Team, TeamError, Usual,
};
use isochrone_cla::program::{Gone, Rank};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Every collective in one shape.
#[derive(Clone, Copy, Debug)]
struct Shaped {
    shape: u8,
    ring: u32,
    counter: bool,
}

impl Choose for Shaped {
    fn options(&self, collective: Collective, ranks: u16, root: Rank, bytes: u32) -> Options {
        let tree = match self.shape {
            0 => Tree::flat(ranks, root),
            1 => Tree::binomial(ranks, root),
            2 => Tree::regular(ranks, root, 1),
            3 => Tree::regular(ranks, root, 3),
            _ if collective.rooted() => Tree::regular(ranks, root, 2),
            _ => return Options { ring: self.ring.max(2), ..Options::exchange(bytes) },
        };
        Options {
            shape: Shape::Tree(tree),
            ring: self.ring.max(2),
            acks: if self.counter { Acks::Counter } else { Acks::PerChild },
            ..Options::exchange(bytes)
        }
    }
}

/// What rank `rank` gives in round `round` at place `i`.
fn number(rank: u16, round: u64, i: usize) -> u64 {
    (u64::from(rank) * 1_000_003 + round * 7919 + i as u64 * 31) % 65_521
}

fn numbers(rank: u16, round: u64, count: usize) -> Vec<u64> {
    (0..count).map(|i| number(rank, round, i)).collect()
}

/// All collectives with all roots given, some rounds of each, compared byte by byte.
fn exercise(me: &mut Team, counts: &[usize], roots: &[u16], rounds: u64) -> Result<(), TeamError> {
    let (rank, ranks) = (me.rank().0, me.ranks());
    let all = |round, count| (0..ranks).flat_map(|r| numbers(r, round, count)).collect::<Vec<_>>();
    let sums = |round, count: usize| {
        let sum = |i| (0..ranks).map(|r| number(r, round, i)).sum::<u64>();
        (0..count).map(sum).collect::<Vec<_>>()
    };
    for round in 0..rounds {
        for &count in counts {
            let mine = numbers(rank, round, count);
            for &root in roots.iter().filter(|root| **root < ranks) {
                let at_root = |of: &[u64]| if rank == root { of.to_vec() } else { Vec::new() };
                let mut data = if rank == root { mine.clone() } else { vec![0; count] };
                me.broadcast(&mut data, Rank(root))?;
                assert_eq!(data, numbers(root, round, count), "broadcast from {root}");
                let mut sum = at_root(&mine);
                me.reduce(Reduction::Sum, &mine, &mut sum, Rank(root))?;
                assert_eq!(sum, at_root(&sums(round, count)), "reduce to {root}");
                let mut block = vec![0; count];
                let given = at_root(&all(round, count));
                me.scatter(&given, &mut block, Rank(root))?;
                assert_eq!(block, mine, "scatter from {root}");
                let mut gathered = vec![0; given.len()];
                me.gather(&mine, &mut gathered, Rank(root))?;
                assert_eq!(gathered, given, "gather to {root}");
            }
            let mut sum = vec![0; count];
            me.allreduce(Reduction::Sum, &mine, &mut sum)?;
            assert_eq!(sum, sums(round, count), "allreduce");
            let mut gathered = vec![0; count * usize::from(ranks)];
            me.allgather(&mine, &mut gathered)?;
            assert_eq!(gathered, all(round, count), "allgather");
            me.barrier()?;
        }
    }
    Ok(())
}

/// Runs `work` on a thread for each rank.
fn on_threads(
    ranks: u16,
    settings: &Settings,
    work: impl Fn(&mut Team) -> Result<(), TeamError> + Sync,
) {
    let team = Team::threads(ranks, settings).expect("shared memory");
    std::thread::scope(|scope| {
        for mut me in team {
            let work = &work;
            scope.spawn(move || work(&mut me).expect("nobody ends"));
        }
    });
}

#[test]
fn every_collective_tree_size_root_and_number_of_ranks() {
    for ranks in [1, 2, 3, 4, 7, 16] {
        for shape in 0..5 {
            let choose = Arc::new(Shaped { shape, ring: 4, counter: shape % 2 == 1 });
            let settings = Settings { choose, ..Settings::default() };
            // 8 B, a line, a line and a word, several lines, several chunks.
            let counts = [1, 7, 8, 32, 129];
            let rounds = if ranks > 4 { 2 } else { 6 };
            on_threads(ranks, &settings, |me| exercise(me, &counts, &[0, 1, ranks - 1], rounds));
        }
    }
}

#[test]
fn a_usual_team_does_every_collective_with_every_root_and_size() {
    // A word, some lines, more than a chunk, and a long message: all three classes of messages.
    let counts = [1, 32, 520, 20_000];
    for ranks in 1..=12 {
        let roots: Vec<u16> = (0..ranks).collect();
        on_threads(ranks, &Settings::default(), |me| exercise(me, &counts, &roots, 2));
    }
}

#[test]
fn lines_serve_again_where_there_are_few() {
    for shape in 0..5 {
        let choose = Arc::new(Shaped { shape, ring: 4, counter: shape % 2 == 1 });
        // Room for each collective alone, and for no two with long messages.
        let settings = Settings { choose, bytes: Some(64 << 10), ..Settings::default() };
        on_threads(4, &settings, |me| exercise(me, &[1, 32, 520], &[0, 1, 2, 3], 3));
    }
}

#[test]
fn rings_go_round_and_long_messages_flow() {
    for ring in [2, 8] {
        let choose = Arc::new(Shaped { shape: 3, ring, counter: true });
        let settings = Settings { choose, locked: ring == 2, ..Settings::default() };
        on_threads(3, &settings, |me| exercise(me, &[1, 513, 20_000], &[0, 2], 20));
    }
}

#[test]
fn impatient_ranks_sleep_and_are_woken() {
    let patience = Some(Patience { polls: 1, rounds: 0, yields: 0 });
    let settings = Settings { patience, ..Settings::default() };
    on_threads(4, &settings, |me| exercise(me, &[1, 65], &[0, 3], 100));
}

#[test]
fn floating_point_results_have_the_same_bits_everywhere() {
    for ranks in [2, 3, 6] {
        let results = std::sync::Mutex::new(Vec::new());
        on_threads(ranks, &Settings::default(), |me| {
            let mine = [0.1 * f64::from(me.rank().0 + 1), 1e300 / f64::from(me.rank().0 + 3)];
            let mut sum = [0.0; 2];
            for _ in 0..3 {
                me.allreduce(Reduction::Sum, &mine, &mut sum)?;
                results.lock().expect("no panic").push(sum.map(f64::to_bits));
            }
            Ok(())
        });
        let results = results.into_inner().expect("no panic");
        assert_eq!(results.len(), usize::from(ranks) * 3);
        assert!(results.iter().all(|bits| *bits == results[0]), "{results:?}");
    }
}

#[test]
fn wrong_sizes_and_roots_are_refused() {
    on_threads(2, &Settings::default(), |me| {
        let far = me.broadcast(&mut [0_u8], Rank(2)).expect_err("no such root");
        assert_eq!(far.to_string(), "root 2 is not one of 2 ranks; roots are 0 to 1");
        let short = me.allgather(&[1_u32], &mut [0; 3]).expect_err("too long");
        assert_eq!(short, TeamError::Length { what: "what is gathered", need: 2, have: 3 });
        let wrong = me.allreduce(Reduction::Sum, &[1_i32], &mut []).expect_err("empty");
        assert!(matches!(wrong, TeamError::Length { need: 1, have: 0, .. }));
        // Nothing of this has harmed the team.
        let mut word = [me.rank().0];
        me.broadcast(&mut word, Rank(1))?;
        assert_eq!(word, [1]);
        Ok(())
    });
    assert_eq!(Team::threads(0, &Settings::default()).err(), Some(TeamError::Ranks(0)));
    assert_eq!(Team::threads(1025, &Settings::default()).err(), Some(TeamError::Ranks(1025)));
    let (team, place) = Team::found(2, Rank(0), Settings::default()).expect("shared memory");
    let taken = Team::join(place, Rank(0), Settings::default()).err();
    assert_eq!(taken, Some(TeamError::Taken(Rank(0))));
    let beyond = Team::join(place, Rank(2), Settings::default()).err();
    assert_eq!(beyond, Some(TeamError::Rank { rank: Rank(2), ranks: 2 }));
    let late = team.await_all(Duration::from_millis(5)).err();
    assert_eq!(late, Some(TeamError::Late { missing: 1, ranks: 2, seconds: 0 }));
}

#[test]
fn memory_that_is_not_there_is_an_error_and_not_a_signal() {
    let settings = Settings { bytes: Some(1 << 50), ..Settings::default() };
    let error = Team::threads(2, &settings).expect_err("nobody has so much");
    assert!(error.to_string().starts_with("shared memory is exhausted"), "{error}");
    // An area that has room for small messages only: all ranks fail alike, and go on.
    let settings = Settings { bytes: Some(12 << 10), ..Settings::default() };
    on_threads(2, &settings, |me| {
        me.barrier()?;
        let full = me.broadcast(&mut [0_u8; 4096], Rank(0)).expect_err("no room");
        assert!(matches!(full, TeamError::Full { .. }), "{full}");
        assert!(full.to_string().contains("give it more"));
        me.barrier()
    });
}

#[test]
fn a_rank_that_panics_or_leaves_is_missed() {
    for panics in [true, false] {
        let mut team = Team::threads(2, &Settings::default()).expect("shared memory");
        let mut other = team.pop().expect("two");
        let mut first = team.pop().expect("two");
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let leaver = scope.spawn(move || {
                other.barrier().expect("both are there");
                assert!(!panics, "on purpose");
            });
            first.barrier().expect("both are there");
            assert_eq!(first.barrier(), Err(TeamError::Gone(Gone::Rank(Rank(1)))));
            assert_eq!(first.barrier(), Err(TeamError::Gone(Gone::Rank(Rank(1)))), "and stays so");
            assert_eq!(leaver.join().is_err(), panics);
        });
        assert!(begin.elapsed() < Duration::from_secs(5), "not within the stated time");
    }
}

#[test]
fn who_gives_up_ends_the_waits_of_all() {
    let mut team = Team::threads(3, &Settings::default()).expect("shared memory");
    let mut stopper = team.pop().expect("three");
    std::thread::scope(|scope| {
        for mut me in team {
            scope.spawn(move || assert_eq!(me.barrier(), Err(TeamError::Gone(Gone::Stopped))));
        }
        stopper.stop();
        assert_eq!(stopper.barrier(), Err(TeamError::Gone(Gone::Stopped)));
    });
}

/// Starts this test binary as rank `rank` of a team.
fn child(role: &str, place: Place, rank: u16) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().expect("a test is a program"));
    command.args(["--exact", "child_process", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("CLA_ROLE", format!("{role} {} {} {rank}", place.process, place.descriptor));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("can be started")
}

#[test]
fn processes_do_collectives_together() {
    let (mut me, place) = Team::found(4, Rank(0), Settings::default()).expect("shared memory");
    let children = (1..4).map(|rank| child("exercise", place, rank)).collect::<Vec<_>>();
    me.await_all(Duration::from_secs(30)).expect("all come");
    exercise(&mut me, &[1, 9, 300], &[0, 3], 10).expect("nobody ends");
    for mut child in children {
        assert!(child.wait().expect("ends").success());
    }
}

#[test]
fn a_killed_rank_gives_the_others_an_error_within_the_stated_time() {
    let (mut me, place) = Team::found(3, Rank(0), Settings::default()).expect("shared memory");
    let mut victim = child("rounds", place, 1);
    let mut witness = child("rounds", place, 2);
    me.await_all(Duration::from_secs(30)).expect("all come");
    for _ in 0..1000 {
        me.barrier().expect("all are there");
    }
    victim.kill().expect("it runs");
    let begin = Instant::now();
    let error = (0..).find_map(|_| me.barrier().err()).expect("it ends");
    assert_eq!(error, TeamError::Gone(Gone::Rank(Rank(1))));
    assert!(begin.elapsed() < Duration::from_secs(5), "noticed after {:?}", begin.elapsed());
    // The third rank is told as well.
    let told = BufReader::new(witness.stdout.take().expect("piped"))
        .lines()
        .map_while(Result::ok)
        .filter(|line| line.starts_with("ended:"))
        .last()
        .expect("it says why it ended");
    assert_eq!(told, format!("ended: {}", Gone::Rank(Rank(1))));
    victim.wait().expect("killed");
    witness.wait().expect("ends");
}

#[test]
#[ignore = "what the children of the tests above do; it is no test by itself"]
fn child_process() {
    let role = std::env::var("CLA_ROLE").expect("started by a test above");
    let words = role.split(' ').collect::<Vec<_>>();
    let number = |i: usize| words[i].parse::<u32>().expect("a number");
    let place = Place { process: number(1), descriptor: number(2) };
    let rank = Rank(u16::try_from(number(3)).expect("a rank"));
    let mut me = Team::join(place, rank, Settings::default()).expect("the team is there");
    match words[0] {
        "exercise" => exercise(&mut me, &[1, 9, 300], &[0, 3], 10).expect("nobody ends"),
        _ => {
            let error = (0..).find_map(|_| me.barrier().err()).expect("it ends");
            println!("\nended: {error}");
            std::io::stdout().flush().expect("a pipe");
        }
    }
}

#[test]
fn the_usual_choice_fits_every_collective() {
    fn plain<T: Plain>(_: T) {}
    plain(1_u8);
    for ranks in [1, 2, 5, 8, 9, 40] {
        for collective in [Collective::Broadcast, Collective::Barrier, Collective::Allgather] {
            let root = Rank(ranks / 2);
            let options = Usual.options(collective, ranks, root, 8);
            isochrone_cla::collectives::Plan::new(collective, ranks, root, 8, options)
                .expect("fits");
        }
    }
}
