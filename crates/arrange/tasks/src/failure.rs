//! Why a task could not do its work.

use core::fmt;

/// Why a task could not do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    text: String,
}

impl Failure {
    /// A failure that says why and what to do about it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The reason.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: core::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}
