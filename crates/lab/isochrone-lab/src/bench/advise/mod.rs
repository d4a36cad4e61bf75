//! `isochrone bench advise`: what it costs a program to be watched by `isochrone advise -- CMD`, and what the bounds
//! that are said of it are worth.
//!
//! Programs that most machines have run by themselves, watched, and by themselves again, by turns. Then the levers of
//! which the watched run gives a bound are measured by `advise --try`, and the bounds are judged by an interval score
//! beside two predictors that look at nothing.

mod field;
mod inputs;
mod programs;
mod record;
mod score;
mod text;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Result, bail};
use isochrone_console::output::WrongUsage;
use isochrone_console::turns::{Ratio, Series};
use isochrone_stats::median;

use super::Setting;
use crate::args::AdviseArgs;
use field::{Bound, Field, Took, Tried, TriedRatio};
pub(in crate::bench) use record::Figures;
use record::{OfProgram, Prediction, Share};

/// Blocks unless told otherwise.
const BLOCKS: u32 = 15;
/// The part of the time after which no other block of watched runs is begun: levers have the rest.
const WATCHED: f64 = 0.5;
/// The time for the levers of one program, where there is no limit.
const TRIAL: Duration = Duration::from_secs(300);
/// The arms.
const PLAIN: &str = "plain";
const SEEN: &str = "watched";
const AGAIN: &str = "plain again";
/// Levers of a watched run, and their names for `advise --try`.
const LEVERS: [(&str, &str); 4] = [
    ("near lines", "near-lines"),
    ("core order", "core-order"),
    ("huge pages", "huge-pages"),
    ("collectives", "collectives"),
];

pub(super) fn measure(args: &AdviseArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let wanted = programs::chosen(&args.only)?;
    let field = Field::new(setting)?;
    let mut programs = BTreeMap::new();
    let mut under_way = Vec::new();
    for program in wanted {
        programs.insert(program.name.to_owned(), None);
        setting.step(&format!("{}: its input", program.name));
        match program.words(&field.workshop()) {
            Ok(words) => under_way.push(UnderWay::new(program.name, words, setting)),
            Err(why) if setting.keep_going() => setting.miss(&format!("{}: {why:#}", program.name)),
            Err(_) => bail!("inputs were not made"),
        }
    }
    if under_way.is_empty() {
        return Err(WrongUsage::error(
            "none of the programs is installed that watched runs are judged with".to_owned(),
        ));
    }
    watch(&mut under_way, args.common.blocks.unwrap_or(BLOCKS), &field, setting);
    try_levers(&mut under_way, &field, setting);
    let seed = setting.seed();
    for program in under_way {
        programs.insert(program.name.to_owned(), program.figures(seed));
    }
    Ok(Figures::of(programs, seed))
}

/// Blocks of all programs by turns.
fn watch(programs: &mut [UnderWay], blocks: u32, field: &Field, setting: &mut Setting<'_>) {
    let until = setting.stop().part(WATCHED);
    'rounds: for _ in 0..blocks {
        for program in programs.iter_mut().filter(|program| !program.failed) {
            if until.is_set() {
                break 'rounds;
            }
            if let Err(why) = program.block(field, setting)
                && setting.keep_going()
            {
                setting.miss(&format!("{}: {why:#}", program.name));
                program.failed = true;
            }
        }
    }
    for program in programs.iter().filter(|program| !program.failed) {
        setting.made(program.name, program.series.blocks.len(), blocks);
    }
}

/// A trial of each program of which something is predicted by a lever that can be tried.
fn try_levers(programs: &mut [UnderWay], field: &Field, setting: &mut Setting<'_>) {
    let mut wanted: Vec<&mut UnderWay> =
        programs.iter_mut().filter(|program| !program.levers().is_empty()).collect();
    let many = wanted.len();
    for (at, program) in wanted.iter_mut().enumerate() {
        let what = format!("levers of {}", program.name);
        if !setting.keep_going() {
            setting.did(&what, 0, 1, "trials");
            continue;
        }
        setting.share_with(many - at);
        setting.step(&what);
        let (time, seed) = (setting.share().unwrap_or(TRIAL), setting.seed());
        let tried = field.tried(&program.levers(), time, seed, &program.words);
        setting.did(&what, tried.is_ok().into(), 1, "trials");
        program.tried = Some(tried.map_err(|why| format!("{why:#}")));
    }
}

/// One program under way.
struct UnderWay {
    name: &'static str,
    words: Vec<OsString>,
    seed: u64,
    series: Series,
    /// Processor time of every run, by arm, in the order of time, in microseconds.
    processor_us: Vec<(usize, Option<u64>)>,
    /// Of every watched run.
    around_s: Vec<f64>,
    /// What the first watched run said.
    bounds: Vec<Bound>,
    /// What a trial found, or why it found nothing.
    tried: Option<Result<Vec<Tried>, String>>,
    failed: bool,
}

impl UnderWay {
    fn new(name: &'static str, words: Vec<OsString>, setting: &mut Setting<'_>) -> Self {
        Self {
            name,
            words,
            seed: setting.seed(),
            series: Series::new(&[PLAIN, SEEN, AGAIN].map(str::to_owned), "seconds"),
            processor_us: Vec::new(),
            around_s: Vec::new(),
            bounds: Vec::new(),
            tried: None,
            failed: false,
        }
    }

    fn block(&mut self, field: &Field, setting: &mut Setting<'_>) -> Result<()> {
        let Self { name, words, seed, series, processor_us, around_s, bounds, .. } = self;
        let seen = series.arm(SEEN);
        let made = setting.block(series, *seed, name, &mut |arm| {
            let took = if Some(arm) == seen {
                let watched = field.watched(words)?;
                around_s.push(watched.around_s);
                if bounds.is_empty() {
                    *bounds = watched.bounds;
                }
                watched.took
            } else {
                field.plain(words)?
            };
            processor_us.push((arm, microseconds(took)));
            Ok(took.seconds)
        });
        // What a block leaves that counts for nothing.
        let counted: usize = series.blocks.iter().map(|block| block.runs.len()).sum();
        processor_us.truncate(counted);
        made.map(|_| ())
    }

    /// The levers that are to be tried, by their names there.
    fn levers(&self) -> Vec<&'static str> {
        let is_predicted = |lever: &str| {
            self.bounds.iter().any(|of| {
                of.lever == lever && matches!(of.says.as_str(), "at_most" | "about" | "nothing")
            })
        };
        let of = LEVERS.iter().filter(|(lever, _)| !self.failed && is_predicted(lever));
        of.map(|(_, name)| *name).collect()
    }

    fn figures(self, seed: u64) -> Option<OfProgram> {
        if self.failed || self.series.blocks.is_empty() {
            return None;
        }
        let series = &self.series;
        let plain = series.arm(PLAIN).map(|arm| series.block_means(arm));
        // What takes longer has the larger ratio here.
        let longer = |series: &Series, arm: &str| Ratio::of(series, PLAIN, arm, seed);
        let processor = series.with_costs(&self.processor_us, "microseconds of processors");
        let overhead = longer(series, SEEN);
        Some(OfProgram {
            plain_s: plain.and_then(|times| median(&times)),
            overhead,
            aa_control: longer(series, AGAIN),
            processor_overhead: processor.as_ref().and_then(|series| longer(series, SEEN)),
            processor_aa_control: processor.as_ref().and_then(|series| longer(series, AGAIN)),
            holds: OfProgram::verdict(overhead),
            around_s: median(&self.around_s),
            predictions: self.predictions(),
            series: self.series,
        })
    }

    fn predictions(&self) -> Vec<Prediction> {
        self.bounds.iter().map(|bound| self.prediction(bound)).collect()
    }

    fn prediction(&self, bound: &Bound) -> Prediction {
        let (at_most, about) = match bound.says.as_str() {
            "nothing" => (Some(0.0), None),
            "at_most" => (bound.at_most, None),
            "about" => (None, bound.about),
            _ => (None, None),
        };
        let tried_as =
            LEVERS.iter().find(|(lever, _)| *lever == bound.lever).map(|(_, name)| *name);
        let mut prediction = Prediction {
            lever: bound.lever.clone(),
            says: bound.says.clone(),
            at_most,
            about,
            tried_as,
            gain: None,
            control: None,
            scores: None,
            why: None,
        };
        match (prediction.predicted(), tried_as) {
            (None, _) => prediction.why = Some(format!("nothing predicted: {}", bound.why)),
            (_, None) => prediction.why = Some("advise --try does not try it".to_owned()),
            (Some(_), Some(name)) => match self.gained(name) {
                Ok((gain, control)) => {
                    (prediction.gain, prediction.control) = (Some(gain), Some(control))
                }
                Err(why) => prediction.why = Some(why),
            },
        }
        prediction
    }

    /// What a lever took off, and by how much the program differed from itself; or why that is not known.
    fn gained(&self, name: &str) -> Result<(Share, Share), String> {
        let all = match &self.tried {
            None => return Err("there was no time to try it".to_owned()),
            Some(Err(why)) => return Err(why.clone()),
            Some(Ok(all)) => all,
        };
        let Some(tried) = all.iter().find(|of| of.name == name) else {
            return Err("the trial does not know it".to_owned());
        };
        if let Some(why) = &tried.why {
            return Err(why.clone());
        }
        let of = |ratio: Option<TriedRatio>| ratio.and_then(TriedRatio::share);
        of(tried.ratio)
            .zip(of(tried.control))
            .ok_or_else(|| "too few blocks in its time; more with --budget TIME".to_owned())
    }
}

/// Whole microseconds of processors.
fn microseconds(took: Took) -> Option<u64> {
    u64::try_from(Duration::try_from_secs_f64(took.processor_s).ok()?.as_micros()).ok()
}

impl TriedRatio {
    /// What is taken off a run's time, of how many times as fast it is; nothing where there is no interval.
    fn share(self) -> Option<Share> {
        let off = |ratio: f64| 1.0 - 1.0 / ratio;
        let has_interval = self.blocks >= isochrone_console::turns::BLOCKS_LEAST && self.lo > 0.0;
        has_interval.then(|| Share { median: off(self.median), lo: off(self.lo), hi: off(self.hi) })
    }
}

#[cfg(test)]
mod tests {
    use isochrone_console::turns::BLOCKS_LEAST;

    use super::super::fixtures::{fits, series};
    use super::score::Verdict;
    use super::*;

    fn bound(lever: &str, says: &str, at_most: Option<f64>) -> Bound {
        let why = "as it is said".to_owned();
        Bound { lever: lever.to_owned(), says: says.to_owned(), at_most, about: None, why }
    }

    fn tried(name: &str, median: f64, blocks: usize) -> Tried {
        let ratio =
            |median: f64| TriedRatio { median, lo: median - 0.01, hi: median + 0.01, blocks };
        Tried {
            name: name.to_owned(),
            ratio: Some(ratio(median)),
            control: Some(ratio(1.0)),
            why: None,
        }
    }

    fn program(name: &'static str, at_most: f64, ratio: f64) -> UnderWay {
        let series = series(&[PLAIN, SEEN, AGAIN], 6);
        let runs = series.blocks.iter().flat_map(|block| &block.runs);
        // Watched it takes a hundredth more of a processor.
        let cost = |arm: usize| if series.arms[arm] == SEEN { 1010 } else { 1000 };
        UnderWay {
            name,
            words: Vec::new(),
            seed: 1,
            processor_us: runs.map(|run| (run.arm, Some(cost(run.arm)))).collect(),
            series,
            around_s: vec![0.02, 0.04, 0.03],
            bounds: vec![
                bound("near lines", "at_most", Some(0.3)),
                bound("regions", "unknown", None),
                bound("tier or zram", "nothing", None),
                bound("huge pages", "unknown", None),
                bound("core order", "at_most", Some(at_most)),
            ],
            tried: Some(Ok(vec![
                Tried {
                    why: Some("no atlas".to_owned()),
                    ratio: None,
                    ..tried("near-lines", 1.0, 6)
                },
                tried("core-order", ratio, 6),
            ])),
            failed: false,
        }
    }

    fn of<'a>(program: &'a OfProgram, lever: &str) -> &'a Prediction {
        program.predictions.iter().find(|of| of.lever == lever).unwrap()
    }

    #[test]
    fn a_lever_is_tried_where_something_is_predicted_of_it_and_others_say_why_not() {
        let program = program("sort", 0.05, 1.25);
        assert_eq!(program.levers(), ["near-lines", "core-order"]);
        let figures = program.figures(1).unwrap();
        assert_eq!((figures.around_s, figures.plain_s), (Some(0.03), Some(1234.5)));
        assert_eq!(figures.overhead.map(|ratio| (ratio.median * 1e3).round()), Some(1100.0));
        assert_eq!(figures.processor_overhead.map(|ratio| ratio.median), Some(1.01));
        assert_eq!(figures.processor_aa_control.map(|ratio| ratio.median), Some(1.0));
        for (lever, why) in [
            ("near lines", "no atlas"),
            ("regions", "nothing predicted"),
            ("tier or zram", "does not try"),
            ("huge pages", "nothing predicted: as it is said"),
        ] {
            let found = of(&figures, lever);
            assert!(found.why.as_ref().is_some_and(|words| words.contains(why)), "{found:?}");
            assert!(found.gain.is_none() && found.scores.is_none(), "{found:?}");
        }
        let order = of(&figures, "core order");
        assert!(order.gain.is_some_and(|gain| (gain.median - 0.2).abs() < 1e-9), "{order:?}");
        assert_eq!((order.at_most, &order.why), (Some(0.05), &None));
    }

    #[test]
    fn a_number_of_collectives_is_tried_and_judged_as_a_number() {
        let mut program = program("mpi-barrier", 0.05, 1.25);
        let about = Bound { about: Some(0.1), ..bound("collectives", "about", None) };
        program.bounds.push(about);
        program.tried = Some(Ok(vec![tried("collectives", 1.25, 6)]));
        assert!(program.levers().contains(&"collectives"));
        let figures = program.figures(1).unwrap();
        let found = of(&figures, "collectives");
        assert_eq!((found.at_most, found.about, &found.why), (None, Some(0.1), &None));
        assert_eq!(found.predicted(), Some((0.1, 0.1)));
        assert!(found.gain.is_some_and(|gain| (gain.median - 0.2).abs() < 1e-9), "{found:?}");
    }

    #[test]
    fn too_few_blocks_are_no_measurement() {
        let mut program = program("sort", 0.05, 1.25);
        program.tried = Some(Ok(vec![tried("huge-pages", 1.25, BLOCKS_LEAST - 1)]));
        assert!(program.gained("huge-pages").unwrap_err().contains("too few blocks"));
        assert!(program.gained("near-lines").is_err());
        program.tried = None;
        assert!(program.gained("huge-pages").unwrap_err().contains("no time"));
    }

    #[test]
    fn the_claim_holds_by_the_upper_end_and_fails_by_the_lower_one() {
        let of = |seen: f64, blocks| {
            let mut series = Series::new(&["a".to_owned(), "b".to_owned()], "s");
            for number in 0..blocks {
                let noise = 1.0 + 0.001 * f64::from(number);
                let mut cost = |arm: usize| Ok(Some(if arm == 0 { 1.0 } else { seen * noise }));
                assert!(series.add(1, &mut |_| true, &mut cost).unwrap());
            }
            OfProgram::verdict(Ratio::of(&series, "a", "b", 1))
        };
        assert_eq!((of(1.0, 6), of(1.028, 6), of(1.1, 6)), (Some(true), None, Some(false)));
        assert_eq!((of(1.0, 3), OfProgram::verdict(None)), (None, None));
    }

    #[test]
    fn all_programs_together_are_judged_by_lever_and_fit_a_terminal() {
        let all = ["a", "b", "c", "d", "e"]
            .map(|name| (name.to_owned(), program(name, 0.22, 1.25).figures(1)));
        let figures = Figures::of(all.into_iter().chain([("f".to_owned(), None)]).collect(), 1);
        let order = &figures.levers["core order"];
        // All gain a fifth: the median of the others says it better than any bound.
        assert_eq!((order.programs, order.held, order.verdict), (5, 5, Verdict::NoBetter));
        assert!(order.less_nothing.unwrap().hi < 0.0 && order.less_median_gain.unwrap().lo > 0.0);
        assert_eq!(figures.holds, Some(false), "watched runs take a tenth longer");
        assert!(
            figures.programs["a"]
                .as_ref()
                .unwrap()
                .predictions
                .iter()
                .any(|of| of.scores.is_some())
        );
        fits(&figures);
        let alone = Figures::of([("a".to_owned(), program("a", 0.2, 1.25).figures(1))].into(), 1);
        let why = of(alone.programs["a"].as_ref().unwrap(), "core order").why.clone();
        assert!(why.is_some_and(|why| why.contains("no other program")), "{alone:?}");
    }
}
