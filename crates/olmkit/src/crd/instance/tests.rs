use serde_json::{Value, json};

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 5},
                    "port": {"x-kubernetes-int-or-string": true},
                    "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
                    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "hosts": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "when": {"type": "string", "format": "date-time"},
                    "nothing": {"type": "string", "nullable": true},
                },
                "x-kubernetes-validations": [
                    {"rule": "self.mode != 'fast' || self.size < 3", "message": "fast is for small sizes"},
                ],
            },
        },
    })
}

fn found(spec: Value) -> Vec<String> {
    let object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec});
    check(&schema(), &object).iter().map(ToString::to_string).collect()
}

#[test]
fn a_sound_object_has_no_faults() {
    let spec = json!({"size": 2.0, "port": "http", "mode": "fast", "labels": {"a": "b"}, "free": {"x": [1]},
        "hosts": ["a", "b"], "when": "2024-01-01T00:00:00Z", "nothing": null});
    assert_eq!(found(spec), Vec::<String>::new());
}

#[test]
fn values_must_fit_the_schema() {
    let spec = json!({"size": 9, "port": 1.5, "mode": "slow", "name": "Wrong!", "labels": {"a": 1},
        "hosts": ["a", "a"], "when": "today"});
    assert_eq!(
        found(spec),
        [
            "spec.hosts[1]: is a duplicate of an earlier item (\"a\")",
            "spec.labels.a: must be of type string, is 1",
            "spec.mode: must be one of \"fast\", \"safe\", is \"slow\"",
            "spec.name: must have at most 5 characters, has 6",
            "spec.name: must match the pattern ^[a-z]+$, is \"Wrong!\"",
            "spec.port: must be an integer or a string, is 1.5",
            "spec.size: must be at most 5, is 9",
            "spec.when: must have the format date-time, is \"today\"",
        ]
    );
    assert_eq!(found(json!({})), ["spec.size: is required"]);
}

/// Each row was asked of a real API server (Kubernetes 1.36).
#[test]
fn types_and_numbers_are_judged_as_by_the_server() {
    let int_or_string = json!({"x-kubernetes-int-or-string": true, "type": "integer", "maximum": 1.5});
    let date = json!({"x-kubernetes-preserve-unknown-fields": true, "format": "date"});
    let unknown_format = json!({"x-kubernetes-preserve-unknown-fields": true, "format": "int64"});
    let half = json!({"type": "number", "multipleOf": 0.5, "minimum": 1.5});
    let negative = json!({"type": "integer", "multipleOf": -2});
    let nullable = json!({"type": "string", "nullable": true, "enum": ["a", null]});
    for (schema, value, words) in [
        (&int_or_string, json!(1), ""),
        (&int_or_string, json!(2), "must be at most 1.5"),
        (&int_or_string, json!("abc"), ""),
        (&date, json!(5), "must fit the format date"),
        (&date, json!({"a": 1}), "must fit the format date"),
        (&date, json!("2020-01-01"), ""),
        (&unknown_format, json!(5), ""),
        (&unknown_format, json!(true), ""),
        (&half, json!(2), "must be a multiple of 0.5"),
        (&half, json!(2.5), ""),
        (
            &negative,
            json!(4),
            "the multipleOf -2 of its schema is not a positive number",
        ),
        (&nullable, json!(null), "must not be null"),
        (&nullable, json!("a"), ""),
    ] {
        let schema = json!({"type": "object", "properties": {"odd": schema}});
        let object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "odd": value});
        let found: Vec<String> = check(&schema, &object).iter().map(ToString::to_string).collect();
        let is_right = match words {
            "" => found.is_empty(),
            _ => found.len() == 1 && found[0].contains(words),
        };
        assert!(is_right, "{schema} {value}: {found:?}");
    }
}

#[test]
fn a_list_in_place_of_a_string_with_a_format_has_no_fields() {
    let schema = json!({"type": "string", "format": "date-time"});
    let found = |value: Value| check_default(&schema, &value, false, &mut Work::default());
    assert_eq!(found(json!(["x"])), []);
    let faults: Vec<InstanceFault> = found(json!([{"name": "x"}]))
        .iter()
        .map(|finding| finding.fault)
        .collect();
    assert_eq!(faults, [InstanceFault::Unknown]);
}

#[test]
fn rules_hold_after_defaults_are_filled_in() {
    assert_eq!(found(json!({"size": 4})), Vec::<String>::new());
    let wanted = "spec: fast is for small sizes (rule self.mode != 'fast' || self.size < 3)";
    assert_eq!(found(json!({"size": 4, "mode": "fast"})), [wanted]);
}

#[test]
fn unknown_fields_are_named_with_their_neighbour() {
    assert_eq!(
        found(json!({"size": 1, "Mode": "fast", "other": {"x": 1}})),
        [
            "spec.Mode: the schema has no such field, so the API server drops it; did you mean \"mode\"?",
            "spec.other: the schema has no such field, so the API server drops it",
        ]
    );
}

#[test]
fn the_schema_of_a_version_is_found() {
    let crd = json!({"spec": {"versions": [
        {"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
        {"name": "v1beta1", "served": false},
    ]}});
    assert_eq!(
        schema_of_version(&crd, "v1"),
        Some((Some(&json!({"type": "object"})), true))
    );
    assert_eq!(schema_of_version(&crd, "v1beta1"), Some((None, false)));
    assert_eq!(schema_of_version(&crd, "v2"), None);
}

#[test]
fn metadata_is_what_the_server_takes() {
    let of = |metadata: Value| -> Vec<String> {
        let object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": metadata, "spec": {"size": 1}});
        check(&schema(), &object).iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        of(json!({"name": "a.b-c", "annotations": {"a": "1", "b": null}})),
        Vec::<String>::new()
    );
    assert_eq!(
        of(json!({"name": "a", "annotations": {"a": 1}})),
        ["metadata.annotations.a: must be a string, is a number"]
    );
    let named = of(json!({"name": "My_Thing"}));
    assert!(
        named.len() == 1 && named[0].starts_with("metadata.name: \"My_Thing\": "),
        "{named:?}"
    );
}

#[test]
fn a_list_that_keeps_unknown_fields_keeps_those_of_its_items_only() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"steps": {
        "type": "array", "x-kubernetes-preserve-unknown-fields": true,
        "items": {"type": "object", "properties": {"run": {"type": "object", "properties": {}}}},
    }}}}});
    let object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"},
        "spec": {"steps": [{"other": 1, "run": {"deeper": 1}}]}});
    let found: Vec<String> = check(&schema, &object)
        .iter()
        .map(|finding| finding.pointer.clone())
        .collect();
    assert_eq!(found, ["/spec/steps/0/run/deeper"]);
}

/// Counts steps, not seconds: all objects together use at most one budget.
#[test]
fn examples_share_one_budget() {
    // Patterns whose compilation is counted before it is done.
    let properties: serde_json::Map<String, Value> = (0..1000)
        .map(|number| {
            let pattern = format!("^(abcdefghij{number}){{1000}}$");
            (format!("p{number}"), json!({"type": "string", "pattern": pattern}))
        })
        .collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    let fields: serde_json::Map<String, Value> = (0..1000).map(|number| (format!("p{number}"), json!("b"))).collect();
    let object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": fields});
    let mut work = Work::default();
    let found = check_within(&schema, &object, &mut work);
    assert!(work.is_exhausted());
    assert!(!found.is_empty() && found.len() < 1000, "{}", found.len());
    assert_eq!(check_within(&schema, &object, &mut work), [], "nothing is left");
    // Rules of many objects.
    let rule = json!({"rule": "self.items.all(a, self.items.all(b, a == b))"});
    let spec = json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"type": "integer"}}},
        "x-kubernetes-validations": [rule],
    });
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let items: Vec<i32> = vec![1; 400];
    let object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {"items": items}});
    let mut work = Work::default();
    let checked = (0..400).take_while(|_| {
        check_within(&schema, &object, &mut work);
        !work.is_exhausted()
    });
    assert!(checked.count() < 399);
    // Alternatives share it too, and do not appear to fit if nothing is left.
    let schema =
        json!({"type": "object", "properties": {"spec": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}});
    assert_eq!(check_within(&schema, &json!({"spec": []}), &mut work), []);
}
