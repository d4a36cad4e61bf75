//! How the run went: what sits where, what moved meanwhile, what was missing.

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Contents, DriftEvent};
use isochrone_report::fmt;
use isochrone_units::Grade;

use super::{absent, counted, sentence};
use crate::calendar::utc;

/// Drift events that are named one by one.
const NAMED: usize = 3;

/// Where cores and controllers seem to sit.
pub(crate) fn placement(contents: &Contents) -> Vec<String> {
    let Some(found) = &contents.placement else {
        return vec![absent(contents, Experiment::Placement)];
    };
    let reason = found.reason.trim_end_matches('.');
    if found.shape == "cannot tell" {
        return vec![format!("Cannot tell: {reason}.")];
    }
    let rank = found.rank_correlation.map_or(String::new(), |r| {
        format!(" Distances and latencies rank alike at {r:.2} (Spearman).")
    });
    let mut all = vec![format!("The latencies fit a {}: {reason}.{rank}", found.shape)];
    if !found.symmetries.is_empty() {
        all.push(sentence(&found.symmetries));
    }
    all
}

/// What may not be believed as if it had been measured alone: a sentence for each grade, worst first, with the reason
/// of its first experiment. Nothing where all were quiet.
pub(crate) fn doubts(contents: &Contents) -> Vec<String> {
    let of = |grade: Grade| {
        let marked = contents.quality.iter().filter(|(_, graded)| graded.grade == grade);
        let names: Vec<&str> = marked.clone().map(|(experiment, _)| experiment.title()).collect();
        let (first, graded) = marked.clone().next()?;
        let grade = sentence_word(grade.as_str());
        Some(format!(
            "{grade}: {}. {}: {}.",
            names.join(", "),
            sentence_word(first.title()),
            graded.reason
        ))
    };
    [Grade::Unusable, Grade::Disturbed].into_iter().filter_map(of).collect()
}

/// What moved while measuring: counted by kind, and the last ones.
pub(crate) fn drift(contents: &Contents) -> Vec<String> {
    let events = &contents.drift;
    if events.is_empty() {
        return vec!["Nothing was seen to move while measuring.".to_owned()];
    }
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for event in events {
        match kinds.iter_mut().find(|(kind, _)| *kind == event.kind) {
            Some((_, n)) => *n += 1,
            None => kinds.push((&event.kind, 1)),
        }
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    let dropped: u64 = events.iter().map(|e| e.dropped_samples).sum();
    let redone = match dropped {
        0 => String::new(),
        n => format!("; {} timed loads were dropped and done again", fmt::count(n)),
    };
    let repaired = events.iter().filter_map(|e| e.repaired_ms).reduce(f64::max);
    let repaired = repaired
        .map_or(String::new(), |ms| format!("; the slowest repair took {}", fmt::ns(1e6 * ms)));
    let count = counted(events.len(), "event");
    vec![format!("{count} ({}){redone}{repaired}.", kinds.join(", "))]
}

/// The last drift events, one line each, oldest first.
pub(crate) fn last_drift(contents: &Contents) -> Vec<String> {
    let first = contents.drift.len().saturating_sub(NAMED);
    contents.drift[first..].iter().map(event).collect()
}

fn event(event: &DriftEvent) -> String {
    let (at, what) = (fmt::significant(event.at_s, 3), event.what.trim_end_matches('.'));
    let core = format!("core {}", event.core);
    if what.starts_with(&core) {
        format!("at {at} s: {what}")
    } else {
        format!("at {at} s, {core}: {what}")
    }
}

/// When, how long and with which seed.
pub(crate) fn provenance(contents: &Contents) -> String {
    let from = &contents.provenance;
    let when = utc(from.started_unix_s).map_or(String::new(), |date| format!(" on {date}"));
    let version = match from.version.as_str() {
        "" => String::new(),
        version => format!(" by isochrone {version}"),
    };
    let took = match (contents.complete, from.seconds > 0.0) {
        (true, true) => format!(" in {}", fmt::seconds(from.seconds)),
        (true, false) => String::new(),
        (false, true) => format!(" for {} until it was interrupted", fmt::seconds(from.seconds)),
        (false, false) => " until it was interrupted".to_owned(),
    };
    format!(
        "{}{when}{took}{version}, seed {}.",
        sentence_word(contents.reading.as_str()),
        from.seed
    )
}

fn sentence_word(word: &str) -> String {
    sentence(word).trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::genoa;
    use isochrone_atlas_store::contents::Graded;

    #[test]
    fn doubts_name_what_is_doubted_and_why_and_quiet_is_silent() {
        let mut contents = genoa();
        let graded = |grade, reason: &str| Graded { grade, reason: reason.to_owned() };
        contents.quality.insert(Experiment::Block, graded(Grade::Quiet, "alone"));
        assert!(doubts(&contents).is_empty());
        contents.quality.insert(Experiment::Transfer, graded(Grade::Disturbed, "a build"));
        contents.quality.insert(Experiment::Bandwidth, graded(Grade::Disturbed, "a game"));
        contents.quality.insert(Experiment::Region, graded(Grade::Unusable, "no cells"));
        assert_eq!(
            doubts(&contents),
            [
                "Unusable: region latency. Region latency: no cells.",
                "Disturbed: line transfers, bandwidth. Line transfers: a build."
            ]
        );
    }
}
