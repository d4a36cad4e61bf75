//! The far link alone: Table 2's run on it, where its width bounds it and where a window of lines does.

use isochrone_report::table::{Cell, Table};
use isochrone_sim::coherence::{Distance, NumaSpec};
use isochrone_workloads::numa::Variant;
use isochrone_workloads::numa::table2::{triad_of, triad_over_switches};

use crate::row::short;

/// Cores of one socket that read.
const CORES: [usize; 5] = [1, 2, 4, 9, 18];
/// What bounds the link beside its width alone.
const WINDOWS: [Variant; 3] = [Variant::FarWindow30, Variant::FarWindow120, Variant::FarWindow360];

/// STREAM Triad over far links, GB/s; empty where a machine has none.
pub(super) fn table(spec: &NumaSpec) -> Table {
    let widest = [String::from("who reads"), String::from("the link's width")];
    let names = WINDOWS.iter().map(|window| window.name().to_owned());
    let mut table = Table::new(widest.into_iter().chain(names));
    let nodes = u8::try_from(spec.nodes.len()).unwrap_or(u8::MAX);
    let is_far = |a: u8, b: u8| spec.distance(a.into(), b.into()) == Distance::Far;
    let Some(reader) = (0..nodes).find(|node| is_far(*node, 0)) else { return table };
    let module: Vec<u8> = (0..nodes).filter(|other| !is_far(*other, reader)).collect();
    let changed = WINDOWS.iter().map(|window| window.machine(spec));
    let specs: Vec<NumaSpec> = std::iter::once(spec.clone()).chain(changed).collect();
    let mut add = |who: String, of: &dyn Fn(&NumaSpec) -> f64| {
        let cells = specs.iter().map(|spec| {
            let gbs = of(spec);
            Cell::number(gbs, short(gbs))
        });
        table.row(std::iter::once(who.into()).chain(cells));
    };
    let each = spec.nodes[usize::from(reader)].cores.len();
    for cores in CORES.into_iter().filter(|cores| *cores <= each) {
        let who = format!("{cores} of one socket, one far region");
        add(who, &|spec| triad_of(spec, &[reader], cores, 0));
    }
    add("all of one module, one far region".to_owned(), &|spec| {
        triad_of(spec, &module, usize::MAX, 0)
    });
    add("all, all other modules".to_owned(), &|spec| triad_over_switches(spec).reported);
    table
}
