//! The report: every picture with its table, in the order in which questions come up. It only
//! arranges; a section whose data are absent says in one line why.

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::Contents;
use isochrone_report::fmt;
use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_units::{Grade, Level};

use super::clusters::Clusters;
use super::figures::{
    block::block_figure, lines, matrices, pages, placement, reading, several, tables,
};
use super::level::LevelView;
use super::words;

/// Longest JSON that a page carries; a report shall open at once.
const JSON_BYTES: usize = 512 << 10;

/// The report of an atlas. `figures_json` is embedded for programs, unless it is so long that the page says where it is
/// to be had instead.
pub fn page(contents: &Contents, figures_json: Option<String>) -> Page {
    let machine = &contents.machine;
    let (json, left_out): (Option<String>, Option<String>) = match figures_json {
        Some(json) if json.len() > JSON_BYTES => (None, Some(json)),
        other => (other, None),
    };
    let mut badges = vec![reading(contents)];
    badges.extend(worst(contents));
    if !contents.complete {
        badges.push(Badge::Warning("incomplete".into()));
    }
    Page {
        title: format!("Latency atlas of {}", words::machine::title(machine)),
        subtitle: words::run::provenance(contents),
        badges,
        links: Vec::new(),
        summary: summary(contents),
        facts: facts(contents),
        sections: sections(contents),
        json,
        footer: footer(contents) + &left_out.map_or(String::new(), |json| json_words(&json)),
    }
}

/// How far the worst of the experiments may be believed.
fn worst(contents: &Contents) -> Option<Badge> {
    let worst = contents.quality.values().map(|graded| graded.grade).min()?;
    let word = worst.to_string();
    Some(if worst == Grade::Quiet { Badge::Note(word) } else { Badge::Warning(word) })
}

/// The experiments, then what they were made on and how.
fn sections(contents: &Contents) -> Vec<Section> {
    let clusters = Clusters::of(contents);
    let found =
        Experiment::SHOWN.into_iter().flat_map(|experiment| of(experiment, contents, &clusters));
    found.chain([of_machine(contents), of_drift(contents), of_run(contents)]).collect()
}

/// The sections of an experiment.
fn of(experiment: Experiment, contents: &Contents, clusters: &Clusters) -> Vec<Section> {
    match experiment {
        Experiment::Block => {
            vec![of_lines(contents, clusters), of_pages(contents), of_blocks(contents)]
        }
        Experiment::Transfer => vec![of_cores(contents, clusters)],
        Experiment::Region => vec![of_regions(contents, clusters)],
        Experiment::Multiline => vec![of_several(contents)],
        // Its figure stands with those of several lines.
        Experiment::Terms => Vec::new(),
        Experiment::Bandwidth => vec![of_bandwidth(contents)],
        Experiment::Placement => vec![of_placement(contents)],
    }
}

/// The result in a few sentences.
fn summary(contents: &Contents) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for view in LevelView::all(contents) {
        let near = words::lines::near(&view);
        let found = if near.is_empty() { words::lines::form(&view) } else { near };
        all.push(found.join(" "));
    }
    let measured = |map: &&isochrone_atlas_store::contents::TransferMap| {
        words::cells::has_more_than(&map.latency_ns, 0)
    };
    if contents.transfers.iter().any(|map| measured(&map)) {
        all.extend(words::cells::transfers(contents).into_iter().next());
    }
    all.extend(words::run::doubts(contents));
    if !contents.complete {
        all.push("The run was interrupted: what follows is what had been measured by then.".into());
    }
    if all.is_empty() {
        all.push("Nothing was measured; each section says why.".into());
    }
    all
}

fn facts(contents: &Contents) -> Vec<(String, String)> {
    let (machine, state) = (&contents.machine, contents.state.as_ref());
    let name = machine.cpu.as_ref().and_then(|cpu| cpu.model_name.clone());
    let of =
        |of: fn(&isochrone_machine::MachineState) -> Option<&String>| state.and_then(of).cloned();
    let known = contents.pages.len() as u64 * 512;
    let clock = (contents.clock.hz > 0.0)
        .then(|| format!("{} GHz", fmt::significant(contents.clock.hz / 1e9, 4)));
    let step = contents.clock.tick_cycles;
    let facts = [
        ("Processor", name),
        ("Cores", Some(machine.cores.len().to_string())),
        ("Regions", Some(machine.regions.len().to_string())),
        ("Memory", machine.memory_bytes.map(fmt::bytes)),
        ("Hypervisor", of(|s| s.hypervisor.as_ref())),
        ("Kernel", of(|s| s.kernel.as_ref())),
        ("Clock", clock.map(|hz| format!("{hz}, steps of {step} cycles"))),
        ("Pages known", (known > 0).then(|| fmt::count(known))),
        ("Fingerprint", Some(format!("{:016x}", contents.fingerprint.hash))),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn footer(contents: &Contents) -> String {
    let from = &contents.provenance;
    format!("isochrone {}, seed {}, {}.", from.version, from.seed, words::machine::mark(contents))
}

/// Where JSON is that a page does not carry.
fn json_words(json: &str) -> String {
    let size = fmt::bytes(json.len() as u64);
    format!(" Its numbers as JSON ({size}) are left out here: `isochrone show --json` writes them.")
}

fn section(contents: &Contents, id: &str, heading: &str, prose: Vec<String>) -> Section {
    Section {
        id: id.into(),
        heading: heading.into(),
        badge: Some(reading(contents)),
        prose,
        figures: Vec::new(),
    }
}

/// Figures stand under the badge of their section and need none of their own, unless theirs is
/// another. A section without figures has read nothing, so it has no badge.
fn with(mut section: Section, figures: Vec<Figure>) -> Section {
    let badge = section.badge.clone();
    let bare = |figure: Figure| match badge.is_none() || figure.badge == badge {
        true => Figure { badge: None, ..figure },
        false => figure,
    };
    section.figures = figures.into_iter().map(bare).collect();
    if section.figures.is_empty() {
        section.badge = None;
    }
    section
}

fn of_lines(contents: &Contents, clusters: &Clusters) -> Section {
    let mut prose = vec![
        "A core does not reach every 64-byte line in the same time: lines are spread over slices \
         of the last-level cache and over memory channels, and some of these are nearer to it. \
         Near and far are meant from the core that asks; what is near one may be far from another."
            .to_owned(),
    ];
    let mut figures = Vec::new();
    let views = LevelView::all(contents);
    if views.is_empty() {
        prose = vec![words::absent(contents, Experiment::Block)];
    }
    for view in &views {
        let mut said = words::lines::near(view);
        said.extend(words::lines::form(view));
        said.extend(words::lines::bases(view));
        prose.push(said.join(" "));
        figures.extend(lines::strip_figure(contents, view));
        figures.extend(lines::class_figure(contents, view, clusters));
    }
    figures.extend(lines::histogram_figure(contents));
    figures.extend(lines::quality_figure(contents));
    with(section(contents, "lines", "Lines, near and far", prose), figures)
}

fn of_pages(contents: &Contents) -> Section {
    let views = LevelView::all(contents);
    let mut prose = vec![
        "What is known of a page fits in one byte, or ten bits: its class (how far it is as a whole, \
         and which pattern it has) and its key (how its lines are permuted). Both belong to the page \
         and stay; the pattern belongs to the core."
            .to_owned(),
        words::machine::pages(contents),
    ];
    prose.extend(words::machine::llc_shares(contents));
    let mut figures = Vec::new();
    if views.is_empty() {
        prose = vec![words::absent(contents, Experiment::Block)];
    }
    for view in &views {
        match pages::key_map(contents, view) {
            pages::Pages::Map(figure) => figures.push(*figure),
            pages::Pages::Words(words) => prose.push(words),
        }
        let said = words::lines::decoding(view).into_iter().chain(words::lines::score(view));
        prose.push(said.collect::<Vec<String>>().join(" "));
    }
    figures.extend(lines::decoding_figure(contents));
    with(section(contents, "pages", "Pages and their codes", prose), figures)
}

fn of_blocks(contents: &Contents) -> Section {
    let figures: Vec<Figure> =
        Level::ALL.iter().filter_map(|level| block_figure(contents, *level)).collect();
    let prose = if figures.is_empty() {
        let why = "No difference between lines is known, so there is nothing to draw.";
        let none = words::absent(contents, Experiment::Block);
        vec![if contents.levels.is_empty() { none } else { why.to_owned() }]
    } else {
        vec![
            "The Euro-Par paper drew this for a Xeon Phi and found a block up to 60 % slower from \
             one core than from another. The same picture for this machine:"
                .to_owned(),
        ]
    };
    let plain = section(contents, "blocks", "Consecutive blocks from each core", prose);
    let badge = figures.first().and_then(|figure| figure.badge.clone());
    with(Section { badge, ..plain }, figures)
}

fn of_cores(contents: &Contents, clusters: &Clusters) -> Section {
    let mut figures = matrices::transfer_figures(contents, clusters);
    let prose = if figures.is_empty() {
        words::cells::transfers(contents)
    } else {
        let mut all = vec![
            "How long a line takes from the core that has it to the core that asks. The line's \
             home decides too, so every cell is a median over many lines."
                .to_owned(),
        ];
        all.extend(clusters.words());
        all.extend(matrices::transfers_missing(contents));
        figures.extend(matrices::cluster_figure(contents, clusters));
        all
    };
    with(section(contents, "cores", "From core to core", prose), figures)
}

fn of_regions(contents: &Contents, clusters: &Clusters) -> Section {
    let figures = matrices::region_figures(contents, clusters);
    let prose = if figures.is_empty() {
        words::cells::regions(contents)
    } else {
        vec![
            "A chase in which every load's address comes from the load before it, so that nothing \
             overlaps. In random order it feels the TLB too; a stride or the lines of one class \
             of pages stay with a part of the memory."
                .to_owned(),
        ]
    };
    with(section(contents, "regions", "From core to region", prose), figures)
}

fn of_several(contents: &Contents) -> Section {
    let mut prose = words::cells::multiline(contents);
    let mut figures = several::multiline_figures(contents);
    figures.extend(several::interaction_figure(contents));
    figures.extend(several::term_figure(contents));
    let missing = contents.interactions.iter().filter(|one| one.ns.is_none()).count();
    if missing > 0 {
        prose.push(format!("{missing} interactions are missing; the table says why."));
    }
    with(section(contents, "several", "Several lines, several cores", prose), figures)
}

fn of_bandwidth(contents: &Contents) -> Section {
    let prose = words::cells::bandwidth(contents);
    let figures = several::bandwidth_figure(contents).into_iter().collect();
    with(section(contents, "bandwidth", "Bandwidth", prose), figures)
}

fn of_placement(contents: &Contents) -> Section {
    let figures: Vec<Figure> = placement::placement_figure(contents).into_iter().collect();
    let told = contents.placement.as_ref().is_none_or(|found| found.shape != "cannot tell");
    let prose = if told {
        words::run::placement(contents)
    } else {
        vec!["Where cores and controllers sit, as far as latencies alone can tell.".to_owned()]
    };
    let plain = section(contents, "placement", "Inferred floor plan", prose);
    let inferred = Section { badge: Some(placement::badge(contents)), ..plain };
    with(inferred, figures)
}

fn of_machine(contents: &Contents) -> Section {
    let machine = &contents.machine;
    let mut prose = vec![
        words::machine::parts(machine),
        words::machine::state(contents),
        words::machine::clock(&contents.clock),
    ];
    prose.extend(machine.caveats());
    let mut figures: Vec<Figure> = tables::state_figure(contents).into_iter().collect();
    figures.extend(tables::machine_figures(contents));
    figures.extend(tables::fingerprint_figure(contents));
    let plain = section(contents, "machine", "The machine and its state", prose);
    // Read from the system, not timed.
    with(Section { badge: None, ..plain }, figures)
}

fn of_drift(contents: &Contents) -> Section {
    let mut prose = words::run::drift(contents);
    if !contents.drift.is_empty() {
        prose.push(
            "A host may move a virtual CPU at any time. What was measured across a move is \
             dropped and done again, never averaged over."
                .to_owned(),
        );
    }
    let figures = tables::drift_figure(contents).into_iter().collect();
    with(section(contents, "drift", "What moved meanwhile", prose), figures)
}

fn of_run(contents: &Contents) -> Section {
    let mut prose = vec![words::run::provenance(contents)];
    if contents.provenance.missing.is_empty() {
        prose.push("Nothing was missing.".to_owned());
    }
    let mut figures = vec![tables::provenance_figure(contents)];
    figures.extend(tables::missing_figure(contents));
    with(Section { badge: None, ..section(contents, "run", "How it was made", prose) }, figures)
}
