//! Why maps of equal nodes hold no number that is compared, as the maps themselves say, and what to do.

use isochrone_atlas_store::Experiment;
use isochrone_units::Grade;

use crate::node::{Made, Node};
use crate::words::some;

/// The experiments whose numbers are compared.
const COMPARED: [Experiment; 4] =
    [Experiment::Block, Experiment::Transfer, Experiment::Region, Experiment::Bandwidth];

/// Why nothing of these nodes is compared: what the first of them lacks, who else took the machine, and the way out.
pub(crate) fn why(nodes: &[&Node]) -> String {
    let mut why = "their maps have no number that is compared".to_owned();
    if let Some(node) = nodes.first() {
        let lacks: Vec<String> =
            lacks(&node.made).into_iter().map(|(reason, of)| format!("{of}: {reason}")).collect();
        if !lacks.is_empty() {
            why += &format!(". {}: {}", node.name, lacks.join("; "));
        }
        if let Some((of, reason)) = disturbed(node) {
            why += &format!(". Meanwhile {reason} ({}, {})", node.name, of.title());
        }
    }
    let together = at_once(nodes);
    let out = match together.is_empty() {
        true => "Map again on a quiet machine, or with more time (--budget)".to_owned(),
        false => format!(
            "{} are of one machine and were measured at the same time: map one after the other",
            some(&together)
        ),
    };
    format!("{why}. {out}")
}

/// What a map says that it left out, the experiments with one reason together.
fn lacks(made: &Made) -> Vec<(String, String)> {
    let mut by_reason: Vec<(String, Vec<&str>)> = Vec::new();
    for experiment in COMPARED {
        let of = |line: &&String| line.starts_with(experiment.title());
        let Some(line) = made.missing.iter().find(of) else { continue };
        let reason = match (line.split_once(", since "), line.split_once(": ")) {
            (Some((_, reason)), _) | (None, Some((_, reason))) => reason,
            (None, None) => line,
        };
        match by_reason.iter_mut().find(|(known, _)| known == reason) {
            Some((_, titles)) => titles.push(experiment.title()),
            None => by_reason.push((reason.to_owned(), vec![experiment.title()])),
        }
    }
    by_reason.into_iter().map(|(reason, titles)| (reason, titles.join(", "))).collect()
}

/// The first experiment of those compared that was not measured alone, and the first thing that its grade says.
fn disturbed(node: &Node) -> Option<(Experiment, &str)> {
    let is_disturbed = |of: &Experiment| node.grades.get(of).is_some_and(|it| *it != Grade::Quiet);
    let of = COMPARED.into_iter().find(is_disturbed)?;
    let reason = node.made.reasons.get(&of)?;
    Some((of, reason.split(';').next().unwrap_or(reason)))
}

/// Nodes that were measured while another one of them was, on the same boot of one machine.
fn at_once(nodes: &[&Node]) -> Vec<String> {
    let is_together = |node: &&&Node| nodes.iter().any(|other| are_together(node, other));
    nodes.iter().filter(is_together).map(|node| node.name.clone()).collect()
}

/// Whether two nodes are of one machine and were measured at the same time.
pub(crate) fn are_together(one: &Node, other: &Node) -> bool {
    let is_known = one.made.boot.is_some_and(|boot| boot != 0);
    if !is_known || one.name == other.name || one.made.boot != other.made.boot {
        return false;
    }
    let (first, then) = match one.started_unix_s <= other.started_unix_s {
        true => (one, other),
        false => (other, one),
    };
    // Starts are whole seconds: one that begins in the second in which another ends comes behind it.
    (then.started_unix_s - first.started_unix_s) as f64 + 1.0 < first.made.seconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use isochrone_view::fixtures::genoa;

    /// Nodes that are containers of one machine, each measured for ten seconds from so many seconds on.
    fn containers(starts: [u64; 2], boots: [u64; 2]) -> Vec<Node> {
        let of = |(name, (start, boot)): (&str, (u64, u64))| {
            let mut node = Node::of(name, &genoa());
            node.quantities.clear();
            node.started_unix_s = start;
            node.grades.insert(Experiment::Block, Grade::Disturbed);
            let reason = "others took 97 % of the processors' time; somebody waited".to_owned();
            node.made = Made {
                boot: Some(boot),
                seconds: 9.4,
                missing: [
                    "memory: 44 of 64 MiB were left out, since there was no time to map more",
                    "block latency (llc): 2 of 2 cores were not scored, since its time was over",
                    "line transfers, cas: 2 of 2 pairs were left out, since its time was over",
                    "region latency: the system gives no memory",
                ]
                .map(str::to_owned)
                .to_vec(),
                reasons: BTreeMap::from([(Experiment::Block, reason)]),
            };
            node
        };
        ["n1", "n2"].into_iter().zip(starts.into_iter().zip(boots)).map(of).collect()
    }

    fn said(nodes: &[Node]) -> String {
        why(&nodes.iter().collect::<Vec<_>>())
    }

    #[test]
    fn what_maps_lack_who_took_the_machine_and_the_way_out_are_said() {
        let why = said(&containers([100, 100], [7, 7]));
        assert_eq!(
            why,
            "their maps have no number that is compared. n1: block latency, line transfers: its time was over; region \
             latency: the system gives no memory. Meanwhile others took 97 % of the processors' time (n1, block \
             latency). n1, n2 are of one machine and were measured at the same time: map one after the other"
        );
    }

    #[test]
    fn nodes_of_two_machines_or_one_after_the_other_are_told_to_map_again() {
        for nodes in [containers([100, 100], [7, 8]), containers([100, 109], [7, 7])] {
            let why = said(&nodes);
            assert!(why.ends_with("with more time (--budget)"), "{why}");
        }
        let unknown = containers([100, 100], [0, 0]);
        assert!(said(&unknown).contains("--budget"), "0 is a boot that nobody knows");
    }
}
