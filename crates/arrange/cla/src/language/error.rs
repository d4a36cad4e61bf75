//! What is wrong with a text, and where.

use std::fmt;

/// A place in a text, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct At {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// Something wrong, before it is known of which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: At,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(at: At, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// The error for a user, with the line of the text.
    pub(super) fn shown(self, file: &str, text: &str) -> LanguageError {
        let line = text.lines().nth((self.at.line as usize).saturating_sub(1)).unwrap_or_default();
        LanguageError {
            file: file.to_owned(),
            line: self.at.line,
            column: self.at.column,
            message: self.message,
            text: line.to_owned(),
        }
    }
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageError {
    /// What the text is called.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    pub column: u32,
    /// What is wrong, and what was expected.
    pub message: String,
    /// The line itself; empty where it is not at hand.
    pub text: String,
}

impl std::error::Error for LanguageError {}

/// Characters of a line that an error shows at most.
const SHOWN_MAX: usize = 200;

impl fmt::Display for LanguageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message, text } = self;
        write!(f, "{file}:{line}:{column}: {message}")?;
        let before = (*column as usize).saturating_sub(1);
        if !text.trim().is_empty() && before < SHOWN_MAX {
            let shown: String = text.chars().take(SHOWN_MAX).collect();
            // A tab before the mark stays one, so that the mark stands where it should.
            let lead: String =
                shown.chars().take(before).map(|c| if c == '\t' { c } else { ' ' }).collect();
            write!(f, "\n  {shown}\n  {lead}^")?;
        }
        Ok(())
    }
}
