//! Progress on standard error while a long run goes on, and the wish to stop it.
//!
//! Silent where standard error is no terminal. The bar is drawn between steps only: a ticker
//! thread would take the core that is being measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use isochrone_probe::watch::Watch;

/// Set by Ctrl-C and by termination; the run then ends with what it has.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes over the signals. A second one ends the program at once.
    pub fn install() -> Self {
        let interrupt = Self::default();
        let flag = Arc::clone(&interrupt.0);
        // Where signals cannot be taken over, they do what they always did.
        let _ = ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::abort();
            }
        });
        interrupt
    }

    /// Whether the user wants the run to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A line of progress.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    interrupt: Interrupt,
    begin: Instant,
    /// When what is under way is to end.
    until: Option<Instant>,
}

impl Progress {
    /// A run that begins now and ends when `interrupt` is set.
    pub fn new(interrupt: Interrupt) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(
            ProgressStyle::with_template("{spinner} {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self { bar, interrupt, begin: Instant::now(), until: None }
    }

    /// What is begun from now on is to end then, or with the run where there is no time.
    pub fn end_at(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    /// Whether the time of what is under way is over.
    pub fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Whether the user wants the run to end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn step(&mut self, words: &str) {
        self.bar.set_message(format!("{:5.1} s  {words}", self.begin.elapsed().as_secs_f64()));
        self.bar.tick();
    }

    fn keep_going(&self) -> bool {
        !self.is_interrupted() && !self.is_late()
    }
}
