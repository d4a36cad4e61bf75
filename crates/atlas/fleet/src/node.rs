//! A node as numbers that can be compared with those of another: one for each cell of an atlas, with the cores and the
//! region that it is of. What is a difference of two costs, and so near 0, is left out: a ratio of it says nothing.

use std::collections::BTreeMap;
use std::fmt;

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Contents, Matrix};
use isochrone_units::{Grade, Reading};

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// A core, by the system's number.
    Core(u16),
    /// A region of memory, by the system's number.
    Region(u16),
}

impl Item {
    /// The item that a label of a matrix names, such as `core 3`.
    fn of_label(label: &str) -> Option<Self> {
        let (word, number) = label.split_once(' ')?;
        let number = number.parse().ok()?;
        match word {
            "core" => Some(Self::Core(number)),
            "region" => Some(Self::Region(number)),
            _ => None,
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(core) => write!(f, "core {core}"),
            Self::Region(region) => write!(f, "region {region}"),
        }
    }
}

/// A chase in order of addresses shows what is fetched ahead, not how far a region is.
const AHEAD: &str = "in-order";

/// Numbers that a fault shows in together: one experiment in all of its parts, and each level of lines by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The experiment.
    pub experiment: Experiment,
    /// Which level; empty but for block latency.
    pub level: String,
}

impl Kind {
    /// The unit of its numbers.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self.experiment {
            Experiment::Bandwidth => "GB/s",
            _ => "ns",
        }
    }

    /// Whether a larger number is a worse one.
    #[must_use]
    pub const fn is_cost(&self) -> bool {
        !matches!(self.experiment, Experiment::Bandwidth)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.experiment.title())?;
        if self.level.is_empty() { Ok(()) } else { write!(f, " ({})", self.level) }
    }
}

/// One number of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// What it is called within its part; equal nodes have the same names.
    pub name: String,
    /// Which part of the experiment: a coherence state, a mode of the chase, a level; empty where there is one. Parts
    /// are measured one after another, so that what a host does for a moment is in one of them alone.
    pub part: String,
    /// The cores and the region that it is of.
    pub of: Vec<Item>,
    /// The number, above 0, in the unit of its kind.
    pub value: f64,
    /// Its 95 % interval within the map, in the same unit.
    pub interval: (f64, f64),
}

impl Quantity {
    /// A number; `None` where it is not above 0, which has no ratio.
    #[must_use]
    pub fn new(name: String, of: Vec<Item>, value: f64, interval: (f64, f64)) -> Option<Self> {
        let is_sound = value.is_finite() && value > 0.0;
        is_sound.then_some(Self { name, part: String::new(), of, value, interval })
    }
}

/// What an atlas says of its node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What the node is called: the name of its file.
    pub name: String,
    /// Measured or simulated.
    pub reading: Reading,
    /// Words of its machine's fingerprint, `"cpu: ..."`.
    pub words: Vec<String>,
    /// Cores that were measured.
    pub cores: usize,
    /// Regions of memory.
    pub regions: usize,
    /// False if its map was interrupted.
    pub complete: bool,
    /// Seconds since the epoch at the start of its map.
    pub started_unix_s: u64,
    /// How far each experiment may be believed.
    pub grades: BTreeMap<Experiment, Grade>,
    /// Its numbers.
    pub quantities: BTreeMap<Kind, Vec<Quantity>>,
    /// How its map was made.
    pub made: Made,
}

/// How a map was made, and what it says itself of what it lacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Made {
    /// Which boot of which machine, as a hash; nothing where its folder does not say.
    pub boot: Option<u64>,
    /// Seconds that it took.
    pub seconds: f64,
    /// A line for each thing that was left out, with the reason.
    pub missing: Vec<String>,
    /// Why each experiment has its grade.
    pub reasons: BTreeMap<Experiment, String>,
}

impl Node {
    /// What the atlas of a node says.
    #[must_use]
    pub fn of(name: &str, contents: &Contents) -> Self {
        let graded = contents.quality.iter();
        let mut node = Self {
            name: name.to_owned(),
            reading: contents.reading,
            words: contents.fingerprint.words.clone(),
            cores: contents.machine.cores.len(),
            regions: contents.machine.regions.len(),
            complete: contents.complete,
            started_unix_s: contents.provenance.started_unix_s,
            grades: contents.quality.iter().map(|(of, graded)| (*of, graded.grade)).collect(),
            quantities: BTreeMap::new(),
            made: Made {
                boot: None,
                seconds: contents.provenance.seconds,
                missing: contents.provenance.missing.clone(),
                reasons: graded.map(|(of, graded)| (*of, graded.reason.clone())).collect(),
            },
        };
        for map in &contents.regions {
            node.add_matrix(Experiment::Region, &map.mode, &map.latency_ns);
        }
        for map in &contents.transfers {
            node.add_matrix(Experiment::Transfer, &map.state, &map.latency_ns);
        }
        for level in &contents.levels {
            for (core, quality) in contents.machine.cores.iter().zip(&level.quality) {
                let Some(mean) = quality.mean_ns else { continue };
                let item = Item::Core(core.id);
                let quantity = Quantity::new(item.to_string(), vec![item], mean, (mean, mean));
                node.add(Experiment::Block, &level.level, quantity);
            }
        }
        for group in &contents.bandwidth {
            let cores: Vec<String> = group.cores.iter().map(ToString::to_string).collect();
            let name = format!("cores {} to region {}", cores.join(","), group.region);
            let mut of = vec![Item::Region(group.region)];
            if let [core] = group.cores[..] {
                of.push(Item::Core(core));
            }
            let cell = &group.gb_per_s;
            let quantity = Quantity::new(name, of, cell.median, (cell.lo, cell.hi));
            node.add(Experiment::Bandwidth, "", quantity);
        }
        node
    }

    /// Adds a number to a part of an experiment, where there is one and it is compared.
    pub fn add(&mut self, experiment: Experiment, part: &str, quantity: Option<Quantity>) {
        let level = if experiment == Experiment::Block { part } else { "" }.to_owned();
        let is_ahead = experiment == Experiment::Region && part == AHEAD;
        if let Some(quantity) = quantity.filter(|_| !is_ahead) {
            let quantity = Quantity { part: part.to_owned(), ..quantity };
            self.quantities.entry(Kind { experiment, level }).or_default().push(quantity);
        }
    }

    /// Adds the cells of a matrix.
    pub fn add_matrix(&mut self, experiment: Experiment, part: &str, matrix: &Matrix) {
        let columns = matrix.columns.len().max(1);
        for (at, cell) in matrix.cells.iter().enumerate() {
            let labels = (matrix.rows.get(at / columns), matrix.columns.get(at % columns));
            let ((Some(row), Some(column)), Some(cell)) = (labels, cell) else { continue };
            let of = [row, column].into_iter().filter_map(|label| Item::of_label(label)).collect();
            let name = format!("{row} to {column}");
            let quantity = Quantity::new(name, of, cell.median, (cell.lo, cell.hi));
            self.add(experiment, part, quantity);
        }
    }

    /// Whether a host decides on which cores it runs.
    #[must_use]
    pub fn is_guest(&self) -> bool {
        self.word("hypervisor") != "none"
    }

    /// What its fingerprint says under `key`, such as `cpu`; `none` where it says nothing.
    #[must_use]
    pub fn word(&self, key: &str) -> &str {
        let said = |word: &'_ String| word.split_once(": ").is_some_and(|(name, _)| name == key);
        let word = self.words.iter().find(|word| said(word));
        word.and_then(|word| word.split_once(": ")).map_or("none", |(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_view::fixtures::genoa;

    #[test]
    fn every_cell_of_an_atlas_is_a_number_of_what_it_is_of() {
        let contents = genoa();
        let node = Node::of("n1", &contents);
        assert_eq!((node.cores, node.regions), (2, contents.machine.regions.len()));
        let kind = |experiment| Kind { experiment, level: String::new() };
        let transfers = kind(Experiment::Transfer);
        let pairs = &node.quantities[&transfers];
        let of: Vec<_> = pairs.iter().map(|pair| pair.of.clone()).collect();
        assert!(of.contains(&vec![Item::Core(0), Item::Core(1)]), "{of:?}");
        let bandwidth = kind(Experiment::Bandwidth);
        assert_eq!(node.quantities[&bandwidth].len(), contents.bandwidth.len());
        assert!(node.quantities.keys().any(|kind| kind.experiment == Experiment::Block));
        let regions = &node.quantities[&kind(Experiment::Region)];
        assert!(regions.iter().all(|it| it.part != AHEAD) && !regions.is_empty());
        assert_eq!(node.word("no such word"), "none");
    }

    #[test]
    fn what_has_no_ratio_is_left_out() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Quantity::new("x".into(), Vec::new(), value, (0.0, 1.0)), None);
        }
    }
}
