//! The paper's card and its kernel: a pre-production Xeon Phi with 57 cores of four threads, and 3 GB.
//!
//! The paper prints few costs. What it prints is used; the rest is assumed, and said to be.

use isochrone_machine::{Constant, Value};
use isochrone_sim::paging::Spec;
use isochrone_tier::simulated::Costs;

/// Cores of the card (section IV-C).
pub(super) const CORES: usize = 57;
/// Threads of a core.
pub(super) const THREADS: usize = 4;

/// The card.
pub(super) const fn spec() -> Spec {
    Spec {
        throughput: [1.0, 1.35, 1.25, 1.2],
        siblings: true,
        polls: true,
        send: 650.0,
        deliver: 500.0,
        service: 3_500.0,
        engines: 1,
        setup: 900.0,
        transfer: 1_100.0,
        latency: 1_000.0,
        translations: 64,
    }
}

/// The kernel.
pub(super) const fn costs(compute: f64) -> Costs {
    Costs {
        trap: 10_300.0,
        list: 4_000.0,
        held: 1_000.0,
        entry: 8_000.0,
        wake: 1_000.0,
        compute,
        spread: 0.1,
    }
}

/// All numbers, for the reader: of a plan its window and chunk, and the arithmetic that was fitted.
#[must_use]
pub fn constants(window: u32, chunk: u32, compute: f64) -> Vec<Constant> {
    let (spec, costs) = (spec(), costs(compute));
    let one = |name, value, unit, standing: fn(f64, &'static str, &'static str) -> Value, why| {
        Constant::new(name, standing(value, unit, why))
    };
    let (published, fitted, assumed) = (Value::published, Value::fitted, Value::assumed);
    let in_sample = Value::in_sample;
    let sum = "assumed share of the 45 000 cycles that section IV-B prints for a fault; the bars of \
               Figure 6 are only in its image";
    let siblings = "assumed; section IV-C says that four threads run slower than two on cores of \
                    their own, so four on one core do less than 2";
    vec![
        one(
            "arithmetic for a page",
            compute,
            "cycles",
            fitted,
            "on the cell of Table I with separated tables and 8 cores, 38 %",
        ),
        one("cores", 57.0, "", published, "section IV-C"),
        one("threads of a core", 4.0, "", published, "section IV-A"),
        one("two threads of a core, of one", spec.throughput[1], "", assumed, siblings),
        one("three threads of a core, of one", spec.throughput[2], "", assumed, siblings),
        one("four threads of a core, of one", spec.throughput[3], "", assumed, siblings),
        one("who waits in the kernel polls", f64::from(u8::from(spec.polls)), "", assumed, POLLS),
        one("fault handler, in and out", costs.trap, "cycles", assumed, sum),
        one("a turn at the lists", costs.list, "cycles", assumed, sum),
        one("of it with the lock held", costs.held, "cycles", assumed, sum),
        one("an entry of a page table", costs.entry, "cycles", assumed, sum),
        one("a transfer by an engine", spec.setup, "cycles", fitted, ENGINE),
        one("of it each page", spec.transfer, "cycles", fitted, ENGINE),
        one("a transfer, beside", spec.latency, "cycles", assumed, sum),
        one("engines", f64::from(spec.engines), "", assumed, ENGINE),
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
const ENGINE: &str = "one engine that moves as much as Table I lets 56 cores have, page by page without \
                      movers and in runs with them (section IV-C: it is stressed there)";
const SEND: &str = "sent one by one under the address space's lock, so that a fault on 32 cores with \
                    one set of tables costs about the 700 000 cycles of section IV-B";
