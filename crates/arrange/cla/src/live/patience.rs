//! How patiently ranks wait.

/// How patiently ranks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Polls before anything else is done.
    pub polls: u32,
    /// Rounds of polls, with the work of others in between, before the core is given away.
    pub rounds: u32,
    /// How often the core is given away before the rank sleeps.
    pub yields: u32,
}

impl Patience {
    /// For ranks that have a core each: they poll for some hundred microseconds, and for some
    /// milliseconds they give way to whoever else wants the core.
    pub const OWN_CORE: Self = Self { polls: 1000, rounds: 4, yields: 10_000 };
    /// For more ranks than cores: who waits keeps somebody else from working.
    pub const SHARED_CORE: Self = Self { polls: 50, rounds: 1, yields: 50 };

    /// What fits `ranks` ranks on `cores` cores.
    #[must_use]
    pub const fn of(ranks: usize, cores: usize) -> Self {
        if ranks > cores { Self::SHARED_CORE } else { Self::OWN_CORE }
    }
}
