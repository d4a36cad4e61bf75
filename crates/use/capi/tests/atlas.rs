//! Teams of programs in C by an atlas that can be used: only the atlas changes, and how calls are done changes with it.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

mod support;

use isochrone_atlas_store::contents::Fingerprint;
use isochrone_atlas_store::{made, save};
use isochrone_places::Identity;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Program, SHARED};

/// Ranks of every team; each other one is on the other half of the cores.
const RANKS: u16 = 12;
/// What lines take within each half, ns.
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

/// What each rank goes by, by the number of the question: all say the same.
fn agreed(said: &str) -> BTreeMap<usize, String> {
    let mut ranks = BTreeMap::<usize, Vec<&str>>::new();
    for line in said.lines() {
        let mut words = line.splitn(3, ' ').skip(1);
        let at = words.next().and_then(|at| at.parse().ok()).expect("a number");
        ranks.entry(at).or_default().push(words.next().expect("a way"));
    }
    let one = |(at, ways): (usize, Vec<&str>)| {
        assert_eq!(ways.len(), usize::from(RANKS), "{said}");
        assert!(ways.iter().all(|way| *way == ways[0]), "{said}");
        (at, ways[0].to_owned())
    };
    ranks.into_iter().map(one).collect()
}

/// How often a tree goes from one half to the other: ranks of one half are even, of the other odd.
fn crossings(way: &str) -> usize {
    let tree = way.split(';').next().expect("a tree");
    let (mut above, mut last, mut found) = (Vec::<u32>::new(), None, 0);
    for token in tree.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = token.trim_end_matches(|c: char| !c.is_ascii_digit());
        if let Ok(rank) = digits.parse::<u32>() {
            found += usize::from(above.last().is_some_and(|parent| parent % 2 != rank % 2));
            last = Some(rank);
        }
        match token.chars().next_back() {
            Some('(') => above.extend(last),
            Some(')') => drop(above.pop()),
            _ => {}
        }
    }
    found
}

#[test]
fn crossings_of_a_tree_are_counted() {
    assert_eq!(crossings("0(2(4) 1(3 5(6)))"), 2);
    assert_eq!(crossings("0(1 2 3); chunks of 1 lines"), 2);
}

// The questions of the program: a word to all, a word from all, a barrier, a long message to all.
const BROADCAST: usize = 0;
const REDUCE: usize = 1;
const BARRIER: usize = 2;
const LONG: usize = 3;

#[test]
fn only_the_atlas_changes_and_so_does_the_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::build("cc", &["-std=c99"], "tests/programs/teams_plan.c", SHARED);
    let ranks = RANKS.to_string();
    let by = |atlas: &Path| {
        let variables = [("ISOCHRONE_ATLAS", atlas.to_str().expect("plain"))];
        let output = program.run_with(&["threads", &ranks], variables);
        agreed(&String::from_utf8_lossy(&output.stdout))
    };
    let usual = by(Path::new("/no/such/file"));
    let even = by(&atlas(folder.path(), "even.atlas", NEAR_NS));
    let far = by(&atlas(folder.path(), "far.atlas", 900.0));
    // The usual tree of neighbours by number goes to and fro.
    assert!(crossings(&usual[&BROADCAST]) > 3 && crossings(&usual[&REDUCE]) > 3, "{usual:?}");
    for at in [BROADCAST, REDUCE, LONG] {
        assert_ne!(far[&at], usual[&at], "{at}");
    }
    // Where the other half is far, one line goes there for all of it.
    assert_eq!(crossings(&far[&REDUCE]), 1, "{far:?}");
    // Or all read the root's line at once, as long as the farthest takes: one word has no second step then.
    let groups = "a line for each of the groups 0 1 0 1 0 1 0 1 0 1 0 1";
    let flat = "0(1 2 3 4 5 6 7 8 9 10 11)";
    let ways = [groups, flat];
    let is_one_of = ways.iter().any(|way| far[&BROADCAST].contains(way));
    assert!(crossings(&far[&BROADCAST]) == 1 || is_one_of, "{far:?}");
    // All cores are alike: nothing is to be gained by groups.
    assert!(even.values().all(|way| !way.contains("groups")), "{even:?}");
    assert_ne!(even[&REDUCE], far[&REDUCE]);
    assert_eq!(
        [&usual, &even, &far].map(|ways| ways[&BARRIER].split(';').next()),
        [Some("exchange"); 3]
    );
}

#[test]
fn processes_with_other_atlases_or_none_obey_the_one_that_chose() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::build("cc", &["-std=c99"], "tests/programs/teams_plan.c", SHARED);
    let paths = [("far", 900.0), ("even", NEAR_NS)];
    let [far, even] = paths.map(|(name, ns)| atlas(folder.path(), name, ns).display().to_string());
    let ranks = RANKS.to_string();
    let run = |words: &[&str], atlas: &str| {
        let output = program.run_with(words, [("ISOCHRONE_ATLAS", atlas)]);
        agreed(&String::from_utf8_lossy(&output.stdout))
    };
    for (founder, others) in [(&far, [even.as_str(), "-"]), (&even, [far.as_str(), "-"])] {
        let alone = run(&["threads", &ranks], founder);
        let mixed = run(&["found", &ranks, others[0], others[1]], founder);
        assert_eq!(alone, mixed, "as the founder's atlas has it");
    }
    // A founder without one: whatever the others have, all go by the rule without distances.
    let usual = run(&["threads", &ranks], "/no/such/file");
    assert_eq!(run(&["found", &ranks, &far, &even], "/no/such/file"), usual);
}
