//! The five benchmarks and their inputs.

use core::fmt;
use core::str::FromStr;

use crate::dataflow::{histogram::Image, jacobi::Grid, streamcluster::Parameters};

/// A benchmark of the paper's section 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bench {
    /// Tile Cholesky factorisation.
    Cholesky,
    /// Symmetric matrix inversion.
    Smi,
    /// PARSEC's streamcluster.
    Streamcluster,
    /// Jacobi's method.
    Jacobi,
    /// The integral histogram.
    Inthist,
}

impl Bench {
    /// All, in the paper's order.
    pub const ALL: [Self; 5] =
        [Self::Cholesky, Self::Smi, Self::Streamcluster, Self::Jacobi, Self::Inthist];

    /// Its name in commands and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cholesky => "cholesky",
            Self::Smi => "smi",
            Self::Streamcluster => "streamcluster",
            Self::Jacobi => "jacobi",
            Self::Inthist => "inthist",
        }
    }

    /// Its name in the paper.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Cholesky => "Cholesky",
            Self::Smi => "SMI",
            Self::Streamcluster => "Streamcluster",
            Self::Jacobi => "Jacobi",
            Self::Inthist => "Integral histogram",
        }
    }
}

impl fmt::Display for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Bench {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|bench| bench.name() == text);
        found.ok_or_else(|| {
            format!(
                "{text:?} is no benchmark; choose cholesky, smi, streamcluster, jacobi or inthist"
            )
        })
    }
}

/// A benchmark with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many tiles along one side, of so many rows.
    Cholesky {
        /// Tiles along one side.
        tiles: u32,
        /// Rows of a tile.
        tile: u32,
    },
    /// The same.
    Smi {
        /// Tiles along one side.
        tiles: u32,
        /// Rows of a tile.
        tile: u32,
    },
    /// PARSEC's parameters.
    Streamcluster {
        /// The stream and the search.
        parameters: Parameters,
    },
    /// A grid and how often it is swept.
    Jacobi {
        /// The grid.
        grid: Grid,
        /// How often it is swept.
        sweeps: usize,
    },
    /// An image.
    Inthist {
        /// The image.
        image: Image,
    },
}

/// Sweeps of Jacobi; the paper does not say how many, and all ratios are those of one sweep.
const SWEEPS: usize = 10;

impl Size {
    /// The paper's input (section 5); of streamcluster one of its five equal steps.
    #[must_use]
    pub const fn paper(bench: Bench) -> Self {
        let (tiles, tile) = (77, 768);
        match bench {
            Bench::Cholesky => Self::Cholesky { tiles, tile },
            Bench::Smi => Self::Smi { tiles, tile },
            Bench::Streamcluster => {
                let chunk = Parameters::PAPER.chunk;
                Self::Streamcluster {
                    parameters: Parameters { points: chunk, ..Parameters::PAPER },
                }
            }
            Bench::Jacobi => Self::Jacobi { grid: Grid::PAPER, sweeps: SWEEPS },
            Bench::Inthist => Self::Inthist { image: Image::PAPER },
        }
    }

    /// A small input of the same shape, for tests and first looks.
    #[must_use]
    pub const fn small(bench: Bench) -> Self {
        let (tiles, tile) = (24, 768);
        match bench {
            Bench::Cholesky => Self::Cholesky { tiles, tile },
            Bench::Smi => Self::Smi { tiles, tile },
            Bench::Streamcluster => Self::Streamcluster {
                parameters: Parameters {
                    points: 144_000,
                    chunk: 144_000,
                    block: 500,
                    ..Parameters::PAPER
                },
            },
            Bench::Jacobi => Self::Jacobi { grid: Grid { blocks: 640, ..Grid::PAPER }, sweeps: 4 },
            Bench::Inthist => Self::Inthist { image: Image { blocks: 32, ..Image::PAPER } },
        }
    }

    /// Which benchmark.
    #[must_use]
    pub const fn bench(self) -> Bench {
        match self {
            Self::Cholesky { .. } => Bench::Cholesky,
            Self::Smi { .. } => Bench::Smi,
            Self::Streamcluster { .. } => Bench::Streamcluster,
            Self::Jacobi { .. } => Bench::Jacobi,
            Self::Inthist { .. } => Bench::Inthist,
        }
    }

    /// Bytes of a chunk that suit it. Blocks that are far larger than a cache and are streamed through need
    /// no fine grain; their halos are cut out all the same.
    #[must_use]
    pub const fn chunk(self) -> u64 {
        match self {
            Self::Jacobi { .. } => 1 << 20,
            Self::Inthist { .. } => 512 << 10,
            _ => 64 << 10,
        }
    }

    /// Rows of a tile, for kernels on tiles.
    #[must_use]
    pub const fn tile(self) -> u64 {
        match self {
            Self::Cholesky { tile, .. } | Self::Smi { tile, .. } => tile as u64,
            _ => 768,
        }
    }
}
