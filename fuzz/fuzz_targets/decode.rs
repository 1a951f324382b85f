//! Any YAML as each of the Go types: decoding ends without a crash, and its result decodes again to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olmkit::go::structs::decode::decode;
use olmkit::yaml;

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
            let again = decode(&decoded, key, true);
            assert_eq!(again.as_ref(), Ok(&decoded), "{key}");
        }
    }
});
