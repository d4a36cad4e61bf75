//! Claims of a small page, with files that agree and files that do not.

use std::path::Path;

use super::check::check;
use super::list::List;
use super::measure::{chosen, commands, one_of, quiet, redated, todo};

const PAGE: &str = "# A page\n\n| what | here | there |\n|---|---|---|\n| chase, 2 MiB | 1.14 to 1.17 | 0.70 |\n\
                    | sweep | 2.3 | |\n\nThe map takes 16 seconds.\n";

const LISTED: &str = r#"
[[machine]]
name = "here"
fingerprint = ["family: 25", "model: 17"]

[[claim]]
line = "chase"
column = 2
text = "1.14 to 1.17"
machine = "here"
date = "2026-11-22"
file = "chase.json"
values = [{ json = "/sizes/0/gain" }, { json = "/sizes/1/gain" }]
fold = "range"
made_by = ["bench", "chase"]

[[claim]]
line = "chase"
column = 3
text = "0.70"
date = "2026-11-22"
file = "chase.json"
values = [{ json = "/ours", over = "/theirs" }]

[[claim]]
line = "sweep"
text = "2.3"
date = "2026-11-21"
file = "tier.md"
values = [{ after = "| swap |" }]

[[claim]]
line = "The map takes"
text = "16"
date = "2026-11-21"
file = "tier.md"
values = [{ after = "seconds |" }]

[[plain]]
text = "2 MiB"
why = "a size that was asked for"
"#;

/// The folder with what was recorded.
fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    let chase = r#"{"sizes": [{"gain": 1.1702}, {"gain": 1.1351}], "ours": 0.35, "theirs": 0.5}"#;
    write("chase.json", chase).expect("written");
    write("tier.md", "| swap | 2.25 [2.2, 2.3] |\n| seconds | 15.57 |\n").expect("written");
    folder
}

fn wrong(page: &str, listed: &str, results: &Path) -> Vec<String> {
    check(page, &List::read(listed).expect("a list"), results)
}

#[test]
fn a_page_that_says_what_was_recorded_is_right() {
    let folder = recorded();
    assert_eq!(wrong(PAGE, LISTED, folder.path()), [""; 0]);
}

#[test]
fn every_kind_of_difference_is_one_line() {
    let folder = recorded();
    let one = |page: &str, words: &[&str]| {
        let all = wrong(page, LISTED, folder.path());
        let found = all.iter().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "{words:?}: {all:#?}");
    };
    one(&PAGE.replace("1.17", "1.18"), &["1.14 to 1.17", "column 2"]);
    one(&PAGE.replace("0.70 |", "0.70, 3.5 |"), &["3.5", "claimed by nothing"]);
    one(&PAGE.replace("| sweep", "| swoop"), &["not one line", "sweep"]);
    one(&PAGE.replace("2 MiB", "3 MiB"), &["2 MiB", "plain"]);
    one(&PAGE.replace("| sweep | 2.3 | |", "| sweep | | 2 |"), &["does not say \"2.3\""]);
    std::fs::write(folder.path().join("tier.md"), "| swap | 2.24 |\n| seconds | 15.57 |\n")
        .expect("written");
    one(PAGE, &["README says \"2.3\"", "tier.md has 2.24"]);
    std::fs::write(folder.path().join("tier.md"), "| swap | 2.3 |\n| swap | 2.3 |\n")
        .expect("written");
    one(PAGE, &["stands there more than once"]);
    one(PAGE, &["nothing says \"seconds |\""]);
    std::fs::remove_file(folder.path().join("chase.json")).expect("it was there");
    one(PAGE, &["0.70", "chase.json cannot be read"]);
}

#[test]
fn a_list_that_does_not_fit_itself_is_none() {
    let refused = |from: &str, to: &str| {
        let error = List::read(&LISTED.replace(from, to)).expect_err("it is refused");
        format!("{error:#}")
    };
    assert!(refused("{ after = \"| swap |\" }", "").contains("has 1 numbers, and 0"));
    assert!(
        refused("machine = \"here\"\ndate", "machine = \"nowhere\"\ndate").contains("no machine")
    );
    assert!(refused("{ after = \"| swap |\" }", "{ inverse = true }").contains("either"));
    assert!(refused("why = \"a size that was asked for\"", "why = \"\"").contains("without a why"));
    assert!(refused("fold = \"range\"", "fould = \"range\"").contains("no list of claims"));
}

#[test]
fn only_files_of_this_machine_that_a_command_makes_are_taken_again() {
    let list = List::read(LISTED).expect("a list");
    let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let here = words(&["vendor: x", "family: 25", "model: 17"]);
    assert_eq!(one_of(&list.machines, &here).map(|one| one.name.as_str()), Some("here"));
    assert!(one_of(&list.machines, &words(&["family: 25", "model: 18"])).is_none());
    let all: Vec<_> = list.claims.iter().collect();
    let made = commands(&all);
    assert_eq!(made.keys().copied().collect::<Vec<_>>(), ["chase.json"]);
    assert_eq!(made["chase.json"], ["bench", "chase"]);
}

#[test]
fn the_day_is_changed_where_a_file_was_taken_again_and_nowhere_else() {
    let text = redated(LISTED, &["chase.json"], "2026-11-27");
    assert_eq!(text.matches("date = \"2026-11-27\"").count(), 2);
    assert_eq!(text.matches("date = \"2026-11-21\"").count(), 2);
    assert_eq!(text.replace("2026-11-27", "2026-11-22"), LISTED);
}

#[test]
fn files_are_chosen_by_words_of_their_names_and_a_word_of_none_is_wrong_usage() {
    let list = List::read(LISTED).expect("a list");
    let all: Vec<_> = list.claims.iter().collect();
    let of = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        chosen(commands(&all), &words).map(|found| found.into_keys().collect::<Vec<_>>())
    };
    assert_eq!(of(&[]).expect("all"), ["chase.json"]);
    assert_eq!(of(&["chase"]).expect("one"), ["chase.json"]);
    for wrong in [&["tier"][..], &["chase", "tier"], &[""]] {
        let why = of(wrong).expect_err("tier.md has no command").to_string();
        assert!(why.contains("chase.json"), "{why}");
    }
}

#[test]
fn recorded_files_are_replaced_on_a_quiet_machine_alone() {
    assert!(quiet(Some([0.4, 9.0, 9.0])).is_ok() && quiet(None).is_ok());
    let why = quiet(Some([3.2, 0.0, 0.0])).expect_err("it does other work").to_string();
    assert!(why.contains("load 3.2") && why.contains("--out"), "{why}");
}

#[test]
fn what_is_left_to_do_is_said_at_the_end() {
    let kept = Some(Path::new("target/claims"));
    assert!(todo(0, None).contains("nothing is left"));
    assert!(todo(0, kept).contains("target/claims") && todo(2, kept).contains("as they were"));
    let by_hand = todo(2, None);
    assert!(by_hand.contains("claims --check") && by_hand.contains("git checkout"), "{by_hand}");
}
