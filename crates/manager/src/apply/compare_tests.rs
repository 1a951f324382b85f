use serde_json::{Value, json};

use super::*;
use crate::apply::schema::tests::schema;

/// The first difference that is found with these owned fields, as text.
fn first(properties: &Value, desired: &Value, live: &Value, owned: Option<&Value>) -> Option<String> {
    let schema = schema(properties);
    let owned = owned.map(Fields::parse);
    let found = differences(&schema, desired, live, owned.as_ref());
    found.first().map(|difference| difference.path.to_string())
}

#[test]
fn the_schema_tells_keyed_lists_from_lists_that_are_one_value() {
    let entries =
        json!({ "type": "array", "items": { "type": "object", "properties": { "name": { "type": "string" } } } });
    let mut keyed = entries.clone();
    keyed["x-kubernetes-list-type"] = json!("map");
    keyed["x-kubernetes-list-map-keys"] = json!(["name"]);
    let desired = json!({ "list": [{ "name": "a" }] });
    let live = json!({ "list": [{ "name": "b" }, { "name": "a" }] });
    assert_eq!(first(&json!({ "list": keyed }), &desired, &live, None), None);
    assert_eq!(
        first(&json!({ "list": entries }), &desired, &live, None).as_deref(),
        Some(".list")
    );
    let doubled = json!({ "list": [{ "name": "a" }, { "name": "a", "more": 1 }] });
    assert_eq!(
        first(&json!({ "list": keyed }), &desired, &doubled, None).as_deref(),
        Some(r#".list[name="a"]"#)
    );
}

#[test]
fn quantities_and_times_are_compared_by_value_where_the_schema_has_them() {
    let quantity = json!({ "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity" });
    let time = json!({ "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time" });
    let properties = json!({ "memory": quantity, "until": time, "tag": { "type": "string" } });
    let same = |desired: Value, live: Value| first(&properties, &desired, &live, None).is_none();
    assert!(same(json!({ "memory": "1024Mi" }), json!({ "memory": "1Gi" })));
    assert!(same(json!({ "memory": 2 }), json!({ "memory": "2" })));
    assert!(!same(json!({ "memory": "1025Mi" }), json!({ "memory": "1Gi" })));
    assert!(same(
        json!({ "until": "2026-01-01T01:00:00+01:00" }),
        json!({ "until": "2026-01-01T00:00:00Z" })
    ));
    assert!(!same(json!({ "tag": "1.0" }), json!({ "tag": "1" })));
    assert!(same(json!({ "ratio": 1.0 }), json!({ "ratio": 1 })));
    let large = 9_007_199_254_740_993_i64;
    assert!(!same(json!({ "last": large }), json!({ "last": large - 1 })));
}

#[test]
fn an_absent_value_is_as_an_empty_one_only_while_it_is_owned() {
    let properties = json!({ "flag": { "type": "boolean" } });
    let desired = json!({ "flag": false });
    assert_eq!(
        first(&properties, &desired, &json!({}), Some(&json!({ "f:flag": {} }))),
        None
    );
    let lost = first(&properties, &desired, &json!({}), Some(&json!({ "f:other": {} })));
    assert_eq!(lost.as_deref(), Some(".flag"));
    assert_eq!(first(&properties, &desired, &json!({}), None).as_deref(), Some(".flag"));
}

#[test]
fn owned_fields_that_are_not_desired_are_found() {
    let properties = json!({ "labels": { "type": "object", "additionalProperties": { "type": "string" } } });
    let owned = json!({ "f:labels": { ".": {}, "f:a": {}, "f:b": {} } });
    let (desired, live) = (
        json!({ "labels": { "a": "1" } }),
        json!({ "labels": { "a": "1", "b": "2", "c": "3" } }),
    );
    assert_eq!(
        first(&properties, &desired, &live, Some(&owned)).as_deref(),
        Some(".labels.b")
    );
    assert_eq!(
        first(&properties, &desired, &json!({ "labels": { "a": "1" } }), Some(&owned)),
        None,
        "it is absent"
    );
}

#[test]
fn more_in_an_atomic_map_or_object_is_a_difference_unless_it_is_a_known_default() {
    let map =
        json!({ "type": "object", "additionalProperties": { "type": "string" }, "x-kubernetes-map-type": "atomic" });
    let object = json!({
        "type": "object", "x-kubernetes-map-type": "atomic",
        "properties": { "key": { "type": "string" }, "scope": { "type": "string", "default": "all" }, "group": { "type": "string" } },
    });
    let properties =
        json!({ "map": map, "object": object, "list": { "type": "array", "items": { "type": "string" } } });
    let kind = |desired: Value, live: Value| {
        let found = differences(&schema(&properties), &desired, &live, None);
        found.first().map(|difference| difference.kind)
    };
    let more = json!({ "map": { "a": "1", "b": "2" } });
    assert_eq!(kind(json!({ "map": { "a": "1" } }), more), Some(DifferenceKind::More));
    let empty = json!({ "map": { "a": "1", "b": "" } });
    assert_eq!(kind(json!({ "map": { "a": "1" } }), empty), Some(DifferenceKind::More));
    let list = |entries: &[&str]| json!({ "list": entries });
    assert_eq!(
        kind(list(&["a", "c"]), list(&["a", "b", "c"])),
        Some(DifferenceKind::More)
    );
    assert_eq!(
        kind(list(&["c", "a"]), list(&["a", "b", "c"])),
        Some(DifferenceKind::Value)
    );
    assert_eq!(kind(list(&["a", "b"]), list(&["a"])), Some(DifferenceKind::Value));
    let other = json!({ "map": { "a": "2" } });
    assert_eq!(kind(json!({ "map": { "a": "1" } }), other), Some(DifferenceKind::Value));
    assert_eq!(
        kind(
            json!({ "object": { "key": "a" } }),
            json!({ "object": { "key": "a", "scope": "all" } })
        ),
        None
    );
    let filled = json!({ "object": { "key": "a", "group": "g" } });
    assert_eq!(
        kind(json!({ "object": { "key": "a" } }), filled),
        Some(DifferenceKind::More)
    );
}

#[test]
fn kept_fields_take_the_live_value_in_lists_too() {
    let list = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": { "type": "object", "properties": { "name": { "type": "string" }, "image": { "type": "string" } } },
    });
    let schema = schema(&json!({ "list": list }));
    let mut desired = json!({ "list": [{ "name": "b", "image": "2" }, { "name": "new", "image": "3" }], "size": 2 });
    let live = json!({ "list": [{ "name": "a", "image": "0" }, { "name": "b", "image": "1" }] });
    keep(&schema, schema.root(), &mut desired, &live, &["list", "image"]);
    keep(&schema, schema.root(), &mut desired, &live, &["size"]);
    assert_eq!(
        desired,
        json!({ "list": [{ "name": "b", "image": "1" }, { "name": "new", "image": "3" }] })
    );
}

#[test]
fn null_means_absent_unless_the_schema_allows_it() {
    let schema = schema(&json!({ "note": { "type": "string", "nullable": true }, "size": { "type": "integer" } }));
    let mut value = json!({ "note": null, "size": null, "inner": { "time": null } });
    let mut nulls = Vec::new();
    strip_nulls(
        &schema,
        schema.root(),
        &mut value,
        Some(&mut Path::default()),
        &mut nulls,
    );
    assert_eq!(value, json!({ "note": null, "inner": {} }));
    let nulls: Vec<String> = nulls.iter().map(ToString::to_string).collect();
    assert_eq!(nulls, [".inner.time", ".size"]);
}
