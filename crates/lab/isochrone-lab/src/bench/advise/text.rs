//! Tables of what was found. They decide nothing.

use isochrone_console::turns::Ratio;
use isochrone_report::fmt;
use isochrone_report::json::Format;
use isochrone_report::table::{Cell, Table};

use super::record::{AT_MOST, Figures, Prediction, Share};
use super::score::{ALPHA, FORMULA, LEAST, Mean, OfLever, Verdict};
use crate::bench::findings::Findings;

impl Findings for Figures {
    const FORMAT: Format = Format::BenchAdvise;

    fn text(&self, width: u16) -> String {
        let mut parts = vec![self.overheads(width)];
        let predictions = self.predictions();
        if !predictions.is_empty() {
            parts.push(predictions.to_terminal(width));
        }
        if !self.levers.is_empty() {
            parts.push(self.of_levers(width));
        }
        parts.join("\n\n")
    }
}

impl Figures {
    fn overheads(&self, width: u16) -> String {
        let mut table = Table::new([
            "program",
            "watched, times as long",
            "control",
            "holds",
            "processor time",
            "alone",
            "around",
        ]);
        for (name, program) in &self.programs {
            let of = program.as_ref();
            let ratio = |ratio: Option<Ratio>| {
                ratio.map_or_else(Cell::missing, |of| Cell::number(of.median, of.to_string()))
            };
            let holds = of.map(|of| holds(of.holds)).unwrap_or_default();
            table.row([
                name.clone().into(),
                ratio(of.and_then(|of| of.overhead)),
                ratio(of.and_then(|of| of.aa_control)),
                holds.into(),
                ratio(of.and_then(|of| of.processor_overhead)),
                Cell::maybe(of.and_then(|of| of.plain_s), fmt::seconds),
                Cell::maybe(of.and_then(|of| of.around_s), fmt::seconds),
            ]);
        }
        let all = match self.holds {
            Some(true) => {
                format!("a watched run takes at most {AT_MOST} times as long, for every program")
            }
            Some(false) => {
                format!(
                    "a watched run takes more than {AT_MOST} times as long, for one program at least"
                )
            }
            None => {
                format!(
                    "whether a watched run takes at most {AT_MOST} times as long for every program is not known"
                )
            }
        };
        format!(
            "{}\n{all}; \"around\" is the command's own time before and after",
            table.to_terminal(width)
        )
    }

    /// What can be judged.
    fn predictions(&self) -> Table {
        let mut table = Table::new([
            "program",
            "lever",
            "said",
            "gained",
            "noise",
            "advise",
            "nothing",
            "median gain",
        ])
        .keyed(2);
        for (name, program) in &self.programs {
            for of in program.iter().flat_map(|of| &of.predictions).filter(|of| of.gain.is_some()) {
                table.row(row(name, of));
            }
        }
        table
    }

    fn of_levers(&self, width: u16) -> String {
        let mut table = Table::new([
            "score of",
            "programs",
            "held",
            "advise",
            "nothing",
            "median gain",
            "less nothing",
            "less median",
            "",
        ]);
        for (lever, of) in &self.levers {
            table.row(lever_row(lever, of));
        }
        format!(
            "{}\n{FORMULA}; alpha {ALPHA}; intervals over programs; a verdict takes {LEAST} of them",
            table.to_terminal(width)
        )
    }
}

fn holds(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "holds",
        Some(false) => "does not",
        None => "not known",
    }
}

fn row(program: &str, of: &Prediction) -> [Cell; 8] {
    let share = |share: Option<Share>| {
        share.map_or_else(Cell::missing, |of| Cell::number(of.median, fmt::percent(of.median)))
    };
    let noise = of.control.map(|control| control.lo.abs().max(control.hi.abs()));
    [
        program.into(),
        of.lever.clone().into(),
        predicted(of),
        share(of.gain),
        Cell::maybe(noise, fmt::percent),
        Cell::maybe(of.scores.map(|of| of.advise), score),
        Cell::maybe(of.scores.map(|of| of.nothing), score),
        Cell::maybe(of.scores.map(|of| of.median_gain), score),
    ]
}

/// What was said: an upper end, or a number.
fn predicted(of: &Prediction) -> Cell {
    match (of.about, of.at_most) {
        (Some(about), _) => Cell::number(about, format!("about {}", fmt::percent(about))),
        (None, Some(most)) => Cell::number(most, format!("at most {}", fmt::percent(most))),
        (None, None) => Cell::missing(),
    }
}

fn lever_row(lever: &str, of: &OfLever) -> [Cell; 9] {
    let less = |mean: Option<Mean>| match mean {
        Some(of) => Cell::number(of.mean, format!("{:.3} [{:.3}, {:.3}]", of.mean, of.lo, of.hi)),
        None => Cell::missing(),
    };
    let verdict = match of.verdict {
        Verdict::Better => "better",
        Verdict::NoBetter => "no better",
        Verdict::TooFew => "too few programs",
    };
    let count = |many: usize| Cell::number(many as f64, many.to_string());
    [
        lever.into(),
        count(of.programs),
        count(of.held),
        Cell::maybe(of.mean.map(|of| of.advise), score),
        Cell::maybe(of.mean.map(|of| of.nothing), score),
        Cell::maybe(of.mean.map(|of| of.median_gain), score),
        less(of.less_nothing),
        less(of.less_median_gain),
        verdict.into(),
    ]
}

fn score(value: f64) -> String {
    format!("{value:.3}")
}
