//! What a process is told, and what it leaves: the record that `isochrone run --mpi` writes and the
//! reports that it reads.
//!
//! The library reads a few environment variables of its own: the path of the record, and what a user may say without
//! it. Without any everything has its default and nothing is reported, so that preloading the library alone is enough.
//! What is said and cannot be read ends the program: it would run otherwise than it was told. Where atlases lie is said
//! by the variables that say so to every part of Isochrone.

use isochrone_cla::live::{Chosen, Kind, Team};
use isochrone_places::Places;
use isochrone_units::parse_size;
use serde::{Deserialize, Serialize};
use std::ffi::{OsString, c_int};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The environment variable that holds the record's path.
pub const CONFIG_VARIABLE: &str = "ISOCHRONE_MPI";

/// What a user may say without a record; each counts for more than what the record says.
const OFF: &str = "ISOCHRONE_MPI_OFF";
const ONLY: &str = "ISOCHRONE_MPI_ONLY";
const MAX_BYTES: &str = "ISOCHRONE_MPI_MAX_BYTES";
const SINGLE_COPY: &str = "ISOCHRONE_MPI_SINGLE_COPY";
const REPRODUCIBLE: &str = "ISOCHRONE_MPI_REPRODUCIBLE";
const LEADERS: &str = "ISOCHRONE_MPI_LEADERS";
const REPORTS: &str = "ISOCHRONE_MPI_REPORTS";

/// The collectives that may be done in lines, as [`Config::only`] names them.
pub const COLLECTIVES: [&str; Kind::COUNT] = {
    let mut names = [""; Kind::COUNT];
    let mut kind = 0;
    while kind < names.len() {
        names[kind] = Kind::ALL[kind].name();
        kind += 1;
    }
    names
};

/// Bytes of a call in lines at most.
pub const BYTES_MOST: usize = 1 << 20;

/// Leaders of a node at most: each has a communicator of the MPI.
pub const LEADERS_MOST: u16 = 16;

/// What a process is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether collectives are done in lines at all.
    pub enabled: bool,
    /// Whether calls are only counted, by their sizes: all of them are the MPI's, and ranks tell one another nothing.
    pub watches: bool,
    /// The collectives that are, by [their names](COLLECTIVES); empty: all.
    pub only: Vec<String>,
    /// Calls on a communicator that its MPI still does, whatever they would save.
    pub calls_before: u32,
    /// How many times what a take-over costs a communicator's calls must have been expected to save before its ranks
    /// agree on it. 0: none.
    pub costs_before: u32,
    /// Bytes from or to each rank up to which a call is done in lines.
    pub bytes_max: usize,
    /// Whether lines take long between ranks: then fewer bytes go through them, in some collectives. None: the first
    /// rank measures it.
    pub lines_far: Option<bool>,
    /// Bytes from or to each rank from which on broadcasts, scatters, gathers, allgathers and all to alls are copied
    /// once, from the memory of one rank to that of another, where a trial finds that all ranks of a node may; none:
    /// never.
    pub single_copy: Option<usize>,
    /// Whether such calls are copied once wherever they have more bytes than go through lines. `single_copy` is none
    /// then.
    pub single_copy_auto: bool,
    /// Whether blocking reductions whose result depends on the order of its operands take them in the order of ranks,
    /// in lines and by the MPI. All ranks must be told the same.
    pub reproducible: bool,
    /// Whether ranks measure which lines they hand over fastest, for two milliseconds at most.
    pub choose_lines: bool,
    /// Communicators that are done in lines at most, at a time.
    pub communicators_max: usize,
    /// Whether communicators of one rank are done in lines as well: what a call then takes is what the way
    /// through this library takes beside what ranks tell one another.
    pub alone: bool,
    /// The atlas by which shapes are chosen; none: the one that every part of Isochrone goes by.
    pub atlas: Option<PathBuf>,
    /// Ranks of each node that share long messages between nodes: each has a part, and a communicator of the MPI with
    /// those of its number.
    pub leaders: u16,
    /// Pretends that a node ends after so many ranks: for trying what is done across nodes.
    pub ranks_per_node: Option<u32>,
    /// Pretends that the ranks of a node run on these cores, in their order: for trying what distances choose.
    pub cores: Option<Vec<u16>>,
    /// The folder for reports.
    pub reports: Option<PathBuf>,
    /// Whether MPICH refuses buffers that are the same memory: its own variables say so.
    #[serde(skip)]
    pub looks_for_aliases: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            watches: false,
            only: Vec::new(),
            calls_before: 0,
            costs_before: 1,
            bytes_max: 64 << 10,
            lines_far: None,
            single_copy: None,
            single_copy_auto: false,
            reproducible: false,
            choose_lines: true,
            communicators_max: 64,
            alone: false,
            atlas: None,
            leaders: 1,
            ranks_per_node: None,
            cores: None,
            reports: None,
            looks_for_aliases: true,
        }
    }
}

impl Config {
    /// What this process is told.
    ///
    /// # Errors
    /// Words that say what cannot be read.
    pub fn here() -> Result<Self, String> {
        let told = match std::env::var_os(CONFIG_VARIABLE) {
            Some(path) => Self::of_record(Path::new(&path))?,
            None => Self::default(),
        };
        let looks_for_aliases = MPICH_CHECKS.iter().all(|name| !is_off(name));
        Self { looks_for_aliases, ..told }.told(|name| std::env::var_os(name))?.checked()
    }

    fn of_record(path: &Path) -> Result<Self, String> {
        let wrong = |why: String| format!("{CONFIG_VARIABLE}={}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
    }

    /// The same with what the user's variables say.
    fn told(mut self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let words = |name: &str| match variable(name).map(OsString::into_string) {
            Some(Ok(words)) => Ok(Some(words)),
            Some(Err(_)) => Err(format!("{name} is no text")),
            None => Ok(None),
        };
        let yes = |name: &str| match words(name)?.as_deref() {
            None | Some("") => Ok(None),
            Some("0") => Ok(Some(false)),
            Some("1") => Ok(Some(true)),
            Some(other) => Err(format!("{name}={other}: say 1 or 0")),
        };
        self.enabled &= yes(OFF)? != Some(true);
        self.reproducible = yes(REPRODUCIBLE)?.unwrap_or(self.reproducible);
        if let Some(names) = words(ONLY)? {
            self.only = names.split(',').map(|name| name.trim().to_owned()).collect();
        }
        if let Some(size) = words(MAX_BYTES)? {
            let bytes =
                parse_size(&size).map_err(|_| format!("{MAX_BYTES}={size} is no size; say 16K"))?;
            self.bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.lines_far = Some(false);
        }
        if let Some(size) = words(SINGLE_COPY)? {
            self.single_copy_auto = size == "auto";
            self.single_copy = if self.single_copy_auto { None } else { single_copy(&size)? };
        }
        if let Some(number) = words(LEADERS)? {
            let wrong = |_| format!("{LEADERS}={number} is no number of ranks; say 4");
            self.leaders = number.parse().map_err(wrong)?;
        }
        if let Some(folder) = variable(REPORTS) {
            self.reports = Some(folder.into());
        }
        Ok(self)
    }

    fn checked(self) -> Result<Self, String> {
        if let Some(other) = self.only.iter().find(|name| !COLLECTIVES.contains(&name.as_str())) {
            let known = COLLECTIVES.join(", ");
            return Err(format!("there is no collective {other:?} to be done in lines: {known}"));
        }
        if self.bytes_max > BYTES_MOST {
            let most = BYTES_MOST;
            return Err(format!("calls of {} bytes in lines: {most} at most", self.bytes_max));
        }
        if !(1..=LEADERS_MOST).contains(&self.leaders) {
            return Err(format!("{} leaders of a node: 1 to {LEADERS_MOST}", self.leaders));
        }
        Ok(self)
    }

    /// Whether such collectives may be done in lines.
    pub(crate) fn does(&self, kind: Kind) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == kind.name())
    }

    /// Whether reductions take their operands in the order of ranks.
    pub(crate) const fn orders(&self) -> bool {
        self.reproducible && self.enabled && !self.watches
    }

    /// A number by which ranks see whether they were told the same about what is done in lines.
    pub(crate) fn number(&self) -> c_int {
        let kinds = Kind::ALL.iter().filter(|kind| self.does(**kind)).map(|kind| 1 << *kind as u32);
        // Bytes up to 2^20, collectives above, and behind these the order of operands.
        let all = kinds.fold(self.bytes_max as u64, |all, kind: u64| all | kind << 21);
        let all = all | u64::from(self.reproducible) << (21 + Kind::COUNT);
        let once = self.single_copy.map_or(0, |bytes| (bytes as u64).saturating_add(1));
        let once = if self.single_copy_auto { u64::MAX } else { once };
        let once = once ^ (self.lines_far.map_or(0, |far| 1 + u64::from(far)) << 48);
        let once = once ^ (u64::from(self.leaders) << 52);
        let mixed =
            all.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ once.wrapping_mul(0xd6e8_feb8_6659_fd93);
        // Mixed to 31 bits, so that it is not negative: of two that differ one in 2^31 is the same.
        c_int::try_from(mixed >> 33).unwrap_or(c_int::MAX)
    }

    /// Where an atlas may lie.
    pub(crate) fn places(&self) -> Places {
        Places::of(self.atlas.as_deref(), |name| std::env::var_os(name))
    }
}

/// Bytes from which on calls are copied once, as a user says it.
fn single_copy(size: &str) -> Result<Option<usize>, String> {
    if size == "off" {
        return Ok(None);
    }
    let wrong = |_| format!("{SINGLE_COPY}={size} is no size; say 64K, auto, or off");
    let bytes = parse_size(size).map_err(wrong)?;
    Ok(Some(usize::try_from(bytes).unwrap_or(usize::MAX)))
}

/// MPICH's variables without which it does not look for buffers that are the same memory (its `README.envvar`).
const MPICH_CHECKS: [&str; 2] = ["MPIR_CVAR_COLL_ALIAS_CHECK", "MPIR_CVAR_ERROR_CHECKING"];

/// Whether a variable of MPICH's is set to no, in one of the ways that it reads.
fn is_off(name: &str) -> bool {
    let words = ["0", "no", "false", "off"];
    std::env::var(name).is_ok_and(|value| words.contains(&value.to_lowercase().as_str()))
}

/// How often something was done in lines and by the MPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// In lines.
    pub lines: u64,
    /// In lines within each node, by the MPI between the leaders of nodes.
    pub across: u64,
    /// By the MPI.
    pub mpi: u64,
}

/// Calls in lines of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizedCalls {
    /// Up to how many bytes from or to each rank.
    pub bytes: u32,
    /// How many.
    pub calls: u64,
}

/// Calls of a watched job of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeenSize {
    /// Up to how many bytes from or to each rank; none: more than of any other.
    pub bytes: Option<u32>,
    /// How many.
    pub calls: u64,
}

/// Calls of one collective of a [watched](Config::watches) job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeenCalls {
    /// By size.
    pub sizes: Vec<SeenSize>,
    /// Of which the size is not known: by a type or an operation that lines do not have, or the MPI refuses them.
    pub unsized_calls: u64,
    /// Those that would have been done in lines.
    pub in_lines: u64,
    /// What those of few bytes would have saved, ns: by the table by which communicators are taken over. It is no
    /// measurement.
    pub saves_ns: u64,
}

/// Calls that the MPI did for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftCalls {
    /// Why, in words.
    pub why: String,
    /// How many.
    pub calls: u64,
}

/// What is known of a collective's calls beside how many they were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Details {
    /// Those in lines by size.
    pub sizes: Vec<SizedCalls>,
    /// Those by the MPI by reason.
    pub by_the_mpi: Vec<LeftCalls>,
    /// Calls whose bytes were copied once, from rank to rank: they count among those in lines.
    #[serde(default)]
    pub copied_once: u64,
    /// Calls by the MPI of which it moved the operands alone, and they were combined in the order of ranks.
    #[serde(default)]
    pub in_order: u64,
    /// Calls across nodes of which several leaders of each node had a part: they count among those across.
    #[serde(default)]
    pub in_parts: u64,
    /// What those in lines are expected to have saved, ns: by the table by which communicators are taken over. It is
    /// no measurement.
    pub saved_ns: u64,
}

/// A shape that was chosen by distances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChosenShape {
    /// Ranks of the communicator that share a node.
    pub ranks: u32,
    /// Of which calls: `bcast`, `barrier`, ...
    pub call: String,
    /// Up to how many bytes.
    pub bytes: u32,
    /// From or to which rank of the node.
    pub root: u32,
    /// How they are done, in words.
    pub way: String,
}

/// Communicators that were left to the MPI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// Ranks of each; 0: all communicators, whatever ranks they have.
    pub ranks: u32,
    /// How many communicators.
    pub communicators: u32,
    /// Why they were left, in words.
    pub why: String,
}

/// What a process leaves at its end, and before, so that one that is killed has left what was known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Its rank in `MPI_COMM_WORLD`; of an MPI that is not known, what its launcher says.
    pub rank: u32,
    /// What the MPI says of itself.
    pub mpi: String,
    /// Whether the process came to `MPI_Finalize` or to its exit. If not, the counts are of a while before its end.
    #[serde(default)]
    pub ended: bool,
    /// Communicators whose collectives were done in lines.
    pub communicators: u32,
    /// Of them, those whose lines were chosen by measurement; counted at their first ranks alone.
    pub chosen: u32,
    /// Why a communicator of this process has no collectives any more, in words: a rank of it ended, or ranks called
    /// different ones. The counts are those of then where the process has not come to `MPI_Finalize` since.
    #[serde(default)]
    pub broken: Option<String>,
    /// What agreeing on communicators and taking them over took, us.
    #[serde(default)]
    pub set_up_us: u64,
    /// Bytes of memory that ranks of this node share, at the end.
    #[serde(default)]
    pub shared_bytes: u64,
    /// Whether ranks of this node may copy from each other's memory, as they found; none: they did not look.
    #[serde(default)]
    pub reach: Option<bool>,
    /// Whether lines take long between ranks of this node, as they hold alike: then fewer bytes go through lines.
    #[serde(default)]
    pub lines_far: Option<bool>,
    /// The atlas by which shapes were chosen; said by the ranks that chose.
    #[serde(default)]
    pub atlas: Option<String>,
    /// Why an atlas that is there was not used; said by the same.
    #[serde(default)]
    pub atlas_refused: Option<String>,
    /// Shapes that were chosen by distances and are not those of the rule without, a few at most.
    #[serde(default)]
    pub shapes: Vec<ChosenShape>,
    /// Communicators that were left to the MPI, by ranks and reason, a few at most.
    pub refusals: Vec<Refusal>,
    /// Calls by name: `bcast`, `barrier`, ...
    pub calls: std::collections::BTreeMap<String, Counts>,
    /// The same calls in detail.
    #[serde(default)]
    pub details: std::collections::BTreeMap<String, Details>,
    /// Calls of a [watched](Config::watches) job by size.
    #[serde(default)]
    pub seen: std::collections::BTreeMap<String, SeenCalls>,
    /// What taking over the communicators of a watched job would have cost, us: by what it costs at least.
    #[serde(default)]
    pub would_cost_us: u64,
    /// Ranks of this job, and those on this rank's node; 0: not known.
    #[serde(default)]
    pub ranks: u32,
    /// See [`Self::ranks`].
    #[serde(default)]
    pub node_ranks: u32,
}

impl Report {
    /// Refusals that are reported at most.
    const REFUSALS_MAX: usize = 16;
    /// The same of shapes.
    const SHAPES_MAX: usize = 64;

    /// Notes what was chosen for a team.
    pub(crate) fn note_shapes(&mut self, team: &mut Team) {
        let ranks = team.ranks().into();
        let shape = |chosen: Chosen| ChosenShape {
            ranks,
            call: chosen.kind.name().to_owned(),
            bytes: chosen.bytes,
            root: chosen.root.0.into(),
            way: chosen.options.to_string(),
        };
        for shape in team.chosen().into_iter().map(shape) {
            if self.shapes.len() < Self::SHAPES_MAX && !self.shapes.contains(&shape) {
                self.shapes.push(shape);
            }
        }
    }

    /// Notes a communicator of `ranks` ranks that is left to the MPI.
    pub(crate) fn refuse(&mut self, ranks: u32, why: &str) {
        let same = |refusal: &&mut Refusal| refusal.ranks == ranks && refusal.why == why;
        if let Some(known) = self.refusals.iter_mut().find(same) {
            known.communicators = known.communicators.saturating_add(1);
        } else if self.refusals.len() < Self::REFUSALS_MAX {
            self.refusals.push(Refusal { ranks, communicators: 1, why: why.to_owned() });
        }
    }

    /// Leaves it in `folder`, in place of what this process has left there before: `place` says where. It is whole at
    /// every moment, whenever the process is killed. A report that cannot be written is missed by whoever asked for
    /// it.
    pub(crate) fn leave(&self, folder: &Path, place: &mut Option<PathBuf>) {
        let Ok(text) = serde_json::to_string_pretty(self) else { return };
        if place.is_none() {
            *place = name_of_our_own(folder);
        }
        let Some(place) = place else { return };
        let new = place.with_extension("new");
        let written = create(&new).and_then(|mut file| file.write_all((text + "\n").as_bytes()));
        let _left = written.and_then(|()| std::fs::rename(&new, place));
    }
}

/// Makes a file that was not there: the name can be guessed.
fn create(path: &Path) -> std::io::Result<std::fs::File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Ranks of one folder that have the same number of a process, at most.
const NAMESAKES_MOST: u32 = 1 << 12;

/// Takes a name in `folder` that no other process has: by the process's number, which ranks in containers of their own
/// may share.
fn name_of_our_own(folder: &Path) -> Option<PathBuf> {
    let own = std::process::id();
    for namesake in 0..NAMESAKES_MOST {
        let name = if namesake == 0 { own.to_string() } else { format!("{own}-{namesake}") };
        let path = folder.join(name + ".json");
        match create(&path) {
            Ok(_) => return Some(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}

/// Ends a program that was told what cannot be read.
#[allow(clippy::exit, reason = "it would run otherwise than it was told, in other people's time")]
pub(crate) fn refuse(why: &str) -> ! {
    let _heard = writeln!(std::io::stderr(), "isochrone: {why}");
    std::process::exit(2)
}

/// A number that the launcher of this job tells its processes by one of these names.
pub(crate) fn launched(names: &[&str]) -> Option<u32> {
    let told = |name: &&str| std::env::var(name).ok()?.parse().ok();
    names.iter().find_map(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_has_its_default() {
        let config: Config = serde_json::from_str(r#"{"calls_before": 1}"#).expect("valid");
        assert_eq!(config, Config { calls_before: 1, ..Config::default() });
        assert!(serde_json::from_str::<Config>(r#"{"calls": 1}"#).is_err(), "no such field");
    }

    /// What a user says by variables, on top of the default.
    fn told(said: &[(&str, &str)]) -> Result<Config, String> {
        let variable = |name: &str| {
            said.iter().find(|(known, _)| *known == name).map(|(_, words)| OsString::from(words))
        };
        Config::default().told(variable)?.checked()
    }

    #[test]
    fn variables_say_what_a_record_would() {
        let config = told(&[(ONLY, "bcast, barrier"), (MAX_BYTES, "16K"), (REPORTS, "/r")]);
        let config = config.expect("valid");
        assert_eq!((config.bytes_max, config.enabled), (16 << 10, true));
        assert_eq!(config.reports.as_deref(), Some(Path::new("/r")));
        assert!(config.does(Kind::Broadcast) && config.does(Kind::Barrier));
        assert!(!config.does(Kind::Allreduce) && Config::default().does(Kind::Allreduce));
        assert!(!told(&[(OFF, "1")]).expect("valid").enabled);
        assert!(told(&[(OFF, "0")]).expect("valid").enabled);
        assert_ne!(config.number(), Config::default().number());
        let once = told(&[(SINGLE_COPY, "1M")]).expect("valid");
        assert_eq!((once.single_copy, once.bytes_max), (Some(1 << 20), 64 << 10));
        assert_ne!(once.number(), Config::default().number());
        let auto = told(&[(SINGLE_COPY, "auto")]).expect("valid");
        assert_eq!((auto.single_copy, auto.single_copy_auto), (None, true));
        assert_ne!(auto.number(), Config::default().number(), "ranks are to be told alike");
        let limited = told(&[(MAX_BYTES, "64K")]).expect("valid");
        assert_eq!(limited.lines_far, Some(false), "what a user says counts");
        assert_ne!(limited.number(), Config::default().number());
        assert_eq!(told(&[(SINGLE_COPY, "off")]).expect("valid"), Config::default());
        let ordered = told(&[(REPRODUCIBLE, "1")]).expect("valid");
        assert!(ordered.orders() && !Config::default().orders());
        assert_ne!(ordered.number(), Config::default().number());
        assert!(!told(&[(REPRODUCIBLE, "1"), (OFF, "1")]).expect("valid").orders());
        assert_eq!(told(&[(REPRODUCIBLE, "0")]).expect("valid"), Config::default());
        let led = told(&[(LEADERS, "4")]).expect("valid");
        assert_eq!((led.leaders, Config::default().leaders), (4, 1));
        assert_ne!(led.number(), Config::default().number());
        assert!(told(&[]).expect("valid").number() >= 0);
    }

    #[test]
    fn a_report_is_left_anew_and_beside_that_of_a_namesake() {
        let folder = std::env::temp_dir().join(format!("isochrone-left-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("room");
        let (mut first, mut second) = (None, None);
        for rank in 0..3 {
            Report { rank, ..Report::default() }.leave(&folder, &mut first);
        }
        Report { rank: 7, ..Report::default() }.leave(&folder, &mut second);
        let read = |path: &Option<PathBuf>| {
            let text = std::fs::read_to_string(path.as_ref().expect("it was left"));
            serde_json::from_str::<Report>(&text.expect("there")).expect("whole").rank
        };
        assert_eq!((read(&first), read(&second)), (2, 7));
        assert_eq!(std::fs::read_dir(&folder).expect("there").count(), 2, "and nothing else");
        std::fs::remove_dir_all(&folder).expect("ours");
        let mut none = None;
        Report::default().leave(Path::new("/no/such/folder"), &mut none);
        assert_eq!(none, None);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (name, words, named) in [
            (OFF, "maybe", "maybe"),
            (REPRODUCIBLE, "yes", "REPRODUCIBLE=yes: say 1 or 0"),
            (LEADERS, "all", "LEADERS=all is no number"),
            (LEADERS, "0", "0 leaders of a node: 1 to 16"),
            (LEADERS, "17", "17 leaders"),
            (ONLY, "bcast,alltoallw", "\"alltoallw\""),
            (ONLY, "", "\"\""),
            (MAX_BYTES, "many", "many"),
            (MAX_BYTES, "2M", "2097152"),
            (SINGLE_COPY, "all", "SINGLE_COPY=all"),
        ] {
            let why = told(&[(name, words)]).expect_err("not valid");
            assert!(why.contains(named), "{why}");
        }
        let why = Config::of_record(Path::new("/no/such/file")).expect_err("not there");
        assert!(why.contains("ISOCHRONE_MPI=/no/such/file"), "{why}");
    }
}
