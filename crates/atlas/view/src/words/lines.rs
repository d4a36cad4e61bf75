//! Lines in the LLC and in memory: how much nearer the near ones are, by which form they lie,
//! how pages are decoded and how well.

use std::collections::BTreeSet;

use isochrone_atlas_store::contents::{Form, Quality};
use isochrone_report::fmt;

use super::{EACH_CORE, and, cores, counted, sentence, span};
use crate::level::{LevelView, Near, ends};

/// Correlation from which two bases are called alike.
const ALIKE: f64 = 0.9;
/// Correlation up to which they are called opposed.
const OPPOSED: f64 = -0.5;

/// Classes that are listed one by one.
const MANY_CLASSES: usize = 4;
/// A class this much farther than the one before lies on another node (as the probe tells them apart).
const FAR: f64 = 1.12;

/// All sentences of a level, the most important first.
pub(crate) fn level(view: &LevelView<'_>) -> Vec<String> {
    let mut all = near(view);
    all.push(form(view).join(" "));
    all.extend(bases(view));
    all.extend(decoding(view));
    all.extend(score(view));
    all
}

/// `"the LLC"`, `"DRAM"`.
pub(crate) fn place(view: &LevelView<'_>) -> String {
    if view.map.level == "llc" { "the LLC".to_owned() } else { view.name() }
}

/// By how much the nearest quarter is nearer, from each core or over all.
pub(crate) fn near(view: &LevelView<'_>) -> Vec<String> {
    let found: Vec<(u16, Near)> =
        view.cores().filter_map(|(place, core)| Some((core, view.near(place)?))).collect();
    if found.len() <= EACH_CORE {
        return found.iter().map(|(core, near)| near_one(view, *core, near)).collect();
    }
    let share = |entry: &(u16, Near)| entry.1.share();
    let most = found.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    let shares: Vec<f64> = found.iter().map(share).collect();
    let (Some(span), Some((core, best))) = (span(&shares, fmt::percent), most) else {
        return Vec::new();
    };
    vec![format!(
        "From {} cores, the nearest quarter of the lines in {} is {span} nearer than the mean; \
         most from core {core} ({} of {}).",
        found.len(),
        place(view),
        fmt::ns(best.near_ns),
        fmt::ns(best.mean_ns),
    )]
}

fn near_one(view: &LevelView<'_>, core: u16, near: &Near) -> String {
    let by_base = if near.measured { "" } else { ", by its base" };
    format!(
        "From core {core}, the nearest quarter of the lines in {} is {} nearer than the mean \
         ({} of {}{by_base}).",
        place(view),
        fmt::percent(near.share()),
        fmt::ns(near.near_ns),
        fmt::ns(near.mean_ns),
    )
}

/// The form that was found, and why it is believed.
pub(crate) fn form(view: &LevelView<'_>) -> Vec<String> {
    let place = place(view);
    let reason = view.map.reason.trim().trim_end_matches('.');
    let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    match view.map.form {
        Form::Flat => {
            let means: Vec<f64> = view.map.quality.iter().filter_map(|q| q.mean_ns).collect();
            let mean = span(&means, fmt::ns).map_or(String::new(), |m| format!(" ({m})"));
            vec![format!("Lines in {place} do not differ{mean}{because}.")]
        }
        Form::PerLine => {
            let pages: BTreeSet<u64> = view.map.lines.iter().map(|line| line.0).collect();
            vec![format!(
                "Lines in {place} differ, but not by a pattern that pages share{because}. They \
                 are measured one by one, {} so far.",
                counted(pages.len(), "page"),
            )]
        }
        Form::Pattern => {
            let said: Vec<String> = classes(view).into_iter().chain(shape(view)).collect();
            if said.is_empty() {
                return vec![format!(
                    "The pattern of lines in {place} was not measured to the end."
                )];
            }
            let why = (!reason.is_empty()).then(|| sentence(reason));
            said.into_iter().chain(why).collect()
        }
    }
}

/// The classes that pages fall into, seen from the first core that wears a base.
fn classes(view: &LevelView<'_>) -> Option<String> {
    let (_, base, worn_by) = view.wearers().into_iter().next()?;
    let means = view.class_means_ns(base);
    if means.len() < 2 || means.iter().all(Option::is_none) {
        return None;
    }
    let shares = view.class_shares();
    if means.len() > MANY_CLASSES {
        return Some(many_classes(&means, &shares));
    }
    let each: Vec<String> = means
        .iter()
        .zip(shares)
        .map(|(mean, share)| {
            let mean = mean.map_or_else(|| fmt::MISSING.to_owned(), fmt::ns);
            format!("{mean} ({} of the pages)", fmt::percent(share))
        })
        .collect();
    Some(format!(
        "Pages fall into {} classes, from core {}: {}.",
        means.len(),
        worn_by.first().copied().unwrap_or(0),
        and(&each)
    ))
}

/// More classes than one would list: how many patterns there are, and on which nodes pages lie.
fn many_classes(means: &[Option<f64>], shares: &[f64]) -> String {
    let mut known: Vec<(f64, f64)> =
        means.iter().zip(shares).filter_map(|(mean, share)| Some(((*mean)?, *share))).collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Each node with the sum of its means, weighted by pages, its pages and its patterns.
    let mut nodes: Vec<(f64, f64, usize)> = Vec::new();
    let mut last = f64::NEG_INFINITY;
    for (mean, share) in known {
        if mean > last * FAR {
            nodes.push((0.0, 0.0, 0));
        }
        last = mean;
        if let Some(node) = nodes.last_mut() {
            *node = (node.0 + mean * share, node.1 + share, node.2 + 1);
        }
    }
    let patterns = nodes.iter().map(|node| node.2).max().unwrap_or(0);
    let one_of = format!("show one of {patterns} patterns");
    if nodes.len() < 2 {
        return format!("Pages {one_of}.");
    }
    let each: Vec<String> = nodes
        .iter()
        .filter(|node| node.1 > 0.0)
        .map(|node| format!("{} ({} of the pages)", fmt::ns(node.0 / node.1), fmt::percent(node.1)))
        .collect();
    format!("Pages lie on {} nodes of the machine, {}, and {one_of} there.", each.len(), and(&each))
}

/// What lines of one page have in common with those of others.
fn shape(view: &LevelView<'_>) -> Option<String> {
    let (_, base, _) = view.wearers().into_iter().next()?;
    let spread = fmt::ns(view.spread_ns(base)?);
    if !view.has_shape(base) {
        return Some("Inside a page all lines are alike.".to_owned());
    }
    let from_to = format!("{spread} from the nearest line to the farthest");
    let (distinct, used) = (view.distinct_keys(), view.used_keys());
    let repeat = view.repeats_every(base).map(|every| {
        let times = usize::from(view.map.period) / every;
        format!("{every} lines that repeat {times} times")
    });
    if used > 1 {
        let over = if view.map.period == 256 { "16 KiB" } else { "page" };
        let inner = repeat.map_or(String::new(), |words| format!(" ({words})"));
        let occur = match used == distinct {
            true => format!("All {distinct} keys"),
            false => format!("{used} of {distinct} keys"),
        };
        return Some(format!(
            "Every {over} has one base pattern{inner}, {from_to}, with its lines permuted by the \
             page's key: line i is line i XOR key. {occur} that can be told apart occur.",
        ));
    }
    let inner = repeat.unwrap_or_else(|| format!("{} lines", view.map.period));
    Some(format!("Every page has the same pattern: {inner}, {from_to}."))
}

/// How the bases of different cores relate.
pub(crate) fn bases(view: &LevelView<'_>) -> Option<String> {
    let worn = view.wearers();
    let likeness = view.likeness();
    if let ([(_, _, first)], true) = (worn.as_slice(), likeness.is_empty()) {
        let all = view.cores().count();
        return (first.len() > 1 && first.len() == all)
            .then(|| sentence(&format!("{} see the same pattern", cores(first))));
    }
    let (lo, hi) = ends(&likeness)?;
    if likeness.len() == 1 {
        let pair = [&worn[0].2, &worn[1].2].map(|c| cores(c));
        let words = match lo {
            r if r >= ALIKE => "see nearly the same pattern",
            r if r <= OPPOSED => "see opposed patterns: what is near one is far from the other",
            _ => "see different patterns",
        };
        return Some(sentence(&format!("{} {words} (r = {lo:.2})", and(&pair))));
    }
    let words = if lo <= OPPOSED { ", some opposed" } else { "" };
    Some(format!(
        "{} patterns are worn; two of them correlate at {lo:.2} to {hi:.2}{words}.",
        worn.len()
    ))
}

/// What it takes to know a page.
pub(crate) fn decoding(view: &LevelView<'_>) -> Option<String> {
    let quality = view.decoding()?;
    let mut how = Vec::new();
    how.extend(quality.lines_per_page.map(|n| format!("{} lines", fmt::significant(n, 3))));
    how.extend(quality.samples_per_page.map(|n| format!("{} timed loads", fmt::significant(n, 3))));
    let from = if how.is_empty() { String::new() } else { format!(" from {}", and(&how)) };
    let cost = quality.us_per_page.map_or(String::new(), |us| {
        format!(", in {} a page{}", fmt::ns(1e3 * us), breakdown(quality))
    });
    let pages = fmt::count(quality.decoded_pages);
    let place = place(view);
    Some(format!("{pages} pages were decoded for {place}, each{from} on average{cost}."))
}

fn breakdown(quality: &Quality) -> String {
    let part = |(name, us): &(String, f64)| format!("{} {name}", fmt::significant(*us, 2));
    let parts: Vec<String> = quality.us_breakdown.iter().map(part).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// How well the map predicts pages that it was not learnt from.
pub(crate) fn score(view: &LevelView<'_>) -> Option<String> {
    let all = &view.map.quality;
    let gather = |of: fn(&Quality) -> Option<f64>| all.iter().filter_map(of).collect::<Vec<f64>>();
    let pages = all.iter().map(|q| q.heldout_pages).max().filter(|n| *n > 0)?;
    let explained = span(&gather(|q| q.r2_heldout), fmt::percent)?;
    let ceiling = span(&gather(|q| q.r2_ceiling), fmt::percent)
        .map_or(String::new(), |share| format!(" (its own noise leaves {share} to be explained)"));
    let right = span(&gather(|q| q.key_accuracy), fmt::percent)
        .map_or(String::new(), |share| format!("; {share} of the codes are right"));
    let others = all.iter().filter(|quality| quality.verified.is_some()).count();
    let shares = gather(|q| q.verified?.explained);
    let verified = span(&shares, fmt::percent).map_or(String::new(), |share| {
        let cores = counted(others, "more core");
        format!(" A few loads verified {cores}: the map explains {share} of what repeats there.")
    });
    Some(format!(
        "On {} the map of {} explains {explained} of the variance of a second pass{ceiling}{right}.{verified}",
        counted(pages as usize, "held-out page"),
        place(view),
    ))
}

#[cfg(test)]
mod tests {
    use isochrone_atlas_store::contents::{Contents, Verified};
    use isochrone_units::Level;

    use super::*;
    use crate::fixtures::genoa;

    #[test]
    fn cores_that_were_verified_are_told_from_those_that_were_scored() {
        let mut contents = genoa();
        let said =
            |contents: &Contents| score(&LevelView::find(contents, Level::Llc).unwrap()).unwrap();
        assert!(said(&contents).ends_with("of the codes are right."), "{}", said(&contents));
        contents.levels[0].quality[1] = Quality {
            verified: Some(Verified {
                explained: Some(0.97),
                error: Some(0.01),
                ..Verified::default()
            }),
            ..Quality::default()
        };
        let end =
            " A few loads verified 1 more core: the map explains 97.0 % of what repeats there.";
        assert!(said(&contents).ends_with(end), "{}", said(&contents));
    }
}
