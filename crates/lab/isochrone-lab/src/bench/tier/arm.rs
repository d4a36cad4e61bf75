//! Runs of the hidden command `tier-arm`, each in a process of its own, with every result checked.

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use isochrone_tier::regions::Regions;
use isochrone_units::CoreId;

use crate::bench::Stop;
use crate::tier::mapped::reference;
use crate::tier::request::{
    Announced, Answer, FarTier, Grid, Mapped, Moves, Of, Pattern, Policy, Program, Request, Tables,
};
use isochrone_console::run::ended::{alone, ended};

/// The longest that a run may take; then it is ended, and the benchmark with it.
const LIMIT: Duration = Duration::from_secs(300);

/// How much is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Pages of data.
    pub(super) pages: usize,
}

/// Who runs.
#[derive(Debug)]
pub(super) struct Runner {
    cores: Vec<u16>,
    regions: Regions,
    stop: Stop,
    references: Vec<(Program, u64)>,
    /// Runs whose result was compared, and whether all were right.
    pub(super) runs: u64,
    pub(super) verified: bool,
}

impl Runner {
    pub(super) fn new(cores: &[CoreId], regions: Regions, stop: Stop) -> Self {
        let cores = cores.iter().map(|core| core.0).collect();
        Self { cores, regions, stop, references: Vec::new(), runs: 0, verified: true }
    }

    /// Cores that may be used.
    pub(super) fn cores(&self) -> &[u16] {
        &self.cores
    }

    /// A run with separated tables and all by default, of which a part fits.
    pub(super) fn request(&self, program: Program, workers: u16, fast: f64) -> Request {
        Request {
            program,
            region: self.regions.fast.map(|region| region.0),
            far_region: self.regions.far.map(|region| region.0),
            fast,
            workers,
            tables: Tables::Separated,
            worker_cores: self.cores.clone(),
            mover_cores: Vec::new(),
            policy: Policy::CoreFifo,
            group_pages: 1,
            batch: 32,
            chunk: 16,
            cluster: 1,
            clean: false,
            moves: None,
            oversubscribed: usize::from(workers) > self.cores.len(),
            far: FarTier::Memory,
            plain: None,
        }
    }

    /// The same with movers, on the cores that workers leave or on theirs.
    pub(super) fn with_movers(&self, request: Request) -> Request {
        let workers = usize::from(request.workers);
        let left = self.cores.get(workers..).unwrap_or_default().to_vec();
        let oversubscribed = left.len() < workers;
        let mover_cores = if left.is_empty() { self.cores.clone() } else { left };
        let moves = Some(Moves { movers: request.workers, window: 128, reserve: 256 });
        Request { moves, mover_cores, oversubscribed, ..request }
    }

    fn reference(&mut self, program: &Program) -> Result<u64> {
        // Direction and order change no bit.
        let key = match program {
            Program::Stencil(grid) => Program::Stencil(Grid { serpentine: false, ..*grid }),
            Program::Touch { pages, .. } => return Ok(*pages as u64),
            // Who is told of the steps changes none either.
            Program::Announced(Announced { pages, steps, .. }) => Program::Mapped(Mapped {
                pattern: Pattern::Walk(*steps),
                pages: *pages,
                threads: 1,
                follow: true,
                by_handlers: false,
            }),
            // How faults are resolved, and for how many threads, changes none either.
            Program::Mapped(of) => {
                Program::Mapped(Mapped { threads: 1, follow: true, by_handlers: false, ..*of })
            }
            other => other.clone(),
        };
        if let Some((_, digest)) = self.references.iter().find(|(known, _)| *known == key) {
            return Ok(*digest);
        }
        let of = key.clone();
        let digest = move || {
            Ok(match of {
                Program::Mapped(of) => reference(of),
                of => of.tiered().map_or(0, |program| program.reference()),
            })
        };
        let digest = self.stop.apart(digest)?;
        self.references.push((key, digest));
        Ok(digest)
    }

    /// When what is waited for is to end.
    pub(super) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Notes a run whose result was compared.
    pub(super) fn compared(&mut self, right: bool) {
        self.runs += 1;
        self.verified &= right;
    }

    /// Waits for a run, and ends one that does not end, or that nobody wants any more. `look` is done meanwhile,
    /// again and again.
    fn ended(&self, child: &mut Child, look: &dyn Fn()) -> Result<ExitStatus> {
        let begin = Instant::now();
        let over = || {
            look();
            self.stop.is_set() || begin.elapsed() > LIMIT
        };
        match ended(child, &over)? {
            Some(status) => Ok(status),
            None if self.stop.is_set() => bail!("an arm was ended before its time"),
            None => {
                bail!("an arm did not end within {} s; try a smaller --area", LIMIT.as_secs())
            }
        }
    }

    /// Starts it and waits for its end: what it printed, which is short.
    pub(super) fn printed(&self, command: &mut Command, look: &dyn Fn()) -> Result<String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = alone(command).spawn().context("starting an arm")?;
        let status = self.ended(&mut child, look)?;
        let (mut answer, mut words) = (String::new(), String::new());
        // Both are short: they wait in the pipes.
        child.stdout.take().map_or(Ok(0), |mut out| out.read_to_string(&mut answer))?;
        child.stderr.take().map_or(Ok(0), |mut err| err.read_to_string(&mut words))?;
        ensure!(status.success(), "an arm failed ({status}): {}", words.trim());
        Ok(answer)
    }

    /// Runs it and checks the result.
    pub(super) fn run(&mut self, request: &Request) -> Result<Answer> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(program);
        command.args(["tier-arm", &serde_json::to_string(request)?]).envs(variables(request));
        let answer = self.printed(&mut command, &|| ())?;
        let answer: Answer = serde_json::from_str(&answer).context("reading an arm's answer")?;
        let right = self.reference(&request.program)?;
        self.compared(answer.digest == right);
        Ok(answer)
    }
}

/// How UMap is told what our pager is told, too: pages as large as our groups, and how many may be in memory.
fn variables(request: &Request) -> Vec<(&'static str, String)> {
    let plain = request.plain.as_ref().map(|plain| &plain.memory);
    let (Some(Of::Library(_)), Program::Stencil(grid)) = (plain, &request.program) else {
        return Vec::new();
    };
    let page = request.group_pages * 4096;
    let bytes = (2 * grid.rows * grid.columns * 8) as f64 * request.fast;
    let pages = crate::tier::request::whole(bytes) / page;
    vec![("UMAP_PAGESIZE", page.to_string()), ("UMAP_BUFSIZE", pages.to_string())]
}
