//! The reproduction as one page: Figure 2, Figure 4, what it rests on, this machine.

use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::svg::{Axis, LineChart, LineSeries, Mark, Point, line_chart};
use isochrone_units::Reading;
use isochrone_workloads::figure4::{Curve, PUBLISHED};

use super::terminal::{
    BENCHED, FIGURE_2, FIGURE_4A, FIGURE_4B, INTRODUCTION, LEARNT, NO_BENCH, NOT_COUNTED, READINGS,
    summary,
};
use super::{Ends, Reproduction, chip, extent, shape, tables};
use crate::latency_checker::pictures;
use crate::latency_checker::terminal::NO_ATLAS;

/// The reproduction as a page.
pub(super) fn to_page(all: &Reproduction) -> Page {
    let mut badges = vec![Badge::Reading(Reading::Published), Badge::Reading(Reading::Simulated)];
    badges.extend(all.measured.as_ref().map(|m| Badge::Reading(m.reading)));
    Page {
        title: "Hidden non-uniformity, beside its simulation and this machine".to_owned(),
        subtitle: "B. Gerofi et al.: Exploiting Hidden Non-uniformity of Uniform Memory Access on \
                   Manycore CPUs (Euro-Par 2014 Workshops)"
            .to_owned(),
        badges,
        summary: std::iter::once(INTRODUCTION.to_owned()).chain(summary(all)).collect(),
        facts: vec![("Seed".to_owned(), all.seed.to_string())],
        sections: vec![
            blocks(all),
            gains(all),
            misses(all),
            learnt(all),
            model(all),
            this_machine(all),
        ],
        json: crate::embedded(all),
        links: Vec::new(),
        footer: format!("isochrone {}, seed {}", env!("CARGO_PKG_VERSION"), all.seed),
    }
}

fn table(caption: &str, table: isochrone_report::table::Table, badge: Option<Badge>) -> Figure {
    Figure {
        caption: caption.to_owned(),
        badge,
        table: Some(table),
        open: true,
        ..Figure::default()
    }
}

fn blocks(all: &Reproduction) -> Section {
    let mut figures = vec![table("How far apart blocks are.", tables::figure2(all), None)];
    figures.extend(all.blocks().iter().map(|blocks| Figure {
        svg: pictures::figure2(blocks),
        caption: format!(
            "{}: {}. The fastest access shown takes {:.1} ns.",
            blocks.level, blocks.what, blocks.fastest_ns
        ),
        badge: Some(Badge::Reading(blocks.reading)),
        ..Figure::default()
    }));
    figures.extend(all.chip.iter().map(|of| {
        let blocks = chip::blocks(of);
        Figure {
            svg: pictures::figure2(&blocks),
            caption: format!(
                "{}. The fastest access shown takes {:.0} ns.",
                blocks.what, blocks.fastest_ns
            ),
            badge: Some(Badge::Reading(blocks.reading)),
            ..Figure::default()
        }
    }));
    let missing = all.measured.is_none().then(|| NO_ATLAS.to_owned());
    Section {
        id: "figure-2".to_owned(),
        heading: "Figure 2".to_owned(),
        prose: std::iter::once(FIGURE_2.to_owned()).chain(missing).collect(),
        figures,
        ..Section::default()
    }
}

fn gains(all: &Reproduction) -> Section {
    let figures = all.curves().map(|(curve, ends)| Figure {
        svg: gain_chart(curve, ends),
        caption: format!("{}; the band is the least and the most of the runs.", shape(curve)),
        badge: Some(Badge::Reading(Reading::Simulated)),
        table: Some(tables::gains(curve, ends)),
        open: false,
    });
    let by_reading =
        table("By every reading.", tables::readings(all), Some(Badge::Reading(Reading::Simulated)));
    Section {
        id: "figure-4a".to_owned(),
        heading: "Figure 4a".to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        prose: vec![FIGURE_4A.to_owned(), READINGS.to_owned()],
        figures: figures.chain([by_reading]).collect(),
    }
}

fn gain_chart(curve: &Curve, range: Option<Ends<'_>>) -> String {
    let ours = curve.points.iter().map(|point| {
        let (mean, least, most) = point.gain();
        let percent = |gain: f64| 100.0 * gain;
        Point {
            x: f64::from(point.cores),
            y: Some(percent(mean)),
            band: Some((percent(least), percent(most))),
        }
    });
    let ends = curve.points.first().into_iter().chain(curve.points.last());
    let flat = |gain: f64| LineSeries {
        label: "published: lowest and highest".to_owned(),
        points: ends
            .clone()
            .map(|p| Point { x: f64::from(p.cores), y: Some(100.0 * gain), band: None })
            .collect(),
        mark: Mark::Line,
    };
    let at_hops = (0..2).filter_map(|end| {
        let range = range?;
        let gains = curve.points.iter().zip(range.gains);
        Some(LineSeries {
            label: format!("simulated, a hop of {} cycles", range.hop_cycles[end]),
            points: gains
                .map(|(point, gains)| Point {
                    x: f64::from(point.cores),
                    y: Some(100.0 * gains[end]),
                    band: None,
                })
                .collect(),
            mark: Mark::Line,
        })
    });
    let mut series = vec![
        LineSeries {
            label: Reading::Simulated.to_string(),
            points: ours.collect(),
            mark: Mark::Line,
        },
        flat(PUBLISHED.lowest),
        flat(PUBLISHED.highest),
    ];
    series.extend(at_hops);
    line_chart(&LineChart {
        title: shape(curve),
        x: Axis { title: "cores".to_owned(), ..Axis::default() },
        y: Axis { title: "gain over oblivious, %".to_owned(), ..Axis::default() },
        series,
        apart: false,
    })
}

fn misses(all: &Reproduction) -> Section {
    let figures = all.simulated.curves.iter().map(|curve| Figure {
        svg: miss_chart(curve),
        caption: format!("{}; the axis begins at nothing.", shape(curve)),
        badge: Some(Badge::Reading(Reading::Simulated)),
        table: Some(tables::misses(curve)),
        open: true,
    });
    Section {
        id: "figure-4b".to_owned(),
        heading: "Figure 4b".to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        prose: vec![FIGURE_4B.to_owned(), NOT_COUNTED.to_owned()],
        figures: figures.collect(),
    }
}

/// Room above the most, so that curves do not lie on the frame.
const MISSES_ROOM: f64 = 1.1;

fn miss_chart(curve: &Curve) -> String {
    let series = ["oblivious", "aware"].into_iter().enumerate().map(|(arm, label)| {
        let point = |point: &isochrone_workloads::figure4::Point| Point {
            x: f64::from(point.cores),
            y: point.runs.first().map(|run| run.misses_per_expansion()[arm]),
            band: None,
        };
        LineSeries {
            label: label.to_owned(),
            points: curve.points.iter().map(point).collect(),
            mark: if arm == 0 { Mark::Line } else { Mark::Dots },
        }
    });
    let all = curve.points.iter().filter_map(|point| point.runs.first());
    let most = all.flat_map(|run| run.misses_per_expansion()).fold(0.0, f64::max);
    let range = Some((0.0, MISSES_ROOM * most)).filter(|(_, most)| *most > 0.0);
    line_chart(&LineChart {
        title: shape(curve),
        x: Axis { title: "cores".to_owned(), ..Axis::default() },
        y: Axis { title: "misses for a node".to_owned(), range, ..Axis::default() },
        series: series.collect(),
        apart: false,
    })
}

fn learnt(all: &Reproduction) -> Section {
    let badge = || Some(Badge::Reading(Reading::Simulated));
    let known = table("What was learnt, run by run.", tables::knowledge(all), badge());
    let curves = all.learning.curves.iter();
    let curves = curves.map(|curve| table(&extent(curve.search), tables::learnt(curve), badge()));
    Section {
        id: "learnt".to_owned(),
        heading: "As learnt, beside the oracle".to_owned(),
        badge: badge(),
        prose: vec![LEARNT.to_owned()],
        figures: std::iter::once(known).chain(curves).collect(),
    }
}

fn model(all: &Reproduction) -> Section {
    Section {
        id: "model".to_owned(),
        heading: "What the simulation rests on".to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        prose: Vec::new(),
        figures: vec![
            table("Its constants.", tables::constants(all), None),
            table(
                "What each assumption is worth, one run each.",
                tables::variations(all),
                Some(Badge::Reading(Reading::Simulated)),
            ),
        ],
    }
}

fn this_machine(all: &Reproduction) -> Section {
    let mut section = Section {
        id: "this-machine".to_owned(),
        heading: "A* on this machine".to_owned(),
        ..Section::default()
    };
    match &all.benched {
        None => section.prose.push(NO_BENCH.to_owned()),
        Some(benched) => {
            let badge = Badge::Reading(benched.reading);
            section.prose.push(BENCHED.to_owned());
            section.badge = Some(badge.clone());
            section.figures.push(table(&benched.machine, tables::benched(benched), Some(badge)));
        }
    }
    section
}
