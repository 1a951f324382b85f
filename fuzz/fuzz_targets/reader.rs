//! Any bytes: the YAML reader ends without a crash, and the writer's output for the result parses to the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olmkit::yaml;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    if let Ok(value) = yaml::parse(data).and_then(|node| node.to_json())
        && let Ok(text) = yaml::value_to_string(&value)
        && !changes_on_purpose(&value)
    {
        let again = yaml::parse(text.as_bytes()).and_then(|node| node.to_json());
        let again = again.unwrap_or_else(|error| panic!("{error}: {text:?}"));
        assert!(same(&again, &value), "{value} became {again} through {text:?}");
    }
    for node in yaml::documents(data).flatten() {
        let _ = yaml::decode::<Value>(&node);
    }
});

/// The Go library, whose output the writer reproduces, writes the key `<<` without quotes, and U+0085 as a space.
fn changes_on_purpose(value: &Value) -> bool {
    let text = value.to_string();
    text.contains("\"<<\"") || text.contains('\u{85}')
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ka, a), (kb, b))| ka == kb && same(a, b))
        }
        _ => a == b,
    }
}
