//! Who must wait for whom. A task's children are registered by that task alone, in the order of its
//! program, so its [`Domain`] needs no lock; what finishing tasks do to one another is in [`release`].

mod domain;
mod release;
mod segments;

pub(crate) use domain::Domain;
