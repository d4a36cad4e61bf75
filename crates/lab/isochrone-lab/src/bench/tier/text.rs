//! The figures as text.

use crate::bench::findings::Findings;
use isochrone_report::json::Format;
use std::fmt::Write as _;

use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_stats::Spread;
use isochrone_tier::live::Mode;

use super::curves::Controlled;
use super::{Figures, unmodified};
use crate::bench::goals::Goal;
use crate::tier::request::Tables;

/// Behind a ratio of more workers and movers than cores.
const CROWDED: &str = "*";

fn us(value: f64) -> Cell {
    Cell::number(value, format!("{value:.2}"))
}

fn spread(value: Option<Spread>) -> Cell {
    value.map_or_else(Cell::missing, |s| {
        // Of one run there is no spread to show.
        let spread = if s.least < s.most {
            format!(" [{:.2}, {:.2}]", s.least, s.most)
        } else {
            String::new()
        };
        Cell::number(s.median, format!("{:.2}{spread}", s.median))
    })
}

fn ratio(value: Option<Controlled>) -> Cell {
    value.map_or_else(Cell::missing, |c| {
        let mark = if c.oversubscribed { CROWDED } else { "" };
        Cell::number(c.ratio.median, format!("{}{mark}", c.ratio.interval()))
    })
}

const fn tables_word(tables: Tables) -> &'static str {
    match tables {
        Tables::Shared => "shared",
        Tables::Separated => "separated",
    }
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchTier;

    fn text(&self, width: u16) -> String {
        let mut out = String::new();
        let mut table = |head: &str, table: Table| {
            if !table.is_empty() {
                _ = writeln!(out, "{head}\n{}\n", table.to_terminal(width));
            }
        };
        table("What a page costs, microseconds [least, most]:", self.costs());
        table("Where the time of a replaced page goes, microseconds:", self.parts());
        table("Half of the data in fast memory, time over all in memory:", self.points());
        table("Other programs with half of their data in fast memory:", self.programs());
        table("A mapped array, time over that of the choice by what is seen:", self.groups());
        table("Threads that fault at once in a mapped array:", self.threads());
        table("A random walk whose pages a second worker tells beforehand:", self.hints());
        table("Beside others, how many times faster ours is:", self.pairs());
        table(
            "Unmodified programs, how many times faster ours is (two numbers: ours / theirs):",
            unmodified::table(&self.unmodified),
        );
        if out.contains(CROWDED) {
            _ = writeln!(
                out,
                "{CROWDED} more workers and movers than cores: the ratio says little."
            );
        }
        for sentence in self.sentences() {
            _ = writeln!(out, "{sentence}");
        }
        out
    }
}

impl Figures {
    fn costs(&self) -> Table {
        let mut table = Table::new(["", "us"]);
        let Some(costs) = &self.fault_costs else { return table };
        table.row(["missing".into(), spread(costs.missing_us)]);
        table.row(["minor".into(), spread(costs.minor_us)]);
        table.row(["mapped ahead, by a mover".into(), spread(costs.prefetched_map_us)]);
        for row in &costs.evict_and_fill {
            table.row([format!("evict and fill, batches of {}", row.batch).into(), spread(row.us)]);
        }
        table
    }

    fn parts(&self) -> Table {
        let mut table = Table::new([
            "tables",
            "workers",
            "batch",
            "lock",
            "page table",
            "shootdown",
            "copy",
            "other",
            "all",
            "interrupts a batch",
        ])
        .keyed(3);
        for row in &self.breakdown {
            table.row([
                tables_word(row.tables).into(),
                Cell::number(f64::from(row.workers), row.workers.to_string()),
                Cell::number(f64::from(row.batch), row.batch.to_string()),
                us(row.lock),
                us(row.page_table),
                Cell::maybe(row.shootdown, |v| format!("{v:.2}")),
                us(row.copy),
                us(row.other),
                us(row.total),
                Cell::maybe(row.interrupts_per_batch, |v| format!("{v:.2}")),
            ]);
        }
        table
    }

    fn points(&self) -> Table {
        let mut table = Table::new([
            "workers",
            "radius",
            "compute, us",
            "I",
            "I, batched",
            "regular",
            "PSPT",
            "PSPT and movers",
            "control",
            // Where the two numbers were read: no cell has room for it.
            "movers over bound, measured over predicted",
            "coverage",
        ])
        .keyed(2);
        for p in &self.curves {
            let control = p.pspt.and_then(|c| c.control);
            table.row([
                Cell::number(f64::from(p.workers), p.workers.to_string()),
                Cell::number(p.radius as f64, p.radius.to_string()),
                us(p.t_compute),
                us(p.intensity),
                us(p.intensity_batched),
                ratio(p.regular),
                ratio(p.pspt),
                ratio(p.pspt_movers),
                control.map_or_else(Cell::missing, |r| Cell::number(r.median, r.to_string())),
                ratio(p.movers_over_bound),
                Cell::maybe(p.prefetch.map(|p| p.coverage), fmt::percent),
            ]);
        }
        table
    }

    fn programs(&self) -> Table {
        let mut table = Table::new([
            "program",
            "workers",
            "MiB",
            "how",
            "over all in memory",
            "control",
            "fetched",
            "brought",
        ])
        .keyed(4);
        for program in &self.workloads {
            for way in &program.ways {
                let control = way.over_memory.and_then(|c| c.control);
                table.row([
                    program.workload.into(),
                    Cell::number(f64::from(program.workers), program.workers.to_string()),
                    Cell::number(program.bytes as f64, (program.bytes >> 20).to_string()),
                    way.name.into(),
                    ratio(way.over_memory),
                    control.map_or_else(Cell::missing, |r| Cell::number(r.median, r.to_string())),
                    Cell::number(way.missing, format!("{:.0}", way.missing)),
                    Cell::number(way.prefetched, format!("{:.0}", way.prefetched)),
                ]);
            }
        }
        table
    }

    fn groups(&self) -> Table {
        let mut table =
            Table::new(["program", "far", "pages", "ms", "over the choice", "control", "faults"])
                .keyed(3);
        for row in &self.mapped.groups {
            let faults = |faults: f64| Cell::number(faults, format!("{faults:.0}"));
            table.row([
                row.program.into(),
                row.far.into(),
                "chosen".into(),
                spread(row.chosen_ms),
                Cell::missing(),
                Cell::missing(),
                faults(row.chosen_faults),
            ]);
            for group in &row.groups {
                let control = group.over_chosen.and_then(|c| c.control);
                table.row([
                    row.program.into(),
                    row.far.into(),
                    Cell::number(group.pages as f64, group.pages.to_string()),
                    Cell::missing(),
                    ratio(group.over_chosen),
                    control.map_or_else(Cell::missing, |r| Cell::number(r.median, r.to_string())),
                    faults(group.faults),
                ]);
            }
        }
        table
    }

    fn threads(&self) -> Table {
        let mut table = Table::new([
            "resolved by",
            "us a fault, one thread",
            "processor time of it, us",
            "threads",
            "faster than one",
            "control",
        ])
        .keyed(1);
        for row in &self.mapped.threads {
            let control = row.faster.and_then(|c| c.control);
            table.row([
                if row.mode == Mode::Signal.as_str() { "SIGBUS" } else { "handler threads" }.into(),
                spread(row.fault_us),
                spread(row.processor_us),
                Cell::number(f64::from(row.threads), row.threads.to_string()),
                ratio(row.faster),
                control.map_or_else(Cell::missing, |r| Cell::number(r.median, r.to_string())),
            ]);
        }
        table
    }

    fn hints(&self) -> Table {
        let mut table = Table::new([
            "far",
            "tables",
            "untold, ms",
            "told, ms",
            "faults",
            "where told",
            "faster",
            "control",
        ])
        .keyed(2);
        let faults = |faults: f64| Cell::number(faults, format!("{faults:.0}"));
        for row in &self.hints {
            let control = row.faster.and_then(|c| c.control);
            table.row([
                row.far.into(),
                tables_word(row.tables).into(),
                spread(row.untold_ms),
                spread(row.told_ms),
                faults(row.untold_faults),
                faults(row.told_faults),
                ratio(row.faster),
                control.map_or_else(Cell::missing, |r| Cell::number(r.median, r.to_string())),
            ]);
        }
        table
    }

    fn pairs(&self) -> Table {
        let mut table =
            Table::new(["peer", "far", "radius", "ours", "with a mover", "control"]).keyed(3);
        for pair in &self.peers {
            let control = pair.faster.and_then(|c| c.control);
            table.row([
                pair.peer.into(),
                pair.far.into(),
                Cell::number(pair.radius as f64, pair.radius.to_string()),
                ratio(pair.faster),
                ratio(pair.faster_with_movers),
                control.map_or_else(Cell::missing, |r| Cell::number(r.median, r.to_string())),
            ]);
        }
        table
    }

    fn sentences(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (tables, slope) in [
            ("one set of tables", self.ipi_slope.shared),
            ("separate ones", self.ipi_slope.separated),
        ] {
            if let Some(line) = slope {
                all.push(format!(
                    "Interrupts a batch with {tables}: {:.2} + {:.2} N, N to {}.",
                    line.a, line.b, line.workers_most
                ));
            }
        }
        if let Some(why) = self.ipi_slope.missing {
            all.push(format!("Interrupts against workers, not measured: {why}."));
        }
        if let Some(f) = self.synchronous_faults {
            all.push(format!(
                "Synchronous faults: {:.0}, where 25 P is {:.0}; within 2 %: {}.",
                f.seen,
                f.expected,
                if f.within { "yes" } else { "NO" }
            ));
        }
        if let Some(s) = &self.serpentine {
            let faster = s.faster.map_or("?".to_owned(), |c| c.ratio.to_string());
            all.push(format!(
                "Serpentine sweep: {:.2} of the pages fetched, {faster} times faster.",
                s.fetched
            ));
        }
        all.extend(self.goals.iter().map(Goal::words));
        all.extend(unmodified::roomed(&self.unmodified));
        all.extend(unmodified::recommended(&self.unmodified));
        let verdict = if self.verified { "all right" } else { "NOT ALL RIGHT" };
        all.push(format!("{} runs compared bit for bit with plain memory: {verdict}.", self.runs));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::costs::{Batched, Breakdown, FaultCosts, Slopes};
    use super::super::curves::{Point, Prefetching};
    use super::super::hints::Hints;
    use super::super::mapped::{Group, Groups, Mapped, Threads};
    use super::super::others::{Other, Way};
    use super::super::peers::Pair;
    use super::super::unmodified::{Side, Unmodified};
    use super::*;
    use crate::bench::fixtures::{fits, ratio, series};
    use crate::tier::request::Policy;

    fn controlled() -> Option<Controlled> {
        ratio().map(|ratio| Controlled { ratio, control: Some(ratio), oversubscribed: true })
    }

    fn points() -> Vec<Point> {
        let prefetch = Prefetching { accuracy: None, coverage: 0.9876, lateness: 0.01 };
        vec![Point {
            radius: 10,
            workers: 16,
            t_compute: 123.45,
            intensity: 12.34,
            intensity_batched: 23.45,
            regular: controlled(),
            pspt: controlled(),
            pspt_movers: controlled(),
            movers_over_bound: controlled(),
            prefetch: Some(prefetch),
            series: series(&["a"], 6),
        }]
    }

    fn workloads() -> Vec<Other> {
        let way = Way {
            name: "processes, core-fifo, movers",
            tables: Tables::Separated,
            policy: Policy::CoreFifo,
            movers: true,
            over_memory: controlled(),
            missing: 12_345.0,
            prefetched: 12_345.0,
        };
        let series = series(&["a"], 6);
        vec![Other { workload: "cholesky", workers: 16, bytes: 16 << 20, ways: vec![way], series }]
    }

    fn mapped() -> Mapped {
        let us = Some(Spread { median: 123.45, least: 100.0, most: 1234.56 });
        let group = Group { pages: 16, over_chosen: controlled(), faults: 12_345.0 };
        let groups = vec![Groups {
            program: "sweep",
            far: "memory",
            chosen_ms: us,
            chosen_faults: 12_345.0,
            groups: vec![group],
            series: series(&["a"], 6),
        }];
        let threads = vec![Threads {
            mode: "blocking",
            threads: 8,
            fault_us: us,
            processor_us: us,
            faster: controlled(),
            series: series(&["a"], 6),
        }];
        Mapped { groups, threads }
    }

    fn unmodified() -> Unmodified {
        let side = || Side {
            seconds: Some(Spread { median: 123.45, least: 100.0, most: 1234.56 }),
            fast_bytes_peak: Some(1 << 36),
            compressed_bytes: Some(1 << 36),
            faults: Some(12_345_678.0),
            fault_us: Some(1234.5),
        };
        Unmodified {
            program: "pagerank",
            peer: "zswap",
            far: "lz4",
            compressor: Some("lzo-rle".to_owned()),
            data_bytes: Some(1 << 36),
            limit_bytes: Some(1 << 35),
            beside_bytes: Some(6 << 20),
            room_bytes: Some(4 << 20),
            plain_s: None,
            faster: controlled(),
            verified: Some(true),
            ours: Some(side()),
            theirs: Some(side()),
            missing: None,
            series: Some(series(&["a"], 6)),
        }
    }

    #[test]
    fn tables_fit_a_terminal() {
        let us = Some(Spread { median: 123.45, least: 100.0, most: 1234.56 });
        let faults = FaultCosts {
            missing_us: us,
            minor_us: us,
            prefetched_map_us: us,
            evict_and_fill: vec![Batched { batch: 64, us }],
        };
        let row = Breakdown {
            tables: Tables::Separated,
            workers: 16,
            batch: 32,
            lock: 1.23,
            page_table: 12.34,
            shootdown: Some(1.23),
            copy: 12.34,
            other: 1.23,
            total: 123.45,
            interrupts_per_batch: Some(12.34),
        };
        let pair = Pair {
            peer: "mmap",
            far: "memory",
            radius: 5,
            faster: controlled(),
            faster_with_movers: controlled(),
            missing: None,
            series: None,
        };
        fits(&Figures {
            verified: true,
            runs: 320,
            far: "memory",
            fast_region: None,
            far_region: None,
            pages: 4096,
            intensity: None,
            t_compute: None,
            t_move: None,
            t_move_batched: None,
            ipi_slope: Slopes::default(),
            fault_costs: Some(faults),
            breakdown: vec![row],
            curves: points(),
            synchronous_faults: None,
            serpentine: None,
            workloads: workloads(),
            mapped: mapped(),
            hints: vec![Hints {
                far: "memory",
                tables: Tables::Separated,
                ahead: 64,
                untold_ms: Some(Spread { median: 123.45, least: 100.0, most: 1234.56 }),
                told_ms: Some(Spread { median: 123.45, least: 100.0, most: 1234.56 }),
                untold_faults: 12_345.0,
                told_faults: 12_345.0,
                faster: controlled(),
                series: series(&["a"], 6),
            }],
            peers: vec![pair],
            umap: None,
            goals: unmodified::goals(&[unmodified()]),
            unmodified: vec![unmodified()],
        });
    }
}
