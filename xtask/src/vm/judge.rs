//! Holds the JSON of both programs against the machine that was configured: cores, regions, distances, and that
//! what could not be measured is null and said. No time is looked at.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::brought::Found;
use super::orders::BROUGHT;
use super::shape::Shape;

/// What was looked at, and what was seen.
pub(super) type Verdict = (&'static str, Result<String>);

/// Of what share of a region's memory the system must know: the kernel keeps the rest for itself.
const LEAST_SHARE: f64 = 0.4;
/// Kinds of line transfers, in the order in which they are measured.
const KINDS: [&str; 4] = ["cas", "modified", "exclusive", "shared"];

/// Every finding on a machine.
pub(super) fn all(shape: &Shape, found: &Found) -> Vec<Verdict> {
    let of = |name: &'static str| match found.get(name) {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => bail!("{error:#}"),
        None => bail!("{name} was not brought out"),
    };
    let on = |name, judge: fn(&Shape, &Value) -> Result<String>| {
        of(name).and_then(|value| judge(shape, value))
    };
    let mut verdicts = vec![
        ("machine: cores", on("machine", cores)),
        ("machine: regions", on("machine", regions)),
        ("machine: distances", on("machine", distances)),
        ("machine: what is unknown", on("machine", unknown)),
        ("map: cores and regions", on("map", counts)),
        ("map: every experiment", on("map", experiments)),
        ("map: region latency", on("map", region_latency)),
        ("map: bandwidth", on("map", bandwidth)),
        ("map: line transfers", on("map", transfers)),
        ("map: what is missing is said once", on("map", missing)),
        ("show: cores and regions", on("show", counts)),
        ("export: what was allowed", on("export", allowed)),
        ("run: a report", on("run", |_, run| Ok(format!("{} fields", object(run)?.len())))),
        ("jacobi: right on these regions", on("jacobi", jacobi)),
    ];
    let lacking: Vec<&str> =
        BROUGHT.into_iter().filter(|name| !found.contains_key(*name)).collect();
    if !lacking.is_empty() {
        verdicts.push(("files", Err(anyhow::anyhow!("not brought out: {}", lacking.join(", ")))));
    }
    verdicts
}

fn object(value: &Value) -> Result<&serde_json::Map<String, Value>> {
    value.as_object().context("no object")
}

fn array<'a>(value: &'a Value, field: &str) -> Result<&'a Vec<Value>> {
    value[field].as_array().with_context(|| format!("{field} is no list"))
}

/// The numbers of a list, or of one field of its objects.
fn numbers(list: &[Value], field: Option<&str>) -> Option<Vec<u16>> {
    let number = |value: &Value| {
        let value = field.map_or(value, |field| &value[field]);
        value.as_u64().and_then(|number| u16::try_from(number).ok())
    };
    list.iter().map(number).collect()
}

fn same(what: &str, found: Option<&[u16]>, configured: &[u16]) -> Result<()> {
    ensure!(found == Some(configured), "{what} {found:?} instead of {configured:?}");
    Ok(())
}

fn cores(shape: &Shape, machine: &Value) -> Result<String> {
    let found = numbers(array(machine, "cores")?, Some("id"));
    same("cores", found.as_deref(), &shape.online())?;
    if !shape.off.is_empty() {
        let notes = machine["notes"].to_string();
        ensure!(notes.contains("switched off"), "nothing is said of {:?}: {notes}", shape.off);
    }
    Ok(format!("{} online", shape.online().len()))
}

fn regions(shape: &Shape, machine: &Value) -> Result<String> {
    let list = array(machine, "regions")?;
    same("regions", numbers(list, Some("id")).as_deref(), &shape.regions())?;
    if !shape.sys {
        return Ok("one, of all memory".to_owned());
    }
    for (region, node) in list.iter().zip(&shape.nodes) {
        let id = &region["id"];
        let near = node.cores.map_or(Vec::new(), |(a, b)| (a..=b).collect());
        let near: Vec<u16> = near.into_iter().filter(|core| !shape.off.contains(core)).collect();
        same("cores of a region", numbers(array(region, "cores")?, None).as_deref(), &near)?;
        let bytes = region["bytes"].as_f64().with_context(|| format!("region {id}: no size"))?;
        let configured = f64::from(node.mib) * f64::from(1 << 20);
        ensure!(
            (LEAST_SHARE * configured..=configured).contains(&bytes),
            "region {id} has {bytes} bytes of {configured}"
        );
    }
    Ok(format!("{}, with their cores and sizes", list.len()))
}

fn distances(shape: &Shape, machine: &Value) -> Result<String> {
    if !shape.sys {
        ensure!(machine["distances"].is_null(), "{}", machine["distances"]);
        return Ok("null".to_owned());
    }
    for a in shape.regions() {
        for b in shape.regions() {
            let found = &machine["distances"][usize::from(a)][usize::from(b)];
            let configured = Shape::distance(a, b);
            ensure!(*found == configured, "{found} from {a} to {b} instead of {configured}");
        }
    }
    Ok("as configured".to_owned())
}

fn unknown(shape: &Shape, machine: &Value) -> Result<String> {
    let lines = array(machine, "unknown")?;
    let caches = array(machine, "caches")?.len();
    match shape.sys {
        true => ensure!(lines.is_empty() && caches > 0, "{caches} caches, unknown: {lines:?}"),
        false => {
            ensure!(caches == 0, "{caches} caches that nobody told of");
            ensure!(lines.len() == 1 && lines[0].to_string().contains("caches"), "{lines:?}");
        }
    }
    Ok(format!("{} lines", lines.len()))
}

fn counts(shape: &Shape, map: &Value) -> Result<String> {
    let (cores, regions) = (shape.allowed().len(), shape.regions().len());
    ensure!(map["cores"] == cores, "{} cores instead of {cores}", map["cores"]);
    ensure!(map["regions"] == regions, "{} regions instead of {regions}", map["regions"]);
    Ok(format!("{cores} and {regions}"))
}

/// Each is graded, or a line says why there is nothing of it.
fn experiments(_: &Shape, map: &Value) -> Result<String> {
    ensure!(map["complete"] == true, "the map is not complete");
    let missing = array(map, "missing")?;
    let graded = object(&map["quality"]).context("quality")?;
    for name in ["block", "transfer", "multiline", "terms", "region", "bandwidth"] {
        ensure!(graded.contains_key(name), "{name} was not done: {missing:?}");
    }
    Ok(format!("{} graded, {} lines of what is missing", graded.len(), missing.len()))
}

/// Whether a line says that an experiment had no time, or that its cores were taken away: on a slow machine that is no
/// fault.
fn is_cut(map: &Value, title: &str) -> Result<bool> {
    const WHY: [&str; 2] = ["its share of the time was over", "somebody else had one of the cores"];
    let cut = |line: &Value| {
        let line = line.as_str().unwrap_or_default();
        line.starts_with(title) && WHY.iter().any(|why| line.contains(why))
    };
    Ok(array(map, "missing")?.iter().any(cut))
}

/// A row for each core, a column for each region; numbers where memory could be taken, and nothing elsewhere.
fn region_latency(shape: &Shape, map: &Value) -> Result<String> {
    let maps = array(map, "region_latency")?;
    let chases = maps.iter().filter(|map| map["mode"] != "one-class");
    let (rows, regions) = (shape.allowed(), shape.regions());
    let is_cut = is_cut(map, "region latency")?;
    let (mut seen, mut full) = (0, 0);
    for chase in chases {
        let (mode, cells) = (&chase["mode"], array(&chase["cells"], "cells")?);
        let labels = |what: &str, ids: &[u16]| -> Value {
            ids.iter().map(|id| format!("{what} {id}")).collect()
        };
        ensure!(chase["cells"]["rows"] == labels("core", &rows), "rows of {mode}");
        ensure!(chase["cells"]["columns"] == labels("region", &regions), "columns of {mode}");
        for (at, region) in regions.iter().enumerate() {
            let column = cells.iter().skip(at).step_by(regions.len());
            let with_number = column.filter(|cell| !cell.is_null()).count();
            let is_measured = shape.measured().contains(region);
            ensure!(
                if is_measured { with_number > 0 || is_cut } else { with_number == 0 },
                "{mode}: {with_number} numbers of region {region}: {}",
                map["missing"]
            );
            full += usize::from(with_number > 0);
        }
        seen += 1;
    }
    ensure!(seen > 0 || is_cut, "none: {}", map["missing"]);
    let left_out = regions.len() - shape.measured().len();
    let lines = array(map, "missing")?;
    let said = lines.iter().filter(|line| line.to_string().contains("region latency: region"));
    ensure!((said.count() > 0) == (left_out > 0), "{left_out} left out, said: {lines:?}");
    let of = seen * shape.measured().len();
    Ok(format!("{full} of {of} columns have numbers, {left_out} regions are null and named"))
}

fn bandwidth(shape: &Shape, map: &Value) -> Result<String> {
    let list = array(map, "bandwidth")?;
    let measured = shape.measured();
    let found = numbers(list, Some("region")).context("a region is no number")?;
    ensure!(!found.is_empty() || is_cut(map, "bandwidth")?, "none: {}", map["missing"]);
    ensure!(found.iter().all(|id| measured.contains(id)), "{found:?}, of {measured:?}");
    for group in list {
        let cores = numbers(array(group, "cores")?, None).context("cores")?;
        ensure!(cores.iter().all(|core| shape.allowed().contains(core)), "{cores:?}");
    }
    Ok(format!("{} groups", list.len()))
}

/// Pairs of some kind; a kind of which no pair has a number is named in a line.
fn transfers(shape: &Shape, map: &Value) -> Result<String> {
    let (transfers, lines) = (&map["line_transfer"], array(map, "missing")?);
    let cores = shape.allowed().len() as u64;
    let all = cores * (cores - 1);
    let pairs = transfers["pairs"].as_u64().unwrap_or(0);
    ensure!(pairs <= all, "{pairs} cells of {all}");
    let mut measured = Vec::new();
    for kind in KINDS {
        let of_kind = |state: &Value| state["state"] == kind && state["median_ns"].is_number();
        if array(transfers, "states")?.iter().any(of_kind) {
            measured.push(kind);
            continue;
        }
        let says = |line: &Value| {
            let line = line.as_str().unwrap_or_default();
            line.starts_with("line transfers") && line.contains(kind)
        };
        ensure!(lines.iter().any(says), "nothing is said of {kind}: {lines:?}");
    }
    ensure!(!measured.is_empty(), "none: {lines:?}");
    Ok(format!("{}; {pairs} cells of {all} of the first", measured.join(", ")))
}

/// One line for each thing that could not be measured.
fn missing(_: &Shape, map: &Value) -> Result<String> {
    let lines = array(map, "missing")?;
    for (at, line) in lines.iter().enumerate() {
        let text = line.as_str().unwrap_or_default();
        ensure!(!text.is_empty() && !text.contains('\n'), "no line: {line}");
        ensure!(!lines[..at].contains(line), "said twice: {text}");
    }
    Ok(format!("{} lines", lines.len()))
}

fn allowed(shape: &Shape, atlas: &Value) -> Result<String> {
    let state = &atlas["state"];
    let found = numbers(array(state, "allowed_cores")?, None);
    same("cores that are allowed", found.as_deref(), &shape.allowed())?;
    same(
        "cores of the atlas",
        numbers(array(&atlas["machine"], "cores")?, Some("id")).as_deref(),
        &shape.allowed(),
    )?;
    let found = numbers(array(state, "allowed_regions")?, None).context("allowed_regions")?;
    if shape.sys {
        same("regions that are allowed", Some(&found), &shape.measured())?;
    }
    Ok(format!("{} cores, regions {found:?}", shape.allowed().len()))
}

fn jacobi(shape: &Shape, bench: &Value) -> Result<String> {
    ensure!(bench["verified"] == true, "a wrong answer: {}", bench["residual"]);
    let regions = shape.regions().len();
    ensure!(bench["regions"] == regions, "{} regions instead of {regions}", bench["regions"]);
    let threads = bench["threads"].as_u64().unwrap_or(0);
    let cores = shape.allowed().len() as u64;
    ensure!((1..=cores).contains(&threads), "{threads} threads on {cores} cores");
    Ok(format!("{threads} threads on {regions} regions"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shape(name: &str) -> Shape {
        Shape::named(name).expect("it is there")
    }

    #[test]
    fn a_machine_is_held_against_its_shape() {
        let region =
            |id: u16, bytes: u64, cores: &[u16]| json!({"id": id, "bytes": bytes, "cores": cores});
        let machine = |bytes: u64, cores: &[u16]| {
            let regions = [region(0, bytes, &[0, 1]), region(1, bytes, cores)];
            let cores: Vec<Value> = [0, 1, 3].map(|id| json!({"id": id})).to_vec();
            json!({
                "cores": cores, "regions": regions, "notes": ["cores that are switched off: 2"],
                "distances": [[10, 15], [15, 10]], "unknown": [], "caches": [{}],
            })
        };
        let good = machine(500 << 20, &[3]);
        for judge in [cores, regions, distances, unknown] {
            judge(&shape("offline"), &good).expect("as configured");
        }
        assert!(regions(&shape("offline"), &machine(0, &[3])).is_err(), "it has memory");
        assert!(regions(&shape("offline"), &machine(500 << 20, &[2, 3])).is_err(), "2 is off");
        assert!(
            cores(&shape("cpuset"), &good).is_err() && distances(&shape("cpuset"), &good).is_err()
        );
        assert!(
            unknown(&shape("nosys"), &good).is_err() && distances(&shape("nosys"), &good).is_err()
        );
    }

    #[test]
    fn regions_that_cannot_be_measured_are_null_and_said() {
        let map = |cells: [Option<u8>; 4], missing: &str| {
            let rows: Vec<String> = (2..6).map(|core| format!("core {core}")).collect();
            let columns: Vec<String> = (0..4).map(|region| format!("region {region}")).collect();
            let cells = [cells; 4].concat();
            let chase = json!({"rows": rows, "columns": columns, "cells": cells});
            json!({"region_latency": [{"mode": "random", "cells": chase}], "missing": [missing]})
        };
        let line = "region latency: regions 0,3: this process may not";
        let judge = |map: &Value| region_latency(&shape("cpuset"), map);
        judge(&map([None, Some(1), Some(2), None], line)).expect("as configured");
        assert!(judge(&map([None, Some(1), Some(2), None], "x")).is_err(), "not said");
        assert!(judge(&map([None, Some(1), None, None], line)).is_err(), "2 is allowed");
        let mut cut = map([None, Some(1), None, None], line);
        let over = "region latency, random: 4 of 8 cells were left out, since its share of the time was over";
        cut["missing"].as_array_mut().expect("lines").push(over.into());
        judge(&cut).expect("there was no time");
        assert!(judge(&map([Some(0), Some(1), Some(2), None], line)).is_err(), "0 is not");
    }

    #[test]
    fn transfers_are_there_of_some_kind_and_what_is_not_is_said() {
        let map = |medians: [Option<f64>; 4], line: &str| {
            let kinds = KINDS.iter().zip(medians);
            let states: Vec<Value> =
                kinds.map(|(kind, ns)| json!({"state": kind, "median_ns": ns})).collect();
            json!({"line_transfer": {"pairs": 12, "states": states}, "missing": [line]})
        };
        let judge = |map: &Value| transfers(&shape("cpuset"), map);
        judge(&map([Some(1.0); 4], "x")).expect("all");
        let cut = [None, Some(1.0), Some(1.0), Some(1.0)];
        judge(&map(cut, "line transfers, cas: 12 of 12 pairs were left out")).expect("said");
        assert!(judge(&map(cut, "x")).is_err(), "not said");
        assert!(
            judge(&map([None; 4], "line transfers: cas, modified, exclusive, shared")).is_err()
        );
        let more = json!({"line_transfer": {"pairs": 13, "states": []}, "missing": []});
        assert!(judge(&more).is_err(), "four cores have twelve");
    }

    #[test]
    fn a_file_that_did_not_come_fails_every_finding_on_it() {
        let verdicts = all(&shape("nosys"), &Found::new());
        assert!(verdicts.iter().all(|(_, verdict)| verdict.is_err()));
        assert!(verdicts.iter().any(|(what, _)| *what == "files"));
    }
}
