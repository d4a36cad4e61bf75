//! Which hypervisor this machine runs under. The processor's `hypervisor` flag decides whether
//! there is one; the firmware's or the kernel's words give its name.

use super::cpuinfo::CpuInfo;
use super::root::SysRoot;

/// Paravirtual clocks and whose they are.
const CLOCKS: [(&str, &str); 4] = [
    ("kvm-clock", "KVM"),
    ("hyperv_clocksource_tsc_page", "Hyper-V"),
    ("hyperv_clocksource", "Hyper-V"),
    ("xen", "Xen"),
];

/// The name, `"unnamed"` where nothing names it, `None` where there is none.
pub(super) fn name(root: &SysRoot, cpu: &CpuInfo) -> Option<String> {
    let kind = root.line("sys/hypervisor/type");
    if cpu.in_guest != Some(true) {
        // A Xen guest without hardware virtualisation has no flag, but this file.
        return kind;
    }
    kind.or_else(|| firmware(root)).or_else(|| clock(root)).or_else(|| Some("unnamed".to_owned()))
}

/// Vendor and product in the words of the virtual firmware.
fn firmware(root: &SysRoot) -> Option<String> {
    let vendor = root.line("sys/class/dmi/id/sys_vendor")?;
    match root.line("sys/class/dmi/id/product_name") {
        Some(product) if !product.starts_with(&vendor) => Some(format!("{vendor} {product}")),
        Some(product) => Some(product),
        None => Some(vendor),
    }
}

fn clock(root: &SysRoot) -> Option<String> {
    let available =
        root.line("sys/devices/system/clocksource/clocksource0/available_clocksource")?;
    let mut words = available.split_whitespace();
    words.find_map(|word| {
        CLOCKS.iter().find(|(clock, _)| *clock == word).map(|(_, name)| (*name).to_owned())
    })
}
