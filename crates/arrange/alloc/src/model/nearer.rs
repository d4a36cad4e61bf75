//! The second-level cache: what of a set never reaches the last-level cache, and gains nothing.
//!
//! Its sets follow from the lowest bits of the line index. Where all pages have one key, near
//! lines share these bits and have a part of that cache only; where keys differ from page to page
//! they have all of it. So a set of groups is a load of each residue of the line index modulo
//! eight, and each residue has an eighth of the cache. Pages of one key are what was seen to lose
//! to this (EPYC 9004: half a MiB of near lines took 1.8 times as long as any lines); residues
//! modulo more would find no other.

use crate::groups::{Classes, Groups, INDICES, MAX_GROUPS, RESIDUES};

/// Latency of the second-level cache over that of the last-level one: 14 to 16 cycles over 46 to
/// 100 on the machines seen. It serves to choose, and to predict what is small against a level.
const L2_OVER_LLC: f64 = 0.25;

/// Residues as a number.
const PARTS: f64 = 8.0;
const _: () = assert!(RESIDUES == 8);

/// Shares of units by residue of their line's index.
pub(super) type Load = [f32; RESIDUES];

/// Where lines of each group lie in their pages.
pub(super) struct Nearer {
    residues: [Load; MAX_GROUPS + 1],
    /// The cache over the live bytes.
    room: f64,
    cycles: f64,
}

impl Nearer {
    pub(super) fn new(groups: &Groups, classes: &Classes, room: f64, llc_cycles: f32) -> Self {
        let mut residues = [[0.0; RESIDUES]; MAX_GROUPS + 1];
        for index in (0_u16..).take(INDICES) {
            let group = groups.of[usize::from(index)];
            if group < groups.count {
                let share = classes.weight(index);
                for (low, &pages) in classes.keys.iter().enumerate() {
                    residues[usize::from(group)][(usize::from(index) ^ low) % RESIDUES] +=
                        share * pages;
                }
            }
        }
        for load in &mut residues {
            let sum: f32 = load.iter().sum();
            // Of lines of which nothing is known as many lie here as there.
            let even = |share: f32| if sum > 0.0 { share / sum } else { 0.125 };
            load.iter_mut().for_each(|share| *share = even(*share));
        }
        Self { residues, room, cycles: f64::from(llc_cycles) * L2_OVER_LLC }
    }

    /// Uses units of a group more.
    pub(super) fn put(&self, load: &mut Load, group: u8, share: f32) {
        let group = usize::from(group).min(MAX_GROUPS);
        for (sum, residue) in load.iter_mut().zip(self.residues[group]) {
            *sum += share * residue;
        }
    }

    /// The share of accesses that it serves, of a set of so many units in all.
    pub(super) fn hit_share(&self, load: &Load, units: f64) -> f64 {
        let holds = self.room * units / PARTS;
        let hits: f64 = load.iter().map(|&share| f64::from(share).min(holds)).sum();
        (hits / units).clamp(0.0, 1.0)
    }

    /// What a hit costs.
    pub(super) const fn cycles(&self) -> f64 {
        self.cycles
    }
}
