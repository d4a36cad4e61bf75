//! `isochrone bench coll`: collectives in cache lines against the installed MPIs.
//!
//! Both are timed by the same processes of one MPI job, on one communicator, in blocks in random order;
//! jobs of the MPIs take turns. What a process does is in [`rank`].

mod alone;
mod bands;
mod cells;
mod figures;
mod peers;
mod rank;
mod yardstick;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use isochrone_stats::derive_seed;
use isochrone_units::CoreId;

use super::Setting;
use crate::args::CollArgs;
pub(super) use figures::Figures;
use isochrone_console::output::{Terminal, preloaded};
use isochrone_console::run::library;
use peers::{Launch, Peer};
pub(crate) use rank::RankArgs;

/// Blocks of each cell and arm in a job, unless told otherwise.
const BLOCKS: u32 = 20;
/// What comes after the jobs takes no longer than so many of them.
const PRICING: usize = 1;

/// One process of a job.
pub(crate) fn coll_rank(args: &RankArgs, terminal: &Terminal) -> Result<ExitCode> {
    rank::run(args, terminal)
}

/// Runs all jobs.
pub(super) fn measure(args: &CollArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let mut peers = Peer::chosen(Peer::all(&args.peer)?, &args.only)?;
    let scratch = tempfile::tempdir()?;
    let preload = peers::library(args.preload.as_deref())?;
    let preload = library::first(&preload, preloaded().as_deref(), scratch.path())?;
    let ranks = usize::from(args.ranks);
    let mut cores = setting.cores(ranks)?;
    ensure!(cores.len() >= ranks, "{ranks} ranks need {ranks} cores, one for each");
    cores.truncate(ranks);
    // Ranks may begin in other folders.
    let atlas = args.common.host.atlas.as_ref().map(std::path::absolute).transpose()?;
    let mut missing = Vec::new();
    peers.retain(|peer| {
        let why = peer.missing();
        missing.extend(why.clone());
        why.is_none()
    });
    if peers.is_empty() {
        bail!(
            "no MPI to compare with: {}; install openmpi-bin or mpich, or name one with --peer",
            missing.join("; ")
        );
    }
    missing.iter().for_each(|why| setting.miss(why));
    let absent = Peer::absent(&peers);
    for (_, why) in &absent {
        setting.miss(why);
    }
    let absent: Vec<&str> = absent.iter().map(|(name, _)| *name).collect();
    let mut figures = Figures::new(args.ranks, &peers, &absent);
    let place = Place { cores: &cores, preload: &preload, atlas, scratch: scratch.path() };
    jobs(args, setting, &peers, &place, &mut figures)?;
    let blocks = args.common.blocks.unwrap_or(BLOCKS);
    for peer in &peers {
        let made = figures.blocks_of(&peer.name);
        if made == 0 && setting.keep_going() {
            // It failed, which is said already.
            continue;
        }
        setting.made(&format!("jobs of {}", peer.name), made, args.jobs * blocks);
    }
    let [timed, all] = figures.cells_timed();
    setting.did("the table", timed, u32::try_from(all)?, "cells");
    setting.step("bands");
    let stop = setting.stop();
    let (held, wanted) = figures.hold_against_bands(&stop)?;
    setting.did("bands", held, wanted, "cells");
    Ok(figures)
}

/// Where jobs run, and with which library.
struct Place<'a> {
    cores: &'a [CoreId],
    preload: &'a OsString,
    /// By which shapes are chosen; none: the one that every part of Isochrone goes by.
    atlas: Option<PathBuf>,
    scratch: &'a Path,
}

/// All jobs of all MPIs, as far as the user wants them.
fn jobs(
    args: &CollArgs,
    setting: &mut Setting<'_>,
    peers: &[Peer],
    place: &Place<'_>,
    figures: &mut Figures,
) -> Result<()> {
    let seed = setting.seed();
    let blocks = args.common.blocks.unwrap_or(BLOCKS);
    // Which of the peers failed, and why.
    let mut failed: Vec<(usize, String)> = Vec::new();
    for round in 0..args.jobs {
        // There and back again, so that a drift weighs the same on all.
        let mut order: Vec<usize> =
            (0..peers.len()).filter(|n| !failed.iter().any(|(peer, _)| peer == n)).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for (at, &peer) in order.iter().enumerate() {
            if !setting.keep_going() {
                return Ok(());
            }
            setting.step(&format!("job {} of {}: {}", round + 1, args.jobs, peers[peer].name));
            let number = u64::from(round) * peers.len() as u64 + peer as u64;
            let all = u64::from(args.jobs) * peers.len() as u64;
            // Pricing the bands of the calls comes after the jobs.
            setting.share_with(usize::try_from(all - number).unwrap_or(1) + PRICING);
            let seconds = setting.share();
            // A job has a round of all cells, if there is time for one of each MPI, before another one has two.
            setting.share_with(order.len() - at + PRICING);
            let launch = Launch {
                cores: place.cores,
                seed: derive_seed(seed, number),
                blocks,
                seconds,
                first: setting.share(),
                preload: place.preload,
                atlas: place.atlas.as_ref(),
                scratch: place.scratch,
                stop: setting.stop(),
            };
            match peers[peer].job(&launch) {
                Ok(job) => figures.add(&peers[peer].name, job),
                Err(_) if !setting.keep_going() => return Ok(()),
                // It has no job more than others have.
                Err(error) if round == 0 && peers.len() > 1 => {
                    let why = format!("{}: {error:#}", peers[peer].name);
                    setting.miss(&why);
                    figures.lose(&peers[peer].name);
                    failed.push((peer, why));
                }
                Err(error) => return Err(error),
            }
        }
        if failed.len() == peers.len() {
            let why: Vec<String> = failed.into_iter().map(|(_, why)| why).collect();
            bail!("no job of any MPI succeeded: {}", why.join("; "));
        }
    }
    Ok(())
}
