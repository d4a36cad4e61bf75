//! Runs of the hidden command `tier-arm`, each in a process of its own, with every result checked.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use isochrone_units::CoreId;

use crate::tier::request::{Answer, FarTier, Grid, Moves, Policy, Program, Request, Tables};

/// Who runs.
#[derive(Debug)]
pub(super) struct Runner {
    cores: Vec<u16>,
    references: Vec<(Program, u64)>,
    /// Runs whose result was compared, and whether all were right.
    pub(super) runs: u64,
    pub(super) verified: bool,
}

impl Runner {
    pub(super) fn new(cores: &[CoreId]) -> Self {
        let cores = cores.iter().map(|core| core.0).collect();
        Self { cores, references: Vec::new(), runs: 0, verified: true }
    }

    /// Cores that may be used.
    pub(super) fn cores(&self) -> &[u16] {
        &self.cores
    }

    /// A run with separated tables and all by default, of which a part fits.
    pub(super) fn request(&self, program: Program, workers: u16, fast: f64) -> Request {
        Request {
            program,
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

    fn reference(&mut self, program: &Program) -> u64 {
        // Direction and order change no bit.
        let key = match program {
            Program::Stencil(grid) => Program::Stencil(Grid { serpentine: false, ..*grid }),
            Program::Touch { pages, .. } => return *pages as u64,
            other => other.clone(),
        };
        if let Some((_, digest)) = self.references.iter().find(|(known, _)| *known == key) {
            return *digest;
        }
        let digest = key.tiered().map_or(0, |program| program.reference());
        self.references.push((key, digest));
        digest
    }

    /// Runs it and checks the result.
    pub(super) fn run(&mut self, request: &Request) -> Result<Answer> {
        let program = std::env::current_exe().context("finding this program")?;
        let out = Command::new(program)
            .args(["tier-arm", &serde_json::to_string(request)?])
            .stdin(Stdio::null())
            .output()
            .context("starting an arm")?;
        let words = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "an arm failed: {}", words.trim());
        let answer: Answer =
            serde_json::from_slice(&out.stdout).context("reading an arm's answer")?;
        let right = self.reference(&request.program);
        self.runs += 1;
        self.verified &= answer.digest == right;
        Ok(answer)
    }
}
