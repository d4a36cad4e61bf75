//! Ours beside each peer, block by block: one type for all benchmarks that have several, which says of every ratio
//! whose time is above. It prints nothing.

use std::collections::BTreeMap;

use isochrone_console::turns::{Costs, Ratio};
use isochrone_report::table::{Cell, Table};
use serde::Serialize;

/// Whose time is divided by whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum Sense {
    /// Below 1 ours is faster.
    OursOverPeer,
    /// Above 1 ours is faster.
    PeerOverOurs,
}

impl Sense {
    /// When ours is faster, in the words of a table.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::OursOverPeer => "ours / peer, below 1 ours is faster",
            Self::PeerOverOurs => "peer / ours, above 1 ours is faster",
        }
    }
}

/// Ours and one peer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct BesidePeer {
    pub(super) peer: String,
    /// Of which times the ratio is.
    pub(super) sense: Sense,
    #[serde(flatten)]
    pub(super) ratio: Ratio,
    /// The same of ours and ours a second time.
    pub(super) control: Option<Ratio>,
}

/// The names of ours, once and again, among all systems.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ours {
    pub(super) first: &'static str,
    pub(super) again: &'static str,
}

impl BesidePeer {
    /// Against each peer that was measured in the blocks of ours, in the order of names.
    pub(super) fn all(
        blocks: &BTreeMap<&str, Vec<f64>>,
        ours: Ours,
        sense: Sense,
        seed: u64,
    ) -> Vec<Self> {
        let own = blocks.get(ours.first).map_or(&[][..], Vec::as_slice);
        let ratio = |theirs: &Vec<f64>| {
            let (own, theirs) = (Costs::measured(own), Costs::measured(theirs));
            match sense {
                Sense::OursOverPeer => Ratio::paired(own, theirs, seed),
                Sense::PeerOverOurs => Ratio::paired(theirs, own, seed),
            }
        };
        let control = blocks.get(ours.again).and_then(ratio);
        let peers = blocks.iter().filter(|(name, _)| ![ours.first, ours.again].contains(*name));
        peers
            .filter_map(|(name, blocks)| Some(((*name).to_owned(), ratio(blocks)?)))
            .map(|(peer, ratio)| Self { peer, sense, ratio, control })
            .collect()
    }

    /// A row for each; `what` is what was timed.
    pub(super) fn table(all: &[Self], what: &str) -> Table {
        let sense = all.first().map_or(Sense::OursOverPeer, |first| first.sense);
        let mut table = Table::new(["peer", &format!("{what}: {}", sense.words()), "control"]);
        for beside in all {
            let control = beside.control.as_ref();
            table.row([Cell::text(&beside.peer), cell(Some(&beside.ratio)), cell(control)]);
        }
        table
    }
}

/// A ratio in a table.
pub(super) fn cell(ratio: Option<&Ratio>) -> Cell {
    ratio.map_or_else(Cell::missing, |ratio| Cell::number(ratio.median, ratio.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_says_whose_time_is_above() {
        const OURS: Ours = Ours { first: "ours", again: "again" };
        let blocks: BTreeMap<&str, Vec<f64>> =
            [("ours", 2.0), ("again", 4.0), ("theirs", 1.0)].map(|(n, s)| (n, vec![s; 6])).into();
        for (sense, wanted, control) in
            [(Sense::OursOverPeer, 2.0, 0.5), (Sense::PeerOverOurs, 0.5, 2.0)]
        {
            let all = BesidePeer::all(&blocks, OURS, sense, 1);
            assert_eq!(all.len(), 1);
            let found = (all[0].ratio.median, all[0].control.expect("ours, again").median);
            assert_eq!(found, (wanted, control), "{sense:?}");
            let json = serde_json::to_value(&all[0]).expect("numbers and names");
            assert_eq!(json["median"], wanted);
            let words = json["sense"].as_str().expect("a word");
            let above = if wanted > 1.0 { "ours_over_peer" } else { "peer_over_ours" };
            assert_eq!(words, above, "ours takes longer");
        }
    }
}
