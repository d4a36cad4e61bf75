//! Runs one part of the battery: its figures appear under their name once they are whole, what it prints is kept, and
//! it is ended where it takes much longer than its share.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use isochrone_host::{SysRoot, machine_state};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::battery::{ATLASES, Part, Places};
use super::record::{Record, Results, State, is_whole};

/// How often a program is asked whether it is over.
const LOOK: Duration = Duration::from_millis(50);
/// Programs keep what they have and end within a second of a signal; then they are killed.
const LAST: Duration = Duration::from_secs(10);
/// Of a share, what a program is told: loading, writing and a last round come beside it.
const TOLD: f64 = 0.8;
/// The least that a program is told.
const LEAST_S: f64 = 5.0;
/// Of a share, what a program may take before it is ended, and seconds beside that.
const MOST: f64 = 1.25;
const MOST_BESIDE: Duration = Duration::from_secs(20);
/// The number of the process that runs.
const RUNNING: &str = "running.pid";
/// Exit codes with which all was done: 4 is that something was found, such as a model that does not hold.
const ENDED_WELL: [i32; 2] = [0, 4];

/// The time for a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    /// Its share.
    pub(super) share: Duration,
    /// What is left for the whole battery.
    pub(super) left: Duration,
}

impl Time {
    fn told_s(self) -> u64 {
        let told = (self.share.as_secs_f64() * TOLD).max(LEAST_S);
        Duration::from_secs_f64(told).as_secs()
    }

    fn most(self) -> Duration {
        (self.share.mul_f64(MOST) + MOST_BESIDE).min(self.left)
    }
}

/// Runs a part with the programs of a folder, and says how that went. Nothing is an error of the battery but a folder
/// of results that cannot be written.
pub(super) fn run(part: &Part, time: Time, programs: &Path, results: &Results) -> Result<Record> {
    let folder = &results.folder;
    let half = folder.join(format!("{}.json.part", part.name));
    let _ = fs::remove_file(&half);
    let atlas = ATLASES.iter().map(|name| folder.join(name)).find(|path| path.exists());
    let words = part.words(&Places {
        out: folder.display().to_string(),
        json: half.display().to_string(),
        atlas: atlas.map(|path| path.display().to_string()),
        budget_s: time.told_s(),
    });
    let program = programs.join(part.program.file());
    let printed = folder.join(format!("{}.log", part.name));
    let log = File::create(&printed)?;
    let begin = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut record = Record {
        name: part.name.to_owned(),
        command: [vec![program.display().to_string()], words.clone()].concat(),
        state: State::Failed,
        code: None,
        why: None,
        seconds: 0.0,
        load: machine_state(&SysRoot::live()).loadavg.map(|load| load[0]),
        started_unix_s: started.as_secs(),
    };
    let child = Command::new(&program)
        .args(&words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn();
    let outcome = child.context("it cannot be started").and_then(|mut child| {
        fs::write(folder.join(RUNNING), child.id().to_string())?;
        let status = wait(&mut child, time.most());
        let _ = fs::remove_file(folder.join(RUNNING));
        status
    });
    record.seconds = begin.elapsed().as_secs_f64();
    match outcome {
        Ok(status) => {
            record.code = status.code();
            record.why = failure(status, &half, &printed);
        }
        Err(error) => record.why = Some(format!("{error:#}")),
    }
    if record.why.is_none() {
        fs::rename(&half, results.json(part.name))?;
        record.state = State::Done;
    }
    Ok(record)
}

/// Why a part is not done, with the last line that it printed; `None` where it is.
fn failure(status: ExitStatus, half: &Path, printed: &Path) -> Option<String> {
    let why = match status.code() {
        Some(code) if ENDED_WELL.contains(&code) && is_whole(half) => return None,
        Some(code) if ENDED_WELL.contains(&code) => "it left no whole figures".to_owned(),
        Some(code) => format!("it ended with {code}"),
        None => "it took too long, or a signal ended it".to_owned(),
    };
    let text = fs::read(printed).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    Some(last.map_or_else(|| why.clone(), |last| format!("{why}: {last}")))
}

/// The program's end; it is asked to end after `most`, and killed where it does not.
fn wait(child: &mut Child, most: Duration) -> Result<ExitStatus> {
    let begin = Instant::now();
    let mut is_asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begin.elapsed() > most && !is_asked {
            is_asked = true;
            kill(pid(child.id())?, Signal::SIGTERM)?;
        }
        if begin.elapsed() > most + LAST {
            child.kill()?;
            return Ok(child.wait()?);
        }
        std::thread::sleep(LOOK);
    }
}

fn pid(number: u32) -> Result<Pid> {
    Ok(Pid::from_raw(i32::try_from(number)?))
}

/// Ends what an earlier run of the battery left running, which would take the time of what is measured now. A process
/// of another program that has the same number by now stays.
pub(super) fn end_left_over(results: &Results) -> Result<Option<String>> {
    let place = results.folder.join(RUNNING);
    let Ok(text) = fs::read_to_string(&place) else { return Ok(None) };
    fs::remove_file(&place)?;
    let Ok(number) = text.trim().parse::<u32>() else { return Ok(None) };
    let exe = fs::read_link(format!("/proc/{number}/exe")).unwrap_or_default();
    let name = exe.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !name.starts_with("isochrone") {
        return Ok(None);
    }
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let begin = Instant::now();
        if kill(pid(number)?, signal).is_err() {
            break;
        }
        while begin.elapsed() < LAST && Path::new(&format!("/proc/{number}")).exists() {
            std::thread::sleep(LOOK);
        }
    }
    Ok(Some(format!("{name} of an earlier run was still running, and was ended")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::battery::PARTS;

    /// Programs that are shells, and a folder for results with a script of the first part's name.
    fn folders(script: &str) -> (tempfile::TempDir, Results) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["isochrone", "isochrone-lab"] {
            std::os::unix::fs::symlink("/bin/sh", folder.path().join(name)).unwrap();
        }
        let results = Results::open(&folder.path().join("results")).unwrap();
        fs::write(results.folder.join(PARTS[0].name), script).unwrap();
        (folder, results)
    }

    /// Runs the first part, whose last word names the file.
    fn first(script: &str, time: Time) -> (Record, Results, tempfile::TempDir) {
        let (folder, mut results) = folders(script);
        let record = run(&PARTS[0], time, folder.path(), &results).unwrap();
        results.keep(record.clone()).unwrap();
        (record, results, folder)
    }

    const LONG: Time = Time { share: Duration::from_secs(60), left: Duration::from_secs(60) };

    #[test]
    fn figures_appear_once_they_are_whole() {
        let (record, results, _folder) = first("echo words; echo '{}' > \"${1#--json=}\"", LONG);
        assert_eq!((record.state, record.code), (State::Done, Some(0)), "{record:?}");
        assert!(results.is_done("machine"));
        let log = fs::read_to_string(results.folder.join("machine.log")).unwrap();
        assert_eq!(log, "words\n");
        let (record, results, _folder) = first("echo '{' > \"${1#--json=}\"", LONG);
        assert_eq!((record.state, record.code), (State::Failed, Some(0)));
        assert!(record.why.is_some_and(|why| why.contains("no whole figures")));
        assert!(!results.json("machine").exists());
    }

    #[test]
    fn a_part_that_fails_or_hangs_is_a_record_and_no_more() {
        let (record, ..) = first("echo '{}' > \"${1#--json=}\"; echo no MPI; exit 1", LONG);
        assert_eq!((record.state, record.code), (State::Failed, Some(1)));
        assert_eq!(record.why.as_deref(), Some("it ended with 1: no MPI"));
        let (record, ..) = first("echo '{}' > \"${1#--json=}\"; exit 4", LONG);
        assert_eq!((record.state, record.code), (State::Done, Some(4)), "found, and done");
        let none = Time { share: Duration::ZERO, left: Duration::ZERO };
        let (record, ..) = first("exec sleep 60", none);
        assert_eq!((record.state, record.code), (State::Failed, None));
    }

    #[test]
    fn what_an_earlier_run_left_is_ended_and_others_are_not() {
        let (folder, results) = folders("");
        let sleeper = folder.path().join("isochrone-sleeper");
        fs::copy("/bin/sleep", &sleeper).unwrap();
        let place = results.folder.join(RUNNING);
        for (program, is_ours) in [(sleeper.as_path(), true), (Path::new("/bin/sleep"), false)] {
            // A copy may still be open for writing in a child of another test that is about to become a program.
            let start = |_| Command::new(program).arg("60").spawn().ok();
            let mut child = (0..1000).find_map(start).unwrap();
            fs::write(&place, child.id().to_string()).unwrap();
            // A child that was not waited for stays in /proc until somebody does.
            let number = child.id();
            let waiter = std::thread::spawn(move || child.wait().unwrap());
            let said = end_left_over(&results).unwrap();
            assert_eq!(said.is_some(), is_ours, "{said:?}");
            assert!(!place.exists());
            if !is_ours {
                kill(pid(number).unwrap(), Signal::SIGKILL).unwrap();
            }
            assert!(!waiter.join().unwrap().success());
        }
        assert_eq!(end_left_over(&results).unwrap(), None);
    }
}
