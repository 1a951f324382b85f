//! Any YAML as a CustomResourceDefinition, and a second document as an object of it: the checks end without a crash.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olmkit::crd::{instance, validation};
use olmkit::yaml;

fuzz_target!(|data: &[u8]| {
    let mut documents = yaml::documents(data).flatten();
    let Some(definition) = documents.next() else { return };
    for version in [validation::ApiVersion::V1, validation::ApiVersion::V1Beta1] {
        let _ = validation::validate(&definition, version);
    }
    if let (Ok(schema), Some(Ok(object))) = (definition.to_json(), documents.next().map(|node| node.to_json())) {
        let _ = instance::check(&schema, &object);
    }
});
