//! That the schemas in `docs/schemas` are those of the types that the laboratory writes.

use anyhow::Result;
use isochrone_papers::numa_aware::record::Record;
use isochrone_report::json::Format;
use isochrone_schemas::drawn;
use schemars::JsonSchema;

use super::findings::Findings;
use super::{Report, Setting};
use crate::schedule_file::File;

/// Of what a benchmark finds.
fn of<A, F: Findings + JsonSchema>(
    _measure: fn(&A, &mut Setting<'_>) -> Result<F>,
) -> Result<(), String> {
    drawn::<Report<'_, F>>(F::FORMAT)
}

#[test]
fn schemas_are_drawn_from_the_types() {
    let all = [
        of(super::nodes::chase),
        of(super::astar::measure),
        of(super::malloc::measure),
        of(super::advise::measure),
        of(super::dataflow::jacobi),
        of(super::cholesky::measure),
        of(super::lu::measure),
        of(super::taskbench::measure),
        of(super::tier::measure),
        of(super::coll::measure),
        of(super::flags::measure),
        drawn::<File>(Format::Schedule),
        drawn::<Record>(Format::SimRecord),
    ];
    let wrong: Vec<String> = all.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
