//! What a watched run found, as it is written. It holds no environment, and no argument of the program unless that was
//! asked for.

use serde::Serialize;

use super::bounds::Bound;
use super::seen::Seen;
use crate::advise::findings::AtlasFigures;

/// What `advise --json -- CMD` writes. Fields are added, never renamed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Figures {
    /// The program's name.
    pub(super) program: String,
    /// Its arguments, where they were asked for.
    pub(super) arguments: Option<Vec<String>>,
    pub(super) machine: String,
    /// What is gone by; nothing where there is none.
    pub(super) atlas: Option<AtlasFigures>,
    /// The first line: all of it in a sentence.
    pub(super) summary: String,
    /// What makes any of it less than it could be: of the atlas, the program, the run.
    pub(super) remarks: Vec<String>,
    /// What the run was seen to do: measured.
    pub(super) seen: Seen,
    /// What each lever can take off it: predicted.
    pub(super) levers: Vec<Bound>,
}
