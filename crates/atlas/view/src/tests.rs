//! The summary and the report as a reader meets them.

use std::collections::BTreeSet;

use isochrone_atlas_store::contents::Contents;
use isochrone_report::html::{Badge, Figure, Page};
use isochrone_report::term::Colour;
use isochrone_units::{Level, Reading};

use super::fixtures::{all, empty, genoa, hollow, long_period, mesh, per_line};
use super::{block_figure, page, summary};

/// The summary without colour, its line breaks undone.
fn flowing(contents: &Contents) -> String {
    let text = summary(contents, Colour::None, 80);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text as it looks, without colour sequences.
fn seen(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |seen, part| seen + part.split_once('m').map_or("", |p| p.1))
}

fn has(text: &str, words: &str) {
    assert!(text.contains(words), "no `{words}` in:\n{text}");
}

fn section<'a>(page: &'a Page, id: &str) -> &'a isochrone_report::html::Section {
    page.sections.iter().find(|s| s.id == id).unwrap_or_else(|| panic!("no section {id}"))
}

fn figures(page: &Page) -> impl Iterator<Item = &Figure> {
    page.sections.iter().flat_map(|s| &s.figures)
}

#[test]
fn the_summary_says_the_result_in_plain_words() {
    let text = flowing(&genoa());
    for words in [
        "Latency atlas of AMD EPYC, 2 cores measured",
        "2 cores; 1 region of memory, 8 GiB in all; L2 1 MiB, L3 32 MiB shared by 2 cores.",
        "Under KVM; kernel 6.18.0; transparent huge pages: madvise, 3 of 8 pages of 2 MiB free.",
        "2.596 GHz in steps of 26 cycles (10.0 ns); 58.7 cycles of timer",
        "From core 0, the nearest quarter of the lines in the LLC is 14.0 % nearer than the mean \
         (13.3 ns of 15.4 ns).",
        "From core 1, the nearest quarter of the lines in DRAM is 5.00 % nearer than the mean",
        "Every page has the same pattern: 8 lines that repeat 8 times, 5.39 ns from the nearest \
         line to the farthest.",
        "The form explains 99 % of what repeats.",
        "Core 0 and core 1 see opposed patterns: what is near one is far from the other \
         (r = -1.00).",
        "Pages fall into 3 classes, from core 0: 129 ns (",
        "Inside a page all lines are alike.",
        "4096 pages were decoded for the LLC, each from 4.21 lines and 4.37 timed loads on \
         average, in 1.71 us a page (0.90 timed loads).",
        "On 64 held-out pages the map of DRAM explains 94.2 % of the variance of a second pass \
         (its own noise leaves 96.2 % to be explained); 98.4 % of the codes are right.",
        "The atlas holds the codes of 1536 pages (6 MiB), found by guest frames.",
        "Compare-and-swap ping-pong, half a round trip: core 0 and core 1 27.0 ns [26.7, 27.3]; \
         over 64 lines 24.3 to 32.4 ns; the best line takes 24.3 ns.",
        "core 1 to core 0 31.0 ns [30.7, 31.3]",
        "not measured: it needs 3 cores and 2 may be used.",
        "Random order through 100 MiB: core 0 to region 0 165 ns [163, 167]",
        "Stride of 4 KiB through 100 MiB",
        "N lines, core 0 -> core 1: 21.8 ns [17.4, 26.2] to start and 5.32 ns [5.23, 5.40] a line",
        "- contention (a load of a line), n = 1: 29.0 ns [28.7, 29.3]",
        "Core 0 to region 0: 15.4 GB/s (one run).",
        "Cores 0-1 to region 0: 26.4 GB/s [26.1, 26.7].",
        "Cannot tell: 2 cores have no layout: at least 4 are needed.",
        "4 events (base changed 3, thread moved 1); 16 384 timed loads were dropped and done \
         again; the slowest repair took 2.50 ms.",
        "- at 3.25 s: core 1 sees another pattern; it is timed again",
        "- cldemote: this CPU lacks it; lines are evicted instead",
        "Measured on 2026-11-20 14:08 UTC in 42.5 s by isochrone 0.1.0, seed 7.",
    ] {
        has(&text, words);
    }
    assert!(!text.contains("at 0.25 s"), "only the last events are named");
    assert!(!text.contains("incomplete"));
}

#[test]
fn the_summary_of_many_cores_gives_ranges_and_names_the_ends() {
    let text = flowing(&mesh());
    for words in [
        "Latency atlas of A mesh of 64 cores simulated",
        "The state of the machine is not recorded.",
        "From 64 cores, the nearest quarter of the lines in the LLC is 10.0 % to 16.3 % nearer \
         than the mean; most from core 63",
        "with its lines permuted by the page's key: line i is line i XOR key. All 64 keys that \
         can be told apart occur.",
        "64 patterns are worn; two of them correlate at -1.00 to",
        "Lines in DRAM do not differ (90.0 ns): two halves of the rounds correlate at 0.003.",
        "56 more rows are in the report.",
        "A line that its owner has written: 45.0 ns to 110 ns, median 65.0 ns over 2016 pairs, \
         nearest core 0 to core 1, farthest core 7 to core 56; the best line takes 40.5 ns.",
        "and 0.500 ns [0.400, 0.600] a line and reader of congestion (T = q + oN + cnN",
        "rfo-shared (a load of a line), n = 1: 29.0 ns [28.7, 29.3], n = 2: 30.0 ns",
        "One core alone: 10.0 GB/s to 11.0 GB/s.",
        "Most by core 63 to region 0: 11.0 GB/s",
        "The latencies fit a grid: a grid of 8 by 8 explains 99.1 % of the variance.",
        "Distances and latencies rank alike at 0.98 (Spearman).",
        "Quarter turns and mirror images fit as well (8 images).",
        "Nothing was seen to move while measuring.",
    ] {
        has(&text, words);
    }
}

#[test]
fn what_follows_no_form_says_so() {
    let text = flowing(&per_line());
    has(
        &text,
        "Lines in the LLC differ, but not by a pattern that pages share: the form explains \
         only 31 % of what repeats. They are measured one by one, 2 pages so far.",
    );
    has(&text, "The atlas holds no page's code: a program decodes its own pages by the patterns.");
    let text = flowing(&long_period());
    has(&text, "Every 16 KiB has one base pattern");
}

#[test]
fn an_interrupted_run_says_so_and_what_is_missing() {
    let text = flowing(&empty());
    has(&text, "Latency atlas of unnamed machine measured, incomplete");
    has(&text, "The clock was not calibrated.");
    assert!(text.matches("Not measured: ").count() >= 5, "{text}");
    has(&text, "Not measured: the run was interrupted before it.");
    let alone = Contents { transfers: Vec::new(), ..genoa() };
    let mut alone = Contents { multiline: Vec::new(), ..alone };
    alone.machine.cores.truncate(1);
    has(&flowing(&alone), "Not measured: it needs 2 cores, and there is 1.");
    let mut failed = Contents { complete: true, ..empty() };
    failed.provenance.missing.push("bandwidth: no memory for three arrays".into());
    has(&flowing(&failed), "Not measured: no memory for three arrays.");
    has(&flowing(&failed), "Not measured: this run did not include it.");
    let stopped = "bandwidth: not measured, since the run was interrupted";
    failed.provenance.missing = vec![stopped.into()];
    has(&flowing(&failed), "Not measured, since the run was interrupted.");
}

#[test]
fn the_summary_fits_the_terminal_with_and_without_colour() {
    for (name, contents) in all() {
        for width in [60, 80, 120] {
            let plain = summary(&contents, Colour::None, width);
            assert!(plain.is_ascii(), "{name}: {plain}");
            for colour in [Colour::None, Colour::Ansi256, Colour::TrueColour] {
                let text = summary(&contents, colour, width);
                assert_eq!(text.contains('\x1b'), colour != Colour::None, "{name}");
                let long =
                    seen(&text).lines().find(|l| l.chars().count() > width).map(str::to_owned);
                assert_eq!(long, None, "{name} at {width}");
            }
        }
    }
}

#[test]
fn names_from_a_file_cannot_steer_the_terminal() {
    let mut contents = genoa();
    contents.machine.title = "x\x1b[2J".into();
    contents.drift[3].what = "y\x1b]0;z\x07".into();
    contents.provenance.missing.push("\x1b[31mred".into());
    assert!(!summary(&contents, Colour::None, 80).contains('\x1b'));
}

#[test]
fn no_number_that_is_none_is_printed() {
    for (name, contents) in all() {
        let page = page(&contents, None);
        let mut words: Vec<String> = vec![summary(&contents, Colour::None, 80)];
        words.extend(page.summary.clone());
        words.extend(page.sections.iter().flat_map(|s| s.prose.clone()));
        words.extend(figures(&page).map(|f| f.svg.clone()));
        words.extend(figures(&page).map(|f| f.caption.clone()));
        words.extend(figures(&page).filter_map(|f| Some(f.table.as_ref()?.to_html())));
        for text in words {
            for none in ["NaN", "inf ", "inf<", "inf,", "nan"] {
                assert!(!text.contains(none), "{name}: {none} in {text}");
            }
        }
    }
}

#[test]
fn every_figure_of_every_report_is_well_formed() {
    for (name, contents) in all() {
        let page = page(&contents, Some("{}".into()));
        let ids: BTreeSet<&str> = page.sections.iter().map(|s| s.id.as_str()).collect();
        assert_eq!(ids.len(), page.sections.len(), "{name}: each section has its own anchor");
        for figure in figures(&page) {
            if !figure.svg.is_empty() {
                let tree = roxmltree::Document::parse(&figure.svg);
                let tree = tree.unwrap_or_else(|e| panic!("{name}: {e} in {}", figure.svg));
                assert_eq!(tree.root_element().tag_name().name(), "svg");
            }
            if let Some(table) = &figure.table {
                assert!(!table.is_empty(), "{name}: {}", figure.caption);
                roxmltree::Document::parse(&table.to_html()).unwrap();
            }
            assert!(!figure.caption.is_empty());
        }
        let html = page.render();
        assert!(html.trim_end().ends_with("</html>"), "{name}");
        assert!(html.len() < 3_000_000, "{name}: {} bytes", html.len());
    }
}

#[test]
fn the_report_has_every_picture_of_the_machine() {
    let page = page(&genoa(), Some("{\"a\": 1}".into()));
    let titles = |id: &str| -> Vec<&str> {
        let drawn = section(&page, id).figures.iter().filter(|f| !f.svg.is_empty());
        drawn.filter_map(|f| f.svg.split("<title").nth(1)?.split(['>', '<']).nth(1)).collect()
    };
    assert_eq!(
        titles("lines"),
        [
            "LLC: the pattern that each core sees",
            "DRAM: mean latency of each class of pages",
            "Latency of single lines",
        ]
    );
    assert_eq!(titles("pages"), ["DRAM: the code of each page"]);
    assert_eq!(titles("blocks").len(), 2);
    assert_eq!(titles("cores").len(), 2, "the state that was not measured has no picture");
    assert_eq!(titles("regions"), ["Core to region 0"]);
    assert_eq!(titles("several").len(), 1);
    assert_eq!(titles("placement"), ["Inferred floor plan"]);
    assert!(page.sections.iter().all(|s| !s.figures.is_empty()));
    let html = page.render();
    for words in [
        "all 1536 decoded pages have the same code (key 0)",
        "1 page could not be decided",
        "not measured: it needs 3 cores and 2 may be used",
        "000000000000feed",
        "2026-11-20 14:08 UTC",
        "this CPU lacks it; lines are evicted instead",
        "{\"a\": 1}",
    ] {
        has(&html, words);
    }
    let many = super::page(&mesh(), None);
    assert_eq!(section(&many, "cores").figures.len(), 1);
    assert!(section(&many, "placement").figures[0].svg.matches("<circle").count() == 64);
}

#[test]
fn a_section_without_data_says_why_in_one_line() {
    for contents in [empty(), hollow()] {
        for section in page(&contents, None).sections {
            assert!(!section.prose.is_empty(), "{}", section.id);
            if section.figures.is_empty() {
                let why = ["ot measured", "Nothing", "nothing", "no codes", "not recorded"];
                let prose = section.prose.join(" ");
                assert!(why.iter().any(|w| prose.contains(w)), "{}: {prose}", section.id);
                assert_eq!(section.badge, None, "{}: nothing was read", section.id);
            }
        }
    }
}

#[test]
fn every_number_keeps_its_reading() {
    let badges = |page: &Page| -> Vec<Badge> {
        let sections = page.sections.iter().filter_map(|s| s.badge.clone());
        let figures = figures(page).filter_map(|f| f.badge.clone());
        page.badges.iter().cloned().chain(sections).chain(figures).collect()
    };
    let simulated = badges(&page(&mesh(), None));
    assert!(simulated.contains(&Badge::Reading(Reading::Simulated)));
    assert!(
        !simulated.contains(&Badge::Reading(Reading::Measured))
            && !simulated.contains(&Badge::Reading(Reading::Predicted))
    );
    let measured = page(&genoa(), None);
    assert_eq!(measured.badges, [Badge::Reading(Reading::Measured)]);
    assert_eq!(section(&measured, "blocks").badge, Some(Badge::Reading(Reading::Predicted)));
    assert_eq!(section(&measured, "cores").badge, Some(Badge::Reading(Reading::Measured)));
    assert_eq!(page(&empty(), None).badges.last(), Some(&Badge::Warning("incomplete".into())));
    let timed = block_figure(&per_line(), Level::Llc).unwrap();
    assert_eq!(
        timed.badge,
        Some(Badge::Reading(Reading::Measured)),
        "line by line nothing is predicted"
    );
}

/// What a report of 384 cores in 16 regions may take.
const REPORT_BYTES_MAX: usize = 3_000_000;

#[test]
fn hundreds_of_cores_are_shown_by_their_clusters_and_regions_each_for_itself() {
    let contents = isochrone_atlas_store::made::wide(384, 16);
    for width in [60, 80, 160] {
        let text = summary(&contents, Colour::None, width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
        let named = match width {
            60 => "columns are region 0 to region 15",
            _ => " 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15  region",
        };
        has(&text, named);
        let clusters = text.lines().filter(|line| line.trim().starts_with("cores 12-23,204-215 "));
        assert_eq!(clusters.count(), 2, "one of core to core, one of core to region: {text}");
    }
    let words = flowing(&contents);
    has(&words, "48 clusters of 8 (25.0 ns");
    has(&words, "16 clusters of 24 (64.0 ns");
    has(
        &words,
        "each mark is the mean over all that its row and column name; columns are in the order of the rows",
    );
    has(&words, "40 more rows are in the report.");
}

#[test]
fn a_report_of_hundreds_of_cores_is_small_and_says_what_it_leaves_out() {
    let contents = isochrone_atlas_store::made::wide(384, 16);
    let json = format!("{{\"x\":\"{}\"}}", "y".repeat(1 << 20));
    let page = page(&contents, Some(json));
    assert!(page.json.is_none());
    has(&page.footer, "as JSON (1.00 MiB) are left out here: `isochrone show --json` writes them");
    let pairs = &section(&page, "cores").figures;
    assert_eq!(pairs.len(), 5, "four states, and the clusters");
    for figure in &pairs[..4] {
        has(&figure.svg, ">cores 0-3,192-195<");
        has(&figure.svg, "class=\"cut\"");
        has(&figure.svg, "data:image/png");
        has(&figure.caption, "`isochrone export --csv` has every cell with its interval");
        assert_eq!(figure.table.as_ref().map(isochrone_report::table::Table::len), Some(16));
    }
    assert_eq!(
        pairs[4].table.as_ref().map(isochrone_report::table::Table::len),
        Some(2 + 16 + 48 + 192)
    );
    let regions = &section(&page, "regions").figures;
    for region in (0..16).map(|region| format!(">region {region}<")) {
        assert!(regions.iter().all(|figure| figure.svg.contains(&region)), "{region}");
    }
    let html = page.render();
    assert!(html.len() < REPORT_BYTES_MAX, "{} bytes", html.len());
}

#[test]
fn a_machine_of_few_cores_keeps_its_order() {
    let contents = isochrone_atlas_store::made::halves(25.0, 200.0);
    let page = page(&contents, None);
    let cores = section(&page, "cores");
    assert_eq!(cores.figures.len(), 1, "no table of clusters");
    assert!(!cores.figures[0].svg.contains("class=\"cut"));
}
