//! The model against figures that others have published.
//!
//! The figures are those of Open MPI's `coll/xhc` with a flat tree on three Xeons of two sockets (Katevenis
//! and others, artifact of "Impact of Cache Coherence on the Performance of Shared-Memory based MPI
//! Primitives", ICPP 2023; branch `icpp-23` of CARV-ICS-FORTH/XHC-OpenMPI): the mean time of an 8-byte
//! broadcast by rank, from when the rank left a barrier to when it was done. Costs of lines are fitted on
//! some numbers of ranks, and the others are predicted.

mod fit;
mod flat;
#[cfg(test)]
mod tests;

pub use fit::{Fitted, Point, Terms, fit};
pub use flat::Flat;

/// Mean times of one number of ranks, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// How many ranks; they fill the root's socket first.
    pub ranks: u16,
    /// The root.
    pub root_ns: f64,
    /// The other ranks of its socket.
    pub same_ns: f64,
    /// Ranks of the other socket, if there are any.
    pub other_ns: Option<f64>,
}

/// One machine's figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// What the source calls it.
    pub name: &'static str,
    /// Cores of a socket.
    pub socket: u16,
    /// By number of ranks.
    pub rows: [Row; 5],
}

const fn row(ranks: u16, root_ns: f64, same_ns: f64, other_ns: Option<f64>) -> Row {
    Row { ranks, root_ns, same_ns, other_ns }
}

/// All three machines. The source prints hundredths of a microsecond.
pub const FIGURES: [Figures; 3] = [
    Figures {
        name: "CSX-48 (2 x 24, Cascade Lake)",
        socket: 24,
        rows: [
            row(2, 370.0, 150.0, None),
            row(8, 520.0, 160.0, None),
            row(24, 950.0, 190.0, None),
            row(25, 1880.0, 790.0, Some(430.0)),
            row(48, 2420.0, 910.0, Some(490.0)),
        ],
    },
    Figures {
        name: "ICX-48 (2 x 24, Ice Lake)",
        socket: 24,
        rows: [
            row(2, 360.0, 150.0, None),
            row(8, 510.0, 170.0, None),
            row(24, 880.0, 180.0, None),
            row(25, 1240.0, 390.0, Some(440.0)),
            row(48, 1740.0, 400.0, Some(460.0)),
        ],
    },
    Figures {
        name: "SKX-24 (2 x 12, Skylake)",
        socket: 12,
        rows: [
            row(2, 390.0, 170.0, None),
            row(8, 510.0, 150.0, None),
            row(12, 630.0, 150.0, None),
            row(13, 1310.0, 550.0, Some(350.0)),
            row(24, 1650.0, 710.0, Some(430.0)),
        ],
    },
];

impl Figures {
    /// Whether costs are fitted on this number of ranks: 2, 8, and the first rank of the other socket,
    /// without which nothing tells what a line costs between sockets.
    #[must_use]
    pub fn fitted_on(&self, ranks: u16) -> bool {
        [2, 8, self.socket + 1].contains(&ranks)
    }
}
