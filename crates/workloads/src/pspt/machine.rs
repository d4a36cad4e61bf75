//! The paper's card and its kernel: a pre-production Xeon Phi with 57 cores of four threads, and 3 GB.
//!
//! The paper prints few costs. What it prints is used; the rest is assumed, and said to be.

use isochrone_sim::paging::Spec;
use isochrone_tier::simulated::Costs;

/// Cores of the card (section IV-C).
pub(super) const CORES: usize = 57;
/// Threads of a core.
pub(super) const THREADS: usize = 4;

/// How a number is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Printed in the paper.
    Published,
    /// Found so that one printed number comes out.
    Fitted,
    /// A stand-in.
    Assumed,
}

impl Standing {
    /// The word in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
        }
    }
}

/// A number that the simulation rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// What it is.
    pub name: &'static str,
    /// In the unit.
    pub value: f64,
    /// The unit.
    pub unit: &'static str,
    /// How it is known.
    pub standing: Standing,
    /// From where, or why.
    pub why: &'static str,
}

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

/// All numbers, for the reader.
#[must_use]
pub fn constants(compute: f64) -> Vec<Constant> {
    let (spec, costs) = (spec(), costs(compute));
    let one = |name, value, unit, standing, why| Constant { name, value, unit, standing, why };
    let sum = "assumed share of the 45 000 cycles that section IV-B prints for a fault; the bars of \
               Figure 6 are only in its image";
    let siblings = "assumed; section IV-C says that four threads run slower than two on cores of \
                    their own, so four on one core do less than 2";
    vec![
        one(
            "arithmetic for a page",
            compute,
            "cycles",
            Standing::Fitted,
            "on the cell of Table I with separated tables and 8 cores, 38 %",
        ),
        one("cores", 57.0, "", Standing::Published, "section IV-C"),
        one("threads of a core", 4.0, "", Standing::Published, "section IV-A"),
        one("two threads of a core, of one", spec.throughput[1], "", Standing::Assumed, siblings),
        one("three threads of a core, of one", spec.throughput[2], "", Standing::Assumed, siblings),
        one("four threads of a core, of one", spec.throughput[3], "", Standing::Assumed, siblings),
        one(
            "who waits in the kernel polls",
            f64::from(u8::from(spec.polls)),
            "",
            Standing::Assumed,
            POLLS,
        ),
        one("fault handler, in and out", costs.trap, "cycles", Standing::Assumed, sum),
        one("a turn at the lists", costs.list, "cycles", Standing::Assumed, sum),
        one("of it with the lock held", costs.held, "cycles", Standing::Assumed, sum),
        one("an entry of a page table", costs.entry, "cycles", Standing::Assumed, sum),
        one("a transfer by an engine", spec.setup, "cycles", Standing::Fitted, ENGINE),
        one("of it each page", spec.transfer, "cycles", Standing::Fitted, ENGINE),
        one("a transfer, beside", spec.latency, "cycles", Standing::Assumed, sum),
        one("engines", f64::from(spec.engines), "", Standing::Assumed, ENGINE),
        one("an interrupt request", spec.send, "cycles", Standing::Fitted, SEND),
        one("its way", spec.deliver, "cycles", Standing::Assumed, SEND),
        one("its handler", spec.service, "cycles", Standing::Assumed, SEND),
        one("arithmetic differs by up to", costs.spread, "", Standing::Assumed, "of a page's own"),
    ]
}

const POLLS: &str = "assumed: locks spin, answers to interrupts and the engine's end are looked for (section IV-B: \
                     synchronously in the fault handler, on a thread that has nothing else to run). Chosen after \
                     Table II was seen to miss without it";
const ENGINE: &str = "one engine that moves as much as Table I lets 56 cores have, page by page without \
                      movers and in runs with them (section IV-C: it is stressed there)";
const SEND: &str = "sent one by one under the address space's lock, so that a fault on 32 cores with \
                    one set of tables costs about the 700 000 cycles of section IV-B";
