//! A machine from a topology that hwloc has written as XML (`lstopo topology.xml`).
//!
//! The format is that of `hwloc2.dtd`, which hwloc 2 and 3 write; what hwloc 1 wrote is read as far
//! as it says the same. A topology has cores, caches, regions and the firmware's distances, and no
//! latency of any kind: what programs that need one say then is theirs.

use std::collections::{BTreeMap, BTreeSet};

use isochrone_machine::{Cache, CacheKind, Core, Cpu, Machine, Region, RegionKind, Source};
use roxmltree::{Document, Node, ParsingOptions};

use crate::file::MachineFileError;

/// Bytes of the largest topology that is read: 576 cores with all their devices take 1 MB.
pub(crate) const MAX_XML_BYTES: usize = 16 << 20;

/// Objects and attributes that are read at most.
const MAX_NODES: u32 = 1 << 20;

/// `HWLOC_DISTANCES_KIND_FROM_OS` and `HWLOC_DISTANCES_KIND_MEANS_LATENCY` (hwloc/distances.h).
const KIND_OS_LATENCY: u64 = 1 << 0 | 1 << 2;

/// Reads a topology; `file_name` only appears in errors and in what the machine is called.
///
/// # Errors
/// The first thing that is wrong, with its line and column and what was expected there.
pub fn machine_from_hwloc(text: &str, file_name: &str) -> Result<Machine, MachineFileError> {
    if text.len() > MAX_XML_BYTES {
        let (file, bytes) = (file_name.to_owned(), text.len());
        return Err(MachineFileError::TooLarge { file, bytes, limit: MAX_XML_BYTES });
    }
    let options = ParsingOptions { allow_dtd: true, nodes_limit: MAX_NODES, ..Default::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        MachineFileError::At {
            file: file_name.to_owned(),
            line: usize::try_from(at.row).unwrap_or(usize::MAX),
            column: usize::try_from(at.col).unwrap_or(usize::MAX),
            problem: error.to_string(),
        }
    })?;
    Topology { document: &document, file: file_name }.machine()
}

/// A topology while it is read.
struct Topology<'a> {
    document: &'a Document<'a>,
    file: &'a str,
}

impl Topology<'_> {
    fn machine(&self) -> Result<Machine, MachineFileError> {
        let root = self.document.root_element();
        if root.tag_name().name() != "topology" {
            return Err(self.wrong(root, "expected an element <topology>, as lstopo writes it"));
        }
        let mut cores = self.cores()?;
        let mut notes = Vec::new();
        let regions = self.regions(&mut cores, &mut notes)?;
        let distances = self.distances(&regions, &mut notes);
        let cpu = self.cpu();
        let model = cpu.as_ref().and_then(|cpu| cpu.model_name.clone());
        let model = model.unwrap_or_else(|| "unnamed processor".to_owned());
        let memory: u64 = regions.iter().filter_map(|region| region.bytes).sum();
        Ok(Machine {
            name: name_of(self.file),
            title: format!("{model}, {} cores", cores.len()),
            sources: vec![Source {
                id: "hwloc".into(),
                text: format!("topology of hwloc in {}", self.file),
            }],
            cpu,
            memory_bytes: (memory > 0).then_some(memory),
            caches: self.caches(&cores)?,
            cores,
            regions,
            distances,
            notes,
            unknown: vec!["latencies of any kind: a topology has none".into()],
            ..Machine::default()
        })
    }

    fn objects(&self, is: impl Fn(&str) -> bool) -> impl Iterator<Item = Node<'_, '_>> {
        let objects = self.document.descendants().filter(|node| node.has_tag_name("object"));
        objects.filter(move |object| object.attribute("type").is_some_and(&is))
    }

    /// Every processing unit as a core, ascending.
    fn cores(&self) -> Result<Vec<Core>, MachineFileError> {
        let dies = self.dies()?;
        let mut cores = BTreeMap::new();
        for unit in self.objects(|kind| kind == "PU") {
            let id = self.number(unit, "os_index")?;
            let core = Core {
                id,
                region: 0,
                module: above(unit, "Die").and_then(|die| dies.get(&die.id().get_usize()).copied()),
                package: above(unit, "Package")
                    .or_else(|| above(unit, "Socket"))
                    .and_then(|p| attribute(p, "os_index")),
                smt_siblings: self.siblings(unit, id)?,
                place: None,
            };
            if cores.insert(id, core).is_some() {
                return Err(self.wrong(unit, &format!("processing unit {id} is there twice")));
            }
        }
        if cores.is_empty() {
            let root = self.document.root_element();
            return Err(
                self.wrong(root, "no object of type PU: a topology without processing units")
            );
        }
        Ok(cores.into_values().collect())
    }

    /// The other units of a unit's core.
    fn siblings(&self, unit: Node<'_, '_>, id: u16) -> Result<Vec<u16>, MachineFileError> {
        let Some(core) = above(unit, "Core") else { return Ok(Vec::new()) };
        let units = core.descendants().filter(|node| node.attribute("type") == Some("PU"));
        let ids: Result<BTreeSet<u16>, _> =
            units.map(|unit| self.number(unit, "os_index")).collect();
        Ok(ids?.into_iter().filter(|other| *other != id).collect())
    }

    /// Dies as modules, numbered over the whole machine; empty where each package has one.
    fn dies(&self) -> Result<BTreeMap<usize, u16>, MachineFileError> {
        let dies: Vec<_> = self.objects(|kind| kind == "Die").collect();
        let packages: BTreeSet<_> = dies
            .iter()
            .filter_map(|die| above(*die, "Package"))
            .map(|p| p.id().get_usize())
            .collect();
        if dies.len() <= packages.len().max(1) {
            return Ok(BTreeMap::new());
        }
        let number = |(n, die): (usize, &Node<'_, '_>)| match u16::try_from(n) {
            Ok(n) => Ok((die.id().get_usize(), n)),
            Err(_) => Err(self.wrong(*die, "more dies than 65536")),
        };
        dies.iter().enumerate().map(number).collect()
    }

    /// Regions, ascending; each core learns its own, the smallest that has it.
    fn regions(
        &self,
        cores: &mut [Core],
        notes: &mut Vec<String>,
    ) -> Result<Vec<Region>, MachineFileError> {
        let mut regions = BTreeMap::new();
        for node in self.objects(|kind| kind == "NUMANode") {
            let id = self.number(node, "os_index")?;
            let members = self.cpus(node, cores)?;
            let bytes = attribute(node, "local_memory").or_else(|| {
                node.children()
                    .find(|c| c.has_tag_name("memory"))
                    .and_then(|m| attribute(m, "local_memory"))
            });
            let region = Region { id, kind: kind_of(node), bytes, cores: members, source: None };
            if regions.insert(id, region).is_some() {
                return Err(self.wrong(node, &format!("region {id} is there twice")));
            }
        }
        let mut regions: Vec<Region> = regions.into_values().collect();
        if regions.is_empty() {
            notes.push(
                "the topology has no memory regions; all memory is taken for one region".into(),
            );
            regions.push(Region {
                cores: cores.iter().map(|core| core.id).collect(),
                ..Region::default()
            });
        }
        give(&mut regions, cores, notes);
        Ok(regions)
    }

    /// The processing units of an object's set that are there.
    fn cpus(&self, object: Node<'_, '_>, cores: &[Core]) -> Result<Vec<u16>, MachineFileError> {
        let Some(text) = object.attribute("cpuset") else { return Ok(Vec::new()) };
        let Some(set) = Bits::of(text) else {
            let problem = format!(
                "the set {text:?}; expected hexadecimal words such as 0x000000ff,0x00000001"
            );
            return Err(self.wrong(object, &problem));
        };
        Ok(cores.iter().map(|core| core.id).filter(|core| set.has(*core)).collect())
    }

    /// Caches in the order of level, kind and first core.
    fn caches(&self, cores: &[Core]) -> Result<Vec<Cache>, MachineFileError> {
        let mut caches = Vec::new();
        for object in self.objects(|kind| kind.ends_with("Cache")) {
            let shared_by = self.cpus(object, cores)?;
            let kind = match object.attribute("cache_type") {
                Some("1") => CacheKind::Data,
                Some("2") => CacheKind::Instruction,
                _ => CacheKind::Unified,
            };
            // 0 is what hwloc writes where a figure is not known, and -1 where a cache is fully
            // associative.
            let known = |name| attribute(object, name).filter(|&number: &u32| number > 0);
            let level = self.number(object, "depth")?;
            caches.push(Cache {
                level,
                kind,
                bytes: attribute(object, "cache_size").filter(|&bytes: &u64| bytes > 0),
                line_bytes: known("cache_linesize"),
                ways: known("cache_associativity"),
                shared_by,
                source: None,
            });
        }
        caches
            .sort_by(|a, b| (a.level, a.kind, &a.shared_by).cmp(&(b.level, b.kind, &b.shared_by)));
        Ok(caches)
    }

    /// What the firmware says of regions, a row each; those that a user has added are in another
    /// unit.
    fn distances(&self, regions: &[Region], notes: &mut Vec<String>) -> Option<Vec<Vec<u32>>> {
        let of_regions = |node: &Node<'_, '_>| {
            node.has_tag_name("distances2")
                && node.attribute("type") == Some("NUMANode")
                && attribute(*node, "kind")
                    .is_some_and(|kind: u64| kind & KIND_OS_LATENCY == KIND_OS_LATENCY)
        };
        let found =
            self.document.descendants().find(of_regions).and_then(|node| square(node, regions));
        if found.is_none() && regions.len() > 1 {
            notes.push("the topology has no distances of the firmware between its regions".into());
        }
        found
    }

    /// What the first package is.
    fn cpu(&self) -> Option<Cpu> {
        let package = self.objects(|kind| kind == "Package" || kind == "Socket").next()?;
        let info = |name: &str| {
            let infos = package.children().filter(|child| child.has_tag_name("info"));
            infos
                .filter(|info| info.attribute("name") == Some(name))
                .find_map(|info| info.attribute("value"))
        };
        let number = |name: &str| info(name)?.parse().ok();
        Some(Cpu {
            vendor: info("CPUVendor").map(str::to_owned),
            model_name: info("CPUModel").map(str::to_owned),
            family: number("CPUFamilyNumber"),
            model: number("CPUModelNumber"),
            stepping: number("CPUStepping"),
        })
    }

    fn number<T: std::str::FromStr>(
        &self,
        node: Node<'_, '_>,
        name: &str,
    ) -> Result<T, MachineFileError> {
        let kind = node.attribute("type").unwrap_or_default();
        attribute(node, name).ok_or_else(|| {
            let there = node
                .attribute(name)
                .map_or_else(|| "nothing".to_owned(), |text| format!("{text:?}"));
            self.wrong(
                node,
                &format!("{name} of an object of type {kind} is {there}; expected a small number"),
            )
        })
    }

    fn wrong(&self, node: Node<'_, '_>, problem: &str) -> MachineFileError {
        let at = self.document.text_pos_at(node.range().start);
        MachineFileError::At {
            file: self.file.to_owned(),
            line: usize::try_from(at.row).unwrap_or(usize::MAX),
            column: usize::try_from(at.col).unwrap_or(usize::MAX),
            problem: problem.to_owned(),
        }
    }
}

/// The file's name without folders and end.
fn name_of(file: &str) -> String {
    let stem = std::path::Path::new(file).file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or("topology").to_owned()
}

/// The nearest object around `node` of a type.
fn above<'a>(node: Node<'a, 'a>, kind: &str) -> Option<Node<'a, 'a>> {
    node.ancestors().find(|node| node.attribute("type") == Some(kind))
}

fn attribute<T: std::str::FromStr>(node: Node<'_, '_>, name: &str) -> Option<T> {
    node.attribute(name)?.parse().ok()
}

/// What a region is made of, where hwloc tells it apart (its subtype, or hwloc 1's info `Type`).
fn kind_of(node: Node<'_, '_>) -> RegionKind {
    match node.attribute("subtype") {
        Some("MCDRAM") => RegionKind::Mcdram,
        Some("HBM") => RegionKind::Hbm,
        Some("DRAM") => RegionKind::Ddr,
        Some("CXL-DRAM" | "CXL") => RegionKind::Cxl,
        _ => RegionKind::Unknown,
    }
}

/// Gives each core its region. Of two that have it, ordinary memory comes first, since hwloc counts
/// fast memory in a package to the same cores, and the kernel to none.
fn give(regions: &mut [Region], cores: &mut [Core], notes: &mut Vec<String>) {
    let mut strays = Vec::new();
    for core in cores.iter_mut() {
        let fast = |region: &Region| {
            matches!(region.kind, RegionKind::Mcdram | RegionKind::Hbm | RegionKind::Cxl)
        };
        let having = regions.iter().filter(|region| region.cores.contains(&core.id));
        match having.min_by_key(|region| (fast(region), region.cores.len())) {
            Some(region) => core.region = region.id,
            None => {
                core.region = regions.first().map_or(0, |region| region.id);
                strays.push(core.id);
            }
        }
    }
    for region in regions.iter_mut() {
        let own = cores.iter().filter(|core| core.region == region.id);
        region.cores = own.map(|core| core.id).collect();
    }
    if let (Some(first), false) = (regions.first(), strays.is_empty()) {
        let names = isochrone_machine::spans(&strays);
        notes.push(format!("no region has cores {names}; they are taken for region {}", first.id));
    }
}

/// The cells of a matrix between all regions in their order; `None` where one is missing.
fn square(node: Node<'_, '_>, regions: &[Region]) -> Option<Vec<Vec<u32>>> {
    let indexes = numbers(node, "indexes")?;
    let values = numbers(node, "u64values")?;
    let count = indexes.len();
    let place = |region: &Region| indexes.iter().position(|index| *index == u64::from(region.id));
    let places: Vec<usize> = regions.iter().map(place).collect::<Option<_>>()?;
    let cell = |row: usize, column: usize| u32::try_from(*values.get(row * count + column)?).ok();
    places.iter().map(|&row| places.iter().map(|&column| cell(row, column)).collect()).collect()
}

/// The numbers of all elements of one name, in their order.
fn numbers(node: Node<'_, '_>, name: &str) -> Option<Vec<u64>> {
    let texts =
        node.children().filter(|child| child.has_tag_name(name)).filter_map(|child| child.text());
    texts.flat_map(str::split_whitespace).map(|word| word.parse().ok()).collect()
}

/// A set as hwloc writes it: words of 32 bits, the last one lowest, and `0xf...f` for all that are
/// higher.
struct Bits {
    /// The lowest first.
    words: Vec<u32>,
    beyond: bool,
}

impl Bits {
    fn of(text: &str) -> Option<Self> {
        let mut words: Vec<&str> = text.split(',').collect();
        let beyond = words.first() == Some(&"0xf...f");
        if beyond {
            words.remove(0);
        }
        let word = |word: &&str| match word.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            // hwloc leaves out words that are 0.
            None => word.is_empty().then_some(0),
        };
        let words = words.iter().rev().map(word).collect::<Option<_>>()?;
        Some(Self { words, beyond })
    }

    fn has(&self, core: u16) -> bool {
        let word = self.words.get(usize::from(core / 32));
        word.map_or(self.beyond, |word| word >> (core % 32) & 1 == 1)
    }
}

#[cfg(test)]
mod tests;
