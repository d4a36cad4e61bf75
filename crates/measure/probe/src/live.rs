//! This machine's memory as a [`Target`]: an arena, the instructions that move its lines, and a
//! thread that goes to the core that asks.
//!
//! The calling thread itself is pinned from core to core. Whether it stayed is checked after
//! every batch; a batch during which something else moved it is reported, never used.

use std::sync::atomic::{AtomicU16, Ordering};

use isochrone_os::affinity::{self, CoreSet};
use isochrone_os::cache::{Features, line_bytes};
use isochrone_os::clock::{Clock, monotonic_ns};
use isochrone_os::frames::Pagemap;
use isochrone_os::mapping::{Backing, Mapping};
use isochrone_os::{Errno, OsError, timed};
use isochrone_units::{CoreId, Cycles, LINE_BYTES, LINES_PER_PAGE, Level, LineAddr, PageAddr};

use crate::target::{Target, TargetClock, TargetError};

/// Lines flushed or demoted together before they are timed: few, so that nothing happens to the
/// first while the last is being moved, and each from another page where the caller mixed them.
const MOVED_TOGETHER: usize = 16;
/// Lines put out of the near caches together by a sweep: many, so that the sweep is shared.
const EVICTED_TOGETHER: usize = 16_384;

/// Length of a sweep in second-level caches. A host that backs a guest's memory with 4 KiB pages
/// gives the sweep random page colours: twice the cache leaves one colour in fifty with no more
/// pages than the cache has ways, and the lines of that colour are not put out; three times
/// leaves one in five thousand.
const SWEEP_OF_L2: usize = 3;
/// The instruction that flushes. What lies behind the point of coherency, to which `dc civac` goes, may still be a
/// cache of the whole system.
const FLUSH: &str = if cfg!(target_arch = "aarch64") { "dc civac" } else { "clflush" };
/// Holds a page that no core has timed yet.
const NOBODY: u16 = u16::MAX;

/// How to make the arena.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Bytes whose pages can be timed.
    pub bytes: usize,
    /// Ask for huge pages.
    pub huge: bool,
    /// Reach the LLC by eviction even where the CPU has `cldemote`.
    pub evict: bool,
    /// Cores that may ask; empty means all that this process may use.
    pub cores: Vec<CoreId>,
    /// Size of one core's second-level cache; a sweep is three times as long.
    pub l2_bytes: usize,
}

/// Live memory.
#[derive(Debug)]
pub struct LiveTarget {
    ground: Ground,
    hand: Hand,
    pagemap: Option<Pagemap>,
    /// Only kept for its end.
    #[allow(dead_code, reason = "dropping it undoes the pinning")]
    home: Home,
    missing: Vec<String>,
}

/// What all threads that sample have in common.
#[derive(Debug)]
struct Ground {
    arena: Mapping,
    clock: Clock,
    cores: Vec<CoreId>,
    llc: LlcPath,
    sweep_bytes: usize,
    begin_ns: u64,
    /// False where the system refuses to pin: then nothing can be said of single cores.
    pinned: bool,
    /// For each page the core that timed lines of it last. Empty with one core.
    holders: Vec<AtomicU16>,
}

/// What a thread that samples has for itself.
#[derive(Debug)]
struct Hand {
    evictor: Mapping,
    here: Option<CoreId>,
}

/// The arena of a [`LiveTarget`] for another thread. That thread is pinned, and ends with its work.
#[derive(Debug)]
struct LiveFork<'a> {
    ground: &'a Ground,
    hand: Hand,
}

/// How lines get into the LLC and no nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LlcPath {
    Demote,
    Evict,
}

impl LiveTarget {
    /// Maps the arena, calibrates the clock and finds out what is missing.
    ///
    /// # Errors
    /// When there is no memory, or no core that this process may use.
    pub fn new(options: &LiveOptions) -> Result<Self, TargetError> {
        Self::new_while(options, &mut || true)
    }

    /// The same with as much of the arena as can be mapped while `go_on` says so; what that leaves out is missing.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn new_while(
        options: &LiveOptions,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self, TargetError> {
        let wanted = if options.huge { Backing::Transparent2M } else { Backing::Small };
        let arena = Mapping::anonymous_while(options.bytes, wanted, go_on).map_err(system)?;
        let mut missing = lacking_memory(options, &arena);
        let sweep_bytes = options.l2_bytes.max(1 << 20) * SWEEP_OF_L2;
        let features = Features::tried();
        let llc =
            if features.cldemote && !options.evict { LlcPath::Demote } else { LlcPath::Evict };
        missing.extend(lacking_features(features));
        let pagemap = Pagemap::open().ok().filter(Pagemap::shows_frames);
        if pagemap.is_none() {
            let what = "physical frames: not readable without root; the atlas keeps the pattern, not pages";
            missing.push(what.into());
        }
        let mut ground = Ground {
            arena,
            clock: Clock { hz: 1.0, hz_error: 0.0, tick: 1, overhead: 0.0 },
            cores: usable_cores(&options.cores)?,
            llc,
            sweep_bytes,
            begin_ns: monotonic_ns(),
            pinned: true,
            holders: Vec::new(),
        };
        let home = Home { before: CoreSet::of_this_thread().ok() };
        let mut hand = Hand::new(sweep_bytes).map_err(system)?;
        if let Err(error) = hand.go(&ground, ground.cores[0]) {
            missing.push(format!("pinning: {error}; one core is measured, wherever it runs"));
            ground.cores.truncate(1);
            ground.pinned = false;
        }
        if ground.cores.len() > 1 && (features.clflush || features.clflushopt) {
            ground.holders = (0..ground.arena.pages()).map(|_| AtomicU16::new(NOBODY)).collect();
        }
        ground.clock = Clock::calibrate();
        Ok(Self { ground, hand, pagemap, home, missing })
    }

    /// One line for each thing that is missing, and what is done instead.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// `"cldemote"`, `"eviction"`, `"clflush"` or `"dc civac"`.
    #[must_use]
    pub fn method(&self, level: Level) -> String {
        match (level, self.ground.llc) {
            (Level::Llc, LlcPath::Demote) => "cldemote",
            (Level::Llc, LlcPath::Evict) => "eviction",
            (Level::Dram, _) => FLUSH,
        }
        .into()
    }

    /// What is known of the clock.
    #[must_use]
    pub fn calibration(&self) -> Clock {
        self.ground.clock
    }

    /// Puts another frame behind a page of the arena, whose content stays: what a kernel that
    /// migrates pages does, at a moment of the caller's choice. For tests of what notices it.
    ///
    /// # Errors
    /// When there is no such page, or its frame cannot be replaced.
    pub fn replace_frame(&self, page: PageAddr) -> Result<(), TargetError> {
        self.ground.arena.replace_frame(page).map_err(system)
    }

    /// The arena, for experiments that need more than single loads.
    #[must_use]
    pub fn into_arena(self) -> Mapping {
        self.ground.arena
    }

    /// What keys the pages of an atlas made from this target.
    #[must_use]
    pub fn frames_are(&self) -> &'static str {
        match (&self.pagemap, Features::detect().hypervisor) {
            (None, _) => "none",
            (Some(_), true) => "guest frames",
            // Only x86-64 says that it is no guest; elsewhere the weaker claim holds in any case.
            (Some(_), false) if cfg!(not(target_arch = "x86_64")) => "guest frames",
            (Some(_), false) => "host frames",
        }
    }
}

impl Hand {
    fn new(sweep_bytes: usize) -> Result<Self, OsError> {
        let evictor = Mapping::anonymous(sweep_bytes, Backing::Transparent2M)?;
        Ok(Self { evictor, here: None })
    }

    fn go(&mut self, ground: &Ground, core: CoreId) -> Result<(), OsError> {
        if ground.pinned && self.here != Some(core) {
            affinity::pin(core)?;
            self.here = Some(core);
        }
        Ok(())
    }

    fn sample(
        &mut self,
        ground: &Ground,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError> {
        self.go(ground, core).map_err(system)?;
        ground.take_over(core, level, lines).map_err(system)?;
        let together = ground.together(level);
        for (lines, out) in lines.chunks(together).zip(out.chunks_mut(together)) {
            ground.batch(level, lines, &self.evictor, out).map_err(system)?;
        }
        let found = affinity::current_core();
        if found == core || !ground.pinned {
            return Ok(());
        }
        self.here = None;
        Err(TargetError::Moved { asked: core.0, found: found.0 })
    }
}

impl Ground {
    /// Makes sure that no other core still holds one of these lines. Seen on a Granite Rapids: a line
    /// that two cores hold is not demoted (the load then takes 3 cycles), and one that another core alone
    /// holds is read with a latency that says more about that core than about the line's place: what
    /// the second core saw correlated at 0.77 to 0.93 with what it saw of the same lines after a flush,
    /// and at 1.00 after another one. So pages change hands by way of memory.
    fn take_over(&self, core: CoreId, level: Level, lines: &[LineAddr]) -> Result<(), OsError> {
        for line in lines {
            let page = line.page();
            let holder = usize::try_from(page.0).ok().and_then(|page| self.holders.get(page));
            // No two threads sample one page at the same time, so there is nothing to order.
            let other = |holder: &&AtomicU16| holder.load(Ordering::Relaxed) != core.0;
            let Some(holder) = holder.filter(other) else { continue };
            if holder.swap(core.0, Ordering::Relaxed) != NOBODY && level == Level::Llc {
                let lines: [LineAddr; LINES_PER_PAGE] =
                    std::array::from_fn(|i| LineAddr(page.line(0).0 + i as u64));
                timed::flush(&self.arena, &lines)?;
            }
        }
        Ok(())
    }

    fn batch(
        &self,
        level: Level,
        lines: &[LineAddr],
        evictor: &Mapping,
        out: &mut [Cycles],
    ) -> Result<(), OsError> {
        match (level, self.llc) {
            (Level::Dram, _) => timed::sample_flushed(&self.arena, lines, out),
            (Level::Llc, LlcPath::Demote) => timed::sample_demoted(&self.arena, lines, out),
            (Level::Llc, LlcPath::Evict) => {
                // A batch as large as the sweep pushes its own first lines out.
                let own = lines.len() * LINE_BYTES;
                let sweep = if own >= self.sweep_bytes { 0 } else { self.sweep_bytes };
                timed::sample_evicted(&self.arena, lines, evictor, sweep, out)
            }
        }
    }

    fn together(&self, level: Level) -> usize {
        match (level, self.llc) {
            (Level::Llc, LlcPath::Evict) => EVICTED_TOGETHER,
            _ => MOVED_TOGETHER,
        }
    }

    fn target_clock(&self) -> TargetClock {
        TargetClock { hz: self.clock.hz, tick: self.clock.tick, overhead: self.clock.overhead }
    }

    fn seconds(&self) -> f64 {
        (monotonic_ns() - self.begin_ns) as f64 * 1e-9
    }

    fn fork(&self) -> Option<Box<dyn Target + Send + '_>> {
        let hand = Hand::new(self.sweep_bytes).ok().filter(|_| self.pinned)?;
        Some(Box::new(LiveFork { ground: self, hand }))
    }
}

impl Target for LiveTarget {
    fn cores(&self) -> &[CoreId] {
        &self.ground.cores
    }

    fn pages(&self) -> u64 {
        self.ground.arena.pages()
    }

    fn clock(&self) -> TargetClock {
        self.ground.target_clock()
    }

    fn sample(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError> {
        self.hand.sample(&self.ground, core, level, lines, out)
    }

    fn frame(&mut self, page: PageAddr) -> Option<u64> {
        self.pagemap.as_ref()?.frame(self.ground.arena.virtual_page(page))
    }

    fn frames(&mut self, first: PageAddr, out: &mut [Option<u64>]) {
        out.fill(None);
        if let Some(pagemap) = &self.pagemap {
            // What cannot be read is not known.
            let _ = pagemap.frames(self.ground.arena.virtual_page(first), out);
        }
    }

    fn seconds(&mut self) -> f64 {
        self.ground.seconds()
    }

    fn fork(&self) -> Option<Box<dyn Target + Send + '_>> {
        self.ground.fork()
    }
}

impl Target for LiveFork<'_> {
    fn cores(&self) -> &[CoreId] {
        &self.ground.cores
    }

    fn pages(&self) -> u64 {
        self.ground.arena.pages()
    }

    fn clock(&self) -> TargetClock {
        self.ground.target_clock()
    }

    fn sample(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError> {
        self.hand.sample(self.ground, core, level, lines, out)
    }

    /// Frames are asked of the target that this is a fork of.
    fn frame(&mut self, _: PageAddr) -> Option<u64> {
        None
    }

    fn seconds(&mut self) -> f64 {
        self.ground.seconds()
    }
}

/// Puts back where the thread may run.
#[derive(Debug)]
struct Home {
    before: Option<CoreSet>,
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // Nothing better can be done where the system refuses to undo its own settings.
            let _ = affinity::restore(before);
        }
    }
}

/// The cores that a target with this wish has: those wanted, or all that this process may use.
///
/// # Errors
/// Where one of those wanted may not be used, or there is none.
pub fn usable_cores(wanted: &[CoreId]) -> Result<Vec<CoreId>, TargetError> {
    let allowed: Vec<CoreId> = CoreSet::of_this_thread().map_err(system)?.iter().collect();
    let cores: Vec<CoreId> = if wanted.is_empty() {
        allowed
    } else {
        if let Some(core) = wanted.iter().find(|c| !allowed.contains(c)) {
            return Err(TargetError::System {
                what: format!("{core} cannot be used"),
                why: "this process is not allowed to run there, or it does not exist".into(),
                advice: "name cores that `taskset -p $$` lists".into(),
            });
        }
        wanted.to_vec()
    };
    if cores.is_empty() {
        return Err(TargetError::Unsupported("there is no core that this process may use".into()));
    }
    Ok(cores)
}

/// What of the arena is not as it was wanted, and what that costs.
fn lacking_memory(options: &LiveOptions, arena: &Mapping) -> Vec<String> {
    let mut missing = Vec::new();
    let left_out = options.bytes.saturating_sub(arena.len()) >> 20;
    if left_out > 0 {
        missing.push(format!(
            "memory: {left_out} of {} MiB were left out, since there was no time to map more",
            options.bytes >> 20
        ));
    }
    if options.huge && arena.backing() == Backing::Small {
        missing.push(match arena.huge_share() {
            Some(share) => format!(
                "huge pages: only {:.0} % of the arena has them; TLB misses add to latencies \
                 (echo madvise > /sys/kernel/mm/transparent_hugepage/enabled)",
                100.0 * share
            ),
            None => "huge pages: this kernel does not tell whether the arena has them".into(),
        });
    }
    missing
}

/// What this CPU lacks, and what is done instead.
fn lacking_features(features: Features) -> Vec<String> {
    let mut missing = Vec::new();
    if let Err(error) = features.require_flush() {
        missing.push(format!("flush: {error}"));
    }
    if line_bytes() > LINE_BYTES {
        missing.push(format!(
            "lines: this CPU's have {} bytes; what is said of lines of {LINE_BYTES} is said of parts of them",
            line_bytes()
        ));
    }
    if !features.cldemote {
        missing.push("cldemote: this CPU lacks it; lines are put into the LLC by eviction".into());
    }
    if !features.invariant_tsc {
        missing
            .push("invariant time-stamp counter: not promised by this CPU; watch the drift".into());
    }
    missing
}

fn system(error: OsError) -> TargetError {
    TargetError::System {
        what: error.what.into(),
        why: Errno(error.errno).to_string(),
        advice: error.advice.into(),
    }
}
