//! The stages and verdicts of a trial over made-up programs whose truth is known.

use anyhow::Result;
use isochrone_stats::{Xoshiro256PlusPlus, derive_seed, normal, rng};

use super::stages::{
    ALPHA, Blocks, CONTROL, End, PLAIN, Runs, SCREENED, Turn, fresh_blocks, stage,
};
use super::verdict::{Judged, Word, all, best, fresh};

/// A machine that wanders by a third, whose runs differ by a part of themselves and are sometimes much longer, and
/// programs that take so long under each lever.
struct Made {
    seconds: Vec<(&'static str, f64)>,
    noise: f64,
    rng: Xoshiro256PlusPlus,
    at: f64,
    left_s: f64,
    /// A lever that fails at its so many-th run.
    failing: Option<(&'static str, usize)>,
    seen: usize,
}

impl Made {
    fn new(levers: &[(&'static str, f64)], noise: f64, seed: u64) -> Self {
        let plain = [(PLAIN, 1.0), (CONTROL, 1.0)];
        Self {
            seconds: plain.iter().chain(levers).copied().collect(),
            noise,
            rng: rng(seed),
            at: 0.0,
            left_s: 1e9,
            failing: None,
            seen: 0,
        }
    }

    fn names(&self) -> Vec<String> {
        self.seconds.iter().skip(2).map(|(name, _)| (*name).to_owned()).collect()
    }
}

impl Runs for Made {
    fn run(&mut self, lever: &str) -> Result<Turn> {
        if let Some((name, at)) = self.failing
            && name == lever
        {
            self.seen += 1;
            if self.seen == at {
                return Ok(Turn::Fails("it ended with 1".to_owned()));
            }
        }
        self.at += 1.0;
        let wander = 1.0 + 0.3 * (self.at / 40.0).sin();
        let tail = if normal(&mut self.rng) > 2.0 { 1.3 } else { 1.0 };
        let seconds = self.seconds.iter().find(|(name, _)| *name == lever).expect("an arm").1;
        let cost = seconds * wander * tail * (1.0 + self.noise * normal(&mut self.rng)).max(0.1);
        self.left_s -= cost;
        Ok(if self.left_s < 0.0 { Turn::Over } else { Turn::Took(cost) })
    }

    fn has_time_for(&mut self, seconds: f64) -> bool {
        seconds <= self.left_s
    }

    fn begins(&mut self, _: &str) {}
}

/// A whole trial: the lever that was chosen, and what fresh runs say of it.
fn trial(made: &mut Made, seed: u64) -> (String, Judged) {
    let names = made.names();
    let screened = stage(&names, SCREENED, seed, made).expect("no plain run fails");
    let chosen = best(&all(&screened.series, seed)).expect("there are levers").to_owned();
    let again =
        stage(std::slice::from_ref(&chosen), fresh_blocks(names.len()), derive_seed(seed, 1), made);
    let again = again.expect("no plain run fails");
    let judged = fresh(&again.series, &chosen, names.len(), seed).expect("there are blocks");
    (chosen, judged)
}

#[test]
fn where_no_lever_does_anything_false_alarms_stay_at_the_level() {
    let levers = [("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)];
    let trials = 80;
    let alarms = (0..trials)
        .filter(|&seed| {
            let word = trial(&mut Made::new(&levers, 0.02, seed), seed).1.word;
            matches!(word, Word::Gain | Word::Loss)
        })
        .count();
    // 4 of 80 would be the level of 0.05; 10 are three standard errors more.
    assert!(alarms <= 10, "{alarms} of {trials} trials find what is not there");
}

#[test]
fn levers_screened_together_raise_no_more_alarms_than_one_alone() {
    let levers = [("a", 1.0), ("b", 1.0), ("c", 1.0), ("d", 1.0), ("e", 1.0), ("f", 1.0)];
    let trials = 80;
    let alarms = (0..trials)
        .filter(|&seed| {
            let mut made = Made::new(&levers, 0.02, 1000 + seed);
            let screened = stage(&made.names(), Blocks { least: 10, ..SCREENED }, seed, &mut made)
                .expect("no plain run fails");
            let judged = all(&screened.series, seed);
            judged.iter().any(|(_, of)| matches!(of.word, Word::Gain | Word::Loss))
        })
        .count();
    assert!(alarms <= 10, "{alarms} of {trials} families have an alarm; the level is {ALPHA}");
}

#[test]
fn a_lever_that_gains_is_found_with_what_it_gains() {
    let levers = [("none", 1.0), ("good", 0.9), ("bad", 1.2), ("little", 0.99)];
    let (trials, mut found, mut covered) = (30, 0, 0);
    for seed in 0..trials {
        let (name, judged) = trial(&mut Made::new(&levers, 0.02, 500 + seed), seed);
        if name == "good" && judged.word == Word::Gain {
            found += 1;
            let truth = 1.0 / 0.9;
            covered += u32::from((judged.ratio.lo..=judged.ratio.hi).contains(&truth));
        }
    }
    assert!(found >= 28, "{found} of {trials}");
    assert!(covered + 3 >= found, "{covered} intervals of {found} hold the truth");
}

#[test]
fn a_loss_is_no_gain_and_is_said() {
    let (name, judged) = trial(&mut Made::new(&[("bad", 1.2)], 0.02, 3), 3);
    assert_eq!((name.as_str(), judged.word), ("bad", Word::Loss));
}

#[test]
fn a_stage_ends_by_width_alone() {
    // As noisy, and opposite in what they do: as many blocks but for the noise itself.
    let blocks = |seconds| {
        let count = |seed| {
            let mut made = Made::new(&[("a", seconds)], 0.05, seed);
            let names = made.names();
            stage(&names, SCREENED, seed, &mut made)
                .expect("no plain run fails")
                .series
                .blocks
                .len()
        };
        (0..40).map(count).sum::<usize>()
    };
    let (faster, same, slower) = (blocks(0.8), blocks(1.0), blocks(1.25));
    assert_eq!((faster, slower), (same, same), "costs scale, and so do intervals");
    let mut quiet = Made::new(&[("a", 1.0)], 0.0, 1);
    let names = quiet.names();
    let found = stage(&names, SCREENED, 1, &mut quiet).expect("no plain run fails");
    assert!(found.end == End::Narrow || found.series.blocks.len() == SCREENED.most);
}

#[test]
fn time_that_is_over_ends_a_stage_with_what_there_is() {
    let mut made = Made::new(&[("a", 1.0)], 0.02, 1);
    made.left_s = 20.0;
    let names = made.names();
    let found = stage(&names, fresh_blocks(4), 1, &mut made).expect("no plain run fails");
    assert_eq!(found.end, End::Time);
    assert!((2..5).contains(&found.series.blocks.len()), "{}", found.series.blocks.len());
    let judged = fresh(&found.series, "a", 4, 1).expect("there are blocks");
    assert_eq!(judged.word, Word::TooFewRuns, "of so few blocks nothing is said");
}

#[test]
fn a_lever_that_fails_later_is_left_out_and_the_others_go_on() {
    let mut made = Made::new(&[("a", 1.0), ("b", 0.8)], 0.02, 1);
    made.failing = Some(("a", 4));
    let names = made.names();
    let found = stage(&names, SCREENED, 1, &mut made).expect("the plain program does not fail");
    assert_eq!(found.out, [("a".to_owned(), "it ended with 1".to_owned())]);
    assert_eq!(found.series.arms, [PLAIN, CONTROL, "b"]);
    assert_eq!(best(&all(&found.series, 1)), Some("b"));
    let mut made = Made::new(&[("a", 1.0)], 0.02, 1);
    made.failing = Some(("a", 1));
    let found =
        stage(&["a".to_owned()], SCREENED, 1, &mut made).expect("the plain program does not fail");
    assert!(found.out.len() == 1 && all(&found.series, 1).is_empty(), "nobody is left");
}

#[test]
fn a_plain_program_that_fails_ends_the_trial() {
    let mut made = Made::new(&[("a", 1.0)], 0.02, 1);
    made.failing = Some((CONTROL, 3));
    let names = made.names();
    let error =
        stage(&names, SCREENED, 1, &mut made).expect_err("the control is the plain program");
    assert!(error.to_string().contains("by itself"), "{error}");
}

#[test]
fn the_choice_is_by_the_median_alone() {
    let mut made = Made::new(&[("a", 1.0), ("b", 0.7)], 0.02, 1);
    let names = made.names();
    let found = stage(&names, SCREENED, 1, &mut made).expect("no plain run fails");
    assert_eq!(best(&all(&found.series, 1)), Some("b"));
    assert_eq!(best(&[]), None);
}
