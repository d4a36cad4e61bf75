//! Schedules of task programs in files: recorded by `--record`, followed with `--replay`, by live and by simulated
//! runs alike.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use isochrone_report::json::{self, Format};
use isochrone_tasks::{Came, Schedule, Turn, Wait};
use isochrone_units::{Reading, RegionId};
use serde::{Deserialize, Serialize};

use isochrone_console::output::read_text;

/// What the first field of a file says.
const FORMAT: &str = Format::Schedule.name();
/// The one that is written and read.
const VERSION: u32 = Format::Schedule.version();

/// A hundred times the largest: 288 workers at the paper's sizes.
const BYTES_MAX: u64 = 1 << 30;

/// A file.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct File {
    /// Written in front of all others.
    #[serde(skip_serializing)]
    format: String,
    /// `format_version` by its older name.
    version: u32,
    /// Measured or simulated.
    reading: Reading,
    /// Which program, in words.
    program: String,
    workers: u32,
    /// Worker, ns at which it began, how many began before, and how the worker came by it: 0 from its own queue, 1 as
    /// successor of the task before, 2 and more from the queue of region 0 and so on.
    tasks: Vec<(u32, u64, u32, u32)>,
    /// The program's waits: how many tasks its own worker had begun before, and the ns at which it went on.
    waits: Vec<(u32, u64)>,
}

/// The file of a schedule of this program.
pub(crate) fn text(program: &str, schedule: &Schedule) -> Result<String> {
    let came = |came: Came| match came {
        Came::Queued => 0,
        Came::Successor => 1,
        Came::Stolen(RegionId(region)) => 2 + u32::from(region),
    };
    let turns = schedule.tasks.iter();
    let file = File {
        format: FORMAT.to_owned(),
        version: VERSION,
        reading: schedule.reading,
        program: program.to_owned(),
        workers: schedule.workers,
        tasks: turns
            .map(|turn| (turn.worker, turn.start_ns, turn.order, came(turn.came)))
            .collect(),
        waits: schedule.waits.iter().map(|wait| (wait.own, wait.resumed_ns)).collect(),
    };
    Ok(json::line(Format::Schedule, &file)? + "\n")
}

/// Reads a schedule, and of which program it is.
pub(crate) fn read(path: &Path) -> Result<(String, Schedule)> {
    let text = read_text(path, BYTES_MAX)?;
    parse(&text)
        .with_context(|| format!("{} is no schedule; make one with --record {0}", path.display()))
}

fn parse(text: &str) -> Result<(String, Schedule)> {
    let file: File = serde_json::from_str(text)?;
    ensure!(file.format == FORMAT, "its format is {:?}, not {FORMAT:?}", file.format);
    ensure!(file.version == VERSION, "it is of version {}, not {VERSION}", file.version);
    let reading = file.reading;
    let of_a_run = matches!(reading, Reading::Measured | Reading::Simulated);
    ensure!(of_a_run, "no run has the reading {:?}", reading.as_str());
    let turn = |(worker, start_ns, order, came): (u32, u64, u32, u32)| {
        let came = match came {
            0 => Came::Queued,
            1 => Came::Successor,
            more => Came::Stolen(RegionId(u16::try_from(more - 2)?)),
        };
        ensure!(worker < file.workers, "worker {worker} is not one of {}", file.workers);
        Ok(Turn { worker, start_ns, order, came })
    };
    let tasks = file.tasks.iter().copied().map(turn).collect::<Result<Vec<Turn>>>()?;
    let waits =
        file.waits.iter().map(|(own, resumed_ns)| Wait { own: *own, resumed_ns: *resumed_ns });
    let schedule = Schedule { reading, workers: file.workers, tasks, waits: waits.collect() };
    Ok((file.program, schedule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_as_it_was_written() {
        let came = [Came::Queued, Came::Successor, Came::Stolen(RegionId(7))];
        let turns = (0..).zip(came);
        let schedule = Schedule {
            reading: Reading::Simulated,
            workers: 3,
            tasks: turns
                .map(|(at, came)| Turn { worker: at, start_ns: 9 << 40, order: at, came })
                .collect(),
            waits: vec![Wait { own: 1, resumed_ns: u64::MAX }],
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("schedule.json");
        std::fs::write(&path, text("cholesky", &schedule).unwrap()).unwrap();
        assert_eq!(read(&path).unwrap(), ("cholesky".to_owned(), schedule));
    }

    #[test]
    fn what_is_no_schedule_is_refused_with_the_reason() {
        let whole = r#"{"format":"isochrone-schedule","version":1,"reading":"measured","program":"x",
                        "workers":2,"tasks":[[1,5,0,0]],"waits":[]}"#;
        assert_eq!(parse(whole).unwrap().1.tasks.len(), 1);
        for (from, to, says) in [
            ("isochrone-schedule", "trace", "not \"isochrone-schedule\""),
            ("\"version\":1", "\"version\":9", "version 9"),
            ("measured", "predicted", "no run has the reading \"predicted\""),
            ("measured", "guessed", "unknown variant `guessed`"),
            ("[1,5,0,0]", "[2,5,0,0]", "worker 2"),
            ("\"waits\":[]", "\"waits\":3", "invalid type"),
        ] {
            let refused = format!("{:#}", parse(&whole.replace(from, to)).unwrap_err());
            assert!(refused.contains(says), "{refused}");
        }
    }
}
