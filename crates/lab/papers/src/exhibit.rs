//! What all papers have in common for programs: each comparison as one exhibit, and how many of them hold.

use isochrone_units::{Reading, Standing};
use serde::{Deserialize, Serialize};

/// What a row tests: what could have made it fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Tests {
    /// Nothing was set on it.
    #[serde(rename = "out of sample")]
    OutOfSample,
    /// A constant or a rule was set, or a mechanism chosen, after looking at it.
    #[serde(rename = "in sample")]
    InSample,
    /// The model was given this number.
    #[serde(rename = "input")]
    Input,
    /// It follows from how the model is built, or from another row.
    #[serde(rename = "invariant")]
    Invariant,
}

impl Tests {
    /// All of them, the one that says most first.
    pub const ALL: [Self; 4] = [Self::OutOfSample, Self::InSample, Self::Input, Self::Invariant];

    /// The word in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OutOfSample => "out of sample",
            Self::InSample => "in sample",
            Self::Input => "input",
            Self::Invariant => "invariant",
        }
    }
}

/// One number, or several in the order in which a row has its cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Numbers {
    /// One; `None` where there is none.
    One(Option<f64>),
    /// Several, by cells.
    Many(Vec<Option<f64>>),
}

impl Numbers {
    /// From cells; what is no number is missing.
    pub(crate) fn of(cells: impl Iterator<Item = Option<f64>>) -> Self {
        let mut all: Vec<Option<f64>> =
            cells.map(|cell| cell.filter(|number| number.is_finite())).collect();
        match all.len() {
            0 => Self::One(None),
            1 => Self::One(all.remove(0)),
            _ if all.iter().all(Option::is_none) => Self::One(None),
            _ => Self::Many(all),
        }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Option<f64>] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(all) => all,
        }
    }
}

/// One row of a paper beside ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exhibit {
    /// Its name within the paper.
    pub id: String,
    /// The paper, by the name that `reproduce` takes.
    pub paper: String,
    /// The paper's numbers.
    pub published: Numbers,
    /// The reproduction's numbers.
    pub ours: Numbers,
    /// Where ours come from.
    pub reading: Reading,
    /// How well that is known on which ours rest.
    pub standing: Standing,
    /// What the row tests.
    pub tests: Tests,
    /// How near is near enough, and how narrow that is.
    pub tolerance: String,
    /// Whether it holds; `None` where it was not run, or nothing is asked.
    pub holds: Option<bool>,
    /// Why it misses, or what to know of it.
    pub reason: String,
}

/// The JSON of all papers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exhibits {
    /// Every row.
    pub exhibits: Vec<Exhibit>,
}

/// Rows of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many hold.
    pub held: usize,
    /// How many do not.
    pub missed: usize,
    /// How many have no verdict.
    pub open: usize,
}

impl Count {
    /// Of those exhibits that test this.
    pub fn of<'a>(exhibits: impl IntoIterator<Item = &'a Exhibit>, tests: Tests) -> Self {
        let mut count = Self::default();
        for exhibit in exhibits.into_iter().filter(|exhibit| exhibit.tests == tests) {
            match exhibit.holds {
                Some(true) => count.held += 1,
                Some(false) => count.missed += 1,
                None => count.open += 1,
            }
        }
        count
    }

    /// All of them.
    #[must_use]
    pub const fn all(self) -> usize {
        self.held + self.missed + self.open
    }
}

/// The headline: out-of-sample rows alone; what was not run does not hold.
pub fn headline<'a>(exhibits: impl IntoIterator<Item = &'a Exhibit>) -> String {
    let count = Count::of(exhibits, Tests::OutOfSample);
    let open = match count.open {
        0 => String::new(),
        open => format!("; {open} were not run"),
    };
    format!("{} of {} out-of-sample rows hold{open}.", count.held, count.all())
}

#[cfg(test)]
mod tests {
    use isochrone_report::json::Format;

    use super::*;

    fn exhibit(tests: Tests, holds: Option<bool>) -> Exhibit {
        Exhibit {
            id: "a".into(),
            paper: "p".into(),
            published: Numbers::of([Some(1.0), Some(f64::NAN)].into_iter()),
            ours: Numbers::of([None, None].into_iter()),
            reading: Reading::Simulated,
            standing: Standing::Assumed,
            tests,
            tolerance: String::new(),
            holds,
            reason: String::new(),
        }
    }

    #[test]
    fn only_rows_out_of_sample_are_in_the_headline() {
        let all = [
            exhibit(Tests::OutOfSample, Some(true)),
            exhibit(Tests::OutOfSample, Some(false)),
            exhibit(Tests::OutOfSample, None),
            exhibit(Tests::InSample, Some(true)),
            exhibit(Tests::Input, Some(true)),
            exhibit(Tests::Invariant, Some(true)),
        ];
        assert_eq!(headline(&all), "1 of 3 out-of-sample rows hold; 1 were not run.");
        assert_eq!(Count::of(&all, Tests::InSample), Count { held: 1, missed: 0, open: 0 });
    }

    #[test]
    fn an_exhibit_is_written_and_read_alike_and_missing_numbers_are_null() {
        let all = Exhibits { exhibits: vec![exhibit(Tests::Input, None)] };
        let text = serde_json::to_string(&all).expect("plain");
        assert!(text.contains(r#""published":[1.0,null],"ours":null"#), "{text}");
        assert!(
            text.contains(r#""tests":"input""#) && text.contains(r#""standing":"assumed""#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Exhibits>(&text).expect("its own"), all);
        isochrone_schemas::hold(Format::Exhibits, &all).expect("as its schema says");
    }
}
