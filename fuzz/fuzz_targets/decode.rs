//! Any YAML as each of the Go types: decoding ends without a crash, and its result decodes again to the same, except for nulls: Go
//! prints one for a value that it ignores, and reads none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olmkit::go::structs::decode::decode;
use olmkit::yaml;
use serde_json::Value;

const TYPES: [&str; 5] = [
    "ClusterServiceVersion",
    "v1.CustomResourceDefinition",
    "v1beta1.CustomResourceDefinition",
    "AnnotationsFile",
    "DependenciesFile",
];

fuzz_target!(|data: &[u8]| {
    let Ok(value) = yaml::parse(data).and_then(|node| node.to_json()) else {
        return;
    };
    for key in TYPES {
        if let Ok(decoded) = decode(&value, key, true) {
            let again = decode(&decoded, key, true).map(without_nulls);
            assert_eq!(again, Ok(without_nulls(decoded)), "{key}");
        }
    }
});

fn without_nulls(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields
                .values_mut()
                .for_each(|field| *field = without_nulls(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_nulls(item.take())),
        _ => {}
    }
    value
}
