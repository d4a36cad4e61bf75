//! Manual pages and shell completions, from the definition of a command line. What a definition does not say, exit
//! codes, files and the environment, stands here and is the same on every page.

use std::io::Write;

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::ManArgs;
use crate::codes::{MEANINGS, Meaning};
use crate::output::Terminal;
use crate::partner;
use crate::written::Place;

/// What a shell reads to complete this command.
pub fn completions(shell: Shell, mut command: Command) -> String {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs `man`: prints the page of the program, or writes the pages of all its commands into a folder.
///
/// # Errors
/// Where a page cannot be written.
pub fn run(args: &ManArgs, command: Command, terminal: &Terminal) -> Result<()> {
    let Some(folder) = &args.out else { return terminal.print(&manual(command)?) };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("--out {} cannot be made", folder.display()))?;
    let pages = manuals(command)?;
    for page in &pages {
        Place::open("--out", &folder.join(&page.name))?.write(&page.text, terminal)?;
    }
    terminal.print(&format!("{} pages in {}", pages.len(), folder.display()))
}

/// A manual page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its file's name, such as `isochrone-map.1`.
    pub name: String,
    /// In roff.
    pub text: String,
}

/// The pages of a program and of all its commands but the hidden ones.
///
/// # Errors
/// None that is known; writing into memory can fail by its type.
pub fn manuals(command: Command) -> Result<Vec<Page>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    let mut left = vec![command];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().filter(|below| !below.is_hide_set()).cloned());
        let name = Man::new(command.clone()).get_filename();
        pages.push(Page { name, text: manual(command)? });
    }
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(pages)
}

/// The manual page of one command, as roff.
///
/// # Errors
/// As [`manuals`].
fn manual(command: Command) -> Result<String> {
    let has_options = command.get_arguments().any(|arg| !arg.is_hide_set());
    let has_commands = command.get_subcommands().any(|below| !below.is_hide_set());
    let has_more = command.get_after_help().is_some();
    let has_version = command.get_version().is_some();
    let exits = exits_of(command.get_name());
    let man = Man::new(command);
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if has_options {
        man.render_options_section(&mut text)?;
    }
    if has_commands {
        man.render_subcommands_section(&mut text)?;
    }
    if has_more {
        man.render_extra_section(&mut text)?;
    }
    section("EXIT STATUS", exits.into_iter(), &mut text)?;
    section("FILES", FILES.iter().map(Term::of), &mut text)?;
    section("ENVIRONMENT", ENVIRONMENT.iter().map(Term::of), &mut text)?;
    if has_version {
        man.render_version_section(&mut text)?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// With which codes a command ends.
fn exits_of(command: &str) -> Vec<Term> {
    match command {
        "run" => EXIT_OF_RUN.iter().map(Term::of).collect(),
        "advise" => {
            let is_own = |meaning: &&Meaning| meaning.code < partner::REFUSED;
            let own = MEANINGS.iter().filter(is_own).map(Term::of_code);
            own.chain(EXIT_OF_WATCHED.iter().map(Term::of)).collect()
        }
        _ => MEANINGS.iter().map(Term::of_code).collect(),
    }
}

/// A word and what it means.
#[derive(Clone, Debug)]
struct Term {
    word: String,
    says: &'static str,
}

/// The same in a table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    word: &'static str,
    says: &'static str,
}

impl Term {
    fn of(entry: &Entry) -> Self {
        Self { word: entry.word.to_owned(), says: entry.says }
    }

    fn of_code(meaning: &Meaning) -> Self {
        Self { word: meaning.code.to_string(), says: meaning.words }
    }
}

fn section(title: &str, terms: impl Iterator<Item = Term>, text: &mut dyn Write) -> Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for term in terms {
        roff.control("TP", []);
        roff.text([bold(term.word)]);
        roff.text([roman(term.says)]);
    }
    Ok(roff.to_writer(text)?)
}

const fn entry(word: &'static str, says: &'static str) -> Entry {
    Entry { word, says }
}

/// What `isochrone run` ends with, which stands for another program.
const EXIT_OF_RUN: &[Entry] = &[
    entry("2", "wrong usage of isochrone itself, or the program's own exit code"),
    entry("125", "isochrone itself failed"),
    entry("126", "the program cannot be run under it"),
    entry("127", "the program was not found"),
    entry("128 + N", "signal N ended the program"),
    entry("any other", "the program's own exit code"),
];

/// The codes of `advise -- CMD` beside those of all commands: it ends as the program does.
const EXIT_OF_WATCHED: &[Entry] = &[
    entry("126, 127", "without --try: the program cannot be started, or was not found"),
    entry("128 + N", "without --try: signal N ended the program"),
    entry("any other", "without --try: the program's own exit code"),
];

/// What both programs read and write.
const FILES: &[Entry] = &[
    entry(
        "isochrone.atlas",
        "this machine's atlas, as `isochrone map` leaves it in the current folder, and where all commands look for \
         it",
    ),
    entry("isochrone.html", "the report, where --html names no other file"),
    entry(
        "$XDG_CACHE_HOME/isochrone/*.atlas, ~/.cache/isochrone/*.atlas",
        "atlases that are kept for all folders, named by the machine",
    ),
    entry(
        "$XDG_CACHE_HOME/isochrone/advice/*.json, ~/.cache/isochrone/advice/*.json",
        "what `isochrone advise` found of programs, the last 64 times",
    ),
    entry(
        "../lib/libisochrone_malloc.so, ../lib/libisochrone_mpi.so",
        "what `isochrone run` preloads, beside the program or there",
    ),
    entry("../libexec/isochrone-lab", "the laboratory, beside the command or there"),
];

/// What both programs read of the environment, and what they tell those that they start.
const ENVIRONMENT: &[Entry] = &[
    entry("ISOCHRONE_ATLAS", "this machine's atlas, where no option names one"),
    entry("XDG_CACHE_HOME, HOME", "where the cache folder is"),
    entry("NO_COLOR", "no colours, unless --color always"),
    entry("COLORTERM", "truecolor or 24bit: colours are not rounded to 256"),
    entry("COLUMNS", "width of the terminal [default: 80]"),
    entry("PATH", "where `isochrone run` and benchmarks look for programs"),
    entry("TMPDIR", "where files go that nobody keeps"),
    entry("LD_PRELOAD", "what else is preloaded into programs that are started; it is kept"),
    entry(
        "GLIBC_TUNABLES",
        "kept; `isochrone advise --try` adds the tunable of huge pages for its runs",
    ),
    entry(
        "OMPI_MCA_mca_base_env_list",
        "variables that Open MPI's launcher hands on to other nodes; `isochrone run --mpi` adds its own",
    ),
    entry(
        "ISOCHRONE_CONFIG, ISOCHRONE_MPI",
        "set for programs that are started under a library: the record that it reads",
    ),
    entry(
        "ISOCHRONE_MPI_OFF, ISOCHRONE_MPI_ONLY, ISOCHRONE_MPI_MAX_BYTES, ISOCHRONE_MPI_REPORTS",
        "read by `libisochrone_mpi.so` without the launcher: 1, names of collectives, bytes, a folder for reports",
    ),
    entry(
        "OPENBLAS_CORETYPE",
        "`bench cholesky`: kernels of OpenBLAS; chosen by the processor where it is not set",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ColourChoice;
    use clap::Arg;

    fn program() -> Command {
        let below = Command::new("below").about("Something below").after_help("Examples: none");
        let hidden = Command::new("hidden").hide(true);
        let run = Command::new("run").arg(Arg::new("json").long("json"));
        let advise = Command::new("advise");
        Command::new("thing").version("1.2").subcommands([below, hidden, run, advise])
    }

    #[test]
    fn every_command_has_a_page_with_every_section() {
        let folder = tempfile::tempdir().unwrap();
        let man = ManArgs { out: Some(folder.path().join("man/man1")) };
        run(&man, program(), &Terminal::detect(ColourChoice::Never)).unwrap();
        let mut names: Vec<String> = std::fs::read_dir(man.out.as_ref().unwrap())
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["thing-advise.1", "thing-below.1", "thing-run.1", "thing.1"]);
        for page in manuals(program()).unwrap() {
            for title in ["NAME", "SYNOPSIS", "EXIT STATUS", "FILES", "ENVIRONMENT"] {
                let heading = [format!(".SH {title}\n"), format!(".SH \"{title}\"\n")];
                assert!(heading.iter().any(|of| page.text.contains(of)), "{title}: {}", page.text);
            }
            assert!(page.text.contains("ISOCHRONE_ATLAS"), "{}", page.text);
            let stands_for_another =
                ["thing-advise.1", "thing-run.1"].contains(&page.name.as_str());
            assert_eq!(page.text.contains("signal N"), stands_for_another, "{}", page.name);
            let is_told_of_the_other = page.text.contains("the laboratory, is not there");
            assert_eq!(is_told_of_the_other, !stands_for_another, "{}", page.name);
        }
    }

    /// What is read of the environment is read in `output`, or by the name that a constant has.
    #[test]
    fn every_variable_that_is_read_stands_on_the_page() {
        let source = include_str!("output.rs");
        let mut read: Vec<&str> = Vec::new();
        for before in ["env(\"", "var_os(\""] {
            read.extend(source.split(before).skip(1).filter_map(|rest| rest.split('"').next()));
        }
        assert!(read.len() >= 6, "{read:?}");
        read.extend([isochrone_places::VARIABLE, isochrone_malloc::CONFIG_VARIABLE, "TMPDIR"]);
        let listed = |name: &&str| {
            ENVIRONMENT.iter().any(|entry| entry.word.split(", ").any(|word| word == *name))
        };
        let missing: Vec<_> = read.iter().filter(|name| !listed(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
