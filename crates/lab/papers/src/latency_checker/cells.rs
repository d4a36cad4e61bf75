//! One grid of the poster beside its simulation: cells, what they were used for, and how far the
//! two are apart. Keeps apart what was published, what was simulated and what cannot be read; it
//! never fills one in from the other.

use isochrone_machine::{Grid, Machine};
use isochrone_units::Reading;

use super::constants::{Constant, free_numbers};
use super::simulate::Simulated;

/// Simulated cells this close are repeats of one value: their intervals are no narrower.
const ONE_VALUE_NS: f64 = 1.0;

/// What a published cell was used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The model's constants were fitted on it.
    Fitted,
    /// Kept from the fit, to judge it.
    HeldOut,
    /// At a floor of the published grid that no network shows: only bounds the fit, and counts
    /// in no score.
    AtFloor,
    /// Compared with nothing: unreadable, or its place is not known.
    Unused,
}

impl Role {
    /// The word that outputs print.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::HeldOut => "held out",
            Self::AtFloor => "at the floor",
            Self::Unused => "not used",
        }
    }
}

/// One place of a drawing, or one core whose place is not known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// The core, where its number is readable.
    pub(crate) core: Option<u16>,
    /// Column and row of the drawing, where known.
    pub(crate) at: Option<(u16, u16)>,
    /// The poster's number.
    pub(crate) published: Option<f64>,
    pub(crate) simulated: Option<Simulated>,
    /// What the published number was used for.
    pub(crate) role: Role,
    /// Which score it counts in: an index into [`GridResult::scores`].
    pub(crate) group: Option<usize>,
}

impl Cell {
    /// Simulated less published, where both are there.
    pub(crate) fn error_ns(&self) -> Option<f64> {
        Some(self.simulated?.ns - self.published?)
    }

    /// Where the cell's own number comes from: ours if there is one.
    pub(crate) fn reading(&self) -> Option<Reading> {
        own_reading(self.simulated.map(|simulated| simulated.ns), self.published)
    }

    /// What has to be said of it.
    pub(crate) fn note(&self) -> &'static str {
        match (self.core, self.at, self.published) {
            (None, ..) => "which core the poster draws here is not readable",
            (Some(_), None, Some(_)) => "published, but its place is not readable",
            (Some(_), _, None) => "unreadable in the poster's text",
            (Some(_), Some(_), Some(_)) => self.role.as_str(),
        }
    }
}

/// Where a number comes from that is ours if there is one, else the poster's.
fn own_reading(simulated: Option<f64>, published: Option<f64>) -> Option<Reading> {
    let ours = simulated.map(|_| Reading::Simulated);
    ours.or(published.map(|_| Reading::Published))
}

/// How far simulated cells are from published ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Score {
    /// Which cells.
    pub(crate) what: String,
    /// What they were used for.
    pub(crate) role: Role,
    /// How many.
    pub(crate) cells: usize,
    /// Root mean square of the errors.
    pub(crate) rms_ns: Option<f64>,
    /// Mean of the published ones.
    pub(crate) mean_ns: Option<f64>,
    /// The error that is largest either way.
    pub(crate) worst_ns: Option<f64>,
    /// Share of the cells' variance that the model explains: 1 is all, 0 no better than their own
    /// mean, below 0 worse. `None` where the model has one value for all of them.
    pub(crate) explained: Option<f64>,
}

/// A number that stands under a picture, beside the same of the simulated grid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Printed {
    /// What it is: `"least of cores 0-67"`.
    pub(crate) what: String,
    /// As printed.
    pub(crate) published: Option<f64>,
    /// Of the simulated grid.
    pub(crate) simulated: Option<f64>,
    /// What is odd about it.
    pub(crate) note: String,
    /// What it was used for.
    pub(crate) role: Role,
    /// Whether it is a difference of two latencies.
    pub(crate) is_difference: bool,
}

impl Printed {
    /// Where the number comes from: ours if there is one.
    pub(crate) fn reading(&self) -> Option<Reading> {
        own_reading(self.simulated, self.published)
    }
}

/// One grid of the poster, published and simulated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GridResult {
    /// Name of the machine's file.
    pub(crate) machine: String,
    /// The machine in words.
    pub(crate) title: String,
    /// The grid's name in that file.
    pub(crate) grid: String,
    /// The machine's mode.
    pub(crate) mode: String,
    /// The memory that was timed.
    pub(crate) memory: String,
    /// Columns and rows of the drawing.
    pub(crate) size: (u16, u16),
    /// Cores that share a place, side by side in the drawing.
    pub(crate) cores_per_tile: u16,
    /// Every drawn place and every core without a place.
    pub(crate) cells: Vec<Cell>,
    /// Scores, fitted cells first.
    pub(crate) scores: Vec<Score>,
    /// The numbers under the picture.
    pub(crate) printed: Vec<Printed>,
    /// What the simulated machine was made of, each with its standing.
    pub(crate) constants: Vec<Constant>,
    /// What the model is, and what it does not explain, a sentence each.
    pub(crate) notes: Vec<String>,
    /// Where the controller seems to be.
    pub(crate) controllers: Vec<Located>,
    /// What a column costs here over what it costs in another grid of the same silicon.
    pub(crate) column_over_other: Option<f64>,
}

/// Where the placement experiment puts the controller.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located {
    /// The cells it looked at: published or simulated.
    pub(crate) reading: Reading,
    /// Best place in tiles, column and row.
    pub(crate) best: Option<(f64, f64)>,
    /// Where it truly is, where the numbers are a model's.
    pub(crate) truth: Option<(f64, f64)>,
    /// Places that fit as well.
    pub(crate) candidates: Vec<(f64, f64)>,
    /// Latency at its floor and how many places show it, where there is a floor.
    pub(crate) floor: Option<(usize, f64)>,
    /// Share of the variance that hops to it explain.
    pub(crate) r2: f64,
    /// In one sentence.
    pub(crate) summary: String,
}

impl GridResult {
    /// The identity that rows share: machine and grid.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}", self.machine, self.grid)
    }

    /// Machine, mode and memory in words.
    pub(crate) fn heading(&self) -> String {
        let model = self.title.split([',', '(']).next().unwrap_or(&self.title).trim();
        format!("{model}, {}, {}", self.mode, self.memory)
    }

    /// A grid's frame: everything but what a model adds.
    pub(super) fn frame(machine: &Machine, grid: &Grid) -> Self {
        Self {
            machine: machine.name.clone(),
            title: machine.title.clone(),
            grid: grid.name.clone(),
            mode: grid.mode.clone().unwrap_or_default(),
            memory: grid.memory.clone().unwrap_or_default(),
            size: (0, 0),
            cores_per_tile: 1,
            cells: Vec::new(),
            scores: Vec::new(),
            printed: Vec::new(),
            constants: Vec::new(),
            notes: vec![format!("As read: {}.", grid.note.trim_start_matches("read: "))],
            controllers: Vec::new(),
            column_over_other: None,
        }
    }

    /// The cells as published: each at the place where the machine's file puts its core.
    pub(super) fn published(machine: &Machine, grid: &Grid) -> Vec<Cell> {
        let place = |core: u16| machine.cores.iter().find(|c| c.id == core)?.place;
        let cells = grid.cores.iter().zip(&grid.cells);
        cells
            .filter_map(|(core, published)| {
                let core = (*core)?;
                Some(Cell {
                    core: Some(core),
                    at: place(core).map(|p| (super::route::whole(p.x), super::route::whole(p.y))),
                    published: *published,
                    simulated: None,
                    role: Role::Unused,
                    group: None,
                })
            })
            .collect()
    }

    /// The published number of cells that have one, as they stand.
    pub(crate) fn readable(&self) -> usize {
        self.cells.iter().filter(|cell| cell.published.is_some()).count()
    }

    /// Cells of cores whose number cannot be read.
    pub(crate) fn unreadable(&self) -> usize {
        let unreadable = |cell: &&Cell| cell.core.is_some() && cell.published.is_none();
        self.cells.iter().filter(unreadable).count()
    }

    /// Fills in the scores of groups `(what, role)`, to which cells refer by index.
    pub(super) fn score(&mut self, groups: &[(String, Role)]) {
        self.scores = groups
            .iter()
            .enumerate()
            .map(|(index, (what, role))| {
                let cells = self.cells.iter().filter(|c| c.group == Some(index) && c.role == *role);
                let pairs: Vec<(f64, f64)> =
                    cells.filter_map(|c| Some((c.published?, c.error_ns()?))).collect();
                Score::of(what.clone(), *role, &pairs)
            })
            .collect();
    }

    /// What the extremes of these cores were used for: fitted where more than a third of their cells were. A grid
    /// whose cells have no places has its level fitted on what is printed, and not the difference.
    fn role_of_extremes(&self, cores: &[u16], is_difference: bool) -> Role {
        let count = |role| {
            let own =
                |c: &&Cell| c.core.is_some_and(|core| cores.contains(&core)) && c.role == role;
            self.cells.iter().filter(own).count()
        };
        let (fitted, held_out) = (count(Role::Fitted), count(Role::HeldOut));
        let is_fitted = match fitted + held_out {
            0 => !is_difference && free_numbers(&self.constants) > 0,
            judged => 3 * fitted > judged,
        };
        if is_fitted { Role::Fitted } else { Role::HeldOut }
    }

    /// Sets the numbers under the picture beside those of the simulated cells.
    pub(super) fn compare_printed(&mut self, grid: &Grid) {
        for labels in &grid.labels {
            let of = |core: Option<u16>| core.is_none_or(|c| labels.cores.contains(&c));
            let simulated = extremes(
                self.cells.iter().filter(|c| of(c.core)).filter_map(|c| Some(c.simulated?.ns)),
            );
            let swapped = labels.are_swapped(grid.extremes(&labels.cores));
            let (least, most) =
                if swapped { (labels.max, labels.min) } else { (labels.min, labels.max) };
            let cores = isochrone_machine::spans(&labels.cores);
            let odd = |name: &str, value: Option<f64>| match value {
                None => "not readable".to_owned(),
                Some(_) if swapped => format!("printed as \"{name}\" (swapped)"),
                Some(_) => String::new(),
            };
            let delta_note =
                if labels.delta.is_none() { odd("delta", None) } else { String::new() };
            let rows = [
                ("least", least, simulated.map(|s| s.0), odd("max", least)),
                ("most", most, simulated.map(|s| s.1), odd("min", most)),
                ("delta", labels.delta, simulated.map(|s| s.1 - s.0), delta_note),
            ];
            let role = |is_difference| self.role_of_extremes(&labels.cores, is_difference);
            let roles = [role(false), role(true)];
            self.printed.extend(rows.into_iter().map(|(what, published, simulated, note)| {
                let is_difference = what == "delta";
                let what = format!("{what} of cores {cores}");
                let role = roles[usize::from(is_difference)];
                Printed { what, published, simulated, note, role, is_difference }
            }));
        }
    }
}

impl Score {
    /// From `(published, error)` of each cell.
    fn of(what: String, role: Role, pairs: &[(f64, f64)]) -> Self {
        let squares: f64 = pairs.iter().map(|(_, error)| error * error).sum();
        let worst = pairs.iter().map(|(_, e)| *e).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let published: Vec<f64> = pairs.iter().map(|(p, _)| *p).collect();
        let spread = isochrone_stats::mean(&published)
            .map(|mean| published.iter().map(|p| (p - mean) * (p - mean)).sum::<f64>());
        let predicted = pairs.iter().map(|(p, error)| p + error);
        let varied = extremes(predicted).is_some_and(|(least, most)| most - least > ONE_VALUE_NS);
        Self {
            what,
            role,
            cells: pairs.len(),
            rms_ns: (!pairs.is_empty()).then(|| (squares / pairs.len() as f64).sqrt()),
            mean_ns: isochrone_stats::mean(&published),
            worst_ns: worst,
            explained: spread.filter(|s| varied && *s > 0.0).map(|s| 1.0 - squares / s),
        }
    }
}

/// Smallest and largest of some numbers.
pub(crate) fn extremes(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |seen, v| {
        let (least, most) = seen.unwrap_or((v, v));
        Some((least.min(v), most.max(v)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_of_its_cells_alone() {
        let score = Score::of("x".into(), Role::HeldOut, &[(10.0, 1.0), (14.0, -1.5)]);
        assert_eq!((score.cells, score.worst_ns), (2, Some(-1.5)));
        assert!((score.rms_ns.unwrap() - 1.625_f64.sqrt()).abs() < 1e-12);
        // 10 and 14 are 2 from their mean each: 8 in squares, of which 3.25 remain.
        assert!((score.explained.unwrap() - (1.0 - 3.25 / 8.0)).abs() < 1e-12);
        let one_value = Score::of("x".into(), Role::HeldOut, &[(10.0, 2.0), (14.0, -2.0)]);
        assert_eq!(one_value.explained, None);
        let none = Score::of("x".into(), Role::HeldOut, &[]);
        assert_eq!((none.rms_ns, none.worst_ns, none.explained), (None, None, None));
    }

    #[test]
    fn a_cell_says_where_its_number_comes_from() {
        let cell = |published, simulated: Option<f64>| Cell {
            core: Some(3),
            at: Some((0, 0)),
            published,
            simulated: simulated.map(|ns| Simulated { ns, lo_ns: ns, hi_ns: ns }),
            role: Role::HeldOut,
            group: None,
        };
        assert_eq!(cell(Some(1.0), Some(2.5)).reading(), Some(Reading::Simulated));
        assert_eq!(cell(Some(1.0), Some(2.5)).error_ns(), Some(1.5));
        assert_eq!(cell(Some(1.0), None).reading(), Some(Reading::Published));
        assert_eq!(cell(None, None).reading(), None);
        assert_eq!(cell(None, Some(1.0)).note(), "unreadable in the poster's text");
        assert_eq!(cell(None, Some(1.0)).error_ns(), None);
    }
}
