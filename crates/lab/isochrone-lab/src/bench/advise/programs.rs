//! The programs that watched runs are judged with: such as most machines have, with inputs that are made here, each of
//! a second or so. What is not installed is named, and left out.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use isochrone_console::output::{WrongUsage, search_path};
use isochrone_console::run::ended::{alone, ended};

use super::inputs;
use crate::bench::budget::Stop;
use crate::bench::recipe::Recipe;

/// Variables of all programs: what would make one run of a program differ from another, and what they need in a
/// container.
pub(super) const SET: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("PYTHONHASHSEED", "0"),
    ("PERL_HASH_SEED", "0"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    // Open MPI starts nothing for root otherwise, and waits for a second before it kills ranks.
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_odls_base_sigkill_timeout", "0"),
    ("PRTE_MCA_odls_base_sigkill_timeout", "0"),
];

const PYTHON: &str = "for r in range(12):\n d = {str(i): [i, str(i * r)] for i in range(60000)}\n \
                      l = sorted(d.values(), key=lambda v: v[1])";
const PERL: &str = "for my $round (1..8) { my %h; $h{$_ % 20000} .= \"x$_\" for 1..120000; \
                    my @a = sort map { \"$_ $h{$_}\" } keys %h; }";
const SQL: &str = "create table t(a integer primary key, b text); \
                   with recursive n(i) as (select 1 union all select i + 1 from n where i < 250000) \
                   insert into t select i, hex(i * 7919 % 65521) || i from n; \
                   create index x on t(b); select count(*) from t join t u on t.b = u.b;";

/// Loads that wait for one another, for which no program of a distribution is made.
const CHASE: Recipe = Recipe {
    name: "chase",
    package: "gcc",
    compiler: "gcc",
    source: ("chase.c", include_str!("chase.c")),
    options: &[],
};
/// Ranks that lean on a collective or on none.
const COLLECTIVES: Recipe = Recipe {
    name: "collectives",
    package: "libopenmpi-dev",
    compiler: "mpicc",
    source: ("collectives.c", include_str!("collectives.c")),
    options: &[],
};
/// The same under MPICH, where there are several.
const MPICH_COLLECTIVES: Recipe = Recipe {
    name: "collectives-mpich",
    package: "libmpich-dev",
    compiler: "mpicc.mpich",
    ..COLLECTIVES
};
const RANKS: Recipe = Recipe {
    name: "ranks",
    package: "libopenmpi-dev",
    compiler: "mpicc",
    source: ("ranks.c", include_str!("ranks.c")),
    options: &[],
};

/// The launcher and the compiler of the MPI that the machine has, and those of MPICH where there are several.
const MPI: [&str; 2] = ["mpirun", "mpicc"];
const MPICH: [&str; 2] = ["mpirun.mpich", "mpicc.mpich"];

/// A program.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// What must be installed.
    needs: &'static [&'static str],
    /// Makes its input, and says how it is called.
    words: fn(&Workshop<'_>) -> Result<Vec<OsString>>,
}

/// All of them.
pub(super) const ALL: [Program; 18] = [
    Program {
        name: "python3",
        needs: &["python3"],
        words: |of| of.call("python3", &["-c", PYTHON]),
    },
    Program { name: "perl", needs: &["perl"], words: |of| of.call("perl", &["-e", PERL]) },
    Program {
        name: "sqlite3",
        needs: &["sqlite3"],
        words: |of| of.call("sqlite3", &[":memory:", SQL]),
    },
    Program { name: "git", needs: &["git"], words: git },
    Program {
        name: "gzip",
        needs: &["gzip"],
        words: |of| of.packed("gzip", &["-9", "-c"], 14 << 20),
    },
    Program {
        name: "xz",
        needs: &["xz"],
        words: |of| of.packed("xz", &["-T1", "-6", "-c"], 2 << 20),
    },
    Program {
        name: "xz-threads",
        needs: &["xz"],
        words: |of| of.packed("xz", &["-T2", "--block-size=1MiB", "-6", "-c"], 4 << 20),
    },
    Program { name: "sort", needs: &["sort"], words: sort },
    Program { name: "gcc", needs: &["gcc"], words: gcc },
    Program { name: "openssl", needs: &["openssl"], words: openssl },
    Program { name: "chase", needs: &["gcc"], words: |of| of.compiled(&CHASE) },
    Program { name: "mpirun", needs: &MPI, words: |of| of.job(MPI[0], &RANKS, &[]) },
    Program {
        name: "mpi-allreduce",
        needs: &MPI,
        words: |of| of.job(MPI[0], &COLLECTIVES, &["allreduce", "600000"]),
    },
    Program {
        name: "mpi-bcast",
        needs: &MPI,
        words: |of| of.job(MPI[0], &COLLECTIVES, &["bcast", "600000"]),
    },
    Program {
        name: "mpi-barrier",
        needs: &MPI,
        words: |of| of.job(MPI[0], &COLLECTIVES, &["barrier", "600000"]),
    },
    Program {
        name: "mpi-stencil",
        needs: &MPI,
        words: |of| of.job(MPI[0], &COLLECTIVES, &["stencil", "6000"]),
    },
    Program {
        name: "mpi-compute",
        needs: &MPI,
        words: |of| of.job(MPI[0], &COLLECTIVES, &["compute", "80000"]),
    },
    Program {
        name: "mpich-allreduce",
        needs: &MPICH,
        words: |of| of.job(MPICH[0], &MPICH_COLLECTIVES, &["allreduce", "600000"]),
    },
];

/// Where programs are made ready.
#[derive(Debug)]
pub(super) struct Workshop<'a> {
    pub(super) scratch: &'a Path,
    pub(super) stop: &'a Stop,
}

/// The programs that are asked for; all where none is.
pub(super) fn chosen(only: &[String]) -> Result<Vec<&'static Program>> {
    if let Some(unknown) = only.iter().find(|name| ALL.iter().all(|of| of.name != **name)) {
        let names: Vec<&str> = ALL.iter().map(|program| program.name).collect();
        return Err(WrongUsage::error(format!(
            "--only: there is no program `{unknown}`; there are {}",
            names.join("; ")
        )));
    }
    let is_asked = |of: &&Program| only.is_empty() || only.iter().any(|name| name == of.name);
    Ok(ALL.iter().filter(is_asked).collect())
}

impl Program {
    /// What it is called with, its input made.
    ///
    /// # Errors
    /// Where it is not installed, or its input cannot be made.
    pub(super) fn words(&self, of: &Workshop<'_>) -> Result<Vec<OsString>> {
        for tool in self.needs {
            found(tool)?;
        }
        (self.words)(of)
    }
}

/// A program of the search path: a binary before a script of that name, which would start others first.
fn found(name: &str) -> Result<PathBuf> {
    let folders = search_path();
    let places: Vec<PathBuf> = std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .filter(|place| place.is_file())
        .collect();
    let binary = places.iter().find(|place| is_binary(place));
    binary.or(places.first()).cloned().with_context(|| format!("{name} is not installed"))
}

fn is_binary(file: &Path) -> bool {
    let mut begin = [0; 4];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == *b"\x7fELF"
}

impl Workshop<'_> {
    fn call(&self, tool: &str, words: &[&str]) -> Result<Vec<OsString>> {
        let words = words.iter().map(OsString::from);
        Ok(std::iter::once(found(tool)?.into_os_string()).chain(words).collect())
    }

    /// A file of this name with a text that takes its time to be made.
    fn file(&self, name: &str, text: impl FnOnce() -> String + Send + 'static) -> Result<()> {
        let path = self.scratch.join(name);
        let text = self.stop.apart(move || Ok(text()))?;
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// A program that packs a text of so many bytes.
    fn packed(&self, tool: &str, words: &[&str], bytes: usize) -> Result<Vec<OsString>> {
        let name = format!("text-{bytes}");
        self.file(&name, move || inputs::text(bytes))?;
        self.call(tool, &[words, &[&name]].concat())
    }

    fn compiled(&self, recipe: &Recipe) -> Result<Vec<OsString>> {
        let program = recipe.compile(self.scratch, self.stop);
        let program = program.map_err(|why| anyhow::anyhow!(recipe.advice(&why)))?;
        Ok(vec![program.into_os_string()])
    }

    /// Two ranks that are called with these words.
    fn job(&self, launcher: &str, recipe: &Recipe, words: &[&str]) -> Result<Vec<OsString>> {
        let mut all = self.call(launcher, &["-n", "2"])?;
        all.extend(self.compiled(recipe)?);
        all.extend(words.iter().map(OsString::from));
        Ok(all)
    }

    /// Runs what makes an input, as long as somebody wants it.
    fn done(&self, words: &[OsString], input: &Path) -> Result<()> {
        let input = File::open(input).with_context(|| input.display().to_string())?;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(self.scratch)
            .envs(SET)
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = alone(&mut command).spawn()?;
        let status = ended(&mut child, &|| self.stop.is_set())?;
        let status = status.context("it was ended before its time")?;
        ensure!(status.success(), "its input cannot be made: {} failed", words[0].display());
        Ok(())
    }
}

fn git(of: &Workshop<'_>) -> Result<Vec<OsString>> {
    let repository = "history.git";
    of.file("history", || inputs::history(500))?;
    of.done(&of.call("git", &["init", "-q", "--bare", repository])?, Path::new("/dev/null"))?;
    let import = of.call("git", &["--git-dir", repository, "fast-import", "--quiet", "--done"])?;
    of.done(&import, &of.scratch.join("history"))?;
    of.call("git", &["--no-pager", "--git-dir", repository, "log", "-p", "--minimal", "main"])
}

fn sort(of: &Workshop<'_>) -> Result<Vec<OsString>> {
    of.file("lines", || inputs::lines(700_000))?;
    of.call("sort", &["--parallel=1", "-S", "256M", "lines"])
}

fn gcc(of: &Workshop<'_>) -> Result<Vec<OsString>> {
    of.file("generated.c", || inputs::source(150))?;
    of.call("gcc", &["-O2", "-c", "generated.c", "-o", "generated.o"])
}

fn openssl(of: &Workshop<'_>) -> Result<Vec<OsString>> {
    of.file("bytes", || inputs::text(16 << 20))?;
    of.call("openssl", &[&["dgst", "-sha512"][..], &["bytes"; 30]].concat())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use isochrone_console::progress::Interrupt;

    use super::*;

    #[test]
    fn every_program_that_is_installed_does_what_it_is_called_with() {
        let scratch = tempfile::tempdir().unwrap();
        let stop =
            Stop::new(Interrupt::install(), Some(Instant::now() + Duration::from_secs(3600)));
        let of = Workshop { scratch: scratch.path(), stop: &stop };
        // Without input and without a word but their names they would end well, too.
        let (mut made, mut absent) = (0, Vec::new());
        // Ranks spin, which takes long beside other tests: these are compiled only.
        let is_job = |program: &Program| program.needs == MPI || program.needs == MPICH;
        for program in ALL.iter().filter(|program| is_job(program)) {
            let words = program.words(&of);
            let absent = |why: &anyhow::Error| format!("{why:#}").contains("not installed");
            let words = match words {
                Err(why) if absent(&why) => continue,
                words => words.unwrap_or_else(|why| panic!("{}: {why:#}", program.name)),
            };
            assert!(words.len() >= 4 && Path::new(&words[3]).is_file(), "{words:?}");
        }
        for program in ALL.iter().filter(|program| !is_job(program)) {
            match program.words(&of) {
                Ok(words) => {
                    of.done(&words, Path::new("/dev/null"))
                        .unwrap_or_else(|why| panic!("{}: {why:#}", program.name));
                    made += 1;
                }
                Err(why) => absent.push(format!("{}: {why:#}", program.name)),
            }
        }
        assert!(absent.iter().all(|why| why.contains("not installed")), "{absent:?}");
        assert!(made >= 2, "sort and gzip are everywhere: {absent:?}");
    }

    #[test]
    fn programs_are_chosen_by_name() {
        assert_eq!(chosen(&[]).unwrap().len(), ALL.len());
        assert_eq!(chosen(&["xz".to_owned()]).unwrap()[0].name, "xz");
        let unknown = chosen(&["word".to_owned()]).unwrap_err().to_string();
        assert!(unknown.contains("`word`") && unknown.contains("sqlite3"), "{unknown}");
    }
}
