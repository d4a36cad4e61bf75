//! The decoder against the one before it, on modelled machines: codes right, stated and actual error, loads
//! a page, wrong bases, processor time without loads.

use super::classifier::Decoding;
use super::modelled::{Modelled, atlas_of};
use super::notes::side;
use super::{Classifier, Event, Plan, Slice, Timing};
use isochrone_atlas::{Atlas, Code};
use isochrone_os::OsError;
use isochrone_os::clock::monotonic_ns;
use isochrone_sim::synthetic::{Event as Happening, SyntheticSpec};
use isochrone_units::{CoreId, Cycles, Level, LineAddr, PageAddr};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::string::String;
use std::vec::Vec;

const PAGES: u64 = 1024;

/// A modelled machine, and the processor time that modelling its loads takes.
struct Metered {
    inner: Modelled,
    loads_ns: u64,
}

impl Timing for Metered {
    fn core(&self) -> CoreId {
        self.inner.core()
    }
    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }
    fn overhead_cycles(&self) -> f32 {
        self.inner.overhead_cycles()
    }
    fn tick_cycles(&self) -> u32 {
        self.inner.tick_cycles()
    }
    fn together(&self, level: Level) -> usize {
        self.inner.together(level)
    }
    fn prepare(&mut self, level: Level, lines: &[LineAddr], until: u64) -> Result<bool, OsError> {
        self.inner.prepare(level, lines, until)
    }
    fn abandon(&mut self) {}
    fn time(
        &mut self,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), OsError> {
        let begin = monotonic_ns();
        let result = self.inner.time(level, lines, out);
        self.loads_ns += monotonic_ns() - begin;
        result
    }
    fn frames(&self, first: PageAddr, out: &mut [Option<u64>]) {
        self.inner.frames(first, out);
    }
}

/// One run: a row for each level.
fn run(kind: usize, seed: u64, window: usize, slice_ns: u64, moves: bool, old: bool) -> String {
    let spec = match kind {
        0 => SyntheticSpec::genoa_like(seed),
        1 => SyntheticSpec::emerald_rapids_like(seed),
        _ => SyntheticSpec::granite_rapids_like(seed),
    };
    let name = spec.name.clone();
    let mut spec = spec.with_pages(PAGES).with_small_pages();
    spec.arena.frames_readable = false;
    let inner = Modelled::new(spec);
    let bytes = atlas_of(&inner.memory, &[0, 1, 2, 3, 4, 5, 6, 7], false);
    let mut machine = Metered { inner, loads_ns: 0 };
    let plan = Plan { pages_max: 1024, seed: 7 };
    let mut found =
        Classifier::with(Atlas::open(&bytes).unwrap(), plan, Decoding { window, engine: !old })
            .expect("tables");
    found.add(&machine, 1024);
    let mut pages: BTreeMap<u64, (Code, Code)> = BTreeMap::new();
    let begin = monotonic_ns();
    // A step for each tenth of a millisecond of the machine's time; seeds move at other ones.
    let mut due: Vec<u64> =
        if moves { (0..3).map(|k| 3 + 29 * k + 3 * seed).collect() } else { Vec::new() };
    due.reverse();
    let first = machine.now_ns();
    let (mut checked, mut waits) = (false, 0_u8);
    let mut ended = false;
    for _ in 0..60_000 {
        let end = found.slice(&mut machine, slice_ns).unwrap();
        while let Some(event) = found.next_event() {
            match event {
                Event::Ready(page, codes) => pages.insert(page.0, (codes.llc, codes.dram)),
                Event::Replaced(page) => pages.remove(&page.0),
            };
        }
        let at = (machine.now_ns() - first) / 100_000;
        let forced = end != Slice::Paused && !due.is_empty();
        if due.last().is_some_and(|d| at >= *d) || forced {
            let step = due.len();
            due.pop();
            let to = [4, 1, 6][step % 3];
            machine.inner.memory.inject(Happening::CoreMoves { core: CoreId(0), to }).unwrap();
            found.ask_check(CoreId(0));
        } else if end != Slice::Paused {
            if checked {
                ended = end == Slice::Idle;
                break;
            }
            // A level that was given up is tried again after some time.
            let lost = Level::ALL.iter().any(|level| found.seats[0].worn[side(*level)].is_none());
            if lost && waits < 4 {
                machine.inner.memory.pass(f64::from(1 << waits) + 0.1);
                waits += 1;
                continue;
            }
            found.check(&mut machine).unwrap();
            checked = true;
        }
    }
    let cpu = monotonic_ns() - begin - machine.loads_ns;
    let worn = found.worn(CoreId(0));
    let truth = machine.inner.memory.truth_wears(CoreId(0)).unwrap();
    let stats = found.stats();
    let mut rows = String::new();
    for level in Level::ALL {
        let place = side(level);
        let (mut right, mut misfit, mut known) = (0_u32, 0.0, 0_u32);
        let table = if level == Level::Llc { worn.llc } else { worn.dram };
        for (page, codes) in &pages {
            let code = if level == Level::Llc { codes.0 } else { codes.1 };
            let Some(table) = table.filter(|_| code != Code::UNKNOWN) else {
                misfit += 1.0;
                continue;
            };
            let off = machine.inner.misfit(level, PageAddr(*page), code, &table);
            known += 1;
            misfit += off.min(4.0);
            right += u32::from(off < 0.1);
        }
        let own = found.sides[place].as_ref().unwrap();
        let seat = found.seats[0].worn[place];
        let wrong = seat.is_some_and(|base| {
            base != truth && !own.model.are_twins(own.model.base(base), own.model.base(truth))
        });
        let _ = writeln!(
            rows,
            "{name},{level},{seed},{window},{slice_ns},{moves},{},{},{known},{right},{:.5},{:.5},{},{},{},{cpu}",
            if old { "old" } else { "new" },
            u8::from(ended),
            1.0 - misfit / f64::from(u32::try_from(PAGES).unwrap()),
            own.stream.stated(),
            stats.loads[place],
            u8::from(wrong),
            stats.moves,
        );
    }
    rows
}

#[test]
#[ignore = "many minutes: the table of docs/results/decoder.md"]
fn a_table_of_both_decoders() {
    let seeds: u64 = std::env::var("SEEDS").map_or(20, |s| s.parse().unwrap());
    let windows = std::env::var("WINDOWS").unwrap_or_else(|_| "64 512 1024".into());
    let slices = std::env::var("SLICES").unwrap_or_else(|_| "50000 200000 1000000000000".into());
    let path = std::env::var("OUT").unwrap();
    let path = path.as_str();
    let mut table = String::from(
        "machine,level,seed,window,slice_ns,moves,arm,ended,known,right,explained,stated,loads,wrong_base,\
         base_changes,cpu_ns\n",
    );
    for kind in std::env::var("KINDS").map_or(0..2, |k| {
        let k: usize = k.parse().unwrap();
        k..k + 1
    }) {
        let seed0: u64 = std::env::var("SEED0").map_or(1, |s| s.parse().unwrap());
        for seed in seed0..=seeds {
            for window in windows.split(' ').map(|w| w.parse().unwrap()) {
                for slice in slices.split(' ').map(|w| w.parse().unwrap()) {
                    for moves in std::env::var("MOVES").map_or(std::vec![false, true], |m| std::vec![m == "1"]) {
                        for old in [false, true] {
                            table += &run(kind, seed, window, slice, moves, old);
                        }
                    }
                }
            }
        }
        std::fs::write(path, &table).unwrap();
    }
}
