//! The costs that the paper's model lacks, switched on one by one.

use anyhow::Result;
use clap::ValueEnum;
use isochrone_cla::collectives::Options;
use isochrone_cla::predicted::{Band, Rules};
use isochrone_cla::search::Question;
use isochrone_machine::AddedTerms;

use crate::args::{Term, TermName};

/// A band with some terms on, by our rules.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WithTerms {
    /// Which are on.
    pub(crate) terms: String,
    pub(crate) band: Band,
}

/// Switches terms on.
pub(super) fn add(added: &mut AddedTerms, terms: &[Term]) {
    for term in terms {
        match term.name {
            TermName::FirstRemoteReader => added.first_remote_reader_ns = term.ns,
            TermName::OverlappedAck => added.overlapped_ack_ns = Some(term.ns),
            TermName::RfoSharer => added.rfo_sharer_ns = Some(term.ns),
            TermName::AdjacentLine => added.adjacent_line_ns = term.ns,
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

fn words(term: Term) -> String {
    let name = term.name.to_possible_value();
    let name = name.as_ref().map_or("term", |value| value.get_name());
    format!("{name}={}", term.ns)
}
