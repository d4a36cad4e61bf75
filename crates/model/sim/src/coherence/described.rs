//! From a machine description to a spec: which record and which named cost means what.

use isochrone_machine::{Cost, Machine};
use isochrone_units::CoreId;

use super::clocks::Clocks;
use super::message::MessageBytes;
use super::spec::{
    Bandwidth, CleanEvictions, Distance, Energy, FarLink, Latency, MemoryDirectory, Node, NumaSpec,
    NumaSpecError, Protocol, Rates, Spread,
};

/// Why a machine description cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DescribedError {
    /// A cost is missing or unknown
    #[error(
        "machine {machine} has no number for {name:?}; add it under [[costs]], known or assumed"
    )]
    Missing {
        /// The machine.
        machine: String,
        /// The cost.
        name: String,
    },
    /// A part is not described
    #[error("machine {machine}: {what}")]
    Part {
        /// The machine.
        machine: String,
        /// What is missing and what to add.
        what: String,
    },
    /// The numbers contradict each other
    #[error(transparent)]
    Impossible(#[from] NumaSpecError),
}

impl NumaSpec {
    /// The coherent machine that a description means.
    ///
    /// # Errors
    /// What is missing there, or which numbers cannot be together.
    pub fn of(machine: &Machine) -> Result<Self, DescribedError> {
        let reader = Reader { machine };
        let nodes = reader.nodes()?;
        let mut spec = Self {
            name: machine.name.clone(),
            nodes,
            latency: Latency { read: [None; 4], llc: 0.0, crossing: 0.0, position: 0.0 },
            bandwidth: Bandwidth {
                triad: [None; 4],
                controllers: reader.optional("BCS bandwidth"),
                far: FarLink::WIDTH,
            },
            outstanding: [1.0; 4],
            bytes: MessageBytes {
                control: reader.required("control message")?,
                data: reader.required("data message")?,
            },
            protocol: reader.protocol(),
            rates: Rates {
                blocked: reader.required("core rate")?,
                scalar: reader.required("scalar rate")?,
            },
            clocks: reader.clocks()?,
            energy: Energy {
                memory: reader.optional("memory energy").unwrap_or(0.0),
                near: reader.optional("near energy").unwrap_or(0.0),
                far: reader.optional("far energy").unwrap_or(0.0),
            },
        };
        spec.latency.llc = reader.required("LLC latency")?;
        let distances: Vec<Distance> = spec.distances().collect();
        for distance in distances {
            let (at, word) = (distance as usize, word(distance));
            spec.latency.read[at] = Some(reader.spread(&format!("{word} latency"))?);
            spec.bandwidth.triad[at] = Some(reader.required(&format!("{word} bandwidth"))?);
            spec.outstanding[at] = reader.required(&format!("outstanding lines {word}"))?;
        }
        if spec.modules() > 1 {
            spec.latency.crossing = reader.required("BCS crossing")?;
            spec.latency.position = reader.optional("position").unwrap_or(0.0);
        }
        spec.validate()?;
        Ok(spec)
    }
}

/// The word that costs of a distance begin with.
const fn word(distance: Distance) -> &'static str {
    match distance {
        Distance::Local => "local",
        Distance::Cluster => "cluster",
        Distance::Near => "near",
        Distance::Far => "far",
    }
}

struct Reader<'a> {
    machine: &'a Machine,
}

impl Reader<'_> {
    fn optional(&self, name: &str) -> Option<f64> {
        self.machine.cost(name)?.number()
    }

    fn required(&self, name: &str) -> Result<f64, DescribedError> {
        self.optional(name).ok_or_else(|| DescribedError::Missing {
            machine: self.machine.name.clone(),
            name: name.into(),
        })
    }

    fn spread(&self, name: &str) -> Result<Spread, DescribedError> {
        let mean = self.required(name)?;
        let Some(known) = self.machine.cost(name).and_then(Cost::known) else {
            return Ok(Spread::even(mean));
        };
        let (min, max) = (known.interval.low, known.interval.high);
        Ok(Spread { mean, min: min.unwrap_or(mean), max: max.unwrap_or(mean) })
    }

    /// Costs `turbo N`: the clock while N cores of a socket are active.
    fn clocks(&self) -> Result<Clocks, DescribedError> {
        let mut table = Vec::new();
        for cost in &self.machine.costs {
            let Some(active) = cost.name.strip_prefix("turbo ") else { continue };
            let active: u16 = active.parse().map_err(|_| DescribedError::Part {
                machine: self.machine.name.clone(),
                what: format!("{:?}: expected `turbo N`, N active cores of a socket", cost.name),
            })?;
            table.extend(cost.number().map(|ghz| (active, ghz)));
        }
        table.sort_by_key(|entry| entry.0);
        Ok(Clocks { table, of_rates: self.optional("rate clock"), turbo: false })
    }

    fn protocol(&self) -> Protocol {
        Protocol {
            memory_directory: MemoryDirectory::PerSocket,
            directory_lines: self.optional("BCS directory").map(crate::number::rounded),
            filter: true,
            clean_evictions: CleanEvictions::All,
            exclusive_readers: false,
        }
    }

    fn nodes(&self) -> Result<Vec<Node>, DescribedError> {
        let machine = self.machine;
        let part = |what: String| DescribedError::Part { machine: machine.name.clone(), what };
        let mut nodes = Vec::new();
        for region in machine.regions.iter().filter(|region| !region.cores.is_empty()) {
            let of_region = |core: &&isochrone_machine::Core| core.region == region.id;
            let mut cores = machine.cores.iter().filter(of_region);
            let first =
                cores.next().ok_or_else(|| part(format!("region {} has no core", region.id)))?;
            let socket = first.package.unwrap_or(0);
            if cores.any(|core| (core.package.unwrap_or(0), core.module) != (socket, first.module))
            {
                let what =
                    format!("the cores of region {} are in two sockets or modules", region.id);
                return Err(part(what));
            }
            let module = u8::try_from(first.module.unwrap_or(0))
                .map_err(|_| part("modules are numbered from 0 to 63".into()))?;
            nodes.push(Node {
                region: region.id,
                socket,
                module,
                cores: region.cores.clone(),
                llc_lines: self.llc_lines(first.id, region)?,
                memory_bytes: region.bytes.unwrap_or(u64::MAX),
            });
        }
        Ok(nodes)
    }

    /// The part of the last level that a region's cores have: all of it, or a cluster's share.
    fn llc_lines(
        &self,
        core: u16,
        region: &isochrone_machine::Region,
    ) -> Result<u32, DescribedError> {
        let llc = self.machine.last_level_cache(CoreId(core));
        let bytes = llc.and_then(|cache| Some((cache.bytes?, cache.shared_by.len())));
        let Some((bytes, shared_by)) = bytes else {
            return Err(DescribedError::Part {
                machine: self.machine.name.clone(),
                what: format!("region {} has no last-level cache with a size", region.id),
            });
        };
        let share = bytes / 64 * region.cores.len() as u64 / shared_by.max(1) as u64;
        u32::try_from(share).map_err(|_| DescribedError::Part {
            machine: self.machine.name.clone(),
            what: format!("region {}: a last level of {bytes} B is larger than any", region.id),
        })
    }
}
