//! One map of a machine at a time, and what is said before it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{folder, isochrone, machine, run};

/// The least that measures something on one core.
const LITTLE: [&str; 7] = ["map", "--quick", "--only", "region", "--buffer", "4M", "--memory=4M"];

/// Takes the turn of this machine, as a map does.
fn turn() -> File {
    let folder = File::open("/sys/devices/system/cpu").expect("Linux has it");
    folder.lock().expect("it can be locked");
    folder
}

#[test]
fn who_comes_second_is_told_and_refuses_where_that_is_asked_for() {
    let folder = folder("second");
    let _machine = machine();
    let _turn = turn();
    let mut args = LITTLE.to_vec();
    args.push("--no-wait");
    let (output, out, err) = run(&folder, &args);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("measures this machine now") && err.contains("--no-wait"), "{err}");
    assert!(err.contains(&format!("process {}", std::process::id())), "{err}");
    assert!(out.is_empty() && std::fs::read_dir(&folder).expect("a folder").next().is_none());
}

#[test]
fn who_waits_goes_on_afterwards_or_ends_when_it_is_asked_to() {
    let folder = folder("waits");
    let _machine = machine();
    for is_stopped in [true, false] {
        let turn = turn();
        let mut child = isochrone(&folder)
            .args(LITTLE)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut line = || lines.next().and_then(Result::ok).unwrap_or_default();
        assert!(line().contains("waiting for its end"));
        if is_stopped {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("an id");
            kill_process(pid, Signal::INT).expect("it is there");
            assert!(line().contains("interrupted while waiting"));
            assert_eq!(child.wait().expect("it ends").code(), Some(1));
            continue;
        }
        drop(turn);
        // What is measured, how long that takes, and where it goes come before it is measured.
        let plan = [line(), line(), line()];
        assert!(plan[0].contains("measuring") && plan[0].contains("4 MiB"), "{plan:?}");
        assert!(plan[1].contains("about") && plan[1].contains("region latency"), "{plan:?}");
        assert!(plan[2].contains("isochrone.atlas") && plan[2].contains("isochrone.html"));
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
}
