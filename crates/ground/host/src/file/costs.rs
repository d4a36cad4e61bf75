//! The costs of a description: exactly one of known, assumed and unknown, each with what it needs.

use isochrone_machine::{Cost, Interval, Machine, Unknown, Value};
use toml::Spanned;

use super::checker::Checker;
use super::error::MachineFileError;
use super::raw::{RawCost, RawMachine};

pub(super) fn costs(
    raw: &RawMachine,
    check: &Checker<'_>,
    machine: &mut Machine,
) -> Result<(), MachineFileError> {
    check.unique("cost", raw.costs.iter().map(|cost| &cost.name))?;
    for cost in &raw.costs {
        machine.costs.push(Cost {
            name: cost.name.get_ref().clone(),
            what: cost.what.clone(),
            value: value(cost, check)?,
        });
    }
    Ok(())
}

fn value(raw: &RawCost, check: &Checker<'_>) -> Result<Result<Value, Unknown>, MachineFileError> {
    match (&raw.known, &raw.assumed, &raw.unknown) {
        (Some(value), None, None) => known(raw, value, check).map(Ok),
        (None, Some(value), None) => assumed(raw, value, check).map(Ok),
        (None, None, Some(why)) => {
            only(raw, check, &[])?;
            Ok(Err(Unknown { unit: raw.unit.clone(), why: why.clone() }))
        }
        _ => Err(check.wrong(
            &raw.name,
            format!(
                "expected cost {:?} to have exactly one of `known`, `assumed` and `unknown`",
                raw.name.get_ref()
            ),
        )),
    }
}

fn known(
    raw: &RawCost,
    value: &Spanned<f64>,
    check: &Checker<'_>,
) -> Result<Value, MachineFileError> {
    only(raw, check, &["min", "max", "source"])?;
    let source = raw.source.as_ref().ok_or_else(|| {
        check.wrong(value, "expected a `source` beside the `known` number: where is it published?")
    })?;
    let optional = |bound: &Option<Spanned<f64>>| {
        bound.as_ref().map(|bound| check.not_negative(bound)).transpose()
    };
    let (min, max) = (optional(&raw.min)?, optional(&raw.max)?);
    let number = check.not_negative(value)?;
    in_order(value, check, ["min", "known", "max"], [min, Some(number), max])?;
    let interval = Interval { low: min, high: max };
    Ok(Value::published(number, raw.unit.as_str(), check.source(source)?).within(interval))
}

fn assumed(
    raw: &RawCost,
    value: &Spanned<f64>,
    check: &Checker<'_>,
) -> Result<Value, MachineFileError> {
    only(raw, check, &["low", "high", "why"])?;
    let (Some(low), Some(high), Some(why)) = (&raw.low, &raw.high, &raw.why) else {
        let problem = "expected `low`, `high` and `why` beside the `assumed` number";
        return Err(check.wrong(value, problem));
    };
    let (low, high) = (check.not_negative(low)?, check.not_negative(high)?);
    let number = check.not_negative(value)?;
    in_order(value, check, ["low", "assumed", "high"], [Some(low), Some(number), Some(high)])?;
    let range = Interval::between(low, high);
    Ok(Value::assumed(number, raw.unit.as_str(), why.as_str()).within(range))
}

fn in_order(
    value: &Spanned<f64>,
    check: &Checker<'_>,
    names: [&str; 3],
    [low, middle, high]: [Option<f64>; 3],
) -> Result<(), MachineFileError> {
    let ordered = |a: Option<f64>, b: Option<f64>| a.zip(b).is_none_or(|(a, b)| a <= b);
    match ordered(low, middle) && ordered(middle, high) {
        true => Ok(()),
        false => {
            Err(check
                .wrong(value, format!("expected {} <= {} <= {}", names[0], names[1], names[2])))
        }
    }
}

/// Fields that do not belong to the kind of the number are refused, not ignored.
fn only(raw: &RawCost, check: &Checker<'_>, allowed: &[&str]) -> Result<(), MachineFileError> {
    let present = [
        ("min", raw.min.is_some()),
        ("max", raw.max.is_some()),
        ("source", raw.source.is_some()),
        ("low", raw.low.is_some()),
        ("high", raw.high.is_some()),
        ("why", raw.why.is_some()),
    ];
    match present.iter().find(|(name, there)| *there && !allowed.contains(name)) {
        None => Ok(()),
        Some((name, _)) => Err(check.wrong(
            &raw.name,
            format!(
                "cost {:?} has `{name}`, which does not go with its kind; expected `known` with \
                 `source`, or `assumed` with `low`, `high` and `why`, or `unknown` alone",
                raw.name.get_ref()
            ),
        )),
    }
}
