//! The MPIs that collectives are compared with, and how a job of one is started.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isochrone_mpi::{CONFIG_VARIABLE, Config};
use isochrone_units::CoreId;
use serde::Serialize;

use super::cells::Job;
use crate::bench::Stop;
use isochrone_console::output::WrongUsage;
use isochrone_console::run::ended::{alone, ended};
use isochrone_console::run::library;

/// An MPI in one setting.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Peer {
    pub(crate) name: String,
    /// What starts a job, with its options.
    pub(crate) command: Vec<String>,
    /// The library that its processes load.
    pub(crate) library: String,
}

/// Debian's packages: name, command, library.
const PACKAGED: [(&str, &str, &str); 3] = [
    ("openmpi", "mpirun.openmpi --bind-to none", "libmpi.so.40"),
    // Its shared-memory component is there and not used unless asked for.
    ("openmpi-sm", "mpirun.openmpi --bind-to none --mca coll_sm_priority 100", "libmpi.so.40"),
    ("mpich", "mpirun.mpich", "libmpich.so.12"),
];

/// Open MPI's component for one node with many cores.
pub(super) const XHC: &str = "xhc";
/// MPICH's device `ch4` over libfabric.
const CH4_OFI: &str = "ch4-ofi";
/// Names of an MPI's library, from what is one for certain: `libmpi.so` may be a text for the linker.
const LIBRARIES: [&str; 4] = ["libmpi.so.40", "libmpi.so.12", "libmpi.so.0", "libmpi.so"];
/// What has to be built or installed by hand, and how.
const BUILT: [(&str, &str); 2] = [
    (XHC, "Open MPI 6; releases 5 and before lack it"),
    (CH4_OFI, "`pip install mpich` into a virtual environment, which is then PREFIX"),
];

impl Peer {
    /// The packaged ones, then those that the user built, as `NAME=PREFIX` or `NAME=LIBRARY=COMMAND`.
    pub(crate) fn all(built: &[String]) -> Result<Vec<Self>> {
        let packaged = PACKAGED.map(|(name, command, library)| Self::of(name, library, command));
        let mut peers = packaged.to_vec();
        for text in built {
            let parts: Vec<&str> = text.splitn(3, '=').collect();
            peers.push(match parts[..] {
                [name, prefix] => Self::installed(name, Path::new(prefix))?,
                [name, library, command] => Self::of(name, library, command),
                _ => bail!(
                    "--peer {text}: give NAME=PREFIX, as in {XHC}=/opt/ompi, or NAME=LIBRARY=COMMAND, as in \
                     {XHC}=/opt/lib/libmpi.so=/opt/bin/mpirun"
                ),
            });
        }
        Ok(peers)
    }

    /// Those of `peers` that `only` names; all where it names none.
    pub(crate) fn chosen(mut peers: Vec<Self>, only: &[String]) -> Result<Vec<Self>> {
        let is_known = |name: &String| peers.iter().any(|peer| peer.name == *name);
        if let Some(unknown) = only.iter().find(|name| !is_known(name)) {
            let known: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
            return Err(WrongUsage::error(format!(
                "--only: there is no MPI `{unknown}`; there are {}; more with --peer",
                known.join(", ")
            )));
        }
        peers.retain(|peer| only.is_empty() || only.contains(&peer.name));
        Ok(peers)
    }

    /// The MPI that is installed below `prefix`, set up as its name asks for.
    fn installed(name: &str, prefix: &Path) -> Result<Self> {
        let (lib, mpirun) = (prefix.join("lib"), prefix.join("bin/mpirun"));
        let library = LIBRARIES.iter().map(|name| lib.join(name)).find(|path| path.exists());
        let Some(library) = library.filter(|_| mpirun.exists()) else {
            bail!(
                "--peer {name}={}: there is no lib/{} and bin/mpirun; give {name}=LIBRARY=COMMAND",
                prefix.display(),
                LIBRARIES[0]
            );
        };
        let mpirun = mpirun.display();
        let command = if prefix.join("bin/ompi_info").exists() {
            let asked = match name {
                XHC => " --mca coll_xhc_priority 100",
                _ if name.ends_with("-sm") => " --mca coll_sm_priority 100",
                _ => "",
            };
            format!("{mpirun} --bind-to none{asked}")
        } else if name == CH4_OFI {
            format!("env MPICH_CH4_NETMOD=ofi {mpirun}")
        } else {
            mpirun.to_string()
        };
        Ok(Self::of(name, &library.display().to_string(), &command))
    }

    /// The stronger ones that no distribution of Linux packages, as far as they are not among `peers`: name and
    /// why there is none.
    pub(crate) fn absent(peers: &[Self]) -> Vec<(&'static str, String)> {
        let missing = BUILT.iter().filter(|(name, _)| peers.iter().all(|peer| peer.name != *name));
        let why = |name, how| format!("{name}: not given; --peer {name}=PREFIX adds it ({how})");
        missing.map(|&(name, how)| (name, why(name, how))).collect()
    }

    fn of(name: &str, library: &str, command: &str) -> Self {
        Self {
            name: name.to_owned(),
            command: command.split_whitespace().map(str::to_owned).collect(),
            library: library.to_owned(),
        }
    }

    /// Why no job of it can be started, if so.
    pub(crate) fn missing(&self) -> Option<String> {
        let program = self.command.first()?;
        let found = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        found.err().map(|error| format!("{}: {program} cannot be started ({error})", self.name))
    }

    /// One job: every cell, in blocks.
    pub(crate) fn job(&self, launch: &Launch<'_>) -> Result<Job> {
        let out = launch.scratch.join("job.json");
        let (config, said) = (launch.scratch.join("mpi.json"), launch.scratch.join("said.txt"));
        // Every call is done in lines from the start, whatever its size: that is what is compared.
        let at_once = Config { calls_before: 0, costs_before: 0, ..Config::default() };
        let atlas = launch.atlas.cloned();
        let told = Config { bytes_max: 1 << 20, alone: true, atlas, ..at_once };
        std::fs::write(&config, serde_json::to_string(&told)?)
            .with_context(|| config.display().to_string())?;
        let cores: Vec<String> = launch.cores.iter().map(|core| core.0.to_string()).collect();
        let words = File::create(&said)?;
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .args(["-n", &cores.len().to_string()])
            .arg(std::env::current_exe()?)
            .args(["coll-rank", "--library", &self.library, "--cores", &cores.join(",")])
            .args(["--seed", &launch.seed.to_string(), "--blocks", &launch.blocks.to_string()])
            .args(launch.seconds.map(|time| format!("--seconds={}", time.as_secs_f64())))
            .args(launch.first.map(|time| format!("--first={}", time.as_secs_f64())))
            .arg("--out")
            .arg(&out)
            .env("LD_PRELOAD", launch.preload)
            .env(CONFIG_VARIABLE, &config)
            // Open MPI starts nothing for root otherwise, as in a container.
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            // It waits for a second before it kills ranks, longer than it is waited for: they would go on without it,
            // and their files stay.
            .env("OMPI_MCA_odls_base_sigkill_timeout", "0")
            .env("PRTE_MCA_odls_base_sigkill_timeout", "0")
            .stdin(Stdio::null())
            // Some say on standard output why they fail.
            .stdout(Stdio::from(words.try_clone()?))
            .stderr(Stdio::from(words));
        let mut child = alone(&mut command).spawn().with_context(|| self.command[0].clone())?;
        let status = ended(&mut child, &|| launch.stop.is_set())?;
        let status = status.with_context(|| format!("a job of {} was ended", self.name))?;
        // A launcher may end well and start nothing.
        if !status.success() || !out.exists() {
            let said = once(&String::from_utf8_lossy(&std::fs::read(&said)?));
            let said = if said.is_empty() { "nothing was said" } else { &said };
            let began = [&self.command[..], &["-n".to_owned(), cores.len().to_string()]].concat();
            bail!(
                "a job of {} failed ({status}); it was started by `{} ...`: {said}",
                self.name,
                began.join(" ")
            );
        }
        let text = std::fs::read_to_string(&out).with_context(|| out.display().to_string())?;
        std::fs::remove_file(&out)?;
        Ok(serde_json::from_str(&text)?)
    }
}

/// Its lines once each, since every rank says the same, and without rules.
fn once(said: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in said.lines().map(str::trim) {
        if !line.trim_matches('-').is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// What jobs share.
pub(crate) struct Launch<'a> {
    pub(crate) cores: &'a [CoreId],
    pub(crate) seed: u64,
    pub(crate) blocks: u32,
    /// The time of the job; nothing where it has no end.
    pub(crate) seconds: Option<Duration>,
    /// The time for its warm-up and first round, which may be more.
    pub(crate) first: Option<Duration>,
    pub(crate) preload: &'a OsString,
    /// By which the ranks choose shapes, if one was named.
    pub(crate) atlas: Option<&'a PathBuf>,
    pub(crate) scratch: &'a Path,
    /// Ends it before.
    pub(crate) stop: Stop,
}

/// The library that is compared: the one that was named, or the one beside this program.
pub(crate) fn library(named: Option<&Path>) -> Result<PathBuf> {
    library::find_as(library::MPI, library::BUILD_MPI, named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        for file in files {
            let path = folder.path().join(file);
            let made = path.parent().map(std::fs::create_dir_all);
            assert!(matches!(made, Some(Ok(()))) && std::fs::write(&path, "").is_ok(), "{file}");
        }
        folder
    }

    fn last(text: &str) -> Result<Peer> {
        Peer::all(&[text.to_owned()])?.pop().context("no peer")
    }

    #[test]
    fn a_peer_is_a_prefix_or_a_library_and_a_command() {
        let ompi = prefix(&["lib/libmpi.so.40", "lib/libmpi.so", "bin/mpirun", "bin/ompi_info"]);
        let at = ompi.path().display().to_string();
        let xhc = last(&format!("xhc={at}")).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(xhc.library, format!("{at}/lib/libmpi.so.40"));
        assert_eq!(
            xhc.command.join(" "),
            format!("{at}/bin/mpirun --bind-to none --mca coll_xhc_priority 100")
        );
        let mpich = prefix(&["lib/libmpi.so", "bin/mpirun"]);
        let at = mpich.path().display().to_string();
        let ofi = last(&format!("ch4-ofi={at}")).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(ofi.command.join(" "), format!("env MPICH_CH4_NETMOD=ofi {at}/bin/mpirun"));
        let own = last("own=/lib/a.so=run --with x=1").unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!((own.library.as_str(), own.command.len()), ("/lib/a.so", 3));
        assert!(last("own").is_err());
        let empty = prefix(&[]);
        let refused = last(&format!("xhc={}", empty.path().display()));
        assert!(refused.is_err_and(|error| error.to_string().contains("lib/libmpi.so")));
    }

    #[test]
    fn what_all_ranks_say_is_said_once() {
        assert_eq!(once("-----\nno room\nno room\n\n  why\n-----\n"), "no room\nwhy");
        assert_eq!(once("\n--\n"), "");
    }

    #[test]
    fn only_what_is_known_can_be_asked_for() {
        let known = || {
            Peer::all(&["own=/lib/a.so=run".to_owned()]).unwrap_or_else(|error| panic!("{error:#}"))
        };
        let chosen = |only: &[&str]| {
            Peer::chosen(known(), &only.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
                .map(|peers| peers.into_iter().map(|peer| peer.name).collect::<Vec<_>>())
        };
        assert!(chosen(&[]).is_ok_and(|all| all.len() == PACKAGED.len() + 1));
        assert!(chosen(&["own", "mpich"]).is_ok_and(|names| names == ["mpich", "own"]));
        for (only, unknown) in [(&["foo"][..], "`foo`"), (&[""], "``"), (&["mpich", "x"], "`x`")] {
            let refused = chosen(only).expect_err("there is none").to_string();
            let names = "openmpi, openmpi-sm, mpich, own";
            assert!(refused.contains(unknown) && refused.contains(names), "{refused}");
        }
    }

    #[test]
    fn what_is_not_given_is_absent_and_says_how_to_get_it() {
        let given = [Peer::of("xhc", "a", "b")];
        let absent = Peer::absent(&given);
        assert_eq!(absent.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["ch4-ofi"]);
        assert!(absent[0].1.contains("pip install mpich"), "{absent:?}");
    }
}
