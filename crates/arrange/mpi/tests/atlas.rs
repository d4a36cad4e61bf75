//! Teams of MPI programs by an atlas that can be used: only the atlas changes, and the shapes change with it.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod support;

use isochrone_atlas_store::contents::Fingerprint;
use isochrone_atlas_store::{MappedAtlas, made, save};
use isochrone_cla::choice::{Known, choose};
use isochrone_cla::live::{Kind, Usual, channel_plan};
use isochrone_cla::program::Rank;
use isochrone_mpi::{CONFIG_VARIABLE, ChosenShape, Config, Report};
use isochrone_places::Identity;
use isochrone_units::CoreId;
use std::path::{Path, PathBuf};
use support::{Program, at_once, finished, library};

/// Ranks of a job; more than cores, which the shapes do not know.
const RANKS: u16 = 6;
/// What lines take within each half of the cores, ns.
const NEAR_NS: f64 = 35.0;

/// An atlas of this machine by its fingerprint, of sixteen cores in two halves. From one half to the other a line
/// takes `far_ns`.
fn atlas(folder: &Path, name: &str, far_ns: f64) -> PathBuf {
    let us = Identity::of_this_machine().expect("this machine");
    let mut contents = made::halves(NEAR_NS, far_ns);
    contents.fingerprint = Fingerprint { words: us.words, hash: us.hash };
    let path = folder.join(name);
    save(&contents, &path).expect("room");
    path
}

/// Each rank on a core of its own, as far as shapes are concerned; neighbours by number are in different halves.
fn told(atlas: Option<PathBuf>) -> Config {
    let cores = (0..RANKS).map(|rank| rank % 2 * 8 + rank / 2).collect();
    Config { atlas, cores: Some(cores), ..at_once() }
}

/// What all ranks go by beside the usual rule.
fn agreed(reports: &[Report]) -> &[ChosenShape] {
    assert!(reports.iter().all(|report| report.communicators == 1), "{reports:?}");
    assert!(reports.iter().all(|report| report.shapes == reports[0].shapes), "{reports:?}");
    &reports[0].shapes
}

/// The way of reductions to rank 0, if it was chosen.
fn reduce(shapes: &[ChosenShape]) -> Option<&str> {
    shapes.iter().find(|one| one.call == "reduce" && one.root == 0).map(|one| one.way.as_str())
}

/// The way that the same choice gives outside of any MPI.
fn expected(atlas: &Path) -> String {
    let mapped = MappedAtlas::open(atlas).expect("it was saved");
    let cores = told(None).cores.expect("as they are told");
    let ranks: Vec<Vec<CoreId>> = cores.into_iter().map(|core| vec![CoreId(core)]).collect();
    let known = Known::of(&mapped.atlas().expect("sound"), &ranks).expect("all was measured");
    let usual = channel_plan(&Usual, Kind::Reduce, RANKS, Rank(0), 4).expect("it fits");
    let entry = choose(&usual, &known);
    let options = entry.options(&usual, &known.groups).expect("it fits");
    options.to_string()
}

#[test]
fn only_the_atlas_changes_and_so_do_the_shapes() {
    for program in Program::each("shapes.c") {
        let here = program.folder.path();
        let far = atlas(here, "far.atlas", 900.0);
        let reports = program.done(u32::from(RANKS), told(Some(far.clone())));
        let of_far = agreed(&reports).to_vec();
        let way = reduce(&of_far).unwrap_or_else(|| panic!("{}: {reports:?}", program.mpi));
        assert_eq!(way, expected(&far), "{}: what the distances choose", program.mpi);
        let canonical = far.canonicalize().expect("it was saved").display().to_string();
        assert_eq!(reports[0].atlas.as_deref(), Some(canonical.as_str()), "who chose says by what");
        let even = atlas(here, "even.atlas", NEAR_NS);
        let reports = program.done(u32::from(RANKS), told(Some(even)));
        let of_even = agreed(&reports);
        assert_ne!(of_even, of_far, "{}", program.mpi);
        assert!(of_even.iter().all(|shape| !shape.way.contains("groups")), "{of_even:?}");
        let none = program.done(u32::from(RANKS), told(Some("/no/such/file".into())));
        assert_eq!(agreed(&none), [], "the rule without distances");
    }
}

#[test]
fn ranks_with_other_atlases_or_none_obey_the_one_that_chose() {
    for program in Program::each("shapes.c") {
        let here = program.folder.path();
        let far = atlas(here, "far.atlas", 900.0);
        let even = atlas(here, "even.atlas", NEAR_NS);
        let alone = program.done(u32::from(RANKS), told(Some(far.clone())));
        let alone = agreed(&alone).to_vec();
        assert!(reduce(&alone).is_some(), "{alone:?}");
        let others = [Some(even), None, Some("/no/such/file".into())];
        let each = |first: Option<PathBuf>| {
            let of = |rank: u16| match rank {
                0 => first.clone(),
                rank => others[usize::from(rank) % 3].clone(),
            };
            (0..RANKS).map(of).collect::<Vec<_>>()
        };
        let mixed = each_told(&program, each(Some(far)));
        assert_eq!(agreed(&mixed), alone, "{}: as the first rank's atlas has it", program.mpi);
        let unknown = each_told(&program, each(None));
        assert_eq!(agreed(&unknown), [], "{}: the first rank has none", program.mpi);
    }
}

/// Runs a program whose ranks are told of an atlas each.
fn each_told(program: &Program, atlases: Vec<Option<PathBuf>>) -> Vec<Report> {
    let here = program.folder.path();
    let reports = here.join("reports");
    let _older = std::fs::remove_dir_all(&reports);
    std::fs::create_dir(&reports).expect("a folder");
    for (rank, atlas) in atlases.into_iter().enumerate() {
        let config = Config { reports: Some(reports.clone()), ..told(atlas) };
        let text = serde_json::to_string(&config).expect("plain");
        std::fs::write(here.join(format!("config.{rank}")), text).expect("room");
    }
    let script = format!(
        "export {CONFIG_VARIABLE}={}/config.${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}; exec \"$@\"",
        here.display()
    );
    let mut job = program.started(u32::from(RANKS), &["sh", "-c", &script, "sh"], &[]);
    job.env("LD_PRELOAD", library())
        // Nothing but what each is told of.
        .env_remove("ISOCHRONE_ATLAS")
        .env("XDG_CACHE_HOME", here.join("cache"))
        .current_dir(here);
    let output = finished(&mut job);
    program.ended(u32::from(RANKS), &output)
}
