//! The schemas in the tree are schemas, one for each format, and notice what goes wrong.

use super::*;
use std::collections::BTreeSet;

#[test]
fn every_format_has_a_schema_and_every_schema_a_format() {
    let entries = std::fs::read_dir(folder()).expect("the folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let names: BTreeSet<String> = names.map(|name| name.expect("plain")).collect();
    let mut wanted: BTreeSet<String> = Format::ALL.iter().copied().map(file_name).collect();
    wanted.insert("README.md".to_owned());
    assert_eq!(names, wanted);
    let page = std::fs::read_to_string(folder().join("README.md")).expect("the page");
    for &format in Format::ALL {
        let made = if KEPT.contains(&format) { "kept by hand" } else { "drawn" };
        let row = format!("| `{}` | {} | {made} |", format.name(), format.version());
        assert!(page.contains(&row), "docs/schemas/README.md has no row {row}");
    }
}

#[test]
fn every_schema_is_one_and_asks_for_format_and_version() {
    for &format in Format::ALL {
        let schema = schema(format).expect("it is there");
        assert!(jsonschema::meta::is_valid(&schema), "{}", format.name());
        assert_eq!(schema["properties"]["format"]["const"], format.name());
        assert_eq!(schema["properties"]["format_version"]["const"], format.version());
        let required = schema["required"].as_array().expect("a list");
        for name in ["format", "format_version"] {
            assert!(required.contains(&json!(name)), "{}: {name}", format.name());
        }
    }
}

/// What `tier check --json` writes of a kernel that lacks something.
fn lacks() -> Value {
    let missing = json!([{ "what": "a thing", "costs": "time", "mend": "a newer kernel" }]);
    let figures = json!({ "mode": null, "missing": missing, "measured": null });
    serde_json::to_value(stamped(Format::TierCheck, &figures)).expect("plain")
}

#[test]
fn a_field_that_is_lost_renamed_added_or_another_kind_is_noticed() {
    held(&lacks()).expect("as it is written");
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut value = lacks();
        change(&mut value);
        held(&value).expect_err("it is noticed")
    };
    let lost =
        wrong(&|value| drop(value["missing"][0].as_object_mut().expect("one").remove("what")));
    assert!(lost.contains("/missing/0") && lost.contains("what"), "{lost}");
    let added = wrong(&|value| value["missing"][0]["price"] = json!(1));
    assert!(added.contains("price"), "{added}");
    let kind = wrong(&|value| value["mode"] = json!(7));
    assert!(kind.contains("/mode"), "{kind}");
    let other = wrong(&|value| value["missing"] = json!({}));
    assert!(other.contains("/missing"), "{other}");
}

#[test]
fn what_does_not_say_what_it_is_is_refused() {
    assert!(held(&json!({})).expect_err("none").contains("`format`"));
    let unknown = json!({ "format": "isochrone-song", "format_version": 1 });
    assert!(held(&unknown).expect_err("none").contains("isochrone-song"));
    let mut newer = lacks();
    newer["format_version"] = json!(99);
    assert!(held(&newer).expect_err("another version").contains("/format_version"));
    assert!(parse("{").expect_err("no JSON").contains("no JSON"));
}

#[test]
fn parts_of_one_object_are_closed_together() {
    let schema = json!({
        "type": "object",
        "properties": { "kind": {} },
        "oneOf": [{ "properties": { "a": { "type": "object", "properties": { "b": {} } } } }],
    });
    let valid = |value: Value| {
        let closed = closed::closed(schema.clone());
        jsonschema::validator_for(&closed).expect("a schema").is_valid(&value)
    };
    assert!(valid(json!({ "kind": 1, "a": { "b": 2 } })));
    assert!(!valid(json!({ "kind": 1, "c": 2 })));
    assert!(!valid(json!({ "kind": 1, "a": { "c": 2 } })));
}
