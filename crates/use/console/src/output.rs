//! Where text goes: the terminal with or without colours, and files that are whole or not there.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use isochrone_atlas_store::save_text;
use isochrone_report::term::Colour;

use crate::args::ColourChoice;

/// Columns when the terminal does not say.
const DEFAULT_WIDTH: usize = 80;

/// What is known of the terminal.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Colours that standard output takes.
    pub colour: Colour,
    /// Columns of standard output.
    pub width: usize,
}

impl Terminal {
    /// Looks at standard output and the environment (`NO_COLOR`, `COLORTERM`, `COLUMNS`).
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
        let columns = env("COLUMNS").and_then(|v| v.to_str().and_then(|v| v.parse().ok()));
        Self { colour, width: columns.unwrap_or(DEFAULT_WIDTH).clamp(40, 200) }
    }

    /// Prints to standard output.
    pub fn print(self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()?;
        Ok(())
    }

    /// One line to standard error; where even that is closed nobody is there to be told.
    pub fn complain(self, line: &str) {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
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

/// Writes a whole file or leaves what was there. `-` is standard output.
pub fn write_file(path: &Path, text: &str, terminal: &Terminal) -> Result<()> {
    if path == Path::new("-") {
        return terminal.print(text);
    }
    Ok(save_text(text, path)?)
}

/// What the command line asks for cannot be: exit code 2, as for what the parser refuses.
#[derive(Debug)]
pub struct WrongUsage(String);

impl WrongUsage {
    /// An error with these words.
    #[must_use]
    pub fn error(words: String) -> anyhow::Error {
        anyhow::Error::new(Self(words))
    }
}

impl std::fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

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
