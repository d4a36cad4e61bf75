//! What one paper and all of them take alike: figures of this machine, and what a paper needs of it.

use std::ops::RangeInclusive;

use anyhow::{Context, Result};
use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::Contents;
use isochrone_console::line_costs;
use isochrone_console::output::read_text;
use isochrone_console::run::atlas::Found;
use isochrone_papers::cla;
use isochrone_papers::hidden_numa::Benched;
use isochrone_papers::numa_aware::{BESIDE, Depth, arms};
use isochrone_workloads::numa::Variant;

use super::local;
use crate::args::{DepthChoice, Paper, ReproduceArgs};

/// A file of `bench astar` with ten thousand blocks has a tenth of it.
const BENCHED_BYTES_MAX: u64 = 64 << 20;

/// Threads of Figure 3 of the paper on cache-line-aware programs.
const FIGURE_3: RangeInclusive<usize> = 2..=16;

/// That paper beside this machine, where it has an atlas.
pub(super) fn cla_beside(atlas: Option<&Contents>) -> Result<cla::Reproduction> {
    let here = atlas.map(|atlas| {
        let classes =
            line_costs::measured(atlas).map(|table| table.costs.classes).unwrap_or_default();
        // Where cores share one memory, no pair is what the paper calls two sockets.
        let regions = atlas.machine.regions.len();
        let far = classes.last().filter(|_| regions > 1 && classes.len() > 1).cloned();
        cla::Here { atlas, near: classes.first().cloned(), far, local_ns: local::line_ns() }
    });
    cla::cla(here, &FIGURE_3.collect::<Vec<_>>())
}

/// The file of `bench astar` that was named.
pub(super) fn benched(args: &ReproduceArgs) -> Result<Option<Benched>> {
    let Some(path) = args.bench.as_deref() else {
        return Ok(None);
    };
    let name = path.display().to_string();
    let text = read_text(path, BENCHED_BYTES_MAX).with_context(|| Benched::ADVICE)?;
    Benched::of(&text, &name).map(Some)
}

/// Changes that stand beside all rows.
pub(super) fn beside(args: &ReproduceArgs, depth: Depth) -> Vec<Variant> {
    let mut named = match args.beside.is_empty() {
        true if matches!(depth, Depth::Quick | Depth::Curves) => Vec::new(),
        true => BESIDE.to_vec(),
        false => args.beside.clone(),
    };
    if args.mechanisms {
        let more: Vec<Variant> = arms().into_iter().filter(|arm| !named.contains(arm)).collect();
        named.extend(more);
    }
    named
}

pub(super) const fn depth(choice: DepthChoice) -> Depth {
    match choice {
        DepthChoice::Quick => Depth::Quick,
        DepthChoice::Curves => Depth::Curves,
        DepthChoice::Paper => Depth::Paper,
        DepthChoice::Full => Depth::Full,
    }
}

/// What a paper shows of this machine.
pub(super) fn needs(paper: Paper) -> &'static [Experiment] {
    match paper {
        Paper::Cla => &[Experiment::Block, Experiment::Transfer, Experiment::Multiline],
        Paper::All => {
            &[Experiment::Block, Experiment::Region, Experiment::Transfer, Experiment::Multiline]
        }
        _ => &[Experiment::Block, Experiment::Region],
    }
}

/// What a paper shows of this machine and an atlas does not have, in words.
pub(super) fn lacks(paper: Paper, found: &Found) -> Option<String> {
    let lack = needs(paper).iter().filter(|experiment| !found.contents.has(**experiment));
    let titles: Vec<&str> = lack.map(|experiment| experiment.title()).collect();
    let (last, others) = titles.split_last()?;
    let titles = match others {
        [] => (*last).to_owned(),
        others => format!("{} and {last}", others.join(", ")),
    };
    let path = found.path.display();
    Some(format!(
        "{path} has no {titles}, so what the papers show of them stays empty: run `isochrone map`"
    ))
}
