//! Figure 2 of "Exploiting Hidden Non-uniformity of Uniform Memory Access" (Euro-Par 2014
//! Workshops, LNCS 8806, section 2), drawn for this machine: latency of consecutive 64-byte
//! blocks from several cores, relative to the fastest access.

use isochrone_atlas_store::contents::{Contents, Form};
use isochrone_report::fmt;
use isochrone_report::html::{Badge, Figure};
use isochrone_report::svg::{self, Axis, LineChart, LineSeries, Mark, Point};
use isochrone_report::table::{Cell, Table};
use isochrone_units::{LINES_PER_PAGE, Level, Reading};

use super::{derived, reading, spread};
use crate::level::{LevelView, ends};

/// Cores drawn; the paper has four.
const CORES: usize = 4;
/// Consecutive pages drawn where lines of a page are what differs.
const PAGES: usize = 2;
/// Consecutive pages drawn where pages fall into classes.
const PAGES_OF_CLASSES: usize = 4;
/// Pages after which a pattern over 16 KiB begins again.
const ALIGNED: u64 = 4;

/// Consecutive blocks as some cores see them.
struct Blocks {
    /// Where the blocks are, in words.
    place: String,
    /// Cores with the latency of every block, in nanoseconds.
    cores: Vec<(u16, Vec<Option<f64>>)>,
    /// Whether every block was timed, rather than known by its page's code.
    timed: bool,
}

/// Relative latency (1.0 is the fastest access) of consecutive blocks from each core at one
/// level; `None` where the atlas knows no difference between lines there.
pub fn block_figure(contents: &Contents, level: Level) -> Option<Figure> {
    let view = LevelView::find(contents, level)?;
    let blocks = match view.map.form {
        Form::Pattern => by_codes(contents, &view).or_else(|| canonical(&view))?,
        Form::PerLine => timed(contents, &view)?,
        Form::Flat => return None,
    };
    let known: Vec<f64> = blocks.cores.iter().flat_map(|c| c.1.iter().copied().flatten()).collect();
    let (fastest, slowest) = ends(&known).filter(|(lo, _)| *lo > 0.0)?;
    let badge = if blocks.timed { reading(contents) } else { derived(contents) };
    let how = match (blocks.timed, &badge) {
        (true, _) => "every block was timed",
        (false, Badge::Reading(Reading::Predicted)) => {
            "predicted by the measured patterns and the decoded codes"
        }
        (false, _) => "by the patterns and the codes of the atlas",
    };
    Some(Figure {
        svg: svg::line_chart(&chart(&view, &blocks, fastest)),
        caption: format!(
            "{}: relative latency of consecutive 64-byte blocks, 1.0 for the fastest access \
             ({}); the slowest is {}; {how}. After Figure 2 of the Euro-Par 2014 paper.",
            view.name(),
            fmt::ns(fastest),
            fmt::ratio(slowest / fastest),
        ),
        badge: Some(badge),
        table: Some(table(&blocks, fastest)),
        open: false,
    })
}

fn chart(view: &LevelView<'_>, blocks: &Blocks, fastest: f64) -> LineChart {
    let point = |(i, value): (usize, &Option<f64>)| Point {
        x: i as f64,
        y: value.map(|v| v / fastest),
        band: None,
    };
    let line = |(core, values): &(u16, Vec<Option<f64>>)| LineSeries {
        label: format!("core {core}"),
        points: values.iter().enumerate().map(point).collect(),
        mark: Mark::Steps,
    };
    LineChart {
        title: format!("{}: consecutive blocks from each core", view.name()),
        x: Axis { title: format!("64-byte block, {}", blocks.place), ..Axis::default() },
        y: Axis { title: "relative latency".into(), ..Axis::default() },
        series: blocks.cores.iter().map(line).collect(),
        apart: blocks.cores.len() > 1,
    }
}

fn table(blocks: &Blocks, fastest: f64) -> Table {
    let head = ["block".to_owned()].into_iter();
    let head = head.chain(blocks.cores.iter().map(|(core, _)| format!("core {core}, ns")));
    let relative = blocks.cores.iter().map(|(core, _)| format!("core {core}, relative"));
    let mut table = Table::new(head.chain(relative));
    let longest = blocks.cores.iter().map(|c| c.1.len()).max().unwrap_or(0);
    for i in 0..longest {
        let at = |core: &(u16, Vec<Option<f64>>)| core.1.get(i).copied().flatten();
        let latency = blocks.cores.iter().map(|core| super::ns(at(core)));
        let relative = blocks
            .cores
            .iter()
            .map(|core| Cell::maybe(at(core).map(|v| v / fastest), |v| fmt::significant(v, 4)));
        table.row([super::whole(i as u64)].into_iter().chain(latency).chain(relative));
    }
    table
}

/// Cores that wear a base, at most [`CORES`] of them.
fn drawn_cores(view: &LevelView<'_>) -> Vec<(usize, u16)> {
    let worn: Vec<(usize, u16)> =
        view.cores().filter(|(place, _)| view.worn(*place).is_some()).collect();
    spread(&worn, CORES)
}

/// Consecutive frames whose codes are known: the first run that shows what is usual here, which
/// is different codes unless nearly all pages have one.
fn by_codes(contents: &Contents, view: &LevelView<'_>) -> Option<Blocks> {
    let codes: Vec<(u64, Option<u16>)> = view.codes().collect();
    let pages = if view.map.classes > 1 { PAGES_OF_CLASSES } else { PAGES };
    let known = |run: &&[(u64, Option<u16>)]| {
        let begins = run[0].0.is_multiple_of(ALIGNED);
        let last = run[0].0 + (pages as u64 - 1);
        begins && run[pages - 1].0 == last && run.iter().all(|page| page.1.is_some())
    };
    // A page that is unlike nearly all others is an exception, and no picture of the rest.
    let rule = view.dominant();
    let differ = |run: &&[(u64, Option<u16>)]| match rule {
        Some(code) => run.iter().all(|page| page.1 == Some(code)),
        None => run.iter().any(|page| page.1 != run[0].1),
    };
    let mut runs = codes.windows(pages).filter(known);
    let run = runs.clone().find(differ).or_else(|| runs.next())?;
    let first = run[0].0;
    let latency = |place: usize| -> Vec<Option<f64>> {
        let base = view.worn(place).map(|worn| worn.1);
        run.iter()
            .flat_map(|(frame, code)| (0..LINES_PER_PAGE).map(move |line| (*frame, *code, line)))
            .map(|(frame, code, line)| {
                let index = match view.map.period {
                    256 => usize::from(frame.to_le_bytes()[0] % 4) * LINES_PER_PAGE + line,
                    _ => line,
                };
                view.expected_ns(base?, code?, index)
            })
            .collect()
    };
    let cores = drawn_cores(view).into_iter().map(|(place, core)| (core, latency(place)));
    let whose = contents.pages_keyed_by.trim_end_matches("frames").trim();
    let place = format!("from {whose} physical address {:#x}", first << 12);
    Some(Blocks { place, cores: cores.collect(), timed: false })
}

/// Where no page's code is known: the canonical page of every class, one after the other.
fn canonical(view: &LevelView<'_>) -> Option<Blocks> {
    let latency = |place: usize| -> Vec<Option<f64>> {
        let patterns = view.worn(place).map_or(&[][..], |(_, base)| &base.patterns);
        patterns.iter().flat_map(|pattern| view.pattern_ns(pattern)).collect()
    };
    let cores: Vec<(u16, Vec<Option<f64>>)> =
        drawn_cores(view).into_iter().map(|(place, core)| (core, latency(place))).collect();
    let pages = if view.map.classes > 1 { "a page of each class" } else { "one page" };
    let place = format!("{pages} with key 0 (frames were not readable)");
    (!cores.is_empty()).then_some(Blocks { place, cores, timed: false })
}

/// Pages that were timed line by line: the first ones in the order of frames.
fn timed(contents: &Contents, view: &LevelView<'_>) -> Option<Blocks> {
    let mut frames: Vec<u64> = view.map.lines.iter().map(|line| line.0).collect();
    frames.sort_unstable();
    frames.dedup();
    frames.truncate(PAGES_OF_CLASSES);
    let first = *frames.first()?;
    let ids: Vec<u16> = contents.machine.cores.iter().map(|core| core.id).collect();
    let latency = |core: u16| -> Vec<Option<f64>> {
        let page = |frame: &u64| view.map.lines.iter().find(|l| (l.0, l.1) == (*frame, core));
        let values = |frame| match page(frame) {
            Some((_, _, cycles)) => view.pattern_ns(cycles),
            None => vec![None; LINES_PER_PAGE],
        };
        frames.iter().flat_map(values).collect()
    };
    let cores = spread(&ids, CORES).into_iter().map(|core| (core, latency(core)));
    let place = format!("from frame {first:#x}, {} measured pages", frames.len());
    Some(Blocks { place, cores: cores.collect(), timed: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{CLASSES, dram_code, genoa, long_period, mesh, mesh_line, per_line};

    fn ns(contents: &Contents, cycles: f32) -> Option<f64> {
        Some(contents.clock.ns(f64::from(cycles)))
    }

    #[test]
    fn consecutive_blocks_follow_class_and_key_of_their_pages() {
        let contents = genoa();
        let view = LevelView::find(&contents, Level::Dram).unwrap();
        let blocks = by_codes(&contents, &view).unwrap();
        assert_eq!(blocks.place, "from guest physical address 0x1000000");
        assert_eq!(blocks.cores.len(), 2);
        for (i, latency) in blocks.cores[0].1.iter().enumerate() {
            let class = dram_code(0x1000 + (i / 64) as u64) / 64;
            assert_eq!(*latency, ns(&contents, CLASSES[usize::from(class)]), "block {i}");
        }
        let contents = mesh();
        let view = LevelView::find(&contents, Level::Llc).unwrap();
        let blocks = by_codes(&contents, &view).unwrap();
        let cores: Vec<u16> = blocks.cores.iter().map(|core| core.0).collect();
        assert_eq!(cores, [0, 21, 42, 63], "as many cores as in the paper");
        let keys = [0, 1].map(|page| contents.pages[0].llc[page]);
        assert_ne!(keys[0], keys[1], "the fixture shows something");
        for (i, latency) in blocks.cores[1].1.iter().enumerate() {
            let line = (i % 64) ^ usize::from(keys[i / 64]);
            let line = u16::try_from(line).unwrap();
            assert_eq!(*latency, ns(&contents, mesh_line(21, line)), "block {i}");
        }
    }

    #[test]
    fn a_pattern_over_four_pages_goes_on_from_page_to_page() {
        let contents = long_period();
        let view = LevelView::find(&contents, Level::Llc).unwrap();
        let blocks = by_codes(&contents, &view).unwrap();
        let key = usize::from(contents.pages[0].llc[0]);
        let base = &contents.levels[0].bases[0].patterns[0];
        for (i, latency) in blocks.cores[0].1.iter().enumerate() {
            assert_eq!(*latency, ns(&contents, base[i ^ key]), "block {i}");
        }
    }

    #[test]
    fn without_codes_the_canonical_pages_are_drawn_and_said_to_be() {
        let contents = Contents { pages: Vec::new(), ..genoa() };
        let view = LevelView::find(&contents, Level::Dram).unwrap();
        assert!(by_codes(&contents, &view).is_none());
        let blocks = canonical(&view).unwrap();
        assert_eq!(blocks.cores[1].1.len(), 3 * 64);
        assert!(blocks.place.contains("frames were not readable"));
        assert!(block_figure(&contents, Level::Dram).is_some());
    }

    #[test]
    fn lines_timed_one_by_one_are_in_the_order_of_frames() {
        let contents = per_line();
        let view = LevelView::find(&contents, Level::Llc).unwrap();
        let blocks = timed(&contents, &view).unwrap();
        let first = contents.levels[0].lines.iter().find(|l| (l.0, l.1) == (8, 1)).unwrap();
        assert_eq!(blocks.cores[1].1[5], ns(&contents, first.2[5]));
        assert!(blocks.timed);
    }

    #[test]
    fn the_fastest_access_is_one() {
        let figure = block_figure(&genoa(), Level::Llc).unwrap();
        let table = figure.table.unwrap().to_html();
        assert!(table.contains(">1.000<"), "{table}");
        assert!(figure.caption.contains("the slowest is 1.42×"), "{}", figure.caption);
        assert!(block_figure(&mesh(), Level::Dram).is_none(), "flat: nothing to draw");
    }
}
