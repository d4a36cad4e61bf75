//! Small runs on the paper's machine, and sweeps that were cut off.

use isochrone_papers::numa_aware::constants::constants;
use isochrone_papers::numa_aware::record::Key;
use isochrone_report::json::Format;
use isochrone_report::table::too_wide;
use isochrone_sim::coherence::{Class, Direction};
use isochrone_tasks::Regime;
use isochrone_workloads::numa::Bench;

use super::{machine, made, speed, sweep, words};
use crate::args::ColourChoice;
use isochrone_console::output::Terminal;

fn small(regime: Regime) -> Key {
    Key { paper_size: false, ..Key::new("bullion-s-16s", Bench::Inthist, regime, 32) }
}

#[test]
fn a_run_says_what_it_is_and_is_verified() {
    let (machine, spec) = machine("bullion-s-16s").expect("bundled");
    let record = made::make(&machine, &spec, &small(Regime::Di)).expect("possible");
    assert!(record.verified && record.seconds > 0.0);
    let lines = |way| record.count(&[Class::Dwb, Class::Dtc], way);
    assert_eq!(lines(Direction::In), lines(Direction::Out));
    assert_eq!(record.mode().0, 2, "interleaved data are everywhere, and never near");
    let json = words::to_json(&record, &constants(&machine));
    isochrone_schemas::hold(Format::Sim, &json).expect("as its schema says");
    for field in [
        "verified",
        "reading",
        "seed",
        "seconds",
        "touches_per_s",
        "free_constants",
        "fitted_cells",
    ] {
        assert!(!json[field].is_null(), "{field}");
    }
    assert_eq!(json["reading"], "simulated");
    let sum: f64 = Class::ALL.iter().map(|class| record.movement(Some(&[*class]))).sum();
    assert!((sum - record.movement(None)).abs() < 1.0, "bytes are the sum over classes");
    let terminal = Terminal::detect(ColourChoice::Never);
    for width in [60, 80, 120] {
        let terminal = Terminal { width: width.into(), ..terminal };
        let text = words::to_text(&record, &constants(&machine), &terminal);
        assert_eq!(too_wide(&text, width), None);
        let records = [(record.key.clone(), record.clone())].into();
        assert_eq!(too_wide(&sweep::table(&records).to_terminal(width), width), None);
        let speed = speed::Speed { key: record.key.clone(), runs: vec![record.clone()] };
        assert_eq!(too_wide(&speed::table(&[speed]).to_terminal(width), width), None);
    }
    let page = words::to_page(&record, &constants(&machine)).render();
    assert!(page.contains("DWB") && page.contains("simulated"));
}

#[test]
fn a_sweep_that_was_cut_off_does_the_rest_and_nothing_twice() {
    let (machine, spec) = machine("bullion-s-16s").expect("bundled");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sweep.jsonl");
    let keys = [small(Regime::Di), small(Regime::Naft)];
    let run =
        || sweep::sweep(&machine, &spec, &keys, Some(&file), Some(1), &|_, _| {}).expect("runs");
    let first = run();
    let text = std::fs::read_to_string(&file).expect("written");
    assert_eq!(text.lines().count(), 2);
    // A kill in the middle of the second line.
    std::fs::write(&file, &text[..text.len() - 40]).expect("writable");
    let mut second = run();
    let again = std::fs::read_to_string(&file).expect("written");
    assert_eq!(again.lines().count(), 3, "the half line, and the run that it was of");
    assert_eq!(again.lines().next(), text.lines().next(), "what was finished is not done again");
    for (key, record) in &mut second {
        record.host_seconds = first[key].host_seconds;
    }
    assert_eq!(first, second, "the same seed gives the same run");
}
