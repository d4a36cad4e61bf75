//! Wrong machine descriptions: each is refused at its line, with what was expected there.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use isochrone_host::{MachineFileError, machine_from_toml};
    use proptest::prelude::*;

    /// A small description that is right.
    const GOOD: &str = r#"name = "small"
title = "a small machine"
[[sources]]
id = "paper"
text = "a paper"
[[cores]]
ids = "0-3"
region = 0
package = 0
smt_siblings = "4-7"
source = "paper, section 1"
[[cores]]
ids = "4-7"
region = 1
package = 0
source = "paper"
[[regions]]
ids = "0-1"
kind = "ddr"
bytes = "1 GiB"
source = "paper"
[[caches]]
level = 1
kind = "data"
bytes = 32768
per = "core"
source = "paper"
[distances]
rows = [[10, 20], [20, 10]]
source = "paper"
[[controllers]]
name = "MC"
count = 2
region = 1
source = "paper"
[directories]
count = 4
source = "paper"
[interconnect]
kind = "ring"
bidirectional = true
stops = "c0 m0 d3 c1"
source = "paper"
[[costs]]
name = "hop"
what = "a hop"
unit = "ns"
assumed = 3
low = 1
high = 5
why = "a guess"
[[costs]]
name = "load"
what = "a load"
unit = "ns"
known = 80
min = 70
max = 90
source = "paper, Table 1"
[floor_plan]
rows = [[0, 1, "-"], [2, 3, 4]]
source = "paper"
[[grids]]
name = "latency"
what = "memory read latency"
unit = "ns"
rows = [[1.5, "?", "-"], [2, 3, 4]]
source = "paper"
[[grids.labels]]
cores = "0-1"
min = 1
[[grids]]
name = "listed"
what = "memory read latency"
unit = "ns"
list = [[0, 1.5], [7, 2]]
source = "paper"
"#;

    #[test]
    fn the_small_description_is_right_and_is_read_as_written() {
        let machine = machine_from_toml(GOOD, "small.toml").expect("right");
        assert_eq!(machine.cores[1].smt_siblings, [5]);
        assert_eq!(machine.cores[5].smt_siblings, [1]);
        assert_eq!(machine.caches.len(), 4, "threads of one core share its L1");
        assert_eq!(machine.caches[1].shared_by, [1, 5]);
        assert_eq!(
            machine.grids[0].cells,
            [Some(1.5), None, None, Some(2.0), Some(3.0), Some(4.0)]
        );
        assert_eq!(machine.grids[0].unreadable(), [1]);
        assert_eq!(machine.grids[1].unreadable(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(machine.memory_bytes, Some(2 << 30));
    }

    /// Replaces `old` by `new` and expects an error on a line of `new` that says `expected`.
    fn refused(old: &str, new: &str, expected: &str) {
        refused_at(old, new, new, expected);
    }

    /// The same where the error is to stand on another line: one that `at` names.
    fn refused_at(old: &str, new: &str, at: &str, expected: &str) {
        assert_eq!(GOOD.matches(old).count(), 1, "{old:?} must be there once");
        let text = GOOD.replace(old, new);
        let first = text[..text.find(at).expect("there")].matches('\n').count() + 1;
        let lines = first..=first + at.matches('\n').count();
        match machine_from_toml(&text, "small.toml") {
            Err(MachineFileError::At { file, line, column, problem }) => {
                assert_eq!(file, "small.toml");
                assert!(lines.contains(&line), "{new:?}: line {line}, not {lines:?}: {problem}");
                assert!(column >= 1);
                assert!(problem.contains(expected), "{new:?}: {problem:?} lacks {expected:?}");
            }
            other => panic!("{new:?} gave {other:?}"),
        }
    }

    #[test]
    fn words_that_do_not_exist() {
        refused("title =", "titel =", "unknown field `titel`, expected");
        refused("kind = \"ddr\"", "kind = \"sram\"", "unknown variant `sram`, expected one of");
        refused("per = \"core\"", "per = \"rack\"", "unknown variant `rack`");
        refused("name = \"hop\"\n", "name = \"hop\"\ncolour = 1\n", "unknown field `colour`");
        refused("bytes = \"1 GiB\"", "bytes = \"1 GB\"", "expected a number of bytes, or text");
        refused("name = \"small\"", "name = \"../small\"", "expected a name of letters");
    }

    #[test]
    fn text_that_is_not_toml_and_tables_that_are_not_whole() {
        refused("level = 1", "level = ?", "string values must be quoted");
        refused_at("level = 1\n", "", "[[caches]]", "missing field `level`");
        refused("bytes = 32768", "bytes = 1 2", "string values must be quoted");
    }

    #[test]
    fn names_that_are_there_twice_or_not_at_all() {
        refused_at("ids = \"0-1\"", "ids = \"1\"", "region = 0", "region 0 is not described");
        refused("region = 1\npackage", "region = 9\npackage", "region 9 is not described");
        refused_at(
            "name = \"load\"",
            "name = \"hop\"",
            "name = \"hop\"\nwhat = \"a load",
            "cost \"hop\" is described twice",
        );
        refused_at(
            "name = \"listed\"",
            "name = \"latency\"",
            "name = \"latency\"\nwhat = \"memory read latency\"\nunit = \"ns\"\nlist",
            "grid \"latency\" is described twice",
        );
        refused("ids = \"4-7\"", "ids = \"3-7\"", "core 3 is described twice");
        refused("source = \"paper, Table 1\"", "source = \"book\"", "expected one of: paper");
        refused("[[0, 1, \"-\"]", "[[0, 9, \"-\"]", "core 9 is not described");
        refused(
            "[2, 3, 4]]\nsource = \"paper\"\n[[grids]]",
            "[2, 2, 4]]\nsource = \"paper\"\n[[grids]]",
            "core 2 is drawn twice",
        );
        refused(
            "unit = \"ns\"\nlist",
            "unit = \"ns\"\nregion = 9\nlist",
            "region 9 is not described",
        );
        refused("[7, 2]]", "[0, 2]]", "core 0 has two numbers");
        refused("[7, 2]]", "[70, 2]]", "core 70 is not described");
        refused("stops = \"c0 m0", "stops = \"c0 c0", "stop \"c0\" is there twice");
        refused("stops = \"c0 m0", "stops = \"c0 m2", "stop \"m2\" is no part of this machine");
        refused("cores = \"0-1\"\nmin", "cores = \"0-5\"\nmin", "core 5 is not in this grid");
        refused("smt_siblings = \"4-7\"", "smt_siblings = \"4-6\"", "expected 4 siblings");
        refused(
            "smt_siblings = \"4-7\"",
            "smt_siblings = \"5-8\"",
            "expected another described core",
        );
    }

    #[test]
    fn numbers_that_cannot_be() {
        refused("bytes = 32768", "bytes = 0", "expected a size above 0");
        refused("bytes = 32768", "bytes = -5", "expected a size above 0");
        refused("count = 2", "count = 0", "expected a number of controllers above 0");
        refused("count = 2", "count = 2000", "expected at most 1024 controllers");
        refused("count = 4", "count = 70000", "in range, not 70000");
        refused("ids = \"0-3\"", "ids = \"3-0\"", "expected numbers such as");
        refused("ids = \"0-3\"", "ids = \"0-9999\"", "expected numbers below 8192");
        refused("rows = [[10, 20]", "rows = [[11, 20]", "expected 10, the distance of a region");
        refused("rows = [[10, 20]", "rows = [[10, 9]", "expected a distance from 10 to 255");
        refused("rows = [[10, 20]", "rows = [[10, 20, 20]", "expected 2 distances, not 3");
        refused("rows = [[10, 20], [20, 10]]", "rows = [[10, 20]]", "expected 2 rows");
        refused_at("low = 1", "low = 4", "assumed = 3", "expected low <= assumed <= high");
        refused("known = 80", "known = 91", "expected min <= known <= max");
        refused("known = 80", "known = -1", "at least 0");
        refused("known = 80", "known = nan", "at least 0");
        refused_at(
            "known = 80",
            "known = 80\nassumed = 2",
            "name = \"load\"",
            "exactly one of `known`",
        );
        refused("[[1.5, \"?\", \"-\"]", "[[-1.5, \"?\", \"-\"]", "expected a number above 0");
        refused("[[1.5, \"?\", \"-\"]", "[[inf, \"?\", \"-\"]", "expected a number above 0");
    }

    #[test]
    fn drawings_that_do_not_fit_the_floor_plan() {
        refused("[[1.5, \"?\", \"-\"]", "[[1.5, \"-\", \"-\"]", "core 1 is drawn here");
        refused("[[1.5, \"?\", \"-\"]", "[[1.5, \"?\", 7]", "nothing is drawn here");
        refused("[[1.5, \"?\", \"-\"]", "[[1.5, \"?\", \"x\"]", "expected a number, \"?\"");
        refused("[[1.5, \"?\", \"-\"]", "[[1.5, \"?\"]", "expected 2 cells");
        refused(
            "rows = [[1.5, \"?\", \"-\"], [2, 3, 4]]",
            "rows = [[2, 3, 4]]",
            "expected 2 rows of 3 cells",
        );
        refused_at("list = [[0, 1.5], [7, 2]]\n", "", "name = \"listed\"", "exactly one of `rows`");
        refused("[[0, 1, \"-\"]", "[[0.5, 1, \"-\"]", "expected a core's number");
    }

    #[test]
    fn fields_that_belong_to_another_kind() {
        refused_at(
            "bidirectional = true",
            "bidirectional = true\ncolumns = 3",
            "kind = \"ring\"",
            "no `columns`",
        );
        refused_at("bidirectional = true\n", "", "kind = \"ring\"", "expected `bidirectional`");
        refused_at("high = 5\n", "", "assumed = 3", "expected `low`, `high` and `why`");
        refused_at(
            "why = \"a guess\"",
            "why = \"a guess\"\nmax = 9",
            "name = \"hop\"",
            "has `max`",
        );
        refused_at("source = \"paper, Table 1\"\n", "", "known = 80", "expected a `source`");
    }

    #[test]
    fn columns_count_characters() {
        let text = GOOD.replace("unit = \"ns\"\nknown = 80", "unit = \"ns\"\n\"known\" = \"é\"");
        let error = machine_from_toml(&text, "f").expect_err("not a number").to_string();
        assert!(error.contains(":11: "), "{error}");
    }

    #[test]
    fn a_text_without_end_is_not_parsed() {
        let large = "#".repeat((1 << 20) + 1);
        let error = machine_from_toml(&large, "large.toml").expect_err("too large");
        assert!(matches!(error, MachineFileError::TooLarge { .. }), "{error}");
        let deep = format!("notes = {}", "[".repeat(100_000));
        assert!(machine_from_toml(&deep, "deep.toml").is_err());
    }

    /// What must hold for any text: an error points into the text, a machine is whole.
    fn check(text: &str) {
        match machine_from_toml(text, "f") {
            Err(MachineFileError::At { line, problem, .. }) => {
                assert!((1..=text.matches('\n').count() + 1).contains(&line), "line {line}");
                assert!(!problem.is_empty());
            }
            Err(MachineFileError::TooLarge { .. }) => {}
            Err(other) => panic!("{other}"),
            Ok(machine) => {
                let in_regions: usize = machine.regions.iter().map(|r| r.cores.len()).sum();
                assert_eq!(in_regions, machine.cores.len());
                for grid in &machine.grids {
                    assert_eq!(grid.cores.len(), grid.cells.len());
                }
                let _caveats = machine.caveats();
            }
        }
    }

    #[test]
    fn the_stored_corpus_of_the_fuzzer_is_replayed() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/machine_toml");
        let entries: Vec<_> = fs::read_dir(&folder).expect("the corpus is stored").collect();
        assert!(entries.len() >= 10, "{} has {} files", folder.display(), entries.len());
        for entry in entries {
            let bytes = fs::read(entry.expect("readable").path()).expect("readable");
            check(&String::from_utf8_lossy(&bytes));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(300)
        })]

        /// Any byte of a right description, replaced by anything.
        #[test]
        fn a_damaged_description_is_refused_or_whole(
            at in 0..GOOD.len(),
            with in "[ -~\n]{0,3}",
            cut in 0_usize..12,
        ) {
            let end = (at + cut).min(GOOD.len());
            check(&format!("{}{with}{}", &GOOD[..at], &GOOD[end..]));
        }

        #[test]
        fn any_text_at_all(text in "\\PC{0,200}") {
            check(&text);
        }
    }
}
