//! Random words of an area, of which another worker says beforehand that they will be needed: what a program gains that
//! knows its next accesses and tells them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use isochrone_tier::live::{Report, Team, Worker};
use isochrone_tier::pager::Advice;
use isochrone_tier::pages::Event;

use super::area::{config, far};
use super::mapped::{PAGE, digest, fill, place, walk};
use super::request::{Announced, Answer, Request};

/// Where a worker's notes have its time, its faults and what its words add up to.
const NANOSECONDS: usize = 0;
const MISSING: usize = 1;
const DIGEST: usize = 2;

/// Runs it: worker 0 makes the steps, worker 1 is so many ahead of it, or does nothing.
pub(super) fn run(request: &Request, asked: Announced) -> Result<Answer> {
    // A page more, in which the steps that were made are counted.
    let bytes = (asked.pages + 1) * 4096;
    let team = Team::new(config(request, bytes), far(request, bytes)?)?;
    let report = team.run(|worker| part(worker, asked))?;
    report.values().map_err(anyhow::Error::msg)?;
    Ok(answer(&report))
}

fn answer(report: &Report) -> Answer {
    let notes = &report.notes[0];
    let (digest, ns, missing) = (notes[DIGEST], notes[NANOSECONDS], notes[MISSING]);
    Answer { digest, ns, missing, ..Answer::default() }
}

fn part(worker: &mut Worker<'_>, asked: Announced) -> Result<u64, String> {
    let (words, beside) = worker.words().split_at(asked.pages * PAGE);
    let done = beside.first().ok_or("the area is too short")?;
    let trouble = |trouble: isochrone_tier::pages::Trouble| trouble.to_string();
    worker.pin(asked.pages * 4096, 4096).map_err(trouble)?;
    let gone = |gone: isochrone_tier::live::Gone| gone.to_string();
    if worker.index() == 0 {
        fill(words);
    }
    worker.barrier().map_err(gone)?;
    if worker.index() == 0 {
        let (begin, before) = (Instant::now(), worker.counters());
        walk(
            words,
            (0..asked.steps).inspect(|step| done.store(u64::from(*step), Ordering::Relaxed)),
        );
        worker.note(NANOSECONDS, u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        worker.note(MISSING, worker.counters().since(&before).events(Event::Missing));
        worker.note(DIGEST, digest(words));
    } else if asked.ahead > 0 {
        announce(worker, asked, words.len(), done)?;
    }
    worker.barrier().map_err(gone)?;
    Ok(0)
}

/// Says of the page of each step that it will be needed, as soon as the step is near enough, and not any more where it
/// was made.
fn announce(
    worker: &Worker<'_>,
    asked: Announced,
    words: usize,
    done: &AtomicU64,
) -> Result<(), String> {
    for step in 0..asked.steps {
        while u64::from(step) > done.load(Ordering::Relaxed) + u64::from(asked.ahead) {
            std::hint::spin_loop();
        }
        if u64::from(step) > done.load(Ordering::Relaxed) {
            let first = place(step, words) / PAGE * 4096;
            let told = worker.advise(first..first + 4096, Advice::WillNeed);
            told.map_err(|trouble| trouble.to_string())?;
        }
    }
    Ok(())
}
