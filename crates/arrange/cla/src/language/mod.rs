//! A text language of CLa programs, so that an algorithm can be studied without Rust.
//!
//! It is the pseudo-code of the paper: Figure 1 is a program as printed. The grammar is written down in
//! `docs/method/cla-language.md`. A text becomes the same lists of operations that a Rust program records, so it
//! can be predicted, simulated, checked and run like one.

mod error;
mod expression;
mod lex;
mod parse;
mod run;
mod syntax;
#[cfg(test)]
mod tests;

pub use error::LanguageError;
pub use run::Setting;

use syntax::{Function, IntKind, Kind};

/// A parsed program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    file: String,
    function: Function,
}

/// Reads a program; `file` is what errors call it.
///
/// # Errors
/// [`LanguageError`] with line, column and what was expected.
pub fn parse(file: &str, text: &str) -> Result<Program, LanguageError> {
    let function = parse::function(text).map_err(|fault| fault.shown(file, text))?;
    Ok(Program { file: file.to_owned(), function })
}

impl Program {
    /// The function's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.function.name
    }

    /// Whether the program knows the number of its call (a parameter `int call`), so that it can be
    /// called again.
    #[must_use]
    pub fn counts_calls(&self) -> bool {
        self.function.parameters.iter().any(|p| p.kind == Kind::Int(IntKind::Call))
    }

    /// Whether it goes along a tree (a parameter of type `tree_t`).
    #[must_use]
    pub fn takes_tree(&self) -> bool {
        self.function.parameters.iter().any(|p| p.kind == Kind::Tree)
    }

    /// The numbers that it takes beside those that are known (`me`, `ranks`, `root`, `call`).
    #[must_use]
    pub fn values(&self) -> Vec<&str> {
        let named = self.function.parameters.iter().filter(|p| p.kind == Kind::Int(IntKind::Value));
        named.map(|p| p.name.as_str()).collect()
    }
}
