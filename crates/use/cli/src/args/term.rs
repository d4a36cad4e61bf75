//! A cost that the paper's model lacks, as `--term` names it.

use clap::ValueEnum;
use isochrone_units::Reading;

/// A second: no line costs more.
const MOST_NS: f64 = 1e9;

/// A cost that the paper's model lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TermName {
    /// What readers near the writer pay more once somebody farther away reads as well.
    FirstRemoteReader,
    /// What each acknowledgement after the first costs, whose loads overlap.
    OverlappedAck,
    /// What each further sharer adds to a write of a shared line.
    RfoSharer,
    /// What a line costs more whose neighbour is in use.
    AdjacentLine,
    /// What a write costs of a line that the call before left shared.
    LeftShared,
}

/// A term as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TermAsked {
    /// With this value.
    Given(Term),
    /// As the atlas has it.
    Measured(TermName),
    /// All that the atlas has.
    AllMeasured,
}

/// Such a cost with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    pub(crate) name: TermName,
    pub(crate) ns: f64,
}

/// `rfo-sharer=9.5`, `rfo-sharer` or `measured`.
pub(super) fn parse_term(text: &str) -> Result<TermAsked, String> {
    if text == Reading::Measured.as_str() {
        return Ok(TermAsked::AllMeasured);
    }
    let (name, ns) = text.split_once('=').map_or((text, None), |(name, ns)| (name, Some(ns)));
    let name = TermName::from_str(name.trim(), true).map_err(|_| {
        let all = TermName::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let all: Vec<String> = all.map(|value| value.get_name().to_owned()).collect();
        format!("`{name}` is no term; there are {} and `measured`", all.join(", "))
    })?;
    let Some(ns) = ns else { return Ok(TermAsked::Measured(name)) };
    match ns.trim().parse::<f64>() {
        Ok(ns) if (0.0..=MOST_NS).contains(&ns) => Ok(TermAsked::Given(Term { name, ns })),
        _ => Err(format!("`{ns}` in `{text}` is no number of nanoseconds from 0 to {MOST_NS:e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms() {
        let term = Term { name: TermName::RfoSharer, ns: 9.5 };
        assert_eq!(parse_term("rfo-sharer=9.5"), Ok(TermAsked::Given(term)));
        assert_eq!(parse_term("left-shared"), Ok(TermAsked::Measured(TermName::LeftShared)));
        assert_eq!(parse_term("measured"), Ok(TermAsked::AllMeasured));
        for wrong in [
            "adjacent-write",
            "rfo-sharer=",
            "rfo-sharer=-1",
            "rfo-sharer=many",
            "rfo-sharer=1e300",
            "sharer=1",
        ] {
            assert!(parse_term(wrong).is_err(), "{wrong}");
        }
    }
}
