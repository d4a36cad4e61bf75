//! What an atlas says, in sentences: the same ones for the terminal and the report.
//!
//! A sentence carries its numbers with their unit and interval. It never rounds a missing number
//! to a word that sounds like a result: what is not there is named with the reason.

pub(super) mod cells;
pub(super) mod lines;
pub(super) mod machine;
pub(super) mod run;

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::Contents;
use isochrone_machine::strides;

use super::level::ends;

/// Up to this many cores each has a sentence of its own.
pub(super) const EACH_CORE: usize = 4;

/// `"a, b and c"`.
pub(super) fn and<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// `"core 3"`, `"cores 0-3,8"`.
pub(super) fn cores(numbers: &[u16]) -> String {
    let plural = if numbers.len() == 1 { "" } else { "s" };
    format!("core{plural} {}", strides(numbers))
}

/// `"1 page"`, `"2 pages"`.
pub(super) fn counted(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", isochrone_report::fmt::count(number as u64))
}

/// The only value, or the smallest and the largest: `"96 % to 98 %"`.
pub(super) fn span(values: &[f64], write: impl Fn(f64) -> String) -> Option<String> {
    let (lo, hi) = ends(values)?;
    let (lo, hi) = (write(lo), write(hi));
    Some(if lo == hi { lo } else { format!("{lo} to {hi}") })
}

/// With a capital letter and a full stop.
pub(super) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if words.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// Why something is not in the atlas: what the run said of it, else what can be seen.
pub(super) fn absent(contents: &Contents, experiment: Experiment) -> String {
    let named = |line: &&String| line.starts_with(experiment.title());
    let said = contents.provenance.missing.iter().find(named);
    let (there, needs) = (contents.machine.cores.len(), experiment.cores());
    if let Some((_, why)) = said.and_then(|line| line.split_once(": ")) {
        // One that was stopped begins with these words itself.
        match why.strip_prefix("not measured, ") {
            Some(why) => format!("Not measured, {why}."),
            None => format!("Not measured: {why}."),
        }
    } else if there > 0 && there < needs {
        format!("Not measured: it needs {}, and there is {there}.", counted(needs, "core"))
    } else if contents.complete {
        "Not measured: this run did not include it.".to_owned()
    } else {
        "Not measured: the run was interrupted before it.".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_spans_read_as_people_write_them() {
        assert_eq!(and(&["a"]), "a");
        assert_eq!(and(&["a", "b", "c"]), "a, b and c");
        assert_eq!(and::<&str>(&[]), "");
        assert_eq!(cores(&[3]), "core 3");
        assert_eq!(cores(&[2, 1, 0, 8]), "cores 0-2,8");
        assert_eq!(counted(1, "page"), "1 page");
        assert_eq!(counted(0, "page"), "0 pages");
        let two = |v: f64| format!("{v:.1} ns");
        assert_eq!(span(&[2.0, 1.0], two).as_deref(), Some("1.0 ns to 2.0 ns"));
        assert_eq!(span(&[2.0, f64::NAN], two).as_deref(), Some("2.0 ns"));
        assert_eq!(span(&[], two), None);
        assert_eq!(sentence("on bare metal"), "On bare metal.");
        assert_eq!(sentence(""), ".");
    }
}
