//! Sample objects as the `alm-examples` annotation: a JSON list with two spaces for each level, in Go's format.

use std::fmt::Write as _;

use serde_json::Value;

use super::Document;
use olmkit_go::json;

/// The value of the annotation.
pub(super) fn text(samples: &[Document]) -> String {
    let list = Value::Array(samples.iter().map(|sample| sample.value.clone()).collect());
    let mut out = String::new();
    print(&mut out, &list, 0);
    out
}

fn print(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                line(out, at, depth + 1);
                print(out, item, depth + 1);
            }
            line(out, 0, depth);
            out.push(']');
        }
        Value::Object(entries) if !entries.is_empty() => {
            out.push('{');
            for (at, (key, item)) in entries.iter().enumerate() {
                line(out, at, depth + 1);
                let _ = write!(out, "{}: ", json::string(key));
                print(out, item, depth + 1);
            }
            line(out, 0, depth);
            out.push('}');
        }
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
        Value::String(text) => out.push_str(&json::string(text)),
        Value::Number(number) => out.push_str(&json::number(number)),
        Value::Null | Value::Bool(_) => {
            let _ = write!(out, "{value}");
        }
    }
}

fn line(out: &mut String, at: usize, depth: usize) {
    out.push_str(if at > 0 { ",\n" } else { "\n" });
    out.push_str(&"  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn examples_are_printed_as_go_prints_them() {
        let sample = Document {
            origin: Default::default(),
            value: json!({"kind": "A", "spec": {"empty": {}, "list": [], "text": "<&>", "n": 1.0, "items": [1, null]}}),
            untyped: Value::Null,
            from_crds_dir: false,
        };
        assert_eq!(
            text(&[sample]),
            "[\n  {\n    \"kind\": \"A\",\n    \"spec\": {\n      \"empty\": {},\n      \"items\": [\n        1,\n        null\n      \
             ],\n      \"list\": [],\n      \"n\": 1,\n      \"text\": \"\\u003c\\u0026\\u003e\"\n    }\n  }\n]"
        );
        assert_eq!(text(&[]), "[]");
    }
}
