//! One number of threads: the choice, its band by both pricings, what comes second, and the simulation.

use anyhow::Result;
use isochrone_cla::collectives::{Acks, Collective, Options, Shape, Tree};
use isochrone_cla::predicted::{Band, Prediction, Rules, Start};
use isochrone_cla::program::{Combine, Element, Rank};
use isochrone_cla::search::{Choice, ChooseError, Objective, Question, State};
use isochrone_cla::simulated::{Model, many};

use super::terms::{self, WithTerms};
use crate::args::{AcksName, ObjectiveName, PredictArgs, StartName, Term};
use crate::each::Done;
use crate::trees;
use isochrone_console::line_costs::Table;
use isochrone_console::output::WrongUsage;

/// What was found for one number of threads.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) threads: usize,
    pub(crate) question: Question<'a>,
    pub(crate) choice: Choice,
    /// The chosen one's band by our rules, and by the printed ones.
    pub(crate) band: Band,
    pub(crate) printed: Band,
    /// The chosen one's bands with the terms that were asked for, one by one.
    pub(crate) terms: Vec<WithTerms>,
    /// Everybody below the root.
    pub(crate) flat: Band,
    /// The second best.
    pub(crate) second: Option<Band>,
    pub(crate) simulated: Option<Simulated>,
    /// When each thread is done: predicted at its cheapest.
    pub(crate) done: Done,
    /// A broadcast as the paper has it (Figure 1's rules): the chosen tree and the flat one.
    pub(crate) paper: Option<AsPaper>,
}

/// A broadcast with one counter for all children of a parent, who waits for them within the call, from
/// memory: what the paper's Figure 3 compares.
#[derive(Debug)]
pub(crate) struct AsPaper {
    pub(crate) tree: Options,
    pub(crate) chosen_ns: f64,
    pub(crate) flat_ns: f64,
}

/// What many simulated runs took.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Simulated {
    pub(crate) median_ns: f64,
    pub(crate) least_ns: f64,
    pub(crate) most_ns: f64,
    /// When each thread is done, the median over runs.
    pub(crate) done: Done,
}

impl Row<'_> {
    /// The chosen one's graph.
    pub(crate) fn prediction(&self, rules: Rules) -> Result<Prediction> {
        Ok(self.question.predict(self.choice.chosen.options.clone(), rules)?)
    }
}

/// Chooses and prices for `threads` threads on the first cores of the machine.
pub(crate) fn row<'a>(
    args: &PredictArgs,
    table: &'a Table,
    terms: &[Term],
    threads: usize,
) -> Result<Row<'a>> {
    let question = question(args, table, threads)?;
    let mut choice = question.choose().map_err(refused)?;
    if let Some(asked) = &args.tree {
        let tree = trees::of(asked, u16::try_from(threads)?, Rank(args.root))?;
        choice = question.instead(choice, "asked for", tree).map_err(refused)?;
    }
    let band = |options: &Options, rules| -> Result<Band> {
        Ok(question.predict(options.clone(), rules)?.band())
    };
    let chosen = &choice.chosen.options;
    let prediction = question.predict(chosen.clone(), Rules::Timed)?;
    Ok(Row {
        threads,
        band: prediction.band(),
        done: Done::cheapest(&prediction),
        printed: band(chosen, Rules::Paper)?,
        terms: terms::bands(&question, chosen, terms)?,
        flat: band(&choice.flat.options, Rules::Timed)?,
        second: match &choice.runner_up {
            Some(second) => Some(band(&second.options, Rules::Timed)?),
            None => None,
        },
        simulated: if args.simulate { Some(simulated(args, &question, chosen)?) } else { None },
        paper: as_paper(&question)?,
        choice,
        question,
    })
}

/// Sizes, rings and roots that make no plan are wrong usage.
fn refused(error: ChooseError) -> anyhow::Error {
    match error {
        ChooseError::Plan(plan) => WrongUsage::error(plan.to_string()),
        other => other.into(),
    }
}

fn as_paper(question: &Question<'_>) -> Result<Option<AsPaper>> {
    if question.collective != Collective::Broadcast {
        return Ok(None);
    }
    let options = Options { acks: Acks::Counter, acks_in_call: true, ..question.options.clone() };
    let (objective, state) = (Objective::Isolated, State::Memory);
    let choice = Question { objective, state, options, ..question.clone() }.choose()?;
    Ok(Some(AsPaper {
        tree: choice.chosen.options,
        chosen_ns: choice.chosen.ns,
        flat_ns: choice.flat.ns,
    }))
}

/// The cores of a table in the order in which threads fill them.
fn filled(cores: usize) -> &'static [usize] {
    static ALL: std::sync::OnceLock<Vec<usize>> = std::sync::OnceLock::new();
    &ALL.get_or_init(|| (0..4096).collect())[..cores.min(4096)]
}

fn question<'a>(args: &PredictArgs, table: &'a Table, threads: usize) -> Result<Question<'a>> {
    let collective = args.collective.collective(Combine::Sum(Element::I64));
    let bytes = if collective == Collective::Barrier { 0 } else { args.bytes };
    let ranks = u16::try_from(threads)?;
    let usual = Options::tree(Tree::flat(ranks, Rank(args.root.min(ranks - 1))), bytes);
    let options = Options {
        shape: Shape::Exchange,
        acks: match args.acks {
            AcksName::PerChild => Acks::PerChild,
            AcksName::Counter => Acks::Counter,
        },
        acks_in_call: args.acks_in_call,
        claims: !args.no_claims,
        ring: args.ring.unwrap_or(usual.ring),
        ..usual
    };
    Ok(Question {
        collective,
        root: Rank(args.root),
        bytes,
        costs: &table.costs,
        cores: filled(threads),
        objective: match args.objective {
            ObjectiveName::Isolated => Objective::Isolated,
            ObjectiveName::Steady => Objective::Steady,
        },
        state: match args.start {
            StartName::Memory => State::Memory,
            StartName::Hot => State::Hot,
        },
        options,
    })
}

fn simulated(args: &PredictArgs, question: &Question<'_>, options: &Options) -> Result<Simulated> {
    let plan = question.plan(options.clone())?;
    let before = 2 * u64::from(options.ring) + 1;
    let (warm, now) = match question.state {
        State::Memory => (None, plan.record(0, 1)),
        State::Hot => (Some(plan.record(0, before)), plan.record(before, before + 1)),
    };
    let start = warm.as_ref().map_or(Start::Memory, Start::After);
    let model = Model::default();
    let seeds = 0..args.shown.seeds;
    let found = many(&now, start, question.costs, question.cores, &model, seeds)?;
    let quantile = |q| found.quantile_ns(q).unwrap_or(f64::NAN);
    let [least_ns, median_ns, most_ns] = [0.0, 0.5, 1.0].map(quantile);
    Ok(Simulated { median_ns, least_ns, most_ns, done: Done(found.end_ns) })
}
