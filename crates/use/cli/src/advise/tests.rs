//! What is said of machines of every shape fits a terminal of 80 columns, and nothing of it is lost behind `--long`.

use std::fs;
use std::path::Path;

use isochrone_atlas_store::contents::{Contents, Graded};
use isochrone_atlas_store::{MappedAtlas, made, save};
use isochrone_console::run::atlas::Found;
use isochrone_host::{SysRoot, this_machine};
use isochrone_machine::Machine;
use isochrone_report::json::{self, Format};
use isochrone_report::lines::fit;
use isochrone_units::{CoreId, Experiment, Grade};
use isochrone_view::fixtures;

use super::findings::{Figures, Offer};
use super::{machine, words};

/// Columns of a terminal that nobody has made wider.
const WIDTH: usize = 80;

/// A system that has huge pages for who asks, and one that has a pool of them.
fn systems(folder: &Path) -> [SysRoot; 3] {
    ["madvise", "pool", "none"].map(|kind| {
        let root = folder.join(kind);
        let thp = root.join("sys/kernel/mm/transparent_hugepage");
        fs::create_dir_all(&thp).unwrap();
        let set =
            if kind == "madvise" { "always [madvise] never" } else { "always madvise [never]" };
        fs::write(thp.join("enabled"), set).unwrap();
        let pool = root.join("sys/kernel/mm/hugepages/hugepages-2048kB");
        fs::create_dir_all(&pool).unwrap();
        let free = if kind == "pool" { "131072" } else { "0" };
        fs::write(pool.join("nr_hugepages"), free).unwrap();
        fs::write(pool.join("free_hugepages"), free).unwrap();
        SysRoot(root)
    })
}

fn graded(contents: Contents, grade: Grade) -> Contents {
    let of = |experiment: &Experiment| {
        (*experiment, Graded { grade, reason: "as the test says".to_owned() })
    };
    Contents { quality: Experiment::ALL.iter().map(of).collect(), ..contents }
}

/// All lines are equally far.
fn alike() -> Contents {
    let mut contents = fixtures::genoa();
    for level in contents.levels.iter_mut().filter(|level| level.level == "llc") {
        let patterns = level.bases.iter_mut().flat_map(|base| &mut base.patterns);
        patterns.for_each(|pattern| pattern.fill(40.0));
    }
    contents
}

/// Atlases of machines that nobody has.
fn atlases() -> Vec<(String, Contents)> {
    let mut all: Vec<(String, Contents)> = vec![
        ("lines in a pattern".to_owned(), fixtures::genoa()),
        ("lines one by one".to_owned(), fixtures::per_line()),
        ("a long pattern".to_owned(), fixtures::long_period()),
    ];
    all.push(("lines alike".to_owned(), alike()));
    for (cores, regions) in [(16, 1), (64, 4), (192, 12)] {
        all.push((format!("{cores} cores, {regions} regions"), made::wide(cores, regions)));
    }
    all.push(("two halves".to_owned(), made::halves(40.0, 200.0)));
    all.push(("one distance".to_owned(), made::halves(40.0, 40.0)));
    all.push(("one core".to_owned(), made::lines(1, |_, _| None, &[])));
    let again: Vec<(String, Contents)> = [Grade::Disturbed, Grade::Unusable]
        .into_iter()
        .flat_map(|grade| {
            all.iter().map(move |(name, contents)| {
                (format!("{name}, {grade}"), graded(contents.clone(), grade))
            })
        })
        .collect();
    all.extend(again);
    for (name, contents) in &mut all {
        contents.machine.title = format!(
            "Two Processors of a Vendor(R) whose Names(TM) are Long @ 2.45GHz ({name}), {} cores",
            contents.machine.cores.len()
        );
    }
    all
}

/// What is said of an atlas, of all its cores, on each of these systems.
fn of_atlas(contents: &Contents, folder: &Path, systems: &[SysRoot]) -> Vec<Figures> {
    let deep = folder.join("a/folder/of/somebody/with/a/long/name/.cache/isochrone/atlases");
    fs::create_dir_all(&deep).unwrap();
    let path = deep.join("c5101c690127db33.atlas");
    save(contents, &path).unwrap();
    let atlas = MappedAtlas::open(&path).unwrap();
    let found = Found { path, contents: contents.clone(), atlas };
    let cores: Vec<CoreId> = contents.machine.core_ids().collect();
    let levers = machine::by_atlas(&found, &cores).unwrap();
    let on = |root| machine::with_system(levers.clone(), Some(&found), &contents.machine, root);
    systems.iter().map(on).collect()
}

/// Words with one space between them.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn fits(name: &str, figures: &Figures) {
    let text = fit(&words::text(figures, WIDTH), WIDTH);
    assert!(text.lines().count() <= words::LINES, "{name}:\n{text}");
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{name}:\n{text}");
    let is_none = |offer| figures.levers.iter().all(|of| of.offer != offer);
    assert_eq!(
        text.starts_with("Nothing here for you"),
        is_none(Offer::Gain) && is_none(Offer::Unknown),
        "{name}:\n{text}"
    );
    let long = joined(&words::long(figures, WIDTH));
    let written = json::pretty(Format::Advise, figures).unwrap();
    for of in &figures.levers {
        let head = format!("  {:<12}  ", of.lever);
        let own: Vec<&str> = text.lines().filter(|line| line.starts_with(&head)).collect();
        let [line] = own.as_slice() else { panic!("{name}: {} in\n{text}", of.lever) };
        assert!(!of.briefly.is_empty() && line.contains(&of.briefly), "{name}:\n{text}");
        let command = of.command.as_deref();
        assert!(command.is_none_or(|command| line.ends_with(command)), "{name}:\n{text}");
        assert!(command.is_some() || of.offer == Offer::Nothing, "{name}:\n{text}");
        assert!(long.contains(&joined(&of.what)), "{name}: {} not in\n{long}", of.what);
        assert!(written.contains(&of.what.replace('"', "\\\"")), "{name}: {written}");
    }
    let lacks = figures.lacks.as_deref().unwrap_or_default();
    assert!(long.contains(&joined(lacks)), "{name}: {lacks}");
    assert_eq!(figures.lacks.is_some(), figures.lacks_briefly.is_some());
}

#[test]
fn every_machine_is_told_in_twelve_lines_of_a_narrow_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let mut offers = Vec::new();
    let systems = systems(folder.path());
    for (name, contents) in atlases() {
        for figures in of_atlas(&contents, folder.path(), &systems) {
            fits(&name, &figures);
            offers.extend(figures.levers.iter().map(|of| (of.lever, of.offer.word())));
        }
    }
    let many = made::wide(128, 4).machine;
    let here = this_machine(&SysRoot::live()).unwrap();
    for machine in [Machine { cores: Vec::new(), ..many.clone() }, many, here] {
        let levers = machine::without_atlas(&machine);
        for root in &systems {
            fits("no atlas", &machine::with_system(levers.clone(), None, &machine, root));
        }
    }
    // Every kind of line was among them.
    for (lever, words) in [
        ("near lines", &["gain", "nothing", "unknown"][..]),
        ("core order", &["depends", "nothing", "unknown"]),
        ("regions", &["depends", "nothing", "unknown"]),
        ("collectives", &["depends", "nothing", "unknown"]),
        ("huge pages", &["depends", "nothing"]),
    ] {
        for word in words {
            assert!(offers.contains(&(lever, word)), "no {lever} was {word}");
        }
    }
}
