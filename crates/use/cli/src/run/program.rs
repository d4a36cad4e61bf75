//! Finds the program and says whether a library can be preloaded into it at all.
//!
//! The kernel and the dynamic linker ignore `LD_PRELOAD` without a word for programs that are
//! static, setuid, of another class or of another C library. Whoever asked for near lines would
//! then measure nothing, so it is refused beforehand. It runs nothing.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use isochrone_console::output::{self, Terminal};
use isochrone_console::run::start::is_refused;

use super::elf::Elf;
use super::own;

/// The most that is read of a file's head: a script's first line (Linux: `BINPRM_BUF_SIZE`), or
/// the header of an ELF file.
const HEAD_BYTES: u64 = 256;
/// Beginnings of the names of libraries that end their program unless they are the first one loaded.
const ADDRESS_SANITIZER: [&str; 2] = ["libasan.", "libclang_rt.asan"];
/// What can be done with every program.
const DIRECTLY: &str = "run it directly";
/// Scripts whose interpreter is a script, as deep as Linux follows them.
const SCRIPTS_MAX: usize = 4;

/// Why a program is not run, and what the shell sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// 127 not found, 126 cannot be run under the library.
    pub(crate) code: u8,
    /// One line that says what to do.
    pub(crate) words: String,
    /// The same without what to do: for who asks and has no wish to run it that way.
    pub(crate) why: String,
}

/// What the shell sees of a program that is there and cannot be started, as of its own.
const CANNOT: u8 = 126;

impl Refusal {
    /// Says it, and what the shell sees.
    pub(crate) fn said(&self, terminal: &Terminal) -> u8 {
        terminal.complain(&format!("isochrone: {}", self.words));
        self.code
    }
}

/// What the shell sees where the system did not start the program after all, which is said.
///
/// # Errors
/// `error` itself, where it says anything else.
pub(crate) fn not_started(error: anyhow::Error, terminal: &Terminal) -> Result<u8> {
    if !is_refused(&error) {
        return Err(error);
    }
    terminal.complain(&format!("isochrone: {}", output::words(&error)));
    Ok(CANNOT)
}

fn cannot(words: String) -> Refusal {
    Refusal { code: CANNOT, why: words.clone(), words }
}

/// The same with what to do about it.
fn curable(why: String, cure: &str) -> Refusal {
    Refusal { code: CANNOT, words: format!("{why}; {cure}"), why }
}

fn not_found(words: String) -> Refusal {
    Refusal { code: 127, ..cannot(words) }
}

/// Who runs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    /// Real user.
    pub(crate) user: u32,
    /// Real group.
    pub(crate) group: u32,
}

impl Who {
    /// This process.
    pub(crate) fn here() -> Self {
        use rustix::process::{getgid, getuid};
        Self { user: getuid().as_raw(), group: getgid().as_raw() }
    }
}

/// The file that is started for `command`; where the system would not start it, why.
pub(crate) fn found(command: &OsStr) -> Result<PathBuf, Refusal> {
    let path = find(command, &output::search_path())?;
    startable(&path)?;
    Ok(path)
}

/// The file that a shell would run for `command`.
pub(crate) fn find(command: &OsStr, folders: &OsStr) -> Result<PathBuf, Refusal> {
    let shown = command.to_string_lossy();
    if command.as_bytes().contains(&b'/') {
        let path = PathBuf::from(command);
        return match path.metadata() {
            Ok(found) if found.is_file() => Ok(path),
            Ok(_) => Err(cannot(format!("{shown} is no file; name a program"))),
            Err(_) => Err(not_found(format!("{shown}: there is no such file"))),
        };
    }
    let candidates = std::env::split_paths(folders).map(|folder| folder.join(command));
    let runnable =
        |path: &PathBuf| path.metadata().is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0);
    let absent = || not_found(format!("{shown}: not found in PATH; give its path"));
    candidates.into_iter().find(runnable).ok_or_else(absent)
}

/// A program into which a library can be preloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// What is to be said of the allocator that it brings, if it shows one.
    pub(crate) allocator: Option<&'static str>,
}

impl Fit {
    /// Whether an allocator that is preloaded is asked for anything.
    pub(crate) fn takes_an_allocator(self) -> Result<(), &'static str> {
        if self.allocator == Some(own::DEFINES) { Err(own::DEFINES) } else { Ok(()) }
    }
}

/// What the program at `path`, or the interpreter of a script there, is linked with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Linked {
    /// The dynamic linker that it asks for.
    pub(crate) linker: Option<PathBuf>,
    /// Names of the libraries that it asks for.
    pub(crate) libraries: Vec<String>,
}

/// Reads what a program is linked with; nothing of what cannot be read.
pub(crate) fn linked(path: &Path) -> Linked {
    let mut path = path.to_path_buf();
    for _ in 0..=SCRIPTS_MAX {
        let Some((file, head)) = opened(&path) else { break };
        if let Some(interpreter) = interpreter_of_script(&head) {
            path = interpreter;
            continue;
        }
        let Some(elf) = Elf::parse(&head) else { break };
        let linker = elf.linker(&file).map(|name| PathBuf::from(name.trim_end_matches('\0')));
        return Linked { linker, libraries: elf.needed(&file) };
    }
    Linked::default()
}

fn opened(path: &Path) -> Option<(File, Vec<u8>)> {
    let file = File::open(path).ok()?;
    let mut head = Vec::new();
    (&file).take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some((file, head))
}

/// Whether the program at `path` can be started at all: what the system says of its file, or why not.
pub(crate) fn startable(path: &Path) -> Result<std::fs::Metadata, Refusal> {
    let shown = path.display();
    let metadata = path.metadata().map_err(|e| cannot(format!("{shown} cannot be read: {e}")))?;
    if metadata.mode() & 0o111 == 0 {
        return Err(cannot(format!("{shown} is not executable; chmod +x it")));
    }
    // Of another user, or where nothing may be executed (noexec).
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK)
        .map_err(|e| cannot(format!("{shown} cannot be executed by this user: {e}")))?;
    Ok(metadata)
}

/// Whether a library can be preloaded into the program at `path`.
pub(crate) fn check(asked: &Path, who: Who) -> Result<Fit, Refusal> {
    let mut path = asked.to_path_buf();
    for _ in 0..=SCRIPTS_MAX {
        let shown = path.display().to_string();
        let unreadable = |e: std::io::Error| cannot(format!("{shown} cannot be read: {e}"));
        let metadata = startable(&path).map_err(|refusal| of_script(refusal, asked, &path))?;
        privileges(&shown, &metadata, &path, who)?;
        let file = File::open(&path).map_err(unreadable)?;
        let mut head = Vec::new();
        (&file).take(HEAD_BYTES).read_to_end(&mut head).map_err(unreadable)?;
        match interpreter_of_script(&head) {
            Some(interpreter) => path = interpreter,
            None => return linkage(&shown, &file, &head),
        }
    }
    Err(cannot(format!("{} is a script of a script of a script: too deep", path.display())))
}

/// Who asked for a script may not know its interpreter, whose name alone would tell nothing.
fn of_script(refusal: Refusal, asked: &Path, path: &Path) -> Refusal {
    if asked == path {
        return refusal;
    }
    let first =
        format!("{} cannot be run by its first line (#!{})", asked.display(), path.display());
    cannot(format!("{first}: {}", refusal.words))
}

/// The linker ignores the variable where running the program raises privileges.
fn privileges(shown: &str, metadata: &Metadata, path: &Path, who: Who) -> Result<(), Refusal> {
    let raises = (metadata.mode() & 0o4000 != 0 && metadata.uid() != who.user)
        || (metadata.mode() & 0o2010 == 0o2010 && metadata.gid() != who.group)
        || (who.user != 0 && has_capabilities(path));
    if raises {
        let why = "is setuid, setgid or has file capabilities: Linux preloads nothing into it";
        return Err(curable(format!("{shown} {why}"), "run it as its owner, or directly"));
    }
    Ok(())
}

fn has_capabilities(path: &Path) -> bool {
    rustix::fs::getxattr_query(path, "security.capability").is_ok_and(|bytes| bytes > 0)
}

/// `#! /bin/sh -e` is run by `/bin/sh`.
fn interpreter_of_script(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let mut words = line.split(|b| *b == b' ' || *b == b'\t').filter(|word| !word.is_empty());
    Some(PathBuf::from(OsString::from_vec(words.next()?.to_vec())))
}

/// An ELF file of this machine that asks for the linker of glibc.
fn linkage(shown: &str, file: &File, head: &[u8]) -> Result<Fit, Refusal> {
    let Some(elf) = Elf::parse(head) else {
        let why = format!("{shown} is neither a program nor a script of this system");
        return Err(curable(why, "if a shell runs it, begin it with #!/bin/sh"));
    };
    if elf.identity != Elf::here() {
        let why = "is built for another kind of processor or word size: the library does not fit";
        return Err(curable(format!("{shown} {why}"), DIRECTLY));
    }
    let Some(linker) = elf.linker(file) else {
        let why = format!("{shown} is statically linked: nothing can be preloaded into it");
        return Err(if own::is_go(&elf, file) {
            curable(format!("{why}; {}", own::GO), DIRECTLY)
        } else {
            curable(why, "link it dynamically, or run it directly")
        });
    };
    if linker.contains("musl") {
        let why = format!("{shown} uses the C library musl: the library is built for glibc");
        return Err(curable(why, DIRECTLY));
    }
    if elf
        .needed(file)
        .iter()
        .any(|name| ADDRESS_SANITIZER.iter().any(|begin| name.starts_with(begin)))
    {
        let why = format!(
            "{shown} is built with AddressSanitizer, which ends it under a preloaded library"
        );
        return Err(curable(why, "build it without, or run it directly"));
    }
    let variable = |name: &str| output::variable(name)?.into_string().ok();
    Ok(Fit { allocator: own::allocator(&elf, file, variable) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const ME: Who = Who { user: 1000, group: 1000 };

    fn written(folder: &Path, name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// An ELF file with one program header, of `kind`, that names `linker`.
    fn elf(class: u8, machine: u16, kind: u32, linker: &str) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..4].copy_from_slice(b"\x7fELF");
        file[4] = class;
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file[32..40].copy_from_slice(&64_u64.to_le_bytes());
        file[54..56].copy_from_slice(&56_u16.to_le_bytes());
        file[56..58].copy_from_slice(&1_u16.to_le_bytes());
        file[64..68].copy_from_slice(&kind.to_le_bytes());
        file[72..80].copy_from_slice(&120_u64.to_le_bytes());
        file[96..104].copy_from_slice(&(linker.len() as u64).to_le_bytes());
        file.extend(linker.as_bytes());
        file
    }

    #[test]
    fn this_very_program_can_be_run() {
        let here = std::env::current_exe().unwrap();
        assert_eq!(check(&here, Who::here()), Ok(Fit { allocator: None }));
    }

    #[test]
    fn what_this_program_is_linked_with_is_read() {
        let linked = linked(&std::env::current_exe().unwrap());
        assert!(linked.linker.is_some_and(|linker| linker.exists()));
        assert!(
            linked.libraries.iter().any(|name| name.starts_with("libc.")),
            "{:?}",
            linked.libraries
        );
        assert_eq!(super::linked(Path::new("/no/such")), Linked::default());
    }

    #[test]
    fn what_would_be_ignored_in_silence_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let (class, machine) = Elf::here();
        let glibc = "/lib64/ld-linux-x86-64.so.2\0";
        let cases: [(&str, Vec<u8>, u32, &str); 7] = [
            ("static", elf(class, machine, 1, ""), 0o755, "statically linked"),
            ("musl", elf(class, machine, 3, "/lib/ld-musl-x86_64.so.1\0"), 0o755, "musl"),
            ("narrow", elf(1, 3, 3, glibc), 0o755, "another kind"),
            ("text", b"hello".to_vec(), 0o755, "neither a program"),
            ("plain", elf(class, machine, 3, glibc), 0o644, "not executable"),
            ("setuid", elf(class, machine, 3, glibc), 0o4755, "setuid"),
            ("cut", elf(class, machine, 3, glibc)[..20].to_vec(), 0o755, "neither a program"),
        ];
        for (name, content, mode, words) in cases {
            let path = written(folder.path(), name, &content, mode);
            let stranger = Who { user: path.metadata().unwrap().uid() + 1, ..ME };
            let refusal = check(&path, stranger).unwrap_err();
            assert_eq!(refusal.code, 126, "{name}");
            assert!(refusal.words.contains(words), "{name}: {}", refusal.words);
            // Who asks why it cannot be has no use for a way to run it.
            let way_out =
                refusal.words.strip_prefix(&refusal.why).expect("it begins with the reason");
            assert!(
                refusal.why.contains(words) && !refusal.why.contains("directly"),
                "{name}: {}",
                refusal.why
            );
            assert!(way_out.is_empty() || way_out.starts_with("; "), "{name}: {way_out}");
        }
        let good = written(folder.path(), "good", &elf(class, machine, 3, glibc), 0o755);
        assert_eq!(check(&good, ME), Ok(Fit { allocator: None }));
        let own = written(folder.path(), "own", &elf(class, machine, 3, glibc), 0o4755);
        let owner = Who { user: own.metadata().unwrap().uid(), ..ME };
        assert!(check(&own, owner).is_ok(), "its owner gains nothing");
    }

    #[test]
    fn a_script_is_judged_by_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let (class, machine) = Elf::here();
        let shell = written(folder.path(), "sh", &elf(class, machine, 1, ""), 0o755);
        let text = format!("#! {} -e\necho\n", shell.display());
        let script = written(folder.path(), "script", text.as_bytes(), 0o755);
        assert!(check(&script, ME).unwrap_err().words.contains("statically"));
        let lost = written(folder.path(), "lost", b"#!/no/such\n", 0o755);
        let said = check(&lost, ME).unwrap_err().words;
        assert!(said.contains("lost cannot be run by its first line (#!/no/such): "), "{said}");
        let bare = written(folder.path(), "bare", b"echo\n", 0o755);
        assert!(check(&bare, ME).unwrap_err().words.ends_with("begin it with #!/bin/sh"));
        let itself = folder.path().join("loop");
        let text = format!("#!{}\n", itself.display());
        written(folder.path(), "loop", text.as_bytes(), 0o755);
        assert!(check(&itself, ME).unwrap_err().words.contains("too deep"));
        assert_eq!(interpreter_of_script(b"#!/bin/sh"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(interpreter_of_script(b"#!  \n"), None);
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        written(one.path(), "tool", b"", 0o644);
        let wanted = written(two.path(), "tool", b"", 0o755);
        let folders = std::env::join_paths([one.path(), two.path()]).unwrap();
        assert_eq!(find(OsStr::new("tool"), &folders), Ok(wanted.clone()));
        assert_eq!(find(OsStr::new("absent"), &folders).unwrap_err().code, 127);
        assert_eq!(find(wanted.as_os_str(), OsStr::new("")), Ok(wanted));
        assert_eq!(find(OsStr::new("./no/such"), &folders).unwrap_err().code, 127);
        assert_eq!(find(one.path().as_os_str(), &folders).unwrap_err().code, 126);
    }
}
