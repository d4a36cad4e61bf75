//! What a machine offers each lever, as values. It finds nothing and prints nothing.

use isochrone_units::{Grade, Reading};
use serde::Serialize;

/// What `advise --json` writes. Fields are added, never renamed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Figures {
    pub(super) machine: String,
    /// What is gone by; nothing where there is none.
    pub(super) atlas: Option<AtlasFigures>,
    /// The first line: all of it in a sentence.
    pub(super) summary: String,
    /// Why some of it is not known, and what mends that.
    pub(super) lacks: Option<String>,
    /// The same in a line of a terminal.
    #[serde(skip)]
    pub(super) lacks_briefly: Option<String>,
    pub(super) levers: Vec<Finding>,
}

/// An atlas and how far it may be believed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AtlasFigures {
    pub(super) file: String,
    /// Whether its map came to its end.
    pub(super) complete: bool,
    /// The worst grade of its experiments; nothing where none was graded.
    pub(super) grade: Option<Grade>,
}

/// What a lever has to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Offer {
    /// A gain is predicted from the distances of this machine.
    Gain,
    /// It can be used, and the program decides what it gains.
    Depends,
    /// There is nothing to gain, or it cannot be used.
    Nothing,
    /// What it takes to know was not measured.
    Unknown,
}

impl Offer {
    /// As it stands in a line.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Gain => "gain",
            Self::Depends => "depends",
            Self::Nothing => "nothing",
            Self::Unknown => "unknown",
        }
    }
}

/// A number behind a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Number {
    pub(super) value: f64,
    /// What it is of: `times faster`, `ns`.
    pub(super) unit: &'static str,
    /// Where it was read; nothing where the system says it.
    pub(super) reading: Option<Reading>,
}

/// What was found of one lever.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Finding {
    pub(super) lever: &'static str,
    pub(super) offer: Offer,
    /// Why, in words, with the number and its reading.
    pub(super) what: String,
    /// The same in a few words, which leave room for the command in a line of a terminal.
    #[serde(skip)]
    pub(super) briefly: String,
    pub(super) number: Option<Number>,
    /// How it is used, or how what lacks is measured.
    pub(super) command: Option<String>,
}

impl Finding {
    pub(super) fn new(lever: &'static str, offer: Offer, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { lever, offer, briefly: what.clone(), what, number: None, command: None }
    }

    pub(super) fn briefly(self, briefly: impl Into<String>) -> Self {
        Self { briefly: briefly.into(), ..self }
    }

    pub(super) fn number(self, value: f64, unit: &'static str, reading: Option<Reading>) -> Self {
        Self { number: Some(Number { value, unit, reading }), ..self }
    }

    pub(super) fn command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }
}
