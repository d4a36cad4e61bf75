//! What an output must say beside the numbers of a machine description.
//!
//! Every assumed or unknown number becomes one sentence. Nothing is left out because it seems
//! small: the reader decides.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::cost::{Cost, Unknown};
use crate::description::Machine;
use crate::grid::{Grid, GridLabels};
use crate::interconnect::Interconnect;
use crate::spans::spans;
use crate::value::Value;

impl Machine {
    /// Every number of this description that is assumed, unreadable or unknown, one sentence
    /// each: assumed first, then grids, then what is not known.
    #[must_use]
    pub fn caveats(&self) -> Vec<String> {
        let assumed = self.costs.iter().filter_map(assumed_cost);
        let mut all: Vec<String> = assumed.collect();
        all.extend(self.interconnect.as_ref().and_then(assumed_interconnect));
        all.extend(self.assumed.iter().map(|what| format!("assumed: {what}")));
        for grid in &self.grids {
            all.extend(unreadable_cells(grid));
            all.extend(grid.labels.iter().flat_map(|labels| doubtful_labels(grid, labels)));
        }
        all.extend(self.costs.iter().filter_map(unknown_cost));
        all.extend(unknown_sizes(self));
        all.extend(self.unknown.iter().map(|what| format!("unknown: {what}")));
        all
    }
}

fn assumed_cost(cost: &Cost) -> Option<String> {
    let value = cost.assumed()?;
    let (low, high) = value.sweep();
    let (Cost { name, what, .. }, Value { number, unit, source, .. }) = (cost, value);
    Some(format!(
        "{name} ({what}) is assumed: {number} {unit}, swept from {low} to {high}; {source}"
    ))
}

fn unknown_cost(cost: &Cost) -> Option<String> {
    let Unknown { why, .. } = cost.value.as_ref().err()?;
    Some(format!("{} ({}) is unknown: {why}", cost.name, cost.what))
}

fn assumed_interconnect(interconnect: &Interconnect) -> Option<String> {
    match interconnect {
        Interconnect::Ring { order_assumed: Some(why), .. } => {
            Some(format!("the order of the ring's stops is assumed: {why}"))
        }
        Interconnect::Mesh { size_assumed: Some(why), .. } => {
            Some(format!("the size of the mesh is assumed: {why}"))
        }
        Interconnect::Ring { .. } | Interconnect::Mesh { .. } | Interconnect::Other { .. } => None,
    }
}

fn unreadable_cells(grid: &Grid) -> Option<String> {
    let missing = grid.unreadable();
    if missing.is_empty() {
        return None;
    }
    let (name, drawn, cores) = (&grid.name, grid.drawn(), spans(&missing));
    Some(format!("grid {name}: {} of {drawn} cells are unreadable: cores {cores}", missing.len()))
}

fn doubtful_labels(grid: &Grid, labels: &GridLabels) -> Vec<String> {
    let name = &grid.name;
    let about = match labels.cores.len() == grid.drawn() {
        true => String::new(),
        false => format!(" of cores {}", spans(&labels.cores)),
    };
    let mut all = Vec::new();
    if labels.are_swapped(grid.extremes(&labels.cores)) {
        all.push(format!(
            "grid {name}: the printed labels min and max{about} are swapped; \
             they are kept as printed"
        ));
    }
    let printed = [("min", labels.min), ("max", labels.max), ("delta", labels.delta)];
    let missing = printed.iter().filter(|(_, value)| value.is_none());
    all.extend(
        missing.map(|(label, _)| format!("grid {name}: the printed {label}{about} is unreadable")),
    );
    all
}

fn unknown_sizes(machine: &Machine) -> Option<String> {
    let unsized_regions: Vec<u16> =
        machine.regions.iter().filter(|region| region.bytes.is_none()).map(|r| r.id).collect();
    match unsized_regions.is_empty() {
        true => None,
        false => Some(format!("the size of regions {} is unknown", spans(&unsized_regions))),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::description::Region;
    use crate::value::Interval;

    fn cost(name: &str, value: Result<Value, Unknown>) -> Cost {
        Cost { name: name.into(), what: "x".into(), value }
    }

    #[test]
    fn a_machine_of_known_numbers_has_no_caveat() {
        let known = Ok(Value::published(1.0, "ns", "a"));
        let region = Region { bytes: Some(1), ..Region::default() };
        let machine =
            Machine { costs: vec![cost("a", known)], regions: vec![region], ..Machine::default() };
        assert_eq!(machine.caveats(), Vec::<String>::new());
    }

    #[test]
    fn each_doubtful_number_is_named_with_its_range_or_reason() {
        let assumed = Ok(Value::assumed(4.0, "ns", "guess").within(Interval::between(2.0, 8.0)));
        let unknown = Err(Unknown { unit: "ns".into(), why: "unpublished".into() });
        let grid = Grid {
            name: "g".into(),
            cores: vec![Some(0), Some(1), None],
            cells: vec![Some(3.0), None, None],
            labels: vec![GridLabels {
                cores: vec![0, 1],
                min: Some(9.0),
                max: Some(3.0),
                delta: None,
            }],
            ..Grid::default()
        };
        let machine = Machine {
            costs: vec![cost("hop", assumed), cost("dir", unknown)],
            regions: vec![Region::default()],
            grids: vec![grid],
            assumed: vec!["order of cores".into()],
            unknown: vec!["hash".into()],
            ..Machine::default()
        };
        let expected = [
            "hop (x) is assumed: 4 ns, swept from 2 to 8; guess",
            "assumed: order of cores",
            "grid g: 1 of 2 cells are unreadable: cores 1",
            "grid g: the printed labels min and max are swapped; they are kept as printed",
            "grid g: the printed delta is unreadable",
            "dir (x) is unknown: unpublished",
            "the size of regions 0 is unknown",
            "unknown: hash",
        ];
        assert_eq!(machine.caveats(), expected);
    }

    #[test]
    fn a_description_survives_json_with_missing_values_as_null() {
        let machine = Machine {
            grids: vec![Grid { cells: vec![None, Some(1.5)], ..Grid::default() }],
            ..Machine::default()
        };
        let text = serde_json::to_string(&machine).unwrap_or_default();
        assert!(text.contains("[null,1.5]"), "{text}");
        assert_eq!(serde_json::from_str::<Machine>(&text).ok(), Some(machine));
    }
}
