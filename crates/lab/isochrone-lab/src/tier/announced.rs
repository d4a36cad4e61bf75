//! Random words of an area, of which another worker says beforehand that they will be needed: what a program gains that
//! knows its next accesses and tells them.

use std::sync::atomic::{AtomicU32, Ordering};
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
    let bytes = asked.pages * 4096;
    let team = Team::new(config(request, bytes), far(request, bytes)?)?;
    // Both are threads of this process.
    let done = AtomicU32::new(0);
    let report = team.run(|worker| part(worker, asked, &done))?;
    report.values().map_err(anyhow::Error::msg)?;
    Ok(answer(&report))
}

fn answer(report: &Report) -> Answer {
    let notes = &report.notes[0];
    let (digest, ns, missing) = (notes[DIGEST], notes[NANOSECONDS], notes[MISSING]);
    Answer { digest, ns, missing, ..Answer::default() }
}

fn part(worker: &mut Worker<'_>, asked: Announced, done: &AtomicU32) -> Result<u64, String> {
    let words = &worker.words()[..asked.pages * PAGE];
    let gone = |gone: isochrone_tier::live::Gone| gone.to_string();
    if worker.index() == 0 {
        fill(words);
    }
    worker.barrier().map_err(gone)?;
    if worker.index() == 0 {
        let (begin, before) = (Instant::now(), worker.counters());
        walk(words, (0..asked.steps).inspect(|step| done.store(*step, Ordering::Relaxed)));
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
    done: &AtomicU32,
) -> Result<(), String> {
    for step in 0..asked.steps {
        while step > done.load(Ordering::Relaxed) + asked.ahead {
            std::hint::spin_loop();
        }
        if step > done.load(Ordering::Relaxed) {
            let first = place(step, words) / PAGE * 4096;
            let told = worker.advise(first..first + 4096, Advice::WillNeed);
            told.map_err(|trouble| trouble.to_string())?;
        }
    }
    Ok(())
}
