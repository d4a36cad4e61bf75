//! What is known of levels, cores and pages: the current base of each core, and what was decoded in it.
//!
//! It is told what looks and decoding have found, and keeps one consistent with the other: where a base
//! is lost, what was decoded in it is decoded again. It times nothing, and decides nothing about a base.

use super::answers::{Identity, Plan, Stats};
use super::ledger::Ledger;
use super::level::LevelModel;
use super::notes::{Queue, block_of, side};
use super::number::page;
use super::stream::{Decoded, OTHERS, Stream};
use super::timing::Timing;
use crate::CurrentBases;
use isochrone_atlas::{Atlas, Code};
use isochrone_os::OsError;
use isochrone_os::boxed::Boxed;
use isochrone_os::table::Table;
use isochrone_units::{CoreId, Level, PageAddr};

/// Decoding cores at most.
const DECODING_CORES: usize = 4;
/// Time after which a level that was given up is tried once more; twice as long each time.
const RETRY_NS: u64 = 1_000_000_000;
/// Times that this time doubles at most.
const DOUBLINGS: u32 = 6;
/// Pages that are doubted together, of all of them: a few microseconds.
const DOUBTED_TOGETHER: u32 = 128;

/// One core, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) core: CoreId,
    /// Its current bases, by level.
    pub(super) current: [Option<u16>; 2],
    /// Whether known pages said so.
    pub(super) proven: [bool; 2],
    /// What the last inquiry found.
    pub(super) found: [Option<Identity>; 2],
    /// No inquiry before this time.
    pub(super) ask_at_ns: [u64; 2],
}

/// One level, as far as it follows the pattern.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) model: LevelModel,
    pub(super) stream: Stream,
    /// Pages decoded since the base was confirmed last.
    pub(super) fresh: Queue,
    /// Times that pages were decoded in vain since a base was confirmed last.
    pub(super) failures: u32,
    /// No base fits, and no page is known from which to measure one: the level is left alone
    /// until this time.
    given_up_until: Option<u64>,
    /// Times that it was given up.
    given_up: u32,
    /// It is of use to decode this level.
    wanted: bool,
}

impl Side {
    fn open(atlas: &Atlas<'_>, level: Level, plan: Plan) -> Result<Option<Boxed<Self>>, OsError> {
        let Some(model) = LevelModel::open(atlas, level)? else { return Ok(None) };
        let seed = plan.seed ^ u64::from(isochrone_atlas::format::level_tag(level)) << 32;
        let side = Self {
            stream: Stream::new(&model, plan.pages_max, seed)?,
            fresh: Queue::new(plan.pages_max)?,
            model,
            failures: 0,
            given_up_until: None,
            given_up: 0,
            wanted: true,
        };
        Boxed::new(side).map(Some)
    }

    /// Whether it was not given up.
    const fn is_open(&self) -> bool {
        self.given_up_until.is_none()
    }

    /// Whether it is of use and was not given up.
    pub(super) const fn counts(&self) -> bool {
        self.wanted && self.is_open()
    }
}

/// What is known.
#[derive(Debug)]
pub(super) struct Known<'a> {
    pub(super) atlas: Atlas<'a>,
    pub(super) sides: [Option<Boxed<Side>>; 2],
    pub(super) seats: Table<Seat>,
    pub(super) ledger: Ledger,
    /// Raised whenever the current base of a core may have changed.
    pub(super) changes: u32,
    decoding_cores: [CoreId; DECODING_CORES],
    decoding_count: usize,
}

impl<'a> Known<'a> {
    pub(super) fn new(atlas: Atlas<'a>, plan: Plan) -> Result<Self, OsError> {
        // Of no page nothing is to be learnt, and tables of a level take some hundred KiB.
        let open = |level| match plan.pages_max {
            0 => Ok(None),
            _ => Side::open(&atlas, level, plan),
        };
        let mut cores = atlas.cores();
        let seats = Table::made(atlas.cores().len(), |_| Seat {
            core: cores.next().unwrap_or(CoreId(u16::MAX)),
            current: [None; 2],
            proven: [false; 2],
            found: [None; 2],
            ask_at_ns: [0; 2],
        })?;
        Ok(Self {
            sides: [open(Level::Llc)?, open(Level::Dram)?],
            seats,
            ledger: Ledger::new(plan.pages_max)?,
            changes: 0,
            decoding_cores: [CoreId(u16::MAX); DECODING_CORES],
            decoding_count: 0,
            atlas,
        })
    }

    /// Names the cores that will decode in turns.
    pub(super) fn set_decoding_cores(&mut self, cores: &[CoreId]) {
        self.decoding_count = 0;
        for core in cores.iter().take(DECODING_CORES) {
            self.decoding_cores[self.decoding_count] = *core;
            self.decoding_count += 1;
        }
        self.merge_classes();
    }

    /// Classes that no decoding core tells apart are one, anew.
    pub(super) fn merge_classes(&mut self) {
        let decoding = &self.decoding_cores[..self.decoding_count];
        for own in self.sides.iter_mut().flatten() {
            let place = side(own.model.level);
            let seats = self.seats.iter().filter(|seat| decoding.contains(&seat.core));
            let bases = seats.filter_map(|seat| seat.current[place]);
            if own.model.merge_classes_by(bases) {
                own.stream.start_over();
            }
        }
    }

    /// Says whether distances in memory matter.
    pub(super) fn want_memory(&mut self, wanted: bool) {
        let alone = self.sides[side(Level::Llc)].as_ref().is_none_or(|llc| !llc.is_open());
        if let Some(dram) = &mut self.sides[side(Level::Dram)] {
            dram.wanted = wanted || alone;
        }
    }

    /// Whether a level follows the pattern, is of use and was not given up.
    pub(super) fn counts(&self, level: Level) -> bool {
        self.sides[side(level)].as_ref().is_some_and(|own| own.counts())
    }

    /// The current bases of a core.
    pub(super) fn current_bases(&self, core: CoreId) -> CurrentBases {
        let table = |level: Level| {
            let own = self.sides[side(level)].as_ref()?;
            Some(own.model.base(self.base_of(core, level)?))
        };
        CurrentBases::of(table(Level::Llc), table(Level::Dram))
    }

    /// What classifying cost so far.
    pub(super) fn stats(&self) -> Stats {
        let loads = |place: usize| self.sides[place].as_ref().map_or(0, |own| own.stream.loads());
        Stats { loads: [loads(0), loads(1)], ..self.ledger.stats }
    }

    pub(super) fn seat(&self, core: CoreId) -> Option<usize> {
        self.seats.iter().position(|seat| seat.core == core)
    }

    pub(super) fn base_of(&self, core: CoreId, level: Level) -> Option<u16> {
        self.seats[self.seat(core)?].current[side(level)]
    }

    /// Current bases of other cores than the one of this seat.
    pub(super) fn others(&self, level: Level, seat: usize) -> ([u16; OTHERS], usize) {
        let place = side(level);
        let own = self.seats[seat].current[place];
        let (mut others, mut count) = ([0; OTHERS], 0);
        for other in self.seats.iter().filter_map(|seat| seat.current[place]) {
            if Some(other) != own && count < OTHERS && !others[..count].contains(&other) {
                others[count] = other;
                count += 1;
            }
        }
        (others, count)
    }

    /// Takes note of all pages below `end`. Those whose frames the atlas knows have their codes from it.
    pub(super) fn add(&mut self, timing: &impl Timing, end: usize) {
        const TOGETHER: usize = 64;
        let first = self.ledger.notes.pages();
        self.ledger.notes.extend(end);
        let end = self.ledger.notes.pages();
        for begin in (first..end).step_by(TOGETHER) {
            let count = TOGETHER.min(end - begin);
            let mut frames = [None; TOGETHER];
            timing.frames(PageAddr(begin as u64), &mut frames[..count]);
            for (of, frame) in (page(begin)..).zip(&frames[..count]) {
                self.ledger.notes.set_frame(of, *frame);
                self.ask_atlas(of, *frame);
            }
        }
        if self.sides.iter().all(Option::is_none) {
            (first..end).for_each(|of| self.ledger.yield_page(page(of)));
        }
    }

    /// Takes a page's codes from the atlas, if that has its frame at every level that counts.
    fn ask_atlas(&mut self, of: u32, frame: Option<u64>) {
        let Some(frame) = frame else { return };
        let mut found = [None; 2];
        for (place, own) in self.sides.iter().enumerate() {
            let Some(own) = own else { continue };
            if own.model.block_pages() > 1 {
                return;
            }
            let code = self.atlas.code(PageAddr(frame), own.model.level);
            let Some(code) = code.filter(|code| *code != Code::UNKNOWN) else { return };
            found[place] = Some(code);
        }
        for (own, code) in self.sides.iter_mut().zip(found) {
            if let (Some(own), Some(code)) = (own, code) {
                self.ledger.notes.set_code(own.model.level, of, code, own.model.period);
                own.fresh.push(of);
            }
        }
        self.ledger.stats.from_atlas += 1;
    }

    /// Notes the code of a block. A page that was ready and has another code now was given another
    /// frame.
    pub(super) fn take_decoded(&mut self, level: Level, decoded: Decoded) {
        let Some(own) = &mut self.sides[side(level)] else { return };
        let (block, period) = (own.model.block_pages(), own.model.period);
        let (notes, first) = (&mut self.ledger.notes, decoded.first);
        if notes.is_away(first) {
            return;
        }
        let doubted = notes.is_doubted(level, first);
        let before = notes.code(level, first);
        if doubted && decoded.code == Code::UNKNOWN {
            // It could not be told: what is known stays.
            return (first..).take(block).for_each(|of| notes.set_doubted(level, of, false));
        }
        notes.set_code(level, first, decoded.code, period);
        let changed = doubted && notes.code(level, first) != before;
        for of in (first..).take(block) {
            self.ledger.notes.set_doubted(level, of, false);
            if changed {
                self.ledger.replaced(of);
            }
        }
        if !doubted || changed {
            (first..).take(block).for_each(|of| {
                own.fresh.push(of);
            });
        }
    }

    /// A page has another frame: nothing that was known of it holds.
    pub(super) fn forget_frame(&mut self, of: u32, frame: Option<u64>) {
        self.ledger.replaced(of);
        for level in Level::ALL {
            let Some(own) = &mut self.sides[side(level)] else { continue };
            let (notes, block) = (&mut self.ledger.notes, own.model.block_pages());
            let first = block_of(of, block);
            (first..).take(block).for_each(|of| notes.forget(level, of));
            if !notes.is_doubted(level, first) {
                own.stream.decode_again(first);
            }
            (first..).take(block).for_each(|of| notes.set_doubted(level, of, false));
        }
        self.ask_atlas(of, frame);
    }

    /// A page's memory goes: nothing that was known of it holds, and nothing is to be learnt.
    pub(super) fn send_away(&mut self, of: u32) {
        for level in Level::ALL {
            self.ledger.notes.forget(level, of);
            self.ledger.notes.set_doubted(level, of, false);
        }
        self.ledger.notes.set_yielded(of, false);
        self.ledger.notes.set_away(of, true);
    }

    /// A page has memory again: it is decoded like a new one.
    pub(super) fn take_back(&mut self, of: u32) {
        self.ledger.notes.set_away(of, false);
        for own in self.sides.iter_mut().flatten() {
            if of == block_of(of, own.model.block_pages()) {
                own.stream.decode_again(of);
            }
        }
    }

    /// A page is to be decoded once more, though it has a code; false if it waits for that already.
    pub(super) fn doubt(&mut self, level: Level, of: u32) -> bool {
        let Some(own) = &mut self.sides[side(level)] else { return false };
        let (notes, block) = (&mut self.ledger.notes, own.model.block_pages());
        let first = block_of(of, block);
        if notes.is_doubted(level, first) {
            return false;
        }
        (first..).take(block).for_each(|of| notes.set_doubted(level, of, true));
        own.stream.decode_again(first);
        true
    }

    /// Some pages from one on are to be decoded once more, as far as they are known; the page after these, if any.
    pub(super) fn doubt_some(&mut self, first: u32) -> Option<u32> {
        let pages = page(self.ledger.notes.pages());
        let end = pages.min(first.saturating_add(DOUBTED_TOGETHER));
        for of in first..end {
            for level in Level::ALL {
                let notes = &self.ledger.notes;
                if notes.is_confirmed(level, of) && notes.is_known(level, of) {
                    self.doubt(level, of);
                }
            }
        }
        (end < pages).then_some(end)
    }

    /// Pages decoded since the last good look are confirmed, or decoded again.
    pub(super) fn settle(&mut self, level: Level, good: bool) {
        let Some(own) = &mut self.sides[side(level)] else { return };
        let block = own.model.block_pages();
        for _ in 0..own.fresh.len() {
            let Some(of) = own.fresh.pop() else { return };
            if self.ledger.notes.is_away(of) {
                continue;
            }
            if good {
                self.ledger.confirm(level, of);
                continue;
            }
            self.ledger.notes.forget(level, of);
            if of == block_of(of, block) {
                own.stream.decode_again(of);
            }
        }
    }

    /// The base in which pages were decoded is the current one.
    pub(super) fn prove(&mut self, core: CoreId, level: Level) {
        if let Some(seat) = self.seat(core) {
            self.seats[seat].proven[side(level)] = true;
        }
        self.settle(level, true);
    }

    /// What an inquiry has found of a core; another may come after `ask_at_ns`.
    pub(super) fn set_base(
        &mut self,
        core: CoreId,
        level: Level,
        found: Option<Identity>,
        ask_at_ns: u64,
    ) {
        let place = side(level);
        let Some(seat) = self.seat(core) else { return };
        let seat = &mut self.seats[seat];
        let base = found.map(|identity| identity.base);
        if seat.current[place].is_some_and(|before| Some(before) != base) {
            self.ledger.stats.moves += 1;
        }
        seat.current[place] = base;
        seat.proven[place] = found.is_some_and(|identity| identity.from_known_pages);
        seat.found[place] = found;
        seat.ask_at_ns[place] = ask_at_ns;
        self.changes = self.changes.wrapping_add(1);
        if self.decoding_count == 0 {
            (self.decoding_cores[0], self.decoding_count) = (core, 1);
        }
        self.merge_classes();
    }

    /// A guessed base is replaced by one that fits better: what was decoded in it is decoded again.
    pub(super) fn replace_guess(&mut self, core: CoreId, level: Level, better: u16) {
        if let Some(seat) = self.seat(core) {
            let seat = &mut self.seats[seat];
            (seat.proven[side(level)], seat.current[side(level)]) = (true, Some(better));
        }
        self.changes = self.changes.wrapping_add(1);
        self.settle(level, false);
        if let Some(own) = &mut self.sides[side(level)] {
            own.stream.start_over();
        }
        self.merge_classes();
    }

    /// Confirmed pages say that the core has another base: that also says why pages decoded in a guess did
    /// not look as it says, so no guess has failed.
    pub(super) fn note_move(&mut self, core: CoreId) {
        self.sides.iter_mut().flatten().for_each(|own| own.failures = 0);
        self.lose_base(core);
    }

    /// The core has another base, and with it at each level.
    pub(super) fn lose_base(&mut self, core: CoreId) {
        Level::ALL.into_iter().for_each(|level| self.lose_level(core, level));
        self.ledger.stats.moves += 1;
    }

    /// What was decoded at a level since the last good look is worth nothing.
    pub(super) fn lose_level(&mut self, core: CoreId, level: Level) {
        if let Some(seat) = self.seat(core) {
            let seat = &mut self.seats[seat];
            (seat.current[side(level)], seat.ask_at_ns[side(level)]) = (None, 0);
        }
        self.settle(level, false);
        if let Some(own) = &mut self.sides[side(level)] {
            own.stream.start_over();
        }
        self.changes = self.changes.wrapping_add(1);
    }

    /// A level cannot be decoded here, or no base fits: it is left alone for some time.
    pub(super) fn give_up(&mut self, level: Level, now: u64) {
        self.settle(level, false);
        let Some(own) = &mut self.sides[side(level)] else { return };
        own.given_up_until = Some(now.saturating_add(RETRY_NS << own.given_up.min(DOUBLINGS)));
        own.given_up += 1;
        own.stream.start_over();
        for seat in &mut *self.seats {
            seat.current[side(level)] = None;
            seat.ask_at_ns[side(level)] = 0;
        }
        self.changes = self.changes.wrapping_add(1);
        self.merge_classes();
        self.want_memory(false);
    }

    /// Tries levels once more that were given up long ago.
    pub(super) fn reopen(&mut self, now: u64) {
        for own in self.sides.iter_mut().flatten() {
            if own.given_up_until.is_some_and(|until| now >= until) {
                own.given_up_until = None;
                own.failures = 0;
            }
        }
    }
}
