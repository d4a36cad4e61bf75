//! The costs that the paper's model lacks, switched on one by one: as they were given, or as the atlas has
//! measured them.

use anyhow::{Result, bail};
use clap::ValueEnum;
use isochrone_cla::collectives::Options;
use isochrone_cla::predicted::{Band, Rules};
use isochrone_cla::search::Question;
use isochrone_machine::AddedTerms;
use isochrone_report::fmt;

use crate::args::{Term, TermAsked, TermName};
use isochrone_console::line_costs::Table;

/// A band with some terms on, by our rules.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WithTerms {
    /// Which are on.
    pub(crate) terms: String,
    pub(crate) band: Band,
}

/// What was asked for, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Terms {
    /// Each with its value.
    pub(crate) known: Vec<Term>,
    /// Where values come from, and why others are missing, a line each.
    pub(crate) notes: Vec<String>,
}

/// The terms that were asked for. One that the atlas could not measure is left out, with a note.
pub(crate) fn asked(asked: &[TermAsked], table: &Table) -> Result<Terms> {
    let mut terms = Terms::default();
    for one in asked {
        match *one {
            TermAsked::Given(term) => terms.known.push(term),
            TermAsked::Measured(name) => measured(name, table, &mut terms)?,
            TermAsked::AllMeasured => {
                for name in TermName::value_variants() {
                    measured(*name, table, &mut terms)?;
                }
            }
        }
    }
    Ok(terms)
}

/// What the atlas has of a term. A difference that came out below 0 is none.
fn measured(name: TermName, table: &Table, terms: &mut Terms) -> Result<()> {
    let words = self::name(name);
    if table.terms.is_empty() {
        bail!(
            "{} has no measured terms; give {words}=NS, or measure them with `isochrone map --only \
             transfer,multiline,terms,block`",
            table.machine
        );
    }
    let Some(found) = table.terms.iter().find(|term| term.name == words) else {
        bail!("the atlas has no term {words}; measure it anew with `isochrone map`");
    };
    let note = match (&found.ns, &found.missing) {
        (Some(cell), _) => {
            terms.known.push(Term { name, ns: cell.median.max(0.0) });
            let below = if cell.median < 0.0 { "; below 0, so 0 is taken" } else { "" };
            let value = fmt::interval_ns(cell.median, cell.lo, cell.hi);
            format!("{words}: {value} by the atlas, {}{below}", found.what)
        }
        (None, why) => {
            format!("{words}: left out, {}", why.as_deref().unwrap_or("it was not measured"))
        }
    };
    terms.notes.push(note);
    Ok(())
}

/// Switches terms on.
pub(crate) fn add(added: &mut AddedTerms, terms: &[Term]) {
    for term in terms {
        match term.name {
            TermName::FirstRemoteReader => added.first_remote_reader_ns = term.ns,
            TermName::OverlappedAck => added.overlapped_ack_ns = Some(term.ns),
            TermName::RfoSharer => added.rfo_sharer_ns = Some(term.ns),
            TermName::AdjacentLine => added.adjacent_line_ns = term.ns,
            TermName::LeftShared => added.left_shared_ns = Some(term.ns),
        }
    }
}

/// The band of one plan with none of the terms, with each alone and with all; nothing where none is asked for.
pub(super) fn bands(
    question: &Question<'_>,
    options: &Options,
    terms: &[Term],
) -> Result<Vec<WithTerms>> {
    let mut sets: Vec<(String, &[Term])> = Vec::new();
    if !terms.is_empty() {
        sets.push(("none".to_owned(), &[]));
        sets.extend(terms.chunks(1).map(|one| (words(one[0]), one)));
    }
    if terms.len() > 1 {
        sets.push(("all".to_owned(), terms));
    }
    let plain = AddedTerms {
        call_ns: question.costs.added.call_ns,
        request_ns: question.costs.added.request_ns,
        ..AddedTerms::default()
    };
    let with = |(words, on): (String, &[Term])| {
        let mut costs = question.costs.clone();
        costs.added = plain.clone();
        add(&mut costs.added, on);
        let asked = Question { costs: &costs, ..question.clone() };
        let band = asked.predict(options.clone(), Rules::Timed)?.band();
        Ok(WithTerms { terms: words, band })
    };
    sets.into_iter().map(with).collect()
}

/// The name of a term, here and in an atlas.
pub(super) fn name(name: TermName) -> String {
    let value = name.to_possible_value();
    value.map_or_else(|| "term".to_owned(), |value| value.get_name().to_owned())
}

fn words(term: Term) -> String {
    format!("{}={}", name(term.name), (term.ns * 100.0).round() / 100.0)
}
