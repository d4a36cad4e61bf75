//! That the paper's numbers stand where they should, and that ours follow from them.

use crate::Shown as _;
use crate::exhibit::{Count, Tests};
use isochrone_report::table::too_wide;

use super::{cla, most_over_flat, page::to_page, shown::to_json, tables::to_terminal};

#[test]
fn published_numbers_stand_beside_ours() {
    let all = cla(None, &[2, 4, 8, 12, 16]).unwrap_or_else(|error| panic!("{error:#}"));
    let published: Vec<_> = all.latencies.iter().map(|b| b.published).collect();
    assert_eq!(published, [2.3, 35.0, 94.0, 70.0, 107.0].map(Some));
    let table1: Vec<_> = all.table1.iter().map(|b| b.published).collect();
    assert_eq!(table1, [63.4, 11.1, 0.0, 0.8, 180.65, 7.5, 3.0, 0.91].map(Some));
    // Added up by hand in the tests of the predictor.
    assert!((all.figure2[0].min.total_ns - 671.9).abs() < 0.06, "{}", all.figure2[0].min.total_ns);
    for row in &all.figure3 {
        assert!(row.ours.holds(row.simulated_ns), "{row:?}");
        assert!(row.printed.min_ns <= row.flat_ns, "{row:?}");
        assert!(row.one_line.holds(row.one_line_simulated_ns), "{row:?}");
        let [little, much] = row.in_turn.map(|one| one.hmpi_simulated_ns);
        assert!(row.hmpi[1].simulated_ns <= little && little <= much, "{row:?}");
        let [before, both] = row.hmpi.map(|one| one.min_ns);
        assert!(before < both && row.printed.min_ns < both, "{row:?}");
        if row.threads <= 8 {
            assert_eq!(row.one_line_simulated_ns, row.simulated_ns, "one socket, one line");
        }
    }
    let json = to_json(&all);
    isochrone_schemas::hold(all.format(), &json).expect("as its schema says");
    let ratio = json["flat_over_chosen_at_most"].as_f64();
    assert_eq!(ratio, Some(most_over_flat(&all).value()));
    assert!(ratio >= Some(1.0), "the flat tree is one of the candidates");
    assert_eq!(json["figure3"].as_array().map(Vec::len), Some(5));
    let text = to_terminal(&all, 100);
    assert!(text.contains("no atlas") && text.contains("Table 1"), "{text}");
    for width in [60, 80, 120] {
        assert_eq!(too_wide(&to_terminal(&all, width), width), None);
    }
    let page = to_page(&all).render();
    assert!(page.contains("Figure 2") && page.contains("<svg"), "a page with pictures");
}

#[test]
fn each_row_says_what_it_tests_and_how_narrow_it_is() {
    let all = cla(None, &[2, 4, 16]).unwrap_or_else(|error| panic!("{error:#}")).exhibits();
    let count = |tests| Count::of(&all, tests).all();
    assert_eq!(Tests::ALL.map(count), [2, 0, 13, 1]);
    let band = all.iter().find(|e| e.tests == Tests::Invariant).unwrap_or_else(|| panic!("one"));
    assert!(band.tolerance.contains("a factor of"), "how wide the band is: {}", band.tolerance);
    assert_eq!(band.holds, Some(true), "it follows from the rules: {band:?}");
    let inputs = all.iter().filter(|e| e.tests == Tests::Input);
    assert!(inputs.into_iter().all(|e| e.holds.is_none()), "an input has no verdict");
    let mpi = all.iter().find(|e| e.id.contains("MPI")).map(|e| e.holds);
    assert_eq!(mpi, Some(None), "what no model knows does not hold");
}
