//! Cores that have no base, by what they lack, and the words for it.

use isochrone_machine::strides;

/// Parts of a list of cores at most.
const PARTS: usize = 12;
/// Parts that are named of a longer one; the bases of the atlas say the others.
const NAMED: usize = 6;

/// Cores without a base.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut {
    /// There was no time to verify them.
    pub(super) late: Vec<u16>,
    /// The codes do not hold for them.
    pub(super) unlike: Vec<Unlike>,
    /// The target refused them.
    pub(super) refused: Vec<Refused>,
    /// Lines differ, but not by a form.
    pub(super) formless: Vec<u16>,
}

/// A core that the codes do not hold for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unlike {
    pub(super) core: u16,
    /// Share of what repeats there that is explained all the same.
    pub(super) share: f64,
}

/// A core that the target refused, in its words.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) core: u16,
    pub(super) why: String,
}

impl LeftOut {
    /// One line for each reason.
    pub(super) fn lines(&self) -> Vec<String> {
        let unlike: Vec<u16> = self.unlike.iter().map(|found| found.core).collect();
        let refused: Vec<u16> = self.refused.iter().map(|found| found.core).collect();
        let least = self.unlike.iter().map(|found| found.share).fold(f64::INFINITY, f64::min);
        let codes = format!(
            "the codes that were learnt explain only {:.0} % of what repeats there, and no more could be learnt in the \
             time",
            100.0 * least
        );
        let why = self.refused.first().map_or("", |found| found.why.as_str());
        let reasons = [
            (&self.late, "there was no time to verify them"),
            (&unlike, codes.as_str()),
            (&refused, why),
            (&self.formless, "lines do not follow a form, and were not timed from there"),
        ];
        let some = reasons.into_iter().filter(|(cores, _)| !cores.is_empty());
        some.map(|(cores, why)| format!("{}: {why}", have_none(cores))).collect()
    }
}

fn have_none(cores: &[u16]) -> String {
    let (word, verb) = if cores.len() == 1 { ("core", "has") } else { ("cores", "have") };
    let parts = |count: usize| strides(&cores[..count]).matches(',').count() + 1;
    let all = cores.len();
    if parts(all) <= PARTS {
        return format!("{word} {} {verb} no base", strides(cores));
    }
    let named = (1..=all).take_while(|count| parts(*count) <= NAMED).last().unwrap_or(1);
    let more = all - named;
    format!("{word} {} and {more} more of {all} {verb} no base", strides(&cores[..named]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_list_the_first_parts_are_named_and_the_others_counted() {
        // Three of every eight.
        let cores: Vec<u16> = (0..384).filter(|core| core % 8 > 4).collect();
        let line = have_none(&cores);
        assert_eq!(
            line,
            "cores 5-7,13-15,21-23,29-31,37-39,45-47 and 126 more of 144 have no base"
        );
        let every: Vec<u16> = (0..384).step_by(8).collect();
        assert_eq!(have_none(&every), "cores 0-376:8 have no base", "one part");
    }

    #[test]
    fn each_reason_is_one_line_however_many_cores_it_has() {
        assert!(LeftOut::default().lines().is_empty());
        let left_out = LeftOut {
            late: (40..64).collect(),
            unlike: vec![Unlike { core: 7, share: 0.5 }],
            refused: vec![Refused { core: 9, why: "it is offline".into() }],
            formless: Vec::new(),
        };
        let [late, unlike, refused] = &left_out.lines()[..] else { panic!("three reasons") };
        assert_eq!(late, "cores 40-63 have no base: there was no time to verify them");
        assert!(unlike.starts_with("core 7 has no base: ") && unlike.contains(" 50 %"), "{unlike}");
        assert_eq!(refused, "core 9 has no base: it is offline");
    }
}
