//! What pages that were decoded before tell of the next one, in timed loads: a figure for docs/method/decoder.md.
//!
//! Pages of a synthetic machine are decoded one by one with the matched filter, once with each prior, each until its
//! code is as safe. Half of the memory is learnt from, the other half counts.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]
#![allow(clippy::print_stdout, reason = "it is there for the figures")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "latencies and priors of models as the filter takes them"
)]

use isochrone_atlas::{Code, Codebook, Decoder, Noise, PatternTable, Period, TABLE_ENTRIES};
use isochrone_decode::SAFE_ERROR;
use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec};
use isochrone_stats::{rng, shuffle};
use isochrone_units::{CoreId, Cycles, LINES_PER_PAGE, Level, PageAddr};

/// Pages of a huge one.
const HUGE: usize = 512;
const PAGES: usize = 16 * HUGE;
/// Loads after which a page is given up.
const MOST: u32 = 400;
/// A prior is never surer than this of one code.
const SUREST: f64 = 0.99;

/// What is known of a page before its first load.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Prior {
    /// All codes are equally likely.
    Nothing,
    /// How often each code occurs.
    Shares,
    /// What comes after the code of the page before.
    Neighbour,
    /// What comes at this place of a huge page, up to a XOR that its other pages tell.
    HugePage,
}

/// A level of a machine, as one core sees it.
struct Bench {
    memory: SyntheticMemory,
    level: Level,
    table: PatternTable,
    /// For each code the one that stands for it.
    canonical: Vec<u16>,
    noise: f32,
}

/// What was learnt from decoded pages.
#[derive(Default)]
struct Learnt {
    shares: Vec<f32>,
    /// `[code before][code]`, times.
    after: Vec<Vec<u32>>,
    /// By place in a huge page: its code, XOR that of the first page.
    template: Vec<u16>,
    /// Share of the template's words that come true.
    holds: f64,
}

#[derive(Debug)]
struct Figures {
    loads: f64,
    right: f64,
}

impl Bench {
    fn new(spec: SyntheticSpec, level: Level) -> Self {
        let noise = match level {
            Level::Llc => spec.noise.llc_sd_cycles,
            Level::Dram => spec.noise.dram_sd_cycles,
        };
        let memory = SyntheticMemory::new(spec.with_pages(PAGES as u64)).unwrap();
        let bases = memory.truth_base(CoreId(0), level).unwrap();
        let patterns: Vec<Vec<f32>> =
            bases.iter().map(|base| base.iter().map(|v| *v as f32).collect()).collect();
        let table = PatternTable::new(Period::Lines64, patterns.iter().map(Vec::as_slice)).unwrap();
        let values = table.values();
        let of = |code: u16| (0..64).map(move |i| values[usize::from(code ^ i)].to_bits());
        let codes = u16::try_from(table.codes()).unwrap();
        let stands = |code| (0..code).find(|other| of(*other).eq(of(code))).unwrap_or(code);
        let canonical = (0..codes).map(stands).collect();
        Self { memory, level, canonical, noise: (noise as f32).max(1.0), table }
    }

    fn truth(&self, page: usize) -> u16 {
        let code = self.memory.truth_code(self.level, PageAddr(page as u64)).expect("a code");
        self.canonical[usize::from(code.class) * LINES_PER_PAGE + usize::from(code.key)]
    }

    fn book(&self, shares: &[f32]) -> Codebook {
        let noise = Noise::heavy_tailed(self.noise);
        Codebook::new(&self.table, &self.canonical, shares, noise).unwrap()
    }

    /// Decodes a page; how many loads it took is added.
    fn decode(
        &mut self,
        page: usize,
        book: &Codebook,
        decoder: &mut Decoder,
        loads: &mut u32,
    ) -> u16 {
        let mut lines: Vec<u8> = (0..64).collect();
        shuffle(&mut lines, &mut rng(page as u64));
        let overhead = self.memory.timer().overhead_cycles;
        for line in lines.iter().cycle().take(MOST as usize) {
            let mut out = [Cycles(0)];
            let address = PageAddr(page as u64).line(*line);
            self.memory.sample(CoreId(0), self.level, &[address], &mut out).unwrap();
            decoder.add(book, *line, (f64::from(out[0].0) - overhead) as f32);
            *loads += 1;
            if decoder.best(book).is_safe(SAFE_ERROR) {
                break;
            }
        }
        decoder.best(book).code.0
    }

    /// Learns from the codes of the first half, as they were decoded without a prior.
    fn learn(&mut self) -> Learnt {
        let book = self.book(&[]);
        let (mut decoder, mut loads) = (Decoder::new(&book), 0);
        let mut codes = Vec::new();
        for page in 0..PAGES / 2 {
            decoder.reset(&book);
            codes.push(self.decode(page, &book, &mut decoder, &mut loads));
        }
        let all = self.canonical.len();
        let mut learnt =
            Learnt { shares: vec![0.0; all], after: vec![vec![0; all]; all], ..Learnt::default() };
        codes.iter().for_each(|code| learnt.shares[usize::from(*code)] += 1.0);
        for pair in codes.windows(2) {
            learnt.after[usize::from(pair[0])][usize::from(pair[1])] += 1;
        }
        learnt.template = (0..HUGE)
            .map(|place| most_common(codes.chunks(HUGE).map(|huge| huge[place] ^ huge[0])))
            .collect();
        let (mut held, mut asked) = (1.0, 2.0);
        for huge in codes.chunks(HUGE) {
            let words = || huge.iter().zip(&learnt.template);
            let flip = most_common(words().map(|(code, word)| code ^ word));
            held += words().filter(|(code, word)| **code == **word ^ flip).count() as f64;
            asked += HUGE as f64;
        }
        learnt.holds = held / asked;
        learnt
    }

    /// Decodes the second half.
    fn run(&mut self, prior: Prior, learnt: &Learnt) -> Figures {
        let shares = if prior == Prior::Nothing { &[][..] } else { &learnt.shares };
        let book = self.book(shares);
        let mut decoder = Decoder::new(&book);
        let (mut loads, mut right) = (0, 0);
        let mut before: Vec<u16> = Vec::new();
        for page in PAGES / 2..PAGES {
            decoder.reset(&book);
            let place = page % HUGE;
            if place == 0 {
                before.clear();
            }
            match prior {
                Prior::Neighbour => self.favour_what_follows(&book, &mut decoder, &before, learnt),
                Prior::HugePage if place > 0 => {
                    let flips = before.iter().zip(&learnt.template).map(|(code, word)| code ^ word);
                    let code = most_common(flips) ^ learnt.template[place];
                    let sure = learnt.holds.min(SUREST);
                    let others = book.answers().len().max(2) - 1;
                    let nats = (sure * others as f64 / (1.0 - sure)).ln().max(0.0);
                    decoder.favour(&book, Code(code), nats as f32);
                }
                _ => {}
            }
            let code = self.decode(page, &book, &mut decoder, &mut loads);
            right += usize::from(code == self.truth(page));
            before.push(code);
        }
        let pages = (PAGES / 2) as f64;
        Figures { loads: f64::from(loads) / pages, right: right as f64 / pages }
    }

    /// By the table of what follows what, each code counted once more than it was seen, in the shares of all.
    fn favour_what_follows(
        &self,
        book: &Codebook,
        decoder: &mut Decoder,
        before: &[u16],
        learnt: &Learnt,
    ) {
        let Some(last) = before.last() else { return };
        let row = &learnt.after[usize::from(*last)];
        let seen: f64 = row.iter().map(|times| f64::from(*times)).sum();
        let all: f64 = learnt.shares.iter().map(|share| f64::from(*share)).sum();
        for code in book.answers() {
            let share = f64::from(learnt.shares[usize::from(*code)]).max(0.5) / all;
            let after = (f64::from(row[usize::from(*code)]) + share) / (seen + 1.0);
            decoder.favour(book, Code(*code), (after / share).ln() as f32);
        }
    }
}

fn most_common(codes: impl Iterator<Item = u16>) -> u16 {
    let mut counts = vec![0_u32; TABLE_ENTRIES];
    codes.for_each(|code| counts[usize::from(code) % TABLE_ENTRIES] += 1);
    (0_u16..).zip(&counts).max_by_key(|(code, count)| (**count, u16::MAX - code)).map_or(0, |c| c.0)
}

#[test]
#[ignore = "prints figures: cargo test -p isochrone-probe --release --test priors -- --ignored --nocapture"]
fn loads_a_page_by_what_is_known_before() {
    let machines = [
        ("emerald_rapids_like", Level::Llc),
        ("emerald_rapids_like", Level::Dram),
        ("mesh_xeon", Level::Llc),
        ("mesh_xeon", Level::Dram),
        ("genoa_like", Level::Llc),
        ("genoa_like", Level::Dram),
    ];
    for (name, level) in machines {
        for small in [false, true] {
            let spec = SyntheticSpec::by_name(name, 3).expect("a preset");
            let spec = if small { spec.with_small_pages() } else { spec };
            let mut bench = Bench::new(spec, level);
            let learnt = bench.learn();
            let pages = if small { "4 KiB" } else { "2 MiB" };
            println!("{name} {level}, pages of {pages}: the template holds in {:.3}", learnt.holds);
            let mut nothing = None;
            for prior in [Prior::Nothing, Prior::Shares, Prior::Neighbour, Prior::HugePage] {
                let Figures { loads, right } = bench.run(prior, &learnt);
                let base = *nothing.get_or_insert(loads);
                let saved = 100.0 * (1.0 - loads / base);
                println!("  {prior:?}: {loads:.2} loads a page ({saved:+.1} %), {right:.4} right");
            }
        }
    }
}
