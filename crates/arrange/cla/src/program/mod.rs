//! What a program is: primitives over cache lines that every rank calls by itself.
//!
//! A program is *oblivious*: which operations it does depends on the rank, the shape of the call and
//! the epoch only, never on a loaded value. No primitive returns what it read, and a [`Span`] says where
//! bytes are but not what they are, so nothing else can be written. That is what lets the other readings
//! record each rank once and replay the list.

mod arithmetic;
mod interpret;
mod lines;
mod operation;
mod place;
mod record;

pub use interpret::Memory;
pub use lines::{Gone, Lines};
pub use operation::{Combine, Compare, Element, Operation};
pub use place::{Buffer, Line, Place, Rank, Span};
pub use record::{Record, Recorded, record};
