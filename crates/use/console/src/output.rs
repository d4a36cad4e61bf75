//! Where words go: the terminal with or without colours; and what the environment says.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use isochrone_report::lines::fit;
use isochrone_report::term::Colour;

use crate::args::ColourChoice;
pub use crate::wrong::WrongUsage;

/// Columns where nobody says.
const DEFAULT_WIDTH: u16 = 80;

/// What is known of the terminal.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Colours that standard output takes.
    pub colour: Colour,
    /// Columns of standard output.
    pub width: usize,
}

impl Terminal {
    /// Looks at standard output, and at the environment (`NO_COLOR`, `COLORTERM`, and `COLUMNS` where standard
    /// output is no terminal).
    pub fn detect(choice: ColourChoice) -> Self {
        let env = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let wanted = match choice {
            ColourChoice::Always => true,
            ColourChoice::Never => false,
            ColourChoice::Auto => io::stdout().is_terminal() && env("NO_COLOR").is_none(),
        };
        let true_colour = env("COLORTERM").is_some_and(|v| v == "truecolor" || v == "24bit");
        let colour = match (wanted, true_colour) {
            (false, _) => Colour::None,
            (true, true) => Colour::TrueColour,
            (true, false) => Colour::Ansi256,
        };
        let own = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0);
        Self { colour, width: width_of(own).unwrap_or(DEFAULT_WIDTH.into()) }
    }

    /// Columns of standard output, as tables take them.
    pub fn columns(self) -> u16 {
        u16::try_from(self.width).unwrap_or(DEFAULT_WIDTH)
    }

    /// Prints to standard output.
    pub fn print(self, text: &str) -> Result<()> {
        print_to(io::stdout().lock(), text)
    }

    /// Prints words for people: lines that are longer than the terminal is wide are wrapped between words.
    pub fn say(self, text: &str) -> Result<()> {
        self.print(&fit(text, self.width))
    }

    /// One line to standard error; where even that is closed nobody is there to be told.
    pub fn complain(self, line: &str) {
        complain(line);
    }
}

/// What is said where nothing can be printed.
pub(crate) const NOT_WRITTEN: &str = "standard output cannot be written";

/// Prints to `out`, which is standard output.
fn print_to(mut out: impl Write, text: &str) -> Result<()> {
    let mut print = || {
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    };
    print().context(NOT_WRITTEN)
}

/// One line to standard error, in lines of a terminal where that is one.
pub fn complain(line: &str) {
    // Lines of a file may be as long as they are.
    let line = error_width().map_or_else(|| line.to_owned(), |width| fit(line, width));
    let _ = writeln!(io::stderr().lock(), "{}", line.trim_end_matches('\n'));
}

/// Whether a text has lines that standard error has no room for.
pub fn is_too_long(text: &str) -> bool {
    error_width().is_some_and(|width| text.lines().any(|line| line.chars().count() > width))
}

/// Columns of standard error.
fn error_width() -> Option<usize> {
    let own = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| width.0);
    width_of(own)
}

/// Columns: of a terminal, else those that `COLUMNS` tells.
fn width_of(terminal: Option<u16>) -> Option<usize> {
    let told = || variable("COLUMNS").and_then(|v| v.to_str().and_then(|v| v.parse().ok()));
    let width: u16 = terminal.filter(|width| *width > 0).or_else(told)?;
    Some(width.clamp(40, 200).into())
}

/// The words that this program was started with, its name first.
pub fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os()
}

/// What a program that is started inherits.
pub fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// The user's folder for what can be made again (XDG Base Directory Specification).
pub fn cache_folder() -> Option<PathBuf> {
    isochrone_places::cache_folder(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
}

/// Where programs are looked for.
pub fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

/// Where files go that nobody keeps (`TMPDIR`).
pub fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// An environment variable of the user's.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// What is preloaded into every program that is started from here.
pub fn preloaded() -> Option<OsString> {
    std::env::var_os("LD_PRELOAD")
}

/// The text of a file that has at most so many bytes: what is named may be a disk, or have no end (`/dev/zero`).
///
/// # Errors
/// Where it cannot be read, or is larger.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    let read = || -> Result<String> {
        let mut text = String::new();
        File::open(path)?.take(bytes_max + 1).read_to_string(&mut text)?;
        let fits = u64::try_from(text.len()).is_ok_and(|bytes| bytes <= bytes_max);
        ensure!(fits, "it has more than {bytes_max} bytes");
        Ok(text)
    };
    read().with_context(|| format!("{} cannot be read", path.display()))
}

/// An error and its causes in one line; a cause that its consequence already quotes is left out.
pub fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

/// A reader that went away (`| head`) is no failure.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().map(io::Error::kind)
    };
    error.chain().any(|cause| of(cause) == Some(io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_standard_output_does_not_take_is_said_with_its_name() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let said = words(&print_to(full, "text").unwrap_err());
        assert!(said.starts_with("standard output cannot be written: No space left"), "{said}");
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let gone = print_to(writer, "text").unwrap_err();
        assert!(is_broken_pipe(&gone), "a reader that went away is still known: {gone:#}");
    }
}
