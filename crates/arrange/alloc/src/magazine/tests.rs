//! Magazines against a model: whatever threads do, no slot is held twice, none is lost, and
//! memory is spent on nearness only within its limit.

use super::*;
use crate::page::{PageCodes, PageState};
use crate::policy::{Mode, Policy};
use crate::rig::{Rig, codes, current_bases};
use crate::tables::FREE;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::vec::Vec;

const PAGE: u64 = 4096;
const PAGES: u32 = 24;

#[derive(Clone, Debug)]
enum Step {
    Take { thread: usize, class: SizeClass, count: usize },
    Put { thread: usize, pick: usize, count: usize },
    PutBack { pick: usize },
    Move { thread: usize, core: u16 },
    Flush { thread: usize },
    Ready { pages: u32 },
    Recode { page: u32, known: bool },
    SetBases { core: u16, other: bool },
    Rebin { class: SizeClass },
}

fn class() -> impl Strategy<Value = SizeClass> {
    prop::sample::select(SizeClass::ALL.to_vec())
}

fn step() -> impl Strategy<Value = Step> {
    let thread = 0..3_usize;
    prop_oneof![
        8 => (thread.clone(), class(), 1..90_usize)
            .prop_map(|(thread, class, count)| Step::Take { thread, class, count }),
        8 => (thread.clone(), any::<usize>(), 1..90_usize)
            .prop_map(|(thread, pick, count)| Step::Put { thread, pick, count }),
        1 => any::<usize>().prop_map(|pick| Step::PutBack { pick }),
        1 => (thread.clone(), 0..4_u16).prop_map(|(thread, core)| Step::Move { thread, core }),
        1 => thread.prop_map(|thread| Step::Flush { thread }),
        2 => (1..6_u32).prop_map(|pages| Step::Ready { pages }),
        2 => (0..PAGES, any::<bool>()).prop_map(|(page, known)| Step::Recode { page, known }),
        1 => (0..2_u16, any::<bool>()).prop_map(|(core, other)| Step::SetBases { core, other }),
        1 => class().prop_map(|class| Step::Rebin { class }),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let modes = [Mode::Aware, Mode::Oblivious, Mode::Adversarial];
    let mode = prop::sample::select(modes.to_vec());
    let waste = prop::sample::select(std::vec![0.0_f32, 0.25, 3.0]);
    (mode, waste, 0..4_u64, any::<u64>(), any::<bool>()).prop_map(
        |(mode, waste, slack, seed, checked)| Policy {
            mode,
            waste,
            slack_bytes: slack * PAGE,
            llc_bytes: 8 * PAGE,
            seed,
            checked,
            ..Policy::default()
        },
    )
}

/// A heap, what is live in it, and three threads.
struct Model<'a> {
    heap: Heap<'a>,
    live: BTreeMap<Slot, SizeClass>,
    threads: [(Magazines, u16); 3],
    ready: u32,
}

impl<'a> Model<'a> {
    fn new(heap: Heap<'a>) -> Self {
        let threads = [0, 1, 2].map(|core| (Magazines::new(), core));
        Self { heap, live: BTreeMap::new(), threads, ready: 0 }
    }

    /// Free slots of a class in bins, counted from the masks alone.
    fn free_in_bins(&self, class: SizeClass) -> u32 {
        let of_class = |page: &u32| self.heap.state(*page) == PageState::Assigned(class);
        let lines = (0..PAGES).filter(of_class).flat_map(|page| page * 64..page * 64 + 64);
        let mask = |line: u32| self.heap.tables.masks[line as usize].load(Relaxed) & FREE;
        lines.map(|line| mask(line).count_ones()).sum()
    }

    fn take(&mut self, thread: usize, class: SizeClass) -> Option<Slot> {
        let before = self.heap.stats().assigned_bytes;
        let free = self.free_in_bins(class);
        let (magazines, core) = &mut self.threads[thread];
        let at_hand = magazines.at_hand(class);
        let slot = magazines.take(&self.heap, *core, class);
        let after = self.heap.stats();
        if after.assigned_bytes > before {
            // What was at hand may have gone to bins only as the thread moved.
            let within = after.assigned_bytes <= self.heap.preference_limit_bytes();
            assert!(within || free == 0 && (at_hand == 0 || after.home_changes > 0));
        }
        let Some(slot) = slot else {
            assert_eq!(self.free_in_bins(class), 0);
            assert_eq!(after.ready_pages, 0);
            return None;
        };
        assert_eq!(self.heap.class_of(slot), Some(class));
        assert!(class.begins_at(slot) && slot.page() < self.ready);
        let end = Slot(slot.0 + class.granules());
        let overlap = self.live.range(..end).next_back();
        assert!(overlap.is_none_or(|(other, class)| other.0 + class.granules() <= slot.0));
        self.live.insert(slot, class);
        Some(slot)
    }

    fn pick(&mut self, pick: usize) -> Option<(Slot, SizeClass)> {
        let place = pick.checked_rem(self.live.len())?;
        let (&slot, &class) = self.live.iter().nth(place)?;
        self.live.remove(&slot);
        Some((slot, class))
    }

    fn put(&mut self, thread: usize, pick: usize) {
        if let Some((slot, class)) = self.pick(pick) {
            let (magazines, core) = &mut self.threads[thread];
            assert_eq!(magazines.put(&self.heap, *core, slot), Ok(class));
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Take { thread, class, count } => {
                for _ in 0..count {
                    self.take(thread, class);
                }
            }
            Step::Put { thread, pick, count } => {
                for more in 0..count {
                    self.put(thread, pick.wrapping_add(more * 7));
                }
            }
            Step::PutBack { pick } => {
                if let Some((slot, class)) = self.pick(pick) {
                    assert_eq!(self.heap.put_back(slot), Ok(class));
                }
            }
            Step::Move { thread, core } => self.threads[thread].1 = core,
            Step::Flush { thread } => self.threads[thread].0.flush(&self.heap),
            Step::Ready { pages } => {
                let end = (self.ready + pages).min(PAGES);
                for page in self.ready..end {
                    assert!(self.heap.page_ready(page, codes(page)));
                }
                self.ready = end;
            }
            Step::Recode { page, known } => {
                let codes = if known { codes(page ^ 1) } else { PageCodes::UNKNOWN };
                assert_eq!(self.heap.recode(page, codes), page < self.ready);
            }
            Step::SetBases { core, other } => {
                self.heap.set_bases(core, &current_bases(core ^ u16::from(other)));
            }
            Step::Rebin { class } => {
                self.heap.rebin_unknown(class, 64);
            }
        }
    }

    /// Everything goes back, and everything is there once.
    fn close(mut self) {
        for (magazines, _) in &mut self.threads {
            magazines.flush(&self.heap);
        }
        let bytes: usize = self.live.values().map(|class| class.bytes()).sum();
        assert_eq!(self.heap.live_bytes(), bytes as u64);
        while !self.live.is_empty() {
            self.put(0, 0);
        }
        self.threads[0].0.flush(&self.heap);
        let stats = self.heap.stats();
        assert_eq!((stats.live_bytes, stats.misuses, stats.pages), (0, 0, self.ready));
        let assigned = u32::try_from(stats.assigned_bytes / PAGE).unwrap();
        assert_eq!(assigned + stats.ready_pages, self.ready);
        drain(&self.heap, self.ready);
    }
}

/// Draws every slot there is; each comes once, and all of a page that has a class.
fn drain(heap: &Heap<'_>, pages: u32) {
    for class in SizeClass::ALL {
        let mut seen: Vec<u32> = Vec::new();
        let mut out = [0; 77];
        loop {
            let drawn = heap.refill(0, class, &mut out).slots;
            seen.extend(&out[..drawn]);
            if drawn == 0 {
                break;
            }
        }
        let of_class = |page: &u32| heap.state(*page) == PageState::Assigned(class);
        let all = (0..pages).filter(of_class).count() * class.slots_per_page();
        assert_eq!(seen.len(), all);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all);
        assert!(seen.iter().all(|&slot| heap.class_of(Slot(slot)) == Some(class)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_threads_do_the_heap_agrees_with_a_model(
        policy in policy(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let rig = Rig::new(PAGES as usize);
        let mut model = Model::new(rig.heap(policy));
        for step in &steps {
            model.step(step);
        }
        model.close();
    }
}

fn generous(mode: Mode) -> Policy {
    Policy { mode, slack_bytes: 1 << 30, ..Policy::default() }
}

#[test]
fn a_thread_gets_back_what_it_freed_last() {
    let rig = Rig::new(4);
    let heap = rig.started(generous(Mode::Aware), 4);
    let mut magazines = Magazines::new();
    let slot = magazines.take(&heap, 0, SizeClass::B64).unwrap();
    magazines.put(&heap, 0, slot).unwrap();
    assert_eq!(magazines.take(&heap, 0, SizeClass::B64), Some(slot));
    assert_eq!((magazines.counts().drawn_slots, magazines.counts().near_slots), (16, 16));
}

#[test]
fn a_new_page_is_used_up_in_the_order_of_addresses() {
    let rig = Rig::new(2);
    let heap = rig.started(generous(Mode::Aware), 2);
    let mut magazines = Magazines::new();
    let slots: Vec<Slot> =
        (0..16).map(|_| magazines.take(&heap, 0, SizeClass::B64).unwrap()).collect();
    assert!(slots.is_sorted() && slots.iter().all(|slot| slot.page() == slots[0].page()));
    let cycles = slots.iter().map(|slot| heap.distance(*slot, 0).llc.unwrap());
    assert!(cycles.into_iter().all(|cycles| cycles <= 34.0), "the nearest quarter of its lines");
    let next = magazines.take(&heap, 0, SizeClass::B64).unwrap();
    assert_ne!(next.page(), slots[0].page());
}

#[test]
fn of_a_page_as_much_is_kept_as_must_be_used_and_the_rest_is_for_others() {
    let rig = Rig::new(64);
    let policy = Policy { slack_bytes: 0, waste: 0.25, ..Policy::default() };
    let heap = rig.started(policy, 64);
    let (mut mine, mut other) = (Magazines::new(), Magazines::new());
    let slots: Vec<Slot> = (0..56).map(|_| mine.take(&heap, 0, SizeClass::B64).unwrap()).collect();
    assert!(slots[..48].iter().all(|slot| slot.page() == slots[0].page()), "{slots:?}");
    // What is far for one core is near for the other.
    let theirs = other.take(&heap, 1, SizeClass::B64).unwrap();
    assert_eq!(theirs.page(), slots[0].page());
    assert!(heap.distance(theirs, 1).llc.unwrap() <= 34.0);
    // A thread that ends gives back what it had not used.
    mine.flush(&heap);
    let live = usize::try_from(heap.live_bytes()).unwrap();
    assert_eq!(live, 56 * 64);
    let free: usize = SizeClass::B64.slots_per_page() * 64 - 56 - 1 - other.at_hand(SizeClass::B64);
    let mut all = [0; 64 * 64];
    let mut drawn = 0;
    while let count @ 1.. = heap.refill(0, SizeClass::B64, &mut all).slots {
        drawn += count;
    }
    assert!(drawn <= free && drawn + 64 >= free, "{drawn} of {free}");
}

#[test]
fn a_far_slot_goes_home_and_a_near_one_is_kept() {
    let rig = Rig::new(4);
    let heap = rig.started(generous(Mode::Aware), 4);
    let (mut mine, mut other) = (Magazines::new(), Magazines::new());
    let near = mine.take(&heap, 0, SizeClass::B64).unwrap();
    let far = other.take(&heap, 1, SizeClass::B64).unwrap();
    let at_hand = mine.at_hand(SizeClass::B64);
    mine.put(&heap, 0, far).unwrap();
    assert_eq!(mine.at_hand(SizeClass::B64), at_hand);
    assert_eq!(mine.counts().foreign_frees, 1);
    mine.put(&heap, 0, near).unwrap();
    assert_eq!(mine.at_hand(SizeClass::B64), at_hand + 1);
    // Far ones are gathered. Then the other core finds them again, without having been told.
    mine.flush(&heap);
    other.flush(&heap);
    let mut again = (0..16).map(|_| other.take(&heap, 1, SizeClass::B64).unwrap());
    assert!(again.any(|slot| slot == far));
}

#[test]
fn what_a_thread_uses_by_turns_stays_at_hand_and_what_it_only_frees_does_not() {
    let rig = Rig::new(64);
    let heap = rig.started(generous(Mode::Aware), 64);
    let (mut mine, mut other) = (Magazines::new(), Magazines::new());
    let take = |from: &mut Magazines| -> Vec<Slot> {
        (0..500).map(|_| from.take(&heap, 0, SizeClass::B64).unwrap()).collect()
    };
    for _ in 0..5 {
        for slot in take(&mut mine) {
            mine.put(&heap, 0, slot).unwrap();
        }
    }
    let drawn = mine.counts().drawn_slots;
    assert!(mine.at_hand(SizeClass::B64) >= 500);
    for slot in take(&mut mine) {
        // It frees none of its own from now on.
        other.put(&heap, 0, slot).unwrap();
    }
    assert_eq!(mine.counts().drawn_slots, drawn);
    assert!(other.at_hand(SizeClass::B64) <= 64);
    mine.flush(&heap);
    other.flush(&heap);
    assert_eq!(heap.live_bytes(), 0);
}

#[test]
fn a_thread_on_another_core_leaves_its_lines_behind() {
    let rig = Rig::new(4);
    let heap = rig.started(generous(Mode::Aware), 4);
    let mut magazines = Magazines::new();
    magazines.take(&heap, 0, SizeClass::B64).unwrap();
    for _ in 0..20 {
        let slot = magazines.take(&heap, 1, SizeClass::B64).unwrap();
        assert!(heap.distance(slot, 1).llc.unwrap() <= 34.0);
    }
    assert_eq!(heap.stats().home_changes, 1);
    magazines.flush(&heap);
    assert_eq!(heap.live_bytes(), 21 * 64);
}

#[test]
fn a_thread_that_moves_takes_along_what_is_near_there_too() {
    let rig = Rig::new(64);
    // A half of the lines is worth keeping for each of the cores, which are opposed but for these.
    let heap = rig.started(Policy { near: 0.75, ..generous(Mode::Aware) }, 64);
    let mut magazines = Magazines::new();
    let slots: Vec<Slot> =
        (0..60).map(|_| magazines.take(&heap, 0, SizeClass::B64).unwrap()).collect();
    for slot in slots {
        magazines.put(&heap, 0, slot).unwrap();
    }
    let (before, drawn) = (magazines.at_hand(SizeClass::B64), magazines.counts().drawn_slots);
    let first = magazines.take(&heap, 1, SizeClass::B64).unwrap();
    let after = magazines.at_hand(SizeClass::B64);
    assert!(after > 0 && after + 1 < before, "{after} of {before}");
    assert_eq!(magazines.counts().drawn_slots, drawn);
    // Back again it finds what it left behind.
    magazines.put(&heap, 0, first).unwrap();
    for _ in 0..before {
        magazines.take(&heap, 0, SizeClass::B64).unwrap();
    }
    assert_eq!(magazines.counts().drawn_slots, drawn);
}

#[test]
fn without_an_order_a_thread_that_moves_keeps_everything() {
    let rig = Rig::new(4);
    let heap = rig.heap(generous(Mode::Aware));
    (0..4).for_each(|page| assert!(heap.page_ready(page, PageCodes::UNKNOWN)));
    let mut magazines = Magazines::new();
    magazines.take(&heap, 0, SizeClass::B64).unwrap();
    let at_hand = magazines.at_hand(SizeClass::B64);
    magazines.take(&heap, 1, SizeClass::B64).unwrap();
    assert_eq!(magazines.at_hand(SizeClass::B64), at_hand - 1);
    // As soon as there is one, it counts.
    (0..2).for_each(|core| heap.set_bases(core, &current_bases(core)));
    magazines.renew(&heap);
    let unknown = magazines.take(&heap, 1, SizeClass::B64).unwrap();
    magazines.put(&heap, 1, unknown).unwrap();
    assert_eq!(magazines.counts().foreign_frees, 1);
}

#[test]
fn a_checking_heap_finds_a_second_free_at_once() {
    let rig = Rig::new(16);
    let heap = rig.started(Policy { checked: true, ..generous(Mode::Aware) }, 16);
    let mut magazines = Magazines::new();
    for class in SizeClass::ALL {
        let slot = magazines.take(&heap, 0, class).unwrap();
        assert_eq!(magazines.put(&heap, 0, slot), Ok(class));
        assert_eq!(magazines.put(&heap, 0, slot), Err(Misuse::DoubleFree));
        assert_eq!(heap.put_back(slot), Err(Misuse::DoubleFree));
        // A slot that was never handed out, but whose page has the class.
        assert_eq!(magazines.put(&heap, 0, Slot(slot.page() * 256)), Err(Misuse::DoubleFree));
    }
    assert_eq!(magazines.put(&heap, 0, Slot(3_000_000)), Err(Misuse::Foreign));
    assert_eq!(heap.stats().misuses, 37);
}

#[test]
fn a_checking_heap_withholds_what_is_live() {
    let rig = Rig::new(1);
    let heap = rig.started(Policy { checked: true, ..generous(Mode::Aware) }, 1);
    let mut magazines = Magazines::new();
    let slot = magazines.take(&heap, 0, SizeClass::B256).unwrap();
    // Damage: a live slot turns up in a bin.
    heap.give_back(SizeClass::B256, &[slot.0]);
    let mut slots = std::vec![slot];
    while let Some(slot) = magazines.take(&heap, 0, SizeClass::B256) {
        slots.push(slot);
    }
    slots.sort_unstable();
    slots.dedup();
    assert_eq!(slots.len(), 16);
    assert_eq!(heap.first_misuse(), Some((Misuse::Overlap, slot)));
}

#[test]
fn threads_share_a_heap_and_lose_nothing() {
    let rig = Rig::new(64);
    let heap = rig.started(Policy { checked: true, ..Policy::default() }, 64);
    let exchange: Vec<std::sync::Mutex<Option<Slot>>> =
        (0..512).map(|_| std::sync::Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4_u16 {
            let (heap, exchange) = (&heap, &exchange);
            scope.spawn(move || churn(heap, exchange, thread));
        }
    });
    let left = exchange.iter().filter_map(|place| place.lock().unwrap().take());
    left.for_each(|slot| assert!(heap.put_back(slot).is_ok()));
    let stats = heap.stats();
    assert_eq!((stats.live_bytes, stats.misuses), (0, 0));
    drain(&heap, 64);
}

/// Takes slots and leaves them for whoever comes by to free, and recodes a page now and then.
fn churn(heap: &Heap<'_>, exchange: &[std::sync::Mutex<Option<Slot>>], thread: u16) {
    let mut magazines = Magazines::new();
    let mut state = u64::from(thread) + 1;
    for round in 0..40_000_u32 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let [place, class, page, ..] = state.to_le_bytes();
        let core = if round % 5000 < 2500 { thread % 2 } else { (thread + 1) % 2 };
        let place = &exchange[usize::from(place) * 2 + usize::from(class >> 7)];
        let class = SizeClass::ALL[usize::from(class) % 5];
        let mine = magazines.take(heap, core, class);
        let found = core::mem::replace(&mut *place.lock().unwrap(), mine);
        if let Some(slot) = found {
            magazines.put(heap, core, slot).unwrap();
        }
        if round % 64 == 0 {
            let page = u32::from(page % 64);
            heap.recode(page, if round % 128 == 0 { PageCodes::UNKNOWN } else { codes(page) });
        }
        if round % 1000 == 0 {
            heap.set_bases(core, &current_bases(thread % 2));
        }
    }
    magazines.flush(heap);
}
