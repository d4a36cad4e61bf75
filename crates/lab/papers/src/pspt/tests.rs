//! The outputs of a small plan.

use isochrone_report::table::too_wide;
use isochrone_workloads::pspt::Plan;

use super::json::to_json;
use super::page::to_page;
use super::terminal::to_terminal;
use super::*;

fn small() -> Reproduction {
    let plan = Plan {
        rows: 512,
        sweeps: 1,
        frames_of_a_worker: 128,
        window: 16,
        chunk: 16,
        most: 8,
        seed: 1,
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
        for key in ["id", "paper", "ours", "tolerance", "must", "pass", "note"] {
            assert!(row.get(key).is_some(), "{key} in {row}");
        }
    }
    let fitted = rows.iter().find(|row| row["id"] == "table1/PSPT/8").unwrap();
    assert_eq!(fitted["pass"], true);
    assert_eq!(json["reading"], "simulated");
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
