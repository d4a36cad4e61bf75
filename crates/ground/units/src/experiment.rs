//! The registry of experiments: a line for each. Whoever measures, shows, compares or exports goes through it.
//!
//! It says what they are called. What an experiment leaves in an atlas is in `contents` of `isochrone-atlas-store`, how
//! it is made in a folder of `isochrone-probe`. Files number experiments in the order of the registry: a new one goes
//! to its end.

macro_rules! registry {
    ($($experiment:ident $name:literal, $title:literal, $cores:literal, $what:literal;)*) => {
        /// One experiment. With the feature `serde` it is written as its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
        #[repr(u8)]
        pub enum Experiment {
            $( #[doc = concat!($what, ".")] $experiment, )*
        }

        impl Experiment {
            /// How many there are.
            pub const COUNT: usize = [$( $name ),*].len();
            /// All, in the order of the registry: that of files and options.
            pub const ALL: [Self; Self::COUNT] = [$( Self::$experiment ),*];

            /// The name by which `map --only` has it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$experiment => $name, )*
                }
            }

            /// What people are told that it is.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $( Self::$experiment => $title, )*
                }
            }

            /// The cores that it cannot do without.
            #[must_use]
            pub const fn cores(self) -> usize {
                match self {
                    $( Self::$experiment => $cores, )*
                }
            }

            /// What it looks at, without a full stop.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $( Self::$experiment => $what, )*
                }
            }
        }
    };
}

registry! {
    Block "block", "block latency", 1, "Every line of a page from every core";
    Region "region", "region latency", 1, "Every region from every core";
    Transfer "transfer", "line transfers", 2, "Every core from every other";
    Multiline "multiline", "multi-line transfers", 2, "Several lines, several readers and writers";
    Terms "terms", "costs that the model leaves out", 2, "Costs that the model of the CLa paper leaves out";
    Bandwidth "bandwidth", "bandwidth", 1, "Triad bandwidth";
    Placement "placement", "placement", 1, "Where cores and controllers seem to sit";
}

impl Experiment {
    /// All, in the order in which people are told of them.
    pub const SHOWN: [Self; Self::COUNT] = [
        Self::Block,
        Self::Transfer,
        Self::Region,
        Self::Multiline,
        Self::Terms,
        Self::Bandwidth,
        Self::Placement,
    ];

    /// Whether it follows from what others measured, and takes no time of its own.
    #[must_use]
    pub const fn is_inferred(self) -> bool {
        matches!(self, Self::Placement)
    }

    /// Whether each experiment is there once.
    #[must_use]
    pub const fn each_once(order: &[Self; Self::COUNT]) -> bool {
        let mut seen = [false; Self::COUNT];
        let mut at = 0;
        while at < Self::COUNT {
            if seen[order[at] as usize] {
                return false;
            }
            seen[order[at] as usize] = true;
            at += 1;
        }
        true
    }
}

const _: () = assert!(Experiment::each_once(&Experiment::SHOWN));
