//! How much is asked at once, so that the whole ends in a known time: a system whose tasks cost more gets
//! fewer of them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::system::{EmptyRun, Ranges};

/// System, place of the pattern among those that are measured, points of a step.
pub(super) type Key = (String, usize, u32);

/// Seconds that one question should take, with its first run that does not count: at least, and at most.
const QUESTION_S: (f64, f64) = (0.03, 0.3);
/// Blocks that are to fit, and the part of the time that questions have of it: the rest starts processes.
const FITTING: (f64, f64) = (3.0, 0.5);
/// Runs that count, where there is time for them; the median is taken.
const RUNS: usize = 3;
/// Steps of a graph, at least.
const LEAST_STEPS: u32 = 50;
/// Empty tasks, at least.
const LEAST_TASKS: u64 = 20_000;

/// What questions took so far.
#[derive(Debug)]
pub(super) struct Pace {
    /// Seconds that one question should take.
    question_s: f64,
    /// Seconds of all workers that a task takes beside its work.
    graphs: BTreeMap<Key, f64>,
    /// Seconds of an empty task, by system and kind.
    empties: BTreeMap<(String, Ranges), f64>,
}

impl Pace {
    /// Where a block has so many questions, in the time that there is.
    pub(super) fn new(questions: usize, time: Option<Duration>) -> Self {
        let (least, most) = QUESTION_S;
        let (blocks, part) = FITTING;
        let each = |time: Duration| part * time.as_secs_f64() / (blocks * questions.max(1) as f64);
        let question_s = time.map_or(most, |time| each(time).clamp(least, most));
        Self { question_s, graphs: BTreeMap::new(), empties: BTreeMap::new() }
    }

    /// Steps and counting runs of a graph of tasks with `work` seconds each, at most `most` steps.
    pub(super) fn graph(&self, key: &Key, most: u32, work: f64, workers: usize) -> (u32, usize) {
        let alike = || self.graphs.iter().filter(|(other, _)| other.0 == key.0);
        let worst = || alike().map(|(_, seconds)| *seconds).max_by(f64::total_cmp);
        let Some(beside) = self.graphs.get(key).copied().or_else(worst) else {
            return (most.min(LEAST_STEPS), 1);
        };
        let step = (beside.max(0.0) + work) * f64::from(key.2) / workers as f64;
        let affordable = self.question_s / step.max(1e-12);
        if f64::from(most) * (RUNS + 1) as f64 <= affordable {
            return (most, RUNS);
        }
        let half = (affordable / 2.0).clamp(f64::from(LEAST_STEPS.min(most)), f64::from(most));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let steps = half as u32;
        (steps, 1)
    }

    /// A task of this graph took so many seconds beside its work.
    pub(super) fn note_graph(&mut self, key: &Key, seconds: f64) {
        self.graphs.insert(key.clone(), seconds);
    }

    /// Tasks that say how long empty ones take.
    pub(super) fn probe_tasks(&self, most: u64) -> u64 {
        most.min(LEAST_TASKS)
    }

    /// Whether empty tasks of this kind were run before.
    pub(super) fn knows_empty(&self, key: &(String, Ranges)) -> bool {
        self.empties.contains_key(key)
    }

    /// Empty tasks and counting runs, at most `most` tasks.
    pub(super) fn empty(&self, key: &(String, Ranges), most: u64) -> (u64, usize) {
        let each = self.empties.get(key).copied().unwrap_or(0.0).max(1e-12);
        let affordable = self.question_s / each;
        if most as f64 * (RUNS + 1) as f64 <= affordable {
            return (most, RUNS);
        }
        let half = (affordable / 2.0).clamp(LEAST_TASKS.min(most) as f64, most as f64);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let tasks = half as u64;
        (tasks, 1)
    }

    /// So many empty tasks took this long.
    pub(super) fn note_empty(&mut self, key: &(String, Ranges), tasks: u64, runs: &[EmptyRun]) {
        let fastest = runs.iter().map(|run| run.seconds).min_by(f64::total_cmp);
        if let Some(seconds) = fastest {
            self.empties.insert(key.clone(), seconds / tasks as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(system: &str, width: u32) -> Key {
        (system.to_owned(), 0, width)
    }

    #[test]
    fn who_is_fast_gets_all_steps_and_who_is_slow_fewer() {
        let mut pace = Pace::new(10, None);
        assert_eq!(pace.graph(&key("a", 64), 1000, 0.0, 2), (LEAST_STEPS, 1), "nothing is known");
        pace.note_graph(&key("a", 64), 1e-6);
        assert_eq!(pace.graph(&key("a", 64), 1000, 1e-6, 2), (1000, RUNS));
        pace.note_graph(&key("a", 64), 10e-6);
        let (steps, runs) = pace.graph(&key("a", 64), 1000, 0.0, 2);
        assert_eq!(runs, 1);
        assert!((400..500).contains(&steps), "{steps}");
        assert_eq!(pace.graph(&key("a", 64), 1000, 1.0, 2), (LEAST_STEPS, 1));
        assert_eq!(pace.graph(&key("a", 64), 20, 1.0, 2), (20, 1), "no more than was asked for");
        assert_eq!(pace.graph(&key("b", 8), 1000, 0.0, 2), (LEAST_STEPS, 1), "another system");
        assert_eq!(pace.graph(&key("a", 8), 1000, 1e-6, 2).0, 1000, "the same with fewer points");
    }

    #[test]
    fn in_little_time_questions_are_short() {
        let question = |seconds| Pace::new(100, Some(Duration::from_secs(seconds))).question_s;
        assert_eq!((question(1), question(3600)), QUESTION_S);
        assert!((question(60) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn empty_tasks_are_as_many_as_fit() {
        let mut pace = Pace::new(10, None);
        let kind = ("a".to_owned(), Ranges::Three);
        assert!(!pace.knows_empty(&kind));
        let ran = |seconds| vec![EmptyRun { seconds, others: 0.5 }];
        pace.note_empty(&kind, 20_000, &ran(0.001));
        assert!(pace.knows_empty(&kind));
        assert_eq!(pace.empty(&kind, 1_000_000), (1_000_000, RUNS));
        pace.note_empty(&kind, 20_000, &ran(0.1));
        assert_eq!(pace.empty(&kind, 1_000_000).1, 1);
        assert!((29_000..31_000).contains(&pace.empty(&kind, 1_000_000).0));
        assert_eq!(pace.empty(&kind, 5000), (5000, RUNS), "few are soon done");
    }
}
