//! Everything that workers share: fixed tables whose entries name one another by number, so that they
//! mean the same in threads, in processes that have them mapped, and on a simulated machine.

// Untyped arguments, addresses in shared words and mapped tables need it; each block says why it is right.
#![allow(unsafe_code)]

pub(crate) mod arguments;
mod bounds;
mod broken;
mod capacity;
mod entries;
mod kind;
pub(crate) mod lock;
pub(crate) mod nest;
pub(crate) mod objects;
pub(crate) mod outbox;
pub(crate) mod pieces;
pub(crate) mod pool;
pub(crate) mod queue;
mod record;
pub(crate) mod slot;
pub(crate) mod table;
mod whole;

pub use arguments::ARGUMENT_BYTES;
pub use bounds::WORKERS_MAX;
pub(crate) use bounds::{BYTES_MAX, check_workers};
pub use capacity::Capacity;
pub(crate) use capacity::{COUNTS, FAILURE_WORDS, TOKENS};
pub(crate) use entries::{Object, Token, object, seat};
#[cfg(all(test, any(loom, shuttle)))]
pub(crate) use kind::NOTHING;
pub(crate) use kind::{Bytes, Discard, KernelKind};
pub use record::Came;
pub(crate) use record::{Begun, Entry, entries};
pub(crate) use whole::{
    Arena, FREE_BLOCKS, FREE_EDGES, FREE_SLOTS, Heap, Provide, ROOT, age, head,
};
