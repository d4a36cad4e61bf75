//! The pager on a simulated many-core processor: the same directory, policies and drivers, in virtual
//! time. One thread drives all workers and movers, and a run is the same for one seed.
//!
//! The program is the paper's stencil (Gerofi et al., CCGrid 2013, section IV): two grids, static bands
//! of rows, sweeps from the first row to the last, a meeting after each.
//!
//! What differs from this machine's own reading is one thing. The paper's kernel unmaps a page from all tables
//! before it copies it, so that one round of interrupts is enough. Linux lets a program do so in its own tables; in
//! those of another process it can take the permission to write, and then free, which are two.

mod actor;
mod case;
mod lock;
mod program;
mod run;
mod world;

#[cfg(test)]
mod tests;

pub use case::{Case, Costs, Outcome, Part};
pub use run::{Stuck, run};
