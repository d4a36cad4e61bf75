//! The output that the tour shows, taken again from the programs of today. Above each block of the page stands how many
//! lines it has of which command; the commands run one after the other in an empty folder, so that what one leaves is
//! there for the next. Names of this machine do not get onto the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::ci::say;

const PAGE: &str = "docs/tour.md";
/// Above a block: `<!-- 20 lines of: isochrone show -->`.
const MARK: (&str, &str, &str) = ("<!-- ", " lines of: ", " -->");
const OPEN: &str = "```text";
const CLOSE: &str = "```";
/// What measures.
const MAP: &str = "isochrone map";
/// What stands for the lines that are left out.
const MORE: &str = "[...]";
/// Characters of a line.
const COLUMNS: &str = "80";

/// Builds the command and puts what it says onto the page. With an `atlas`, one that this machine's command wrote on a
/// quiet day, nothing is measured: what a map says stays as it is.
pub(super) fn draw(root: &Path, atlas: Option<&Path>) -> Result<()> {
    let built = Command::new("cargo")
        .args(["build", "--release", "--locked", "-p", "isochrone"])
        .current_dir(root)
        .status()
        .context("cargo cannot be started")?;
    ensure!(built.success(), "the command was not built");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let program = std::path::absolute(target.join("release/isochrone"))?;
    let folder = tempfile::tempdir()?;
    if let Some(atlas) = atlas {
        fs::copy(atlas, folder.path().join("isochrone.atlas"))
            .with_context(|| atlas.display().to_string())?;
    }
    let place = root.join(PAGE);
    let page = fs::read_to_string(&place).with_context(|| PAGE.to_owned())?;
    let names = Names::of_this_machine(folder.path())?;
    let anew = renewed(&page, &mut |words| {
        if atlas.is_some() && words.starts_with(MAP) {
            return Ok(None);
        }
        say(words);
        names.taken_out(&said(&program, words, folder.path())?).map(Some)
    })?;
    fs::write(&place, anew).with_context(|| PAGE.to_owned())?;
    say(&format!("{PAGE}: drawn anew"));
    Ok(())
}

/// The page with what `run` says of each command; a block of which it says nothing stays.
fn renewed(page: &str, run: &mut dyn FnMut(&str) -> Result<Option<String>>) -> Result<String> {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out = out + line + "\n";
        let Some((count, words)) = mark(line) else { continue };
        ensure!(lines.next() == Some(OPEN), "{PAGE}: no {OPEN} follows {line:?}");
        let before: Vec<&str> = lines.by_ref().take_while(|line| *line != CLOSE).collect();
        let said = match run(words)? {
            Some(said) => first(&said, count),
            None => before.iter().map(|line| format!("{line}\n")).collect(),
        };
        out = out + OPEN + "\n" + &said + CLOSE + "\n";
    }
    Ok(out)
}

fn mark(line: &str) -> Option<(usize, &str)> {
    let (count, words) = line.strip_prefix(MARK.0)?.strip_suffix(MARK.2)?.split_once(MARK.1)?;
    Some((count.parse().ok()?, words))
}

/// The first lines, and whether there were more.
fn first(said: &str, count: usize) -> String {
    let kept: Vec<&str> = said.lines().take(count).map(str::trim_end).collect();
    let more = if said.lines().count() > count { format!("{MORE}\n") } else { String::new() };
    kept.join("\n").trim_end().to_owned() + "\n" + &more
}

/// What a command says, its remarks first. It sees nothing of what is kept on this machine.
fn said(program: &Path, words: &str, folder: &Path) -> Result<String> {
    let mut parts = words.split_whitespace();
    ensure!(parts.next() == Some("isochrone"), "{words:?} is no command of isochrone");
    let said = Command::new(program)
        .args(parts)
        .current_dir(folder)
        .env_remove("ISOCHRONE_ATLAS")
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("COLUMNS", COLUMNS)
        .stdin(Stdio::null())
        .output()
        .with_context(|| words.to_owned())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&said.stdout), text(&said.stderr));
    ensure!(said.status.success(), "{words}: {}\n{err}", said.status);
    Ok(err + &out)
}

/// What of this machine does not get onto the page.
struct Names {
    /// The folder of the run, with which paths begin.
    folder: String,
    /// The release of the kernel, of which the version stays.
    kernel: String,
    host: String,
}

impl Names {
    fn of_this_machine(folder: &Path) -> Result<Self> {
        let read = |file: &str| fs::read_to_string(file).with_context(|| file.to_owned());
        let (kernel, host) =
            (read("/proc/sys/kernel/osrelease")?, read("/proc/sys/kernel/hostname")?);
        Ok(Self {
            folder: format!("{}/", folder.display()),
            kernel: kernel.trim().to_owned(),
            host: host.trim().to_owned(),
        })
    }

    /// The text without them.
    ///
    /// # Errors
    /// Where it names the host, which no command should.
    fn taken_out(&self, text: &str) -> Result<String> {
        let version = self.kernel.split('-').next().unwrap_or_default();
        let text = text.replace(&self.folder, "").replace(&self.kernel, version);
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '.');
        if words.any(|word| word == self.host) {
            bail!("{PAGE} would hold {:?}, the name of this machine", self.host);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_with_a_mark_are_taken_again_and_all_else_stays() {
        let page =
            "a\n<!-- 2 lines of: isochrone x -->\n```text\nold\n```\nb\n```text\nkept\n```\n";
        let mut asked = Vec::new();
        let anew = renewed(page, &mut |words| {
            asked.push(words.to_owned());
            Ok(Some("one  \ntwo\nthree\n".to_owned()))
        });
        assert_eq!(
            anew.unwrap(),
            "a\n<!-- 2 lines of: isochrone x -->\n```text\none\ntwo\n[...]\n```\nb\n```text\nkept\n```\n"
        );
        assert_eq!(asked, ["isochrone x"]);
        assert_eq!(renewed(page, &mut |_| Ok(None)).unwrap(), page, "nothing is said anew");
        let broken = "<!-- 1 lines of: isochrone x -->\nwords\n";
        assert!(renewed(broken, &mut |_| Ok(None)).is_err());
    }

    #[test]
    fn output_that_is_shown_whole_has_no_mark_of_more() {
        assert_eq!(first("one\ntwo\n", 2), "one\ntwo\n");
        assert_eq!(first("one\n\ntwo\n", 2), "one\n[...]\n");
    }

    #[test]
    fn names_of_the_machine_are_taken_out_or_refused() {
        let names = Names {
            folder: "/tmp/x/".to_owned(),
            kernel: "6.18.44-local-7".to_owned(),
            host: "vm-1".to_owned(),
        };
        assert_eq!(
            names.taken_out("kernel 6.18.44-local-7; see /tmp/x/a.atlas, KVM-1\n").unwrap(),
            "kernel 6.18.44; see a.atlas, KVM-1\n"
        );
        assert!(names.taken_out("on vm-1: two cores\n").is_err());
    }
}
