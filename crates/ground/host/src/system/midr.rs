//! Arm processors by the numbers of their main identification register, which is all that `/proc/cpuinfo` has of them:
//! who implements one, and which part of theirs it is.
//!
//! Names are those of util-linux (`sys-utils/lscpu-arm.c`) for cores of servers and of boards that are measured. A part
//! that is not listed is shown by its number; nothing is guessed.

use isochrone_machine::Cpu;

use super::list::field;

/// Who implements processors, by their numbers.
const ARM: u32 = 0x41;
const CAVIUM: u32 = 0x43;
const FUJITSU: u32 = 0x46;
const HISILICON: u32 = 0x48;
const NVIDIA: u32 = 0x4e;
const QUALCOMM: u32 = 0x51;
const APPLE: u32 = 0x61;
const PHYTIUM: u32 = 0x70;
const AMPERE: u32 = 0xc0;

const IMPLEMENTERS: &[(u32, &str)] = &[
    (ARM, "Arm"),
    (CAVIUM, "Cavium"),
    (FUJITSU, "Fujitsu"),
    (HISILICON, "HiSilicon"),
    (NVIDIA, "NVIDIA"),
    (QUALCOMM, "Qualcomm"),
    (APPLE, "Apple"),
    (PHYTIUM, "Phytium"),
    (AMPERE, "Ampere"),
];

const PARTS: &[(u32, u32, &str)] = &[
    (ARM, 0xd03, "Cortex-A53"),
    (ARM, 0xd05, "Cortex-A55"),
    (ARM, 0xd07, "Cortex-A57"),
    (ARM, 0xd08, "Cortex-A72"),
    (ARM, 0xd0b, "Cortex-A76"),
    (ARM, 0xd0c, "Neoverse-N1"),
    (ARM, 0xd40, "Neoverse-V1"),
    (ARM, 0xd41, "Cortex-A78"),
    (ARM, 0xd49, "Neoverse-N2"),
    (ARM, 0xd4a, "Neoverse-E1"),
    (ARM, 0xd4f, "Neoverse-V2"),
    (ARM, 0xd84, "Neoverse-V3"),
    (ARM, 0xd8e, "Neoverse-N3"),
    (CAVIUM, 0x0a1, "ThunderX"),
    (CAVIUM, 0x0af, "ThunderX2"),
    (FUJITSU, 0x001, "A64FX"),
    (HISILICON, 0xd01, "TaiShan-v110 (Kunpeng 920)"),
    (HISILICON, 0xd02, "TaiShan-v120"),
    (NVIDIA, 0x004, "Carmel"),
    (QUALCOMM, 0xc00, "Falkor"),
    (QUALCOMM, 0x001, "Oryon"),
    (APPLE, 0x022, "Icestorm (M1)"),
    (APPLE, 0x023, "Firestorm (M1)"),
    (APPLE, 0x032, "Blizzard (M2)"),
    (APPLE, 0x033, "Avalanche (M2)"),
    (PHYTIUM, 0x662, "FTC662"),
    (PHYTIUM, 0x663, "FTC663"),
    (AMPERE, 0xac3, "Ampere-1"),
    (AMPERE, 0xac4, "Ampere-1a"),
];

/// The processor of one core's block; `None` where it is no Arm processor.
pub(super) fn read(block: &str) -> Option<Cpu> {
    let implementer = number(&field(block, "CPU implementer")?)?;
    let part = field(block, "CPU part").and_then(|text| number(&text));
    let maker = IMPLEMENTERS.iter().find(|(id, _)| *id == implementer).map(|(_, name)| *name);
    let vendor = maker.map_or_else(|| format!("implementer {implementer:#x}"), str::to_owned);
    let model_name = part.map(|part| name(implementer, part));
    Some(Cpu {
        vendor: Some(vendor),
        model_name,
        // What x86-64 calls family, model and stepping: the variant is a major revision.
        family: field(block, "CPU variant").and_then(|text| number(&text)),
        model: part,
        stepping: field(block, "CPU revision").and_then(|text| number(&text)),
    })
}

fn name(implementer: u32, part: u32) -> String {
    let known = PARTS.iter().find(|(by, id, _)| (*by, *id) == (implementer, part));
    known.map_or_else(|| format!("part {part:#x}"), |(_, _, name)| (*name).to_owned())
}

/// `0x41` or `1`, as the kernel prints them.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_names_and_unknown_ones_their_number() {
        let block = |implementer: &str, part: &str| {
            read(&format!(
                "processor\t: 0\nCPU implementer\t: {implementer}\nCPU architecture: 8\n\
                 CPU variant\t: 0x3\nCPU part\t: {part}\nCPU revision\t: 1\n"
            ))
        };
        let name = |implementer, part| {
            let cpu = block(implementer, part).expect("an Arm processor");
            (cpu.vendor.expect("a maker"), cpu.model_name.expect("a part"))
        };
        let is = |maker: &str, part: &str| (maker.to_owned(), part.to_owned());
        assert_eq!(name("0x41", "0xd0c"), is("Arm", "Neoverse-N1"));
        assert_eq!(name("0x41", "0xd4f"), is("Arm", "Neoverse-V2"));
        assert_eq!(name("0x48", "0xd01"), is("HiSilicon", "TaiShan-v110 (Kunpeng 920)"));
        assert_eq!(name("0xc0", "0xac3"), is("Ampere", "Ampere-1"));
        assert_eq!(name("0x41", "0xfff"), is("Arm", "part 0xfff"));
        assert_eq!(name("0x99", "0x1"), is("implementer 0x99", "part 0x1"));
        let cpu = block("0x41", "0xd40").expect("an Arm processor");
        assert_eq!((cpu.family, cpu.model, cpu.stepping), (Some(3), Some(0xd40), Some(1)));
        assert_eq!(read("vendor_id\t: GenuineIntel\nmodel\t: 1\n"), None);
    }
}
