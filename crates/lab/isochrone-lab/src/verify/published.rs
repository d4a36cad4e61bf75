//! The model against published figures, point by point, with and without each added term.

use std::process::ExitCode;

use anyhow::Result;
use isochrone_cla::published::{FIGURES, Fitted, Terms, fit as fit_to};
use isochrone_report::json::{self as written, Format};
use isochrone_report::{fmt, table::Cell, table::Table};
use isochrone_stats as stats;
use isochrone_units::Reading;
use serde_json::{Value, json};

use crate::args::JsonArg;
use isochrone_console::codes;
use isochrone_console::output::Terminal;
use isochrone_console::progress::Interrupt;
use isochrone_console::written::{Place, each_written, write_to};

/// The median error over all figures that were not fitted is at most this.
const ERROR_MOST: f64 = 0.2;

/// One machine with one set of terms.
struct Case {
    machine: &'static str,
    terms: &'static str,
    fitted: Fitted,
}

/// Runs the command.
pub(super) fn run(args: &JsonArg, terminal: &Terminal) -> Result<ExitCode> {
    let [json] = Place::open_all([args.asked()])?;
    let alone = json.as_ref().is_some_and(Place::is_stdout);
    let words = "stopped: the published figures are not compared, and nothing was written";
    Interrupt::install().ends_with(words);
    let mut cases = Vec::new();
    for figures in &FIGURES {
        for (name, terms) in Terms::ablation() {
            cases.push(Case {
                machine: figures.name,
                terms: name,
                fitted: fit_to(figures, terms)?,
            });
        }
    }
    let error = median_error(&cases, Terms::ablation()[0].0);
    each_written([
        if alone { Ok(()) } else { terminal.say(&text(&cases, error, terminal.columns())) },
        write_to(json, terminal, || {
            Ok(written::pretty(Format::VerifyPublished, &to_json(&cases))?)
        }),
    ])?;
    // No error at all is one as well: NaN compares with nothing.
    let holds = error <= ERROR_MOST;
    Ok(codes::checked(!holds))
}

fn median_error(cases: &[Case], terms: &str) -> f64 {
    let of = cases.iter().filter(|c| c.terms == terms);
    let errors: Vec<f64> = of.flat_map(|c| c.fitted.errors()).collect();
    stats::median(&errors).unwrap_or(f64::NAN)
}

fn to_json(cases: &[Case]) -> Value {
    let one = |case: &Case| {
        let f = &case.fitted;
        let point = |p: &isochrone_cla::published::Point| {
            json!({ "ranks": p.ranks, "who": p.who, "published_ns": p.published_ns,
                    "predicted_ns": p.model_ns, "fitted": p.fitted, "error": p.error() })
        };
        json!({
            "machine": case.machine,
            "terms": case.terms,
            "near_ns": f.near_ns,
            "far_ns": f.far_ns,
            "first_remote_reader_ns": f.first_remote_reader_ns,
            "overlapped_ack_ns": f.ack_ns,
            "later_ns": f.later_ns,
            "points": f.points.iter().map(point).collect::<Vec<_>>(),
        })
    };
    let ablation: Vec<Value> = Terms::ablation()
        .iter()
        .map(|(name, _)| json!({ "terms": name, "median_error": median_error(cases, name) }))
        .collect();
    json!({ "reading": Reading::Predicted, "ablation": ablation,
            "cases": cases.iter().map(one).collect::<Vec<_>>() })
}

fn text(cases: &[Case], error: f64, width: u16) -> String {
    let all = Terms::ablation()[0].0;
    let mut parts = vec![
        "flat broadcast of coll/xhc, 8 bytes, by rank: published (ICPP 2023 artifact) and predicted".to_owned(),
    ];
    for case in cases.iter().filter(|c| c.terms == all) {
        let f = &case.fitted;
        parts.push(format!(
            "{}: a line within a socket {:.0} ns, between sockets {:.0}, first remote reader {:.0}, one more \
             acknowledgement {:.0}, others begin {:.0} later (fitted)",
            case.machine, f.near_ns, f.far_ns, f.first_remote_reader_ns, f.ack_ns, f.later_ns
        ));
        parts.push(points(f).to_terminal(width));
    }
    let mut ablation = Table::new(["terms", "median error of what was not fitted", "largest"]);
    for (name, _) in Terms::ablation() {
        let of = cases.iter().filter(|c| c.terms == name);
        let most = of.flat_map(|c| c.fitted.errors()).fold(0.0, f64::max);
        ablation.row([
            Cell::text(name),
            Cell::text(fmt::percent(median_error(cases, name))),
            Cell::text(fmt::percent(most)),
        ]);
    }
    parts.push(ablation.to_terminal(width));
    let verdict = if error <= ERROR_MOST { "at most the" } else { "MORE than the" };
    let (error, most) = (100.0 * error, 100.0 * ERROR_MOST);
    parts.push(format!(
        "median error with all terms {error:.1} %: {verdict} {most:.0} % that are asked for"
    ));
    parts.join("\n")
}

fn points(fitted: &Fitted) -> Table {
    let mut table =
        Table::new(["ranks", "who", "published ns", "predicted ns", "error", ""]).keyed(2);
    for p in &fitted.points {
        table.row([
            Cell::text(p.ranks.to_string()),
            Cell::text(p.who),
            Cell::number(p.published_ns, fmt::significant(p.published_ns, 4)),
            Cell::number(p.model_ns, fmt::significant(p.model_ns, 4)),
            Cell::text(fmt::percent(p.error())),
            Cell::text(if p.fitted { "fitted" } else { "" }),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use isochrone_report::table::too_wide;

    use super::*;

    #[test]
    fn tables_fit_a_terminal() {
        let (name, terms) = Terms::ablation()[0];
        let fitted = fit_to(&FIGURES[0], terms).unwrap_or_else(|error| panic!("{error:#}"));
        let cases = [Case { machine: FIGURES[0].name, terms: name, fitted }];
        for width in [60, 80, 120] {
            assert_eq!(too_wide(&text(&cases, 0.1, width), width), None);
        }
    }
}
