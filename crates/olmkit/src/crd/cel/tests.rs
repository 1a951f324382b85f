use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::corpus;

use super::*;
use crate::crd::instance;
use crate::yaml;

/// Findings for an object whose `spec` has this schema.
fn findings(spec: Value, object: &Value) -> Vec<String> {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let object =
        json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": object});
    instance::check(&schema, &object)
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn spec(properties: Value, rules: Value) -> Value {
    json!({"type": "object", "properties": properties, "x-kubernetes-validations": rules})
}

/// Returns true if one rule is satisfied by `spec`.
#[track_caller]
fn holds(properties: &Value, rule: &str, object: &Value) -> bool {
    let found = findings(
        spec(properties.clone(), json!([{"rule": rule, "message": "broken"}])),
        object,
    );
    match found.as_slice() {
        [] => true,
        [one] if one.starts_with("spec: broken (rule ") => false,
        other => panic!("{rule}: {other:?}"),
    }
}

#[test]
fn values_have_the_types_of_their_schema() {
    let properties = json!({
        "port": {"x-kubernetes-int-or-string": true},
        "when": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
        "wait": {"type": "string", "format": "duration"}, "data": {"type": "string", "format": "byte"},
        "ratio": {"type": "number"}, "a.b-c": {"type": "string"}, "namespace": {"type": "string"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "maybe": {"type": "string", "nullable": true},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    });
    let object = json!({
        "port": "80%", "when": "2024-02-29T12:00:00Z", "day": "2024-02-29", "wait": "90s", "data": "aGk=", "ratio": 2, "a.b-c": "x",
        "namespace": "y", "set": ["a", "b"], "list": ["a", "b"], "labels": {"a.b": "c"}, "free": {"x": 1}, "maybe": null,
        "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
    });
    for (rule, wanted) in [
        (
            "type(self.port) == string ? self.port.endsWith('%') : self.port > 5",
            true,
        ),
        ("self.when.getFullYear() == 2024 && self.day < self.when", true),
        ("self.wait == duration('1m30s') && self.data == b'hi'", true),
        ("self.ratio / 2.0 == 1.0", true),
        ("self.a__dot__b__dash__c == 'x' && self.__namespace__ == 'y'", true),
        ("self.set == ['b', 'a'] && self.list != ['b', 'a']", true),
        ("self.labels['a.b'] == 'c' && !('x' in self.labels)", true),
        ("has(self.free) && !has(self.maybe)", true),
        (
            "self.template.metadata.name == 'p' && self.template.kind == 'Pod'",
            true,
        ),
        ("self.list.exists(x, x == 'c')", false),
        ("self.?maybe.orValue('none') == 'some'", false),
        // Rules that do not compile are not evaluated; CRD-30 reports them.
        ("self.free.x == 1", true),
        ("self.template.metadata.labels.size() == 0", true),
    ] {
        assert_eq!(holds(&properties, rule, &object), wanted, "{rule}");
    }
}

#[test]
fn rules_are_found_wherever_they_stand() {
    let item = spec(
        json!({"n": {"type": "integer"}}),
        json!([{"rule": "self.n > 0", "message": "positive"}]),
    );
    let own = json!({
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": item},
            "map": {"type": "object", "additionalProperties": item},
            "n": {"type": "integer"},
        },
        "allOf": [{"x-kubernetes-validations": [{"rule": "self.n == 1", "message": "one"}]}],
    });
    let object = json!({"items": [{"n": 1}, {"n": 0}], "map": {"a/b": {"n": -1}}, "n": 2});
    assert_eq!(
        findings(own, &object),
        [
            "spec: one (rule self.n == 1)",
            "spec.items[1]: positive (rule self.n > 0)",
            "spec.map.a/b: positive (rule self.n > 0)",
        ]
    );
}

#[test]
fn messages_and_paths_are_those_of_the_api_server() {
    let properties = json!({"size": {"type": "integer"}, "other": {"type": "integer"}});
    for (rule, wanted) in [
        (
            json!({"rule": "self.size > 5"}),
            "spec: failed rule: self.size > 5 (rule self.size > 5)",
        ),
        (
            json!({"rule": "self.size > 5", "fieldPath": ".size", "message": " m "}),
            "spec.size: m (rule self.size > 5)",
        ),
        (
            json!({"rule": "self.size > 5", "fieldPath": "['size']", "message": "m"}),
            "spec.size: m (rule self.size > 5)",
        ),
        (
            json!({"rule": "self.size > 5", "message": "m", "messageExpression": "'is %d'.format([self.size])"}),
            "spec: is 3 (rule self.size > 5)",
        ),
        (
            json!({"rule": "self.size > 5", "message": "m", "messageExpression": "'a\\nb'"}),
            "spec: m (rule self.size > 5)",
        ),
        (
            json!({"rule": "self.size > 5", "message": "m", "messageExpression": "string(1 / (self.size - 3))"}),
            "spec: m (rule self.size > 5)",
        ),
        (
            json!({"rule": "self.other > 5", "message": "m"}),
            "spec: no such key: other evaluating rule: m (rule self.other > 5)",
        ),
    ] {
        assert_eq!(
            findings(spec(properties.clone(), json!([rule])), &json!({"size": 3})),
            [wanted],
            "{rule}"
        );
    }
}

#[test]
fn a_rule_of_the_whole_object_has_no_path() {
    let rules = json!([{"rule": "self.metadata.name == 'b'", "message": "must be b"}]);
    let schema = json!({"type": "object", "x-kubernetes-validations": rules});
    let object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}});
    let found: Vec<String> = instance::check(&schema, &object)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, ["must be b (rule self.metadata.name == 'b')"]);
}

#[test]
fn rules_of_transitions_need_an_older_object() {
    let properties = json!({"size": {"type": "integer"}});
    let with = |rule: Value| findings(spec(properties.clone(), json!([rule])), &json!({"size": 3}));
    assert_eq!(
        with(json!({"rule": "self.size == oldSelf.size + 1"})),
        Vec::<String>::new()
    );
    let optional = json!({"rule": "oldSelf.hasValue()", "optionalOldSelf": true, "message": "m"});
    assert_eq!(with(optional), ["spec: m (rule oldSelf.hasValue())"]);
}

#[test]
fn nulls_are_pruned_or_replaced_before_rules_run() {
    let properties = json!({
        "size": {"type": "integer", "default": 2}, "name": {"type": "string"},
        "deep": {"type": "object", "default": {}, "properties": {"mode": {"type": "string", "default": "safe"}}},
    });
    let object = json!({"size": null, "name": null});
    assert!(holds(
        &properties,
        "self.size == 2 && !has(self.name) && self.deep.mode == 'safe'",
        &object
    ));
}

/// Rules that would hang, exhaust the memory or crash other evaluators report nothing, and do not affect the next rule.
#[test]
fn hostile_rules_end_soon() {
    let properties = json!({
        "items": {"type": "array", "items": {"type": "string"}}, "text": {"type": "string"}, "n": {"type": "integer"},
    });
    let object = json!({"items": vec!["a"; 2_000], "text": "a".repeat(100_000), "n": 1});
    let loops = "self.items.all (a, self.items.all (b, self.items.all (c, true)))";
    let literals = "[0,1,2,3,4,5,6,7,8,9]";
    let nested = (0..12).fold("true".to_owned(), |inner, at| format!("{literals}.all(x{at}, {inner})"));
    let bomb = "self.text.replace('a', self.text).replace('a', self.text).size() > 0";
    let deep = "(".repeat(200_000);
    let rules = [
        json!({"rule": loops}),
        json!({"rule": nested}),
        json!({"rule": bomb}),
        json!({"rule": "'%.1000000000f'.format([1.0]) == ''"}),
        json!({"rule": deep}),
        json!({"rule": "[".repeat(100_000)}),
        json!({"rule": "self.n > 1", "message": "m", "messageExpression": format!("string({loops})")}),
    ];
    for rule in rules {
        let started = Instant::now();
        let own = spec(
            properties.clone(),
            json!([{"rule": "self.n > 2", "message": "first"}, rule]),
        );
        let found = findings(own, &object);
        assert!(
            found.iter().any(|finding| finding.starts_with("spec: first")),
            "{found:?}"
        );
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }
}

/// Calls `visit` for each schema node of the CRDs in a directory, with the type for its rules.
fn each_rule(folder: &Path, visit: &mut dyn FnMut(&Path, &Value, &Type)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            each_rule(&path, visit);
            continue;
        }
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let has_rules = bytes.windows(24).any(|window| window == b"x-kubernetes-validations");
        if !has_rules {
            continue;
        }
        let Some(Ok(node)) = yaml::documents_with_lookahead(&bytes, 30).next() else {
            continue;
        };
        let Ok(crd) = node.to_json() else { continue };
        if crd.get("kind").and_then(Value::as_str) != Some("CustomResourceDefinition") {
            continue;
        }
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        for version in versions.into_iter().flatten() {
            if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
                each_node(schema, true, &mut |rule, own| visit(&path, rule, own));
            }
        }
    }
}

fn each_node(schema: &Value, is_object: bool, visit: &mut dyn FnMut(&Value, &Type)) {
    if let Some(own) = declare::declare(schema, is_object, "self").filter(|_| !rules(schema).is_empty()) {
        rules(schema).iter().for_each(|rule| visit(rule, &own));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields = properties.into_iter().flat_map(serde_json::Map::values);
    for below in fields
        .chain(schema.get("items"))
        .chain(schema.get("additionalProperties"))
    {
        each_node(below, is_embedded(below), visit);
    }
}

/// The API server accepts all CRDs of the corpus, so no rule may be rejected, and nearly all must be supported.
#[test]
fn rules_of_real_definitions_compile() {
    let Some(corpus) = corpus("") else { return };
    let (mut count, mut refused, mut unknown, mut highest) = (0_usize, Vec::new(), 0_usize, 0);
    each_rule(&corpus, &mut |path, rule, own| {
        count += 1;
        let text = rule["rule"].as_str().unwrap_or_default();
        highest = highest.max(olmkit_cel::parse(text).map_or(0, |node| node.height));
        match compile(rule, own) {
            Ok(compiled) => unknown += usize::from(*compiled.program.result() != Type::Bool),
            Err(None) => unknown += 1,
            Err(Some(refusal)) => refused.push(format!("{}: {rule}: {}", path.display(), refusal.message)),
        }
    });
    println!(
        "{count} rules, at most {highest} levels, {unknown} unknown, {} refused",
        refused.len()
    );
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(count > 500 && unknown * 100 < count, "{unknown} of {count} unknown");
}
