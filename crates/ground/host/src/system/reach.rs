//! Which part of a machine a process may measure: regions whose memory it may take, and why cores are not among it.
//!
//! What is left out keeps its number in the machine, and each reason is one line. A description from a file has no
//! reach: only the machine that runs this program is read, as values that were read before.

use isochrone_machine::{Machine, MachineState, spans};
use isochrone_units::RegionId;

/// What may be measured, and why not all of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Regions that have memory which this process may take, ascending.
    pub regions: Vec<RegionId>,
    /// A line for each reason why cores are left out.
    pub cores_left_out: Vec<String>,
    /// A line for each reason why regions are left out.
    pub regions_left_out: Vec<String>,
}

/// What this process may measure of `machine`, by the `state` that was read in the same process. Where the system does
/// not say what is allowed, all is; a region whose size is not known counts as one that has memory. The only region of
/// a machine is all of its memory, whatever number the kernel has for it.
#[must_use]
pub fn reach(machine: &Machine, state: &MachineState) -> Reach {
    let is_allowed = |list: &Option<Vec<u16>>, id: u16| {
        list.as_ref().is_none_or(|allowed| allowed.contains(&id))
    };
    let cores = machine.cores.iter().map(|core| core.id);
    let foreign: Vec<u16> = cores.filter(|id| !is_allowed(&state.allowed_cores, *id)).collect();
    let (empty, filled): (Vec<_>, Vec<_>) =
        machine.regions.iter().partition(|region| region.bytes == Some(0));
    let empty: Vec<u16> = empty.iter().map(|region| region.id).collect();
    let (regions, barred): (Vec<u16>, Vec<u16>) = filled
        .iter()
        .map(|region| region.id)
        .partition(|id| machine.regions.len() < 2 || is_allowed(&state.allowed_regions, *id));
    let why = [
        (empty, "no memory there"),
        (barred, "this process may not take memory there (its cpuset, see Mems_allowed_list)"),
    ];
    Reach {
        regions: regions.into_iter().map(RegionId).collect(),
        cores_left_out: line("core", &foreign, "this process may not run there (affinity, cpuset)")
            .into_iter()
            .collect(),
        regions_left_out: why.iter().filter_map(|(ids, why)| line("region", ids, why)).collect(),
    }
}

/// `"regions 2-15: why"`; none where there are none.
fn line(what: &str, ids: &[u16], why: &str) -> Option<String> {
    let many = match ids {
        [] => return None,
        [_] => "",
        _ => "s",
    };
    Some(format!("{what}{many} {}: {why}", spans(ids)))
}

#[cfg(test)]
mod tests {
    use isochrone_machine::{Core, Region};

    use super::*;

    /// Four cores, and regions of these sizes.
    fn machine(bytes: &[Option<u64>]) -> Machine {
        let region =
            |(id, bytes): (u16, &Option<u64>)| Region { id, bytes: *bytes, ..Region::default() };
        Machine {
            cores: (0..4).map(|id| Core { id, ..Core::default() }).collect(),
            regions: (0..).zip(bytes).map(region).collect(),
            ..Machine::default()
        }
    }

    #[test]
    fn all_is_in_reach_where_the_system_says_nothing() {
        let found = reach(&machine(&[Some(1), None]), &MachineState::default());
        assert_eq!(found.regions, [0, 1].map(RegionId));
        assert_eq!((found.cores_left_out.len(), found.regions_left_out.len()), (0, 0));
        let other = MachineState { allowed_regions: Some(vec![2]), ..MachineState::default() };
        assert_eq!(reach(&machine(&[None]), &other).regions, [RegionId(0)], "all memory");
    }

    #[test]
    fn a_cpuset_leaves_out_cores_and_regions_and_says_so() {
        let state = MachineState {
            allowed_cores: Some(vec![1, 2, 9]),
            allowed_regions: Some(vec![1]),
            ..MachineState::default()
        };
        let found = reach(&machine(&[Some(1), Some(1), Some(1), Some(0)]), &state);
        assert_eq!(found.regions, [RegionId(1)]);
        assert_eq!(
            found.cores_left_out,
            ["cores 0,3: this process may not run there (affinity, cpuset)"]
        );
        let [empty, barred] = &found.regions_left_out[..] else {
            panic!("{:?}", found.regions_left_out)
        };
        assert_eq!(empty, "region 3: no memory there");
        assert!(barred.starts_with("regions 0,2: this process may not take memory"), "{barred}");
    }
}
