//! Options that say where something is written: the same words, and the same meaning of them, in every command.
//!
//! FILE may stand behind `=` or be the next word. The next word is not taken where the option was a flag before it
//! took a file, and the next word is something else ([`behind_equals`]).

use std::path::{Path, PathBuf};

use clap::{Arg, Args};

/// What stands for standard output.
pub const STDOUT: &str = "-";
/// Where a report goes that has no name.
pub const REPORT: &str = "isochrone.html";

/// `--json[=FILE]`.
#[derive(Clone, Debug, Default, Args)]
pub struct JsonArg {
    /// Figures as JSON: --json=FILE into that file, --json alone or --json=- on standard output, where then
    /// isochrone itself writes nothing else.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT)]
    pub json: Option<PathBuf>,
}

/// `--html[=FILE]`.
#[derive(Clone, Debug, Default, Args)]
pub struct HtmlArg {
    /// The report as one HTML page: --html=FILE into that file, --html alone into isochrone.html, --html=- on
    /// standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = REPORT)]
    pub html: Option<PathBuf>,
}

/// An option and what it was given.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The option, such as `--json`.
    pub option: &'static str,
    /// The place that it names, where it was given.
    pub path: Option<&'a Path>,
}

/// An option with what it was given.
pub fn asked<'a>(option: &'static str, path: Option<&'a PathBuf>) -> Asked<'a> {
    Asked { option, path: path.map(PathBuf::as_path) }
}

impl JsonArg {
    /// The option and what it was given.
    pub fn asked(&self) -> Asked<'_> {
        asked("--json", self.json.as_ref())
    }
}

impl HtmlArg {
    /// The option and what it was given.
    pub fn asked(&self) -> Asked<'_> {
        asked("--html", self.html.as_ref())
    }
}

/// What `man` takes.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Write the pages of all commands into this folder, a file each.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// FILE only behind `=`: the next word is something else, since the option was once a flag.
pub fn behind_equals(arg: Arg) -> Arg {
    arg.require_equals(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Spaced {
        #[command(flatten)]
        json: JsonArg,
        #[command(flatten)]
        html: HtmlArg,
        name: Option<String>,
    }

    #[derive(Debug, Parser)]
    #[command(mut_arg("json", behind_equals))]
    struct Flagged {
        #[command(flatten)]
        json: JsonArg,
        name: Option<String>,
    }

    fn words(line: &str) -> impl Iterator<Item = &str> {
        std::iter::once("x").chain(line.split(' ').filter(|word| !word.is_empty()))
    }

    #[test]
    fn every_way_to_name_a_file() {
        for (line, json, html, name) in [
            ("", None, None, None),
            ("--json", Some("-"), None, None),
            ("--json -", Some("-"), None, None),
            ("--json=-", Some("-"), None, None),
            ("--json a", Some("a"), None, None),
            ("--json=a b", Some("a"), None, Some("b")),
            ("--json a b", Some("a"), None, Some("b")),
            ("b --json", Some("-"), None, Some("b")),
            ("--json --html", Some("-"), Some(REPORT), None),
            ("--html=- --json=a", Some("a"), Some("-"), None),
            ("--html a", None, Some("a"), None),
        ] {
            let found =
                Spaced::try_parse_from(words(line)).unwrap_or_else(|e| panic!("{line}: {e}"));
            assert_eq!(found.json.json, json.map(PathBuf::from), "{line}");
            assert_eq!(found.html.html, html.map(PathBuf::from), "{line}");
            assert_eq!(found.name.as_deref(), name, "{line}");
        }
        assert!(Spaced::try_parse_from(words("--json=")).is_err());
        assert!(Spaced::try_parse_from(words("--json a --json b")).is_err());
    }

    #[test]
    fn what_was_a_flag_leaves_the_next_word_alone() {
        for (line, json, name) in [
            ("--json b", Some("-"), Some("b")),
            ("b --json", Some("-"), Some("b")),
            ("--json=a b", Some("a"), Some("b")),
            ("--json=-", Some("-"), None),
        ] {
            let found =
                Flagged::try_parse_from(words(line)).unwrap_or_else(|e| panic!("{line}: {e}"));
            assert_eq!(found.json.json, json.map(PathBuf::from), "{line}");
            assert_eq!(found.name.as_deref(), name, "{line}");
        }
    }
}
