//! An atlas as hwloc 2 XML: the topology, with the measured latencies as distances and memory
//! attributes, so that every program that asks hwloc gets them.
//!
//! The format is hwloc's `hwloc2.dtd`. Values are whole nanoseconds, as hwloc stores them.

use super::hwloc_tree::{Kind, Node, Set, region_cores, tree};
use crate::contents::{Contents, Matrix};
use isochrone_machine::{Cache, CacheKind};
use std::fmt::Write as _;

/// `HWLOC_DISTANCES_KIND_FROM_USER | HWLOC_DISTANCES_KIND_MEANS_LATENCY` (hwloc/distances.h).
const KIND_USER_LATENCY: u32 = 1 << 1 | 1 << 2;
/// `HWLOC_MEMATTR_FLAG_LOWER_FIRST | HWLOC_MEMATTR_FLAG_NEED_INITIATOR` (hwloc/memattrs.h).
const LATENCY_FLAGS: u32 = 1 << 1 | 1 << 2;
/// Numbers a line of a list, as hwloc writes them.
const LIST_CHUNK: usize = 10;

/// Why there is no XML.
#[derive(Debug, thiserror::Error)]
pub enum HwlocError {
    /// The machine has no cores
    #[error("the atlas describes no cores, and hwloc needs one; export it as JSON or CSV")]
    NoCores,
    /// The text could not be put together
    #[error("the text could not be put together: {0}")]
    Format(#[from] std::fmt::Error),
}

/// The atlas as hwloc 2 XML text. Distances between cores come from the line transfers (modified
/// lines, else the first state measured), both directions; memory latency from the random chase,
/// else the first mode measured.
///
/// # Errors
/// [`HwlocError::NoCores`] for a machine without cores.
pub fn hwloc_xml(contents: &Contents) -> Result<String, HwlocError> {
    if contents.machine.cores.is_empty() {
        return Err(HwlocError::NoCores);
    }
    let mut xml = Xml { text: String::new(), contents, next_id: 1, region_ids: Vec::new() };
    xml.text += "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    xml.text += "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n";
    let root = tree(&contents.machine);
    xml.object(&root, 1)?;
    xml.distances()?;
    xml.memory_latency()?;
    xml.text += "</topology>\n";
    Ok(xml.text)
}

struct Xml<'c> {
    text: String,
    contents: &'c Contents,
    /// Every object has a number of its own, from 1.
    next_id: u64,
    /// Object numbers of regions: `(place, number)`.
    region_ids: Vec<(usize, u64)>,
}

impl Xml<'_> {
    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn object(&mut self, node: &Node, depth: usize) -> Result<(), HwlocError> {
        let id = self.take_id();
        let pad = "  ".repeat(depth);
        let (cpus, nodes) = self.sets(&node.cores);
        write!(self.text, "{pad}<object type=\"{}\"{}", type_of(&node.kind), os_index(&node.kind))?;
        // The machine alone also says what may be used: everything that was described.
        let prefixes: &[&str] = match node.kind {
            Kind::Machine => &["", "complete_", "allowed_"],
            _ => &["", "complete_"],
        };
        for prefix in prefixes {
            write!(self.text, " {prefix}cpuset=\"{cpus}\" {prefix}nodeset=\"{nodes}\"")?;
        }
        write!(self.text, " gp_index=\"{id}\"")?;
        match &node.kind {
            Kind::Cache(cache) => self.text += &cache_attributes(cache),
            Kind::Group => self.text += " kind=\"0\" subkind=\"0\"",
            _ => {}
        }
        self.text += ">\n";
        if node.kind == Kind::Machine {
            self.infos(&pad)?;
        }
        for &place in &node.regions {
            self.region(place, depth + 1)?;
        }
        for child in &node.children {
            self.object(child, depth + 1)?;
        }
        writeln!(self.text, "{pad}</object>")?;
        Ok(())
    }

    fn infos(&mut self, pad: &str) -> Result<(), HwlocError> {
        let contents = self.contents;
        let facts = [
            ("Backend", "isochrone"),
            ("IsochroneVersion", &contents.provenance.version),
            ("IsochroneReading", contents.reading.as_str()),
            ("IsochroneMachine", &contents.machine.title),
        ];
        for (name, value) in facts {
            writeln!(self.text, "{pad}  <info name=\"{name}\" value=\"{}\"/>", escaped(value))?;
        }
        Ok(())
    }

    fn region(&mut self, place: usize, depth: usize) -> Result<(), HwlocError> {
        let id = self.take_id();
        self.region_ids.push((place, id));
        let region = self.contents.machine.regions.get(place);
        let os = region.map_or(0, |region| region.id);
        let cores = region_cores(&self.contents.machine, place);
        let (cpus, nodes) = (bits(&cores), bits(&Set::from([os])));
        let pad = "  ".repeat(depth);
        write!(self.text, "{pad}<object type=\"NUMANode\" os_index=\"{os}\"")?;
        write!(self.text, " cpuset=\"{cpus}\" complete_cpuset=\"{cpus}\"")?;
        write!(self.text, " nodeset=\"{nodes}\" complete_nodeset=\"{nodes}\" gp_index=\"{id}\"")?;
        if let Some(bytes) = region.and_then(|region| region.bytes) {
            write!(self.text, " local_memory=\"{bytes}\"")?;
        }
        self.text += "/>\n";
        Ok(())
    }

    /// The processors of an object and the regions that are local to them, as bitmaps.
    fn sets(&self, cores: &Set) -> (String, String) {
        let machine = &self.contents.machine;
        let local = |place: &usize| !region_cores(machine, *place).is_disjoint(cores);
        let id = |place: usize| machine.regions.get(place).map_or(0, |region| region.id);
        let nodes: Set = (0..machine.regions.len().max(1)).filter(local).map(id).collect();
        (bits(cores), bits(&nodes))
    }

    /// Core to core, from the line transfers. hwloc wants every cell, so a map with a missing pair is
    /// left out: the modified state's is written where it is whole, else the first that is. The diagonal
    /// is 0, since a core has its own lines.
    fn distances(&mut self) -> Result<(), HwlocError> {
        let transfers = &self.contents.transfers;
        let modified = transfers.iter().filter(|map| map.state == "modified");
        let others = transfers.iter().filter(|map| map.state != "modified");
        let whole =
            modified.chain(others).find_map(|map| Some((map, self.square(&map.latency_ns)?)));
        let Some((map, (cores, values))) = whole else { return Ok(()) };
        let name = format!("Isochrone{}LineTransfer", capital(&map.state));
        let (count, kind) = (cores.len(), KIND_USER_LATENCY);
        writeln!(
            self.text,
            "  <distances2 type=\"PU\" nbobjs=\"{count}\" kind=\"{kind}\" name=\"{}\" \
             indexing=\"os\">",
            escaped(&name)
        )?;
        self.list("indexes", &cores.iter().map(|&core| u64::from(core)).collect::<Vec<_>>())?;
        self.list("u64values", &values)?;
        self.text += "  </distances2>\n";
        Ok(())
    }

    /// The cells of a matrix between all cores of the machine, if none is missing.
    fn square(&self, matrix: &Matrix) -> Option<(Vec<u16>, Vec<u64>)> {
        let cores: Vec<u16> = self.contents.machine.cores.iter().map(|core| core.id).collect();
        let place = |labels: &[String], core: u16| {
            labels.iter().position(|label| number_of(label) == Some(core))
        };
        let mut values = Vec::new();
        for &from in &cores {
            for &to in &cores {
                if from == to {
                    values.push(0);
                    continue;
                }
                let row = place(&matrix.rows, from)?;
                let column = place(&matrix.columns, to)?;
                let cell = matrix.cells.get(row * matrix.columns.len() + column)?;
                values.push(whole_ns(cell.as_ref()?.median)?);
            }
        }
        (cores.len() > 1).then_some((cores, values))
    }

    /// One `<indexes>` or `<u64values>` element a chunk; `length` counts its characters.
    fn list(&mut self, tag: &str, values: &[u64]) -> Result<(), HwlocError> {
        for chunk in values.chunks(LIST_CHUNK) {
            let text: String = chunk.iter().map(|value| format!("{value} ")).collect();
            writeln!(self.text, "    <{tag} length=\"{}\">{text}</{tag}>", text.len())?;
        }
        Ok(())
    }

    /// Core to region, from the chase, as hwloc's attribute "Latency".
    fn memory_latency(&mut self) -> Result<(), HwlocError> {
        let regions = &self.contents.regions;
        let random = regions.iter().find(|map| map.mode == "random");
        let Some(map) = random.or(regions.first()) else { return Ok(()) };
        let matrix = &map.latency_ns;
        let mut values = String::new();
        for (index, cell) in matrix.cells.iter().enumerate() {
            let columns = matrix.columns.len().max(1);
            let label = |labels: &[String], at: usize| labels.get(at).and_then(|l| number_of(l));
            let core = label(&matrix.rows, index / columns);
            let region = label(&matrix.columns, index % columns);
            let (Some(core), Some(region)) = (core, region) else { continue };
            let Some(ns) = cell.as_ref().and_then(|cell| whole_ns(cell.median)) else { continue };
            let Some(target) = self.region_id(region) else { continue };
            writeln!(
                values,
                "    <memattr_value target_obj_gp_index=\"{target}\" target_obj_type=\"NUMANode\" \
                 value=\"{ns}\" initiator_cpuset=\"{}\"/>",
                bits(&Set::from([core]))
            )?;
        }
        if !values.is_empty() {
            writeln!(self.text, "  <memattr name=\"Latency\" flags=\"{LATENCY_FLAGS}\">")?;
            self.text += &values;
            self.text += "  </memattr>\n";
        }
        Ok(())
    }

    fn region_id(&self, region: u16) -> Option<u64> {
        let regions = &self.contents.machine.regions;
        let id = |place: usize| regions.get(place).map_or(0, |region| region.id);
        self.region_ids.iter().find(|(place, _)| id(*place) == region).map(|(_, id)| *id)
    }
}

fn type_of(kind: &Kind) -> String {
    match kind {
        Kind::Machine => "Machine".to_owned(),
        Kind::Package(_) => "Package".to_owned(),
        Kind::Group => "Group".to_owned(),
        Kind::Cache(cache) => {
            let instruction = if cache.kind == CacheKind::Instruction { "i" } else { "" };
            format!("L{}{instruction}Cache", cache.level)
        }
        Kind::Core => "Core".to_owned(),
        Kind::Unit(_) => "PU".to_owned(),
    }
}

fn os_index(kind: &Kind) -> String {
    match kind {
        Kind::Machine => " os_index=\"0\"".to_owned(),
        Kind::Package(id) | Kind::Unit(id) => format!(" os_index=\"{id}\""),
        Kind::Group | Kind::Cache(_) | Kind::Core => String::new(),
    }
}

/// Sizes that are not known are 0 in hwloc's own files too. Types: 0 unified, 1 data, 2
/// instruction (`hwloc_obj_cache_type_t`).
fn cache_attributes(cache: &Cache) -> String {
    let kind = match cache.kind {
        CacheKind::Unified => 0,
        CacheKind::Data => 1,
        CacheKind::Instruction => 2,
    };
    format!(
        " cache_size=\"{}\" depth=\"{}\" cache_linesize=\"{}\" cache_associativity=\"{}\" \
         cache_type=\"{kind}\"",
        cache.bytes.unwrap_or(0),
        cache.level,
        cache.line_bytes.unwrap_or(0),
        cache.ways.unwrap_or(0),
    )
}

/// A set as hwloc writes bitmaps: 32-bit words in hexadecimal, the highest first.
fn bits(set: &Set) -> String {
    let mut words = vec![0_u32; usize::from(set.last().map_or(0, |last| last / 32)) + 1];
    for &member in set {
        words[usize::from(member / 32)] |= 1 << (member % 32);
    }
    let words: Vec<String> = words.iter().rev().map(|word| format!("0x{word:08x}")).collect();
    words.join(",")
}

/// The number at the end of a label.
fn number_of(label: &str) -> Option<u16> {
    label[label.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
}

/// Nanoseconds as hwloc holds them; `None` for what is no latency.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, and in range by the check before"
)]
fn whole_ns(ns: f64) -> Option<u64> {
    (0.0..1e15).contains(&ns).then(|| ns.round() as u64)
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// XML's five entities.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&apos;",
            // Nothing below a space but tab and line ends may stand in XML 1.0.
            c if c < ' ' && !matches!(c, '\t' | '\n' | '\r') => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
