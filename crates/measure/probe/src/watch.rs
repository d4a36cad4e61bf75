//! How an experiment tells where it is and learns that it should stop.

/// Progress out, interruption in. The command line draws a bar from it; tests use [`Silent`].
pub trait Watch {
    /// A new step has begun, in a few words.
    fn step(&mut self, words: &str);

    /// False once the user wants the run to end; what was measured so far is kept.
    fn keep_going(&self) -> bool;
}

/// Says nothing and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Watch for Silent {
    fn step(&mut self, _words: &str) {}

    fn keep_going(&self) -> bool {
        true
    }
}
