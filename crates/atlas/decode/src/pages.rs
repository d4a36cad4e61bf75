//! What the engine asks of its caller and tells it: which pages, who decodes in which base, pages of
//! known code, chance, and where verdicts go.

use crate::offset::{Trust, Window};
use crate::patterns::Patterns;
use isochrone_atlas::{Code, Codebook, Penalties};
use isochrone_units::{CoreId, Level, LineAddr};

/// A page (or a block of four, where the pattern spans that) whose code is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its first line.
    pub first: LineAddr,
    /// Class of the page.
    pub class: u16,
    /// Canonical index of its first line.
    pub key: u16,
}

/// A page on its way out: the verdict on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decided {
    /// The caller's number of the page.
    pub tag: u32,
    /// The best code.
    pub code: Code,
    /// What the decision may lose: the chance of each other code times how unlike its pattern is; 1 is the
    /// cost of a code that has nothing to do with the page.
    pub loss: f32,
    /// Probability that the page has another code, be it one whose pattern is practically the same.
    pub error: f32,
    /// Whether it left because its code is safe, and not because it was read often enough.
    pub safe: bool,
    /// Distinct lines that were read.
    pub lines: u32,
    /// Timed loads of it.
    pub reads: u32,
}

/// The caller's side of decoding one level.
pub trait Pages {
    /// How bases are kept.
    type Base: Patterns + ?Sized;

    /// Where lines are put.
    fn level(&self) -> Level;

    /// Noise of one timed load, cycles.
    fn noise_cycles(&self) -> f64;

    /// What residuals cost.
    fn penalties(&self) -> &Penalties;

    /// Probe lines, best first, in groups of four that may be timed together; four at least, else nothing
    /// is decoded.
    fn lines(&self) -> &[u8];

    /// How many cores decode, one round each in turn; 1 at least.
    fn decoding_cores(&self) -> usize;

    /// One of them: its core, and a number that stands for its current base.
    fn decoding_core(&self, nth: usize) -> (CoreId, u32);

    /// Its current base.
    fn base(&self, nth: usize) -> &Self::Base;

    /// Its codebook; `None` where nothing can be decoded in that base. All have the same answers.
    fn book(&mut self, nth: usize) -> Option<&Codebook>;

    /// Bases of cores that do not decode but will use the codes.
    fn others(&self) -> usize;

    /// One of them.
    fn other(&self, nth: usize) -> &Self::Base;

    /// The next page to decode: the caller's number of it and its first line.
    fn next(&mut self) -> Option<(u32, LineAddr)>;

    /// Pages of known code, or places in which there may be some.
    fn references(&self) -> usize;

    /// How far their codes may be trusted.
    fn trust(&self) -> Trust;

    /// Whether each pass of a round has an offset of its own: the first after a sweep finds page translations
    /// gone. Else all share one, which is known the sooner.
    fn passes_apart(&self) -> bool;

    /// One of them; `None` where that place has none now.
    fn reference(&mut self, nth: usize) -> Option<Reference>;

    /// What a load of this line takes on average over pages of unknown code, if decoding core `nth` still has its base
    /// and only loads in this window count; cycles. `None` where that is not known.
    fn expected(&self, nth: usize, line: u8, window: Window) -> Option<f64>;

    /// Puts these into random order, every order equally likely.
    fn shuffle(&mut self, order: &mut [u32]);

    /// Takes a verdict.
    fn decided(&mut self, verdict: Decided);

    /// Known pages looked as their base says: what was decided before the last time that they did is safe.
    fn verified(&mut self);
}
