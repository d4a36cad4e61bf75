//! The figures of this machine, taken again: the benchmarks that made the recorded files run once more, and their files
//! take the place of those. What was measured on other machines keeps its file and its date.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use isochrone_console::codes;
use isochrone_console::output::Terminal;
use isochrone_console::progress::Interrupt;
use isochrone_console::run::ended::{alone, ended};
use isochrone_host::{SysRoot, fingerprint, machine_state, this_machine};
use isochrone_report::table::{Cell, Table};

use super::list::{Claim, List, Machine};
use super::source::Recorded;
use super::tree::{LIST, Tree, read};
use crate::args::ClaimsArgs;

/// Runs the command.
pub(super) fn run(args: &ClaimsArgs, tree: &Tree, terminal: &Terminal) -> Result<ExitCode> {
    let list = tree.list()?;
    let machine = this(&list)?;
    let of_here: Vec<&Claim> =
        list.claims.iter().filter(|claim| claim.machine.as_ref() == Some(&machine.name)).collect();
    let interrupt = Interrupt::install();
    let out = args.out.clone().unwrap_or_else(|| tree.results());
    std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let mut taken = BTreeMap::new();
    let mut failed = false;
    for (file, words) in commands(&of_here) {
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
    let text = words(&list, &of_here, &taken, machine, terminal.columns());
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
    lines.join("\n")
}
