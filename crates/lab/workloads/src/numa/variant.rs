//! What can be changed about a simulated run, by name: rules of the scheduler, who touches data first, and
//! assumptions of the machine. Each says what it is, so that a table of ablations explains itself.

use core::fmt;
use core::str::FromStr;

use isochrone_sim::coherence::{CleanEvictions, FarLink, NumaSpec};
use isochrone_tasks::Regime;
use isochrone_tasks::policy::{Policy, Rank, Steal};
use isochrone_tasks::simulated::{Allocation, Composition, RuntimeLines};

use super::models::Passes;
use super::run::Case;
use super::{Bench, Size};
use crate::dataflow::FirstTouch;
use crate::dataflow::streamcluster::Parameters;

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// Ranges that are read and written count twice where a task's region is chosen (Nanos6).
    InoutTwice,
    /// A task for each panel of a matrix touches it first.
    Panels,
    /// One task touches all data.
    Serial,
    /// The tasks that compute a result touch it first, not those that make the input.
    Untouched,
    /// The next 1024 tasks are partitioned by the bytes that they share.
    Partition,
    /// Nobody steals.
    NoStealing,
    /// Idle workers of any region steal.
    StealAny,
    /// A worker queues what it has made ready.
    NoSuccessor,
    /// Running tasks do not hold each other up.
    OpenLoop,
    /// Compute and memory time add up.
    Add,
    /// Kernels need no memory of their own.
    NoScratch,
    /// Every kernel goes through each tile once.
    PassesOnce,
    /// Ten times.
    PassesTen,
    /// Four times.
    PassesFour,
    /// The switch asks all modules.
    NoFilter,
    /// The switch lists 1.3 million lines.
    Directory1300k,
    /// 2.6 million.
    Directory2600k,
    /// 5 million.
    Directory5M,
    /// A clean line leaves a cache without a word.
    SilentEvictions,
    /// Only a clean line that one cache alone holds is told when it leaves.
    AloneEvictions,
    /// The first reader of another module gets a line for itself alone.
    ExclusiveReaders,
    /// Messages of 8 and 72 bytes.
    ShortMessages,
    /// Switches pass what their links pass, and not only their part of the published sum.
    NoSwitchRoof,
    /// Clocks go with the active cores of a socket.
    Turbo,
    /// Lines wait for others before roofs that are not full.
    Queues,
    /// 30 lines are under way between two modules, and their link has no width.
    FarWindow30,
    /// 120 lines at most, beside the width.
    FarWindow120,
    /// 360 lines at most, beside the width.
    FarWindow360,
    /// A core keeps 10 lines in flight.
    Outstanding10,
    /// A core keeps 40 lines in flight.
    Outstanding40,
    /// A core keeps 10 near and far lines in flight, and 20 local ones.
    OutstandingFar10,
    /// Cores compute at the upper end of the range.
    FastCores,
    /// Cores compute at the lower end.
    SlowCores,
    /// The program asked for all memory at once.
    AllocatedOnce,
    /// Registering a task costs a tenth.
    CheapSpawn,
    /// Memory comes in pages of 4 KiB.
    SmallPages,
    /// Last-level caches are a tenth smaller.
    SmallLlc,
    /// A tenth larger.
    LargeLlc,
    /// Idle workers look again after 50 ns at most.
    Poll50,
    /// After 250 ns.
    Poll250,
    /// After 4 microseconds.
    Poll4000,
    /// Chunks are four times smaller.
    SmallChunks,
    /// Four times larger.
    LargeChunks,
    /// Streamcluster's tasks declare all that they touch.
    OwnDeclarations,
    /// Streamcluster has all five steps.
    AllSteps,
    /// Jacobi sweeps 100 times.
    Sweeps100,
    /// Blocks of the port's arrays share pages.
    PageTies,
    /// Our scheduler's own lines.
    RuntimeOurs,
    /// Those of Nanos++.
    RuntimeNanos,
}

/// Registering a task with three ranges, and taking one, by our scheduler, ns: measured
/// (docs/results/taskbench-granite-rapids-vm.md).
const OURS_NS: (u64, f64) = (301, 50.0);

/// Steps of streamcluster's stream, of which a run has one.
const STEPS: usize = Parameters::PAPER.points / Parameters::PAPER.chunk;

/// What a variant changes: the run and the machine.
type Change = fn(&mut Case, &mut NumaSpec);

impl Variant {
    /// All of them.
    pub const ALL: [Self; 49] = [
        Self::InoutTwice,
        Self::Panels,
        Self::Serial,
        Self::Untouched,
        Self::Partition,
        Self::NoStealing,
        Self::StealAny,
        Self::NoSuccessor,
        Self::OpenLoop,
        Self::Add,
        Self::NoScratch,
        Self::PassesOnce,
        Self::PassesTen,
        Self::PassesFour,
        Self::NoFilter,
        Self::Directory1300k,
        Self::Directory2600k,
        Self::Directory5M,
        Self::SilentEvictions,
        Self::AloneEvictions,
        Self::ExclusiveReaders,
        Self::ShortMessages,
        Self::NoSwitchRoof,
        Self::Turbo,
        Self::Queues,
        Self::FarWindow30,
        Self::FarWindow120,
        Self::FarWindow360,
        Self::Outstanding10,
        Self::Outstanding40,
        Self::OutstandingFar10,
        Self::FastCores,
        Self::SlowCores,
        Self::AllocatedOnce,
        Self::CheapSpawn,
        Self::SmallPages,
        Self::SmallLlc,
        Self::LargeLlc,
        Self::Poll50,
        Self::Poll250,
        Self::Poll4000,
        Self::SmallChunks,
        Self::LargeChunks,
        Self::OwnDeclarations,
        Self::AllSteps,
        Self::Sweeps100,
        Self::PageTies,
        Self::RuntimeOurs,
        Self::RuntimeNanos,
    ];

    /// Its name in commands and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// What it means.
    #[must_use]
    pub const fn says(self) -> &'static str {
        self.row().1
    }

    /// Whether it can change runs of this benchmark.
    #[must_use]
    pub const fn concerns(self, bench: Bench) -> bool {
        match self {
            Self::OwnDeclarations | Self::AllSteps | Self::PageTies => {
                matches!(bench, Bench::Streamcluster)
            }
            Self::Sweeps100 => matches!(bench, Bench::Jacobi),
            _ => true,
        }
    }

    /// Changes a run.
    pub fn apply(self, case: &mut Case, spec: &mut NumaSpec) {
        (self.row().2)(case, spec);
    }

    /// The machine with this change.
    #[must_use]
    pub fn machine(self, spec: &NumaSpec) -> NumaSpec {
        // What a change does to the machine does not depend on what runs there.
        let mut any = Case::new(Bench::Cholesky, Regime::Di, 1, 1);
        let mut spec = spec.clone();
        self.apply(&mut any, &mut spec);
        spec
    }

    const fn row(self) -> (&'static str, &'static str, Change) {
        match self {
            Self::InoutTwice => (
                "inout-twice",
                "ranges that are read and written count twice where a region is chosen",
                |case, _| {
                    // One queue for all has no ranking.
                    if !case.policy.is_oblivious() {
                        case.policy.rank = Rank::InoutCountsTwice;
                    }
                },
            ),
            Self::Panels => {
                ("panels", "one task for each column of tiles touches it first", |case, _| {
                    case.touch = FirstTouch::Panels
                })
            }
            Self::Serial => {
                ("serial", "one task touches all data", |case, _| case.touch = FirstTouch::Serial)
            }
            Self::Untouched => (
                "untouched",
                "the tasks that compute a result touch its memory first",
                |case, _| case.touch = FirstTouch::Inputs,
            ),
            Self::Partition => (
                "partition",
                "the next 1024 tasks of the program are partitioned by the bytes that they share",
                |case, _| case.policy = Policy::PARTITION.without_outboxes(),
            ),
            Self::NoStealing => {
                ("no-stealing", "nobody steals", |case, _| case.policy.steal = Steal::Never)
            }
            Self::StealAny => ("steal-any", "idle workers steal from all regions", |case, _| {
                case.policy.steal = Steal::Any;
            }),
            Self::NoSuccessor => {
                ("no-successor", "a worker queues what it has made ready", |case, _| {
                    case.policy.successor = 0.0;
                })
            }
            Self::OpenLoop => {
                ("open-loop", "running tasks do not hold each other up", |case, _| {
                    case.choices.contention = false;
                })
            }
            Self::Add => ("add", "compute and memory time add up", |case, _| {
                case.choices.composition = Composition::Add;
            }),
            Self::NoScratch => ("no-scratch", "kernels pack tiles into no memory", |case, _| {
                case.passes = Passes::TilesOnly;
            }),
            Self::PassesOnce => ("passes-1", "kernels go through each tile once", |case, _| {
                case.passes = Passes::Once;
            }),
            Self::PassesTen => ("passes-10", "kernels go through each tile 10 times", |case, _| {
                case.passes = Passes::Uniform(10.0);
            }),
            Self::PassesFour => ("passes-4", "kernels go through each tile 4 times", |case, _| {
                case.passes = Passes::Uniform(4.0);
            }),
            Self::NoFilter => ("no-filter", "the switch asks all modules", |_, spec| {
                spec.protocol.filter = false;
            }),
            _ => self.row_of_assumption(),
        }
    }

    const fn row_of_assumption(self) -> (&'static str, &'static str, Change) {
        match self {
            Self::Directory1300k => {
                ("directory-1.3M", "a switch lists 1.3 million lines", |_, spec| {
                    spec.protocol.directory_lines = Some(1_300_000);
                })
            }
            Self::Directory2600k => {
                ("directory-2.6M", "a switch lists 2.6 million lines", |_, spec| {
                    spec.protocol.directory_lines = Some(2_600_000);
                })
            }
            Self::Directory5M => ("directory-5M", "a switch lists 5 million lines", |_, spec| {
                spec.protocol.directory_lines = Some(5_000_000);
            }),
            Self::SilentEvictions => {
                ("silent", "clean lines leave caches without a word", |_, spec| {
                    spec.protocol.clean_evictions = CleanEvictions::Silent;
                })
            }
            Self::AloneEvictions => (
                "told-alone",
                "of clean lines, only those that one cache alone holds are told when they leave",
                |_, spec| spec.protocol.clean_evictions = CleanEvictions::Alone,
            ),
            Self::ExclusiveReaders => (
                "exclusive-readers",
                "the first reader of another module gets a line for itself alone",
                |_, spec| spec.protocol.exclusive_readers = true,
            ),
            Self::ShortMessages => ("messages-8-72", "messages of 8 and 72 bytes", |_, spec| {
                (spec.bytes.control, spec.bytes.data) = (8.0, 72.0);
            }),
            Self::NoSwitchRoof => {
                ("no-switch-roof", "switches pass what their links pass", |case, _| {
                    case.switch_roof = false;
                })
            }
            Self::Outstanding10 => {
                ("outstanding-10", "a core keeps 10 lines in flight", |_, spec| {
                    spec.outstanding = [10.0; 4];
                })
            }
            Self::Outstanding40 => {
                ("outstanding-40", "a core keeps 40 lines in flight", |_, spec| {
                    spec.outstanding = [40.0; 4];
                })
            }
            Self::OutstandingFar10 => (
                "outstanding-far-10",
                "a core keeps 10 lines from elsewhere in flight, and 20 of its own region",
                |_, spec| spec.outstanding = [20.0, 10.0, 10.0, 10.0],
            ),
            Self::FastCores => ("fast-cores", "cores compute 40 and 8 GFLOP/s", |_, spec| {
                (spec.rates.blocked, spec.rates.scalar) = (40.0, 8.0);
            }),
            Self::SlowCores => ("slow-cores", "cores compute 28 and 2 GFLOP/s", |_, spec| {
                (spec.rates.blocked, spec.rates.scalar) = (28.0, 2.0);
            }),
            _ => self.row_of_plan(),
        }
    }

    /// Changes that were written down before they were coded (docs/results/papers-clock.md, papers-runtime-lines.md).
    const fn row_of_plan(self) -> (&'static str, &'static str, Change) {
        match self {
            Self::Turbo => ("turbo", "clocks go with the active cores of a socket", |_, spec| {
                spec.clocks.turbo = true;
            }),
            Self::Queues => {
                ("queues", "lines wait for others before roofs that are not full", |case, _| {
                    case.choices.queues = true;
                })
            }
            Self::FarWindow30 => (
                "far-window-30",
                "30 lines are under way between two modules, and their link has no width",
                |_, spec| spec.bandwidth.far = FarLink { width: false, window: Some(30.0) },
            ),
            Self::FarWindow120 => (
                "far-window-120",
                "at most 120 lines are under way between two modules",
                |_, spec| spec.bandwidth.far.window = Some(120.0),
            ),
            Self::FarWindow360 => (
                "far-window-360",
                "at most 360 lines are under way between two modules",
                |_, spec| spec.bandwidth.far.window = Some(360.0),
            ),
            Self::RuntimeOurs => (
                "runtime-ours",
                "our scheduler's own lines come and go, and its locks are held",
                |case, _| {
                    (case.spawn_ns, case.choices.task_ns) = OURS_NS;
                    case.choices.runtime = Some(RuntimeLines::OURS);
                },
            ),
            Self::RuntimeNanos => (
                "runtime-nanos",
                "lines of Nanos++ 0.10.3 come and go, and its locks are held",
                |case, _| case.choices.runtime = Some(RuntimeLines::NANOS),
            ),
            _ => self.row_of_runtime(),
        }
    }

    const fn row_of_runtime(self) -> (&'static str, &'static str, Change) {
        match self {
            Self::AllocatedOnce => {
                ("allocated-once", "the program asked for all memory at once", |case, _| {
                    case.choices.allocation = Allocation::Once;
                })
            }
            Self::CheapSpawn => ("cheap-spawn", "registering a task costs a tenth", |case, _| {
                case.spawn_ns /= 10;
            }),
            Self::SmallPages => {
                ("small-pages", "pages of 4 KiB, 1.5 microseconds a fault", |case, _| {
                    (case.choices.page_bytes, case.choices.fault_ns) = (4096, 1500.0);
                })
            }
            Self::SmallLlc => ("llc-minus-10", "last levels are a tenth smaller", |_, spec| {
                spec.nodes.iter_mut().for_each(|node| node.llc_lines -= node.llc_lines / 10);
            }),
            Self::LargeLlc => ("llc-plus-10", "last levels are a tenth larger", |_, spec| {
                spec.nodes.iter_mut().for_each(|node| node.llc_lines += node.llc_lines / 10);
            }),
            Self::Poll50 => {
                ("poll-50", "idle workers look again after 50 ns at most", |case, _| {
                    case.choices.poll_ns = 50.0;
                })
            }
            Self::Poll250 => {
                ("poll-250", "idle workers look again after 250 ns at most", |case, _| {
                    case.choices.poll_ns = 250.0;
                })
            }
            Self::Poll4000 => {
                ("poll-4000", "idle workers look again after 4 us at most", |case, _| {
                    case.choices.poll_ns = 4000.0;
                })
            }
            Self::SmallChunks => ("small-chunks", "chunks are four times smaller", |case, _| {
                case.choices.chunk /= 4;
            }),
            Self::LargeChunks => ("large-chunks", "chunks are four times larger", |case, _| {
                case.choices.chunk *= 4;
            }),
            _ => self.row_of_program(),
        }
    }

    /// Changes of one program (docs/results/papers-port.md).
    const fn row_of_program(self) -> (&'static str, &'static str, Change) {
        match self {
            Self::AllSteps => ("all-steps", "streamcluster has all five steps", |case, _| {
                if let Size::Streamcluster { parameters } = &mut case.size {
                    parameters.points *= STEPS;
                }
            }),
            Self::Sweeps100 => ("sweeps-100", "Jacobi sweeps 100 times", |case, _| {
                if let Size::Jacobi { sweeps, .. } = &mut case.size {
                    *sweeps = 100;
                }
            }),
            Self::PageTies => (
                "page-ties",
                "blocks of the port's arrays share pages, and their bytes decide between regions",
                |case, _| case.whole_pages = false,
            ),
            _ => (
                "own-declarations",
                "streamcluster's tasks declare all that they touch",
                |case, _| case.port = false,
            ),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|variant| variant.name() == text).ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            format!("{text:?} is no variant; choose from {}", all.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_has_its_own_name_and_changes_something() {
        let machine = isochrone_host::find_machine("bullion-s-16s").expect("bundled");
        let spec = NumaSpec::of(&machine).expect("possible");
        for variant in Variant::ALL {
            assert_eq!(variant.name().parse(), Ok(variant));
            let changes = |bench: Bench| {
                let mut case = Case::new(bench, Regime::Naft, 288, 1);
                let (plain, mut changed) = (case.clone(), spec.clone());
                variant.apply(&mut case, &mut changed);
                assert_eq!(changed.validate(), Ok(()), "{variant}");
                case != plain || changed != spec
            };
            // Rules of ranges change nothing where they are not asked; what a run of one program has changes no other.
            let concerned = Bench::ALL.into_iter().filter(|bench| variant.concerns(*bench));
            assert!(concerned.clone().all(changes) && concerned.count() > 0, "{variant}");
        }
        assert!("nonsense".parse::<Variant>().is_err());
    }
}
