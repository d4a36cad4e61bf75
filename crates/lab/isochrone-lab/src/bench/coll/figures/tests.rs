//! Rows agree with themselves, and tables have what was measured.

use super::*;
use crate::bench::fixtures::fits;

/// Times by arm: ours, again, the peer's.
type Arms = [Vec<Option<f64>>; 3];

/// A job in which every cell has these times.
fn job(arms: &Arms) -> Job {
    let times = |(_, cell): (_, Cell)| CellTimes {
        cell,
        block_ns: Arm::ALL.into_iter().zip(arms.clone()).collect(),
        samples: Vec::new(),
    };
    Job { cells: cells().into_iter().map(times).collect(), ..Job::default() }
}

/// Ours and the peer's, block by block.
fn blocks(ours: &[f64], theirs: &[f64]) -> Arms {
    let some = |ns: &[f64]| ns.iter().copied().map(Some).collect();
    [some(ours), some(ours), some(theirs)]
}

fn of(jobs: &[(&str, Arms)]) -> Figures {
    let mut figures = Figures::new(2, &[], &[XHC]);
    jobs.iter().for_each(|(peer, arms)| figures.add(peer, job(arms)));
    figures
}

#[test]
fn tables_fit_a_terminal() {
    let mut figures = of(&[("openmpi-sm", blocks(&[1234.5; 6], &[1234.5; 6]))]);
    fits(&figures);
    for cell in &mut figures.cells {
        (cell.inside_band, cell.t_min_ns, cell.t_max_ns) = (Some(0.5), Some(1234.5), Some(2345.6));
    }
    fits(&figures);
}

#[test]
fn a_round_without_a_time_takes_no_other_with_it() {
    let ours = [Some(1.0), None, Some(2.0), Some(4.0), Some(1.0)];
    let theirs = [Some(2.0), Some(9.0), Some(4.0), Some(8.0), None];
    let both = both(&theirs, &ours);
    assert_eq!(both, [vec![2.0, 4.0, 8.0], vec![1.0, 2.0, 4.0]]);
    assert_eq!(paired(&both).map(|ratio| ratio.median), Some(2.0));
}

#[test]
fn a_row_is_of_the_jobs_of_one_mpi() {
    // The cores were far from one another in the other one's jobs.
    let near = blocks(&[100.0, 110.0, 90.0], &[150.0, 165.0, 135.0]);
    let far = blocks(&[300.0; 3], &[400.0; 3]);
    let figures = of(&[("near", near), ("far", far)]);
    for cell in &figures.cells {
        assert_eq!((cell.best_peer.as_str(), cell.ours_ns, cell.peer_ns), ("near", 100.0, 150.0));
        assert!(cell.ratio.is_some_and(|ratio| (ratio.median - 1.5).abs() < 1e-12), "{cell:?}");
    }
}

#[test]
fn a_row_is_of_the_blocks_that_its_ratio_is_of() {
    let ours = vec![Some(100.0), Some(100.0), None, None, Some(100.0)];
    let theirs = vec![Some(120.0), None, Some(900.0), Some(900.0), Some(120.0)];
    let figures = of(&[("one", [ours.clone(), ours, theirs])]);
    let cell = &figures.cells[0];
    assert_eq!((cell.ours_ns, cell.peer_ns), (100.0, 120.0));
    assert!(cell.ratio.is_some_and(|ratio| ratio.blocks == 2 && ratio.median == 1.2), "{cell:?}");
}

#[test]
fn of_few_blocks_the_ratio_is_that_of_the_times_beside_it() {
    // Ours was interrupted in one, the peer in the other: the median of these ratios is 75.
    let figures = of(&[("one", blocks(&[1.0, 200.0], &[150.0, 1.0]))]);
    let cell = &figures.cells[0];
    let ratio = cell.ratio.unwrap_or_else(|| panic!("{cell:?}"));
    assert_eq!((cell.ours_ns, cell.peer_ns), (100.5, 75.5));
    assert!((ratio.median - 75.5 / 100.5).abs() < 1e-12, "{cell:?}");
    assert!(ratio.lo <= ratio.median && ratio.median <= ratio.hi, "{cell:?}");
}

#[test]
fn an_mpi_without_a_block_takes_no_cell_with_it() {
    let none = [vec![Some(1.0), None], vec![None, None], vec![None, Some(2.0)]];
    let figures = of(&[("none", none), ("one", blocks(&[1.0], &[2.0]))]);
    assert_eq!(figures.cells.len(), cells().len());
    let peers = &figures.cells[0].peers;
    assert!(peers["none"].is_none() && peers["one"].is_some(), "{peers:?}");
    assert_eq!(figures.cells_timed(), [cells().len(); 2]);
}

#[test]
fn of_one_block_nothing_is_judged() {
    let figures = of(&[("one", blocks(&[100.0], &[1.0]))]);
    assert!(figures.goals.iter().all(|goal| goal.met.is_none()), "{:?}", figures.goals);
    let text = figures.text(100);
    let all = cells().len();
    assert!(!text.contains("missed") && !text.contains(", met"), "{text}");
    assert!(text.contains(&format!("not known of {all}, which have too few blocks")), "{text}");
    let figures = of(&[("one", blocks(&[100.0; 5], &[1.0; 5]))]);
    assert!(figures.goals.iter().all(|goal| goal.met == Some(false)), "{:?}", figures.goals);
    let text = figures.text(100);
    assert!(text.contains(&format!("control: {all} of {all} cells;")), "{text}");
}

#[test]
fn columns_and_rows_without_a_value_are_left_out() {
    let mut figures = of(&[("one", blocks(&[1.0], &[2.0]))]);
    for width in [60, 80, 200] {
        let text = figures.text(width);
        assert!(!text.contains("T_min") && !text.contains("inside"), "{text}");
    }
    figures.cells[0].inside_band = Some(0.5);
    (figures.cells[0].t_min_ns, figures.cells[0].t_max_ns) = (Some(80.0), Some(120.0));
    let text = figures.text(80);
    let banded = text.split("T_min").nth(1).and_then(|rest| rest.split("goal:").next());
    let rows = banded.map(|rest| rest.lines().filter(|line| line.contains("bcast")).count());
    assert_eq!(rows, Some(1), "{text}");
    figures.cells.clear();
    assert_eq!(figures.text(80), "no cell has a time\n");
}
