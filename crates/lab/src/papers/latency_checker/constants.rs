//! What a simulated machine was made of, each number with its standing, so that a reader can
//! count what was fitted, what was published and what was assumed. Holds numbers, derives none.

/// How a constant came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Fitted on cells of this grid.
    Fitted,
    /// Fitted on another grid and not touched here.
    CarriedOver {
        /// The other grid.
        from: String,
    },
    /// Published; not fitted.
    Published {
        /// Where.
        source: String,
    },
    /// A stand-in.
    Assumed {
        /// Why this one.
        why: String,
    },
}

impl Standing {
    /// In words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Fitted => "fitted on this grid".to_owned(),
            Self::CarriedOver { from } => format!("carried over from {from}, not fitted here"),
            Self::Published { source } => format!("published: {source}"),
            Self::Assumed { why } => format!("assumed: {why}"),
        }
    }
}

/// One constant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constant {
    /// What it is, with its unit.
    pub(crate) name: String,
    /// Its value in words.
    pub(crate) value: String,
    /// How many numbers it is, where it was fitted.
    pub(crate) free: usize,
    /// How it came to be.
    pub(crate) standing: Standing,
}

impl Constant {
    /// A constant that was fitted as `free` numbers.
    pub(super) fn fitted(name: &str, value: String, free: usize) -> Self {
        Self { name: name.to_owned(), value, free, standing: Standing::Fitted }
    }

    /// A constant from another grid.
    pub(super) fn carried(name: &str, value: String, from: &str) -> Self {
        let standing = Standing::CarriedOver { from: from.to_owned() };
        Self { name: name.to_owned(), value, free: 0, standing }
    }

    /// A published constant.
    pub(super) fn published(name: &str, value: String, source: &str) -> Self {
        let standing = Standing::Published { source: source.to_owned() };
        Self { name: name.to_owned(), value, free: 0, standing }
    }

    /// A stand-in.
    pub(super) fn assumed(name: &str, value: String, why: &str) -> Self {
        let standing = Standing::Assumed { why: why.to_owned() };
        Self { name: name.to_owned(), value, free: 0, standing }
    }
}

/// Numbers that were fitted on the grid itself.
pub(crate) fn free_numbers(constants: &[Constant]) -> usize {
    constants.iter().map(|constant| constant.free).sum()
}
