//! The caches of a machine as rows: one for each kind, whatever the number of cores. Text from values; it prints
//! nothing.

use std::collections::BTreeMap;

use isochrone_machine::{Cache, CacheKind, Machine, strides};
use isochrone_report::fmt;

/// Lines that the groups of a shared cache may take; of more groups the first and the last are shown.
const GROUP_LINES_MOST: usize = 6;
/// Groups that are shown in front of the last one then.
const FIRST_GROUPS: usize = 3;
/// What stands before the second line of a row.
const INDENT: &str = "  ";

/// What caches of one row have in common: level, what they hold, size.
type Sort = (u8, CacheKind, Option<u64>);

/// A row for each kind and size of cache, nearest first.
pub(super) fn rows(machine: &Machine, width: usize) -> Vec<String> {
    let mut kinds: BTreeMap<Sort, Vec<&[u16]>> = BTreeMap::new();
    for cache in &machine.caches {
        let Cache { level, kind, bytes, shared_by, .. } = cache;
        kinds.entry((*level, *kind, *bytes)).or_default().push(shared_by);
    }
    let row = |((level, kind, bytes), mut groups): (Sort, Vec<&[u16]>)| {
        groups.sort_by_key(|cores| cores.first().copied());
        let size = bytes.map_or_else(|| "size unknown".to_owned(), fmt::bytes);
        row(&format!("{} {size}", name(level, kind)), &groups, width)
    };
    kinds.into_iter().map(row).collect()
}

/// `L1d`, `L1i`, `L2`.
fn name(level: u8, kind: CacheKind) -> String {
    let suffix = match kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    };
    format!("L{level}{suffix}")
}

/// One kind of cache, of which each group of cores has one.
fn row(head: &str, groups: &[&[u16]], width: usize) -> String {
    let count = match groups.len() {
        1 => String::new(),
        many => format!(", {many} of them"),
    };
    if groups.iter().all(|cores| cores.len() <= 1) {
        return format!("{head}, private{count}, {}", of(&groups.concat()));
    }
    if let [all] = groups {
        return format!("{head}, shared, {}", of(all));
    }
    let sizes = groups.iter().map(|cores| cores.len());
    let each = match (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0)) {
        (least, most) if least == most => format!("{most} cores each"),
        (least, most) => format!("{least} to {most} cores each"),
    };
    listed(&format!("{head}, shared{count}, {each}:"), groups, width)
}

fn of(cores: &[u16]) -> String {
    let word = if cores.len() == 1 { "core" } else { "cores" };
    format!("{word} {}", strides(cores))
}

/// The groups behind `head`, in as many lines as it takes; the first and the last of too many.
fn listed(head: &str, groups: &[&[u16]], width: usize) -> String {
    let runs: Vec<String> = groups.iter().map(|cores| strides(cores)).collect();
    // Cores of one group may be apart.
    let end = if runs.iter().any(|run| run.contains(',')) { ";" } else { "," };
    let last = runs.len() - 1;
    let ended = |(at, run): (usize, &String)| format!("{run}{}", if at < last { end } else { "" });
    let items: Vec<String> = runs.iter().enumerate().map(ended).collect();
    let whole = lines(head, &items, width);
    if whole.len() <= GROUP_LINES_MOST {
        return whole.join("\n");
    }
    let few = [&items[..FIRST_GROUPS], &["...".to_owned()], &items[last..]].concat();
    lines(head, &few, width).join("\n")
}

/// `head` and items behind it, in lines of at most `width` characters; an item is never cut.
fn lines(head: &str, items: &[String], width: usize) -> Vec<String> {
    let mut lines = vec![head.to_owned()];
    for item in items {
        match lines.last_mut().filter(|line| line.len() + 1 + item.len() <= width) {
            Some(line) => *line += &format!(" {item}"),
            None => lines.push(format!("{INDENT}{item}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches(level: u8, kind: CacheKind, bytes: u64, groups: Vec<Vec<u16>>) -> Vec<Cache> {
        let one =
            |shared_by| Cache { level, kind, bytes: Some(bytes), shared_by, ..Cache::default() };
        groups.into_iter().map(one).collect()
    }

    fn of_machine(caches: Vec<Vec<Cache>>) -> Vec<String> {
        rows(&Machine { caches: caches.concat(), ..Machine::default() }, 80)
    }

    fn runs(cores: u16, each: u16) -> Vec<Vec<u16>> {
        (0..cores / each).map(|group| (group * each..(group + 1) * each).collect()).collect()
    }

    #[test]
    fn private_caches_are_one_row_and_data_are_told_from_instructions() {
        let rows = of_machine(vec![
            caches(1, CacheKind::Instruction, 64 << 10, runs(64, 1)),
            caches(1, CacheKind::Data, 48 << 10, runs(64, 1)),
            caches(2, CacheKind::Unified, 2 << 20, runs(64, 1)),
            caches(3, CacheKind::Unified, 75 << 19, runs(64, 64)),
        ]);
        assert_eq!(
            rows,
            [
                "L1d 48 KiB, private, 64 of them, cores 0-63",
                "L1i 64 KiB, private, 64 of them, cores 0-63",
                "L2 2 MiB, private, 64 of them, cores 0-63",
                "L3 37.5 MiB, shared, cores 0-63",
            ]
        );
    }

    #[test]
    fn shared_caches_have_their_groups() {
        let pairs = (0..4).map(|core| vec![core, core + 4]).collect();
        let rows = of_machine(vec![
            caches(2, CacheKind::Unified, 1 << 20, pairs),
            caches(3, CacheKind::Unified, 32 << 20, vec![vec![0, 1, 2], vec![3]]),
        ]);
        assert_eq!(rows[0], "L2 1 MiB, shared, 4 of them, 2 cores each: 0,4; 1,5; 2,6; 3,7");
        assert_eq!(rows[1], "L3 32 MiB, shared, 2 of them, 1 to 3 cores each: 0-2, 3");
    }

    #[test]
    fn a_large_machine_is_a_page() {
        let pairs: Vec<Vec<u16>> = (0..192).map(|core| vec![core, core + 192]).collect();
        let rows = of_machine(vec![
            caches(1, CacheKind::Data, 48 << 10, pairs.clone()),
            caches(1, CacheKind::Instruction, 32 << 10, pairs.clone()),
            caches(2, CacheKind::Unified, 2 << 20, pairs),
            caches(3, CacheKind::Unified, 32 << 20, runs(384, 8)),
        ]);
        let text = rows.join("\n");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.lines().count() <= 12, "{text}");
        assert!(rows[0].contains("0,192; 1,193; 2,194; ... 191,383"), "{text}");
        assert!(rows[3].contains(" 0-7, 8-15,") && rows[3].ends_with(" 376-383"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_not_made_up() {
        let unknown = Cache { level: 2, shared_by: vec![3], ..Cache::default() };
        let rows = rows(&Machine { caches: vec![unknown], ..Machine::default() }, 80);
        assert_eq!(rows, ["L2 size unknown, private, core 3"]);
        assert!(of_machine(Vec::new()).is_empty());
    }
}
