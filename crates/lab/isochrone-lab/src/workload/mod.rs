//! The hidden command `isochrone workload`: a process that does one arm's work for a benchmark,
//! asked and answering over its standard input and output.
//!
//! Each arm is a process of its own, so that its resident memory and its start are its own, and so
//! that an allocator can be preloaded under it. Work is done by one thread a core; the thread that
//! talks sleeps meanwhile.

mod player;
mod pooled;
pub(crate) mod request;
mod search;
mod seat;
mod structure;
mod work;

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use isochrone_alloc::Mode;
use isochrone_units::CoreId;

use isochrone_console::args::{PlacementArgs, parse_cores};
use isochrone_console::output::Terminal;
use isochrone_console::run::{atlas, setup};
use pooled::PoolSource;
use request::{Account, Played, PoolAccount, Reply, Request};
use seat::{Done, Player, Source};

/// Where a worker's nodes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodesFrom {
    /// The program's allocator.
    Malloc,
    /// A pool of near lines.
    Aware,
    /// A pool of lines at random.
    Oblivious,
    /// A pool of far lines.
    Adversarial,
    /// A pool of lines that were measured one by one.
    Oracle,
}

/// What the hidden command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkloadArgs {
    /// Where nodes come from.
    #[arg(long, value_enum)]
    nodes: NodesFrom,
    /// One thread on each of these cores.
    #[arg(long)]
    cores: String,
    /// Of what is random on purpose.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    placement: PlacementArgs,
    /// The atlas that pools follow [default: as for every command].
    #[arg(long)]
    atlas: Option<PathBuf>,
}

/// Answers until its standard input ends.
pub(crate) fn run(args: &WorkloadArgs, terminal: &Terminal) -> Result<ExitCode> {
    let cores = parse_cores(&args.cores).map_err(anyhow::Error::msg)?;
    let mut players = Players::start(&cores, &source(args, terminal)?)?;
    say(terminal, &Reply::Ready)?;
    for line in std::io::stdin().lock().lines() {
        let reply = match serde_json::from_str(&line?) {
            Ok(Request::Account) => Reply::Account(players.account()),
            Ok(request) => players
                .work(&request)
                .map_or_else(|e| Reply::Failed(format!("{e:#}")), Reply::Played),
            Err(error) => Reply::Failed(error.to_string()),
        };
        say(terminal, &reply)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn say(terminal: &Terminal, reply: &Reply) -> Result<()> {
    terminal.print(&serde_json::to_string(reply)?)?;
    std::io::stdout().flush()?;
    Ok(())
}

fn source(args: &WorkloadArgs, terminal: &Terminal) -> Result<Source> {
    let mode = match args.nodes {
        NodesFrom::Malloc => return Ok(Source::Malloc),
        NodesFrom::Aware => Mode::Aware,
        NodesFrom::Oblivious => Mode::Oblivious,
        NodesFrom::Adversarial => Mode::Adversarial,
        NodesFrom::Oracle => Mode::Oracle,
    };
    let atlas::Found { contents, atlas, .. } = atlas::needed(args.atlas.as_deref(), terminal)?;
    let mut policy = setup::policy(mode, &args.placement, &contents);
    policy.seed = args.seed;
    Ok(Source::Pool(PoolSource {
        atlas: atlas.bytes().into(),
        policy,
        arena_bytes_max: setup::arena_limit(&args.placement),
        clock_hz: contents.clock.hz,
    }))
}

/// The threads.
struct Players {
    requests: Vec<Sender<Request>>,
    done: Vec<Receiver<Result<Done>>>,
    pools: Vec<Option<PoolAccount>>,
}

impl Players {
    fn start(cores: &[u16], source: &Source) -> Result<Self> {
        ensure!(!cores.is_empty(), "a worker needs a core");
        let together = Arc::new(Barrier::new(cores.len()));
        let mut players =
            Self { requests: Vec::new(), done: Vec::new(), pools: vec![None; cores.len()] };
        for (place, core) in cores.iter().enumerate() {
            let (ask, requests) = channel();
            let (done, hear) = channel();
            let player = Player {
                core: CoreId(*core),
                place,
                source: source.clone(),
                requests,
                done,
                together: Arc::clone(&together),
            };
            thread::Builder::new().name(format!("core-{core}")).spawn(move || player.play())?;
            players.requests.push(ask);
            players.done.push(hear);
        }
        Ok(players)
    }

    /// Lets all threads do it; the first failure is the answer, once all have ended.
    fn work(&mut self, request: &Request) -> Result<Played> {
        const GONE: &str = "a thread has ended; is its core still online?";
        for ask in &self.requests {
            // One that could not be pinned has left the reason.
            let _ = ask.send(request.clone());
        }
        let mut played = Played::default();
        let mut failed = None;
        for (place, done) in self.done.iter().enumerate() {
            match done.recv().context(GONE).flatten() {
                Ok(done) => {
                    played.seconds.push(done.seconds);
                    played.operations.push(done.operations);
                    played.checksums.push(done.checksum);
                    self.pools[place] = done.pool.or(self.pools[place]);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(played), Err)
    }

    fn account(&self) -> Account {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kib * 1024)
        };
        Account {
            rss_bytes: field("VmRSS:"),
            peak_rss_bytes: field("VmHWM:"),
            pools: self.pools.iter().flatten().copied().collect(),
        }
    }
}
