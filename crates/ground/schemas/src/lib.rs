//! What programs write as JSON, held against the schemas in `docs/schemas`. For tests alone: nothing that is built for
//! use stands on it.
//!
//! A schema says which fields are there and what they are. It lets others stand beside them, since fields may be added
//! within a version; a test does not, so that a field that no schema has is noticed ([`validate`]). Schemas of types
//! are drawn from them ([`drawn`]); those of figures that are no type are kept by hand.

mod closed;

use isochrone_report::json::{Format, stamped};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Faults of one value that are told; the rest is seldom another one.
const FAULTS_MOST: usize = 5;

/// Formats whose schemas are kept by hand: their figures are put together from many places, and have no type.
pub const KEPT: &[Format] = &[
    Format::Predict,
    Format::Cla,
    Format::BenchSim,
    Format::Sim,
    Format::VerifyModel,
    Format::VerifyPublished,
    Format::LatencyChecker,
    Format::HiddenNuma,
    Format::Pspt,
    Format::NumaAwareRuntime,
    Format::CacheLines,
    Format::Exhibits,
];

/// The folder of all schemas.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/schemas")
}

/// The name of a format's file.
#[must_use]
pub fn file_name(format: Format) -> String {
    format!("{}.schema.json", format.name())
}

/// The schema of a format as it lies in the tree.
///
/// # Errors
/// In words, if there is none.
pub fn schema(format: Format) -> Result<Value, String> {
    let path = folder().join(file_name(format));
    let words = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| words(&error))?;
    serde_json::from_str(&text).map_err(|error| words(&error))
}

/// Parses what a program wrote and holds it against the schema of the format that it names.
///
/// # Errors
/// In words, what is wrong with it.
pub fn parse(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    validate(&value)?;
    Ok(value)
}

/// Holds a value against the schema of the format that it names, and notes that this format was seen.
///
/// # Errors
/// In words, what is wrong with it.
pub fn validate(value: &Value) -> Result<Format, String> {
    let format = held(value)?;
    note(format);
    Ok(format)
}

fn held(value: &Value) -> Result<Format, String> {
    let name = value["format"].as_str().ok_or("it does not say its `format`")?;
    let format = Format::of_name(name).ok_or_else(|| format!("no format is called {name}"))?;
    let validator = jsonschema::validator_for(&closed::closed(schema(format)?))
        .map_err(|error| format!("the schema of {name} is none: {error}"))?;
    let told = |error: jsonschema::ValidationError<'_>| {
        let words: String = error.to_string().chars().take(300).collect();
        format!("{}: {words}", error.instance_path())
    };
    let faults: Vec<String> = validator.iter_errors(value).take(FAULTS_MOST).map(told).collect();
    if !faults.is_empty() {
        return Err(format!("not as the schema of {name} says:\n{}", faults.join("\n")));
    }
    Ok(format)
}

/// The same for figures that were not written yet.
///
/// # Errors
/// As [`validate`].
pub fn hold(format: Format, figures: &impl Serialize) -> Result<(), String> {
    let value = serde_json::to_value(stamped(format, figures));
    validate(&value.map_err(|error| error.to_string())?).map(drop)
}

/// Where it is noted which formats were seen: below the folder of the build's profile, so that the gate can ask.
#[must_use]
pub fn notes() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    Some(test.parent()?.parent()?.join("schemas"))
}

fn note(format: Format) {
    let Some(folder) = notes().map(|notes| notes.join("seen")) else { return };
    // A note that cannot be left is missed by the gate.
    let _made = std::fs::create_dir_all(&folder);
    let _written = std::fs::write(folder.join(format.name()), "");
}

/// Draws the schema of a type, leaves it where `cargo xtask schemas` takes it from, and compares it with the one in
/// the tree.
///
/// # Errors
/// In words, if they differ.
pub fn drawn<T: JsonSchema>(format: Format) -> Result<(), String> {
    if KEPT.contains(&format) {
        return Err(format!(
            "{} has a type: take it off the list of those kept by hand",
            format.name()
        ));
    }
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut drawn = generator.into_root_schema_for::<T>().to_value();
    let fields = drawn.as_object_mut().ok_or("a type whose schema is no object")?;
    stamp(fields, format);
    let folder = notes().ok_or("a test that lies nowhere")?.join("drawn");
    let text = serde_json::to_string_pretty(&drawn).map_err(|error| error.to_string())? + "\n";
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    std::fs::write(folder.join(file_name(format)), text).map_err(|error| error.to_string())?;
    if schema(format).is_ok_and(|there| there == drawn) {
        return Ok(());
    }
    Err(format!("docs/schemas/{} is another one: cargo xtask schemas", file_name(format)))
}

/// Adds the fields that [`stamped`] writes in front of all others.
fn stamp(schema: &mut Map<String, Value>, format: Format) {
    schema.insert("title".to_owned(), json!(format!("{} {}", format.name(), format.version())));
    schema.insert("description".to_owned(), json!(format!("{}.", format.what())));
    let head = [("format", json!(format.name())), ("format_version", json!(format.version()))];
    let required = schema.entry("required").or_insert_with(|| json!([]));
    for (at, (name, _)) in head.iter().enumerate() {
        if let Some(names) = required.as_array_mut() {
            names.insert(at, json!(name));
        }
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    for (name, value) in head {
        properties[name] = json!({ "const": value });
    }
}

#[cfg(test)]
mod tests;
