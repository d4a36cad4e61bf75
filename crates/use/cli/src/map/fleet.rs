//! `isochrone map --fleet DIR`: of the ranks that a launcher starts on a node, one measures it and the others sleep.
//!
//! Ranks find one another by the turn that every map takes (`host/system/turn.rs`): a lock that all processes of a node
//! see, and that ends with the process. Who has it looks into the folder whether a rank of the same job has been here
//! before; if so there is nothing left to do. So nothing is made outside of the folder, no network file system is asked
//! while a node is measured, and where a rank dies another one has the lock and measures. No MPI is linked: a rank that
//! waits in a barrier would spin beside the one that measures, and a node that dies would take the job's atlases along.
//! Nodes of one machine that do not see one another's turn find one another by the folder (`neighbours`).

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use isochrone_atlas_store::save_text;
use isochrone_fleet::{State, StateWord};
use isochrone_host::{NodeIdentity, SysRoot, node_identity};
use isochrone_os::affinity::{CoreSet, restore};

use super::job;
use super::neighbours;
use super::turn::{self, Manner};
use crate::args::MapArgs;
use isochrone_console::codes;
use isochrone_console::output::Terminal;
use isochrone_console::progress::{Interrupt, Progress};

/// Where the names of hosts stand whose atlases are called otherwise. Only its owner may look into it.
const NAMES: &str = "names";
/// Ranks of a node that begin to measure it in one job: what killed two of them would kill the third.
const TRIES: u32 = 2;
/// Names that machines have which nobody gave one.
const NAMELESS: [&str; 3] = ["", "localhost", "(none)"];
/// Longest name of a host (`HOST_NAME_MAX` of Linux).
const NAME_BYTES: usize = 64;

/// Runs the command on one rank.
pub(super) fn run(args: &MapArgs, folder: &Path, terminal: &Terminal) -> Result<ExitCode> {
    fs::create_dir_all(folder).with_context(|| {
        format!("nothing is measured, since {} cannot be made", folder.display())
    })?;
    // A launcher binds ranks to a few cores each. This one stands for all of its node; a cpuset still holds.
    restore(&CoreSet::all()).map_err(|error| anyhow::anyhow!("{error}"))?;
    let turn = waited(|progress| turn::take(Manner::Sleep, progress, terminal))?;
    let identity = node_identity(&SysRoot::live());
    let run = job::hash();
    let name = name(folder, &identity, run, args.hash_names)?;
    let tries = match earlier(folder, &name, &identity, run) {
        Some(State { word: StateWord::Done, .. }) => {
            terminal
                .complain(&format!("isochrone: {name} was measured by another rank of this job"));
            return Ok(ExitCode::SUCCESS);
        }
        Some(State { word: StateWord::Failed, .. }) => {
            bail!("another rank of this job could not measure {name}; see what it said")
        }
        Some(State { word: StateWord::Begun, tries, .. }) => {
            ensure!(tries < TRIES, "{tries} ranks of this job ended while they measured {name}");
            terminal
                .complain(&format!("isochrone: a rank ended while it measured {name}: once more"));
            tries + 1
        }
        None => 1,
    };
    let state = |word| State { word, run, boot: identity.boot, space: identity.space, tries };
    let tell = |word| {
        save_text(&state(word).to_string(), &State::path(folder, &name))
            .with_context(|| format!("{} takes no files", folder.display()))
    };
    tell(StateWord::Begun)?;
    let _lock = waited(|progress| neighbours::take(folder, identity.boot, progress, terminal))?;
    let own = MapArgs { out: folder.join(format!("{name}.atlas")), quiet: true, ..args.clone() };
    let code = super::one::one(&own, turn.as_ref(), terminal);
    let told = match &code {
        Ok(code) if *code == ExitCode::SUCCESS => tell(StateWord::Done),
        // Whoever looks at the folder sees that it has not ended.
        Ok(code) if *code == ExitCode::from(codes::INTERRUPTED) => Ok(()),
        _ => tell(StateWord::Failed),
    };
    // The next rank has the turn when it can be seen what became of this one.
    drop(turn);
    told.and(code)
}

/// Waits for something, with a line that says so where there is a terminal.
fn waited<T>(wait: impl FnOnce(&mut Progress) -> Result<T>) -> Result<T> {
    let mut progress = Progress::new(Interrupt::install());
    let came = wait(&mut progress);
    progress.finish();
    came
}

/// What a rank of the same job and node left.
fn earlier(folder: &Path, name: &str, identity: &NodeIdentity, run: u64) -> Option<State> {
    let state = State::read(folder, name)?;
    let is_ours = (state.boot, state.space) == (identity.boot, identity.space);
    (run != 0 && state.run == run && is_ours).then_some(state)
}

/// What this node is called in the folder. Where another one has its name at the same time, or the name is nobody's, a
/// number of its own is added.
fn name(folder: &Path, identity: &NodeIdentity, run: u64, hashed: bool) -> Result<String> {
    let host = sound(&identity.host);
    let name = if hashed { pseudonym(folder, &host)? } else { host.clone() };
    let is_namesake = State::read(folder, &name).is_some_and(|state| {
        let is_other = (state.boot, state.space) != (identity.boot, identity.space);
        let is_now = state.word == StateWord::Begun && state.boot == identity.boot;
        is_other && (is_now || run != 0 && state.run == run)
    });
    let is_nameless = NAMELESS.contains(&identity.host.as_str());
    Ok(match is_namesake || (is_nameless && !hashed) {
        true => format!("{name}-{:08x}", (identity.boot ^ identity.space.rotate_left(32)) >> 32),
        false => name,
    })
}

/// A host's name as part of a file's name.
fn sound(host: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = host.chars().take(NAME_BYTES).map(letter).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "node".to_owned() } else { name.to_owned() }
}

/// The random name that a host has in this folder, drawn when it is asked for first. A hash of the host's name could be
/// found by trying names.
fn pseudonym(folder: &Path, host: &str) -> Result<String> {
    let names = folder.join(NAMES);
    let refused = || format!("{} cannot keep the names of hosts", names.display());
    match fs::DirBuilder::new().mode(0o700).create(&names) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(refused);
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&names).with_context(refused)?;
    let is_private = found.is_dir() && found.permissions().mode() & 0o077 == 0;
    ensure!(
        is_private,
        "{} is not a folder that only its owner may read: chmod 700 it",
        names.display()
    );
    let place = names.join(host);
    let mut drawn = tempfile::NamedTempFile::new_in(&names).with_context(refused)?;
    let mut number = [0; 6];
    let mut source = fs::File::open("/dev/urandom").with_context(refused)?;
    std::io::Read::read_exact(&mut source, &mut number).with_context(refused)?;
    let digits: String = number.iter().map(|byte| format!("{byte:02x}")).collect();
    write!(drawn, "node-{digits}").with_context(refused)?;
    // Whichever rank comes first names the host; what is there already stays.
    if let Err(error) = drawn.persist_noclobber(&place) {
        ensure!(place.is_file(), "{}: {}", place.display(), error.error);
    }
    let name = fs::read_to_string(&place).with_context(refused)?;
    ensure!(sound(&name) == name, "{} holds no name: remove it", place.display());
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(host: &str, boot: u64, space: u64) -> NodeIdentity {
        NodeIdentity { host: host.to_owned(), boot, space }
    }

    fn leave(folder: &Path, name: &str, state: State) {
        fs::write(State::path(folder, name), state.to_string()).unwrap();
    }

    #[test]
    fn a_node_has_the_name_of_its_host_unless_another_has_it_too() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let named = |identity: &NodeIdentity, run| name(at, identity, run, false).unwrap();
        let (one, other) = (identity("n1", 1, 1), identity("n1", 1, 2));
        assert_eq!(named(&one, 7), "n1");
        let begun = State { word: StateWord::Begun, run: 7, boot: 1, space: 1, tries: 1 };
        leave(at, "n1", begun);
        assert_eq!(named(&one, 7), "n1", "it is its own");
        assert!(named(&other, 7).starts_with("n1-"), "of one job");
        assert!(named(&other, 0).starts_with("n1-"), "at the same time");
        leave(at, "n1", State { word: StateWord::Done, ..begun });
        assert_eq!(named(&other, 8), "n1", "the node was started again");
        assert!(named(&other, 7).starts_with("n1-"), "two nodes of one job");
        assert!(named(&identity("localhost", 1, 1), 0).starts_with("localhost-"));
        assert_eq!(named(&identity("../a b", 1, 1), 0), "_a_b");
    }

    #[test]
    fn a_rank_knows_what_one_of_its_job_left_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let state = State { word: StateWord::Done, run: 7, boot: 1, space: 2, tries: 1 };
        leave(folder.path(), "n1", state);
        let found = |identity: &NodeIdentity, run| earlier(folder.path(), "n1", identity, run);
        assert_eq!(found(&identity("n1", 1, 2), 7), Some(state));
        assert_eq!(found(&identity("n1", 1, 2), 8), None);
        assert_eq!(found(&identity("n1", 1, 3), 7), None);
        leave(folder.path(), "n1", State { run: 0, ..state });
        assert_eq!(found(&identity("n1", 1, 2), 0), None, "nobody said which job it is");
    }

    #[test]
    fn a_host_keeps_its_random_name_and_only_its_owner_can_tell() {
        let folder = tempfile::tempdir().unwrap();
        let of = |host: &str| pseudonym(folder.path(), host).unwrap();
        let (one, other) = (of("n1"), of("n2"));
        assert_eq!(of("n1"), one);
        assert!(one != other && one.starts_with("node-") && !one.contains("n1"), "{one} {other}");
        let names = folder.path().join(NAMES);
        assert_eq!(fs::metadata(&names).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&names, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(pseudonym(folder.path(), "n1").unwrap_err().to_string().contains("chmod 700"));
    }
}
