//! Experiments as options name them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use isochrone_atlas_store::Experiment;

/// The experiments that can be asked for, by the names and words of their registry.
pub fn experiments() -> impl TypedValueParser<Value = Experiment> {
    let asked = || Experiment::ALL.into_iter().filter(|experiment| !experiment.is_inferred());
    let value =
        |experiment: Experiment| PossibleValue::new(experiment.name()).help(experiment.what());
    PossibleValuesParser::new(asked().map(value)).try_map(move |name| {
        asked().find(|experiment| experiment.name() == name).ok_or("it is none of the experiments")
    })
}
