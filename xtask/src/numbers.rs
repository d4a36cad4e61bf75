//! Numbers among the words of a task.

use anyhow::{Context, Result};

/// A number of 1 and more.
pub(crate) fn number(text: &str) -> Result<u32> {
    text.parse()
        .ok()
        .filter(|&number| number > 0)
        .with_context(|| format!("{text:?} is no number of 1 and more"))
}
