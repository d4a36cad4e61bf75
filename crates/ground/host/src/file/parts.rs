//! The hardware of a description: regions, cores, caches, distances, controllers, interconnect.
//! Ids are unique, whatever is referred to exists, sizes are possible.

use std::collections::{BTreeMap, BTreeSet};

use isochrone_machine::{
    Cache, Controller, Core, Interconnect, Machine, Origin, Region, RingStop, spans,
};
use toml::Spanned;

use super::checker::{CORE_LIMIT, Checker, REGION_LIMIT};
use super::error::MachineFileError;
use super::raw::{Per, RawCache, RawInterconnect, RawMachine, Shape};

/// Most controllers; the largest machine here has 14.
const MAX_CONTROLLERS: usize = 1024;
/// Most kinds of caches; real machines have four to eight.
const MAX_CACHE_KINDS: usize = 32;

pub(super) fn regions(
    raw: &RawMachine,
    check: &Checker<'_>,
    machine: &mut Machine,
) -> Result<(), MachineFileError> {
    for group in &raw.regions {
        let bytes = group.bytes.as_ref().map(|bytes| check.size(bytes)).transpose()?;
        let source = check.source(&group.source)?;
        for id in check.list(&group.ids, REGION_LIMIT)? {
            if machine.regions.iter().any(|region| region.id == id) {
                let problem = format!("region {id} is described twice; expected it once");
                return Err(check.wrong(&group.ids, problem));
            }
            let source = Some(source.clone());
            machine.regions.push(Region { id, kind: group.kind, bytes, cores: Vec::new(), source });
        }
    }
    machine.regions.sort_by_key(|region| region.id);
    machine.memory_bytes = machine.regions.iter().map(|region| region.bytes).sum();
    Ok(())
}

pub(super) fn cores(
    raw: &RawMachine,
    check: &Checker<'_>,
    machine: &mut Machine,
) -> Result<(), MachineFileError> {
    let mut cores: BTreeMap<u16, Core> = BTreeMap::new();
    for group in &raw.cores {
        let (ids, region) = (check.list(&group.ids, CORE_LIMIT)?, *group.region.get_ref());
        let origin =
            Origin { what: format!("cores {}", spans(&ids)), source: check.source(&group.source)? };
        machine.origins.push(origin);
        let Some(home) = machine.regions.iter_mut().find(|known| known.id == region) else {
            let problem = format!("region {region} is not described under [[regions]]");
            return Err(check.wrong(&group.region, problem));
        };
        for id in ids {
            let (package, module) = (group.package, group.module);
            let core = Core { id, region, package, module, ..Core::default() };
            if cores.insert(id, core).is_some() {
                let problem = format!("core {id} is described twice; expected it once");
                return Err(check.wrong(&group.ids, problem));
            }
            home.cores.push(id);
        }
        home.cores.sort_unstable();
    }
    for group in &raw.cores {
        let Some(siblings) = &group.smt_siblings else { continue };
        pair_siblings(&check.list(&group.ids, CORE_LIMIT)?, siblings, check, &mut cores)?;
    }
    machine.cores = cores.into_values().collect();
    Ok(())
}

/// The n-th core of `ids` and the n-th of `siblings` are threads of one physical core.
fn pair_siblings(
    ids: &[u16],
    siblings: &Spanned<String>,
    check: &Checker<'_>,
    cores: &mut BTreeMap<u16, Core>,
) -> Result<(), MachineFileError> {
    let others = check.list(siblings, CORE_LIMIT)?;
    if others.len() != ids.len() {
        let problem = format!("expected {} siblings, one a core, not {}", ids.len(), others.len());
        return Err(check.wrong(siblings, problem));
    }
    for (&id, &other) in ids.iter().zip(&others) {
        if id == other || !cores.contains_key(&other) {
            let problem =
                format!("expected another described core as sibling of core {id}, not {other}");
            return Err(check.wrong(siblings, problem));
        }
        for (one, two) in [(id, other), (other, id)] {
            let Some(core) = cores.get_mut(&one) else { continue };
            if !core.smt_siblings.contains(&two) {
                core.smt_siblings.push(two);
                core.smt_siblings.sort_unstable();
            }
        }
    }
    Ok(())
}

pub(super) fn caches(
    raw: &RawMachine,
    check: &Checker<'_>,
    machine: &mut Machine,
) -> Result<(), MachineFileError> {
    check.at_most(
        "kinds of caches",
        MAX_CACHE_KINDS,
        raw.caches.len(),
        raw.caches.last().map(|cache| cache.source.span()),
    )?;
    for cache in &raw.caches {
        let pattern = Cache {
            level: check.count("a level", &cache.level)?,
            kind: cache.kind,
            bytes: cache.bytes.as_ref().map(|bytes| check.size(bytes)).transpose()?,
            line_bytes: optional_count("a line size", &cache.line_bytes, check)?,
            ways: optional_count("an associativity", &cache.ways, check)?,
            shared_by: Vec::new(),
            source: Some(check.source(&cache.source)?),
        };
        let shared = sharers(cache, check, machine)?;
        machine
            .caches
            .extend(shared.into_iter().map(|shared_by| Cache { shared_by, ..pattern.clone() }));
    }
    Ok(())
}

fn optional_count(
    what: &str,
    value: &Option<Spanned<i64>>,
    check: &Checker<'_>,
) -> Result<Option<u32>, MachineFileError> {
    value.as_ref().map(|value| check.count(what, value)).transpose()
}

/// The cores of each instance of a cache.
fn sharers(
    cache: &RawCache,
    check: &Checker<'_>,
    machine: &Machine,
) -> Result<Vec<Vec<u16>>, MachineFileError> {
    let mut groups: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for core in &machine.cores {
        let key = match cache.per.get_ref() {
            // Threads of one physical core share what belongs to a core.
            Per::Core => core.smt_siblings.first().map_or(core.id, |&first| first.min(core.id)),
            Per::Region => core.region,
            Per::Package => core.package.ok_or_else(|| lacks(cache, check, core.id, "package"))?,
            Per::Module => core.module.ok_or_else(|| lacks(cache, check, core.id, "module"))?,
        };
        groups.entry(key).or_default().push(core.id);
    }
    Ok(groups.into_values().collect())
}

fn lacks(cache: &RawCache, check: &Checker<'_>, core: u16, what: &str) -> MachineFileError {
    let problem = format!("core {core} has no {what}; expected one in its [[cores]] entry");
    check.wrong(&cache.per, problem)
}

/// Firmware distances: square, 10 on the diagonal and nowhere less (ACPI 6.5, section 5.2.17).
pub(super) fn distances(
    raw: &RawMachine,
    check: &Checker<'_>,
    machine: &mut Machine,
) -> Result<(), MachineFileError> {
    let Some(distances) = &raw.distances else { return Ok(()) };
    let regions = machine.regions.len();
    if distances.rows.get_ref().len() != regions {
        let problem = format!(
            "expected {regions} rows, one a region, not {}",
            distances.rows.get_ref().len()
        );
        return Err(check.wrong(&distances.rows, problem));
    }
    let mut matrix = Vec::with_capacity(regions);
    for (from, row) in distances.rows.get_ref().iter().enumerate() {
        if row.get_ref().len() != regions {
            let problem = format!("expected {regions} distances, not {}", row.get_ref().len());
            return Err(check.wrong(row, problem));
        }
        let checked = row.get_ref().iter().enumerate().map(|(to, value)| {
            let distance = *value.get_ref();
            match u32::try_from(distance) {
                Ok(10) => Ok(10),
                Ok(far @ 11..=255) if from != to => Ok(far),
                _ if from == to => Err(check.wrong(
                    value,
                    format!("expected 10, the distance of a region to itself, not {distance}"),
                )),
                _ => Err(check
                    .wrong(value, format!("expected a distance from 10 to 255, not {distance}"))),
            }
        });
        matrix.push(checked.collect::<Result<_, _>>()?);
    }
    machine.distances = Some(matrix);
    let source = check.source(&distances.source)?;
    machine.origins.push(Origin { what: "distances".into(), source });
    Ok(())
}

pub(super) fn controllers(
    raw: &RawMachine,
    check: &Checker<'_>,
    machine: &mut Machine,
) -> Result<(), MachineFileError> {
    for group in &raw.controllers {
        let count: u16 = check.count("a number of controllers", &group.count)?;
        let total = machine.controllers.len() + usize::from(count);
        check.at_most("controllers", MAX_CONTROLLERS, total, Some(group.count.span()))?;
        let region = group.region.as_ref().map(|id| check.region(id, machine)).transpose()?;
        let source = check.source(&group.source)?;
        machine.controllers.extend((0..count).map(|index| Controller {
            name: format!("{} {index}", group.name),
            region,
            place: None,
            source: Some(source.clone()),
        }));
    }
    if let Some(directories) = &raw.directories {
        machine.directories = Some(check.count("a number of directories", &directories.count)?);
        let source = check.source(&directories.source)?;
        machine.origins.push(Origin { what: "directories".into(), source });
    }
    Ok(())
}

pub(super) fn interconnect(
    raw: &RawMachine,
    check: &Checker<'_>,
    machine: &mut Machine,
) -> Result<(), MachineFileError> {
    let Some(raw) = &raw.interconnect else { return Ok(()) };
    let source = check.source(&raw.source)?;
    let foreign = match raw.kind.get_ref() {
        Shape::Ring => raw.columns.is_some() || raw.rows.is_some() || raw.size_assumed.is_some(),
        Shape::Mesh => {
            raw.stops.is_some() || raw.bidirectional.is_some() || raw.order_assumed.is_some()
        }
        Shape::Other => false,
    };
    let wrong = |problem: &str| Err(check.wrong(&raw.kind, problem));
    machine.interconnect = Some(match (raw.kind.get_ref(), &raw.what) {
        (Shape::Ring, _) if foreign => {
            return wrong(
                "a ring has `bidirectional`, `stops` and `order_assumed`, no `columns` or `rows`",
            );
        }
        (Shape::Mesh, _) if foreign => {
            return wrong("a mesh has `columns`, `rows` and `size_assumed`, no `stops`");
        }
        (Shape::Ring, _) => ring(raw, source, check, machine)?,
        (Shape::Mesh, _) => mesh(raw, source, check)?,
        (Shape::Other, Some(what)) => Interconnect::Other { what: what.clone(), source },
        (Shape::Other, None) => return wrong("expected `what` beside kind \"other\", in words"),
    });
    Ok(())
}

fn mesh(
    raw: &RawInterconnect,
    source: String,
    check: &Checker<'_>,
) -> Result<Interconnect, MachineFileError> {
    let (Some(columns), Some(rows)) = (&raw.columns, &raw.rows) else {
        return Err(check.wrong(&raw.kind, "expected `columns` and `rows` beside kind \"mesh\""));
    };
    Ok(Interconnect::Mesh {
        columns: check.count("a number of columns", columns)?,
        rows: check.count("a number of rows", rows)?,
        size_assumed: raw.size_assumed.clone(),
        source,
    })
}

/// Stops are words: `c5` core 5, `m0` controller 0, `d3` directory 3, `s2` cache slice 2.
fn ring(
    raw: &RawInterconnect,
    source: String,
    check: &Checker<'_>,
    machine: &Machine,
) -> Result<Interconnect, MachineFileError> {
    let (mut stops, mut seen) = (Vec::new(), BTreeSet::new());
    if let Some(text) = &raw.stops {
        for word in text.get_ref().split_whitespace() {
            let problem = match stop(word, machine) {
                Some(stop) if !seen.insert(stop) => "is there twice",
                Some(stop) => {
                    stops.push(stop);
                    continue;
                }
                None => "is no part of this machine",
            };
            let expected =
                "expected words such as c5 (core), m0 (controller), d3 (directory), s2 (slice)";
            return Err(check.wrong(text, format!("stop {word:?} {problem}; {expected}")));
        }
    }
    let Some(bidirectional) = raw.bidirectional else {
        return Err(check.wrong(&raw.kind, "expected `bidirectional` beside kind \"ring\""));
    };
    Ok(Interconnect::Ring {
        bidirectional,
        stops,
        order_assumed: raw.order_assumed.clone(),
        source,
    })
}

fn stop(word: &str, machine: &Machine) -> Option<RingStop> {
    let (kind, number) = word.split_at_checked(1)?;
    let number: u16 = number.parse().ok()?;
    match kind {
        "c" if machine.cores.iter().any(|core| core.id == number) => Some(RingStop::Core(number)),
        "m" if usize::from(number) < machine.controllers.len() => {
            Some(RingStop::Controller(number))
        }
        "d" if number < machine.directories? => Some(RingStop::Directory(number)),
        "s" => Some(RingStop::Slice(number)),
        _ => None,
    }
}
