//! The figures of this machine, taken again: the benchmarks that made the recorded files run once more, and their files
//! take the place of those. What was measured on other machines keeps its file and its date.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use isochrone_console::codes;
use isochrone_console::output::{Terminal, WrongUsage};
use isochrone_console::progress::Interrupt;
use isochrone_console::run::ended::{alone, ended};
use isochrone_host::{SysRoot, fingerprint, machine_state, this_machine};
use isochrone_report::table::{Cell, Table};

use super::list::{Claim, List, Machine};
use super::source::Recorded;
use super::tree::{LIST, Tree, read};
use crate::args::ClaimsArgs;

/// The load of a machine that does nothing else.
const LOAD_MAX: f64 = 1.0;

/// Runs the command.
pub(super) fn run(args: &ClaimsArgs, tree: &Tree, terminal: &Terminal) -> Result<ExitCode> {
    let list = tree.list()?;
    let machine = this(&list)?;
    let of_here: Vec<&Claim> =
        list.claims.iter().filter(|claim| claim.machine.as_ref() == Some(&machine.name)).collect();
    let commands = chosen(commands(&of_here), &args.only)?;
    if args.out.is_none() {
        quiet(machine_state(&SysRoot::live()).loadavg)?;
    }
    let interrupt = Interrupt::install();
    let out = args.out.clone().unwrap_or_else(|| tree.results());
    std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let mut taken = BTreeMap::new();
    let mut failed = false;
    for (file, words) in commands {
        if interrupt.is_set() {
            break;
        }
        terminal.complain(&format!("isochrone-lab {}", words.join(" ")));
        match again(file, words, &out, &interrupt) {
            Ok(()) => _ = taken.insert(file, Recorded::read(&out.join(file))?),
            Err(_) if interrupt.is_set() => break,
            Err(why) => {
                failed = true;
                terminal.complain(&format!("{file} stays as it was: {why:#}"));
            }
        }
    }
    if args.out.is_none() {
        dated(tree, taken.keys().copied())?;
    }
    let kept = args.out.as_deref();
    let text = words(&list, &of_here, &taken, machine, kept, terminal.columns());
    terminal.say(&text)?;
    Ok(match (interrupt.is_set(), failed) {
        (true, _) => ExitCode::from(codes::INTERRUPTED),
        (false, true) => ExitCode::from(codes::FAILED),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// Which machine of the list this is.
fn this(list: &List) -> Result<&Machine> {
    let root = SysRoot::live();
    let machine = this_machine(&root).context("this machine cannot be described")?;
    let (words, _) = fingerprint(&machine, &machine_state(&root));
    match one_of(&list.machines, &words) {
        Some(machine) => Ok(machine),
        None => {
            let names: Vec<&str> = list.machines.iter().map(|one| one.name.as_str()).collect();
            bail!(
                "no figure of README was measured on such a machine: there are {}",
                names.join(", ")
            )
        }
    }
}

/// The machine that has all of its words among these.
pub(super) fn one_of<'a>(machines: &'a [Machine], words: &[String]) -> Option<&'a Machine> {
    machines.iter().find(|one| one.fingerprint.iter().all(|word| words.contains(word)))
}

/// The files that a command of the laboratory makes, with its words.
pub(super) fn commands<'a>(claims: &[&'a Claim]) -> BTreeMap<&'a str, &'a [String]> {
    let made = claims.iter().filter_map(|claim| Some((claim, claim.made_by.as_deref()?)));
    made.map(|(claim, words)| (claim.file.as_str(), words)).collect()
}

/// The commands of files whose names hold one of these words; without words all.
///
/// # Errors
/// Where a word is in the name of none.
pub(super) fn chosen<'a>(
    mut commands: BTreeMap<&'a str, &'a [String]>,
    only: &[String],
) -> Result<BTreeMap<&'a str, &'a [String]>> {
    let holds = |file: &&str, word: &String| !word.is_empty() && file.contains(word.as_str());
    if let Some(word) = only.iter().find(|word| !commands.keys().any(|file| holds(file, word))) {
        let all: Vec<&str> = commands.into_keys().collect();
        return Err(WrongUsage::error(format!(
            "--only {word}: no figure of this machine has a command for such a file; those that have: {}",
            all.join(", ")
        )));
    }
    commands.retain(|file, _| only.is_empty() || only.iter().any(|word| holds(file, word)));
    Ok(commands)
}

/// Whether what is recorded may be replaced by what is measured now.
///
/// # Errors
/// Where the machine does other work, as far as that is known.
pub(super) fn quiet(loadavg: Option<[f64; 3]>) -> Result<()> {
    match loadavg {
        Some([now, ..]) if now > LOAD_MAX => bail!(
            "this machine does other work (load {now:.1}), and recorded figures are those of a quiet one: wait until \
             the load is below {LOAD_MAX}, or give --out FOLDER, which leaves docs/results as it is"
        ),
        _ => Ok(()),
    }
}

/// Makes a file once more; what is there stays where that fails, or is not whole.
fn again(file: &str, words: &[String], out: &Path, interrupt: &Interrupt) -> Result<()> {
    let scratch =
        tempfile::tempdir_in(out).context("a new file has no place beside the old one")?;
    let made = scratch.path().join(file);
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(words)
        .arg(format!("--json={}", made.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut child = alone(&mut command).spawn().context("isochrone-lab cannot be started")?;
    let status = ended(&mut child, &|| interrupt.is_set())?.context("it was ended")?;
    if !status.success() {
        bail!("isochrone-lab {} failed ({status})", words.join(" "));
    }
    let found: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&made)?)?;
    if found["complete"] == false {
        bail!("there was no time for all of it; give its command in {LIST} a longer --budget");
    }
    std::fs::rename(&made, out.join(file)).with_context(|| file.to_owned())
}

/// Writes the day of today to the claims of these files.
fn dated<'a>(tree: &Tree, files: impl Iterator<Item = &'a str>) -> Result<()> {
    let path = tree.results().join(LIST);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let files: Vec<&str> = files.collect();
    if files.is_empty() {
        return Ok(());
    }
    let moment = isochrone_view::utc(since.as_secs()).context("this machine has no date")?;
    let day = moment.split(' ').next().unwrap_or_default();
    let text = redated(&read(&path)?, &files, day);
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

/// The list with this date at all claims of these files, and nothing else changed.
pub(super) fn redated(text: &str, files: &[&str], date: &str) -> String {
    let is_of =
        |block: &str| files.iter().any(|file| block.contains(&format!("file = \"{file}\"")));
    let dated = |block: &str| {
        let line = |line: &str| match line.starts_with("date = ") {
            true => format!("date = \"{date}\"\n"),
            false => line.to_owned(),
        };
        block.split_inclusive('\n').map(line).collect::<String>()
    };
    let mut blocks = text.split("[[claim]]");
    let mut out = blocks.next().unwrap_or_default().to_owned();
    for block in blocks {
        out.push_str("[[claim]]");
        out.push_str(&if is_of(block) { dated(block) } else { block.to_owned() });
    }
    out
}

/// What README says, and what was found now.
fn words(
    list: &List,
    of_here: &[&Claim],
    taken: &BTreeMap<&str, Recorded>,
    machine: &Machine,
    kept: Option<&Path>,
    columns: u16,
) -> String {
    let mut table = Table::new(["figure", "README says", "now", "before of"]).keyed(2);
    let mut changed = 0;
    for claim in of_here {
        let Some(recorded) = taken.get(claim.file.as_str()) else { continue };
        let now = recorded.of(claim);
        let said = super::numbers::numbers(&claim.text);
        let same = |now: &Vec<f64>| said.iter().zip(now).all(|(said, now)| said.is(*now));
        changed += usize::from(!now.as_ref().is_ok_and(same));
        let now = now.map_or_else(
            |why| format!("{why:#}"),
            |now| now.iter().map(|n| format!("{n:.3}")).collect::<Vec<_>>().join(", "),
        );
        table.row([
            claim.line.clone().into(),
            claim.text.clone().into(),
            Cell::text(now),
            claim.date.clone().into(),
        ]);
    }
    let by_hand = of_here.iter().filter(|claim| claim.made_by.is_none()).count();
    let mut lines = Vec::new();
    if !table.is_empty() {
        lines.push(table.to_terminal(columns));
    }
    let of_none = list.claims.iter().filter(|claim| claim.machine.is_none()).count();
    lines.push(format!(
        "{}: {} files were taken again, {changed} figures of README differ from them; {by_hand} figures of this \
         machine are made by no single command, {} are of other machines, and {of_none} of none: they keep their dates",
        machine.name,
        taken.len(),
        list.claims.len() - of_here.len() - of_none
    ));
    if !taken.is_empty() {
        lines.push(todo(changed, kept));
    }
    lines.join("\n")
}

/// What is left to do by hand. `kept` is the folder where files lie that replace nothing.
pub(super) fn todo(changed: usize, kept: Option<&Path>) -> String {
    match (changed, kept) {
        (0, None) => {
            format!("nothing is left to do: README holds, and {LIST} has the day of today")
        }
        (0, Some(folder)) => {
            format!(
                "README holds; the files are in {}, and docs/results is as it was",
                folder.display()
            )
        }
        (_, None) => format!(
            "README still says what it said: write the new figures there and into `text` of {LIST}, then \
             `cargo lab claims --check`; `git checkout docs/results` takes the new files back"
        ),
        (_, Some(folder)) => format!(
            "the files are in {}, and README and docs/results are as they were; where a figure differs by more than \
             its file's intervals, measure again without --out on a quiet machine",
            folder.display()
        ),
    }
}
