//! Progress on standard error while a long run goes on, and the wish to stop it.
//!
//! Silent where standard error is no terminal. The bar is drawn between steps only: a ticker
//! thread would take the core that is being measured.

mod interrupt;
mod last_resort;
mod outlook;
mod overdue;

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use isochrone_probe::watch::Watch;

pub use interrupt::{Bound, Interrupt};
pub use last_resort::LastResort;
pub use outlook::Outlook;

/// A line is drawn anew within a step after so long at the soonest: it takes microseconds of the core that measures.
const REDRAWN: Duration = Duration::from_millis(500);

/// A line of progress.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    interrupt: Interrupt,
    begin: Instant,
    /// When what is under way is to end.
    until: Option<Instant>,
    /// What is under way, in words.
    words: String,
    /// What is known of how long all takes.
    outlook: Outlook,
    drawn: Cell<Instant>,
}

impl Progress {
    /// A run that begins now and ends when `interrupt` is set.
    pub fn new(interrupt: Interrupt) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(
            ProgressStyle::with_template("{spinner} {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        let (begin, outlook) = (Instant::now(), Outlook::default());
        let drawn = Cell::new(begin);
        Self { bar, interrupt, begin, until: None, words: String::new(), outlook, drawn }
    }

    /// What is begun from now on is to end then, or with the run where there is no time.
    pub fn end_at(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    /// When what is under way is to end.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// All begins now, and takes about these seconds, one part after the other.
    pub fn expect(&mut self, parts_s: Vec<f64>) {
        self.begin = Instant::now();
        self.outlook = Outlook::new(parts_s);
    }

    /// The next part begins; the first is under way from the beginning.
    pub fn next_part(&mut self) {
        self.outlook.next_part(self.begin.elapsed().as_secs_f64());
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

    fn draw(&self) {
        let begun_s = self.begin.elapsed().as_secs_f64();
        let known = self.outlook.at(begun_s);
        let known = known.map_or_else(String::new, |seen| format!("{seen}, "));
        self.bar.set_message(format!("{known}{begun_s:.1} s: {}", self.words));
        self.bar.tick();
        self.drawn.set(Instant::now());
    }
}

impl Watch for Progress {
    fn step(&mut self, words: &str) {
        words.clone_into(&mut self.words);
        self.draw();
    }

    fn keep_going(&self) -> bool {
        if !self.bar.is_hidden() && self.drawn.get().elapsed() > REDRAWN {
            self.draw();
        }
        !self.is_interrupted() && !self.is_late()
    }

    fn left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }
}
