//! Which machine it is, as words and as one number: what an atlas must match before it is used.
//!
//! Only what stays over a reboot goes in; load, limits and free memory do not. Total memory is
//! rounded up to whole GiB, because the kernel keeps a slightly different part for itself each
//! time. The kernel's release is not part of it: distances are the hardware's.

use std::collections::BTreeMap;

use isochrone_machine::{Cache, CacheKind, Machine, MachineState};

/// The words in a fixed order, and their FNV-1a hash (64 bits). A missing fact is the word
/// `none`, so that a machine that hides it differs from one that has it.
#[must_use]
pub fn fingerprint(machine: &Machine, state: &MachineState) -> (Vec<String>, u64) {
    let cpu = machine.cpu.clone().unwrap_or_default();
    let words = vec![
        format!("vendor: {}", word(cpu.vendor)),
        format!("cpu: {}", word(cpu.model_name)),
        format!("family: {}", word(cpu.family)),
        format!("model: {}", word(cpu.model)),
        format!("stepping: {}", word(cpu.stepping)),
        format!("microcode: {}", word(state.microcode.clone())),
        format!("cores: {}", machine.cores.len()),
        format!("caches: {}", caches(&machine.caches)),
        format!("regions: {}", regions(machine)),
        format!("hypervisor: {}", word(state.hypervisor.clone())),
        format!("memory: {}", word(machine.memory_bytes.map(whole_gibibytes))),
    ];
    let hash = fnv1a(words.join("\n").as_bytes());
    (words, hash)
}

fn word<T: ToString>(fact: Option<T>) -> String {
    fact.map_or_else(|| "none".to_owned(), |fact| fact.to_string())
}

fn whole_gibibytes(bytes: u64) -> String {
    format!("{} GiB", bytes.div_ceil(1 << 30))
}

/// `"2x L1 data 32768, 1x L3 unified 33554432"`.
fn caches(caches: &[Cache]) -> String {
    let mut kinds: BTreeMap<(u8, CacheKind, Option<u64>), usize> = BTreeMap::new();
    for cache in caches {
        *kinds.entry((cache.level, cache.kind, cache.bytes)).or_default() += 1;
    }
    let words: Vec<String> = kinds
        .into_iter()
        .map(|((level, kind, bytes), count)| {
            let kind = match kind {
                CacheKind::Data => "data",
                CacheKind::Instruction => "instruction",
                CacheKind::Unified => "unified",
            };
            format!("{count}x L{level} {kind} {}", word(bytes))
        })
        .collect();
    words.join(", ")
}

/// Cores of each region; sizes are left out, because a guest's grow while it runs.
fn regions(machine: &Machine) -> String {
    let words: Vec<String> = machine
        .regions
        .iter()
        .map(|region| {
            format!("{} with cores {}", region.id, isochrone_machine::spans(&region.cores))
        })
        .collect();
    words.join("; ")
}

/// FNV-1a, 64 bits (draft-eastlake-fnv, section 5).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv1a() {
        // Test vectors of draft-eastlake-fnv, appendix C.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn load_and_limits_do_not_matter_but_microcode_and_hypervisor_do() {
        let machine = Machine { memory_bytes: Some(24_684_096 << 10), ..Machine::default() };
        let quiet = MachineState { microcode: Some("0x1".into()), ..MachineState::default() };
        let busy = MachineState {
            loadavg: Some([9.0, 9.0, 9.0]),
            memory_max_bytes: Some(1 << 30),
            kernel: Some("7.0".into()),
            ..quiet.clone()
        };
        let patched = MachineState { microcode: Some("0x2".into()), ..quiet.clone() };
        let moved = MachineState { hypervisor: Some("KVM".into()), ..quiet.clone() };
        assert_eq!(fingerprint(&machine, &quiet), fingerprint(&machine, &busy));
        assert_ne!(fingerprint(&machine, &quiet).1, fingerprint(&machine, &patched).1);
        assert_ne!(fingerprint(&machine, &quiet).1, fingerprint(&machine, &moved).1);
        let slightly_less = Machine { memory_bytes: Some(24_680_000 << 10), ..machine.clone() };
        assert_eq!(fingerprint(&machine, &quiet), fingerprint(&slightly_less, &quiet));
        let more = Machine { memory_bytes: Some(48 << 30), ..machine.clone() };
        assert_ne!(fingerprint(&machine, &quiet).1, fingerprint(&more, &quiet).1);
    }
}
