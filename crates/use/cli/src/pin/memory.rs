//! `isochrone pin --memory`: numactl with the region that suits an array of these cores. It decides nothing: which
//! region suits what, and from when on, is what `machine --suits` says.

use anyhow::Result;
use isochrone_console::run::atlas::{self, Found};
use isochrone_machine::spans;
use isochrone_units::CoreId;

use super::forms;
use crate::machine::suits::{ONE_REGION, Set, from_words};
use isochrone_console::output::Terminal;

/// What is done where nothing can be chosen by distances.
const WHERE_THREADS_RUN: &str = "memory is taken where its threads run";

/// The beginnings of commands on a machine of so many regions, each below a line that says for what.
pub(super) fn lines(
    found: Option<&Found>,
    regions: usize,
    cores: &[CoreId],
    terminal: &Terminal,
) -> Result<Vec<String>> {
    let set = match found {
        Some(found) => Set::of(&found.atlas.atlas()?, &found.contents.machine, cores),
        None => Set::default(),
    };
    if let Some(why) = unchosen(&set, found.is_some(), regions) {
        terminal.complain(&format!("isochrone: {why}"));
        return Ok(vec![format!("{} --localalloc", forms::numactl(cores))]);
    }
    Ok(chosen(&set, cores))
}

/// Why nothing is chosen, where nothing is.
fn unchosen(set: &Set, has_atlas: bool, regions: usize) -> Option<String> {
    if regions <= 1 {
        return Some(format!("{ONE_REGION}: {WHERE_THREADS_RUN}"));
    }
    if !has_atlas {
        return Some(format!("{}; {WHERE_THREADS_RUN}", atlas::NONE));
    }
    let lacks = "the atlas lacks latency and bandwidth of two regions (`isochrone map --only region,bandwidth`)";
    set.with_turns.is_empty().then(|| format!("{lacks}; {WHERE_THREADS_RUN}"))
}

fn chosen(set: &Set, cores: &[CoreId]) -> Vec<String> {
    let lines = set.with_turns.iter().enumerate().flat_map(|(nth, step)| {
        let policy = if step.regions.len() > 1 { "interleave" } else { "preferred" };
        let what = match nth {
            0 => "accesses that wait for one another".to_owned(),
            _ => from_words(&step.from_lines, cores.len()),
        };
        let command = format!("{} --{policy}={}", forms::numactl(cores), spans(&step.regions));
        [format!("# {what}: {}", step.words()), command]
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::suits::tests::near_and_wide;

    #[test]
    fn each_choice_has_its_policy_below_what_it_is_for() {
        let cores: Vec<CoreId> = (0..16).map(CoreId).collect();
        let lines = chosen(&near_and_wide(), &cores);
        let commands: Vec<&String> = lines.iter().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            commands,
            [
                "numactl --physcpubind=0-15 --preferred=0",
                "numactl --physcpubind=0-15 --interleave=0-1",
                "numactl --physcpubind=0-15 --preferred=1",
            ]
        );
        assert!(lines[0].contains("wait for one another: region 0"), "{lines:?}");
        assert!(lines[2].contains("regions 0 and 1 by turns") && lines[2].contains("a core"));
        assert_eq!(unchosen(&near_and_wide(), true, 2), None);
    }

    #[test]
    fn where_nothing_is_chosen_it_is_said_why() {
        let none = Set::default();
        for (has_atlas, regions, words) in [
            (true, 1, "nothing to choose"),
            (false, 1, "nothing to choose"),
            (false, 2, "run `isochrone map`"),
            (true, 2, "--only region,bandwidth"),
        ] {
            let why = unchosen(&none, has_atlas, regions).expect("nothing is chosen");
            assert!(why.contains(words) && why.ends_with(WHERE_THREADS_RUN), "{why}");
        }
    }
}
