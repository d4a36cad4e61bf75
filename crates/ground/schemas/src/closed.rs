//! A schema that lets no field stand beside those that it names. It reads no file.

use serde_json::{Value, json};

/// Keywords of schemas that stand for the same value as the one that they are in.
const BESIDE: [&str; 4] = ["allOf", "anyOf", "oneOf", "$ref"];

/// The same schema without room for fields that it does not name.
pub(crate) fn closed(mut schema: Value) -> Value {
    close(&mut schema, false);
    schema
}

/// `part`: of a schema that names fields too, so that this one cannot know all of them.
fn close(schema: &mut Value, part: bool) {
    let Value::Object(fields) = schema else { return };
    let named = fields.contains_key("properties");
    let beside = BESIDE.iter().any(|keyword| fields.contains_key(*keyword));
    for (keyword, below) in &mut *fields {
        match (keyword.as_str(), below) {
            ("properties" | "$defs" | "patternProperties", Value::Object(all)) => {
                all.values_mut().for_each(|one| close(one, false));
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                all.iter_mut().for_each(|one| close(one, part || named));
            }
            ("prefixItems", Value::Array(all)) => all.iter_mut().for_each(|one| close(one, false)),
            ("items" | "additionalProperties", one) => close(one, false),
            _ => {}
        }
    }
    if named && !part && !fields.contains_key("additionalProperties") {
        let keyword = if beside { "unevaluatedProperties" } else { "additionalProperties" };
        fields.insert(keyword.to_owned(), json!(false));
    }
}
