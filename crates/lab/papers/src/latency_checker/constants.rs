//! What a simulated machine was made of, each number with its standing, so that a reader can
//! count what was fitted, what was published and what was assumed. Holds numbers, derives none.

use isochrone_machine::Value;
use isochrone_units::Standing;

/// Numbers in words: `"21.3 ns"`, or a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InWords {
    /// The words, with the unit.
    pub(crate) words: String,
    /// How many numbers they are, where they were fitted.
    pub(crate) numbers: usize,
}

/// One constant.
pub(crate) type Constant = isochrone_machine::Constant<Value<InWords>>;

/// A constant that was fitted as `numbers` numbers on cells of this grid.
pub(super) fn fitted(name: &str, words: String, numbers: usize) -> Constant {
    Constant::new(name, Value::in_sample(InWords { words, numbers }, "", "this grid"))
}

/// A constant from another grid, not touched here.
pub(super) fn carried(name: &str, words: String, from: &str) -> Constant {
    Constant::new(name, Value::fitted(InWords { words, numbers: 0 }, "", from))
}

/// A published constant.
pub(super) fn published(name: &str, words: String, source: &str) -> Constant {
    Constant::new(name, Value::published(InWords { words, numbers: 0 }, "", source))
}

/// A stand-in.
pub(super) fn assumed(name: &str, words: String, why: &str) -> Constant {
    Constant::new(name, Value::assumed(InWords { words, numbers: 0 }, "", why))
}

/// How a constant is known, in words.
pub(super) fn standing(value: &Value<InWords>) -> String {
    let source = &value.source;
    match value.standing {
        Standing::InSample => format!("fitted on {source}"),
        Standing::Fitted => format!("carried over from {source}, not fitted here"),
        Standing::Known => format!("{}: {source}", value.reading),
        Standing::Assumed => format!("{}: {source}", value.standing),
    }
}

/// Numbers that were fitted on the grid itself.
pub(crate) fn free_numbers(constants: &[Constant]) -> usize {
    constants.iter().map(|constant| constant.value.number.numbers).sum()
}
