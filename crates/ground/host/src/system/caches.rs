//! The caches of every core, each instance once.

use std::collections::BTreeMap;

use isochrone_machine::{Cache, CacheKind};

use super::list::{cache_bytes, parse_list};
use super::root::SysRoot;

/// Caches in the order of level, kind and first core.
pub(super) fn read(root: &SysRoot, cores: &[u16]) -> Vec<Cache> {
    let mut found = BTreeMap::new();
    for &core in cores {
        let folder = format!("sys/devices/system/cpu/cpu{core}/cache");
        for index in root.numbered(&folder, "index") {
            let Some(cache) = one(root, &format!("{folder}/index{index}"), core) else { continue };
            found.entry((cache.level, cache.kind, cache.shared_by.clone())).or_insert(cache);
        }
    }
    found.into_values().collect()
}

fn one(root: &SysRoot, folder: &str, core: u16) -> Option<Cache> {
    let kind = match root.line(format!("{folder}/type"))?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        _ => CacheKind::Unified,
    };
    let shared = root.line(format!("{folder}/shared_cpu_list")).and_then(|list| parse_list(&list));
    Some(Cache {
        level: root.number(format!("{folder}/level"))?,
        kind,
        bytes: root.line(format!("{folder}/size")).and_then(|size| cache_bytes(&size)),
        line_bytes: root.number(format!("{folder}/coherency_line_size")),
        // The kernel writes 0 for a cache whose associativity is not known.
        ways: root.number(format!("{folder}/ways_of_associativity")).filter(|&ways: &u32| ways > 0),
        shared_by: shared.unwrap_or_else(|| vec![core]),
        source: None,
    })
}
