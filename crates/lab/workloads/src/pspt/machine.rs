//! The paper's card and its kernel, out of the machine file: a pre-production Xeon Phi with 57 cores of four threads,
//! and 3 GB.
//!
//! The paper prints few costs. What it prints is used; the rest is assumed, and said to be.

use isochrone_machine::{Constant, Cost, Machine, Value};
use isochrone_sim::paging::{HandOff, InOrderCore, Spec};
use isochrone_tier::simulated::{Costs, Stuck};

use super::change::Change;
use super::number::whole;

/// Why nothing was simulated. Messages say what to change.
#[derive(Debug, thiserror::Error)]
pub enum PsptError {
    /// The machine file lacks something.
    #[error("machine {name} has no {what}; give the file of the pre-production Xeon Phi")]
    Machine {
        /// The machine.
        name: String,
        /// What it lacks.
        what: String,
    },
    /// A run has no end.
    #[error(transparent)]
    Stuck(#[from] Stuck),
}

/// The card and its kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Card {
    /// How many cores it has.
    pub(super) cores: usize,
    /// Threads of a core.
    pub(super) threads: usize,
    /// The processor.
    pub(super) spec: Spec,
    /// The kernel, without the arithmetic.
    kernel: Costs,
    /// The least that a line to another core is assumed to cost.
    near_line: f64,
}

impl Card {
    /// The card of a machine file.
    pub(super) fn of(machine: &Machine) -> Result<Self, PsptError> {
        let lacks =
            |what: &str| PsptError::Machine { name: machine.name.clone(), what: what.to_owned() };
        let cost = |name: &str| machine.cost(name).and_then(Cost::number).ok_or(lacks(name));
        let spec = Spec {
            core: InOrderCore::of(machine)
                .ok_or(lacks("what two, three and four threads of a core do together"))?,
            siblings: true,
            polls: true,
            send: cost("interrupt request")?,
            deliver: cost("interrupt on its way")?,
            service: cost("interrupt handler")?,
            engines: whole(cost("engines each way")?),
            each_way: true,
            line: cost("line to another core")?,
            hand_off: HandOff::Owners,
            setup: cost("engine, a transfer")?,
            transfer: cost("engine, a page")?,
            latency: cost("a transfer, beside")?,
            translations: whole(cost("entries of a translation buffer")?),
        };
        let kernel = Costs {
            trap: cost("fault handler")?,
            list: cost("a turn at the lists")?,
            held: cost("lists' lock held")?,
            entry: cost("an entry of a page table")?,
            wake: cost("a wake")?,
            compute: 0.0,
            spread: SPREAD,
        };
        let threads = whole(cost("threads per core")?) as usize;
        let line = machine.cost("line to another core").and_then(Cost::sweep);
        let near_line = line.ok_or(lacks("line to another core"))?.0;
        Ok(Self { cores: machine.cores.len(), threads, spec, kernel, near_line })
    }

    /// The same with one thing changed.
    pub(super) const fn with(mut self, change: Change) -> Self {
        let spec = &mut self.spec;
        match change {
            Change::None => {}
            Change::OneEngine => spec.each_way = false,
            Change::FreeHandOff => spec.line = 0.0,
            Change::NearLines => spec.line = self.near_line,
            Change::HalfHandOff => spec.hand_off = HandOff::HalfOwners,
            Change::QueueLock => spec.hand_off = HandOff::OneLine,
            Change::ThreadsByIssue => spec.core = InOrderCore::BY_ISSUE,
            Change::Before => (spec.each_way, spec.line) = (false, 0.0),
        }
        self
    }

    /// What the kernel costs, with so much arithmetic for a page.
    pub(super) const fn costs(&self, compute: f64) -> Costs {
        Costs { compute, ..self.kernel }
    }
}

/// Arithmetic differs by up to this part from page to page.
const SPREAD: f64 = 0.1;

/// All numbers, for the reader: of a plan its window and chunk, and the arithmetic that was fitted.
#[must_use]
pub(super) fn constants(card: &Card, window: u32, chunk: u32, compute: f64) -> Vec<Constant> {
    let (spec, costs) = (&card.spec, card.costs(compute));
    let one = |name, value, unit, standing: fn(f64, &'static str, &'static str) -> Value, why| {
        Constant::new(name, standing(value, unit, why))
    };
    let (published, fitted, assumed) = (Value::published, Value::fitted, Value::assumed);
    let in_sample = Value::in_sample;
    let sum = "assumed share of the 45 000 cycles that section IV-B prints for a fault; the bars of \
               Figure 6 are only in its image";
    let siblings = "assumed; section IV-C says that four threads run slower than two on cores of \
                    their own, so four on one core do less than 2";
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let together = |threads| spec.core.together(threads);
    vec![
        one(
            "arithmetic for a page",
            compute,
            "cycles",
            fitted,
            "on the cell of Table I with separated tables and 8 cores, 38 %",
        ),
        one("cores", count(card.cores), "", published, "section IV-C"),
        one("threads of a core", count(card.threads), "", published, "section IV-A"),
        one("two threads of a core, of one", together(2), "", assumed, siblings),
        one("three threads of a core, of one", together(3), "", assumed, siblings),
        one("four threads of a core, of one", together(4), "", assumed, siblings),
        one("who waits in the kernel polls", f64::from(u8::from(spec.polls)), "", assumed, POLLS),
        one("fault handler, in and out", costs.trap, "cycles", assumed, sum),
        one("a turn at the lists", costs.list, "cycles", assumed, sum),
        one("of it with the lock held", costs.held, "cycles", assumed, sum),
        one("a line to another core", spec.line, "cycles", assumed, LINE),
        one("an entry of a page table", costs.entry, "cycles", assumed, sum),
        one("a transfer by an engine", spec.setup, "cycles", fitted, ENGINE),
        one("of it each page", spec.transfer, "cycles", fitted, ENGINE),
        one("a transfer, beside", spec.latency, "cycles", assumed, sum),
        one("engines of each direction", f64::from(spec.engines), "", assumed, EACH_WAY),
        one("an interrupt request", spec.send, "cycles", fitted, SEND),
        one("its way", spec.deliver, "cycles", assumed, SEND),
        one("its handler", spec.service, "cycles", assumed, SEND),
        one("arithmetic differs by up to", costs.spread, "", assumed, "of a page's own"),
        one("window of a mover", f64::from(window), "pages", in_sample, WINDOW),
        one("of it by one transfer", f64::from(chunk), "pages", assumed, CHUNK),
        one("frames that movers keep free", f64::from(RESERVE), "for each", assumed, RESERVED),
        one("pages evicted by a worker at once", f64::from(BATCH), "", assumed, BATCHED),
        one("pages evicted by a mover at once", f64::from(MOVER_BATCH), "", in_sample, MOVED),
    ]
}

/// Frames that are kept free for each mover.
pub(super) const RESERVE: u32 = 8;
/// Pages that a worker evicts by one call.
pub(super) const BATCH: u32 = 1;
/// The same of a mover.
pub(super) const MOVER_BATCH: u32 = 1;

const WINDOW: &str = "what a fault asks movers for; not in the paper's text. Figure 8's two orders of magnitude are \
                      about this number, so its ratios are no test";
const CHUNK: &str = "not in the paper's text; runs of pages that one transfer moves";
const RESERVED: &str = "not in the paper's text; movers make room before a worker needs it";
const BATCHED: &str = "the paper evicts in the fault handler, for the page that it needs";
const MOVED: &str = "chosen from Table II: in runs of 16 movers would cost 0.6 to 1.5 % where it has 5 to 8 %, so \
                     its rows with movers are in sample";
const POLLS: &str = "assumed: locks spin, answers to interrupts and the engine's end are looked for (section IV-B: \
                     synchronously in the fault handler, on a thread that has nothing else to run). Chosen after \
                     Table II was seen to miss without it";
const ENGINE: &str = "what one engine for both directions needs to move as much as Table I lets 56 cores have, page \
                      by page without movers and in runs with them (section IV-C: it is stressed there); not set \
                      again for an engine each way";
const EACH_WAY: &str = "the paper speaks of engines; its bus carries both directions at once";
const LINE: &str = "who lets go of a lock writes a line that the cores of all who spin have: so much for each of them \
                    (CLa, section 2.3); the paper prints none";
const SEND: &str = "sent one by one under the address space's lock, so that a fault on 32 cores with \
                    one set of tables costs about the 700 000 cycles of section IV-B";
