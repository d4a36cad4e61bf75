//! The levers that a program can be run under, ours and others', and why some of them cannot be used here. Nothing is
//! run but the dynamic linker, which is asked what it can be told; no setting of the system is changed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use isochrone_alloc::Mode;
use isochrone_console::args::PlacementArgs;
use isochrone_console::output;
use isochrone_console::partner::ITSELF;
use isochrone_console::run::atlas::{self, Found};
use isochrone_console::run::library;
use isochrone_console::run::setup::{self, By};
use isochrone_machine::{Machine, MachineState, spans};
use isochrone_malloc::Pin;
use isochrone_units::CoreId;

use crate::advise::machine::near_group;
use crate::args::AdviseArgs;
use crate::machine::suits::ONE_REGION;
use crate::run::judge;
use crate::run::program::{Fit, Linked};

/// How a program is run under a lever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct How {
    /// Words before those of the program.
    pub(super) prefix: Vec<OsString>,
    /// `LD_PRELOAD`.
    pub(super) preload: Option<OsString>,
    /// Other variables.
    pub(super) set: Vec<(OsString, OsString)>,
    /// The only cores.
    pub(super) cores: Option<Vec<u16>>,
}

/// A lever with how it is used, or why it cannot be.
#[derive(Clone, Debug)]
pub(super) struct Lever {
    pub(super) name: &'static str,
    /// What the user writes to use it, with CMD for the program.
    pub(super) command: String,
    pub(super) how: Result<How, String>,
}

/// What levers are judged by.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub(super) args: &'a AdviseArgs,
    pub(super) program: &'a Path,
    /// What a library can be preloaded into, or why it cannot.
    pub(super) fit: Result<Fit, String>,
    pub(super) linked: Linked,
    pub(super) machine: &'a Machine,
    pub(super) state: &'a MachineState,
    pub(super) found: Option<&'a Found>,
    pub(super) scratch: &'a Path,
}

/// Programs that start the ranks of an MPI job.
const LAUNCHERS: [&str; 4] = ["mpirun", "mpiexec", "orterun", "prterun"];
/// Libraries of OpenMP: GCC's, LLVM's, Intel's.
const OPENMP: [&str; 3] = ["libgomp.", "libomp.", "libiomp5."];
/// The tunable of glibc 2.35 and newer by which malloc asks for huge pages.
const TUNABLE: &str = "glibc.malloc.hugetlb";
const TUNABLES: &str = "GLIBC_TUNABLES";
/// Allocators of others.
const ALLOCATORS: [&str; 3] = ["mimalloc", "jemalloc", "tcmalloc"];

/// All levers, in the order in which they are told.
pub(super) fn all(around: &Around<'_>) -> Vec<Lever> {
    let mut levers = vec![
        lever("near-lines", "isochrone run -- CMD", around.near_lines()),
        around.core_order(),
        around.openmp_order(),
        lever("interleave", "numactl --interleave=all CMD", around.interleave()),
        lever("collectives", "isochrone run --mpi -- CMD", around.collectives()),
        around.tunable("huge-pages", "1", around.asks_for_huge_pages()),
        around.tunable("huge-pool", "2", around.has_a_pool()),
    ];
    levers.extend(ALLOCATORS.iter().map(|name| around.allocator(name)));
    let (tier, zram) = (
        "programs ask for it in their code (isochrone.h, the crate isochrone-tier)",
        "a setting of the system, which is not changed here; for programs that swap (root: zramctl, mkswap, swapon)",
    );
    levers.push(lever("tier", "isochrone tier check", Err(tier.to_owned())));
    levers.push(lever("zram", "zramctl --find --size SIZE", Err(zram.to_owned())));
    levers
}

fn lever(name: &'static str, command: &str, how: Result<How, String>) -> Lever {
    Lever { name, command: command.to_owned(), how }
}

/// An error as the reason for which a lever cannot be used.
fn reason(error: &anyhow::Error) -> String {
    output::words(error)
}

impl Around<'_> {
    /// Whether anything can be preloaded into the program.
    fn preloads(&self) -> Result<(), String> {
        self.fit.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// Whether the program asks the C library for memory, so that another allocator or a tunable is felt.
    fn asks_malloc(&self) -> Result<(), String> {
        let fit = self.fit.as_ref().map_err(Clone::clone)?;
        fit.takes_an_allocator().map_err(str::to_owned)
    }

    fn near_lines(&self) -> Result<How, String> {
        self.preloads()?;
        let found = self.found.ok_or(atlas::NONE)?;
        let judged = self.judged(found).map_err(|error| reason(&error))?;
        if !judged.places {
            return Err(judged.why);
        }
        let library =
            library::find(self.args.preload.as_deref()).map_err(|error| reason(&error))?;
        let mut prefix = once_more(&["run", "--atlas"]);
        prefix.extend([found.path.clone().into(), "--preload".into(), library.into(), "--".into()]);
        Ok(How { prefix, ..self.plain() })
    }

    /// The decision of `isochrone run`.
    fn judged(&self, found: &Found) -> Result<judge::Judgement> {
        let policy = setup::policy(Mode::Aware, &PlacementArgs::default(), &found.contents);
        judge::of(found, &policy, &setup::cores(&found.contents)?)
    }

    /// The cores in the atlas's order and how many of them are near one another, where distances tell them apart.
    fn ordered(&self) -> Result<(Vec<CoreId>, usize), String> {
        let found = self.found.ok_or(atlas::NONE)?;
        let of = || -> Result<Option<(Vec<CoreId>, usize)>> {
            let (cores, atlas) = (setup::cores(&found.contents)?, found.atlas.atlas()?);
            let binding = setup::binding(Pin::Compact, cores, &atlas);
            let group = near_group(&atlas, &binding.cores);
            Ok((binding.by == Some(By::Distances)).then_some((binding.cores, group)))
        };
        let none = "the atlas has no groups of cores that are nearer to one another";
        of().map_err(|error| reason(&error))?.ok_or_else(|| none.to_owned())
    }

    fn core_order(&self) -> Lever {
        let near = self.ordered().map(|(cores, group)| -> Vec<u16> {
            cores.iter().take(group).map(|core| core.0).collect()
        });
        let list = near.as_ref().map_or_else(|_| "LIST".to_owned(), |cores| spans(cores));
        let how = near.map(|cores| How { cores: Some(cores), ..self.plain() });
        lever("core-order", &format!("taskset -c {list} CMD"), how)
    }

    fn openmp_order(&self) -> Lever {
        let is_openmp = |name: &String| OPENMP.iter().any(|begin| name.starts_with(begin));
        let none = "the program is not linked with a runtime of OpenMP";
        let linked = self.linked.libraries.iter().any(is_openmp);
        let places =
            if linked { self.ordered() } else { Err(none.to_owned()) }.map(|(cores, _)| {
                cores.iter().map(|core| format!("{{{}}}", core.0)).collect::<Vec<_>>().join(",")
            });
        let shown = places.as_deref().unwrap_or("LIST");
        let command = format!("OMP_PROC_BIND=close OMP_PLACES='{shown}' CMD");
        let how = places.map(|places| How {
            set: vec![
                ("OMP_PROC_BIND".into(), "close".into()),
                ("OMP_PLACES".into(), places.into()),
            ],
            ..self.plain()
        });
        lever("openmp-order", &command, how)
    }

    fn interleave(&self) -> Result<How, String> {
        if self.machine.regions.len() < 2 {
            return Err(ONE_REGION.to_owned());
        }
        let numactl = tool("numactl").ok_or("numactl is not installed (Debian: numactl)")?;
        Ok(How { prefix: vec![numactl.into(), "--interleave=all".into()], ..self.plain() })
    }

    fn collectives(&self) -> Result<How, String> {
        if !is_launcher(self.program) {
            return Err("the program is no launcher of MPI (mpirun, mpiexec)".to_owned());
        }
        let library = library::find_as(library::MPI, library::BUILD_MPI, None);
        let library = library.map_err(|error| reason(&error))?;
        let mut prefix = once_more(&["run", "--mpi", "--preload"]);
        prefix.extend([library.into(), "--".into()]);
        Ok(How { prefix, ..self.plain() })
    }

    fn asks_for_huge_pages(&self) -> Result<(), String> {
        match self.state.thp.as_deref() {
            Some("always" | "madvise") => Ok(()),
            thp => Err(format!(
                "the system gives no transparent huge pages ({})",
                thp.unwrap_or("not known")
            )),
        }
    }

    fn has_a_pool(&self) -> Result<(), String> {
        let free: u64 = self.state.huge_pages.iter().map(|pool| pool.free).sum();
        if free > 0 { Ok(()) } else { Err("no page is free in the pools of huge pages".to_owned()) }
    }

    /// malloc told to take huge pages, where it can be told.
    fn tunable(&self, name: &'static str, value: &str, offered: Result<(), String>) -> Lever {
        let word = format!("{TUNABLE}={value}");
        let how = offered.and_then(|()| self.asks_malloc()).and_then(|()| {
            let linker = self.linked.linker.as_deref();
            if !linker.is_some_and(knows_the_tunable) {
                return Err(format!("the C library does not know {TUNABLE} (glibc 2.35 does)"));
            }
            let before = output::variable(TUNABLES).filter(|value| !value.is_empty());
            let mut all = before.map_or_else(OsString::new, |mut before| {
                before.push(":");
                before
            });
            all.push(&word);
            Ok(How { set: vec![(TUNABLES.into(), all)], ..self.plain() })
        });
        lever(name, &format!("{TUNABLES}={word} CMD"), how)
    }

    fn allocator(&self, name: &'static str) -> Lever {
        let found = library::allocator(name).map_err(|error| {
            let words = reason(&error);
            words.strip_prefix(&format!("{name}: ")).unwrap_or(&words).to_owned()
        });
        let shown = found
            .as_ref()
            .map_or_else(|_| format!("lib{name}.so"), |path| path.display().to_string());
        let how = found.and_then(|path| {
            self.asks_malloc()?;
            let before = output::preloaded();
            let preload = library::first(&path, before.as_deref(), self.scratch);
            let preload = Some(preload.map_err(|error| reason(&error))?);
            Ok(How { preload, ..How::default() })
        });
        lever(name, &format!("LD_PRELOAD={shown} CMD"), how)
    }

    /// The program as it is run without a lever.
    #[allow(clippy::unused_self, reason = "what is preloaded is of the surroundings")]
    fn plain(&self) -> How {
        How { preload: output::preloaded(), ..How::default() }
    }
}

/// This program with these words. It is started by this program, which runs what is tried.
fn once_more(words: &[&str]) -> Vec<OsString> {
    std::iter::once(&ITSELF).chain(words).map(OsString::from).collect()
}

/// Whether a program starts the ranks of an MPI job.
pub(in crate::advise) fn is_launcher(program: &Path) -> bool {
    let name = program.file_name().and_then(OsStr::to_str).unwrap_or_default();
    LAUNCHERS.iter().any(|launcher| {
        name.strip_prefix(launcher).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// A program of the search path.
fn tool(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&output::search_path())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// Whether a dynamic linker lists the tunable.
fn knows_the_tunable(linker: &Path) -> bool {
    let listed = Command::new(linker)
        .arg("--list-tunables")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    listed.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(TUNABLE))
}
