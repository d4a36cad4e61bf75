//! That the program is right, and that the model says something about figures that it has not seen.

use super::{FIGURES, Flat, Terms, fit};
use crate::check::{STATES_MAX, check};

#[test]
fn the_flat_program_can_be_called_again() {
    let flat = Flat { ranks: 3 };
    let calls: Vec<_> = (0..3).map(|call| flat.record(call, call + 1)).collect();
    let checked = check(&calls, STATES_MAX).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(checked.delivered.len(), 2);
}

/// The smallest machine alone, for the time that it takes; `isochrone verify published` does all.
#[test]
fn figures_that_were_not_fitted_are_met_and_the_remote_reader_is_needed() {
    let skx = &FIGURES[2];
    let all = fit(skx, Terms::ALL).unwrap_or_else(|error| panic!("{error}"));
    let errors = all.errors();
    assert_eq!(errors.len(), 5);
    assert!(errors[2] <= 0.2, "{all:?}");
    let without = Terms { first_remote_reader: false, ..Terms::ALL };
    let without = fit(skx, without).unwrap_or_else(|error| panic!("{error}"));
    assert!(without.errors()[2] > errors[2], "{without:?}");
}
