//! The numbers of the figures as tables, each with its reading in its words.

use isochrone_machine::Value;
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_stats::Interval;
use isochrone_units::{Reading, Standing};
use isochrone_workloads::figure4::{Arm, BesideCurve, Curve, Knowledge, Measure, Placing};

use super::learnt::part;
use super::{Benched, Ends, PUBLISHED_SPREAD, Reproduction, shape, spread, spread_of_a_block};
use crate::latency_checker::words::signed;

fn percent(gain: f64) -> String {
    format!("{} %", signed(100.0 * gain, 1))
}

/// Figure 2: how far apart blocks are.
pub(super) fn figure2(all: &Reproduction) -> Table {
    let mut table = Table::new([
        "machine",
        "level",
        "reading",
        "slow over fastest (19 of 20 below)",
        "one block, two cores (19 of 20 below)",
    ])
    .keyed(3);
    table.row([
        "Xeon Phi 5110P, 60 cores".into(),
        "memory".into(),
        Reading::Published.as_str().into(),
        Cell::missing(),
        Cell::number(PUBLISHED_SPREAD, fmt::ratio(PUBLISHED_SPREAD)),
    ]);
    for blocks in all.blocks() {
        let title = all.measured.as_ref().map_or("", |measured| measured.title.as_str());
        table.row([
            format!("{title}, {} cores", blocks.cores.len()).into(),
            blocks.level.as_str().into(),
            blocks.reading.as_str().into(),
            Cell::maybe(spread(blocks), fmt::ratio),
            Cell::maybe(spread_of_a_block(blocks), fmt::ratio),
        ]);
    }
    table
}

/// Figure 4a of one shape: the gain by number of cores, and at the ends of the range of a hop.
pub(super) fn gains(curve: &Curve, ends: Option<Ends<'_>>) -> Table {
    let mut headers: Vec<String> =
        ["cores", "gain, simulated", "least", "most"].map(str::to_owned).to_vec();
    let hops = ends.iter().flat_map(|ends| ends.hop_cycles);
    headers.extend(hops.map(|hop| format!("hop {}", fmt::significant(hop, 2))));
    headers.push(Reading::Published.to_string());
    let mut table = Table::new(headers);
    for (at, point) in curve.points.iter().enumerate() {
        let (mean, least, most) = point.gain();
        let gain = |gain: f64| Cell::number(gain, percent(gain));
        let cores = Cell::number(f64::from(point.cores), point.cores.to_string());
        let of_ends = ends.iter().flat_map(|ends| {
            let gains = ends.gains.get(at).copied();
            (0..2).map(move |end| Cell::maybe(gains.map(|gains| gains[end]), percent))
        });
        let row = [cores, gain(mean), gain(least), gain(most)].into_iter().chain(of_ends);
        table.row(row.chain([Cell::text(published_at(point.cores))]));
    }
    table
}

/// What the paper's text says of a number of cores.
fn published_at(cores: u16) -> &'static str {
    use isochrone_workloads::figure4::PUBLISHED;
    if PUBLISHED.lowest_at.contains(&cores) {
        "among the lowest: 17 %"
    } else if PUBLISHED.highest_at == cores {
        "the highest: 28 %"
    } else {
        "17 to 28 %"
    }
}

/// Figure 4a by every reading: of each chip the gain at the numbers of cores that the text names, with the paper's
/// lists and with our nearest quarter.
pub(super) fn readings(all: &Reproduction) -> Table {
    let found = &all.readings;
    let mut headers: Vec<String> =
        ["60 % are of", "order of stops", "hop", "search", "placed"].map(str::to_owned).to_vec();
    headers.extend(found.cores.iter().map(|cores| format!("{cores} cores")));
    let mut table = Table::new(headers).keyed(5);
    let drawn: Vec<u64> = found.runs.iter().filter_map(|run| run.order).collect();
    for run in &found.runs {
        let place = |order| drawn.iter().position(|one| *one == order).unwrap_or(0);
        let order =
            run.order.map_or("the file's".to_owned(), |order| format!("drawn {}", place(order)));
        for (curve, gains) in all.simulated.curves.iter().zip(&run.gains) {
            for placing in Placing::ALL {
                let head: [Cell; 5] = [
                    run.spread.as_str().into(),
                    order.as_str().into(),
                    Cell::number(run.hop_cycles, fmt::significant(run.hop_cycles, 3)),
                    super::rows::word(curve).into(),
                    placing.as_str().into(),
                ];
                let gains = gains.iter().map(|gain| gain[placing as usize]);
                table.row(head.into_iter().chain(gains.map(|g| Cell::number(g, percent(g)))));
            }
        }
    }
    table
}

/// Figure 4b of one shape: misses of core 0 for each node expanded.
pub(super) fn misses(curve: &Curve) -> Table {
    let mut table = Table::new(["cores", "oblivious", "aware", "ratio"]);
    for point in &curve.points {
        let Some(run) = point.runs.first() else { continue };
        let [oblivious, aware] = run.misses_per_expansion();
        table.row([
            Cell::number(f64::from(point.cores), point.cores.to_string()),
            Cell::number(oblivious, fmt::significant(oblivious, 4)),
            Cell::number(aware, fmt::significant(aware, 4)),
            Cell::number(aware / oblivious, format!("{:.4}", aware / oblivious)),
        ]);
    }
    table
}

/// How a number is known, in a word: known ones were published, or derived from such.
pub(super) const fn standing(value: &Value) -> &'static str {
    match (value.standing, value.reading) {
        (Standing::Known, Reading::Published) => Reading::Published.as_str(),
        (Standing::Known, _) => "derived",
        (other, _) => other.as_str(),
    }
}

/// What the simulation is made of.
pub(super) fn constants(all: &Reproduction) -> Table {
    let mut table = Table::new(["constant", "value", "unit", "how it is known"]);
    for constant in all.simulated.constants.iter().chain(&super::learner::constants()) {
        let value = &constant.value;
        table.row([
            constant.name.clone().into(),
            Cell::number(value.number, fmt::significant(value.number, 4)),
            value.unit.clone().into(),
            format!("{}: {}", standing(value), value.source).into(),
        ]);
    }
    table
}

/// What each assumption is worth.
pub(super) fn variations(all: &Reproduction) -> Table {
    let mut headers = vec!["changed".to_owned()];
    headers.extend(all.simulated.curves.iter().map(|curve| format!("gain, {}", shape(curve))));
    let mut table = Table::new(headers);
    for variation in &all.variations {
        let gains = variation.gains.iter().map(|gain| Cell::number(*gain, percent(*gain)));
        table.row(std::iter::once(Cell::text(variation.what.clone())).chain(gains));
    }
    table
}

/// What was learnt of the modelled memory, a row a seed.
pub(super) fn knowledge(all: &Reproduction) -> Table {
    let mut table = Table::new([
        "run",
        "cores with a base",
        "bases",
        "lines of a base",
        "pages with a code",
        "pages with the right one",
    ]);
    let percent = |share: f64| Cell::number(share, format!("{:.3} %", 100.0 * share));
    let count = |count: usize| Cell::number(count as f64, count.to_string());
    for (run, known) in (1_usize..).zip(&all.learning.knowledge) {
        let Knowledge { cores, bases, indices, decoded, right } = *known;
        let shares = [percent(decoded), percent(right)];
        let row = [count(run), percent(cores), count(bases), count(indices)];
        table.row(row.into_iter().chain(shares));
    }
    table
}

/// One shape as learnt, beside the oracle: medians over seeds.
pub(super) fn learnt(curve: &BesideCurve) -> Table {
    let mut table = Table::new([
        "cores",
        "near, any lines",
        "learnt",
        "oracle",
        "of its gain",
        "time, learnt",
        "oracle",
        "of its gain",
        "codes alone",
        "A/A control",
    ])
    .keyed(1);
    let single = |interval: Option<Interval>| {
        Cell::maybe(interval.map(|interval| interval.median), |median| format!("{median:.3}"))
    };
    for point in &curve.points {
        let near = |arm| single(point.over_runs(|run| run.near_share(arm)));
        let time = |arm| point.over_runs(|run| run.time(arm));
        let of_gain = |measure| {
            part(point, measure).map_or_else(Cell::missing, |(part, said)| {
                Cell::number(part.median, format!("{} {}", with_interval(part), said.as_str()))
            })
        };
        table.row([
            Cell::number(f64::from(point.cores), point.cores.to_string()),
            near(Arm::Oblivious),
            near(Arm::Learnt),
            near(Arm::Oracle),
            of_gain(Measure::NearShare),
            single(time(Arm::Learnt)),
            single(time(Arm::Oracle)),
            of_gain(Measure::Time),
            single(point.of_oracle(Measure::NearShare, Arm::LearntCodes)),
            time(Arm::Again).map_or_else(Cell::missing, |control| {
                Cell::number(control.median, with_interval(control))
            }),
        ]);
    }
    table
}

fn with_interval(of: Interval) -> String {
    format!("{:.3} [{:.3}, {:.3}]", of.median, of.lo, of.hi)
}

/// A* on this machine.
pub(super) fn benched(benched: &Benched) -> Table {
    let mut table = Table::new([
        "shape",
        "cores",
        "MiB",
        "nodes/s",
        "aware over oblivious",
        "oracle",
        "A/A control",
    ])
    .keyed(3);
    for run in &benched.runs {
        let ratio = |ratio: Option<super::benched::Interval>| {
            ratio.map_or_else(Cell::missing, |r| {
                Cell::number(r.median, format!("{:.3} [{:.3}, {:.3}]", r.median, r.lo, r.hi))
            })
        };
        table.row([
            run.shape.clone().into(),
            Cell::number(run.cores.len() as f64, run.cores.len().to_string()),
            Cell::number(run.mib, fmt::significant(run.mib, 3)),
            Cell::maybe(run.nodes_per_s, |n| fmt::significant(n, 3)),
            ratio(run.aware_over_oblivious),
            ratio(run.oracle_over_oblivious),
            ratio(run.aa_control),
        ]);
    }
    table
}
