//! What `predict` prints, for people and for programs.

use isochrone_cla::collectives::Options;
use isochrone_report::{fmt, table::Cell, table::Table as Printed};
use isochrone_units::Reading;
use serde_json::{Value, json};

use super::row::Row;
use super::terms::{self, Terms};
use crate::args::{PredictArgs, StartName};
use isochrone_console::line_costs::Table;

/// The JSON of the command. Fields are added, never renamed.
pub(super) fn json(args: &PredictArgs, table: &Table, asked: &Terms, rows: &[Row<'_>]) -> Value {
    let row = |row: &Row<'_>| {
        let choice = &row.choice;
        json!({
            "threads": row.threads,
            "tree": tree(&choice.chosen.options),
            "tree_name": choice.chosen.name,
            "groups": choice.chosen.options.groups,
            "t_min_ns": row.band.min_ns,
            "t_max_ns": row.band.max_ns,
            "printed_t_min_ns": row.printed.min_ns,
            "printed_t_max_ns": row.printed.max_ns,
            "objective_ns": choice.chosen.ns,
            "bound_ns": choice.bound_ns,
            "searched": choice.how,
            "runner_up": choice.runner_up.as_ref().zip(row.second).map(|(second, band)| json!({
                "tree": tree(&second.options),
                "tree_name": second.name,
                "objective_ns": second.ns,
                "t_min_ns": band.min_ns,
                "t_max_ns": band.max_ns,
            })),
            "terms": row.terms.iter().map(|with| json!({
                "terms": with.terms,
                "t_min_ns": with.band.min_ns,
                "t_max_ns": with.band.max_ns,
            })).collect::<Vec<_>>(),
            "flat_t_min_ns": row.flat.min_ns,
            "flat_t_max_ns": row.flat.max_ns,
            "flat_objective_ns": choice.flat.ns,
            "done": row.done.json(),
            "simulated_median_ns": row.simulated.as_ref().map(|s| s.median_ns),
            "simulated_min_ns": row.simulated.as_ref().map(|s| s.least_ns),
            "simulated_max_ns": row.simulated.as_ref().map(|s| s.most_ns),
            "simulated_done": row.simulated.as_ref().map(|s| s.done.json()),
            "inside_band": row.simulated.as_ref().map(|s| row.band.holds(s.median_ns)),
            "as_paper": row.paper.as_ref().map(|paper| json!({
                "tree": tree(&paper.tree),
                "t_min_ns": paper.chosen_ns,
                "flat_t_min_ns": paper.flat_ns,
            })),
        })
    };
    json!({
        "reading": Reading::Predicted,
        "machine": table.machine,
        "collective": rows.first().map(|r| r.question.collective.name()),
        "bytes": args.bytes,
        "start": if args.start == StartName::Hot { "hot" } else { "memory" },
        "objective": format!("{:?}", args.objective).to_lowercase(),
        "assumed": table.assumed,
        "classes": table.classes,
        "terms_on": asked.known.iter().map(|term| json!({
            "term": terms::name(term.name),
            "ns": term.ns,
        })).collect::<Vec<_>>(),
        "terms_notes": asked.notes,
        "threads": rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// The tree in words: each rank with its children in brackets.
pub(crate) fn tree(options: &Options) -> String {
    options.shape.to_string()
}

/// What the terminal shows.
pub(super) fn text(
    args: &PredictArgs,
    table: &Table,
    asked: &Terms,
    rows: &[Row<'_>],
    width: u16,
) -> String {
    let mut lines = vec![
        format!("{}, {}; predicted, nothing is measured", name(rows), table.machine),
        bands(args, rows).to_terminal(width),
        "trees, each rank with its children in brackets:".to_owned(),
    ];
    let room = usize::from(width).saturating_sub(6).max(40);
    lines.extend(rows.iter().map(|row| {
        let chosen = &row.choice.chosen;
        let words = format!("{}: {}", chosen.name, tree(&chosen.options));
        format!("{:>4}  {}", row.threads, shortened(&words, room))
    }));
    if !args.terms.is_empty() {
        lines.push("the chosen ones with the paper's terms alone, and with more; printed: the paper's rules".into());
        lines.push(side_by_side(rows).to_terminal(width));
    }
    if let Some(last) = rows.last() {
        lines.extend(searched(last, room));
        lines.extend(against_flat(rows));
        if args.each {
            lines.extend(last.done.words("done at T_min", room));
            let simulated = last.simulated.as_ref();
            lines.extend(simulated.into_iter().flat_map(|s| s.done.words("done, simulated", room)));
        }
    }
    lines.extend(asked.notes.iter().cloned());
    lines.extend(table.assumed.iter().map(|what| format!("assumed: {what}")));
    lines.join("\n")
}

fn bands(args: &PredictArgs, rows: &[Row<'_>]) -> Printed {
    let mut headers = vec![
        "threads",
        "T_min ns",
        "T_max ns",
        "printed rules",
        "flat ns",
        "flat / chosen",
        "second",
    ];
    if args.simulate {
        headers.splice(3..3, [Reading::Simulated.as_str(), "inside"]);
    }
    let mut printed = Printed::new(headers);
    let number = |ns: f64| Cell::number(ns, fmt::significant(ns, 4));
    for row in rows {
        let choice = &row.choice;
        let mut cells =
            vec![row.threads.to_string().into(), number(row.band.min_ns), number(row.band.max_ns)];
        if let Some(s) = &row.simulated {
            cells.push(number(s.median_ns));
            cells.push(if row.band.holds(s.median_ns) { "yes" } else { "NO" }.into());
        }
        cells.extend([
            Cell::number(
                row.printed.min_ns,
                format!("{:.0} to {:.0}", row.printed.min_ns, row.printed.max_ns),
            ),
            number(row.flat.min_ns),
            Cell::text(format!("{:.2}", choice.flat.ns / choice.chosen.ns)),
            row.second.map_or_else(Cell::missing, |band| number(band.min_ns)),
        ]);
        printed.row(cells);
    }
    printed
}

/// Both models side by side: the printed rules, and ours with terms switched on one by one.
fn side_by_side(rows: &[Row<'_>]) -> Printed {
    let mut printed = Printed::new(["threads", "terms", "T_min ns", "T_max ns"]).keyed(2);
    let number = |ns: f64| Cell::number(ns, fmt::significant(ns, 4));
    for row in rows {
        let bands = row.terms.iter().map(|with| (with.terms.as_str(), with.band));
        for (words, band) in std::iter::once(("printed", row.printed)).chain(bands) {
            let threads = Cell::text(row.threads.to_string());
            printed.row([threads, words.into(), number(band.min_ns), number(band.max_ns)]);
        }
    }
    printed
}

/// How the row was searched, and what came second.
fn searched(row: &Row<'_>, room: usize) -> Vec<String> {
    let choice = &row.choice;
    let mut lines = vec![format!("searched: {}", choice.how)];
    let bound = choice.bound_ns.filter(|_| choice.chosen.ns > 0.0);
    lines.extend(bound.map(|bound| {
        let gap = 100.0 * (choice.chosen.ns / bound - 1.0);
        let threads = row.threads;
        format!("{threads} threads: no tree takes less than {bound:.1} ns by its levels (gap {gap:.1} %)")
    }));
    lines.extend(choice.runner_up.as_ref().map(|second| {
        let words = format!("second: {}: {}", second.name, tree(&second.options));
        format!("{} threads, {}", row.threads, shortened(&words, room))
    }));
    lines
}

/// The paper's comparison: a flat tree, HMPI's, against the chosen one.
fn against_flat(rows: &[Row<'_>]) -> Vec<String> {
    let most = |ratios: &mut dyn Iterator<Item = f64>| ratios.fold(0.0, f64::max);
    let ours = most(&mut rows.iter().map(|r| r.choice.flat.ns / r.choice.chosen.ns));
    let mut lines =
        vec![format!("flat (HMPI's tree) against the chosen one: {ours:.2} times at most")];
    if rows.iter().any(|r| r.paper.is_some()) {
        let paper = rows.iter().filter_map(|r| r.paper.as_ref());
        let paper = most(&mut paper.map(|p| p.flat_ns / p.chosen_ns));
        lines.push(format!(
            "the same acknowledged within the call, from memory, as in the paper's Figure 1: {paper:.2} times \
             at most; the paper measured 1.8"
        ));
    }
    lines
}

fn name(rows: &[Row<'_>]) -> &'static str {
    rows.first().map_or("nothing", |row| row.question.collective.name())
}

/// Words that fit.
fn shortened(words: &str, room: usize) -> String {
    if words.chars().count() <= room {
        return words.to_owned();
    }
    let kept: String = words.chars().take(room.saturating_sub(3)).collect();
    format!("{kept}...")
}
