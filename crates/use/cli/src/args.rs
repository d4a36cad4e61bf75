//! The command line, its help and its examples, in one place; everything else takes typed values.

mod advise;
mod cla;
mod fleet;
mod laboratory;
mod pin;
mod predict;
mod query;
mod run;
mod shown;
mod term;
mod tree;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand};
use isochrone_atlas_store::Experiment;

pub(crate) use advise::AdviseArgs;
pub(crate) use cla::ClaArgs;
pub(crate) use fleet::{FleetArgs, FleetCommand, FleetDiffArgs, OutliersArgs};
pub(crate) use isochrone_console::args::{ColourChoice, JsonArg, REPORT};
use isochrone_console::args::{
    CoreList, HtmlArg, ManArgs, STDOUT, behind_equals, experiments, parse_core_list,
    parse_some_bytes, parse_time,
};
use isochrone_console::codes::HELP;
use isochrone_console::partner::BUILD;
use isochrone_console::run::usage::UsageArgs;
pub(crate) use laboratory::LaboratoryCommand;
pub(crate) use pin::{FormName, PinArgs};
pub(crate) use predict::{AcksName, ObjectiveName, PredictArgs, StartName};
pub(crate) use query::Query;
use query::parse_query;
pub(crate) use run::{LARGE_BYTES, RunArgs, SingleCopy};
pub(crate) use term::{Term, TermAsked, TermName};
pub(crate) use tree::TreeAsked;

use crate::tier::TierCommand;

/// Measures how far every core is from every memory block, region and other core, and arranges data,
/// communication, tasks and pages by it.
#[derive(Debug, Parser)]
#[command(
    name = "isochrone",
    version = BUILD,
    about,
    after_help = format!("Start with `isochrone map`. Every command has examples in its own --help.\n{HELP}")
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Colours: auto (on a terminal), always, never.
    #[arg(long, global = true, value_enum, default_value_t = ColourChoice::Auto)]
    pub(crate) color: ColourChoice,
    /// Of which sources the program is that starts this one.
    #[arg(long, hide = true, value_name = "BUILD")]
    pub(crate) of_build: Option<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Draw this machine's latency atlas: measure, save, summarise, report.
    #[command(after_help = "Examples:\n  \
        isochrone map                          full map, about 40 s on two cores\n  \
        isochrone map --quick                  under 10 s\n  \
        isochrone map --budget 2m              in two minutes, whatever that leaves out\n  \
        isochrone map --json=map.json          figures for programs beside the atlas\n  \
        isochrone map --quick --fleet atlases  of each node of a cluster, under srun or mpirun: `isochrone fleet`\n  \
        isochrone map --awake                  keep virtual CPUs from being moved\n  \
        isochrone map --evict --seed 7         without cldemote; another random order")]
    Map(MapArgs),
    /// Say what this machine offers a program, by its atlas; or try which lever makes a program faster.
    #[command(after_help = advise::AFTER_HELP)]
    Advise(AdviseArgs),
    /// Show an atlas: summary in the terminal, or the HTML report again.
    #[command(after_help = "Examples:\n  \
        isochrone show isochrone.atlas\n  \
        isochrone show isochrone.atlas --html=report.html\n  \
        isochrone show --json isochrone.atlas\n  \
        isochrone show isochrone.atlas --query 0:0x1a2b3c40   latency of a physical address from core 0")]
    Show(ShowArgs),
    /// Compare two atlases: what moved, beyond the intervals.
    #[command(after_help = "Examples:\n  isochrone diff monday.atlas tuesday.atlas\n  \
        isochrone diff monday.atlas tuesday.atlas --check --json=moved.json\n\n\
        Exit code 0 whether or not they differ; --check makes it 4 where they do.")]
    Diff(DiffArgs),
    /// Atlases of many nodes: which are equal, and which node deviates in what.
    #[command(after_help = fleet::AFTER_HELP)]
    Fleet {
        /// What to do.
        #[command(subcommand)]
        command: FleetCommand,
    },
    /// Write an atlas in another form.
    #[command(
        override_usage = "isochrone export --json|--csv|--hwloc-xml [ATLAS]",
        after_help = "Examples:\n  \
        isochrone export isochrone.atlas --json\n  \
        isochrone export isochrone.atlas --csv=cells.csv\n  \
        isochrone export isochrone.atlas --hwloc-xml=topo.xml && lstopo -i topo.xml"
    )]
    Export(ExportArgs),
    /// Print a machine: this one, one of the papers', or one from a file.
    #[command(after_help = "Examples:\n  isochrone machine\n  isochrone machine --list\n  \
        isochrone machine bullion-s-16s\n  isochrone machine my-machine.toml --json\n  \
        lstopo topo.xml && isochrone machine --hwloc topo.xml    what hwloc knows of a machine, here or elsewhere\n  \
        isochrone machine --suits                          which region suits which array here, by the atlas\n  \
        isochrone machine --suits --cores 0-15 --json\n  \
        isochrone machine xeon-phi-7285-all2all --suits    and on a described machine")]
    Machine(MachineArgs),
    /// Run a program with its small objects on the lines near the core that asks, or an MPI job with its
    /// collectives in cache lines.
    #[command(after_help = run::AFTER_HELP)]
    Run(RunArgs),
    /// Print how threads or ranks are bound to cores in the order of the atlas, as taskset, numactl, OpenMP, Slurm and
    /// both MPIs take it; with --memory, in which region memory is best.
    #[command(after_help = pin::AFTER_HELP)]
    Pin(PinArgs),
    /// Predict a collective on any machine: the tree, and between which times it takes.
    #[command(after_help = predict::AFTER_HELP)]
    Predict(PredictArgs),
    /// Predict, simulate and check a cache-line-aware program that is written as text.
    #[command(after_help = cla::AFTER_HELP)]
    Cla(ClaArgs),
    /// Memory larger than fast memory: what this kernel lacks for it, and how it can be had.
    #[command(after_help = "Examples:\n  isochrone tier check\n  isochrone tier check --json")]
    Tier {
        /// What to do.
        #[command(subcommand)]
        command: TierCommand,
    },
    /// Runs a program and leaves what it took; part of `run` and `bench`.
    #[command(hide = true)]
    Usage(UsageArgs),
    #[command(flatten)]
    Laboratory(LaboratoryCommand),
    /// Print shell completions.
    #[command(
        after_help = "Example:\n  isochrone completions bash > /etc/bash_completion.d/isochrone"
    )]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff), or write the pages of all commands.
    #[command(after_help = "Examples:\n  isochrone man > isochrone.1\n  \
        isochrone man --out /usr/share/man/man1")]
    Man(ManArgs),
}

/// What `map` takes. The report is written in any case.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("html", |arg| arg.default_value(REPORT)))]
pub(crate) struct MapArgs {
    /// Where the atlas goes. One that has more (experiments, cores, or a run that was not interrupted) stays, and
    /// the new one is called FILE.partial; one of another machine stays too, and the new one is called by its own
    /// machine's number. FILE.partial is also where the experiments that are over are kept until the end.
    #[arg(short, long, value_name = "FILE", default_value = "isochrone.atlas")]
    pub(crate) out: PathBuf,
    /// As one of many: the atlas goes into this folder, called by its host. Of the ranks that srun or mpirun start on a
    /// node one measures it, on all of its cores, and the others sleep until it is done. `isochrone fleet` compares the
    /// nodes. There is no report, and a map that came to its end replaces the one before.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "html", "json", "no_wait", "force"])]
    pub(crate) fleet: Option<PathBuf>,
    /// With --fleet: nodes have random names; which host is which stands in DIR/names, which only you may read.
    #[arg(long, requires = "fleet")]
    pub(crate) hash_names: bool,
    /// Replace whatever atlas is there.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) html: HtmlArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
    /// Less of everything: under 10 s, whatever else the machine does.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Time for all of it, e.g. 60s, 5m: each experiment has its share, and what did not fit is named [default: 10s
    /// with --quick, else three times what it is estimated to take, which is printed first].
    #[arg(long, value_parser = parse_time, value_name = "TIME")]
    pub(crate) budget: Option<Duration>,
    /// Memory whose pages are decoded, e.g. 256M, 1.5G [default: 1G, or 64M with --quick; at least 4M, at most
    /// a quarter of the machine's].
    #[arg(long, value_parser = parse_some_bytes, value_name = "BYTES")]
    pub(crate) memory: Option<u64>,
    /// Buffer of the region latency chase.
    #[arg(long, value_parser = parse_some_bytes, value_name = "BYTES", default_value = "100M")]
    pub(crate) buffer: u64,
    /// Put lines into the LLC by eviction even where the CPU has cldemote.
    #[arg(long)]
    pub(crate) evict: bool,
    /// Use 4 KiB pages even where huge pages can be had.
    #[arg(long)]
    pub(crate) small_pages: bool,
    /// Keep the CPUs busy at idle priority while measuring, so that a host moves them less.
    #[arg(long)]
    pub(crate) awake: bool,
    /// Refuse where another map of this machine is under way, instead of waiting for its end.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Do not say first what is measured and about how long that takes.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Only these experiments.
    #[arg(long, value_parser = experiments(), value_delimiter = ',', value_name = "NAMES")]
    pub(crate) only: Vec<Experiment>,
    /// Only these cores, e.g. 0,2-5 [default: all that this process may use].
    #[arg(long, value_name = "LIST", value_parser = parse_core_list)]
    pub(crate) cores: Option<CoreList>,
    /// Seed of every random order [default: from the clock; it is recorded].
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

/// What `show` takes.
#[derive(Debug, Args)]
#[command(mut_arg("json", behind_equals))]
pub(crate) struct ShowArgs {
    /// The atlas.
    #[arg(default_value = "isochrone.atlas")]
    pub(crate) atlas: PathBuf,
    #[command(flatten)]
    pub(crate) html: HtmlArg,
    #[command(flatten)]
    pub(crate) json: JsonArg,
    /// Latency of one physical address from one core, e.g. 0:0x1a2b3c40.
    #[arg(long, value_name = "CORE:ADDRESS", value_parser = parse_query, conflicts_with = "html")]
    pub(crate) query: Option<Query>,
}

/// What `diff` takes.
#[derive(Debug, Args)]
#[command(mut_arg("json", behind_equals))]
pub(crate) struct DiffArgs {
    /// The older atlas.
    pub(crate) a: PathBuf,
    /// The newer atlas.
    pub(crate) b: PathBuf,
    #[command(flatten)]
    pub(crate) json: JsonArg,
    /// Exit with 4 if they differ.
    #[arg(long)]
    pub(crate) check: bool,
}

/// What `export` takes.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("forms").args(["json", "csv", "hwloc_xml"]).required(true).multiple(true))]
pub(crate) struct ExportArgs {
    /// The atlas.
    #[arg(default_value = "isochrone.atlas")]
    pub(crate) atlas: PathBuf,
    #[command(flatten)]
    pub(crate) json: JsonArg,
    /// One row a cell: --csv=FILE, or --csv alone for standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT)]
    pub(crate) csv: Option<PathBuf>,
    /// hwloc 2 topology with our distances: --hwloc-xml=FILE, or --hwloc-xml alone for standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT)]
    pub(crate) hwloc_xml: Option<PathBuf>,
}

/// What `machine` takes.
#[derive(Debug, Args)]
#[command(mut_arg("json", behind_equals))]
pub(crate) struct MachineArgs {
    /// A bundled machine's name, a TOML file or hwloc's XML; this machine if left out.
    pub(crate) name: Option<String>,
    /// List the bundled machines.
    #[arg(long)]
    pub(crate) list: bool,
    /// A topology that hwloc wrote (`lstopo topology.xml`), whatever the file is called.
    #[arg(long, value_name = "XML", conflicts_with_all = ["name", "list", "suits"])]
    pub(crate) hwloc: Option<PathBuf>,
    /// Instead: which region suits an array whose accesses wait for one another, which one that keeps many lines under
    /// way, and from how many lines on; also of pages of two regions by turns. Of this machine by its atlas.
    #[arg(long, conflicts_with = "list")]
    pub(crate) suits: bool,
    /// With --suits: for these cores together, e.g. 0,2-5 [default: all of them, and those of each region].
    #[arg(long, value_name = "LIST", value_parser = parse_core_list, requires = "suits")]
    pub(crate) cores: Option<CoreList>,
    /// With --suits: this machine's atlas [default: ISOCHRONE_ATLAS, else isochrone.atlas, else the one in the cache
    /// folder].
    #[arg(long, value_name = "FILE", requires = "suits", conflicts_with = "name")]
    pub(crate) atlas: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

#[cfg(test)]
mod tests;
