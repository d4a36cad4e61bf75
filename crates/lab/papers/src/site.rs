//! All papers as one site: a first page with every row of every paper, and a page for each of them.

use isochrone_report::html::{Figure, Link, Page, Section};
use isochrone_report::lines::wrapped;
use isochrone_report::table::{Cell, Table};
use isochrone_units::Reading;

use crate::Shown;
use crate::exhibit::{Count, Exhibit, Numbers, Tests};
use crate::row::short;

/// A paper of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chapter {
    /// Its name, as `reproduce` takes it.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// How many of its rows are out of sample, whether or not they were run: the denominator, which was counted first
    /// (docs/results/papers-denominator.md).
    pub out_of_sample: usize,
}

/// All papers, the quickest first.
pub const CHAPTERS: [Chapter; 5] = [
    Chapter { name: "cla", title: "Cache-line-aware optimisation", out_of_sample: 2 },
    Chapter { name: "latency-checker", title: "The Latency Checker poster", out_of_sample: 14 },
    Chapter { name: "pspt", title: "Partially separated page tables", out_of_sample: 19 },
    Chapter { name: "hidden-numa", title: "Hidden non-uniformity", out_of_sample: 10 },
    Chapter { name: "numa-aware-runtime", title: "A NUMA-aware runtime", out_of_sample: 16 },
];

/// The file of the first page.
pub const FIRST: &str = "index.html";

/// The file of a paper's page.
#[must_use]
pub fn file_name(paper: &str) -> String {
    format!("{paper}.html")
}

/// The page of a paper, with the way to the others.
pub fn page_of(paper: &dyn Shown) -> String {
    let mut page = paper.page();
    page.links = links(&CHAPTERS.map(|chapter| chapter.name));
    page.render()
}

fn links(papers: &[&str]) -> Vec<Link> {
    let first = Link { words: "All papers".to_owned(), file: FIRST.to_owned() };
    let others =
        papers.iter().map(|name| Link { words: (*name).to_owned(), file: file_name(name) });
    std::iter::once(first).chain(others).collect()
}

/// What there is of the site.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// Rows of all papers that are there.
    pub exhibits: Vec<Exhibit>,
    /// What was run, in words: `"a quick run"`.
    pub depth: String,
    /// What is not as it should be: papers that were not run, or in part.
    pub lacks: Vec<String>,
}

impl Site {
    fn of(&self, paper: &str) -> impl Iterator<Item = &Exhibit> {
        self.exhibits.iter().filter(move |exhibit| exhibit.paper == paper)
    }

    /// The headline: out-of-sample rows alone, of all that there are.
    #[must_use]
    pub fn headline(&self) -> String {
        let all: usize = CHAPTERS.iter().map(|chapter| chapter.out_of_sample).sum();
        let count = Count::of(&self.exhibits, Tests::OutOfSample);
        let open = all.saturating_sub(count.held + count.missed);
        let open = match open {
            0 => String::new(),
            1 => "; 1 has no verdict, and counts as not held".to_owned(),
            open => format!("; {open} have no verdict, and count as not held"),
        };
        format!("{} of {all} out-of-sample rows hold{open}.", count.held)
    }

    /// How many rows of each paper and class hold.
    #[must_use]
    pub fn counts(&self) -> Table {
        let classes = Tests::ALL.map(Tests::as_str);
        let mut table = Table::new(std::iter::once("paper").chain(classes));
        for chapter in CHAPTERS {
            let cells = Tests::ALL.map(|tests| {
                let count = Count::of(self.of(chapter.name), tests);
                let judged = match tests {
                    Tests::OutOfSample => chapter.out_of_sample,
                    _ => count.held + count.missed,
                };
                let open = match tests {
                    Tests::OutOfSample => judged.saturating_sub(count.held + count.missed),
                    _ => count.open,
                };
                Cell::text(match (judged, open) {
                    (0, 0) => "–".to_owned(),
                    (0, open) => format!("{open} without verdict"),
                    (judged, 0) => format!("{} of {judged}", count.held),
                    (judged, open) => format!("{} of {judged}, {open} open", count.held),
                })
            });
            table.row(std::iter::once(chapter.name.into()).chain(cells));
        }
        table
    }

    /// The first page. `json` is all of it for programs.
    #[must_use]
    pub fn first_page(&self, json: Option<String>) -> Page {
        let there: Vec<&str> =
            CHAPTERS.iter().map(|c| c.name).filter(|n| self.of(n).next().is_some()).collect();
        let rules = "What a row tests was written down before any verdict was changed: rows out of sample alone are \
                     counted, an input or an invariant proves nothing, and a row in sample was looked at when a \
                     constant or a mechanism was chosen.";
        let counts = Figure {
            table: Some(self.counts()),
            open: true,
            caption: COUNTS.to_owned(),
            ..Figure::default()
        };
        let mut sections = vec![Section {
            id: "counts".to_owned(),
            heading: "What holds".to_owned(),
            prose: vec![rules.to_owned()],
            figures: vec![counts],
            ..Section::default()
        }];
        sections.extend(CHAPTERS.iter().map(|chapter| self.section(chapter)));
        Page {
            title: "Five papers, beside their reproduction".to_owned(),
            subtitle: format!(
                "Every comparison of {}: what a row tests, how narrow it is, and whether it holds.",
                self.depth
            ),
            links: links(&there),
            summary: std::iter::once(self.headline()).chain(self.lacks.iter().cloned()).collect(),
            sections,
            json,
            footer: format!("isochrone {}", env!("CARGO_PKG_VERSION")),
            ..Page::default()
        }
    }

    fn section(&self, chapter: &Chapter) -> Section {
        let rows: Vec<&Exhibit> = self.of(chapter.name).collect();
        let count = Count::of(rows.iter().copied(), Tests::OutOfSample);
        let words = match rows.is_empty() {
            true => "Not run.".to_owned(),
            false => format!(
                "{} of {} out-of-sample rows hold. Pictures and tables: the page {}.",
                count.held,
                chapter.out_of_sample,
                file_name(chapter.name)
            ),
        };
        let figures = Tests::ALL.into_iter().filter_map(|tests| {
            let table = table(rows.iter().copied().filter(|exhibit| exhibit.tests == tests));
            let caption = format!("Rows that test: {}.", tests.as_str());
            let open = tests == Tests::OutOfSample;
            (!table.is_empty()).then(|| Figure {
                table: Some(table),
                caption,
                open,
                ..Figure::default()
            })
        });
        Section {
            id: chapter.name.to_owned(),
            heading: format!("{}: {}", chapter.name, chapter.title),
            prose: vec![words],
            figures: figures.collect(),
            ..Section::default()
        }
    }

    /// The site as text of at most `width` characters.
    #[must_use]
    pub fn text(&self, width: u16) -> String {
        let missed = |e: &&Exhibit| e.tests == Tests::OutOfSample && e.holds == Some(false);
        let misses: Vec<String> =
            self.exhibits.iter().filter(missed).map(|e| format!("{} {}", e.paper, e.id)).collect();
        let mut parts = vec![self.counts().to_terminal(width), self.headline()];
        if !misses.is_empty() {
            parts.push(format!("Out of sample and missed: {}.", misses.join(", ")));
        }
        parts.extend(self.lacks.iter().cloned());
        let tables = parts.remove(0);
        let prose = parts.iter().map(|part| wrapped(part, width.into(), 0));
        std::iter::once(tables).chain(prose).collect::<Vec<_>>().join("\n\n") + "\n"
    }
}

const COUNTS: &str = "Rows that hold, of all of their class. Only the first column is a result; what is open there has \
                      no verdict, and counts as not held.";

/// Rows of one class.
fn table<'a>(rows: impl Iterator<Item = &'a Exhibit>) -> Table {
    let mut table = Table::new([
        "row",
        "holds",
        Reading::Published.as_str(),
        "ours",
        "reading",
        "standing",
        "tolerance, and how narrow",
        "reason",
    ]);
    for row in rows {
        let holds = match row.holds {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "no verdict",
        };
        table.row([
            row.id.as_str().into(),
            holds.into(),
            numbers(&row.published),
            numbers(&row.ours),
            row.reading.as_str().into(),
            row.standing.as_str().into(),
            row.tolerance.as_str().into(),
            row.reason.as_str().into(),
        ]);
    }
    table
}

/// Numbers that stand in one cell; of many the least and the most.
const NUMBERS_LISTED: usize = 10;

fn numbers(all: &Numbers) -> Cell {
    let write = |number: &Option<f64>| number.map_or_else(|| "–".to_owned(), short);
    let all = all.all();
    if let [one] = all {
        return Cell::maybe(*one, short);
    }
    if all.len() <= NUMBERS_LISTED {
        return Cell::text(all.iter().map(write).collect::<Vec<_>>().join(", "));
    }
    let known = || all.iter().flatten().copied();
    let ends = known().reduce(f64::min).zip(known().reduce(f64::max));
    ends.map_or_else(Cell::missing, |(least, most)| {
        Cell::text(format!("{} cells, {} to {}", all.len(), short(least), short(most)))
    })
}

#[cfg(test)]
mod tests {
    use isochrone_report::table::too_wide;
    use isochrone_units::Standing;

    use super::*;

    fn exhibit(paper: &str, tests: Tests, holds: Option<bool>) -> Exhibit {
        Exhibit {
            id: "a row".into(),
            paper: paper.into(),
            published: Numbers::One(Some(1.5)),
            ours: Numbers::Many(vec![Some(1.0), None]),
            reading: Reading::Simulated,
            standing: Standing::Assumed,
            tests,
            tolerance: "5 %: 1.42 to 1.57".into(),
            holds,
            reason: "unexplained".into(),
        }
    }

    #[test]
    fn the_denominator_is_of_all_papers_whatever_was_run() {
        assert_eq!(CHAPTERS.iter().map(|chapter| chapter.out_of_sample).sum::<usize>(), 61);
        let text = std::fs::read_to_string("../../../docs/results/papers-denominator.md")
            .expect("counted first");
        for chapter in CHAPTERS {
            let row = format!("| {} | {} |", chapter.name, chapter.out_of_sample);
            assert!(text.contains(&row), "{row}");
        }
        let mut site = Site { depth: "a quick run".into(), ..Site::default() };
        assert_eq!(
            site.headline(),
            "0 of 61 out-of-sample rows hold; 61 have no verdict, and count as not held."
        );
        site.exhibits = vec![
            exhibit("pspt", Tests::OutOfSample, Some(true)),
            exhibit("pspt", Tests::InSample, Some(true)),
            exhibit("cla", Tests::OutOfSample, Some(false)),
            exhibit("cla", Tests::OutOfSample, None),
        ];
        assert_eq!(
            site.headline(),
            "1 of 61 out-of-sample rows hold; 59 have no verdict, and count as not held."
        );
    }

    #[test]
    fn the_first_page_has_every_row_and_links_to_the_pages_that_are_there() {
        let site = Site {
            exhibits: vec![
                exhibit("pspt", Tests::OutOfSample, Some(false)),
                exhibit("pspt", Tests::Input, None),
            ],
            depth: "a quick run".into(),
            lacks: vec!["stopped".into()],
        };
        let page = site.first_page(None).render();
        assert!(
            page.contains(r#"<a href="pspt.html">"#) && !page.contains(r#"<a href="cla.html">"#),
            "{page}"
        );
        let words = [
            "0 of 19, 18 open",
            "0 of 10, 10 open",
            "unexplained",
            "stopped",
            "Not run.",
            "1.00, –",
        ];
        for words in words {
            assert!(page.contains(words), "{words}");
        }
        for width in [60, 80, 120] {
            assert_eq!(too_wide(&site.text(width), width), None);
        }
    }
}
