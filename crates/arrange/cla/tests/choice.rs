//! A team whose chooser is killed while it chooses: the others are told, and do not wait for ever.

#![allow(clippy::print_stdout, reason = "a child process answers on its output")]
#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use isochrone_cla::live::{Place, Settings, Team, TeamError};
use isochrone_cla::program::{Gone, Rank};
use isochrone_distance::{Cost, Distances, LineCosts, Term};
use isochrone_units::CoreId;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Distances whose answer never comes.
#[derive(Debug)]
struct Endless;

impl Endless {
    fn never(&self) -> ! {
        println!("\nchoosing");
        std::io::stdout().flush().expect("a pipe");
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
}

impl Distances for Endless {
    fn line_costs(&self, _: CoreId, _: CoreId) -> Option<LineCosts> {
        self.never()
    }

    fn term(&self, _: Term) -> Option<Cost> {
        self.never()
    }

    fn levels(&self) -> usize {
        self.never()
    }

    fn group(&self, _: usize, _: CoreId) -> Option<u16> {
        self.never()
    }
}

#[test]
fn a_rank_that_is_killed_while_choosing_is_missed() {
    let mut command = Command::new(std::env::current_exe().expect("a test is a program"));
    command.args(["--exact", "chooser", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("CLA_CHOOSER", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut chooser = command.spawn().expect("can be started");
    let mut said = BufReader::new(chooser.stdout.take().expect("piped")).lines();
    let mut line = |begins: &str| loop {
        let line = said.next().expect("it says so first").expect("text");
        if let Some(rest) = line.strip_prefix(begins) {
            return rest.to_owned();
        }
    };
    let place = line("place ");
    let numbers: Vec<u32> = place.split(' ').map(|n| n.parse().expect("a number")).collect();
    let place = Place { process: numbers[0], descriptor: numbers[1] };
    let others = [1, 2]
        .map(|rank| Team::join(place, Rank(rank), Settings::default()).expect("the team is there"));
    std::thread::scope(|scope| {
        let waiting = others.map(|mut me| scope.spawn(move || [me.barrier(), me.barrier()]));
        line("choosing");
        chooser.kill().expect("it runs");
        for rank in waiting {
            let gone = Err(TeamError::Gone(Gone::Rank(Rank(0))));
            assert_eq!(rank.join().expect("no panic"), [gone.clone(), gone]);
        }
    });
    chooser.wait().expect("killed");
}

#[test]
#[ignore = "what the child of the test above does; it is no test by itself"]
fn chooser() {
    assert!(std::env::var("CLA_CHOOSER").is_ok(), "started by the test above");
    let settings = Settings { distances: Some(Arc::new(Endless)), ..Settings::default() };
    let (mut me, place) = Team::found(3, Rank(0), settings).expect("shared memory");
    println!("\nplace {} {}", place.process, place.descriptor);
    std::io::stdout().flush().expect("a pipe");
    me.await_all(Duration::from_secs(30)).expect("all come");
    let ended = me.barrier();
    unreachable!("the choice ended: {ended:?}");
}
