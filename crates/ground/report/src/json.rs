//! JSON that programs write: which formats there are, and the one way to write them.
//!
//! Every file begins with the name of its format and a version. Fields may be added within a version; whoever takes one
//! away, renames it or changes what it means raises the version. `docs/schemas` has a schema of each format, against
//! which tests hold what is written. This module knows names and numbers of formats, not what is in them.

use serde::Serialize;

macro_rules! registry {
    ($($format:ident $name:literal $version:literal, $what:literal;)*) => {
        /// What a file or an output is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Format {
            $( #[doc = concat!($what, ".")] $format, )*
        }

        impl Format {
            /// All of them.
            pub const ALL: &[Self] = &[$( Self::$format ),*];

            /// What the field `format` says.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$format => $name, )*
                }
            }

            /// What the field `format_version` says.
            #[must_use]
            pub const fn version(self) -> u32 {
                match self {
                    $( Self::$format => $version, )*
                }
            }

            /// What it holds, without a full stop.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $( Self::$format => $what, )*
                }
            }
        }
    };
}

registry! {
    Map "isochrone-map" 1, "The figures of an atlas, by `map --json` and `show --json`";
    Line "isochrone-line" 1, "What an atlas knows of a line, by `show --query --json`";
    Atlas "isochrone-atlas" 1, "The records of an atlas, by `export --json`";
    Diff "isochrone-diff" 1, "What differs between two atlases, by `diff --json`";
    Fleet "isochrone-fleet" 1, "Groups and deviations of nodes, by `fleet show --json` and `fleet outliers --json`";
    FleetDiff "isochrone-fleet-diff" 1, "What nodes have otherwise than one of them, by `fleet diff --json`";
    Machine "isochrone-machine" 1, "A machine as it is described, by `machine --json`";
    Suits "isochrone-suits" 1, "Which region suits which array, by `machine --suits --json`";
    Predict "isochrone-predict" 1, "Bands of a collective, by `predict --json`";
    Cla "isochrone-cla" 1, "A program in cache lines, by `cla --json`";
    TierCheck "isochrone-tier-check" 1, "What the kernel lacks, by `tier check --json`";
    Advise "isochrone-advise" 1, "What this machine offers, by `advise --json`";
    AdviseWatched "isochrone-advise-watched" 1, "Bounds of levers from one watched run, by `advise --json -- CMD`";
    AdviseTry "isochrone-advise-try" 1, "Levers measured with a program, by `advise --try --json`";
    Run "isochrone-run" 1, "A run under the allocator, by `run --json`";
    RunMpi "isochrone-run-mpi" 1, "A job under the collectives, by `run --mpi --json`";
    RunPaged "isochrone-run-paged" 1, "A run of which a part is in fast memory, by `run --fast-memory --json`";
    BenchStructures "isochrone-bench-structures" 1, "`bench chase` and `bench structures`";
    BenchAstar "isochrone-bench-astar" 1, "`bench astar`";
    BenchMalloc "isochrone-bench-malloc" 1, "`bench malloc`";
    BenchAdvise "isochrone-bench-advise" 1, "`bench advise`";
    BenchTasks "isochrone-bench-tasks" 1, "`bench cholesky`, `smi`, `streamcluster`, `jacobi` and `inthist`";
    BenchCholesky "isochrone-bench-cholesky" 1, "`bench cholesky --peers`";
    BenchLu "isochrone-bench-lu" 1, "`bench lu`";
    BenchTaskbench "isochrone-bench-taskbench" 1, "`bench taskbench`";
    BenchTier "isochrone-bench-tier" 1, "`bench tier`";
    BenchColl "isochrone-bench-coll" 2, "`bench coll`";
    BenchFlags "isochrone-bench-flags" 1, "`bench flags`";
    BenchSim "isochrone-bench-sim" 1, "`bench sim`";
    Schedule "isochrone-schedule" 1, "The schedule of a task program, by `--record`";
    Sim "isochrone-sim" 1, "A simulated run, by `sim --json`";
    SimRecord "isochrone-sim-record" 1, "A line of a results file, by `sim sweep` and `reproduce --results`";
    Scale "isochrone-scale" 1, "A map of a synthetic machine, by `scale --json`";
    VerifyModel "isochrone-verify-model" 1, "The model beside live calls, by `verify model --json`";
    VerifyPublished "isochrone-verify-published" 1, "The model beside published figures, by `verify published --json`";
    LatencyChecker "isochrone-reproduce-latency-checker" 1, "`reproduce latency-checker --json`";
    HiddenNuma "isochrone-reproduce-hidden-numa" 1, "`reproduce hidden-numa --json`";
    Pspt "isochrone-reproduce-pspt" 1, "`reproduce pspt --json`";
    NumaAwareRuntime "isochrone-reproduce-numa-aware-runtime" 1, "`reproduce numa-aware-runtime --json`";
    CacheLines "isochrone-reproduce-cla" 1, "`reproduce cla --json`";
    Exhibits "isochrone-reproduce-all" 1, "Every row of every paper, by `reproduce all`";
}

impl Format {
    /// The format of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }
}

/// A value as it is written: after the name of its format and the version.
#[derive(Debug, Serialize)]
pub struct Stamped<'a, T: Serialize> {
    format: &'static str,
    format_version: u32,
    #[serde(flatten)]
    value: &'a T,
}

/// `value`, which is written as an object, with its format in front.
pub fn stamped<T: Serialize>(format: Format, value: &T) -> Stamped<'_, T> {
    Stamped { format: format.name(), format_version: format.version(), value }
}

/// As text for people and programs, in several lines.
///
/// # Errors
/// If the value refuses to be written.
pub fn pretty<T: Serialize>(format: Format, value: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&stamped(format, value))
}

/// As one line.
///
/// # Errors
/// As [`pretty`].
pub fn line<T: Serialize>(format: Format, value: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string(&stamped(format, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_begins_with_its_format() {
        #[derive(Serialize)]
        struct Facts {
            cores: u16,
        }
        let text = line(Format::Diff, &Facts { cores: 2 }).expect("plain");
        assert_eq!(text, r#"{"format":"isochrone-diff","format_version":1,"cores":2}"#);
        let text = pretty(Format::Diff, &serde_json::json!({ "cores": 2 })).expect("plain");
        assert!(text.starts_with("{\n  \"format\": \"isochrone-diff\","), "{text}");
    }

    #[test]
    fn a_format_is_found_by_its_name_alone() {
        for &format in Format::ALL {
            assert_eq!(Format::of_name(format.name()), Some(format), "two are called alike");
            assert!(format.name().starts_with("isochrone-") && !format.what().ends_with('.'));
            assert!(format.version() > 0);
        }
        assert_eq!(Format::of_name("isochrone"), None);
    }
}
