//! The outputs of a small plan.

use isochrone_report::table::too_wide;
use isochrone_workloads::pspt::{Change, Plan};

use super::json::to_json;
use super::page::to_page;
use super::terminal::to_terminal;
use super::*;
use crate::Shown as _;
use crate::exhibit::{Count, Tests};
use isochrone_report::json::Format;

fn small() -> Reproduction {
    let plan = Plan {
        rows: 512,
        sweeps: 1,
        frames_of_a_worker: 128,
        window: 16,
        chunk: 16,
        most: 8,
        seed: 1,
        change: Change::None,
        beside: true,
    };
    pspt(&plan).unwrap()
}

#[test]
fn every_row_says_what_it_compares_and_whether_it_holds() {
    let all = small();
    let json = to_json(&all);
    isochrone_schemas::hold(Format::Pspt, &json).expect("as its schema says");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), all.rows.len());
    for row in rows {
        for key in ["id", "paper", "ours", "tolerance", "must", "tests", "narrow", "pass", "note"] {
            assert!(row.get(key).is_some(), "{key} in {row}");
        }
    }
    let fitted = rows.iter().find(|row| row["id"] == "table1/PSPT/8").unwrap();
    assert_eq!(fitted["pass"], true);
    assert_eq!(json["reading"], "simulated");
    let formula = rows.iter().find(|row| row["id"] == "figure8/PSPT/8").unwrap();
    assert_eq!((&formula["pass"], &formula["tests"]), (&true.into(), &"invariant".into()));
    let absent = rows.iter().find(|row| row["id"] == "table2/PSPT/128").unwrap();
    assert!(absent["pass"].is_null(), "not simulated, not judged");
    assert!(rows.iter().any(|row| row["ours"].is_null()), "128 threads are not in this plan");
}

#[test]
fn the_text_and_the_page_have_all_figures() {
    let all = small();
    for width in [60, 80, 120] {
        assert_eq!(too_wide(&to_terminal(&all, width), width), None);
    }
    let text = to_terminal(&all, 100);
    for words in ["Figure 6", "Figure 7", "Tables I and II", "Figure 8", "fitted on PSPT"] {
        assert!(text.contains(words), "{words}");
    }
    let page = to_page(&all).render();
    assert!(page.contains("<svg") && page.contains("table2/PSPT+pre-fetch/64"));
}

#[test]
fn each_row_says_what_it_tests_and_the_denominator_stands() {
    let all = small().exhibits();
    let count = |tests| Count::of(&all, tests).all();
    assert_eq!(Tests::ALL.map(count), [19, 23, 0, 11]);
    let of = |id: &str| all.iter().find(|e| e.id == id).unwrap();
    let off = of("figure7/hyper-threading off/regular scales up to");
    assert!(off.tolerance.ends_with("8: 8.00"), "16 does not pass: {}", off.tolerance);
    let on = of("figure7/hyper-threading on/regular scales up to");
    assert!(on.tolerance.contains("8.00 to 16.0"), "{}", on.tolerance);
    assert!(!all.iter().any(|e| e.id.starts_with("table1/8/")), "what-ifs are no exhibits");
}

#[test]
fn what_was_chosen_stands_among_the_constants() {
    let json = to_json(&small());
    let constants = json["constants"].as_array().unwrap();
    let standing = |name: &str| {
        let found = constants.iter().find(|c| c["name"] == name).map(|c| &c["standing"]);
        found.and_then(|s| s.as_str()).unwrap_or_default().to_owned()
    };
    assert_eq!(standing("pages evicted by a mover at once"), "in-sample");
    assert_eq!(standing("window of a mover"), "in-sample");
    for name in ["of it by one transfer", "frames that movers keep free"] {
        assert_eq!(standing(name), "assumed", "{name}");
    }
}

#[test]
fn a_miss_says_what_one_thing_changed_makes_of_it() {
    let all = small();
    let json = to_json(&all);
    let changes = json["changes"].as_array().unwrap();
    assert_eq!(changes.len(), Change::BESIDE.len(), "all are run");
    let cases = json["cases"].as_array().unwrap().len();
    assert!(changes.iter().all(|change| change["cases"].as_array().unwrap().len() == cases));
    // A row that holds with one change is explained by it, and one that no change moves to the paper's number is not.
    let exhibits = all.exhibits();
    for (at, row) in all.rows.iter().enumerate().filter(|(_, row)| row.asks()) {
        let exhibit = exhibits.iter().find(|exhibit| exhibit.id == row.id).unwrap();
        let single = all.changed.iter().filter(|(change, _)| change.is_single());
        let moved = single.clone().any(|(_, rows)| rows[at].pass == Some(true));
        let open = row.pass == Some(false) && !moved;
        assert_eq!(exhibit.reason.contains("unexplained"), open, "{}: {}", row.id, exhibit.reason);
        if row.pass == Some(false) && moved {
            assert!(row.note.contains(", which holds"), "{}: {}", row.id, row.note);
        }
    }
    assert!(all.rows.iter().any(|row| row.pass == Some(false)), "something misses in this plan");
}

#[test]
fn the_page_by_mechanism_has_each_judged_row_under_each_change() {
    let all = small();
    let text = all.markdown().expect("changes were run");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(lines.len(), 2 + all.exhibits().len());
    let heads = "| one-engine | free-hand-off | near-lines | half-hand-off | queue-lock | threads-by-issue | before |";
    assert!(lines[0].ends_with(heads), "{}", lines[0]);
    let fitted = lines.iter().find(|line| line.starts_with("| table1/PSPT/8 |")).unwrap();
    assert!(fitted.contains("| 38.00 |") || fitted.contains("| 38.0 |"), "{fitted}");
    assert!(fitted.contains(" * |"), "it holds: {fitted}");
    let plan = Plan { beside: false, ..all.simulated.plan };
    assert_eq!(pspt(&plan).unwrap().markdown(), None, "no change was run");
}
