//! A task's children.

use super::window::Window;
use crate::graph::Domain;

/// A task's children, as the task sees them: it alone registers them.
#[derive(Debug)]
pub(crate) struct Children {
    pub(crate) domain: Domain,
    pub(crate) parent: u32,
    /// Registered so far, since the parent last saw that all were over.
    pub(crate) spawned: u32,
    /// Those that are held back, if the policy does that.
    pub(super) window: Option<Box<Window>>,
}

impl Children {
    pub(crate) fn of(parent: u32) -> Self {
        Self { domain: Domain::default(), parent, spawned: 0, window: None }
    }
}
