//! What is written to a managed object, and when.
use super::*;
use crate::operand::fixtures::memcached;

const OWNER: &str = "11111111-2222";

fn service() -> (Value, String, Child) {
    let service = operand::service(&memcached(&json!({})));
    let mut configuration = serde_json::to_value(&service).unwrap();
    let fingerprint = drift::fingerprint(&configuration);
    configuration["metadata"]["annotations"] = json!({ FINGERPRINT: fingerprint });
    let mut live: k8s_openapi::api::core::v1::Service = serde_json::from_value(configuration.clone()).unwrap();
    live.metadata.uid = Some("child".to_owned());
    (configuration, fingerprint, Child::of(&live))
}

#[test]
fn an_unchanged_object_is_kept() {
    let (configuration, fingerprint, child) = service();
    assert_eq!(decide(&configuration, &fingerprint, Some(&child), OWNER), Step::Keep);
}

#[test]
fn drift_and_a_changed_configuration_are_distinguished() {
    let (mut configuration, fingerprint, child) = service();
    configuration["spec"]["ports"][0]["port"] = json!(1);
    let step = |fingerprint| decide(&configuration, fingerprint, Some(&child), OWNER);
    let expected = |changed_by_others| Step::Apply {
        uid: "child".to_owned(),
        path: ".spec.ports[memcached].port".to_owned(),
        changed_by_others,
    };
    assert_eq!(step(&fingerprint), expected(true));
    assert_eq!(step("another"), expected(false));
}

#[test]
fn nothing_is_written_to_an_object_of_another_owner() {
    let (configuration, fingerprint, child) = service();
    assert_eq!(
        decide(&configuration, &fingerprint, Some(&child), "another"),
        Step::Look
    );
    assert_eq!(decide(&configuration, &fingerprint, None, OWNER), Step::Look);
}

#[test]
fn a_new_size_is_a_small_change_and_nothing_else_is() {
    let desired = |spec: Value| {
        let deployment = operand::deployment(&memcached(&spec), "memcached:1.6");
        let mut configuration = serde_json::to_value(deployment).unwrap();
        mark(&mut configuration);
        configuration
    };
    let observed = |configuration: &Value| {
        let live: Deployment = serde_json::from_value(configuration.clone()).unwrap();
        Child::of(&live)
    };
    let small = |wanted: &Value, observed: &Child| Deployment::small_change(wanted, observed);
    let (two, three) = (desired(json!({ "size": 2 })), desired(json!({ "size": 3 })));
    let fingerprint = three["metadata"]["annotations"][FINGERPRINT].clone();
    let expected = json!({ "metadata": { "annotations": { FINGERPRINT: fingerprint } }, "spec": { "replicas": 3 } });
    assert_eq!(small(&three, &observed(&two)), Some(expected));
    // Another field as well, and drift beside it.
    assert_eq!(
        small(&desired(json!({ "size": 3, "maxConnections": 9 })), &observed(&two)),
        None
    );
    let mut drifted = two.clone();
    drifted["spec"]["minReadySeconds"] = json!(1);
    assert_eq!(small(&three, &observed(&drifted)), None);
    // A field that is no longer applied would stay.
    let mut with_more = two.clone();
    with_more["spec"]["revisionHistoryLimit"] = json!(3);
    mark(&mut with_more);
    assert_eq!(small(&three, &observed(&with_more)), None);
    // Applied by a version that annotated less.
    let mut annotated = three.clone();
    annotated["metadata"]["annotations"]["cache.example.com/more"] = json!("more");
    assert_eq!(small(&annotated, &observed(&two)), None);
}
