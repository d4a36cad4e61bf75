//! By what a machine is known: the words of its fingerprint and their hashes.

use isochrone_host::{
    HostError, SysRoot, counted_hash, fingerprint, first_difference, machine_state, this_machine,
};

/// By what a machine is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The words of its fingerprint.
    pub words: Vec<String>,
    /// Their hash, as headers of atlases have it.
    pub hash: u64,
    /// The hash that older atlases have.
    pub counted_hash: u64,
}

impl Identity {
    /// A machine of these words and this hash, as [`fingerprint`] gives them.
    #[must_use]
    pub fn new(words: Vec<String>, hash: u64) -> Self {
        let counted_hash = counted_hash(&words);
        Self { words, hash, counted_hash }
    }

    /// This machine's.
    ///
    /// # Errors
    /// Where the machine cannot be described.
    pub fn of_this_machine() -> Result<Self, HostError> {
        let root = SysRoot::live();
        let (words, hash) = fingerprint(&this_machine(&root)?, &machine_state(&root));
        Ok(Self::new(words, hash))
    }

    /// Whether an atlas with this hash is of this machine.
    #[must_use]
    pub fn has(&self, hash: u64) -> bool {
        [self.hash, self.counted_hash].contains(&hash)
    }

    /// The first word of another machine that differs, and the one here.
    #[must_use]
    pub fn differs_from(&self, words: &[String]) -> Option<(String, String)> {
        let (theirs, ours) = first_difference(words, &self.words)?;
        Some((theirs.to_owned(), ours.to_owned()))
    }
}
