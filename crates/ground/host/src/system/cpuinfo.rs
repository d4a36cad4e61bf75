//! What `/proc/cpuinfo` says about the processor. Only the first core's block is used: Linux
//! machines of this kind have one kind of core, and a hybrid one is told apart by its caches.

use isochrone_machine::Cpu;

use super::list::field;
use super::midr;
use super::root::SysRoot;

/// The fields that this crate needs, each missing where the system does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuInfo {
    pub(super) cpu: Cpu,
    pub(super) microcode: Option<String>,
    /// Whether the processor says that a hypervisor is present; `None` without a flags line.
    pub(super) in_guest: Option<bool>,
    /// Numbers of the cores listed.
    pub(super) cores: Vec<u16>,
}

pub(super) fn read(root: &SysRoot) -> CpuInfo {
    let Some(text) = root.text("proc/cpuinfo") else { return CpuInfo::default() };
    let first = text.split("\n\n").next().unwrap_or_default();
    let number = |key| field(first, key)?.parse().ok();
    let processors = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "processor").then(|| value.trim().parse().ok())?
    });
    let mut cores: Vec<u16> = processors.collect();
    cores.sort_unstable();
    cores.dedup();
    CpuInfo {
        cpu: midr::read(first).unwrap_or_else(|| Cpu {
            vendor: field(first, "vendor_id"),
            model_name: field(first, "model name"),
            family: number("cpu family"),
            model: number("model"),
            stepping: number("stepping"),
        }),
        microcode: field(first, "microcode"),
        in_guest: field(first, "flags")
            .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
        cores,
    }
}
