//! Tables with a known machine behind them, for the tests of several parts.
//!
//! Two cores see eight distances in the cache, opposed to each other, and four flat classes of
//! pages in memory.

#![cfg_attr(loom, allow(dead_code, reason = "the models need less of it"))]

use crate::bins::Bins;
use crate::heap::Heap;
use crate::page::PageCodes;
use crate::policy::Policy;
use crate::sync::{AtomicU8, AtomicU32, AtomicU64};
use crate::tables::{CoreTable, Shared, Tables};
use crate::wish::CurrentBases;
use isochrone_atlas::{Code, PatternTable, Period};
use std::sync::Arc;
use std::vec::Vec;

pub(crate) const EIGHT: [f32; 8] = [32.0, 44.0, 36.0, 40.0, 34.0, 42.0, 38.0, 46.0];

pub(crate) struct Rig {
    pages: Vec<AtomicU64>,
    next: Vec<AtomicU32>,
    masks: Vec<AtomicU8>,
    owners: Vec<AtomicU8>,
    ranks: Vec<AtomicU8>,
    cores: Vec<CoreTable>,
    shared: Shared,
    bins: Arc<Bins>,
}

fn zeroed<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

pub(crate) fn llc(core: u16) -> PatternTable {
    let of = |line: usize| if core == 0 { EIGHT[line % 8] } else { 78.0 - EIGHT[line % 8] };
    let pattern: Vec<f32> = (0..64).map(of).collect();
    PatternTable::new(Period::Lines64, [pattern.as_slice()]).unwrap()
}

pub(crate) fn dram(core: u16) -> PatternTable {
    let mut classes = [337.0, 349.0, 361.0, 373.0_f32];
    if core == 1 {
        classes.reverse();
    }
    let patterns = classes.map(|cycles| [cycles; 64]);
    PatternTable::new(Period::Lines64, patterns.iter().map(<[f32; 64]>::as_slice)).unwrap()
}

pub(crate) fn current_bases(core: u16) -> CurrentBases {
    CurrentBases::of(Some(&llc(core)), Some(&dram(core)))
}

/// What pages look like: keys and classes that differ from page to page.
pub(crate) fn codes(page: u32) -> PageCodes {
    let [low, ..] = (page.wrapping_mul(0x9e37_79b9) >> 16).to_le_bytes();
    let low = u16::from(low);
    PageCodes { llc: Code(low & 63), dram: Code(low) }
}

impl Rig {
    pub(crate) fn new(pages: usize) -> Self {
        let both = |of: fn(u16) -> PatternTable| (0..2_u16).map(of);
        Self::with_bins(pages, 2, Bins::new(both(llc), both(dram)))
    }

    pub(crate) fn with_bins(pages: usize, cores: usize, bins: impl Into<Arc<Bins>>) -> Self {
        Self {
            pages: zeroed(pages),
            next: zeroed(pages * 64),
            masks: zeroed(pages * 64),
            owners: zeroed(pages * 64),
            ranks: zeroed(pages * 64),
            cores: zeroed(cores),
            shared: Shared::default(),
            bins: bins.into(),
        }
    }

    pub(crate) fn bins(&self) -> &Bins {
        &self.bins
    }

    pub(crate) fn heap(&self, policy: Policy) -> Heap<'_> {
        let tables = Tables {
            pages: &self.pages,
            next: &self.next,
            masks: &self.masks,
            owners: &self.owners,
            ranks: &self.ranks,
            cores: &self.cores,
            shared: &self.shared,
        };
        Heap::new(tables, &self.bins, policy)
    }

    /// A heap whose first pages are ready and whose cores have their bases.
    pub(crate) fn started(&self, policy: Policy, pages: u32) -> Heap<'_> {
        let heap = self.heap(policy);
        for page in 0..pages {
            assert!(heap.page_ready(page, codes(page)));
        }
        (0..2).for_each(|core| heap.set_bases(core, &current_bases(core)));
        heap
    }
}
