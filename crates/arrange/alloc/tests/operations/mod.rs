//! Bytes read as operations on a heap, with a model beside it that knows what is live. Whatever
//! the operations are, no slot is held twice, none is lost, and misuse is refused without harm.
//!
//! The fuzz target and the test that replays its corpus share this file; it uses nothing but the
//! public interface.

use isochrone_alloc::{
    Bins, CoreTable, CurrentBases, Heap, Magazines, Mode, Order, PageCodes, PageState, Policy,
    Shared, SizeClass, Slot, Tables, UnitLines, oracle_rank,
};
use isochrone_atlas::{Code, PatternTable, Period};
use std::collections::BTreeMap;

const PAGES: u32 = 16;
const LINES: usize = PAGES as usize * 64;
const PAGE: u64 = 4096;
const THREADS: usize = 3;

/// What an input did, for a test that wants to know that a corpus is worth something.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    /// Slots taken.
    pub(crate) taken: u32,
    /// Slots freed, by whomever.
    pub(crate) freed: u32,
    /// Draws that found the heap empty.
    pub(crate) refused: u32,
    /// Frees that no correct program makes.
    pub(crate) misused: u32,
    /// Pages whose codes changed while the heap had them.
    pub(crate) recoded: u32,
    /// Slots taken from near bins.
    pub(crate) near: u64,
}

/// Bytes, and zeros after the last.
struct Input<'b>(&'b [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit.max(1)
    }

    fn policy(&mut self) -> Policy {
        let modes = [Mode::Aware, Mode::Oblivious, Mode::Adversarial, Mode::Oracle];
        let flags = self.byte();
        Policy {
            mode: modes[usize::from(flags & 3)],
            checked: flags & 4 != 0,
            waste: [0.0, 0.25, 3.0, f32::NAN][usize::from(flags >> 3 & 3)],
            near: [0.125, 0.25, 0.5, f32::NAN][usize::from(flags >> 5 & 3)],
            slack_bytes: u64::from(self.byte() % 32) * PAGE,
            // Down to nothing, and never more than the heap.
            llc_bytes: u64::from(self.byte() % 17) * PAGE,
            l2_bytes: PAGE,
            tlb_bytes: 0,
            seed: u64::from(self.byte()),
        }
    }
}

/// Eight distances in the cache and four classes in memory; cores with odd places are opposed.
fn bases(core: u16) -> [PatternTable; 2] {
    let eight = [32.0, 44.0, 36.0, 40.0, 34.0, 42.0, 38.0, 46.0_f32];
    let near =
        |cycles: f32, mean: f32| if core.is_multiple_of(2) { cycles } else { 2.0 * mean - cycles };
    let llc: Vec<f32> = (0..64).map(|line| near(eight[line % 8], 39.0)).collect();
    let dram = [337.0, 349.0, 361.0, 373.0].map(|cycles| [near(cycles, 355.0); 64]);
    let table = |patterns: &[&[f32]]| {
        PatternTable::new(Period::Lines64, patterns.iter().copied()).expect("64 lines a class")
    };
    [table(&[&llc]), table(&dram.each_ref().map(<[f32; 64]>::as_slice))]
}

fn current_bases(choice: u8) -> CurrentBases {
    let [llc, dram] = bases(u16::from(choice));
    match choice / 2 % 4 {
        0 | 1 => CurrentBases::of(Some(&llc), Some(&dram)),
        2 => CurrentBases::of(Some(&llc), None),
        _ => CurrentBases::default(),
    }
}

fn zeroed<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

/// A heap, its threads, and what is live.
struct Model<'a> {
    heap: Heap<'a>,
    threads: [(Magazines, u16); THREADS],
    live: BTreeMap<Slot, SizeClass>,
    done: Done,
}

impl Model<'_> {
    fn take(&mut self, thread: usize, class: SizeClass, direct: bool) {
        let (magazines, core) = &mut self.threads[thread];
        let slot = if direct {
            self.heap.take_for(*core, class)
        } else {
            magazines.take(&self.heap, *core, class)
        };
        let Some(slot) = slot else {
            assert_eq!(self.heap.stats().ready_pages, 0, "refused while pages are ready");
            self.done.refused += 1;
            return;
        };
        assert_eq!(self.heap.class_of(slot), Some(class));
        assert!(class.begins_at(slot) && slot.page() < PAGES);
        let end = Slot(slot.0 + class.granules());
        let other = self.live.range(..end).next_back();
        assert!(other.is_none_or(|(other, class)| other.0 + class.granules() <= slot.0));
        self.live.insert(slot, class);
        self.done.taken += 1;
    }

    fn free(&mut self, thread: usize, pick: usize, direct: bool) {
        let Some(place) = pick.checked_rem(self.live.len()) else { return };
        let Some((&slot, &class)) = self.live.iter().nth(place) else { return };
        self.live.remove(&slot);
        let (magazines, core) = &mut self.threads[thread];
        let freed =
            if direct { self.heap.put_back(slot) } else { magazines.put(&self.heap, *core, slot) };
        assert_eq!(freed, Ok(class));
        self.done.freed += 1;
    }

    /// Frees what is no slot at all, or begins none: refused whatever the policy. A slot that is
    /// free is refused where that is checked.
    fn misuse(&mut self, thread: usize, slot: Slot) {
        let class = self.heap.class_of(slot);
        let begins = class.is_some_and(|class| class.begins_at(slot));
        let checked = self.heap.policy().checked && !self.live.contains_key(&slot);
        if begins && !checked {
            return;
        }
        let before = self.heap.stats().misuses;
        let (magazines, core) = &mut self.threads[thread];
        assert!(magazines.put(&self.heap, *core, slot).is_err());
        assert!(self.heap.put_back(slot).is_err());
        assert_eq!(self.heap.stats().misuses, before + 2);
        assert!(self.heap.first_misuse().is_some());
        self.done.misused += 2;
    }

    fn page(&mut self, page: u32, how: u8, code: u8) {
        let code = u16::from(code);
        let codes = PageCodes { llc: Code(code & 63), dram: Code(code) };
        let half = PageCodes { dram: Code::UNKNOWN, ..codes };
        let known = [codes, half, PageCodes::UNKNOWN][usize::from(how % 3)];
        let absent = self.heap.state(page) == PageState::Absent;
        let done = match how / 3 % 3 {
            0 if self.heap.policy().mode == Mode::Oracle => {
                let rank = |line: usize| u8::try_from(line / 4).unwrap_or(0);
                let ranks = core::array::from_fn(|line| oracle_rank(rank(line), 15 - rank(line)));
                self.heap.page_measured(page, known, &ranks)
            }
            0 => self.heap.page_ready(page, known),
            1 => self.heap.recode(page, known),
            _ => self.heap.demote(page),
        };
        let joins = (how / 3).is_multiple_of(3);
        assert_eq!(done, page < PAGES && absent == joins);
        self.done.recoded += u32::from(done && !joins);
    }

    fn order(&self, core: u16, choice: u8) {
        if choice & 0x80 != 0 {
            self.heap.reorder();
        } else {
            self.heap.set_bases(core, &current_bases(choice));
        }
        for unit in UnitLines::ALL {
            if self.heap.policy().mode == Mode::Oracle {
                let (side, near) = (usize::from(core % 2), self.heap.policy().near);
                let population = self.heap.population(unit);
                self.heap.set_order(core, &Order::oracle(unit, side, near, Some(&population)));
            }
            let near = self.heap.near_share(core, unit);
            assert!(near.is_none_or(|near| (0.0..=1.001).contains(&near)), "{near:?}");
            let prediction = self.heap.predict(core, unit, u64::from(choice) << 12);
            let sound = |cycles: f32| cycles.is_finite() && cycles > 0.0;
            assert!(prediction.is_none_or(|p| sound(p.cycles) && sound(p.oblivious_cycles)));
        }
    }

    fn ask(&self, slot: Slot, core: u16) {
        let distance = self.heap.distance(slot, core);
        assert!(
            distance.llc.is_none_or(f32::is_finite) && distance.dram.is_none_or(f32::is_finite)
        );
        assert!(self.heap.rank(slot, core).is_none_or(|rank| (0.0..=1.0).contains(&rank)));
        assert!(self.heap.survey(core).taken_bytes <= u64::from(PAGES) * PAGE);
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let operation = input.byte();
        let thread = usize::from(operation >> 4) % THREADS;
        match operation & 15 {
            direct @ 0..=4 => {
                let class = SizeClass::ALL[input.below(SizeClass::COUNT)];
                for _ in 0..=input.below(90) {
                    self.take(thread, class, direct == 4);
                }
            }
            direct @ 5..=8 => {
                let pick = input.below(256);
                for more in 0..=input.below(90) {
                    self.free(thread, pick + more * 7, direct == 8);
                }
            }
            9 => self.threads[thread].1 = u16::from(input.byte() % 4),
            10 => self.threads[thread].0.flush(&self.heap),
            11 => self.order(u16::from(operation >> 6), input.byte()),
            12 => {
                self.heap.rebin_unknown(SizeClass::ALL[input.below(SizeClass::COUNT)], 64);
            }
            13 => {
                let slot = u32::from(input.byte()) << 8 | u32::from(input.byte());
                self.misuse(thread, Slot(slot * 3));
                self.ask(Slot(slot), u16::from(operation >> 6));
            }
            _ => {
                let page = u32::from(input.byte() % 18);
                let (how, code) = (input.byte(), input.byte());
                self.page(page, how, code);
            }
        }
    }

    /// Everything goes back, and everything is there once.
    fn close(mut self) -> Done {
        self.threads.iter_mut().for_each(|(magazines, _)| magazines.flush(&self.heap));
        let bytes: usize = self.live.values().map(|class| class.bytes()).sum();
        assert_eq!(self.heap.live_bytes(), bytes as u64);
        while !self.live.is_empty() {
            self.free(0, 0, false);
        }
        self.threads[0].0.flush(&self.heap);
        let stats = self.heap.stats();
        assert_eq!((stats.live_bytes, stats.misuses), (0, u64::from(self.done.misused)));
        assert_eq!(
            stats.assigned_bytes / PAGE + u64::from(stats.ready_pages),
            u64::from(stats.pages)
        );
        for class in SizeClass::ALL {
            self.drain(class);
        }
        self.done.near = stats.near_slots;
        self.done
    }

    /// Draws every slot of a class that is free: all of its pages, each once.
    fn drain(&self, class: SizeClass) {
        let assigned = |page: &u32| self.heap.state(*page) == PageState::Assigned(class);
        let mut seen: Vec<u32> = Vec::new();
        let mut out = [0; 61];
        loop {
            let drawn = self.heap.refill(0, class, &mut out).slots;
            if drawn == 0 {
                break;
            }
            seen.extend(&out[..drawn]);
        }
        assert_eq!(seen.len(), (0..PAGES).filter(assigned).count() * class.slots_per_page());
        seen.sort_unstable();
        assert!(seen.windows(2).all(|pair| pair[0] != pair[1]));
    }
}

/// Runs what the bytes say.
///
/// # Panics
/// If heap and model disagree.
pub(crate) fn run(bytes: &[u8]) -> Done {
    let mut input = Input(bytes);
    let policy = input.policy();
    let both = |level: usize| (0..2).map(move |core| bases(core)[level].clone());
    let bins = Bins::new(both(0), both(1));
    let (pages, next) = (zeroed(PAGES as usize), zeroed(LINES));
    let (masks, owners, ranks) = (zeroed(LINES), zeroed(LINES), zeroed(LINES));
    // A thread may run on a core that has no table.
    let (cores, shared) = ([CoreTable::default(), CoreTable::default()], Shared::default());
    let tables = Tables {
        pages: &pages,
        next: &next,
        masks: &masks,
        owners: &owners,
        ranks: &ranks,
        cores: &cores,
        shared: &shared,
    };
    let threads = [0, 1, 2].map(|core| (Magazines::new(), core));
    let heap = Heap::new(tables, &bins, policy);
    let mut model = Model { heap, threads, live: BTreeMap::new(), done: Done::default() };
    while !input.0.is_empty() {
        model.step(&mut input);
    }
    model.close()
}
