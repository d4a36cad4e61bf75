//! That the schemas in `docs/schemas` are those of the types that the command writes.

use isochrone_atlas_store::Diff;
use isochrone_atlas_store::contents::Contents;
use isochrone_machine::Machine;
use isochrone_report::json::Format;
use isochrone_schemas::drawn;
use isochrone_survey::figures::Figures;

use crate::{advise, fleet, machine, run, show, tier};

#[test]
fn schemas_are_drawn_from_the_types() {
    let all = [
        drawn::<Figures>(Format::Map),
        drawn::<show::LineFigures>(Format::Line),
        drawn::<Contents>(Format::Atlas),
        drawn::<Diff>(Format::Diff),
        drawn::<isochrone_fleet::Report>(Format::Fleet),
        drawn::<fleet::DiffFigures>(Format::FleetDiff),
        drawn::<Machine>(Format::Machine),
        drawn::<machine::suits::Figures>(Format::Suits),
        drawn::<tier::Figures>(Format::TierCheck),
        drawn::<advise::findings::Figures>(Format::Advise),
        drawn::<advise::watched::Figures>(Format::AdviseWatched),
        drawn::<advise::trial::Figures>(Format::AdviseTry),
        drawn::<run::RunRecord>(Format::Run),
        drawn::<run::JobRecord>(Format::RunMpi),
        drawn::<run::PagedRecord>(Format::RunPaged),
    ];
    let wrong: Vec<String> = all.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
