//! CRD-30: what the API server refuses in a schema. Each row is the schema of one field, and words of the refusal; the rows without
//! words are taken.

use super::changes::{CRD, changed, options, outcome};

const ROWS: &[(&str, &str)] = &[
    ("{type: integer}", ""),
    ("{type: integer, default: 3, minimum: 1}", ""),
    ("{x-kubernetes-int-or-string: true}", ""),
    ("{type: object, x-kubernetes-preserve-unknown-fields: true}", ""),
    ("{type: array, items: {type: string}, x-kubernetes-list-type: set}", ""),
    (
        "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a], properties: {a: {type: string}}}}",
        "",
    ),
    (
        "{type: object, properties: {a: {type: string}}, oneOf: [{required: [a]}]}",
        "",
    ),
    ("{type: integer, x-kubernetes-validations: [{rule: 'self < 9'}]}", ""),
    ("{}", "must not be empty"),
    ("{type: text}", "Unsupported value"),
    ("{type: array}", "items: Required value"),
    (
        "{type: array, items: [{type: string}]}",
        "items must be a schema object and not an array",
    ),
    ("{type: array, items: {type: string}, uniqueItems: true}", "uniqueItems"),
    (
        "{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}",
        "mutual exclusive",
    ),
    (
        "{type: object, x-kubernetes-preserve-unknown-fields: false}",
        "must be true or undefined",
    ),
    ("{type: string, pattern: '['}", "missing closing ]"),
    (
        "{type: string, pattern: '(?!a)b'}",
        "invalid or unsupported Perl syntax",
    ),
    ("{type: string, pattern: '^[a-z]([-a-z0-9]*[a-z0-9])?$'}", ""),
    ("{type: integer, default: one}", "default"),
    (
        "{type: object, properties: {a: {type: string}}, default: {b: c}}",
        "default",
    ),
    ("{type: string, x-kubernetes-list-type: set}", "must be array"),
    (
        "{type: array, items: {type: string}, x-kubernetes-list-type: heap}",
        "Unsupported value",
    ),
    (
        "{type: array, items: {type: object}, x-kubernetes-list-type: set}",
        "x-kubernetes-map-type",
    ),
    (
        "{type: array, items: {type: object, properties: {a: {type: string}}}, x-kubernetes-list-type: map}",
        "must not be empty if x-kubernetes-list-type is map",
    ),
    (
        "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b], items: {type: object, properties: {a: {type: string}}}}",
        "entries must all be names of item properties",
    ),
    (
        "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, properties: {a: {type: string}}}}",
        "must have a default or be a required",
    ),
    (
        "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, a], items: {type: object, required: [a], properties: {a: {type: string}}}}",
        "must not contain duplicate entries",
    ),
    (
        "{type: object, properties: {a: {type: string}}, anyOf: [{properties: {a: {type: string}}}]}",
        "to be structural",
    ),
    (
        "{type: object, anyOf: [{properties: {b: {minLength: 1}}}]}",
        "must exist among the properties outside",
    ),
    (
        "{type: object, x-kubernetes-embedded-resource: true}",
        "must not be empty if x-kubernetes-embedded-resource",
    ),
    (
        "{type: integer, x-kubernetes-validations: [{rule: ''}]}",
        "rule is not specified",
    ),
    (
        "{type: integer, x-kubernetes-validations: [{rule: 'self >'}]}",
        "self >",
    ),
    (
        "{type: integer, x-kubernetes-validations: [{rule: 'self > 1', message: ' '}]}",
        "message must be non-empty",
    ),
    (
        "{type: integer, x-kubernetes-validations: [{rule: \"self >\\n1\"}]}",
        "message must be specified if rule contains line breaks",
    ),
];

#[test]
fn each_schema_is_judged_as_the_api_server_does() {
    let mut wrong = Vec::new();
    for (schema, words) in ROWS {
        // Another field than that of the example, so that it stays fine.
        let field = format!("                type: integer\n              odd: {schema}\n");
        let outcome = outcome(changed(CRD, "                type: integer\n", &field), &options(""));
        let messages: Vec<&str> = outcome
            .findings()
            .filter(|finding| finding.rule == "CRD-30")
            .map(|finding| finding.message.as_str())
            .collect();
        let is_right = if words.is_empty() {
            messages.is_empty()
        } else {
            messages.iter().any(|message| message.contains(words))
        };
        if !is_right {
            wrong.push(format!("{schema}: {messages:?}, wanted {words:?}"));
        }
        if !outcome.passed() {
            wrong.push(format!("{schema}: operator-sdk passes it"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_root_of_a_schema_is_an_object() {
    for (from, to, words) in [
        (
            "        type: object\n        properties:",
            "        type: string\n        properties:",
            "must be object at the root",
        ),
        (
            "        properties:\n          spec:",
            "        properties:\n          metadata: {type: object, properties: {labels: {type: object}}}\n          spec:",
            "must not specify anything other than name and generateName",
        ),
        (
            "        properties:\n          spec:",
            "        properties:\n          apiVersion: {type: integer}\n          spec:",
            "must be string",
        ),
    ] {
        let outcome = outcome(changed(CRD, from, to), &options(""));
        let messages: Vec<&str> = outcome.findings().map(|finding| finding.message.as_str()).collect();
        assert!(
            messages.iter().any(|message| message.contains(words)),
            "{words}: {messages:?}"
        );
        assert!(outcome.passed());
    }
}
