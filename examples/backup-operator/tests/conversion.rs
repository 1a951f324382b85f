//! A Backup can be read and updated through either version.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

use backup_operator::conversion::{KEPT, convert};
use serde_json::{Value, json};

fn backup(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("backup.example.com/{version}"), "kind": "Backup",
        "metadata": {"name": "nightly", "annotations": {"team": "a"}}, "spec": spec})
}

fn converted(object: Value, version: &str) -> Value {
    convert(object, &format!("backup.example.com/{version}")).unwrap()
}

#[test]
fn an_update_through_the_first_version_keeps_what_that_lacks() {
    let spec = json!({"volume": "data", "schedule": "0 9 * * 1", "target": {"bucket": {"url": "s3://a"}}});
    let mut old = converted(backup("v1", spec.clone()), "v1alpha1");
    assert_eq!(old["spec"], json!({"volume": "data"}));
    assert_eq!(old["metadata"]["annotations"]["team"], "a");
    old["spec"]["volume"] = "other".into();
    let new = converted(old, "v1");
    let mut expected = spec;
    expected["volume"] = "other".into();
    assert_eq!(new["spec"], expected);
    assert_eq!(new["metadata"]["annotations"], json!({"team": "a"}));
}

#[test]
fn the_first_version_saves_every_night() {
    let mut old = backup("v1alpha1", json!({"volume": "data"}));
    let new = converted(old.clone(), "v1");
    assert_eq!(new["spec"], json!({"volume": "data", "schedule": "0 3 * * *"}));
    assert_eq!(
        converted(new, "v1alpha1")["metadata"],
        old["metadata"],
        "nothing to keep"
    );
    for broken in [
        "{",
        "{}",
        r#"{"schedule": 5}"#,
        r#"{"schedule": "", "target": {"tape": {}}}"#,
    ] {
        old["metadata"]["annotations"][KEPT] = broken.into();
        assert_eq!(converted(old.clone(), "v1")["spec"]["schedule"], "0 3 * * *");
    }
}

#[test]
fn an_invalid_backup_is_named() {
    let error = |object, version: &str| convert(object, version).unwrap_err();
    assert_eq!(error(json!({}), "backup.example.com/v1"), "spec is missing");
    let old = backup("v1alpha1", json!({"volume": "data"}));
    assert_eq!(
        error(old, "backup.example.com/v2"),
        "unknown version backup.example.com/v2"
    );
}
