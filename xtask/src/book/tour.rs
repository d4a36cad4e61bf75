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
/// What this machine is called.
const HOST: &str = "/proc/sys/kernel/hostname";
/// What stands for the lines that are left out.
const MORE: &str = "[...]";
/// Characters of a line: what fits beside a table of contents.
const COLUMNS: &str = "88";

/// Builds the command and puts what it says onto the page.
pub(super) fn draw(root: &Path) -> Result<()> {
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
    let place = root.join(PAGE);
    let page = fs::read_to_string(&place).with_context(|| PAGE.to_owned())?;
    let host = fs::read_to_string(HOST).with_context(|| HOST.to_owned())?;
    let anew = renewed(&page, &mut |words| {
        say(words);
        let said = said(&program, words, folder.path())?;
        anonymous(&said, &[&folder.path().to_string_lossy(), host.trim()])
    })?;
    fs::write(&place, anew).with_context(|| PAGE.to_owned())?;
    say(&format!("{PAGE}: drawn anew"));
    Ok(())
}

/// The page with what `run` says of each command.
fn renewed(page: &str, run: &mut dyn FnMut(&str) -> Result<String>) -> Result<String> {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out = out + line + "\n";
        let Some((count, words)) = mark(line) else { continue };
        ensure!(lines.next() == Some(OPEN), "{PAGE}: no {OPEN} follows {line:?}");
        ensure!(lines.any(|line| line == CLOSE), "{PAGE}: no {CLOSE} ends the block of {line:?}");
        let said = run(words)?;
        out = out + OPEN + "\n" + &first(&said, count) + CLOSE + "\n";
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

/// What a command says on both outputs. It sees nothing of what is kept on this machine.
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
    Ok(if out.is_empty() { err } else { out })
}

/// The text without the folder and the name of this machine, and with the kernel's version alone.
fn anonymous(text: &str, names: &[&str]) -> Result<String> {
    let mut out = String::new();
    for line in text.lines() {
        let (before, rest) = line.split_once("kernel ").unwrap_or((line, ""));
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let local = rest[end..].find([';', ' ', ',']).map_or(rest.len(), |at| end + at);
        let cut =
            if rest.starts_with(|c: char| c.is_ascii_digit()) { end..local } else { end..end };
        out += before;
        if !rest.is_empty() {
            out = out + "kernel " + &rest[..cut.start] + &rest[cut.end..];
        }
        out.push('\n');
    }
    for name in names.iter().filter(|name| out.contains(**name)) {
        bail!("{PAGE} would hold {name:?}, a name of this machine");
    }
    Ok(out)
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
            Ok("one  \ntwo\nthree\n".to_owned())
        });
        assert_eq!(
            anew.unwrap(),
            "a\n<!-- 2 lines of: isochrone x -->\n```text\none\ntwo\n[...]\n```\nb\n```text\nkept\n```\n"
        );
        assert_eq!(asked, ["isochrone x"]);
        for broken in ["<!-- 1 lines of: isochrone x -->\n", "<!-- 1 lines of: x -->\n```text\n"] {
            assert!(renewed(broken, &mut |_| Ok(String::new())).is_err(), "{broken}");
        }
    }

    #[test]
    fn output_that_is_shown_whole_has_no_mark_of_more() {
        assert_eq!(first("one\ntwo\n", 2), "one\ntwo\n");
        assert_eq!(first("one\n\ntwo\n", 2), "one\n[...]\n");
    }

    #[test]
    fn a_kernel_has_its_version_alone_and_names_of_the_machine_are_refused() {
        let text = "Under KVM; kernel 6.18.44-fc-v669; pages\nthe kernel lists two\n";
        assert_eq!(
            anonymous(text, &["/tmp/x"]).unwrap(),
            "Under KVM; kernel 6.18.44; pages\nthe kernel lists two\n"
        );
        assert!(anonymous("written to /tmp/x/a\n", &["/tmp/x"]).is_err());
    }
}
