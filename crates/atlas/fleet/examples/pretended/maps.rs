//! Recorded maps of one machine as nodes: what `map --json` wrote, cell by cell.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Bandwidth, Graded, Matrix};
use isochrone_fleet::{Item, Made, Node, Quantity};
use isochrone_stats::{MAD_TO_SD, mad, median};
use isochrone_units::{Grade, Reading};
use serde::Deserialize;

/// What is compared of a node.
pub(crate) const COMPARED: [Experiment; 4] =
    [Experiment::Block, Experiment::Transfer, Experiment::Region, Experiment::Bandwidth];

/// Maps whose line transfers take so much more or less than those of most were made while a host had the machine's
/// cores elsewhere.
const ELSEWHERE: f64 = 1.25;
/// Quiet maps from which noise can be drawn.
const QUIET_MIN: usize = 3;

/// What of a recorded map can be compared.
#[derive(Debug, Deserialize)]
struct Recorded {
    cores: usize,
    regions: usize,
    complete: bool,
    block: BTreeMap<String, Option<Level>>,
    line_transfer: Option<Transfers>,
    region_latency: Vec<Region>,
    bandwidth: Vec<Bandwidth>,
    quality: BTreeMap<Experiment, Graded>,
}

#[derive(Debug, Deserialize)]
struct Level {
    cores: Vec<Core>,
}

#[derive(Debug, Deserialize)]
struct Core {
    core: u16,
    mean_ns: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Transfers {
    states: Vec<State>,
}

#[derive(Debug, Deserialize)]
struct State {
    state: String,
    median_ns: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Region {
    mode: String,
    cells: Matrix,
}

/// Maps of one machine.
pub(crate) struct Maps {
    /// Those from which noise is drawn.
    pub(crate) nodes: Vec<Node>,
    /// Maps that were interrupted, or made while the machine's cores lay elsewhere.
    pub(crate) elsewhere: usize,
}

/// The whole maps of a folder, those apart that were made while the cores lay elsewhere. Recorded maps of two cores
/// have one number for a pair of them.
pub(crate) fn read(folder: &Path) -> Result<Maps> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    let mut nodes = Vec::new();
    for path in &paths {
        let map: Recorded = serde_json::from_str(&std::fs::read_to_string(path)?)
            .with_context(|| format!("{} is no figures of a map (`map --json`)", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        nodes.push(node(&name, &map));
    }
    let all = nodes.len();
    let middle = median(&nodes.iter().filter_map(transfer).collect::<Vec<f64>>());
    let is_here = |ns: f64| middle.is_none_or(|middle| (ns / middle).ln().abs() < ELSEWHERE.ln());
    nodes.retain(|node| node.complete && transfer(node).is_none_or(is_here));
    let maps = Maps { elsewhere: all - nodes.len(), nodes };
    for experiment in COMPARED {
        let quiet = maps.quiet(experiment).len();
        ensure!(
            quiet >= QUIET_MIN,
            "{} has {quiet} maps whose {} is quiet, and noise is drawn from {QUIET_MIN} at least",
            folder.display(),
            experiment.title()
        );
    }
    Ok(maps)
}

impl Maps {
    /// Those of which an experiment was measured alone: what was not, `fleet outliers` leaves out.
    pub(crate) fn quiet(&self, experiment: Experiment) -> Vec<&Node> {
        let is_quiet = |node: &&Node| node.grades.get(&experiment) == Some(&Grade::Quiet);
        self.nodes.iter().filter(is_quiet).collect()
    }
}

fn node(name: &str, map: &Recorded) -> Node {
    let mut node = Node {
        name: name.to_owned(),
        reading: Reading::Measured,
        words: vec!["cpu: recorded".to_owned(), format!("regions: {}", map.regions)],
        cores: map.cores,
        regions: map.regions,
        complete: map.complete,
        started_unix_s: 0,
        grades: map.quality.iter().map(|(of, graded)| (*of, graded.grade)).collect(),
        quantities: BTreeMap::new(),
        made: Made::default(),
    };
    for region in &map.region_latency {
        node.add_matrix(Experiment::Region, &region.mode, &region.cells);
    }
    for state in map.line_transfer.iter().flat_map(|transfers| &transfers.states) {
        let Some(ns) = state.median_ns else { continue };
        let of = vec![Item::Core(0), Item::Core(1)];
        let pair = Quantity::new("core 0 and core 1".to_owned(), of, ns, (ns, ns));
        node.add(Experiment::Transfer, &state.state, pair);
    }
    for (name, level) in &map.block {
        for core in level.iter().flat_map(|level| &level.cores) {
            let Some(ns) = core.mean_ns else { continue };
            let item = Item::Core(core.core);
            let mean = Quantity::new(item.to_string(), vec![item], ns, (ns, ns));
            node.add(Experiment::Block, name, mean);
        }
    }
    for group in &map.bandwidth {
        let mut of = vec![Item::Region(group.region)];
        if let [core] = group.cores[..] {
            of.push(Item::Core(core));
        }
        let (name, cell) = (format!("cores {:?}", group.cores), &group.gb_per_s);
        let quantity = Quantity::new(name, of, cell.median, (cell.lo, cell.hi));
        node.add(Experiment::Bandwidth, "", quantity);
    }
    node
}

/// Nanoseconds of a line transfer.
fn transfer(node: &Node) -> Option<f64> {
    let of = |(kind, _): &(&isochrone_fleet::Kind, _)| kind.experiment == Experiment::Transfer;
    let pairs = node.quantities.iter().find(of).map(|(_, pairs)| pairs)?;
    pairs.first().map(|pair| pair.value)
}

/// Standard deviation of a number's logarithm from map to map, the median over the numbers of an experiment; by its
/// median absolute deviation.
pub(crate) fn scatter(maps: &Maps, experiment: Experiment) -> Option<f64> {
    let mut logarithms: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for (kind, quantities) in maps.quiet(experiment).into_iter().flat_map(|node| &node.quantities) {
        for quantity in quantities.iter().filter(|_| kind.experiment == experiment) {
            let key = (quantity.part.as_str(), quantity.name.as_str());
            logarithms.entry(key).or_default().push(quantity.value.ln());
        }
    }
    let sd = |ln: &Vec<f64>| mad(ln).map(|mad| mad * MAD_TO_SD);
    median(&logarithms.values().filter_map(sd).collect::<Vec<f64>>())
}
