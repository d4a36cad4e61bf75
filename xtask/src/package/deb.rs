//! The Debian package, and one with what debuggers read. One package holds command, libraries and header, since they
//! are of one build: command and laboratory refuse each other otherwise.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::stage::Stage;
use super::tree::{BINARIES, LICENCES, MANUALS, SONAME};
use super::{symbols, tool};

const DESCRIPTION: &str = "\
Description: how far every core is from every memory block, region and core
 Isochrone measures a Linux machine and writes what it found into one file, the
 latency atlas. By it the command binds threads, runs unmodified programs with
 their small objects on near lines, and MPI programs with collectives in cache
 lines; it advises which of these gains anything here.
 .
 The package has the command, its laboratory, the libraries that it preloads,
 and libisochrone with its header for programs in C and C++.
";
/// What the rules of Debian ask that is done otherwise here, and why.
const OVERRIDES: &str = "\
# Preloaded by path, or by `isochrone run`; nothing links with them.
isochrone: sharedobject-in-library-directory-missing-soname [usr/lib/libisochrone_malloc.so]
isochrone: sharedobject-in-library-directory-missing-soname [usr/lib/libisochrone_mpi.so]
isochrone: sharedobject-in-library-directory-missing-soname [usr/lib/libisochrone_pager.so]
# All of it is of one build, and command and laboratory refuse others.
isochrone: non-dev-pkg-with-shlib-symlink *
isochrone: package-name-doesnt-match-sonames *
# Functions are added, never changed, within a soname.
isochrone: no-symbols-control-file *
";

/// Makes both packages; the files.
pub(super) fn pack(root: &Path, stage: &Stage, out: &Path) -> Result<Vec<PathBuf>> {
    let folder = stage.folder.join("deb");
    fs::create_dir_all(&folder)?;
    let mut copy = Command::new("cp");
    tool::run(copy.arg("-a").arg(&stage.tree).arg(folder.join("usr")), "coreutils")?;
    let usr = folder.join("usr");
    // Debian's zsh looks there.
    fs::rename(usr.join("share/zsh/site-functions"), usr.join("share/zsh/vendor-completions"))?;
    compressed(&usr.join(MANUALS))?;
    // `copyright` has the one, and Debian the other.
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::remove_file(usr.join(LICENCES).join(name))?;
    }
    documents(root, stage, &usr)?;
    let overrides = usr.join("share/lintian/overrides");
    fs::create_dir_all(&overrides)?;
    fs::write(overrides.join("isochrone"), OVERRIDES)?;
    let head = format!("Depends: {}\nSection: utils\nPriority: optional\n", depends(stage)?);
    control(&folder, stage, "isochrone", &format!("{head}{DESCRIPTION}"))?;
    let library = SONAME.strip_suffix(".so.0").unwrap_or(SONAME);
    let shlibs = format!("{library} 0 isochrone (>= {})\n", stage.version);
    fs::write(folder.join("DEBIAN/shlibs"), shlibs)?;
    fs::write(folder.join("DEBIAN/triggers"), "activate-noawait ldconfig\n")?;
    Ok(vec![built(&folder, out)?, built(&debug(stage)?, out)?])
}

/// What debuggers read, below the folder where they look for it.
fn debug(stage: &Stage) -> Result<PathBuf> {
    let folder = stage.folder.join("dbgsym");
    for binary in BINARIES {
        let place = symbols::place(binary);
        super::tree::put(&stage.debug.join(&place), &folder.join("usr/lib/debug/usr").join(place))?;
    }
    // Copyright and changes are those of the package that it belongs to.
    let documents = folder.join("usr").join(LICENCES).with_file_name("isochrone-dbgsym");
    fs::create_dir_all(documents.parent().unwrap_or(&documents))?;
    super::tree::link("isochrone", &documents)?;
    let rest = format!(
        "Depends: isochrone (= {})\nSection: debug\nPriority: optional\nAuto-Built-Package: debug-symbols\n\
         Description: debug symbols for isochrone\n",
        stage.version
    );
    control(&folder, stage, "isochrone-dbgsym", &rest)?;
    Ok(folder)
}

/// The packages that the libraries lie in.
fn depends(stage: &Stage) -> Result<String> {
    let mut all = vec![format!("libc6 (>= {})", stage.needs.glibc)];
    for library in &stage.needs.libraries {
        match library.as_str() {
            "libgcc_s.so.1" => all.push("libgcc-s1 (>= 4.2)".to_owned()),
            other => bail!("{other} is needed, and deb.rs does not say in which package it is"),
        }
    }
    Ok(all.join(", "))
}

/// Licence and changes, where policy wants them.
fn documents(root: &Path, stage: &Stage, usr: &Path) -> Result<()> {
    let folder = usr.join(LICENCES);
    let mut copyright = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
        Upstream-Name: isochrone\n\nFiles: *\nCopyright: the Isochrone contributors\nLicense: Expat or Apache-2.0\n\n\
        License: Expat\n"
        .to_owned();
    let expat = fs::read_to_string(root.join("LICENSE-MIT"))?;
    for line in expat.lines() {
        copyright += &if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") };
    }
    copyright += "\nLicense: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n\
        Comment: what is linked in has licences of its own, in THIRD-PARTY beside this file.\n";
    fs::write(folder.join("copyright"), copyright)?;
    let changes = format!(
        "isochrone ({}) unstable; urgency=medium\n\n  * See CHANGELOG.md in the sources.\n\n -- {}  {}\n",
        stage.version,
        stage.maintainer,
        date(root)?
    );
    fs::write(folder.join("changelog"), changes)?;
    compress(&folder.join("changelog"))
}

/// When the sources were changed last, or now where nobody knows.
fn date(root: &Path) -> Result<String> {
    let mut git = Command::new("git");
    let told = tool::output(git.args(["log", "-1", "--format=%cD"]).current_dir(root), "git");
    let date = told.or_else(|_| tool::output(Command::new("date").arg("-R"), "coreutils"))?;
    Ok(date.trim().to_owned())
}

/// Writes the description of a package, and the sums of its files.
fn control(folder: &Path, stage: &Stage, name: &str, rest: &str) -> Result<()> {
    let arch = tool::output(Command::new("dpkg").arg("--print-architecture"), "dpkg")?;
    let mut du = Command::new("du");
    let size =
        tool::output(du.args(["-sk", "--apparent-size", "usr"]).current_dir(folder), "coreutils")?;
    let size = size.split_whitespace().next().context("du says nothing")?;
    let text = format!(
        "Package: {name}\nVersion: {}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {size}\n{rest}",
        stage.version,
        arch.trim(),
        stage.maintainer
    );
    let debian = folder.join("DEBIAN");
    fs::create_dir_all(&debian)?;
    fs::write(debian.join("control"), text)?;
    let mut sums = Command::new("find");
    sums.args(["usr", "-type", "f", "-exec", "md5sum", "{}", "+"]).current_dir(folder);
    let mut lines: Vec<String> =
        tool::output(&mut sums, "findutils")?.lines().map(str::to_owned).collect();
    lines.sort_by(|a, b| a.get(32..).cmp(&b.get(32..)));
    fs::write(debian.join("md5sums"), lines.join("\n") + "\n")?;
    Ok(())
}

/// The package of a folder, in `out`.
fn built(folder: &Path, out: &Path) -> Result<PathBuf> {
    let mut deb = Command::new("dpkg-deb");
    deb.args(["--root-owner-group", "-Zxz", "-z1", "--build"]).arg(folder).arg(out);
    // It says where the file is.
    let said = tool::output(&mut deb, "dpkg")?;
    let name = said.rsplit('\'').nth(1).context("dpkg-deb does not say what it made")?;
    Ok(PathBuf::from(name))
}

fn compressed(folder: &Path) -> Result<()> {
    super::tree::files(folder)?.iter().try_for_each(|file| compress(file))
}

fn compress(file: &Path) -> Result<()> {
    tool::run(Command::new("gzip").arg("-9nf").arg(file), "gzip")
}

/// Holds the packages against the rules of Debian; installs, uses and removes them in a root of Debian that has nothing
/// of ours.
pub(super) fn attempt(root: &Path, made: &[PathBuf], stage: &Stage) -> Result<()> {
    let mut lintian = Command::new("lintian");
    tool::run(
        lintian.args(["--tag-display-limit", "0", "--fail-on", "error"]).args(made),
        "lintian",
    )?;
    let script = root.join("xtask/src/package/clean-root.sh");
    let mut sh = Command::new("sh");
    sh.arg(script).arg(stage.folder.join("root")).arg(root.join("target/package/debian.tar"));
    tool::run(sh.args(made), "dash")
}
