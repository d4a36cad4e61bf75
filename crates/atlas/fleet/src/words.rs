//! A fleet as text for a terminal. It decides nothing.

use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};

use crate::figures::{Finding, Report};
use crate::groups::counted;

/// Nodes of a group that are named; the rest is counted.
const NAMED: usize = 8;

/// The whole of it in a sentence.
pub(crate) fn summary(report: &Report) -> String {
    let (nodes, groups) = (report.nodes.len(), report.groups.len());
    let mut deviating: Vec<&str> = report.findings.iter().map(|of| of.node.as_str()).collect();
    deviating.dedup();
    let head = format!("{} in {}", counted(nodes, "node"), counted(groups, "group"));
    match (deviating.len(), report.comparisons) {
        (0, 0) => format!("{head}: nothing could be compared"),
        (0, _) => format!("{head}: none deviates"),
        (1, _) => format!("{head}: {} deviates", deviating[0]),
        (count, _) => format!("{head}: {count} deviate"),
    }
}

/// Groups, findings and what was left out, for a terminal of so many columns.
#[must_use]
pub fn text(report: &Report, width: u16) -> String {
    let mut parts = vec![summary(report)];
    parts.push(groups(report).to_terminal(width));
    for group in report.groups.iter().filter(|group| !group.differs.is_empty()) {
        parts.push(format!("group {}: {}", group.number, group.differs.join("; ")));
    }
    if !report.findings.is_empty() {
        parts.push(findings(&report.findings).to_terminal(width));
    }
    parts.extend(remarks(report));
    parts.join("\n")
}

/// What was compared and how, what was not, and why.
pub(crate) fn remarks(report: &Report) -> Vec<String> {
    let caveat = |of: &Finding| Some(format!("{}, {}: {}", of.node, of.kind, of.caveat.as_ref()?));
    let mut lines: Vec<String> = report.findings.iter().filter_map(caveat).collect();
    lines.dedup();
    if report.comparisons > 0 {
        lines.push(format!(
            "{} comparisons; if scatter is normal, in {} fleets of 100 any of them is found by chance; less than {} % \
             is no finding",
            fmt::count(report.comparisons as u64),
            fmt::significant(100.0 * report.level, 2),
            fmt::significant(report.least_percent, 2)
        ));
    }
    if let Some(limit) = report.limits.iter().find(|limit| limit.is_recorded) {
        lines.push(format!(
            "{} are few: scatter leans on recorded maps of one machine",
            counted(limit.nodes, "node")
        ));
    }
    for left in &report.not_judged {
        let kind = left.kind.as_deref().unwrap_or("nothing measured");
        let of = if left.kind.is_some() { "not compared" } else { "is compared" };
        let nodes = if left.nodes.is_empty() { "any node".to_owned() } else { some(&left.nodes) };
        lines.push(format!("{kind} {of} of {nodes}: {}", left.why));
    }
    lines.extend(report.skipped.iter().map(|it| format!("{}: {}", it.node, it.why)));
    lines
}

/// `n1, n2 and 60 more`
pub(crate) fn some(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A row for each group.
pub(crate) fn groups(report: &Report) -> Table {
    let mut table =
        Table::new(["group", "nodes", "processor", "cores", "regions", "memory", "names"]);
    for group in &report.groups {
        let number = |value: usize| Cell::number(value as f64, value.to_string());
        table.row([
            number(group.number),
            number(group.nodes.len()),
            group.cpu.clone().into(),
            number(group.cores),
            number(group.regions),
            group.memory.clone().into(),
            some(&group.nodes).into(),
        ]);
    }
    table
}

/// A row for each finding.
pub(crate) fn findings(findings: &[Finding]) -> Table {
    let mut table = Table::new(["node", "what", "p"]);
    for finding in findings {
        table.row([
            finding.node.clone().into(),
            finding.what.clone().into(),
            Cell::maybe(finding.p, |p| fmt::significant(p, 2)),
        ]);
    }
    table
}

/// A row for each kind of numbers: what would be found.
pub(crate) fn limits(report: &Report) -> Table {
    let mut table = Table::new(["group", "what", "nodes", "scatter, %", "found from, %"]);
    for limit in &report.limits {
        let number = |value: f64| Cell::number(value, fmt::significant(value, 2));
        table.row([
            Cell::number(limit.group as f64, limit.group.to_string()),
            limit.kind.clone().into(),
            Cell::number(limit.nodes as f64, limit.nodes.to_string()),
            number(limit.scatter_percent),
            number(limit.found_from_percent),
        ]);
    }
    table
}
