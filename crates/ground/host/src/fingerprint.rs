//! Which machine it is, as words and as one number: what an atlas must match before it is used.
//!
//! Only what stays over a reboot goes in; load, limits and free memory do not. Total memory is
//! rounded up to whole GiB, because the kernel keeps a slightly different part for itself each
//! time. The kernel's release is not part of it: distances are the hardware's.

use std::collections::BTreeMap;

use isochrone_machine::{Cache, CacheKind, Machine, MachineState};

/// A word that says how many cores are in use, not which machine it is: it is no part of the hash.
const COUNTED: &str = "cores: ";

/// The words in a fixed order, and the FNV-1a hash (64 bits) of all but the number of cores in use, which
/// differs where cores are switched off. A missing fact is the word `none`, so that a machine that hides it
/// differs from one that has it.
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
    let hash = hash_of(words.iter().filter(|word| !word.starts_with(COUNTED)));
    (words, hash)
}

/// The hash that older atlases have for a machine of these words: the number of cores was part of it.
#[must_use]
pub fn counted_hash(words: &[String]) -> u64 {
    hash_of(words.iter())
}

/// The first word in which two machines differ, that of the first one before that of the other; how many
/// cores are in use is no difference.
#[must_use]
pub fn first_difference<'a>(
    theirs: &'a [String],
    ours: &'a [String],
) -> Option<(&'a str, &'a str)> {
    let kept = |word: &&String| !word.starts_with(COUNTED);
    let (mut a, mut b) = (theirs.iter().filter(kept), ours.iter().filter(kept));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => {
                let word = |w: Option<&'a String>| w.map_or("nothing", String::as_str);
                return Some((word(a), word(b)));
            }
        }
    }
}

fn hash_of<'a>(words: impl Iterator<Item = &'a String>) -> u64 {
    let words: Vec<&str> = words.map(String::as_str).collect();
    fnv1a(words.join("\n").as_bytes())
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

/// A text as one number (FNV-1a, 64 bits). It hides nothing: whoever can guess the text finds it.
#[must_use]
pub fn text_hash(text: &str) -> u64 {
    fnv1a(text.as_bytes())
}

/// FNV-1a, 64 bits (draft-eastlake-fnv, section 5).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use isochrone_machine::Core;

    use super::*;

    #[test]
    fn the_hash_is_fnv1a() {
        // Test vectors of draft-eastlake-fnv, appendix C.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_machine_is_the_same_however_many_of_its_cores_are_used() {
        let words = |cpu: &str, cores: u32| {
            vec![format!("cpu: {cpu}"), format!("cores: {cores}"), "memory: 24 GiB".to_owned()]
        };
        assert_eq!(first_difference(&words("A", 2), &words("A", 1)), None);
        assert_eq!(first_difference(&words("A", 2), &words("B", 2)), Some(("cpu: A", "cpu: B")));
        let shorter = words("A", 2)[..2].to_vec();
        assert_eq!(first_difference(&shorter, &words("A", 2)), Some(("nothing", "memory: 24 GiB")));
        let of = |cores: u16| {
            let cores = (0..cores).map(|id| Core { id, ..Core::default() }).collect();
            fingerprint(&Machine { cores, ..Machine::default() }, &MachineState::default())
        };
        assert_ne!(of(1).0, of(2).0, "the words are still for people");
        assert_eq!(of(1).1, of(2).1);
        assert_ne!(counted_hash(&of(1).0), counted_hash(&of(2).0));
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
