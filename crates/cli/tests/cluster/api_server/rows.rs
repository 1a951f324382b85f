//! The rules, each with definitions and with objects that are kept or rejected because of it.

use kube::CustomResourceExt;
use olmkit::crd::{Options, normalise, normalise_schema};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::server::GROUP;
use super::types;

/// A rule: definitions of one schema, and the expected result for their objects.
pub struct Row {
    pub name: &'static str,
    pub definitions: Vec<Value>,
    /// Specs that are accepted, and how they are stored.
    pub accepted: Vec<(Value, Value)>,
    /// Specs that are rejected, and a part of the reason.
    pub refused: Vec<(Value, &'static str)>,
}

impl Row {
    fn new(name: &'static str, definitions: Vec<Value>) -> Self {
        Self {
            name,
            definitions,
            accepted: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Stored unchanged.
    fn keeps(mut self, spec: Value) -> Self {
        self.accepted.push((spec.clone(), spec));
        self
    }

    /// Stored with defaults.
    fn stores(mut self, spec: Value, stored: Value) -> Self {
        self.accepted.push((spec, stored));
        self
    }

    fn refuses(mut self, spec: Value, why: &'static str) -> Self {
        self.refused.push((spec, why));
        self
    }
}

/// The kind of a Rust type in two ways: as `kube` derives it, and with the unmodified schema from `schemars`.
fn typed<K: CustomResourceExt + JsonSchema>(name: &'static str) -> Row {
    let crd = K::crd();
    let derived = normalise(&crd, &Options::default()).unwrap();
    let mut row = plain::<K>(name, &format!("Plain{}", crd.spec.names.kind));
    row.definitions.push(derived);
    row
}

/// The kind of a Rust type with the unmodified schema from `schemars`.
fn plain<K: JsonSchema>(name: &'static str, kind: &str) -> Row {
    let schema = normalise_schema(schemars::schema_for!(K).to_value(), &Options::default()).unwrap();
    Row::new(name, vec![definition(kind, schema)])
}

/// As [`plain`], with nulls kept.
fn nullable<K: JsonSchema>(name: &'static str, kind: &str) -> Row {
    let options = Options {
        keep_nullable: true,
        ..Options::default()
    };
    let schema = normalise_schema(schemars::schema_for!(K).to_value(), &options).unwrap();
    Row::new(name, vec![definition(kind, schema)])
}

/// A schema of the spec as other programs write it.
fn written(name: &'static str, kind: &str, spec: Value) -> Row {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "type": "object",
        "properties": {"spec": spec},
    });
    let normal = normalise_schema(schema, &Options::default()).unwrap();
    Row::new(name, vec![definition(kind, normal)])
}

fn definition(kind: &str, mut schema: Value) -> Value {
    for (name, of) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        schema["properties"][name] = json!({"type": of});
    }
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// Every row.
pub fn all() -> Vec<Row> {
    let nothing = || json!({"value": 1, "object": {}, "list": []});
    let numbers = |field: &str, value: Value| {
        let mut spec = json!({
            "byte": 255, "port": 65535, "count": 4_294_967_295_u32, "bytes": 9_223_372_036_854_775_807_i64, "size": 0,
            "small": -128, "short": -32768, "some": 1, "share": 0.5, "bounded": 3,
        });
        spec[field] = value;
        spec
    };
    vec![
        typed::<types::EnumWithData>("enums with data have one type and declare the fields of all variants")
            .keeps(json!({}))
            .keeps(json!({"external": {"bucket": {"url": "s3://b", "access": "Private"}}}))
            .keeps(json!({"external": {"volume": {"claim": "c"}}, "untagged": {"name": "n"}}))
            .keeps(json!({"untagged": {"labels": {"a": "b"}}}))
            .refuses(json!({"external": {}}), "spec.external")
            .refuses(json!({"external": {"volume": {"claim": ""}}}), "at least 1 char")
            .refuses(json!({"external": {"bucket": {"url": "u"}, "volume": {"claim": "c"}}}), "spec.external")
            .refuses(json!({"untagged": {}}), "spec.untagged"),
        // kube's derive panics for them: the variants' schemas of one field differ.
        plain::<types::TaggedEnum>("tags are joined to one list of names", "TaggedEnum")
            .keeps(json!({"internal": {"type": "disk", "size": 1, "class": "fast"}}))
            .keeps(json!({"internal": {"type": "memory", "size": 1}}))
            .keeps(json!({"internal": {"type": "nowhere"}, "adjacent": {"kind": "daily", "value": {"hour": 3}}}))
            .keeps(json!({"internal": {"type": "nowhere"}, "adjacent": {"kind": "seconds", "value": {"count": 3}}}))
            .refuses(json!({"internal": {"type": "tape", "size": 1}}), "Unsupported value: \"tape\"")
            .refuses(json!({"internal": {"type": "disk"}}), "spec.internal")
            .refuses(json!({"internal": {"size": 1}}), "spec.internal")
            .refuses(json!({"internal": {"type": "nowhere"}, "adjacent": {"kind": "daily"}}), "spec.adjacent")
            .refuses(
                json!({"internal": {"type": "nowhere"}, "adjacent": {"kind": "daily", "value": {"count": 3}}}),
                "spec.adjacent",
            ),
        typed::<types::PlainEnum>("enums without data are lists of names, without null")
            .stores(
                json!({"access": "Public", "level": "info"}),
                json!({"access": "Public", "level": "info", "levels": [], "accesses": {}}),
            )
            .keeps(json!({"access": "Public", "level": "info", "otherAccess": "Private", "otherLevel": "debug", "levels": ["info"], "accesses": {"a": "Public"}}))
            .refuses(json!({"access": "None", "level": "info"}), "Unsupported value: \"None\"")
            .refuses(json!({"access": "Public", "level": "info", "otherAccess": "x"}), "spec.otherAccess: Unsupported value")
            .refuses(json!({"access": "Public", "level": "info", "levels": ["x"]}), "spec.levels[0]: Unsupported value")
            .refuses(json!({"access": "Public", "level": "info", "accesses": {"a": "x"}}), "spec.accesses.a: Unsupported value"),
        typed::<types::AnyValue>("a field of any value is kept whole")
            .stores(nothing(), json!({"value": 1, "object": {}, "list": [], "empty": {}}))
            .keeps(json!({"value": {"a": [1, "b"]}, "object": {"c": {"d": null}}, "list": [1, {"e": 1}], "perhaps": "f", "empty": {}}))
            .refuses(json!({"value": 1, "object": 1, "list": []}), "spec.object")
            .refuses(json!({"value": 1, "object": {}, "list": {}}), "spec.list"),
        typed::<types::References>("references and flattened structs are inlined")
            .stores(
                json!({"one": {"claim": "a"}, "other": {"claim": "b"}, "more": [{"claim": "c"}], "bucket": {"url": "u"}}),
                json!({"one": {"claim": "a"}, "other": {"claim": "b"}, "more": [{"claim": "c"}], "bucket": {"url": "u"}, "paused": false}),
            )
            .refuses(json!({"one": {"claim": ""}, "other": {"claim": "b"}, "more": [], "bucket": {"url": "u"}}), "spec.one.claim")
            .refuses(json!({"one": {"claim": "a"}, "other": {}, "more": [], "bucket": {"url": "u"}}), "spec.other.claim: Required")
            .refuses(json!({"one": {"claim": "a"}, "other": {"claim": "b"}, "more": []}), "spec"),
        typed::<types::Optionals>("options may be absent; nulls are dropped")
            .stores(json!({}), json!({"map": {}}))
            .stores(
                json!({"number": null, "text": null, "list": null, "object": null, "map": {}, "time": null, "port": null}),
                json!({"map": {}}),
            )
            .keeps(json!({"number": 1, "text": "a", "list": ["b"], "object": {"claim": "c"}, "map": {"d": "e"}, "time": "2026-01-02T03:04:05Z", "port": "http"}))
            .keeps(json!({"map": {}, "port": 80}))
            .refuses(json!({"port": true}), "spec.port")
            .refuses(json!({"time": "yesterday"}), "spec.time"),
        nullable::<types::Optionals>("nulls are kept where the author wants them", "Nullables")
            .stores(json!({"text": null, "number": null}), json!({"text": null, "number": null, "map": {}}))
            .refuses(json!({"text": 1}), "spec.text"),
        nullable::<types::PlainEnum>("nulls of an enum are dropped, because the server would refuse them", "NullableEnum")
            .stores(
                json!({"access": "Public", "level": "info", "otherLevel": null, "otherAccess": null}),
                json!({"access": "Public", "level": "info", "levels": [], "accesses": {}}),
            )
            .refuses(json!({"access": null, "level": "info"}), "spec.access"),
        typed::<types::Numbers>("integers have the bounds of their Rust type, as integers")
            .keeps(numbers("byte", json!(0)))
            .refuses(numbers("byte", json!(256)), "spec.byte")
            .refuses(numbers("byte", json!(-1)), "spec.byte")
            .refuses(numbers("port", json!(65536)), "spec.port")
            .refuses(numbers("count", json!(4_294_967_296_u64)), "spec.count")
            .refuses(numbers("bytes", json!(-1)), "spec.bytes")
            .refuses(numbers("size", json!(-1)), "spec.size")
            .refuses(numbers("small", json!(128)), "spec.small")
            .refuses(numbers("short", json!(-32769)), "spec.short")
            .refuses(numbers("some", json!(0)), "spec.some")
            .refuses(numbers("share", json!(0.4)), "spec.share")
            .refuses(numbers("bounded", json!(4)), "spec.bounded")
            .refuses(numbers("bounded", json!(1.5)), "spec.bounded"),
        typed::<types::Formats>("formats that mean something else to the server are left out")
            .keeps(json!({"period": "PT1H", "at": "03:00", "address": "https://example.com", "timeout": {"secs": 1, "nanos": 2}, "ip": "::1", "letter": "x"}))
            .refuses(json!({"period": "PT1H", "at": "03:00", "address": "a", "timeout": {"secs": -1, "nanos": 2}}), "spec.timeout.secs")
            .refuses(json!({"period": "PT1H", "at": "03:00", "address": "a", "letter": "xy"}), "spec.letter"),
        typed::<types::Closed>("closed objects are declared; the server finds unknown fields itself")
            .stores(json!({"name": "a", "labels": {"b": "c"}}), json!({"name": "a", "labels": {"b": "c"}, "parts": []}))
            .refuses(json!({"name": "a", "labels": {}, "colour": "red"}), "unknown field \"spec.colour\"")
            .refuses(json!({"name": "a", "labels": {}, "parts": [{"name": "b", "colour": "red"}]}), "unknown field \"spec.parts[0].colour\""),
        typed::<types::OpenMap>("a flattened map next to fields keeps unknown fields")
            .keeps(json!({"name": "a", "b": {"c": 1}, "d": 2}))
            .refuses(json!({"b": 1}), "spec.name: Required"),
        plain::<types::Keys>("keys that are numbers or names", "Keys")
            .keeps(json!({"byNumber": {"80": {"name": "a", "protocol": "TCP", "number": 80}}, "byLevel": {"info": 1}}))
            .refuses(json!({"byNumber": {"80": {"name": "a"}}, "byLevel": {}}), "spec.byNumber.80.number: Required")
            .refuses(json!({"byNumber": {}, "byLevel": {"info": -1}}), "spec.byLevel"),
        plain::<types::Variants>("variants test what is their own", "Variants")
            .stores(json!({"lists": ["a"]}), json!({"lists": ["a"], "contents": []}))
            .keeps(json!({"lists": [{"name": "a"}], "number": 255, "contents": []}))
            .keeps(json!({"number": -5000, "content": {"kind": "volume", "value": {"claim": "a"}}, "contents": []}))
            .keeps(json!({"contents": [{"kind": "pair", "value": {"one": 1, "two": 2}}]}))
            .refuses(json!({"lists": {}}), "spec.lists")
            .refuses(json!({"number": 256}), "spec.number")
            .refuses(json!({"content": {"kind": "volume", "value": {"one": 1, "two": 2}}}), "spec.content")
            .refuses(json!({"content": {"kind": "volume", "value": {"claim": ""}}}), "spec.content")
            .refuses(json!({"contents": [{"kind": "pair", "value": {"claim": "a"}}]}), "spec.contents[0]"),
        typed::<types::Sets>("sets and tuples")
            .stores(json!({"names": ["a", "b"]}), json!({"names": ["a", "b"], "levels": [], "pairs": []}))
            .keeps(json!({"names": [], "levels": ["info"], "pairs": [{"one": 1, "two": 2}], "range": [1, 2], "triple": [1, 2, 3]}))
            .refuses(json!({"names": [], "range": [1]}), "spec.range")
            .refuses(json!({"names": [], "triple": [1, 2, 3, 4]}), "spec.triple")
            .refuses(json!({"names": [], "triple": [1, 2, 256]}), "spec.triple[2]"),
        typed::<types::Defaults>("defaults validate, and hold no nulls")
            .stores(
                json!({}),
                json!({"image": "example.com/image:v1", "replicas": 3, "tuning": {"threads": 4, "share": 1}, "access": "Public"}),
            )
            .stores(
                json!({"tuning": {"limit": 5}}),
                json!({"image": "example.com/image:v1", "replicas": 3, "tuning": {"limit": 5, "threads": 4, "share": 1}, "access": "Public"}),
            ),
        typed::<types::ListMap>("keys of list maps are required or have a default")
            .stores(
                json!({"ports": [{"name": "a", "number": 1}, {"name": "a", "protocol": "UDP", "number": 1}]}),
                json!({"conditions": [], "ports": [{"name": "a", "protocol": "TCP", "number": 1}, {"name": "a", "protocol": "UDP", "number": 1}]}),
            )
            .refuses(json!({"ports": [{"name": "a", "number": 1}, {"name": "a", "protocol": "TCP", "number": 2}]}), "Duplicate value"),
        typed::<types::Rules>("rules run, and bounded lists keep their cost within the budget")
            .keeps(json!({"low": 1, "high": 2, "names": ["a"]}))
            .refuses(json!({"low": 2, "high": 1, "names": []}), "low is above high")
            .refuses(json!({"low": 1, "high": 1, "names": ["b"]}), "failed rule")
            .refuses(json!({"low": 1, "high": 1, "names": ["a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a"]}), "at most 10"),
        typed::<types::Embedded>("types of Kubernetes")
            .keeps(json!({"secret": {"name": "a"}, "object": {"apiVersion": "v1", "kind": "Secret", "data": {"a": "b"}}}))
            .keeps(json!({
                "template": {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}], "livenessProbe": {"httpGet": {"port": "http"}}}]}},
                "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
            }))
            .refuses(json!({"resources": {"limits": {"cpu": true}}}), "spec.resources.limits.cpu")
            .refuses(json!({"template": {"spec": {}}}), "spec.template.spec.containers: Required")
            .refuses(json!({"object": {"data": {}}}), "spec.object.apiVersion"),
        written(
            "keywords without a place in a definition go",
            "Foreign",
            json!({
                "$id": "https://example.com/foreign",
                "type": "object",
                "title": "Foreign",
                "readOnly": true,
                "discriminator": {"propertyName": "a"},
                "dependencies": {"a": ["b"]},
                "dependentRequired": {"a": ["b"]},
                "patternProperties": {"^x-": {"type": "string"}},
                "propertyNames": {"pattern": "^[a-z]"},
                "unevaluatedProperties": false,
                "if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {},
                "$comment": "none",
                "properties": {
                    "a": {"type": "string", "writeOnly": true, "deprecated": true, "contentMediaType": "text/plain", "xml": {"name": "a"}},
                    "b": {"type": "array", "items": {"type": "string"}, "contains": {"const": "x"}, "minContains": 1},
                },
            }),
        )
        .keeps(json!({"a": "1", "b": ["2"]}))
        .refuses(json!({"a": 1}), "spec.a"),
        written(
            "combinations test values only; what they name is declared outside",
            "Combined",
            json!({
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "allOf": [{"properties": {"b": {"type": "string", "description": "b", "default": "x"}}}, {"required": ["a"]}],
                "not": {"properties": {"a": {"type": "integer", "description": "no", "enum": [13]}}, "required": ["a"]},
                "anyOf": [
                    {"properties": {"c": {"type": "string", "minLength": 2, "nullable": true}}, "required": ["c"], "additionalProperties": false},
                    {"properties": {"d": {"type": "array", "items": {"type": "string", "description": "d"}, "minItems": 1}}, "required": ["d"]},
                ],
            }),
        )
        .stores(json!({"a": 1, "c": "cc"}), json!({"a": 1, "c": "cc", "b": "x"}))
        .stores(json!({"a": 1, "d": ["e"]}), json!({"a": 1, "d": ["e"], "b": "x"}))
        .refuses(json!({"c": "cc"}), "spec.a: Required")
        .refuses(json!({"a": 13, "c": "cc"}), "must not validate the schema (not)")
        .refuses(json!({"a": 1}), "spec")
        .refuses(json!({"a": 1, "d": []}), "spec.d")
        .refuses(json!({"a": 1, "d": [1]}), "spec.d[0]"),
        written(
            "one type for each field, with null and constants of newer drafts",
            "Draft",
            json!({
                "type": ["object", "null"],
                "properties": {
                    "text": {"type": ["string", "null"]},
                    "either": {"type": ["integer", "string"]},
                    "mixed": {"type": ["boolean", "string", "object"]},
                    "constant": {"const": "only"},
                    "number": {"const": 3},
                    "values": {"enum": ["a", "b", null]},
                    "below": {"type": "number", "exclusiveMaximum": 1.5, "exclusiveMinimum": 0},
                    "limits": {"type": "integer", "minimum": 0.0, "maximum": 9.5, "multipleOf": 3.0},
                    "unique": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
                    "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
                    "anything": true,
                    "open": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true},
                    "both": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
                    "implied": {"properties": {"a": {"items": {"enum": [true]}}}},
                    "embedded": {"type": "object", "examples": [{"a": 1}], "additionalProperties": {}},
                },
            }),
        )
        .keeps(json!({"text": "a", "either": 1, "mixed": {"a": 1}, "constant": "only", "number": 3, "values": "b", "below": 1.4, "limits": 9}))
        .keeps(json!({"either": "a", "mixed": "b", "unique": ["a"], "pair": [1, "a"], "anything": [1], "open": {"b": 1}, "both": {"b": 1}}))
        .keeps(json!({"implied": {"a": [true]}, "embedded": {"a": {"b": 1}}}))
        .stores(json!({"text": null, "values": null}), json!({}))
        .refuses(json!({"either": true}), "spec.either")
        .refuses(json!({"constant": "other"}), "spec.constant: Unsupported value")
        .refuses(json!({"number": 4}), "spec.number: Unsupported value")
        .refuses(json!({"values": "c"}), "spec.values: Unsupported value")
        .refuses(json!({"below": 1.5}), "spec.below")
        .refuses(json!({"below": 0}), "spec.below")
        .refuses(json!({"limits": 10}), "spec.limits")
        .refuses(json!({"limits": 4}), "multiple of 3")
        .refuses(json!({"unique": ["a", "a"]}), "Duplicate value")
        .refuses(json!({"pair": [1]}), "spec.pair")
        .refuses(json!({"implied": {"a": [false]}}), "spec.implied.a[0]"),
    ]
}
