//! What a side-by-side series says. Pure: the same series gives the same figures.
//!
//! A host moves virtual CPUs between cores that share a cache and cores that do not, within
//! seconds; the latency then jumps by a factor, and whichever tool ran next seems to differ. So
//! blocks of runs in which either tool disagrees with itself by more than [`JUMP`] are counted and
//! listed, and no figure is made of them; the rule never looks at how the tools compare. The same
//! is done with blocks during which other programs or the host took processor time: a thread that
//! waits for another loses whole time slices with it. What is left is sorted by placement, and
//! tools are compared within one placement only.

use isochrone_stats::{Interval, bootstrap_median_ci, median, quantile};
use serde::Serialize;

use super::series::{Block, Control, Ours, Series};
use isochrone_host::Disturbance;

/// Two runs that differ by more than this factor did not run on the same placement.
const JUMP: f64 = 1.3;
/// Two runs of ours whose percentiles over lines agree within this share saw the same spread.
const SAME_SPREAD: f64 = 0.02;
/// The change of medians that two runs of ours should stay within.
const STEADY: f64 = 0.005;
/// Half-width of an interval, as a share of the median, whose cost in time is stated.
const CERTAINTY: f64 = 0.01;
/// Processes whose spread says how many more it would take.
const PROCESSES_MIN: usize = 8;
const RESAMPLES: usize = 10_000;
const CONFIDENCE: f64 = 0.95;
const SEED: u64 = 1;

/// A median with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) n: usize,
}

/// Both tools while the cores were at one distance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Placement {
    pub(crate) blocks: usize,
    /// Our medians over lines, over runs.
    pub(crate) ours_ns: Estimate,
    /// Median over runs of the ends of a run's own interval.
    pub(crate) own_interval_ns: (f64, f64),
    /// Median over runs of the percentiles over lines.
    pub(crate) ours_p5_ns: f64,
    pub(crate) ours_p95_ns: f64,
    /// The peer's means, over processes.
    pub(crate) peer_ns: Estimate,
    /// Percentiles over processes.
    pub(crate) peer_p5_ns: f64,
    pub(crate) peer_p95_ns: f64,
    /// Whether the peer's median lies between our percentiles over lines.
    pub(crate) inside: bool,
    /// Peer over ours, block by block.
    pub(crate) ratio: Estimate,
    /// Median seconds of one process.
    pub(crate) ours_process_s: f64,
    pub(crate) peer_process_s: f64,
    /// Seconds for a median within 1 %: those spent, times (half-width reached / 1 %) squared. By
    /// the spread of our medians between runs, by one run's own interval, and by the spread of
    /// the peer's means between processes. `None` where there were too few to tell.
    pub(crate) ours_certain_s: Option<f64>,
    pub(crate) own_certain_s: f64,
    pub(crate) peer_certain_s: Option<f64>,
}

/// How far the medians of two runs of ours next to one another are apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    /// |second / first - 1|.
    pub(crate) share: f64,
    /// Either run noticed that a base changed.
    pub(crate) noticed: bool,
    /// The spread over lines differs: another base between the runs, that neither could notice.
    pub(crate) other_spread: bool,
}

/// Changes of one kind together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Changes {
    pub(crate) pairs: usize,
    /// Median of |change|, `None` without pairs.
    pub(crate) median: Option<f64>,
    pub(crate) largest: Option<f64>,
    /// Pairs at most 0.5 % apart.
    pub(crate) within: usize,
}

/// Whether figures are made of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fate {
    /// They are.
    Used,
    /// Others were at work meanwhile.
    Disturbed,
    /// A tool disagreed with itself: the host moved a processor.
    Jumped,
}

/// Everything that the comparison found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(crate) placements: Vec<Placement>,
    /// What became of each block and each control.
    pub(crate) blocks: Vec<Fate>,
    pub(crate) controls: Vec<Fate>,
    /// Arm A over arm B, both ours: what this comparison can resolve.
    pub(crate) control: Option<Estimate>,
    pub(crate) changes: Vec<Change>,
    /// All pairs that did not jump; those in which no run noticed a base change; of these, those
    /// with the same spread over lines.
    pub(crate) change_all: Changes,
    pub(crate) change_unnoticed: Changes,
    pub(crate) change_same_base: Changes,
}

/// Computes all figures.
pub(crate) fn figures(series: &Series) -> Figures {
    let blocks: Vec<Fate> = series.blocks.iter().map(fate).collect();
    let controls: Vec<Fate> = series.controls.iter().map(control_fate).collect();
    let steady: Vec<&Block> = used(&series.blocks, &blocks);
    let arms: Vec<f64> = used(&series.controls, &controls).into_iter().map(arms).collect();
    let changes = changes(series);
    let of = |keep: &dyn Fn(&Change) -> bool| summed(changes.iter().filter(|c| keep(c)));
    Figures {
        placements: by_placement(&steady).iter().filter_map(|p| placement(p)).collect(),
        blocks,
        controls,
        control: estimate(&arms),
        change_all: of(&|_| true),
        change_unnoticed: of(&|c| !c.noticed),
        change_same_base: of(&|c| !c.noticed && !c.other_spread),
        changes,
    }
}

fn used<'s, T>(items: &'s [T], fates: &[Fate]) -> Vec<&'s T> {
    items.iter().zip(fates).filter(|(_, fate)| **fate == Fate::Used).map(|(item, _)| item).collect()
}

fn apart(a: f64, b: f64) -> bool {
    a.max(b) > JUMP * a.min(b)
}

fn fate(block: &Block) -> Fate {
    let ([a, d], [b, c]) = (block.ours, block.peer);
    let jumped = apart(a.median_ns, d.median_ns) || apart(b.mean_ns, c.mean_ns);
    fate_of(block.disturbance, jumped)
}

fn control_fate(control: &Control) -> Fate {
    let mut pairs = control.ours.windows(2);
    fate_of(control.disturbance, pairs.any(|w| apart(w[0].median_ns, w[1].median_ns)))
}

fn fate_of(disturbance: Disturbance, jumped: bool) -> Fate {
    match (disturbance.is_quiet(), jumped) {
        (false, _) => Fate::Disturbed,
        (true, true) => Fate::Jumped,
        (true, false) => Fate::Used,
    }
}

/// Arm A over arm B.
fn arms(control: &Control) -> f64 {
    let [a, b, c, d] = control.ours.map(|run| run.median_ns);
    (a + d) / (b + c)
}

fn level(block: &Block) -> f64 {
    0.5 * (block.ours[0].median_ns + block.ours[1].median_ns)
}

/// Blocks in ascending order of our latency, cut where it jumps.
fn by_placement<'s>(blocks: &[&'s Block]) -> Vec<Vec<&'s Block>> {
    let mut sorted = blocks.to_vec();
    sorted.sort_by(|a, b| level(a).total_cmp(&level(b)));
    sorted.chunk_by(|a, b| !apart(level(a), level(b))).map(<[_]>::to_vec).collect()
}

fn placement(blocks: &[&Block]) -> Option<Placement> {
    let ours: Vec<Ours> = blocks.iter().flat_map(|b| b.ours).collect();
    let peer: Vec<f64> = blocks.iter().flat_map(|b| b.peer).map(|p| p.mean_ns).collect();
    let peer_s: Vec<f64> = blocks.iter().flat_map(|b| b.peer).map(|p| p.seconds).collect();
    let of = |field: fn(&Ours) -> f64| ours.iter().map(field).collect::<Vec<f64>>();
    let middle = |field: fn(&Ours) -> f64| median(&of(field));
    let ours_ns = estimate(&of(|o| o.median_ns))?;
    let peer_ns = estimate(&peer)?;
    let (ours_p5_ns, ours_p95_ns) = (middle(|o| o.p5_ns)?, middle(|o| o.p95_ns)?);
    let own = middle(|o| 0.5 * (o.hi_ns - o.lo_ns) / o.median_ns)?;
    let ours_s = of(|o| o.seconds);
    let ratios: Vec<f64> =
        blocks.iter().map(|b| 0.5 * (b.peer[0].mean_ns + b.peer[1].mean_ns) / level(b)).collect();
    let mut sorted = peer;
    sorted.sort_by(f64::total_cmp);
    Some(Placement {
        blocks: blocks.len(),
        ours_ns,
        own_interval_ns: (middle(|o| o.lo_ns)?, middle(|o| o.hi_ns)?),
        ours_p5_ns,
        ours_p95_ns,
        peer_ns,
        peer_p5_ns: quantile(&sorted, 0.05)?,
        peer_p95_ns: quantile(&sorted, 0.95)?,
        inside: (ours_p5_ns..=ours_p95_ns).contains(&peer_ns.median),
        ratio: estimate(&ratios)?,
        ours_process_s: median(&ours_s)?,
        peer_process_s: median(&peer_s)?,
        ours_certain_s: all_certain_s(&ours_s, half_width(ours_ns)),
        own_certain_s: certain_s(median(&ours_s)?, own),
        peer_certain_s: all_certain_s(&peer_s, half_width(peer_ns)),
    })
}

/// Of all processes together, which reached `half_width`; `None` where they are too few for their
/// interval to be believed.
fn all_certain_s(seconds: &[f64], half_width: f64) -> Option<f64> {
    let enough = seconds.len() >= PROCESSES_MIN;
    enough.then(|| certain_s(seconds.iter().sum(), half_width))
}

/// An interval shrinks with the root of the time spent, so time grows with its square.
fn certain_s(spent_s: f64, half_width: f64) -> f64 {
    spent_s * (half_width / CERTAINTY).powi(2)
}

fn half_width(of: Estimate) -> f64 {
    0.5 * (of.hi - of.lo) / of.median
}

fn estimate(values: &[f64]) -> Option<Estimate> {
    let Interval { median, lo, hi } = bootstrap_median_ci(values, RESAMPLES, CONFIDENCE, SEED)?;
    Some(Estimate { median, lo, hi, n: values.len() })
}

/// Of the two runs of ours in each block, and of the first and the second two of each control.
fn changes(series: &Series) -> Vec<Change> {
    let quiet = |d: &Disturbance| d.is_quiet();
    let blocks = series.blocks.iter().filter(|b| quiet(&b.disturbance)).map(|b| b.ours);
    let controls = series.controls.iter().filter(|c| quiet(&c.disturbance)).flat_map(|c| {
        let [a, b, c, d] = c.ours;
        [[a, b], [c, d]]
    });
    blocks
        .chain(controls)
        .filter(|[a, b]| !apart(a.median_ns, b.median_ns))
        .map(|[a, b]| {
            let change = |x: f64, y: f64| (y / x - 1.0).abs();
            Change {
                share: change(a.median_ns, b.median_ns),
                noticed: a.base_changes + b.base_changes > 0,
                other_spread: change(a.p5_ns, b.p5_ns) > SAME_SPREAD
                    || change(a.p95_ns, b.p95_ns) > SAME_SPREAD,
            }
        })
        .collect()
}

fn summed<'c>(changes: impl Iterator<Item = &'c Change>) -> Changes {
    let shares: Vec<f64> = changes.map(|c| c.share).collect();
    Changes {
        pairs: shares.len(),
        median: median(&shares),
        largest: shares.iter().copied().max_by(f64::total_cmp),
        within: shares.iter().filter(|s| **s <= STEADY).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody else was at work.
    const OURS: Disturbance = Disturbance {
        others: Some(0.0),
        steal: Some(0.0),
        pressure: None,
        waits: None,
        throttled: None,
        clock: None,
    };
    use crate::peer::series::Peer;

    fn ours(median_ns: f64) -> Ours {
        Ours {
            seconds: 0.4,
            median_ns,
            lo_ns: median_ns * 0.99,
            hi_ns: median_ns * 1.01,
            p5_ns: median_ns * 0.95,
            p95_ns: median_ns * 1.05,
            lines: 64,
            base_changes: 0,
        }
    }

    fn block(ours_ns: [f64; 2], peer_ns: [f64; 2]) -> Block {
        Block {
            ours: ours_ns.map(ours),
            peer: peer_ns.map(|mean_ns| Peer { seconds: 0.02, mean_ns }),
            disturbance: OURS,
        }
    }

    #[test]
    fn tools_are_compared_within_one_placement_and_jumps_are_listed() {
        let mut blocks = vec![
            block([27.0, 27.1], [28.0, 27.5]),
            block([27.0, 107.0], [28.0, 29.0]),
            block([107.0, 106.0], [150.0, 149.0]),
            block([27.2, 27.0], [27.0, 36.0]),
        ];
        let mut disturbed = block([54.0, 54.0], [500.0, 510.0]);
        disturbed.disturbance.others = Some(0.2);
        blocks.push(disturbed);
        blocks.extend((0..6).map(|_| block([27.0, 27.0], [27.9, 28.1])));
        let found = figures(&Series { blocks, controls: Vec::new() });
        assert_eq!(
            found.blocks[..5],
            [Fate::Used, Fate::Jumped, Fate::Used, Fate::Jumped, Fate::Disturbed]
        );
        assert!(found.blocks[5..].iter().all(|f| *f == Fate::Used));
        let [near, far] = &found.placements[..] else { panic!("{:#?}", found.placements) };
        assert_eq!((near.blocks, near.ours_ns.n, near.peer_ns.n), (7, 14, 14));
        assert!(near.inside && !far.inside, "a tool that disagrees is not left out: {far:#?}");
        assert!((near.ratio.median - 28.0 / 27.0).abs() < 1e-12);
        assert!(far.ratio.median > 1.3);
        assert_eq!(found.control, None, "no control, no resolution");
    }

    #[test]
    fn four_times_the_time_buys_half_the_interval() {
        // Half-width 1 % is what is asked for: the time of one run. 2 % costs four times that.
        assert!((certain_s(0.4, 0.01) - 0.4).abs() < 1e-12);
        assert!((certain_s(8.0, 0.02) - 32.0).abs() < 1e-9);
        let of = |blocks: usize| {
            let blocks = vec![block([27.0, 27.0], [27.0, 27.0]); blocks];
            figures(&Series { blocks, controls: Vec::new() }).placements.remove(0)
        };
        let many = of(4);
        assert!((many.own_certain_s - 0.4).abs() < 1e-9, "{many:?}");
        assert!(many.peer_certain_s.is_some_and(|s| s.abs() < 1e-12), "no spread at all");
        assert_eq!(of(3).peer_certain_s, None, "six processes say nothing of a spread");
    }

    #[test]
    fn changes_are_told_apart_by_what_explains_them() {
        let steady = block([27.0, 27.1], [28.0, 28.0]);
        let mut noticed = block([27.0, 27.5], [28.0, 28.0]);
        noticed.ours[1].base_changes = 2;
        let mut other = block([27.0, 27.3], [28.0, 28.0]);
        other.ours[1].p95_ns *= 1.1;
        let jumped = block([27.0, 107.0], [28.0, 28.0]);
        let mut disturbed = block([27.0, 30.0], [28.0, 28.0]);
        disturbed.disturbance.steal = Some(0.3);
        let ours = [27.0, 27.0, 27.0, 27.27].map(ours);
        let controls = vec![Control { ours, disturbance: OURS }];
        let blocks = vec![steady, noticed, other, jumped, disturbed];
        let series = Series { blocks, controls };
        let found = figures(&series);
        assert_eq!((found.change_all.pairs, found.change_all.within), (5, 2));
        assert_eq!(found.change_unnoticed.pairs, 4);
        assert_eq!(found.change_same_base.pairs, 3);
        assert!(found.change_same_base.largest.is_some_and(|c| (c - 0.01).abs() < 1e-9));
        let control = found.control.expect("one control");
        assert!((control.median - 54.27 / 54.0).abs() < 1e-12);
    }
}
