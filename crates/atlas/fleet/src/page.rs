//! A fleet as one page.

use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::table::{Cell, Table};

use crate::figures::Report;
use crate::words;

/// The page of a fleet; `json` is embedded for programs.
#[must_use]
pub fn page(report: &Report, json: Option<String>) -> Page {
    let table = |caption: &str, table: Table| Figure {
        caption: caption.to_owned(),
        table: Some(table),
        open: true,
        ..Figure::default()
    };
    let section = |id: &str, heading: &str, figures: Vec<Figure>| Section {
        id: id.to_owned(),
        heading: heading.to_owned(),
        figures,
        ..Section::default()
    };
    let found = match report.findings.is_empty() {
        true => Vec::new(),
        false => vec![table(
            "Each node that deviates, with its number, that of its equals (their median), and how surprising it is, \
             corrected for the number of comparisons.",
            words::findings(&report.findings),
        )],
    };
    let limits = table(
        "How far equal nodes scatter, and from which deviation on one is found in one of two cases; each at most over \
         all nodes, cores and regions.",
        words::limits(report),
    );
    Page {
        title: "A fleet of nodes".to_owned(),
        subtitle: words::summary(report),
        badges: report.reading.map(Badge::from).into_iter().collect(),
        summary: words::remarks(report),
        sections: vec![
            section("findings", "Which node deviates in what", found),
            section(
                "groups",
                "Groups of equal nodes",
                vec![table("Nodes whose systems say the same of them.", words::groups(report))],
            ),
            section("limits", "What would be found", vec![limits]),
            section(
                "nodes",
                "All nodes",
                vec![table("Every node whose atlas was read.", nodes(report))],
            ),
        ],
        json,
        footer: format!("isochrone {}", env!("CARGO_PKG_VERSION")),
        ..Page::default()
    }
}

fn nodes(report: &Report) -> Table {
    let mut table = Table::new(["node", "group", "cores", "regions", "grade", "map"]);
    for node in &report.nodes {
        let number = |value: usize| Cell::number(value as f64, value.to_string());
        let grade = node.grade.map_or_else(Cell::missing, |grade| grade.as_str().into());
        let map = if node.complete { "whole" } else { "interrupted" };
        table.row([
            node.name.clone().into(),
            number(node.group),
            number(node.cores),
            number(node.regions),
            grade,
            map.into(),
        ]);
    }
    table
}
