//! The reproduction over a small plan: what must stand in it, in every form.

use std::sync::LazyLock;

use isochrone_report::table::too_wide;
use isochrone_workloads::figure4::{Plan, SearchPlan};

use super::json::to_json;
use super::page::to_page;
use super::terminal::to_terminal;
use super::*;
use crate::Shown as _;
use crate::exhibit::{Count, Tests};
use isochrone_report::json::Format;
use isochrone_report::term::Colour;
use isochrone_units::Reading;

/// Few cores and few nodes, so that it takes no time; its gains mean nothing.
fn small() -> Reproduction {
    static SMALL: LazyLock<Reproduction> = LazyLock::new(made);
    SMALL.clone()
}

fn made() -> Reproduction {
    let plan = Plan {
        cores: vec![4, 8, 12],
        repeats: 1,
        searches: vec![
            SearchPlan::Linear { nodes: 600, expansions: 1 },
            SearchPlan::Hashed { before: 500, nodes: 1500 },
        ],
        learnt_at: vec![1, 8],
        orders: 1,
        ..Plan::paper(3)
    };
    hidden_numa(None, None, &plan).expect("the paper's machine is bundled")
}

#[test]
fn every_figure_stands_under_its_own_reading() {
    let all = small();
    let text = to_terminal(&all, Colour::None, 100);
    for words in ["Figure 2", "Figure 4a", "Figure 4b", "simulated", "published", "assumed"] {
        assert!(text.contains(words), "{words} is missing:\n{text}");
    }
    assert!(text.contains("isochrone bench astar"), "how to get the measured side:\n{text}");
    assert!(text.contains("isochrone map"), "how to get an atlas:\n{text}");
    assert!(!text.contains("NaN"), "{text}");
    for width in [60, 80, 120] {
        assert_eq!(too_wide(&to_terminal(&all, Colour::None, width), width), None);
    }
    let json = to_json(&all);
    isochrone_schemas::hold(Format::HiddenNuma, &json).expect("as its schema says");
    assert!(json["figure4"]["measured"].is_null() && json["figure2"]["measured"].is_null());
    let curves = json["figure4"]["simulated"].as_array().expect("curves");
    assert_eq!(curves.len(), 2);
    for curve in curves {
        assert_eq!(curve["reading"], "simulated");
        assert_eq!(curve["points"].as_array().map(Vec::len), Some(3));
        for point in curve["points"].as_array().expect("points") {
            let ends = point["gain_at_assumed_hops"].as_array().expect("both ends");
            // Caches hold so few nodes: a dearer hop need not be more to gain here.
            assert!(ends.iter().all(|end| end.as_f64().is_some_and(f64::is_finite)), "{ends:?}");
            assert_eq!(ends.len(), 2);
        }
    }
    let learnt = &json["figure4"]["learnt"];
    assert_eq!(learnt["reading"], "simulated");
    let right = learnt["knowledge"][0]["pages_with_right_code"].as_f64().expect("a share");
    // The preset's noise leaves few pages unclear.
    assert!(right > 0.99, "{right}");
    for point in learnt["curves"]
        .as_array()
        .expect("shapes")
        .iter()
        .flat_map(|curve| curve["points"].as_array().expect("points"))
    {
        let near = |arm: &str| point["near_share"][arm]["median"].as_f64().expect("a share");
        assert!(near("oblivious") < 0.4 && near("oblivious") < near("learnt"), "{point}");
        assert!(near("learnt") <= near("oracle") + 0.02, "{point}");
        let part = &point["near_share_of_oracle"];
        assert!(part["learnt"]["median"].is_f64() && part["goal"].is_string(), "{point}");
        assert!(point["time_over_oblivious"]["again"]["median"].is_f64(), "{point}");
    }
    let page = to_page(&all).render();
    assert!(
        page.contains("Figure 4a")
            && page.contains("beside the oracle")
            && page.contains("simulated")
    );
}

#[test]
fn the_published_gains_lie_between_the_ends_or_do_not() {
    let mut all = small();
    let curve = &mut all.simulated.curves[0];
    curve.points.truncate(2);
    (curve.points[0].cores, curve.points[1].cores) = (12, 56);
    let ends = |gains| Ends { hop_cycles: [1.0, 5.0], gains };
    assert_eq!(ends(&[[0.1, 0.3], [0.1, 0.3]]).hold_published(curve), Some(true));
    // 28 % at 56 cores is beyond the second, 17 % at 12 below the first.
    assert_eq!(ends(&[[0.1, 0.3], [0.1, 0.27]]).hold_published(curve), Some(false));
    assert_eq!(ends(&[[0.2, 0.3], [0.1, 0.3]]).hold_published(curve), Some(false));
    (curve.points[0].cores, curve.points[1].cores) = (4, 8);
    assert_eq!(ends(&[[0.1, 0.3], [0.1, 0.3]]).hold_published(curve), None);
}

#[test]
fn one_seed_gives_one_figure() {
    assert_eq!(to_json(&small()), to_json(&made()));
}

#[test]
fn one_line_that_was_timed_wrongly_is_no_spread() {
    let line = |from: f64| (0..128).map(move |i| from + 0.002 * f64::from(i % 10)).collect();
    let mut blocks = Blocks {
        level: isochrone_units::Level::Dram,
        first_frame: None,
        cores: vec![(0, line(1.0)), (1, line(1.5))],
        fastest_ns: 100.0,
        what: "made up".into(),
        reading: Reading::Measured,
    };
    let near = |found: Option<f64>, wanted: f64| (found.unwrap() / wanted - 1.0).abs() < 0.005;
    assert!(near(spread(&blocks), 1.518) && near(spread_of_a_block(&blocks), 1.5));
    // A core was taken away in the middle of one load.
    blocks.cores[0].1[17] = 7.41;
    assert!(near(spread(&blocks), 1.518), "{:?}", spread(&blocks));
    assert!(near(spread_of_a_block(&blocks), 1.5), "{:?}", spread_of_a_block(&blocks));
    // What a twentieth of all blocks or more shows is one.
    (0..20).for_each(|block| blocks.cores[1].1[block] = 3.0);
    assert!(spread_of_a_block(&blocks) > Some(2.9));
}

#[test]
fn each_row_says_what_it_tests_and_the_denominator_stands() {
    let all = small().exhibits();
    let count = |tests| Count::of(&all, tests).all();
    assert_eq!(Tests::ALL.map(count), [10, 0, 1, 0]);
    let input = all.iter().find(|e| e.tests == Tests::Input).unwrap();
    assert_eq!(input.holds, Some(true), "the hop follows from the spread: {input:?}");
    let at_12 = all.iter().find(|e| e.id == "figure4a/hashed/12 cores").unwrap();
    assert_eq!(at_12.ours.all().len(), 2, "both ends of an interval: {at_12:?}");
    assert!(at_12.reason.contains("nearest quarter"), "ours stands beside: {at_12:?}");
    let at_56 = all.iter().find(|e| e.id == "figure4a/linear/56 cores").unwrap();
    assert_eq!((at_56.holds, at_56.reason.contains("not all of it was run")), (None, true));
}
