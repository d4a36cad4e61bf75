//! `cargo xtask peer`: our line transfers and those of a known tool, side by side on one pair of
//! cores, fresh processes of both in turns (ABBA). The raw series is kept with the machine.
//!
//! The peer is the `core-to-core-latency` crate in its compare-and-swap mode. A process of it
//! times one line, so that its spread over processes is the spread over lines that one run of ours
//! sees. Its mean keeps interruptions in, ours leaves them out: on a busy machine it reads high.

mod figures;
mod quiet;
mod series;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use isochrone_host::Meter;
use isochrone_units::Reading;
use serde_json::json;

use figures::figures;
use series::{Block, Control, Ours, Peer, Series};

const PEER: &str = "core-to-core-latency";
const PEER_VERSION: &str = "1.2.0";
/// Its defaults, stated: round trips in a sample, samples.
const PEER_ARGUMENTS: [&str; 5] = ["1000", "300", "--bench", "1", "--csv"];
/// What of a map is comparable; the arena of the block experiment is not needed.
const OUR_ARGUMENTS: [&str; 7] = ["map", "--only", "transfer", "--memory", "4M", "--json", "-"];
/// Each process of the peer is a sample of one line: fewer say nothing of lines.
const RUNS_MIN: usize = 20;

/// A busy machine is waited for so long in all; after that, disturbed runs are listed as such.
const PATIENCE: Duration = Duration::from_secs(120);

const HELP: &str = "\
cargo xtask peer [--runs N] [--cores A,B] [--binary FILE] [--out FILE]
  --runs    processes of the peer, 20 or more [20]
  --cores   the pair [0,1]
  --binary  an isochrone that is built already [cargo build --profile dist]
  --out     where the raw series goes [docs/results/peer-core-to-core.json]";

struct Options {
    runs: usize,
    cores: String,
    binary: Option<PathBuf>,
    out: PathBuf,
}

/// Installs the peer, runs both, prints the comparison and keeps the series.
pub(crate) fn run(root: &Path, arguments: impl Iterator<Item = String>) -> Result<()> {
    let options = parse(root, arguments)?;
    let folder = root.join("target").join("peer");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let tools = Tools {
        ours: match &options.binary {
            Some(binary) => binary.canonicalize().with_context(|| binary.display().to_string())?,
            None => build(root)?,
        },
        peer: install(&folder)?,
        cores: options.cores.clone(),
        folder,
    };
    let machine = machine(&options.cores)?;
    let begin = Instant::now();
    let series = measure(&tools, options.runs)?;
    let figures = figures(&series);
    for line in table::lines(&figures, &series) {
        say(&line);
    }
    let text = json!({
        "what": format!("isochrone and {PEER} {PEER_VERSION}, one pair of cores, fresh processes in turns"),
        "reading": Reading::Measured,
        "order": "block: ours, peer, peer, ours; after every second block a control: ours four times",
        "ours": OUR_ARGUMENTS.join(" "),
        "peer": PEER_ARGUMENTS.join(" "),
        "machine": machine,
        "seconds": begin.elapsed().as_secs_f64(),
        "figures": figures,
        "series": series,
    });
    write(&options.out, &text)
}

fn parse(root: &Path, mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options {
        runs: RUNS_MIN,
        cores: "0,1".into(),
        binary: None,
        out: root.join("docs/results/peer-core-to-core.json"),
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name} takes a value\n{HELP}"))?;
        match name.as_str() {
            "--runs" => options.runs = value.parse().with_context(|| format!("--runs {value}"))?,
            "--cores" => options.cores = value,
            "--binary" => options.binary = Some(value.into()),
            "--out" => options.out = value.into(),
            _ => bail!("unknown option {name}\n{HELP}"),
        }
    }
    ensure!(
        options.runs >= RUNS_MIN,
        "--runs {}: a process of the peer samples one line, {RUNS_MIN} are the least",
        options.runs
    );
    let pair: Vec<&str> = options.cores.split(',').collect();
    ensure!(pair.len() == 2 && pair[0] != pair[1], "--cores {}: name two cores", options.cores);
    Ok(options)
}

/// Our binary, as it is packaged.
fn build(root: &Path) -> Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["build", "--profile", "dist", "--locked"])
        .current_dir(root)
        .status()
        .context("cargo cannot be started")?;
    ensure!(status.success(), "isochrone does not build; run `cargo build --profile dist` alone");
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root.join("target"), |folder| root.join(folder));
    Ok(target.join("dist").join("isochrone"))
}

/// The peer from its registry, unless this version of it is there.
fn install(folder: &Path) -> Result<PathBuf> {
    let binary = folder.join("bin").join(PEER);
    let installed = fs::read_to_string(folder.join(".crates.toml")).unwrap_or_default();
    if binary.exists() && installed.contains(&format!("\"{PEER} {PEER_VERSION} ")) {
        return Ok(binary);
    }
    say(&format!("installing {PEER} {PEER_VERSION}"));
    let version = format!("={PEER_VERSION}");
    let status = Command::new("cargo")
        .args(["install", "--locked", "--version", version.as_str(), "--root"])
        .arg(folder)
        .arg(PEER)
        .status()
        .context("cargo cannot be started")?;
    ensure!(status.success(), "{PEER} cannot be installed; is the registry reachable?");
    Ok(binary)
}

struct Tools {
    ours: PathBuf,
    peer: PathBuf,
    cores: String,
    folder: PathBuf,
}

impl Tools {
    fn ours(&self) -> Result<Ours> {
        let place = |name: &str| self.folder.join(name);
        let mut command = Command::new(&self.ours);
        command.args(OUR_ARGUMENTS).args(["--cores", &self.cores]);
        command.arg("--out").arg(place("peer.atlas")).arg("--html").arg(place("peer.html"));
        let (text, seconds) = timed(&mut command)?;
        Ours::parse(&text, seconds)
    }

    fn peer(&self) -> Result<Peer> {
        let mut command = Command::new(&self.peer);
        let (text, seconds) = timed(command.args(PEER_ARGUMENTS).args(["--cores", &self.cores]))?;
        Peer::parse(&text, seconds)
    }
}

/// Standard output of a process, and the seconds from its start to its end.
fn timed(command: &mut Command) -> Result<(String, f64)> {
    let name = command.get_program().to_string_lossy().into_owned();
    let begin = Instant::now();
    let output = command.output().with_context(|| format!("{name} cannot be started"))?;
    let seconds = begin.elapsed().as_secs_f64();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed ({}): {errors}", output.status);
    Ok((String::from_utf8(output.stdout)?, seconds))
}

fn measure(tools: &Tools, runs: usize) -> Result<Series> {
    let mut series = Series::default();
    // One of each that does not count: files are read, memory is found.
    let _ = (tools.ours()?, tools.peer()?);
    let patience = Instant::now() + PATIENCE;
    for number in 0..runs.div_ceil(2) {
        quiet::wait(patience);
        let meter = Meter::start();
        let first = tools.ours()?;
        let peer = [tools.peer()?, tools.peer()?];
        let ours = [first, tools.ours()?];
        series.blocks.push(Block { ours, peer, disturbance: Meter::since(meter.as_ref()) });
        if number % 2 == 1 {
            let meter = Meter::start();
            let ours = [tools.ours()?, tools.ours()?, tools.ours()?, tools.ours()?];
            series.controls.push(Control { ours, disturbance: Meter::since(meter.as_ref()) });
        }
    }
    Ok(series)
}

/// What the numbers belong to: no names of hosts, no paths.
fn machine(cores: &str) -> Result<serde_json::Value> {
    let cpus = fs::read_to_string("/proc/cpuinfo").context("this needs Linux")?;
    let field = |name: &str| {
        let line = cpus.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let first_line = |path: &str| fs::read_to_string(path).map(|t| t.trim().to_owned()).ok();
    let count = cpus.lines().filter(|l| l.starts_with("processor")).count();
    let guest = field("flags").is_some_and(|f| f.split(' ').any(|flag| flag == "hypervisor"));
    let numbers = ["cpu family", "model", "stepping"].map(field);
    let (date, _) = timed(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    let load = first_line("/proc/loadavg").and_then(|l| l.split(' ').next()?.parse::<f64>().ok());
    Ok(json!({
        "cpu": field("model name"),
        "cpu_family_model_stepping": numbers,
        "logical_cpus": count,
        "virtual_machine": guest,
        "kernel": first_line("/proc/sys/kernel/osrelease"),
        "date": date.trim(),
        "load_1_min_before": load,
        "cores": cores,
    }))
}

fn write(path: &Path, value: &serde_json::Value) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let text = serde_json::to_string_pretty(value)? + "\n";
    fs::write(path, text).with_context(|| path.display().to_string())?;
    say(&format!("raw series: {}", path.file_name().unwrap_or_default().to_string_lossy()));
    Ok(())
}

#[allow(clippy::print_stdout, reason = "the comparison is this task's output")]
fn say(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options> {
        parse(Path::new("root"), words.iter().map(ToString::to_string))
    }

    #[test]
    fn options() {
        let default = parsed(&[]).unwrap();
        assert_eq!((default.runs, default.cores.as_str()), (20, "0,1"));
        assert_eq!(parsed(&["--runs", "48", "--cores", "2,5"]).unwrap().runs, 48);
        assert!(parsed(&["--runs", "3"]).is_err(), "too few lines");
        assert!(parsed(&["--cores", "1,1"]).is_err());
        assert!(parsed(&["--runs"]).is_err());
        assert!(parsed(&["--speed", "9"]).is_err());
    }

    #[test]
    fn the_machine_is_described_without_names() {
        let described = machine("0,1").unwrap();
        assert!(described["cpu"].is_string() && described["kernel"].is_string());
        assert!(described["logical_cpus"].as_u64().is_some_and(|n| n >= 1));
    }
}
