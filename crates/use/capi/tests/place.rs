//! Memory near cores for programs in C and C++: by an atlas of this machine whose lines are all alike, so that nothing
//! has to be timed; by none; and by one that promises nothing.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod support;

use isochrone_atlas_store::contents::Fingerprint;
use isochrone_atlas_store::{made, save};
use isochrone_places::Identity;
use std::path::Path;
use std::process::Command;
use support::{Program, SHARED};

/// More cores than any machine that these run on.
const CORES: u16 = 512;
/// What is said where the atlas tells no lines apart.
const NO_GAIN: &str = "nothing is placed: the atlas predicts a gain of 1.00\n";

/// An atlas of this machine by its fingerprint, in which every line is as far from every core.
fn atlas(folder: &Path) -> String {
    let us = Identity::of_this_machine().expect("this machine");
    let mut contents = made::lines(CORES, |_, _| None, &[]);
    contents.fingerprint = Fingerprint { words: us.words, hash: us.hash };
    contents.levels =
        vec![made::flat_level("llc", 50.0, &contents), made::flat_level("dram", 50.0, &contents)];
    let path = folder.join("alike.atlas");
    save(&contents, &path).expect("room");
    path.display().to_string()
}

/// What the program says by this atlas.
fn said(program: &Program, arguments: &[&str], atlas: &str) -> String {
    let output = program.run_with(arguments, [("ISOCHRONE_ATLAS", atlas)]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const VERSION: &str = concat!("libisochrone ", env!("CARGO_PKG_VERSION"));

#[test]
fn the_example_in_c_places_by_an_atlas_and_does_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::build("cc", &["-std=c99"], "examples/place.c", SHARED);
    let atlas = atlas(folder.path());
    let end = |threads, nodes| {
        format!("{VERSION}: {threads} threads, {nodes} nodes placed, all as it should be\n")
    };
    let far = "a node, core 0: 50.0 ns in the cache, 50.0 ns in memory (predicted)\n";
    for threads in [1, 3] {
        let number = threads.to_string();
        let forced = said(&program, &[&number, "force"], &atlas);
        assert_eq!(forced, far.to_owned() + &end(threads, threads * 20_000));
        assert_eq!(said(&program, &[&number], &atlas), NO_GAIN.to_owned() + &end(threads, 0));
        let without = said(&program, &[&number, "force"], "/no/such/file");
        let (why, rest) = without.split_once('\n').expect("a line");
        assert!(why.starts_with("nothing is placed: ") && why.contains("/no/such/file"), "{why}");
        assert_eq!(rest, end(threads, 0));
    }
}

#[test]
fn the_archive_serves_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let needs = "LIBRARIES/libisochrone.a -lgcc_s -lpthread -lrt -lm -ldl";
    let program = Program::build("cc", &["-std=c11"], "examples/place.c", needs);
    let forced = said(&program, &["2", "force"], &atlas(folder.path()));
    assert!(forced.ends_with("2 threads, 40000 nodes placed, all as it should be\n"), "{forced}");
}

#[test]
fn what_is_wrong_is_refused_and_structures_may_be_of_another_age() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::build("cc", &["-std=c99"], "tests/programs/wrong_place.c", SHARED);
    said(&program, &[], &atlas(folder.path()));
}

/// Whether a compiler can be started. In the gate both can.
fn is_there(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok()
}

#[test]
fn the_example_in_cpp_is_for_every_compiler_that_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let atlas = atlas(folder.path());
    let compilers: Vec<&str> =
        ["g++", "clang++"].into_iter().filter(|name| is_there(name)).collect();
    assert!(!compilers.is_empty(), "no compiler of C++: install g++ or clang");
    for (compiler, standard) in
        compilers.iter().flat_map(|name| [(*name, "-std=c++17"), (*name, "-std=c++20")])
    {
        let program = Program::build(compiler, &[standard], "examples/place.cpp", SHARED);
        let forced = said(&program, &["force"], &atlas);
        let placed = forced.strip_prefix(&format!("{VERSION}: ")).expect("only that line");
        let (objects, rest) = placed.split_once(' ').expect("a number");
        // Nodes of both containers, and the text of each name.
        assert!(objects.parse::<u32>().expect("a number") >= 15_000, "{forced}");
        assert_eq!(rest, "objects placed, all as it should be\n");
        let aside = said(&program, &[], &atlas);
        assert_eq!(aside, format!("{NO_GAIN}{VERSION}: 0 objects placed, all as it should be\n"));
    }
}
