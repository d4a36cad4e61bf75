//! How often cores were told to forget entries of page tables (`TLB` in `/proc/interrupts`, proc(5)).

use super::SysRoot;

/// Interrupts for shootdowns that all cores have had since the system started; `None` where the system does
/// not count them.
#[must_use]
pub fn tlb_shootdowns(root: &SysRoot) -> Option<u64> {
    let text = root.text("proc/interrupts")?;
    let counts = text.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
    Some(counts.split_whitespace().map_while(|word| word.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_cores_are_added_and_the_words_are_not() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        std::fs::create_dir(folder.join("proc")).unwrap();
        let text = "      CPU0  CPU1\n 0:  1  2  timer\nCAL: 9 9 Function\nTLB:   10   4   TLB shootdowns\n";
        std::fs::write(folder.join("proc/interrupts"), text).unwrap();
        let root = SysRoot(folder.to_owned());
        assert_eq!(tlb_shootdowns(&root), Some(14));
        std::fs::write(folder.join("proc/interrupts"), "NMI: 1\n").unwrap();
        assert_eq!(tlb_shootdowns(&root), None);
    }
}
