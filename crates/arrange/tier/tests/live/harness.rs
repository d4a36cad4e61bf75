//! Cases in processes of one thread, which the usual harness has not; what is printed has its form.

use std::time::{Duration, Instant};

use isochrone_os::process::{End, Side, end, fork, signal, wait};

/// A case: its name, what it does, and whether it is left out unless asked for.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: fn(),
    pub(crate) ignored: Option<&'static str>,
}

pub(crate) const fn case(name: &'static str, run: fn()) -> Case {
    Case { name, run, ignored: None }
}

/// The longest that a case may take: then it hangs. On an emulated machine beside other work some take two minutes, on
/// any other one seconds. Those left out have more time.
const LIMIT: Duration = Duration::from_secs(400);
const LONG_LIMIT: Duration = Duration::from_secs(3600);

/// Runs the cases that the arguments name, and ends.
pub(crate) fn run(cases: &[&[Case]]) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let skipped =
        |name: &str| arguments.iter().any(|word| word.strip_prefix("--skip=") == Some(name));
    let wanted = |name: &str| {
        !skipped(name) && (filters.is_empty() || filters.iter().any(|f| name.contains(*f)))
    };
    let chosen: Vec<&Case> =
        cases.iter().copied().flatten().filter(|case| wanted(case.name)).collect();
    if asked("--list") {
        chosen.iter().for_each(|case| println!("{}: test", case.name));
        return;
    }
    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut failed, mut ignored) = (0, 0, 0);
    let begin = Instant::now();
    for case in chosen {
        let left_out = case.ignored.is_some() && !asked("--ignored") && !asked("--include-ignored");
        if left_out || (asked("--ignored") && case.ignored.is_none()) {
            println!("test {} ... ignored, {}", case.name, case.ignored.unwrap_or(""));
            ignored += 1;
            continue;
        }
        let begin = Instant::now();
        let ok = passes(case);
        let seconds = begin.elapsed().as_secs_f64();
        println!("test {} ... {} ({seconds:.1} s)", case.name, if ok { "ok" } else { "FAILED" });
        if ok { passed += 1 } else { failed += 1 }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; \
         0 filtered out; finished in {:.2}s\n",
        begin.elapsed().as_secs_f64()
    );
    if failed > 0 {
        end(101);
    }
}

/// Runs a case in a child, which must end by itself and well.
fn passes(case: &Case) -> bool {
    let child = match fork().expect("a process of one thread") {
        Side::Child => {
            let well = std::panic::catch_unwind(case.run).is_ok();
            end(if well { 0 } else { 1 });
        }
        Side::Parent(child) => child,
    };
    let begin = Instant::now();
    let limit = if case.ignored.is_some() { LONG_LIMIT } else { LIMIT };
    loop {
        match wait(child, false).expect("a child") {
            Some(how) => return how == End::Code(0),
            None if begin.elapsed() > limit => {
                println!("{} hangs", case.name);
                let _ = signal(child, 9);
                let _ = wait(child, true);
                return false;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}
