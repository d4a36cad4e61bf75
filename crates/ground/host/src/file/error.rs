//! Why a machine description was refused.

/// Why a machine description was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineFileError {
    /// The text is wrong at one place
    #[error("{file}:{line}:{column}: {problem}")]
    At {
        /// Name of the file, as the caller gave it.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// What is there and what was expected.
        problem: String,
    },
    /// The text is larger than a description can be
    #[error("{file} has {bytes} bytes; a machine description has at most {limit}")]
    TooLarge {
        /// Name of the file.
        file: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The file could not be read
    #[error("cannot read {file}: {why}; give the path of a machine description or one of: {known}")]
    Unreadable {
        /// Name of the file.
        file: String,
        /// The system's word.
        why: String,
        /// Names of the bundled descriptions.
        known: String,
    },
    /// The file that was named as one of hwloc's could not be read
    #[error("cannot read {file}: {why}; `lstopo --of xml {file}` writes one")]
    NoTopology {
        /// Name of the file.
        file: String,
        /// The system's word.
        why: String,
    },
    /// The file is an atlas
    #[error(
        "{file} is an atlas, not the description of a machine; `isochrone show {file}` reads it, and commands \
         that take --atlas go by it"
    )]
    Atlas {
        /// Name of the file.
        file: String,
    },
    /// The bytes are no text
    #[error(
        "{file} is no text; a machine is described in a .toml file, or in an .xml file of hwloc's"
    )]
    NoText {
        /// Name of the file.
        file: String,
    },
    /// There is no such machine
    #[error("no machine is called {name:?}; known are: {known}; or give the path of a .toml file")]
    NoSuchMachine {
        /// The name asked for.
        name: String,
        /// Names of the bundled descriptions.
        known: String,
    },
}
