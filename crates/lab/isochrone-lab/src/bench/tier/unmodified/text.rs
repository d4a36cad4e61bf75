//! The pairs as a table, their goals, and where another is to be preferred.

use isochrone_console::turns::Verdict;
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};

use super::{Order, PROGRAMS, Side, Unmodified};
use crate::bench::goals::{Beside, Goal};

/// How many times faster than swap in compressed memory and on a disk a program must be that goes along its data.
const OVER_ZRAM: f64 = 1.3;
const OVER_SWAP: f64 = 2.0;
/// How many times zram's time a program may take that goes anywhere, and the plain program's where all data fit.
const RANDOM_MOST: f64 = 1.5;
const FIT_MOST: f64 = 1.05;

/// Of both sides, ours first.
fn both(row: &Unmodified, of: impl Fn(&Side) -> Option<f64>, digits: usize) -> Cell {
    let of = |side: &Option<Side>| side.as_ref().and_then(&of);
    let word = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
    let (ours, theirs) = (of(&row.ours), of(&row.theirs));
    if ours.is_none() && theirs.is_none() {
        return Cell::missing();
    }
    Cell::number(ours.unwrap_or(0.0), format!("{} / {}", word(ours), word(theirs)))
}

/// The pairs that have figures. What has two numbers has ours first.
pub(crate) fn table(rows: &[Unmodified]) -> Table {
    let mut table = Table::new([
        "program",
        "beside",
        "far",
        "ours",
        "control",
        "seconds",
        "MiB in fast memory",
        "of",
        "MiB compressed",
        "faults",
        "us a fault",
    ])
    .keyed(3);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    for row in rows {
        let Some(faster) = row.faster else { continue };
        let far = match row.compressor.as_deref() {
            Some(other) if other != row.far => format!("{} ({other})", row.far),
            _ => row.far.to_owned(),
        };
        let control = faster.control;
        table.row([
            row.program.into(),
            row.peer.into(),
            far.into(),
            Cell::number(faster.ratio.median, faster.ratio.interval()),
            control.map_or_else(Cell::missing, |r| Cell::number(r.median, r.interval())),
            both(row, |side| Some(side.seconds?.median), 3),
            both(row, |side| side.fast_bytes_peak.map(mib), 0),
            Cell::maybe(row.data_bytes.map(mib), |mib| format!("{mib:.0}")),
            both(row, |side| side.compressed_bytes.map(mib), 1),
            both(row, |side| side.faults, 0),
            both(row, |side| side.fault_us, 1),
        ]);
    }
    table
}

/// Of a program beside a peer, where both have figures.
fn found(rows: &[Unmodified], program: &str, peer: &str) -> Option<Beside> {
    let mut rows = rows.iter().filter(|row| (row.program, row.peer) == (program, peer));
    rows.find_map(|row| row.faster).map(|faster| (faster.ratio, faster.control))
}

/// A goal for each pair that has one; those without figures are not known.
pub(crate) fn goals(rows: &[Unmodified]) -> Vec<Goal> {
    let mut all = Vec::new();
    if rows.is_empty() {
        return all;
    }
    let mut goal = |words: String, wanted: f64, program: &str, peer: &str| {
        all.push(Goal::new(&words, wanted, found(rows, program, peer)));
    };
    for program in &PROGRAMS {
        let name = program.name;
        match program.order {
            Order::Along => {
                goal(format!("{name}, speed over zram"), OVER_ZRAM, name, "zram");
                goal(format!("{name}, speed over swap"), OVER_SWAP, name, "swap");
            }
            Order::Random => {
                let words = format!("{name}, speed over zram ({RANDOM_MOST} times its time)");
                goal(words, 1.0 / RANDOM_MOST, name, "zram");
            }
        }
        let words = format!("{name}, all fits, speed over plain ({FIT_MOST} of its time)");
        goal(words, 1.0 / FIT_MOST, name, "plain");
    }
    all
}

/// Where zram wins: the programs that are faster under it, with how much, in one line.
pub(crate) fn recommended(rows: &[Unmodified]) -> Option<String> {
    let slower = rows.iter().filter(|row| row.peer == "zram").filter_map(|row| {
        let faster = row.faster?;
        let lost = faster.ratio.verdict(faster.control) == Verdict::Loss;
        lost.then(|| {
            format!("{} ({}, {})", row.program, row.far, fmt::ratio(1.0 / faster.ratio.median))
        })
    });
    let slower: Vec<String> = slower.collect();
    (!slower.is_empty()).then(|| {
        format!("zram is faster, and needs no code: use it for programs as {}.", slower.join(", "))
    })
}

/// Who was killed at the limit and has more than that, in one line.
pub(crate) fn roomed(rows: &[Unmodified]) -> Option<String> {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let given = rows.iter().filter_map(|row| {
        let room = row.room_bytes.filter(|room| *room > 0)?;
        let of = row.limit_bytes.map(|limit| format!(" on {:.1}", mib(limit)));
        let more = format!("{:.1}{} MiB", mib(room), of.unwrap_or_default());
        Some(format!("{} beside {}, {} ({more})", row.program, row.peer, row.far))
    });
    let given: Vec<String> = given.collect();
    (!given.is_empty()).then(|| {
        format!("Killed at the limit, so the peer had more than ours: {}.", given.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use isochrone_console::turns::Ratio;
    use isochrone_units::{Reading, Readings};

    use super::super::super::curves::Controlled;
    use super::*;

    fn row(program: &'static str, peer: &'static str, median: f64) -> Unmodified {
        let readings = Readings::One(Reading::Measured);
        let ratio = Ratio { median, lo: median * 0.99, hi: median * 1.01, blocks: 20, readings };
        let faster = Controlled { ratio, control: None, oversubscribed: false };
        Unmodified {
            program,
            peer,
            far: "lz4",
            compressor: None,
            data_bytes: None,
            limit_bytes: None,
            beside_bytes: None,
            room_bytes: None,
            plain_s: None,
            faster: Some(faster),
            verified: Some(true),
            ours: None,
            theirs: None,
            missing: None,
            series: None,
        }
    }

    fn met(rows: &[Unmodified], words: &str) -> Option<bool> {
        let goals = goals(rows);
        let goal = goals.iter().find(|goal| goal.words().contains(words));
        goal.expect("there is such a goal").met
    }

    #[test]
    fn what_goes_along_must_be_faster_and_what_goes_anywhere_not_much_slower() {
        let rows = |median| {
            [("sort", "zram"), ("sort", "swap"), ("sqlite", "zram"), ("redis", "plain")]
                .map(|(program, peer)| row(program, peer, median))
        };
        let of = |median| {
            [
                "sort, speed over zram",
                "sort, speed over swap",
                "sqlite, speed over zram",
                "redis, all fits",
            ]
            .map(|words| met(&rows(median), words))
        };
        assert_eq!(of(2.1), [Some(true); 4]);
        assert_eq!(of(1.5), [Some(true), Some(false), Some(true), Some(true)]);
        assert_eq!(of(0.8), [Some(false), Some(false), Some(true), Some(false)]);
        assert_eq!(of(0.5), [Some(false); 4]);
        assert_eq!(met(&rows(2.1), "pagerank, speed over zram"), None);
        assert!(goals(&[]).is_empty());
    }

    #[test]
    fn who_has_more_room_than_ours_is_named_with_how_much() {
        let mut rows = [row("sort", "zram", 1.0), row("sweep", "zram", 1.0)];
        assert_eq!(roomed(&rows), None);
        (rows[0].room_bytes, rows[0].limit_bytes) = (Some(4 << 20), Some(32 << 20));
        rows[1].room_bytes = Some(0);
        let line = roomed(&rows).unwrap();
        assert!(line.ends_with(": sort beside zram, lz4 (4.0 on 32.0 MiB)."), "{line}");
    }

    #[test]
    fn zram_is_recommended_where_it_wins_and_only_there() {
        let rows =
            [row("sweep", "zram", 1.4), row("sqlite", "zram", 0.5), row("sort", "swap", 0.5)];
        let line = recommended(&rows).expect("it wins in one");
        assert!(line.contains("sqlite (lz4, 2.00") && !line.contains("sweep"), "{line}");
        assert!(!line.contains("sort"), "{line}");
        assert_eq!(recommended(&rows[..1]), None);
    }
}
