//! The shape of a machine description as text, field by field.
//!
//! It only mirrors the text: fields that do not exist are refused, positions are kept, nothing is
//! judged. The comment at the top of each file in `machines/` explains the fields to its reader.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use toml::Spanned;

use super::cells::Cell;

/// A drawing, row by row.
pub(super) type Rows = Spanned<Vec<Spanned<Vec<Spanned<Cell>>>>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMachine {
    pub(super) name: Spanned<String>,
    pub(super) title: String,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    #[serde(default)]
    pub(super) assumed: Vec<String>,
    #[serde(default)]
    pub(super) unknown: Vec<String>,
    pub(super) sources: Vec<RawSource>,
    pub(super) cores: Vec<RawCores>,
    pub(super) regions: Vec<RawRegions>,
    #[serde(default)]
    pub(super) caches: Vec<RawCache>,
    pub(super) distances: Option<RawDistances>,
    pub(super) interconnect: Option<RawInterconnect>,
    #[serde(default)]
    pub(super) controllers: Vec<RawControllers>,
    pub(super) directories: Option<RawDirectories>,
    #[serde(default)]
    pub(super) costs: Vec<RawCost>,
    pub(super) floor_plan: Option<RawFloorPlan>,
    #[serde(default)]
    pub(super) grids: Vec<RawGrid>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSource {
    pub(super) id: Spanned<String>,
    pub(super) text: String,
}

/// Cores that share a region, a package and a module.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCores {
    pub(super) ids: Spanned<String>,
    pub(super) region: Spanned<u16>,
    pub(super) package: Option<u16>,
    pub(super) module: Option<u16>,
    /// The siblings of the cores in the same order: core 0 of `ids` with core 0 of this list.
    pub(super) smt_siblings: Option<Spanned<String>>,
    pub(super) source: Spanned<String>,
}

/// Regions that are alike.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRegions {
    pub(super) ids: Spanned<String>,
    pub(super) kind: isochrone_machine::RegionKind,
    pub(super) bytes: Option<Spanned<Bytes>>,
    pub(super) source: Spanned<String>,
}

/// Who has a cache of its own.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Per {
    Core,
    Package,
    Region,
    Module,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCache {
    pub(super) level: Spanned<i64>,
    pub(super) kind: isochrone_machine::CacheKind,
    pub(super) bytes: Option<Spanned<Bytes>>,
    pub(super) line_bytes: Option<Spanned<i64>>,
    pub(super) ways: Option<Spanned<i64>>,
    pub(super) per: Spanned<Per>,
    pub(super) source: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDistances {
    pub(super) rows: Spanned<Vec<Spanned<Vec<Spanned<i64>>>>>,
    pub(super) source: Spanned<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shape {
    Ring,
    Mesh,
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawInterconnect {
    pub(super) kind: Spanned<Shape>,
    pub(super) bidirectional: Option<bool>,
    pub(super) stops: Option<Spanned<String>>,
    pub(super) order_assumed: Option<String>,
    pub(super) columns: Option<Spanned<i64>>,
    pub(super) rows: Option<Spanned<i64>>,
    pub(super) size_assumed: Option<String>,
    pub(super) what: Option<String>,
    pub(super) source: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawControllers {
    pub(super) name: String,
    pub(super) count: Spanned<i64>,
    pub(super) region: Option<Spanned<u16>>,
    pub(super) source: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDirectories {
    pub(super) count: Spanned<i64>,
    pub(super) source: Spanned<String>,
}

/// One of `known`, `assumed` and `unknown`, with what belongs to it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCost {
    pub(super) name: Spanned<String>,
    pub(super) what: String,
    pub(super) unit: String,
    pub(super) known: Option<Spanned<f64>>,
    pub(super) min: Option<Spanned<f64>>,
    pub(super) max: Option<Spanned<f64>>,
    pub(super) source: Option<Spanned<String>>,
    pub(super) assumed: Option<Spanned<f64>>,
    pub(super) low: Option<Spanned<f64>>,
    pub(super) high: Option<Spanned<f64>>,
    pub(super) why: Option<String>,
    pub(super) unknown: Option<String>,
}

/// The cores as drawn: rows of core numbers, `"-"` where the drawing is empty.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFloorPlan {
    pub(super) rows: Rows,
    pub(super) source: Spanned<String>,
}

/// A published picture: `rows` in the layout of the floor plan, or a `list` of core and number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGrid {
    pub(super) name: Spanned<String>,
    pub(super) what: String,
    pub(super) unit: String,
    pub(super) mode: Option<String>,
    pub(super) memory: Option<String>,
    pub(super) region: Option<Spanned<u16>>,
    pub(super) rows: Option<Rows>,
    pub(super) list: Option<Vec<(Spanned<u16>, Spanned<f64>)>>,
    #[serde(default)]
    pub(super) labels: Vec<RawLabels>,
    #[serde(default)]
    pub(super) note: String,
    pub(super) source: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLabels {
    pub(super) cores: Spanned<String>,
    pub(super) min: Option<Spanned<f64>>,
    pub(super) max: Option<Spanned<f64>>,
    pub(super) delta: Option<Spanned<f64>>,
}

/// A size: a number of bytes, or text such as `"32 KiB"` or `"37.5 MiB"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes(pub(super) i64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BytesVisitor)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of bytes, or text such as \"32 KiB\", \"37.5 MiB\" or \"8 GiB\"")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Bytes, E> {
        Ok(Bytes(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
        let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
        let (number, unit) = text.split_once(' ').ok_or_else(wrong)?;
        let shift = match unit {
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            "TiB" => 40,
            _ => return Err(wrong()),
        };
        let bytes = isochrone_units::scaled_bytes(number, shift).map_err(|_| wrong())?;
        i64::try_from(bytes).map(Bytes).map_err(|_| wrong())
    }
}
