//! The size rules at their limits.

use std::collections::BTreeSet;

use rand::distr::{Alphanumeric, SampleString};

use super::changes::{CRD, CSV, bundle, changed, ids, options, outcome};

/// Text that does not compress below three quarters of its size.
fn noise(length: usize) -> String {
    use rand::SeedableRng as _;
    Alphanumeric.sample_string(&mut rand::rngs::StdRng::seed_from_u64(7), length)
}

fn with_config_map(bytes: usize) -> BTreeSet<&'static str> {
    let mut tree = bundle();
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a: {}\n",
        noise(bytes)
    );
    tree.insert("manifests/config.yaml", text.into_bytes());
    ids(&outcome(tree, &options("")))
}

#[test]
fn the_bundle_is_counted_as_olm_stores_it() {
    // Alphanumeric noise compresses to three quarters, and base64 makes four thirds of that.
    assert_eq!(with_config_map(800_000), BTreeSet::new());
    assert_eq!(with_config_map(950_000), BTreeSet::from(["BND-6"]));
    // A ConfigMap has a separate limit, 1 MiB.
    assert_eq!(with_config_map(1_150_000), BTreeSet::from(["BND-5", "OBJ-3"]));
}

#[test]
fn an_object_fits_into_one_request() {
    let described = |bytes: usize| {
        let description = format!("type: integer\n                description: {}", "x".repeat(bytes));
        ids(&outcome(changed(CRD, "type: integer", &description), &options("")))
    };
    assert_eq!(described(1_400_000), BTreeSet::new());
    assert_eq!(described(1_500_000), BTreeSet::from(["SIZE-1"]));
}

#[test]
fn annotations_of_an_object_are_counted_together() {
    let annotated = |bytes: usize| {
        let annotation = format!("    more: {}\n    capabilities:", "x".repeat(bytes));
        ids(&outcome(changed(CSV, "    capabilities:", &annotation), &options("")))
    };
    assert_eq!(annotated(200 << 10), BTreeSet::new());
    assert_eq!(annotated(256 << 10), BTreeSet::from(["SIZE-2"]));
}
