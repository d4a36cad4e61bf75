//! The pager inside of a program that knows nothing of it: a window of private memory of its process, from which its
//! large mappings are cut, and handlers that bring and take its pages.
//!
//! ```text
//!  a thread of the program                      a handler (isochrone-fault)
//!  touches a page that is not there ----------> is told of it, fetches the page, and others leave for it
//!  maps, unmaps, advises, protects, forks       does what changes pages (Discard, Cool, Hold, ...)
//!     changes the book, then rings the bell --> and lets the bell's page come
//! ```
//!
//! The program's system calls may touch absent pages: the kernel tells us of its own faults, or [`Guest::start`]
//! refuses. Handlers are threads of which the C library knows nothing, with descriptors of their own.

mod actor;
mod adopted;
mod book;
mod calls;
mod fork;
mod ground;
mod handler;
mod look;
mod orders;
mod pagemap;
mod patience;
mod places;
mod put_off;
pub mod record;
mod settings;
mod steps;
mod tiered;
pub mod told;

use super::operations::errno;
pub use adopted::{AdoptError, Adopted};
pub use calls::{Ask, Whose};
pub use fork::Forking;
pub use settings::{FAST_BYTES_MIN, Settings};
pub use tiered::{Guest, may_be_tiered};
