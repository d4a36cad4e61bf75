//! The two programs of one build: the command, and the laboratory, which has what only proves claims. Each
//! starts the other, and each refuses one of other sources.
//!
//! The other one is looked for beside this program and where packages put it, `../libexec` and `../bin`; nowhere
//! else, so that no search path decides which is run. Who starts it says of which sources it is itself
//! ([`OF_BUILD`]), and who is started compares: no process is started to ask.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The sources of this build: the version and a hash (`build.rs`).
pub const BUILD: &str = env!("ISOCHRONE_BUILD");
/// The option by which one program tells the other of which sources it is.
pub const OF_BUILD: &str = "--of-build";
/// The program that runs, for itself and for what it starts with this very file: by its path a trial that runs for
/// minutes would go on with another program, or with none, where an upgrade puts another file there.
pub const ITSELF: &str = "/proc/self/exe";
/// What the kernel puts behind the path of a file that is gone (proc(5), `/proc/pid/exe`).
const GONE: &[u8] = b" (deleted)";
/// What a shell sees where the other program is not there, as for a command that it does not find.
pub const NOT_THERE: u8 = 127;
/// What a shell sees where the other program is of other sources and refuses.
pub const REFUSED: u8 = 126;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partner {
    /// `isochrone`.
    Command,
    /// `isochrone-lab`.
    Laboratory,
}

impl Partner {
    /// The program's file name, which is also its package's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Command => "isochrone",
            Self::Laboratory => "isochrone-lab",
        }
    }

    /// What builds it, in the profile of this program.
    pub fn build_command(self) -> String {
        let release = if cfg!(debug_assertions) { "" } else { " --release" };
        format!("cargo build{release} -p {}", self.name())
    }

    /// Where packages put it, seen from the folder of the other one.
    const fn packaged(self) -> &'static str {
        match self {
            Self::Command => "../bin",
            Self::Laboratory => "../libexec",
        }
    }

    /// The program, ready to be given its arguments.
    ///
    /// # Errors
    /// Where it is not there; says what builds it.
    pub fn command(self) -> Result<Command> {
        let mut command = Command::new(self.find(&here()?)?);
        command.arg(OF_BUILD).arg(BUILD);
        Ok(command)
    }

    /// Becomes the program, with these arguments. Returns only where that fails.
    ///
    /// # Errors
    /// As [`Partner::command`], or where the file cannot be run.
    pub fn become_it(self, arguments: impl Iterator<Item = OsString>) -> Result<()> {
        let mut command = self.command()?;
        let program = command.get_program().to_owned();
        let error = command.args(arguments).exec();
        Err(error).with_context(|| format!("{} cannot be run", Path::new(&program).display()))
    }

    fn find(self, folder: &Path) -> Result<PathBuf> {
        let places = [folder.to_path_buf(), folder.join(self.packaged())];
        let mut places = places.iter().map(|place| place.join(self.name()));
        match places.find(|place| place.is_file()) {
            Some(found) => Ok(found),
            None => bail!(
                "{} lies neither in {} nor in {}: build it with `{}`",
                self.name(),
                folder.display(),
                self.packaged(),
                self.build_command()
            ),
        }
    }
}

/// The command that measures, `isochrone map`: this program, or its partner where this is the laboratory.
///
/// # Errors
/// Where this program does not know where it lies, or its partner is not there.
pub fn command() -> Result<Command> {
    let own = std::env::current_exe().context("this program does not know where it lies")?;
    if is_called(&own, Partner::Laboratory) {
        return Partner::Command.command();
    }
    Ok(Command::new(ITSELF))
}

/// Whether a program that runs lies, or lay, at a path of this name; the kernel says of a file that is gone that it is.
fn is_called(path: &Path, name: Partner) -> bool {
    let file = path.file_name().unwrap_or_default().as_bytes();
    file.strip_suffix(GONE).unwrap_or(file) == name.name().as_bytes()
}

/// Whether a program that says that it is of the build `asked` may be served by this one, `own`; else why not,
/// and how to get two of one build.
///
/// # Errors
/// The reason, in one line.
pub fn admits(own: Partner, asked: Option<&str>) -> Result<(), String> {
    let Some(asked) = asked.filter(|asked| *asked != BUILD) else { return Ok(()) };
    Err(format!(
        "{} is of other sources ({BUILD}) than the program that starts it ({asked}): build both with `{} && {}`",
        own.name(),
        Partner::Command.build_command(),
        Partner::Laboratory.build_command()
    ))
}

/// The folder of this program, symbolic links followed.
fn here() -> Result<PathBuf> {
    let program = std::env::current_exe().context("this program does not know where it lies")?;
    let program = program.canonicalize().unwrap_or(program);
    Ok(program.parent().unwrap_or(Path::new("/")).to_path_buf())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn it_is_found_beside_or_where_packages_put_it_and_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = root.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        let (bin, libexec) = (folder("bin"), folder("libexec"));
        let absent = Partner::Laboratory.find(&bin).unwrap_err().to_string();
        assert!(absent.contains("-p isochrone-lab") && absent.contains("libexec"), "{absent}");
        // A folder of that name is no program.
        fs::create_dir(bin.join("isochrone-lab")).unwrap();
        assert!(Partner::Laboratory.find(&bin).is_err());
        fs::write(libexec.join("isochrone-lab"), "").unwrap();
        let found = Partner::Laboratory.find(&bin).unwrap().canonicalize().unwrap();
        assert_eq!(found, libexec.join("isochrone-lab").canonicalize().unwrap());
        fs::remove_dir(bin.join("isochrone-lab")).unwrap();
        fs::write(bin.join("isochrone-lab"), "").unwrap();
        assert_eq!(Partner::Laboratory.find(&bin).unwrap(), bin.join("isochrone-lab"));
        fs::write(bin.join("isochrone"), "").unwrap();
        let found = Partner::Command.find(&libexec).unwrap().canonicalize().unwrap();
        assert_eq!(found, bin.join("isochrone").canonicalize().unwrap());
    }

    #[test]
    fn a_program_has_its_name_when_its_file_is_gone() {
        let is = |path: &str| is_called(Path::new(path), Partner::Laboratory);
        assert!(is("/usr/libexec/isochrone-lab") && is("/usr/libexec/isochrone-lab (deleted)"));
        assert!(!is("/usr/bin/isochrone") && !is("/usr/libexec/isochrone-lab (old)"));
    }

    #[test]
    fn only_the_same_sources_are_served() {
        assert_eq!(admits(Partner::Laboratory, None), Ok(()));
        assert_eq!(admits(Partner::Laboratory, Some(BUILD)), Ok(()));
        let refused = admits(Partner::Laboratory, Some("0.0.1-0123456789abcdef")).unwrap_err();
        assert!(refused.contains("0.0.1-0123456789abcdef") && refused.contains(BUILD), "{refused}");
        assert!(
            refused.contains("cargo build") && refused.contains("-p isochrone-lab"),
            "{refused}"
        );
        let (version, hash) = BUILD.split_once('-').unwrap();
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
        assert!(hash.len() == 16 && hash != "cbf29ce484222325", "the sources were read: {hash}");
    }
}
