use serde_json::{Value, json};

use super::*;

fn definition(versions: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
        },
    })
}

fn version(name: &str, storage: bool, spec: &Value) -> Value {
    json!({
        "name": name,
        "served": true,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    })
}

fn one(spec: &Value) -> Value {
    definition(json!([version("v1", true, spec)]))
}

fn messages(old: &Value, new: &Value) -> Vec<(Loss, String)> {
    compare(old, new)
        .into_iter()
        .map(|change| (change.loss, change.message))
        .collect()
}

#[test]
fn each_narrowing_of_a_field_is_reported() {
    // The field before, the field after, and the report.
    let rows = [
        (
            json!({"type": "string"}),
            json!({"type": "integer"}),
            Loss::Value,
            "was string and must now be integer",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!({"type": "string"}),
            Loss::Value,
            "was integer or string and must now be string",
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"type": "string", "enum": ["b", "c"]}),
            Loss::Value,
            "no longer accepts \"a\"",
        ),
        (
            json!({"type": "string"}),
            json!({"type": "string", "enum": ["b"]}),
            Loss::Value,
            "accepts only those of a list",
        ),
        (
            json!({"type": "integer", "maximum": 9}),
            json!({"type": "integer", "maximum": 5}),
            Loss::Value,
            "has maximum 5, was 9",
        ),
        (
            json!({"type": "integer"}),
            json!({"type": "integer", "minimum": 0}),
            Loss::Value,
            "has minimum 0, was without",
        ),
        (
            json!({"type": "integer", "maximum": 5}),
            json!({"type": "integer", "maximum": 5, "exclusiveMaximum": true}),
            Loss::Value,
            "has maximum 5 exclusively, was 5",
        ),
        (
            json!({"type": "string", "minLength": 1}),
            json!({"type": "string", "minLength": 2}),
            Loss::Value,
            "has minLength 2, was 1",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 3}),
            Loss::Value,
            "has maxItems 3, was without",
        ),
        (
            json!({"type": "integer", "multipleOf": 2}),
            json!({"type": "integer", "multipleOf": 4}),
            Loss::Value,
            "must be a multiple of 4",
        ),
        (
            json!({"type": "string"}),
            json!({"type": "string", "pattern": "^a"}),
            Loss::Value,
            "must fit the pattern \"^a\"",
        ),
        (
            json!({"type": "string", "format": "date"}),
            json!({"type": "string", "format": "date-time"}),
            Loss::Value,
            "has the format \"date-time\", was \"date\"",
        ),
        (
            json!({"type": "string", "nullable": true}),
            json!({"type": "string"}),
            Loss::Value,
            "could be null",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            Loss::Value,
            "may no longer hold an item twice",
        ),
        (
            json!({"type": "integer"}),
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self  > 1"}]}),
            Loss::Value,
            "must satisfy a new rule: self > 1",
        ),
        (
            json!({"type": "object"}),
            json!({"type": "object", "oneOf": [{"required": ["a"]}]}),
            Loss::Value,
            "must satisfy a new condition (oneOf)",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}),
            Loss::Value,
            "spec.field.a is required now and has no default",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "properties": {"b": {"type": "string"}}}),
            Loss::Field,
            "spec.field.a was removed from the schema",
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object"}),
            Loss::Field,
            "kept fields that the schema does not name",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object"}),
            Loss::Field,
            "had fields of any name",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            Loss::Value,
            "spec.field.* was string and must now be integer",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "string", "maxLength": 3}}),
            Loss::Value,
            "spec.field[] has maxLength 3",
        ),
    ];
    for (before, after, loss, words) in rows {
        let spec = |field: &Value| one(&json!({"type": "object", "properties": {"field": field}}));
        let changes = messages(&spec(&before), &spec(&after));
        assert_eq!(changes.len(), 1, "{before} -> {after}: {changes:?}");
        assert_eq!(changes[0].0, loss, "{before} -> {after}");
        assert!(
            changes[0].1.contains(words) && changes[0].1.starts_with("spec.field"),
            "{before} -> {after}: {changes:?}"
        );
        assert_eq!(messages(&spec(&before), &spec(&before)), [], "{before}");
    }
}

#[test]
fn widening_a_field_is_not_a_loss() {
    let rows = [
        (json!({"type": "integer"}), json!({"type": "number"})),
        (
            json!({"type": "integer"}),
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
        (
            json!({"type": "string", "enum": ["a"]}),
            json!({"type": "string", "enum": ["a", "b"]}),
        ),
        (json!({"type": "string", "enum": ["a"]}), json!({"type": "string"})),
        (
            json!({"type": "integer", "minimum": 2, "maximum": 3}),
            json!({"type": "integer", "minimum": 1}),
        ),
        (
            json!({"type": "string", "pattern": "a", "maxLength": 3}),
            json!({"type": "string"}),
        ),
        (json!({"type": "string"}), json!({"type": "string", "minLength": 0})),
        (json!({"type": "string"}), json!({"type": "string", "nullable": true})),
        (
            json!({"type": "string", "nullable": true}),
            json!({"type": "string", "default": "a"}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "properties": {
                "a": {"type": "string"},
                "b": {"type": "object", "required": ["c"], "properties": {"c": {"type": "string"}}},
            }}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "required": ["b"], "properties": {
                "a": {"type": "string"},
                "b": {"type": "string", "default": "x"},
            }}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        ),
        (
            json!({"type": "integer"}),
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}),
        ),
    ];
    for (before, after) in rows {
        let spec = |field: &Value| one(&json!({"type": "object", "properties": {"field": field}}));
        assert_eq!(messages(&spec(&before), &spec(&after)), [], "{before} -> {after}");
    }
}

#[test]
fn versions_that_are_used_stay() {
    let spec = json!({"type": "object"});
    let old = definition(json!([version("v1alpha1", false, &spec), version("v1", true, &spec)]));
    let gone = definition(json!([version("v2", true, &spec)]));
    let changes = messages(&old, &gone);
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(
        changes[0].1.contains("v1alpha1, which was served, was removed"),
        "{changes:?}"
    );
    assert!(
        changes[1].1.contains("v1, in which objects are stored, was removed"),
        "{changes:?}"
    );

    let mut unserved = old.clone();
    unserved["spec"]["versions"][0]["served"] = json!(false);
    let changes = compare(&old, &unserved);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0].pointer, "/spec/versions/0/served");
    // A version that was not served is unused.
    assert_eq!(
        messages(&unserved, &definition(json!([version("v1", true, &spec)]))),
        []
    );
}

#[test]
fn versions_that_differ_need_their_conversion() {
    let (a, b) = (
        json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        json!({"type": "object", "properties": {"b": {"type": "string"}}}),
    );
    let old = definition(json!([version("v1", true, &a), version("v2", false, &b)]));
    let new = definition(json!([version("v1", false, &a), version("v2", true, &b)]));
    let changes = messages(&old, &new);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0].0, Loss::Conversion);
    assert!(
        changes[0].1.contains("stored as v1") && changes[0].1.contains("spec.a was removed"),
        "{changes:?}"
    );

    let with_webhook = |definition: &Value| {
        let mut definition = definition.clone();
        definition["spec"]["conversion"] = json!({"strategy": "Webhook"});
        definition
    };
    assert_eq!(messages(&with_webhook(&old), &with_webhook(&new)), []);
    let changes = messages(&with_webhook(&old), &old);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(changes[0].1.contains("were converted by a webhook"), "{changes:?}");
}

#[test]
fn scope_and_kind_never_change() {
    let old = one(&json!({"type": "object"}));
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["names"]["kind"] = json!("Gadget");
    let changes = compare(&old, &new);
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(
        changes.iter().all(|change| change.loss == Loss::Identity),
        "{changes:?}"
    );
    assert_eq!(changes[0].pointer, "/spec/scope");
}

#[test]
fn a_loss_that_versions_share_is_reported_once() {
    let spec =
        |maximum: u32| json!({"type": "object", "properties": {"size": {"type": "integer", "maximum": maximum}}});
    let both = |maximum| {
        definition(json!([
            version("v1", true, &spec(maximum)),
            version("v2", false, &spec(maximum))
        ]))
    };
    let changes = compare(&both(5), &both(3));
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0].message, "spec.size has maximum 3, was 5 (v1, v2)");
    assert_eq!(
        changes[0].pointer,
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/maximum"
    );
}

#[test]
fn a_definition_of_v1beta1_is_compared_too() {
    let schema = |maximum: u32| {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": maximum}}},
        }})
    };
    let old = json!({"spec": {"version": "v1", "validation": {"openAPIV3Schema": schema(5)}}});
    let new = json!({"spec": {
        "versions": [{"name": "v1", "served": true, "storage": true}],
        "validation": {"openAPIV3Schema": schema(3)},
    }});
    let changes = compare(&old, &new);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(
        changes[0].pointer,
        "/spec/validation/openAPIV3Schema/properties/spec/properties/size/maximum"
    );
}

/// 40,000 entries of each list are compared with as many. A search in the list would take minutes.
#[test]
fn long_lists_are_looked_up() {
    let numbers = |prefix: &str| {
        (0..40_000)
            .map(|number| format!("{prefix}{number}"))
            .collect::<Vec<_>>()
    };
    let rules = |prefix: &str| {
        numbers(prefix)
            .iter()
            .map(|rule| json!({"rule": rule}))
            .collect::<Vec<_>>()
    };
    let definition = |prefix: &str| {
        let mut versions = vec![json!({
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "required": numbers(prefix), "properties": {
                "a": {"type": "string", "enum": numbers(prefix), "x-kubernetes-validations": rules(prefix)},
            }}},
        })];
        versions.extend(
            numbers("v1alpha")
                .iter()
                .map(|name| json!({"name": name, "served": true})),
        );
        json!({"spec": {"versions": versions}})
    };
    let changes = compare(&definition("a"), &definition("b"));
    assert_eq!(
        changes
            .iter()
            .filter(|change| change.message.contains("no longer accepts"))
            .count(),
        1
    );
    assert_eq!(
        changes
            .iter()
            .filter(|change| change.message.contains("new rule"))
            .count(),
        40_000
    );
    assert!(compare(&definition("a"), &definition("a")).is_empty());
}
