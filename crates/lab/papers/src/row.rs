//! One comparison with a paper: what it tests, which values of ours it accepts, and whether ours is one of them.

use isochrone_units::{Reading, Standing};
use serde::Serialize;

use crate::exhibit::{Exhibit, Numbers, Tests};

/// Which values a cell accepts, the ends among them; an end that is missing is open.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Accepts {
    /// The least.
    pub(crate) lo: Option<f64>,
    /// The most.
    pub(crate) hi: Option<f64>,
}

impl Accepts {
    /// Whatever there is: a number beside another one, and no test.
    pub(crate) const ANY: Self = Self { lo: None, hi: None };

    pub(crate) const fn between(lo: f64, hi: f64) -> Self {
        Self { lo: Some(lo), hi: Some(hi) }
    }

    pub(crate) const fn at_least(lo: f64) -> Self {
        Self { lo: Some(lo), hi: None }
    }

    pub(crate) const fn at_most(hi: f64) -> Self {
        Self { lo: None, hi: Some(hi) }
    }

    /// More than this, and not this itself.
    pub(crate) const fn above(limit: f64) -> Self {
        Self::at_least(limit.next_up())
    }

    /// Within so much of the paper's number.
    pub(crate) fn within(paper: f64, by: f64) -> Self {
        Self::between(paper - by, paper + by)
    }

    /// Within a factor of the paper's number.
    pub(crate) fn factor(paper: f64, by: f64) -> Self {
        Self::between(paper / by, paper * by)
    }

    pub(crate) fn takes(self, value: f64) -> bool {
        self.lo.is_none_or(|lo| value >= lo) && self.hi.is_none_or(|hi| value <= hi)
    }

    /// How narrow it is, in words.
    fn words(self) -> String {
        match (self.lo, self.hi) {
            (None, None) => "nothing is asked".to_owned(),
            (Some(lo), None) => format!("{} or more, one-sided", short(lo)),
            (None, Some(hi)) => format!("{} or less, one-sided", short(hi)),
            (Some(lo), Some(hi)) if hi - lo <= 0.0 => short(lo),
            (Some(lo), Some(hi)) if lo > 0.0 => {
                format!("{} to {}, a factor of {}", short(lo), short(hi), short(hi / lo))
            }
            (Some(lo), Some(hi)) => format!("{} to {}", short(lo), short(hi)),
        }
    }

    /// How wide it is beside others; open ends are widest.
    fn width(self) -> f64 {
        self.lo.zip(self.hi).map_or(f64::INFINITY, |(lo, hi)| {
            let size = lo.abs().max(hi.abs()).max(f64::MIN_POSITIVE);
            (hi - lo) / size
        })
    }
}

/// One cell of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Cell {
    pub(crate) what: String,
    /// The paper's number; `None` where it gives none.
    pub(crate) paper: Option<f64>,
    /// Ours; `None` where it was not run.
    pub(crate) ours: Option<f64>,
    /// Which of ours hold.
    pub(crate) accepts: Accepts,
    /// Whether it holds; `None` also where nothing is asked.
    pub(crate) pass: Option<bool>,
}

impl Cell {
    pub(crate) fn new(
        what: impl Into<String>,
        paper: Option<f64>,
        ours: Option<f64>,
        accepts: Accepts,
    ) -> Self {
        let pass = ours.filter(|_| accepts != Accepts::ANY).map(|ours| accepts.takes(ours));
        Self { what: what.into(), paper, ours, accepts, pass }
    }

    /// A cell within so much of the paper's number.
    pub(crate) fn within(what: impl Into<String>, paper: f64, ours: Option<f64>, by: f64) -> Self {
        Self::new(what, Some(paper), ours, Accepts::within(paper, by))
    }

    /// A cell within a factor of the paper's number.
    pub(crate) fn factor(what: impl Into<String>, paper: f64, ours: Option<f64>, by: f64) -> Self {
        Self::new(what, Some(paper), ours, Accepts::factor(paper, by))
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Row {
    /// Its name in the list.
    pub(crate) id: String,
    /// What is compared.
    pub(crate) what: String,
    /// The paper's numbers.
    pub(crate) paper: String,
    pub(crate) ours: String,
    /// How near is near enough.
    pub(crate) tolerance: String,
    /// Whether it has to hold: a row that can fail.
    pub(crate) must: bool,
    /// What it tests.
    pub(crate) tests: Tests,
    /// How narrow what it accepts is.
    pub(crate) narrow: String,
    /// Whether all cells hold; `None` where some were not run.
    pub(crate) pass: Option<bool>,
    /// What to know: the gap, and what moves it.
    pub(crate) note: String,
    /// The cells.
    pub(crate) cells: Vec<Cell>,
    /// Whether an experiment that changes one thing moves every cell that misses to where it holds.
    #[serde(skip)]
    pub(crate) explained: bool,
}

/// Rows with more cells name the widest one alone.
const CELLS_NAMED: usize = 6;

impl Row {
    /// A row of cells.
    pub(crate) fn new(
        id: &str,
        tests: Tests,
        what: &str,
        tolerance: &str,
        cells: Vec<Cell>,
    ) -> Self {
        let numbers = |of: fn(&Cell) -> Option<f64>| {
            let words = cells.iter().map(|cell| of(cell).map_or("?".to_owned(), short));
            words.collect::<Vec<String>>().join(" ")
        };
        let pass = cells.iter().map(|cell| cell.pass).collect::<Option<Vec<bool>>>();
        Self {
            id: id.to_owned(),
            what: what.to_owned(),
            paper: numbers(|cell| cell.paper),
            ours: numbers(|cell| cell.ours),
            tolerance: tolerance.to_owned(),
            must: false,
            tests,
            narrow: narrow(&cells),
            // A cell that failed decides, whether or not others were run.
            pass: if cells.iter().any(|cell| cell.pass == Some(false)) {
                Some(false)
            } else {
                pass.map(|all| all.iter().all(|pass| *pass))
            },
            note: String::new(),
            cells,
            explained: false,
        }
    }

    /// A row of one cell, which has the row's name.
    pub(crate) fn single(id: impl Into<String>, tests: Tests, tolerance: &str, cell: Cell) -> Self {
        let what = cell.what.clone();
        Self::new(&id.into(), tests, &what, tolerance, vec![cell])
    }

    /// Whether anything is asked of it; what is not is a number beside others.
    pub(crate) fn asks(&self) -> bool {
        self.cells.iter().any(|cell| cell.accepts != Accepts::ANY)
    }

    /// It has to hold.
    pub(crate) fn must(mut self) -> Self {
        self.must = true;
        self
    }

    /// With more words.
    pub(crate) fn note(mut self, words: impl AsRef<str>) -> Self {
        if !words.as_ref().is_empty() {
            if !self.note.is_empty() {
                self.note.push_str("; ");
            }
            self.note.push_str(words.as_ref());
        }
        self
    }

    /// With the names of the cells that fail.
    pub(crate) fn named(self) -> Self {
        let failed: Vec<&str> =
            self.cells.iter().filter(|c| c.pass == Some(false)).map(|c| c.what.as_str()).collect();
        let words = match failed.len() {
            0 => String::new(),
            n if n > 8 => format!("misses {n} of {} cells", self.cells.len()),
            _ => format!("misses: {}", failed.join(", ")),
        };
        self.note(words)
    }

    /// With the numbers in other words, where there are too many cells to list.
    pub(crate) fn words(mut self, paper: &str, ours: String) -> Self {
        (self.paper, self.ours) = (paper.to_owned(), ours);
        self
    }

    /// Says whether single changes explain all that it misses.
    pub(crate) const fn explained(mut self, explained: bool) -> Self {
        self.explained = explained;
        self
    }

    /// The row as an exhibit of a paper.
    pub(crate) fn exhibit(&self, paper: &str, reading: Reading, rests_on: Standing) -> Exhibit {
        // Whatever a row tests, a miss says what moves it, or that nobody knows.
        let open = self.pass == Some(false) && !self.explained;
        let words = [
            if open { "unexplained" } else { "" },
            match self.cells.iter().any(|cell| cell.ours.is_none()) {
                true if self.asks() => "not all of it was run",
                true => "not measured here",
                false => "",
            },
            self.note.as_str(),
        ];
        let reason: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        Exhibit {
            id: self.id.clone(),
            paper: paper.to_owned(),
            published: Numbers::of(self.cells.iter().map(|cell| cell.paper)),
            ours: Numbers::of(self.cells.iter().map(|cell| cell.ours)),
            reading,
            standing: match self.tests {
                Tests::InSample => Standing::InSample,
                Tests::Input => Standing::Known,
                _ => rests_on,
            },
            tests: self.tests,
            tolerance: match self.narrow.as_str() {
                "" => self.tolerance.clone(),
                narrow => format!("{}: {narrow}", self.tolerance),
            },
            holds: self.pass,
            reason: reason.join("; "),
        }
    }
}

/// What cells accept: each of a few, of many the widest.
fn narrow(cells: &[Cell]) -> String {
    let asked = || cells.iter().filter(|cell| cell.accepts != Accepts::ANY);
    let Some(widest) = asked().max_by(|a, b| a.accepts.width().total_cmp(&b.accepts.width()))
    else {
        return String::new();
    };
    if cells.len() == 1 {
        return widest.accepts.words();
    }
    let named = |cell: &Cell| format!("{} {}", cell.what, cell.accepts.words());
    if cells.len() <= CELLS_NAMED {
        return asked().map(named).collect::<Vec<_>>().join("; ");
    }
    format!("the widest of {} cells: {}", cells.len(), named(widest))
}

/// A number in few characters.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if size >= 1e5 {
        format!("{value:.3e}")
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tests: Tests, ours: &[Option<f64>]) -> Row {
        let cell =
            |(at, ours): (usize, &Option<f64>)| Cell::factor(format!("c{at}"), 10.0, *ours, 1.25);
        Row::new("x", tests, "a thing", "factor 1.25", ours.iter().enumerate().map(cell).collect())
    }

    #[test]
    fn a_cell_accepts_what_lies_between_its_ends() {
        for (accepts, inside, outside) in [
            (Accepts::between(1.0, 2.0), [1.0, 2.0], [0.99, 2.01]),
            (Accepts::within(10.0, 1.0), [9.0, 11.0], [8.9, 11.1]),
            (Accepts::factor(10.0, 2.0), [5.0, 20.0], [4.9, 20.1]),
            (Accepts::at_least(3.0), [3.0, 1e9], [2.9, f64::NEG_INFINITY]),
            (Accepts::at_most(3.0), [3.0, -1e9], [3.1, f64::INFINITY]),
            (Accepts::above(1.0), [1.000_001, 2.0], [1.0, 0.5]),
        ] {
            assert!(inside.iter().all(|v| accepts.takes(*v)), "{accepts:?}");
            assert!(!outside.iter().any(|v| accepts.takes(*v)), "{accepts:?}");
            assert!(!accepts.takes(f64::NAN), "{accepts:?}");
        }
        assert_eq!(Cell::new("a", Some(1.0), Some(2.0), Accepts::ANY).pass, None, "no test");
    }

    #[test]
    fn a_row_states_how_narrow_it_is_and_one_miss_decides() {
        let all = row(Tests::OutOfSample, &[Some(10.0), Some(13.0), None]);
        assert_eq!(all.pass, Some(false), "a miss decides though one was not run");
        assert!(all.narrow.contains("c1 8.00 to 12.5, a factor of 1.56"), "{}", all.narrow);
        assert_eq!(row(Tests::OutOfSample, &[Some(10.0), None]).pass, None);
        assert_eq!(row(Tests::OutOfSample, &[Some(9.0)]).pass, Some(true));
        assert!(row(Tests::Input, &[Some(9.0); 8]).narrow.starts_with("the widest of 8 cells"));
    }

    #[test]
    fn a_miss_is_unexplained_unless_one_change_moves_it() {
        let of = |row: Row| row.exhibit("p", Reading::Simulated, Standing::Assumed);
        let miss = of(row(Tests::OutOfSample, &[Some(20.0)]).named());
        assert_eq!(miss.reason, "unexplained; misses: c0");
        assert_eq!((miss.holds, miss.standing), (Some(false), Standing::Assumed));
        let moved =
            of(row(Tests::OutOfSample, &[Some(20.0)]).explained(true).note("half makes it 10"));
        assert_eq!(moved.reason, "half makes it 10");
        let fitted = of(row(Tests::InSample, &[Some(20.0), None]));
        assert_eq!(
            (fitted.standing, fitted.reason.as_str()),
            (Standing::InSample, "unexplained; not all of it was run")
        );
        let silent = of(row(Tests::InSample, &[Some(20.0)]));
        assert_eq!(silent.reason, "unexplained", "whatever it tests");
        assert_eq!(of(row(Tests::InSample, &[Some(10.0)])).reason, "");
        assert_eq!(fitted.ours, Numbers::Many(vec![Some(20.0), None]));
        assert_eq!(miss.ours, Numbers::One(Some(20.0)));
    }
}
