//! Every row by mechanism: what it came to before and after each one, in the order in which they were added. What made
//! a row worse stands there like what made it better. It is a view over runs under changes, and runs nothing.

use isochrone_workloads::numa::Variant;
use serde::Serialize;

use super::runs::Runs;
use crate::row::{Row, short};

/// A mechanism between two arms; an arm without a change is today's default.
struct Mechanism {
    name: &'static str,
    /// The change without it.
    before: Option<Variant>,
    /// The change with it.
    after: Option<Variant>,
    /// Where it was written down before it was coded, in docs/results.
    plan: &'static str,
}

impl Mechanism {
    /// One that the default does not have.
    const fn off(change: Variant, plan: &'static str) -> Self {
        Self { name: change.name(), before: None, after: Some(change), plan }
    }

    /// One that the default has, or had until the next one.
    const fn on(
        name: &'static str,
        before: Variant,
        after: Option<Variant>,
        plan: &'static str,
    ) -> Self {
        Self { name, before: Some(before), after, plan }
    }
}

const CLOCK: &str = "papers-clock.md";
const PORT: &str = "papers-port.md";
const LINES: &str = "papers-runtime-lines.md";

/// All of them that can be switched, in the order in which they were added. Contention, the first one, took the place
/// of another rule and cannot (docs/results/papers-contention.md).
const MECHANISMS: [Mechanism; 9] = [
    Mechanism::off(Variant::Directory1300k, CLOCK),
    Mechanism::off(Variant::Turbo, CLOCK),
    Mechanism::off(Variant::ShortMessages, CLOCK),
    Mechanism::off(Variant::Queues, CLOCK),
    Mechanism::off(Variant::FarWindow30, CLOCK),
    Mechanism::on(
        "the port's declarations",
        Variant::OwnDeclarations,
        Some(Variant::PageTies),
        PORT,
    ),
    Mechanism::on("blocks on whole pages", Variant::PageTies, None, LINES),
    Mechanism::off(Variant::RuntimeNanos, LINES),
    Mechanism::off(Variant::RuntimeOurs, LINES),
];

/// Changes whose runs the whole table needs.
#[must_use]
pub fn arms() -> Vec<Variant> {
    let both = MECHANISMS.iter().flat_map(|mechanism| [mechanism.before, mechanism.after]);
    let mut arms: Vec<Variant> = both.flatten().collect();
    arms.sort();
    arms.dedup();
    arms
}

/// What one mechanism did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Did {
    pub(super) name: &'static str,
    /// Whether today's default has it.
    pub(super) default: bool,
    /// Where it was written down before it was coded.
    pub(super) plan: &'static str,
    /// The rows, those left out of which nothing was run.
    pub(super) rows: Vec<Moved>,
}

/// What it did to a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Moved {
    pub(super) id: String,
    /// Ours without it, by cells.
    before: Vec<Option<f64>>,
    /// Ours with it.
    after: Vec<Option<f64>>,
    held_before: Option<bool>,
    held_after: Option<bool>,
    /// Cells that came nearer to the paper's number.
    nearer: usize,
    /// Cells that went away from it.
    away: usize,
    #[serde(skip)]
    pub(super) words: String,
}

impl Moved {
    fn of(before: &Row, after: &Row, default: bool) -> Option<Self> {
        let ours = |row: &Row| row.cells.iter().map(|cell| cell.ours).collect::<Vec<_>>();
        let both = || before.cells.iter().zip(&after.cells).filter_map(|(b, a)| b.ours.zip(a.ours));
        both().next()?;
        let gaps = before.cells.iter().zip(&after.cells).filter_map(|(before, after)| {
            // Rows that leave out what hardly moves have other cells.
            let paper = before.paper.filter(|_| before.what == after.what)?;
            let (was, is) = ((before.ours? - paper).abs(), (after.ours? - paper).abs());
            // What is printed alike moved nothing.
            (short(was) != short(is)).then_some(is < was)
        });
        let nearer: Vec<bool> = gaps.collect();
        let near = nearer.iter().filter(|near| **near).count();
        let moved = Self {
            id: after.id.clone(),
            before: ours(before),
            after: ours(after),
            held_before: before.pass,
            held_after: after.pass,
            nearer: near,
            away: nearer.len() - near,
            words: String::new(),
        };
        Some(Self { words: moved.in_words(before, after, default), ..moved })
    }

    fn in_words(&self, before: &Row, after: &Row, default: bool) -> String {
        let listed = |row: &Row| match row.ours.chars().count() {
            ..=CHARS_LISTED => row.ours.clone(),
            _ => format!("{} cells", row.cells.len()),
        };
        if before.ours == after.ours && before.pass == after.pass {
            return "equal".to_owned();
        }
        let verdict = match (self.held_before, self.held_after) {
            (Some(true), Some(false)) => "; holds no longer",
            (Some(false), Some(true)) => "; holds now",
            _ => "",
        };
        let counts = [(self.nearer, "nearer"), (self.away, "away")];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: String = counts.map(|(count, way)| format!("; {count} {way}")).collect();
        // Beside what the default has stands the row before; beside the others, in the last column, the default.
        let was = if default { format!("{} → ", listed(before)) } else { String::new() };
        format!("{was}{}{counts}{verdict}", listed(after))
    }
}

/// Rows with more to say have their numbers in the JSON alone.
const CHARS_LISTED: usize = 80;

/// What each mechanism did whose arms were run. `rows` gives all rows under a change, those of the default under none.
pub(super) fn did(runs: &Runs, rows: impl Fn(Option<Variant>) -> Vec<Row>) -> Vec<Did> {
    let ran = |arm: Option<Variant>| {
        arm.is_none_or(|arm| {
            runs.records.keys().any(|key| key.variant.split('+').any(|name| name == arm.name()))
        })
    };
    let of = |mechanism: &Mechanism| {
        let (before, after) = (rows(mechanism.before), rows(mechanism.after));
        let default = mechanism.before.is_some();
        let pairs = before.iter().zip(&after);
        let rows = pairs.filter_map(|(before, after)| Moved::of(before, after, default));
        Did { name: mechanism.name, default, plan: mechanism.plan, rows: rows.collect() }
    };
    let all = MECHANISMS.iter().filter(|m| ran(m.before) && ran(m.after));
    all.map(of).collect()
}
