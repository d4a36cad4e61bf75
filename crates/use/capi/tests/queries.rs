//! What a program in C asks of an atlas, against an atlas whose numbers are known.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod support;

use std::fs;

use isochrone_atlas_store::contents::{Base, Fingerprint, Form, Graded, PageBlock, RegionMap};
use isochrone_atlas_store::{made, save};
use isochrone_places::Identity;
use isochrone_units::{CoreId, Experiment, Grade, RegionId};
use support::{Program, SHARED};

const FIRST_FRAME: u64 = 512;
/// The page's code in the last-level cache.
const CODE: u16 = 5;

/// Sixteen cores in two halves, a region, and a page whose line `i` is `100 + (i XOR 5)` cycles of 0.5 ns away.
fn contents() -> isochrone_atlas_store::contents::Contents {
    let mut contents = made::halves(35.0, 90.0);
    let cores = (0..16).map(CoreId);
    let cell = |core: CoreId| Some(made::cell(100.0 + f64::from(core.0)));
    contents.regions.push(RegionMap::of_chase(
        "random",
        1 << 20,
        cores.clone(),
        [RegionId(0)],
        cores.map(cell).collect(),
    ));
    let mut level = made::flat_level("llc", 50.0, &contents);
    level.form = Form::Pattern;
    let pattern = (0_u8..64).map(|i| 100.0 + f32::from(i)).collect();
    level.bases = vec![Base { core: 0, patterns: vec![pattern], rounds: 1 }];
    contents.levels.push(level);
    contents.pages_keyed_by = "guest frames".to_owned();
    let of = |code: u16| Box::new(std::array::from_fn(|at| if at == 0 { code } else { u16::MAX }));
    contents.pages =
        vec![PageBlock { first_frame: FIRST_FRAME, llc: of(CODE), dram: of(u16::MAX) }];
    let graded = Graded { grade: Grade::Disturbed, reason: "made up".to_owned() };
    contents.quality.insert(Experiment::Transfer, graded);
    contents
}

#[test]
fn numbers_come_out_as_they_were_put_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.atlas");
    save(&contents(), &path).expect("room");
    let build = |options: &[&str]| Program::build("cc", options, "examples/atlas.c", SHARED);
    let address = (FIRST_FRAME * 4096 + 2 * 64 + 9).to_string();
    let wanted = "16 cores; line transfers graded 2\n\
        a line from core 1: 35.0 ns [34.0, 36.0], measured\n\
        a line from core 2: 35.0 ns [34.0, 36.0], measured\n\
        a line from core 3: 35.0 ns [34.0, 36.0], measured\n\
        memory of region 0: 100.0 ns [99.0, 101.0], measured\n\
        memory of region 0: not known\n\
        level 0: bin 7, 53.5 ns\n\
        level 1: bin -1, nan ns\n";
    for sanitizer in [None, Some("-fsanitize=address"), Some("-fsanitize=thread")] {
        let options: Vec<&str> = ["-std=c99"].into_iter().chain(sanitizer).collect();
        let said = build(&options).run(&[&path.display().to_string(), &address]).stdout;
        assert_eq!(String::from_utf8_lossy(&said), wanted, "{sanitizer:?}");
    }
}

#[test]
fn wrong_questions_are_refused_or_have_no_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let [ours, others, none] = ["ours", "others", "none"].map(|name| folder.path().join(name));
    save(&contents(), &others).expect("room");
    let us = Identity::of_this_machine().expect("this machine");
    let fingerprint = Fingerprint { words: us.words, hash: us.hash };
    save(&isochrone_atlas_store::contents::Contents { fingerprint, ..contents() }, &ours)
        .expect("room");
    fs::write(&none, "no atlas").expect("room");
    let program = Program::build("cc", &["-std=c99"], "tests/programs/wrong_queries.c", SHARED);
    let words = [ours, others, none].map(|path| path.display().to_string());
    program.run(&[&words[0], &words[1], &words[2]]);
}
