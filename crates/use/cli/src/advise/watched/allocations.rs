//! What a program allocates, by size and lifetime: a library in its processes hands every call on to the malloc that
//! they have, and looks at some of them.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use isochrone_console::output;
use isochrone_console::run::library;
use isochrone_console::run::start::Program;
use isochrone_console::written::scratch;
use isochrone_malloc::{
    CONFIG_VARIABLE, Config, LIVES_NS, PathBytes, REPORT_SUFFIX, Report, SIZES, filters,
};
use serde::Serialize;
use tempfile::TempDir;

use crate::args::AdviseArgs;

/// A program whose allocations are looked at.
#[derive(Debug)]
pub(super) struct Sampled {
    reports: PathBuf,
    _folder: TempDir,
}

/// What a program allocated; counts of sizes are estimates where not every object was looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Allocations {
    /// Processes that left a report.
    pub(super) processes: usize,
    /// Calls that allocated.
    pub(super) calls: f64,
    /// Objects that were looked at, and those that were followed to their end.
    pub(super) looked_at: u64,
    pub(super) followed: u64,
    /// By bytes that were asked for; sizes that nothing had are left out.
    pub(super) sizes: Vec<OfSize>,
}

/// Objects of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OfSize {
    /// Up to how many bytes; nothing: more than of any other, and then all of them were looked at.
    pub(super) up_to: Option<u64>,
    pub(super) calls: f64,
    pub(super) bytes: f64,
    pub(super) looked_at: u64,
    /// Objects that were followed.
    pub(super) followed: u64,
    /// Of these, those that were freed, by how long they lived.
    pub(super) lived: Vec<Lived>,
    /// Those that were not freed until the end.
    pub(super) stayed: u64,
}

/// Objects that lived so long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Lived {
    /// At most so many seconds; nothing: longer than any other.
    pub(super) at_most_s: Option<f64>,
    pub(super) objects: u64,
}

impl Sampled {
    /// The program with what its processes need.
    pub(super) fn begin(program: Program, args: &AdviseArgs) -> Result<(Self, Program)> {
        let folder = scratch()?;
        let found = library::find(args.preload.as_deref())?;
        let preload = library::first(&found, output::preloaded().as_deref(), folder.path())?;
        let reports = folder.path().join("reports");
        std::fs::create_dir(&reports).with_context(|| reports.display().to_string())?;
        let config = Config {
            watches: true,
            reports: PathBytes::new(reports.as_os_str().as_bytes())
                .with_context(|| format!("{} is too long a path", reports.display()))?,
            filters: filters::count().unwrap_or(u32::MAX),
            ..Config::default()
        };
        let told = folder.path().join("config");
        std::fs::write(&told, config.to_bytes()).with_context(|| told.display().to_string())?;
        let program = program
            .with("LD_PRELOAD", Some(&preload))
            .with(CONFIG_VARIABLE, Some(told.as_os_str()));
        Ok((Self { reports, _folder: folder }, program))
    }

    /// What its processes have left.
    pub(super) fn end(&self) -> Result<Allocations> {
        let folder = || self.reports.display().to_string();
        let mut reports = Vec::new();
        for entry in std::fs::read_dir(&self.reports).with_context(folder)? {
            let path = entry.with_context(folder)?.path();
            if path.to_string_lossy().ends_with(REPORT_SUFFIX) {
                // One that was about to begin has nothing to say.
                reports.extend(Report::from_bytes(&std::fs::read(path)?));
            }
        }
        Ok(Allocations::of(&reports))
    }
}

impl Allocations {
    fn of(reports: &[Report]) -> Self {
        let bounds = || SIZES.iter().map(|bytes| Some(*bytes as u64)).chain([None]);
        let mut all: Vec<OfSize> =
            bounds().map(|up_to| OfSize { up_to, ..OfSize::default() }).collect();
        for report in reports {
            let watched = report.watched();
            // Each process by itself: one of few calls has a whole share of them.
            let small: u64 = watched.sizes[..SIZES.len()].iter().map(|size| size.objects).sum();
            let each = if small > 0 { watched.calls as f64 / small as f64 } else { 0.0 };
            for (of, size) in all.iter_mut().zip(watched.sizes) {
                let each = if of.up_to.is_some() { each } else { 1.0 };
                of.calls += size.objects as f64 * each;
                of.bytes += size.bytes as f64 * each;
                of.looked_at += size.objects;
                of.followed += size.followed;
                let gone: u64 = size.gone.iter().sum();
                of.stayed += size.followed.saturating_sub(gone);
                of.lived.resize(size.gone.len(), Lived::default());
                of.lived.iter_mut().zip(size.gone).for_each(|(all, own)| all.objects += own);
            }
        }
        let lives = || LIVES_NS.iter().map(|ns| Some(*ns as f64 / 1e9)).chain([None]);
        for of in &mut all {
            of.lived.iter_mut().zip(lives()).for_each(|(lived, most)| lived.at_most_s = most);
            of.lived.retain(|lived| lived.objects > 0);
        }
        all.retain(|of| of.looked_at > 0);
        let large = |of: &&OfSize| of.up_to.is_none();
        let few: u64 = reports.iter().map(|report| report.watched().calls).sum();
        Self {
            processes: reports.len(),
            calls: few as f64 + all.iter().filter(large).map(|of| of.calls).sum::<f64>(),
            looked_at: all.iter().map(|of| of.looked_at).sum(),
            followed: all.iter().map(|of| of.followed).sum(),
            sizes: all,
        }
    }

    /// Of objects that were followed the share that was freed within so many seconds, and the share that stayed.
    pub(super) fn lives(&self, within_s: f64) -> Option<(f64, f64)> {
        if self.followed == 0 {
            return None;
        }
        let brief = |lived: &&Lived| lived.at_most_s.is_some_and(|most| most <= within_s);
        let gone: u64 = self
            .sizes
            .iter()
            .flat_map(|of| of.lived.iter().filter(brief))
            .map(|lived| lived.objects)
            .sum();
        let stayed: u64 = self.sizes.iter().map(|of| of.stayed).sum();
        let share = |objects: u64| objects as f64 / self.followed as f64;
        Some((share(gone), share(stayed)))
    }
}
