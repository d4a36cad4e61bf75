//! Which points of the step before a task reads.

use core::fmt;
use core::str::FromStr;

/// A pattern of dependences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// No dependence at all.
    Trivial,
    /// Itself and both neighbours.
    Stencil1d,
    /// Itself and the points 2^k below and above, k going round with the steps.
    Fft,
    /// Itself and the point below: a wavefront.
    Dom,
    /// One source, whose results fan out to twice as many points each step, then straight on.
    Tree,
    /// Itself and the two nearest points on both sides.
    Nearest,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Trivial, Self::Stencil1d, Self::Fft, Self::Dom, Self::Tree, Self::Nearest];

    /// Its name, as Task Bench has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trivial => "trivial",
            Self::Stencil1d => "stencil_1d",
            Self::Fft => "fft",
            Self::Dom => "dom",
            Self::Tree => "tree",
            Self::Nearest => "nearest",
        }
    }

    /// Calls `found` with each point of step `step - 1` that `point` of step `step` reads, ascending.
    /// The first step reads nothing.
    pub fn before(self, step: u32, point: u32, width: u32, mut found: impl FnMut(u32)) {
        if step == 0 {
            return;
        }
        let mut around = |reach: u32| {
            for at in point.saturating_sub(reach)..=(point + reach).min(width - 1) {
                found(at);
            }
        };
        match self {
            Self::Trivial => {}
            Self::Stencil1d => around(1),
            Self::Nearest => around(2),
            Self::Dom => (point.saturating_sub(1)..=point).for_each(found),
            Self::Tree => found(tree(step, point, width)),
            Self::Fft => {
                let far = 1 << ((step - 1) % width.ilog2().max(1));
                let points = [point.checked_sub(far), Some(point), Some(point + far)];
                points.into_iter().flatten().filter(|at| *at < width).for_each(found);
            }
        }
    }
}

/// Step `s` has results of its own at multiples of `width / 2^s`; all other points repeat the nearest one
/// below, until every point has its own.
const fn tree(step: u32, point: u32, width: u32) -> u32 {
    let apart = if step > 31 { 0 } else { width >> (step - 1) };
    if apart < 2 { point } else { point - point % apart }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|pattern| pattern.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text} is no pattern; choose one of {names}")
        })
    }
}
