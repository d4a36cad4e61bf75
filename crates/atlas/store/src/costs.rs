//! The sections of an atlas that say what things cost beside the matrices: fits, terms, bandwidths,
//! means of levels, groups of cores. They repeat, in binary, what the description has as text, so that
//! a program that arranges itself need not parse it.

use crate::contents::{Cell, Contents, Graded, MultiLineFit};
use crate::convert::{cell_record, level_of, number_of, single};
use crate::error::EncodeError;
use crate::groups::group_levels;
use isochrone_atlas::format::{
    BandwidthHeader, CellRecord, FitRecord, GradeRecord, GroupsHeader, MeanRecord, NONE_U16,
    Section, TermRecord, TermTag, label_bytes, level_tag,
};
use isochrone_units::Experiment;

/// Bytes for each section that has something to say.
pub(crate) fn sections(contents: &Contents) -> Result<Vec<(Section, Vec<u8>)>, EncodeError> {
    let all = [
        (Section::Fits, contents.multiline.iter().flat_map(|fit| record(fit).to_bytes()).collect()),
        (Section::Terms, terms(contents)),
        (Section::Bandwidths, bandwidths(contents)?),
        (Section::Means, means(contents)?),
        (Section::Groups, groups(contents)?),
        (Section::Grades, grades(contents)),
    ];
    Ok(all.into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect())
}

/// A fit; its words are "core 0 -> core 1" where one core read, "core 0 -> up to 4 readers" else.
fn record(fit: &MultiLineFit) -> FitRecord {
    let (owner, askers) = fit.what.split_once(" -> ").unwrap_or((&fit.what, ""));
    let three = |(value, lo, hi): (f64, f64, f64)| [value, lo, hi].map(single);
    FitRecord {
        owner: number_of(owner),
        asker: if askers.starts_with("core ") { number_of(askers) } else { NONE_U16 },
        start_ns: three(fit.q_ns),
        line_ns: three(fit.o_ns),
        congestion_ns: fit.c_ns.map_or([f32::NAN; 3], three),
        r2: single(fit.r2),
    }
}

/// A term that the format has no number for stays in the text part.
fn terms(contents: &Contents) -> Vec<u8> {
    let measured = |tag: TermTag| contents.terms.iter().find(|term| term.name == tag.as_str())?.ns;
    let known = TermTag::ALL.into_iter().filter_map(|tag| {
        let ns = if tag == TermTag::Reader { reader(contents) } else { measured(tag) };
        Some(TermRecord { term: tag as u8, cell: cell_record(&ns?, f32::NAN) }.to_bytes())
    });
    known.flatten().collect()
}

/// What a line's home takes for one more of its readers, ns: they are served one after the other, so one of `n` at once
/// waits in the mean for half of the others. By the most that were measured.
fn reader(contents: &Contents) -> Option<Cell> {
    let together = contents.interactions.iter().filter(|of| of.kind == "contention");
    let known = together.filter_map(|of| Some((of.n, of.ns.as_ref()?)));
    let (_, alone) = known.clone().find(|(n, _)| *n == 1)?;
    let (n, many) = known.filter(|(n, _)| *n > 1).max_by_key(|(n, _)| *n)?;
    let more = |many: f64, alone: f64| 2.0 * (many - alone) / f64::from(n - 1);
    Some(Cell {
        median: more(many.median, alone.median),
        lo: more(many.lo, alone.hi),
        hi: more(many.hi, alone.lo),
        p5: more(many.p5, alone.p95),
        p95: more(many.p95, alone.p5),
        n: many.n,
    })
}

fn grades(contents: &Contents) -> Vec<u8> {
    let record = |(experiment, graded): (&Experiment, &Graded)| {
        GradeRecord { experiment: Some(*experiment), grade: graded.grade }.to_bytes()
    };
    contents.quality.iter().flat_map(record).collect()
}

fn bandwidths(contents: &Contents) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    for found in &contents.bandwidth {
        let cell = cell_record(&found.gb_per_s, f32::NAN);
        let cores = count(found.cores.len(), "list of cores of a bandwidth")?;
        bytes.extend(BandwidthHeader { region: found.region, cores, cell }.to_bytes());
        numbers(found.cores.iter().copied(), &mut bytes);
    }
    Ok(bytes)
}

/// What each core sees of each level in the mean.
fn means(contents: &Contents) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    for map in &contents.levels {
        let level = level_tag(level_of(map)?);
        for (core, quality) in contents.machine.cores.iter().zip(&map.quality) {
            let ns = |value: Option<f64>| value.map_or(f32::NAN, single);
            let (mean_ns, near_quarter_ns) = (ns(quality.mean_ns), ns(quality.near_quarter_ns));
            bytes.extend(MeanRecord { level, core: core.id, mean_ns, near_quarter_ns }.to_bytes());
        }
    }
    Ok(bytes)
}

fn groups(contents: &Contents) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    for level in group_levels(contents) {
        let cell: CellRecord = cell_record(&level.transfer_ns, f32::NAN);
        let groups = level.group.iter().flatten().max().map_or(0, |last| last + 1);
        let cores = count(level.group.len(), "list of groups")?;
        bytes.extend(GroupsHeader { groups, cores, cell }.to_bytes());
        numbers(level.group.iter().map(|group| group.unwrap_or(NONE_U16)), &mut bytes);
    }
    Ok(bytes)
}

fn count(number: usize, what: &'static str) -> Result<u16, EncodeError> {
    u16::try_from(number).map_err(|_| EncodeError::TooLarge(what))
}

/// Numbers of 16 bits, padded to eight bytes.
fn numbers(list: impl ExactSizeIterator<Item = u16>, bytes: &mut Vec<u8>) {
    let end = bytes.len() + label_bytes(list.len());
    bytes.extend(list.flat_map(u16::to_le_bytes));
    bytes.resize(end, 0);
}
