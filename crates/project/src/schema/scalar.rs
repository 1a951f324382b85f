//! Numbers and strings: formats that the API server does not support, bounds as integers, exclusive bounds as booleans.

use serde_json::{Map, Number, Value};

use super::keywords::is_kept_format;

/// The bounds that an integer format of Rust implies, and the Kubernetes format that fits all its values.
fn integer_format(format: &str) -> Option<(&'static str, Option<i64>, Option<i64>)> {
    Some(match format {
        "int8" => ("int32", Some(i64::from(i8::MIN)), Some(i64::from(i8::MAX))),
        "int16" => ("int32", Some(i64::from(i16::MIN)), Some(i64::from(i16::MAX))),
        "uint8" => ("int32", Some(0), Some(i64::from(u8::MAX))),
        "uint16" => ("int32", Some(0), Some(i64::from(u16::MAX))),
        "uint32" => ("int64", Some(0), Some(i64::from(u32::MAX))),
        "uint" | "uint64" | "uint128" => ("int64", Some(0), None),
        "int" | "int128" => ("int64", None, None),
        _ => return None,
    })
}

/// Rewrites `format` and the bounds of one schema node.
pub(super) fn normalise(node: &mut Map<String, Value>) {
    exclusive_bound(node, "exclusiveMinimum", "minimum");
    exclusive_bound(node, "exclusiveMaximum", "maximum");
    format(node);
    let integer = node.get("type").and_then(Value::as_str) == Some("integer");
    for (keyword, up) in [("minimum", true), ("maximum", false), ("multipleOf", true)] {
        let Some(bound) = node.get(keyword).and_then(Value::as_f64) else {
            continue;
        };
        if integer && bound.fract() != 0.0 && keyword != "multipleOf" {
            // There is no integer between the fractional bound and the next integer, so the meaning does not change.
            let next = if up { bound.ceil() } else { bound.floor() };
            node.insert(keyword.into(), whole(next).unwrap_or_else(|| Value::from(bound)));
        } else if let Some(number) = whole(bound)
            && node.get(keyword).is_some_and(Value::is_f64)
        {
            node.insert(keyword.into(), number);
        }
    }
}

fn format(node: &mut Map<String, Value>) {
    let Some(format) = node.get("format").and_then(Value::as_str).map(str::to_owned) else {
        return;
    };
    if let Some((known, low, high)) = integer_format(&format) {
        node.insert("format".into(), known.into());
        if let Some(low) = low {
            tighten(node, "minimum", low, |bound, low| bound < low);
        }
        if let Some(high) = high {
            tighten(node, "maximum", high, |bound, high| bound > high);
        }
    } else if !is_kept_format(&format) {
        node.remove("format");
    }
}

/// Sets a bound unless a stricter one exists.
fn tighten(node: &mut Map<String, Value>, keyword: &str, limit: i64, wider: impl Fn(f64, f64) -> bool) {
    let present = node.get(keyword).and_then(Value::as_f64);
    #[allow(clippy::cast_precision_loss)] // limits are at most u32::MAX
    if present.is_none_or(|bound| wider(bound, limit as f64)) {
        node.insert(keyword.into(), limit.into());
    }
}

/// JSON Schema 2020 writes the bound itself under `exclusiveMinimum`; OpenAPI 3.0 writes `minimum` and a flag.
fn exclusive_bound(node: &mut Map<String, Value>, flag: &str, keyword: &str) {
    match node.get(flag) {
        Some(Value::Number(bound)) => {
            let bound = bound.clone();
            node.insert(keyword.into(), Value::Number(bound));
            node.insert(flag.into(), true.into());
        }
        Some(Value::Bool(false) | Value::Null) => {
            node.remove(flag);
        }
        _ => {}
    }
}

/// A float without a fraction as an integer, if it fits an `i64`.
fn whole(number: f64) -> Option<Value> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    (number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0)
        .then(|| Value::Number(Number::from(number as i64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn normalised(node: Value) -> Value {
        let Value::Object(mut map) = node else {
            panic!("not an object")
        };
        normalise(&mut map);
        Value::Object(map)
    }

    #[test]
    fn unsigned_formats_become_signed_ones_with_bounds() {
        assert_eq!(
            normalised(json!({"type": "integer", "format": "uint8", "minimum": 0.0})),
            json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 255})
        );
        assert_eq!(
            normalised(json!({"type": "integer", "format": "uint32", "minimum": 5, "maximum": 10.0})),
            json!({"type": "integer", "format": "int64", "minimum": 5, "maximum": 10})
        );
        assert_eq!(
            normalised(json!({"type": "integer", "format": "uint64"})),
            json!({"type": "integer", "format": "int64", "minimum": 0})
        );
    }

    #[test]
    fn numeric_exclusive_bounds_become_flags() {
        assert_eq!(
            normalised(json!({"type": "number", "exclusiveMinimum": 0.5, "exclusiveMaximum": false})),
            json!({"type": "number", "minimum": 0.5, "exclusiveMinimum": true})
        );
    }

    #[test]
    fn fractional_bounds_of_integers_move_to_the_next_integer() {
        assert_eq!(
            normalised(json!({"type": "integer", "minimum": 0.5, "maximum": 9.5})),
            json!({"type": "integer", "minimum": 1, "maximum": 9})
        );
    }

    #[test]
    fn unknown_formats_go() {
        assert_eq!(
            normalised(json!({"type": "string", "format": "duration"})),
            json!({"type": "string"})
        );
        assert_eq!(
            normalised(json!({"type": "string", "format": "partial-date-time"})),
            json!({"type": "string"})
        );
        assert_eq!(
            normalised(json!({"type": "string", "format": "date-time"})),
            json!({"type": "string", "format": "date-time"})
        );
    }
}
