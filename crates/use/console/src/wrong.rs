//! Wrong usage that the parser cannot see, since it takes the machine, an atlas or another option to see it.

/// What the command line asks for cannot be: exit code 2, as for what the parser refuses.
#[derive(Debug)]
pub struct WrongUsage(String);

impl WrongUsage {
    /// An error with these words.
    #[must_use]
    pub fn error(words: String) -> anyhow::Error {
        anyhow::Error::new(Self(words))
    }
}

impl std::fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}
