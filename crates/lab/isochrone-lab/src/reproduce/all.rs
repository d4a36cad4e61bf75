//! `isochrone reproduce all`: every paper as a page of one site, and every row as an exhibit of one JSON.
//!
//! A thread does the work, paper by paper, and the first one waits for it: so a signal ends the program at once, with a
//! site of what is finished. What is finished lies in the site's folder, and the same command does the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use isochrone_atlas_store::Destination;
use isochrone_atlas_store::contents::Contents;
use isochrone_console::codes;
use isochrone_console::output::{Terminal, WrongUsage};
use isochrone_console::partner::BUILD;
use isochrone_console::progress::Interrupt;
use isochrone_console::run::atlas;
use isochrone_console::written::{Place, each_written, on_stdout, write_to};
use isochrone_papers::exhibit::{Exhibit, Exhibits};
use isochrone_papers::hidden_numa::hidden_numa;
use isochrone_papers::latency_checker::latency_checker;
use isochrone_papers::numa_aware::{self, Runs, numa_aware};
use isochrone_papers::site::{CHAPTERS, FIRST, Site, file_name, page_of};
use isochrone_papers::{SEED, Shown, pspt};
use isochrone_report::json::{self, Format};
use isochrone_workloads::numa::Variant;
use isochrone_workloads::{figure4, pspt as paging};
use serde::{Deserialize, Serialize};

use super::parts::{benched, beside, cla_beside, depth, lacks, needs};
use crate::args::{DepthChoice, Paper, ReproduceArgs};
use crate::sim;

/// Between two looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);
/// Between two drawings of the line of progress: it takes microseconds of a core that computes.
const REDRAWN: Duration = Duration::from_millis(500);
/// The JSON of the site.
const EXHIBITS: &str = "exhibits.json";
/// What is kept for the same command: below the site's folder.
const KEPT: &str = "kept";
/// Finished runs of numa-aware-runtime.
const RUNS: &str = "runs.jsonl";
/// The longest time in which the program that measures this machine is ended.
const MEASURES_ENDS: Duration = Duration::from_millis(1500);
/// The longest time in which the runs that are over are made a page: a program that is stopped ends within 2 s.
const SO_FAR: Duration = Duration::from_millis(1000);
/// The paper whose runs are kept one by one.
const RUNTIME: &str = "numa-aware-runtime";

/// Runs the command.
pub(super) fn run(
    args: &ReproduceArgs,
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Result<ExitCode> {
    ensure!(
        args.html.html.is_none(),
        WrongUsage::error("all papers are a folder: --site FOLDER".to_owned())
    );
    ensure!(
        args.markdown.is_none(),
        WrongUsage::error("--markdown is of one paper: numa-aware-runtime or pspt".to_owned())
    );
    let [json] = Place::open_all([args.json.asked()])?;
    let alone = on_stdout(std::slice::from_ref(&json));
    let work = Work::new(args)?;
    let mut site = Site { depth: work.depth_in_words().to_owned(), ..Site::default() };
    let ended = work.follow(&mut site, interrupt, terminal);
    work.write(&mut site, ended.interrupted)?;
    let exhibits = Exhibits { exhibits: std::mem::take(&mut site.exhibits) };
    let kept = write_to(json, terminal, || Ok(json::pretty(Format::Exhibits, &exhibits)? + "\n"));
    site.exhibits = exhibits.exhibits;
    let said = if alone {
        Ok(())
    } else {
        let place = work.folder.join(FIRST);
        terminal.say(&format!("{}\nThe site: {}\n", site.text(terminal.columns()), place.display()))
    };
    each_written([said, kept])?;
    Ok(match (ended.interrupted, ended.failed) {
        (true, _) => ExitCode::from(codes::INTERRUPTED),
        (_, true) => ExitCode::from(codes::FAILED),
        _ => ExitCode::SUCCESS,
    })
}

/// A finished paper, as it is kept. It is done again where it was made otherwise.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// How it was made.
    made: Made,
    exhibits: Vec<Exhibit>,
}

/// What a finished paper depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    build: String,
    depth: String,
    seed: u64,
    machine: String,
    /// The files that were named, as they were.
    files: Vec<NamedFile>,
    /// Names of the changes that stand beside all rows.
    beside: Vec<String>,
}

/// A file that the command names: its path, bytes, and when it changed last, ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NamedFile(PathBuf, u64, u128);

impl NamedFile {
    fn all(args: &ReproduceArgs) -> Vec<Self> {
        let named = [args.atlas.as_deref(), args.bench.as_deref(), Some(Path::new(&args.machine))];
        let of = |path: &Path| {
            let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
            let changed = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some(Self(path.to_owned(), file.len(), changed.as_nanos()))
        };
        named.into_iter().flatten().filter_map(of).collect()
    }
}

/// What the working thread says.
enum Said {
    /// What is under way, in words.
    Step(String),
    /// A program of its own measures this machine.
    Measures,
    /// A paper is done.
    Done(Vec<Exhibit>),
    /// A paper could not be done.
    Failed(String),
    /// What is left empty, though nothing failed.
    Lack(String),
}

/// How the work ended.
#[derive(Default)]
struct Ended {
    interrupted: bool,
    failed: bool,
}

/// What is to be done, and where.
#[derive(Clone)]
struct Work {
    folder: PathBuf,
    args: ReproduceArgs,
    made: Made,
    machine: isochrone_machine::Machine,
    spec: isochrone_sim::coherence::NumaSpec,
}

impl Work {
    fn new(args: &ReproduceArgs) -> Result<Self> {
        let folder = args.site.clone();
        let advice =
            || format!("nothing is done, since --site {} cannot be written", folder.display());
        fs::create_dir_all(folder.join(KEPT)).with_context(advice)?;
        // Whether files can be made there is found before the work.
        Destination::text(&folder.join(FIRST)).with_context(advice)?;
        let (machine, spec) = sim::machine(&args.machine)?;
        let depth = if args.quick { "quick" } else { "paper" }.to_owned();
        let (machine_name, files) = (machine.name.clone(), NamedFile::all(args));
        let build = BUILD.to_owned();
        let beside = beside(args, depth_of(args));
        let beside = beside.iter().map(|change| change.name().to_owned()).collect();
        let made = Made { build, depth, seed: SEED, machine: machine_name, files, beside };
        Ok(Self { folder, args: args.clone(), made, machine, spec })
    }

    fn depth_in_words(&self) -> &'static str {
        if self.args.quick { "a quick run" } else { "a full run" }
    }

    fn kept(&self, name: &str) -> PathBuf {
        self.folder.join(KEPT).join(name)
    }

    /// What a paper was kept as, where it was made as it would be now and its page is there.
    fn known(&self, paper: &str) -> Option<Vec<Exhibit>> {
        let text = fs::read_to_string(self.kept(&format!("{paper}.json"))).ok()?;
        let kept: Kept = serde_json::from_str(&text).ok()?;
        let page = self.folder.join(file_name(paper));
        (kept.made == self.made && page.is_file()).then_some(kept.exhibits)
    }

    /// Writes a paper's page, then what is kept of it.
    fn keep(&self, paper: &str, shown: &dyn Shown) -> Result<Vec<Exhibit>> {
        let exhibits = shown.exhibits();
        write(&self.folder.join(file_name(paper)), &page_of(shown))?;
        let kept = Kept { made: self.made.clone(), exhibits };
        write(&self.kept(&format!("{paper}.json")), &serde_json::to_string(&kept)?)?;
        Ok(kept.exhibits)
    }

    /// Starts the work and gathers what it says until it is over or nobody wants it any more.
    fn follow(&self, site: &mut Site, interrupt: &Interrupt, terminal: &Terminal) -> Ended {
        let (say, said) = channel();
        let (work, quiet) = (self.clone(), *terminal);
        // It is not waited for, unless a program of its own runs: where this one ends before it, so does it.
        thread::spawn(move || work.all(&say, &quiet));
        let bar = progress();
        let (begin, mut drawn) = (Instant::now(), Instant::now());
        let (mut words, mut measures) = (String::new(), false);
        let mut ended = Ended::default();
        loop {
            match said.recv_timeout(LOOK) {
                Ok(Said::Step(step)) => (words, measures) = (step, false),
                Ok(Said::Measures) => (words, measures) = ("this machine".to_owned(), true),
                Ok(Said::Done(exhibits)) => site.exhibits.extend(exhibits),
                Ok(Said::Failed(why)) => {
                    ended.failed = true;
                    terminal.complain(&why);
                    site.lacks.push(why);
                }
                Ok(Said::Lack(what)) => {
                    terminal.complain(&format!("isochrone: {what}"));
                    site.lacks.push(what);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if interrupt.is_set() {
                ended.interrupted = true;
                if measures {
                    // Who measures is ended by the working thread, which then says so.
                    let _ = said.recv_timeout(MEASURES_ENDS);
                }
                break;
            }
            if drawn.elapsed() > REDRAWN {
                bar.set_message(format!("{:.0} s: {words}", begin.elapsed().as_secs_f64()));
                bar.tick();
                drawn = Instant::now();
            }
        }
        bar.finish_and_clear();
        ended
    }

    /// Every paper, the quickest first.
    fn all(&self, say: &Sender<Said>, terminal: &Terminal) {
        let tell = |said| drop(say.send(said));
        let mut atlas = None;
        for (at, chapter) in CHAPTERS.iter().enumerate() {
            let place = format!("{} of {}, {}", at + 1, CHAPTERS.len(), chapter.name);
            tell(Said::Step(place.clone()));
            if let Some(exhibits) = self.known(chapter.name) {
                tell(Said::Done(exhibits));
                continue;
            }
            let atlas = atlas.get_or_insert_with(|| {
                tell(Said::Measures);
                self.this_machine(terminal, &|lack| tell(Said::Lack(lack)))
                    .inspect_err(|error| {
                        tell(Said::Failed(format!("this machine is left out: {error:#}")));
                    })
                    .ok()
            });
            let step = |words: &str| tell(Said::Step(format!("{place}: {words}")));
            step("");
            tell(match self.paper(chapter.name, atlas.as_ref(), &step) {
                Ok(exhibits) => Said::Done(exhibits),
                Err(error) => Said::Failed(format!("{} is left out: {error:#}", chapter.name)),
            });
        }
    }

    /// This machine's atlas: the user's, the one that was measured for this site before, or one that is measured now.
    fn this_machine(&self, terminal: &Terminal, tell: &dyn Fn(String)) -> Result<Contents> {
        let folder = self.folder.join(KEPT);
        let earlier = folder.join(atlas::HERE);
        let named = self.args.atlas.as_deref();
        if let Some(found) = atlas::known(named, terminal)? {
            lacks(Paper::All, &found).into_iter().for_each(tell);
            return Ok(found.contents);
        }
        if let Ok(Some(found)) = atlas::known(Some(&earlier), terminal) {
            return Ok(found.contents);
        }
        let names: Vec<&str> =
            needs(Paper::All).iter().map(|experiment| experiment.name()).collect();
        let interrupt = Interrupt::install();
        let stop = || interrupt.is_set();
        Ok(atlas::quick_for_now(&names.join(","), &folder, terminal, &stop)?.contents)
    }

    fn paper(
        &self,
        name: &str,
        atlas: Option<&Contents>,
        step: &(dyn Fn(&str) + Sync),
    ) -> Result<Vec<Exhibit>> {
        let quick = self.args.quick;
        match name {
            "cla" => self.keep(name, &cla_beside(atlas)?),
            "latency-checker" => self.keep(name, &latency_checker(atlas, SEED)?),
            "pspt" => {
                let plan =
                    if quick { paging::Plan::quick(SEED) } else { paging::Plan::paper(SEED) };
                self.keep(name, &pspt::pspt(&plan)?)
            }
            "hidden-numa" => {
                let plan =
                    if quick { figure4::Plan::quick(SEED) } else { figure4::Plan::paper(SEED) };
                self.keep(name, &hidden_numa(atlas, benched(&self.args)?, &plan)?)
            }
            _ => {
                let keys = numa_aware::plan(&self.machine.name, self.depth(), &self.beside());
                let seen = |done: usize, words: &str| {
                    step(&format!("{done} of {} runs, {words}", keys.len()))
                };
                let jobs = self.args.jobs.map(usize::from);
                let file = self.results();
                let records =
                    sim::sweep::sweep(&self.machine, &self.spec, &keys, Some(&file), jobs, &seen)?;
                self.keep(name, &self.runtime(records))
            }
        }
    }

    fn depth(&self) -> numa_aware::Depth {
        depth_of(&self.args)
    }

    fn beside(&self) -> Vec<Variant> {
        beside(&self.args, self.depth())
    }

    fn results(&self) -> PathBuf {
        self.args.results.clone().unwrap_or_else(|| self.kept(&format!("{BUILD}-{RUNS}")))
    }

    fn runtime(
        &self,
        records: std::collections::BTreeMap<numa_aware::record::Key, numa_aware::record::Record>,
    ) -> numa_aware::Reproduction {
        let beside = self.beside();
        let runs = Runs { machine: self.machine.name.clone(), records, beside };
        numa_aware(&self.spec, runs, numa_aware::constants::constants(&self.machine))
    }

    /// The page and the rows of those runs of numa-aware-runtime that are over, where there are any.
    fn so_far(&self) -> Result<Option<(String, Vec<Exhibit>)>> {
        let keys = numa_aware::plan(&self.machine.name, self.depth(), &self.beside());
        let records = sim::sweep::finished(&self.results(), &keys)?;
        if records.is_empty() {
            return Ok(None);
        }
        let shown = self.runtime(records);
        Ok(Some((page_of(&shown), shown.exhibits())))
    }

    /// Shows the runs of numa-aware-runtime that are over, where the program ends before all are.
    fn add_runs_so_far(&self, site: &mut Site) -> Result<()> {
        let work = self.clone();
        // Runs still go on and take the cores: who stops the program does not wait for the page.
        let Some(found) = within(SO_FAR, move || work.so_far()) else {
            site.lacks.push(format!(
                "{RUNTIME} is not shown: its page took too long; the runs that are over are kept."
            ));
            return Ok(());
        };
        if let Some((page, exhibits)) = found? {
            write(&self.folder.join(file_name(RUNTIME)), &page)?;
            site.exhibits.extend(exhibits);
            site.lacks.push(format!("{RUNTIME} is shown by the runs that are over."));
        }
        Ok(())
    }

    /// Writes the first page and the JSON.
    fn write(&self, site: &mut Site, interrupted: bool) -> Result<()> {
        let has = |site: &Site, name: &str| site.exhibits.iter().any(|e| e.paper == name);
        if interrupted {
            site.lacks.push(
                "Stopped before its end: this is what was finished; the same command does the rest.".to_owned(),
            );
            if !has(site, RUNTIME) {
                self.add_runs_so_far(site)?;
            }
        }
        for chapter in CHAPTERS.iter().filter(|chapter| !has(site, chapter.name)) {
            // A page of an earlier run would be taken for one of this.
            remove(&self.folder.join(file_name(chapter.name)))?;
        }
        let exhibits = Exhibits { exhibits: site.exhibits.clone() };
        let embedded = json::line(Format::Exhibits, &exhibits)?;
        write(&self.folder.join(EXHIBITS), &(json::pretty(Format::Exhibits, &exhibits)? + "\n"))?;
        write(&self.folder.join(FIRST), &site.first_page(Some(embedded)).render())
    }
}

/// How much of numa-aware-runtime is run where all papers are.
const fn depth_of(args: &ReproduceArgs) -> numa_aware::Depth {
    depth(if args.quick { DepthChoice::Quick } else { DepthChoice::Paper })
}

/// What `work` gives, if it gives it in time; where it does not, nobody waits for it any more.
fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (say, said) = channel();
    thread::spawn(move || say.send(work()));
    said.recv_timeout(limit).ok()
}

/// A file that is whole or not there.
fn write(path: &Path, text: &str) -> Result<()> {
    Ok(Destination::text(path)?.write(text.as_bytes())?)
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", path.display()))
        }
        _ => Ok(()),
    }
}

fn progress() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(
        ProgressStyle::with_template("{spinner} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ready_in_time_is_left() {
        assert_eq!(within(Duration::from_secs(600), || 7), Some(7));
        let (release, wait) = channel::<()>();
        // It is ready after the test alone, so a wait for it would have no end.
        assert_eq!(within(Duration::ZERO, move || wait.recv()), None);
        drop(release);
    }
}
