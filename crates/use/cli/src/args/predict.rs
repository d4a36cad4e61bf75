//! What `isochrone predict` takes.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use isochrone_cla::live::Kind;
use isochrone_console::args::parse_bytes;

use super::shown::Shown;
use super::term::{TermAsked, parse_term};
use super::tree::{TreeAsked, parse_tree};

/// Examples below `isochrone predict --help`.
pub(super) const AFTER_HELP: &str = "\
Examples:
  isochrone predict bcast --machine xeon-e5-2660-2s --threads 2..16 --simulate
  isochrone predict bcast --machine xeon-e5-2660-2s --threads 2..32 \\
    --smt assumed
  isochrone predict barrier --threads 2 --atlas isochrone.atlas
  isochrone predict bcast --threads 2 --atlas isochrone.atlas --term measured
  isochrone predict bcast --machine xeon-e5-2660-2s --threads 16 \\
    --term rfo-sharer=9 --term overlapped-ack=15
  isochrone predict bcast --machine xeon-e5-2660-2s --threads 16 \\
    --tree binomial --simulate --each
  isochrone predict bcast --machine xeon-e5-2660-2s --threads 4 \\
    --dot tree.dot --svg tree.svg

T_min takes every operation at its cheapest, T_max lets every unordered use of a line come in \
between. Both are `predicted`; what --simulate adds is `simulated`. Nothing is measured here.";

/// What `predict` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct PredictArgs {
    /// The collective; those that combine add 64-bit integers.
    #[arg(value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::name)).map(kind))]
    pub(crate) collective: Kind,
    /// A bundled machine's name or a TOML file [default: this machine, from its atlas].
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: Option<String>,
    /// This machine's atlas, where no machine is named [default: ISOCHRONE_ATLAS, else isochrone.atlas, else
    /// the one in the cache folder].
    #[arg(long, value_name = "FILE")]
    pub(crate) atlas: Option<PathBuf>,
    /// Threads, e.g. 16, 2..16 (both ends included) or 2,4,8 [default: 2 up to all cores, if the
    /// root is one of them].
    #[arg(long, value_name = "LIST", value_parser = parse_threads)]
    pub(crate) threads: Option<Threads>,
    /// Bytes from or to each thread.
    #[arg(long, default_value = "8", value_name = "BYTES", value_parser = parse_call_bytes)]
    pub(crate) bytes: u32,
    /// The root, where the collective has one: 0 up to one less than the threads.
    #[arg(long, default_value_t = 0)]
    pub(crate) root: u16,
    /// Where flags and data are when a call begins.
    #[arg(long, value_enum, default_value_t = StartName::Hot)]
    pub(crate) start: StartName,
    /// What the choice is good for.
    #[arg(long, value_enum, default_value_t = ObjectiveName::Isolated)]
    pub(crate) objective: ObjectiveName,
    /// Where children say that they have copied.
    #[arg(long, value_enum, default_value_t = AcksName::PerChild)]
    pub(crate) acks: AcksName,
    /// Parents wait for their children within the call, as in the paper's Figure 1.
    #[arg(long)]
    pub(crate) acks_in_call: bool,
    /// Writers do not claim the slot that they write next.
    #[arg(long)]
    pub(crate) no_claims: bool,
    /// Slots of a ring, a power of two [default: as when it is run].
    #[arg(long, value_name = "SLOTS", value_parser = parse_ring)]
    pub(crate) ring: Option<u32>,
    /// Use the second hardware thread of each core, whose costs no paper gives.
    #[arg(long, value_enum, value_name = "assumed")]
    pub(crate) smt: Option<SmtName>,
    /// Switch a cost on that the paper's model lacks, as NAME=NS, or as NAME for what the atlas has measured;
    /// `measured` for all that it has. May be repeated. Names: first-remote-reader, overlapped-ack, rfo-sharer,
    /// adjacent-line, left-shared. Bands are shown with none, with each alone and with all.
    #[arg(long = "term", value_name = "NAME[=NS]", value_parser = parse_term)]
    pub(crate) terms: Vec<TermAsked>,
    /// Predict this tree instead of the best one, which comes second then: flat, binomial, a degree such as 2, or the
    /// parents of all threads such as -,0,0,1.
    #[arg(long, value_parser = parse_tree, allow_hyphen_values = true)]
    pub(crate) tree: Option<TreeAsked>,
    /// Simulate what was chosen, message by message.
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Say when each thread is done, with the mean and the last, for the largest number of threads.
    #[arg(long)]
    pub(crate) each: bool,
    #[command(flatten)]
    pub(crate) shown: Shown,
}

/// Numbers of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Threads(pub(crate) Vec<usize>);

/// Where lines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StartName {
    /// In memory, as the paper's rule 1 has it.
    Memory,
    /// As the calls before leave them.
    Hot,
}

/// What a choice is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectiveName {
    /// One call, begun by all at once.
    Isolated,
    /// Call after call without a pause.
    Steady,
}

/// Where children acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcksName {
    /// On a line of each child.
    PerChild,
    /// On one counter of the parent.
    Counter,
}

/// Where the cost between hardware threads of a core comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SmtName {
    /// From the machine file's assumption.
    Assumed,
}

/// The collective of a name, which is one of theirs.
fn kind(name: String) -> Kind {
    Kind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(Kind::Broadcast)
}

/// Bytes of a call.
fn parse_call_bytes(text: &str) -> Result<u32, String> {
    u32::try_from(parse_bytes(text)?).map_err(|_| format!("`{text}` is too large: less than 4G"))
}

/// `16`, `2..16` or `2,4,8`.
fn parse_threads(text: &str) -> Result<Threads, String> {
    let number = |t: &str| match t.trim().parse::<usize>() {
        Ok(n) if (2..=MOST).contains(&n) => Ok(n),
        _ => Err(format!("`{t}` in `{text}` is not a number of threads from 2 to {MOST}")),
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => all.push(number(part)?),
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to.trim_start_matches('='))?);
                if from > to {
                    return Err(format!("`{part}` runs backwards"));
                }
                all.extend(from..=to);
            }
        }
        if all.len() > MOST {
            return Err(format!("more than {MOST} numbers of threads are named"));
        }
    }
    Ok(Threads(all))
}

/// A power of two that a plan may have.
fn parse_ring(text: &str) -> Result<u32, String> {
    let ring = text.trim().parse::<u32>().ok();
    ring.filter(|ring| ring.is_power_of_two() && *ring <= MOST_SLOTS)
        .ok_or_else(|| format!("`{text}` is no power of two from 1 to {MOST_SLOTS}"))
}

/// Most slots of a ring, one line each, that a plan may have.
const MOST_SLOTS: u32 = 1 << 20;
/// Most threads that are predicted.
const MOST: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads() {
        assert_eq!(parse_threads("2..4"), Ok(Threads(vec![2, 3, 4])));
        assert_eq!(parse_threads("8,2..3"), Ok(Threads(vec![8, 2, 3])));
        assert!(parse_threads("1").is_err());
        assert!(parse_threads("4..2").is_err());
        assert!(parse_threads("many").is_err());
    }

    #[test]
    fn bytes_of_a_call_are_written_as_all_sizes_are() {
        assert_eq!(parse_call_bytes("8"), Ok(8));
        assert_eq!(parse_call_bytes("0"), Ok(0));
        assert_eq!(parse_call_bytes("64k"), Ok(64 << 10));
        assert_eq!(parse_call_bytes("4294967295"), Ok(u32::MAX));
        assert!(parse_call_bytes("4G").is_err_and(|said| said.contains("too large")));
        assert!(parse_call_bytes("-1").is_err());
    }

    #[test]
    fn rings() {
        assert_eq!(parse_ring("1"), Ok(1));
        assert_eq!(parse_ring("1048576"), Ok(1 << 20));
        for wrong in ["", "0", "3", "-4", "2097152", "4294967296", "many"] {
            assert!(parse_ring(wrong).is_err(), "{wrong}");
        }
    }
}
