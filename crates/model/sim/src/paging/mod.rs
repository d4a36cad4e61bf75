//! A many-core processor under a pager: hardware threads that share issue slots, page tables, translation
//! buffers, interrupts from core to core, and engines that copy pages. Time is virtual, in cycles.
//!
//! The processor decides nothing. Whoever drives it asks for work, interrupts and transfers, and is told
//! with [`Hardware::next`] what came to an end.

mod cores;
mod engines;
mod hardware;
mod spec;
mod tables;
mod threads;

#[cfg(test)]
mod tests;

pub use engines::Way;
pub use hardware::{Ended, Hardware};
pub use spec::{HandOff, Spec};
pub use tables::{Tables, Translation};
pub use threads::{InOrderCore, THREADS_MOST};
