//! What is about to be measured, in a few lines that are printed first: what, about how long, and where it goes.

use std::time::Duration;

use isochrone_report::fmt;
use isochrone_survey::{Schedule, Size};

/// The lines.
pub(super) fn lines(size: &Size, schedule: &Schedule, places: &str) -> [String; 3] {
    let estimates_s = size.estimates_s(schedule);
    let what = format!(
        "isochrone: measuring {} and {}: pages of {}, {} in each region",
        counted(size.cores, "core"),
        counted(size.regions, "region"),
        fmt::bytes(size.memory_bytes),
        fmt::bytes(size.buffer_bytes)
    );
    let parts = schedule.experiments.iter().zip(&estimates_s);
    let measured = parts.filter(|(experiment, _)| !experiment.is_inferred());
    let each: Vec<String> =
        measured.map(|(experiment, s)| format!("{} {}", experiment.title(), seconds(*s))).collect();
    let all_s: f64 = estimates_s.iter().sum();
    let limit = schedule.budget.map_or_else(String::new, |budget| {
        format!(", and {} at most", seconds(budget.as_secs_f64()))
    });
    [
        what,
        format!("isochrone: about {}{limit}: {}", seconds(all_s), each.join(", ")),
        format!("isochrone: {places}"),
    ]
}

/// `1 core`, `2 cores`
pub(super) fn counted(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// A time as people say it.
fn seconds(s: f64) -> String {
    let time = Duration::from_secs_f64(s.clamp(0.0, 1e9));
    match time.as_secs() {
        0 => "1 s".to_owned(),
        whole @ 1..120 => format!("{} s", whole + u64::from(time.subsec_millis() >= 500)),
        whole => format!("{} min", (whole + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        for (s, words) in [(0.0, "1 s"), (0.4, "1 s"), (1.4, "1 s"), (9.6, "10 s"), (90.0, "90 s")]
        {
            assert_eq!(seconds(s), words);
        }
        assert_eq!((seconds(120.0), seconds(3600.0)), ("2 min".to_owned(), "60 min".to_owned()));
    }
}
