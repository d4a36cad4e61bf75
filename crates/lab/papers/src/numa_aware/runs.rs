//! The runs behind the tables: which there are, and what is read from them.

use std::collections::BTreeMap;

use isochrone_sim::coherence::Class;
use isochrone_tasks::Regime;
use isochrone_workloads::numa::{Bench, Variant};

use super::paper::{FIGURE_THREADS, THREADS};
use super::record::{Key, Record};

/// Rules that the paper leaves open, as they are used for NAFT: the one set of them.
pub(crate) const NAFT_RULES: [Variant; 1] = [Variant::InoutTwice];
/// Threads of most comparisons.
pub(crate) const ALL_THREADS: u16 = 288;
/// The paper's regimes.
pub(crate) const REGIMES: [Regime; 3] = [Regime::Dft, Regime::Di, Regime::Naft];
/// Seeds for which DFT is run where its spread is asked for.
pub(crate) const DFT_SEEDS: u64 = 20;
/// Classes without a line.
pub(crate) const CONTROL: [Class; 4] = [Class::Hreq, Class::Snp, Class::Hrsp, Class::Ndr];

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// 16, 96 and 288 threads, one seed.
    Quick,
    /// Ten numbers of threads, one seed, with changes as well: what a peak by mechanism needs.
    Curves,
    /// Ten numbers of threads; the seeds of DFT and the ablations at 288.
    Paper,
    /// Both rankings, both initialisations, five seeds of each.
    Full,
}

/// Changes under which all rows are worked out once more, where nothing else is said: the other end of the range that
/// is assumed for directories, and streamcluster with our declarations.
pub const BESIDE: [Variant; 2] = [Variant::Directory1300k, Variant::OwnDeclarations];

/// What can be asked at 288 threads beside the plain runs.
pub(crate) const ABLATIONS: [Variant; 32] = [
    Variant::Panels,
    Variant::NoStealing,
    Variant::NoSuccessor,
    Variant::OpenLoop,
    Variant::Add,
    Variant::NoScratch,
    Variant::PassesOnce,
    Variant::PassesFour,
    Variant::PassesTen,
    Variant::NoFilter,
    Variant::Directory1300k,
    Variant::Directory2600k,
    Variant::Directory5M,
    Variant::SilentEvictions,
    Variant::AloneEvictions,
    Variant::ExclusiveReaders,
    Variant::ShortMessages,
    Variant::NoSwitchRoof,
    Variant::Turbo,
    Variant::Queues,
    Variant::FarWindow30,
    Variant::FarWindow120,
    Variant::FarWindow360,
    Variant::Outstanding10,
    Variant::Outstanding40,
    Variant::OutstandingFar10,
    Variant::FastCores,
    Variant::SlowCores,
    Variant::Poll50,
    Variant::Poll4000,
    Variant::SmallLlc,
    Variant::LargeLlc,
];

/// The rules of a regime, with a change.
pub(crate) fn rules(regime: Regime, change: Option<Variant>) -> Vec<Variant> {
    let own = if regime == Regime::Naft { NAFT_RULES.to_vec() } else { Vec::new() };
    own.into_iter().chain(change).collect()
}

/// All runs of a reproduction, with those that stand beside all rows.
pub fn plan(machine: &str, depth: Depth, beside: &[Variant]) -> Vec<Key> {
    let mut keys = Vec::new();
    let threads = if depth == Depth::Quick { &FIGURE_THREADS[..] } else { &THREADS[..] };
    for bench in Bench::ALL {
        for regime in REGIMES {
            let key = |threads| Key::new(machine, bench, regime, threads);
            let plain = |threads| key(threads).with(&rules(regime, None));
            keys.extend(threads.iter().map(|threads| plain(*threads)));
            let whole = matches!(depth, Depth::Curves | Depth::Full);
            let few = if whole { threads } else { &FIGURE_THREADS[..] };
            for change in beside.iter().filter(|change| change.concerns(bench)) {
                let rules = rules(regime, Some(*change));
                keys.extend(few.iter().map(|threads| key(*threads).with(&rules)));
            }
            if matches!(depth, Depth::Quick | Depth::Curves) {
                continue;
            }
            if regime == Regime::Dft {
                for threads in FIGURE_THREADS {
                    keys.extend((2..=DFT_SEEDS).map(|seed| plain(threads).seeded(seed)));
                }
            }
            let asked = |change: &&Variant| {
                depth == Depth::Full || bench == Bench::Cholesky || matters(**change)
            };
            keys.extend(
                ABLATIONS
                    .iter()
                    .filter(asked)
                    .map(|c| key(ALL_THREADS).with(&rules(regime, Some(*c)))),
            );
        }
        if !matches!(depth, Depth::Quick | Depth::Curves) {
            keys.extend(variants(machine, bench, depth));
        }
    }
    keys.sort();
    keys.dedup();
    keys
}

/// Changes that are asked of every benchmark, not of Cholesky alone.
const fn matters(change: Variant) -> bool {
    matches!(
        change,
        Variant::OpenLoop | Variant::NoStealing | Variant::NoFilter | Variant::Directory1300k
    )
}

/// Both rankings and both initialisations, and ours.
fn variants(machine: &str, bench: Bench, depth: Depth) -> Vec<Key> {
    let mut keys = Vec::new();
    let (threads, seeds) = match depth {
        Depth::Full => (&THREADS[..], 5),
        _ => (&THREADS[THREADS.len() - 1..], 1),
    };
    for threads in threads {
        for seed in 1..=seeds {
            let naft = Key::new(machine, bench, Regime::Naft, *threads).seeded(seed);
            for ranking in [&[][..], &NAFT_RULES] {
                for touch in [&[][..], &[Variant::Panels]] {
                    let is_matrix = matches!(bench, Bench::Cholesky | Bench::Smi);
                    if touch.is_empty() || is_matrix {
                        keys.push(naft.clone().with(&[ranking, touch].concat()));
                    }
                }
            }
            let ours = Key::new(machine, bench, Regime::Isochrone, *threads).seeded(seed);
            keys.extend([ours.clone(), ours.with(&[Variant::Partition])]);
            if depth == Depth::Full {
                keys.push(Key::new(machine, bench, Regime::Dft, *threads).seeded(seed));
            }
        }
    }
    keys
}

/// Finished runs.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The name of the simulated machine.
    pub machine: String,
    /// What was counted, by what was run.
    pub records: BTreeMap<Key, Record>,
    /// Changes under which all rows are worked out once more.
    pub beside: Vec<Variant>,
}

impl Runs {
    /// The runs with a change in the place of those without; of a benchmark that it does not concern, those without.
    pub(crate) fn under(&self, change: Variant) -> Self {
        let plain = |key: &Key| {
            if key.bench.parse().is_ok_and(|bench| !change.concerns(bench)) {
                return Some(key.clone());
            }
            let rest = key.variant.strip_suffix(change.name())?;
            let variant = if rest.is_empty() { rest } else { rest.strip_suffix('+')? };
            Some(Key { variant: variant.to_owned(), ..key.clone() })
        };
        let of = |(key, record): (&Key, &Record)| {
            let key = plain(key)?;
            Some((key.clone(), Record { key, ..record.clone() }))
        };
        let records = self.records.iter().filter_map(of).collect();
        Self { machine: self.machine.clone(), records, beside: Vec::new() }
    }

    /// All seeds of one cell.
    pub(crate) fn seeds(
        &self,
        bench: Bench,
        regime: Regime,
        threads: u16,
        rules: &[Variant],
    ) -> Vec<&Record> {
        let from = Key::new(&self.machine, bench, regime, threads).with(rules).seeded(0);
        let to = from.clone().seeded(u64::MAX);
        self.records
            .range(from..=to)
            .filter(|(k, _)| k.paper_size)
            .map(|(_, record)| record)
            .collect()
    }

    /// The first seed of a cell with its regime's own rules.
    pub(crate) fn one(&self, bench: Bench, regime: Regime, threads: u16) -> Option<&Record> {
        self.seeds(bench, regime, threads, &rules(regime, None)).into_iter().next()
    }

    /// The median over all seeds of a cell, with a change or without.
    pub(crate) fn median(
        &self,
        bench: Bench,
        regime: Regime,
        threads: u16,
        change: Option<Variant>,
        of: impl Fn(&Record) -> f64,
    ) -> Option<f64> {
        let all = self.seeds(bench, regime, threads, &rules(regime, change));
        let mut values: Vec<f64> = all.into_iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let (upper, lower) = (values.len() / 2, values.len().checked_sub(1)? / 2);
        Some(f64::midpoint(values[upper], values[lower]))
    }

    /// One regime's figure over another's, both with a change or without.
    pub(crate) fn ratio(
        &self,
        bench: Bench,
        [over, under]: [Regime; 2],
        threads: u16,
        change: Option<Variant>,
        of: impl Fn(&Record) -> f64,
    ) -> Option<f64> {
        let below = self.median(bench, under, threads, change, &of)?;
        let above = self.median(bench, over, threads, change, &of)?;
        (below > 0.0).then(|| above / below)
    }

    /// How much faster than DFT with 16 threads.
    pub(crate) fn speedup(&self, bench: Bench, regime: Regime, threads: u16) -> Option<f64> {
        let base = self.median(bench, Regime::Dft, 16, None, |record| record.seconds)?;
        Some(base / self.median(bench, regime, threads, None, |record| record.seconds)?)
    }

    /// The highest speed-up over all numbers of threads, and where it is; `None` where some were not run.
    pub(crate) fn peak(&self, bench: Bench, regime: Regime) -> Option<(f64, u16)> {
        let all = THREADS.iter().map(|t| Some((self.speedup(bench, regime, *t)?, *t)));
        all.collect::<Option<Vec<_>>>()?.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// Movement of DWB, DTC, control and all classes.
pub(crate) fn moved(record: &Record) -> [f64; 4] {
    [
        record.movement(Some(&[Class::Dwb])),
        record.movement(Some(&[Class::Dtc])),
        record.movement(Some(&CONTROL)),
        record.movement(None),
    ]
}
