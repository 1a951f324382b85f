//! CRD-30: schemas that the API server rejects. Each row is the schema of one field, and a part of the message. The
//! rows without a message are accepted.

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
    // The API server requires that only of alternatives at the root, see below.
    ("{type: object, anyOf: [{properties: {b: {minLength: 1}}}]}", ""),
    ("{type: string, anyOf: [{pattern: '['}]}", "missing closing ]"),
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
    (
        "{type: array, items: {type: string}, x-kubernetes-validations: [{rule: 'self.all(a, self.all(b, a != b))'}]}",
        "estimated rule cost exceeds budget by factor of more than 100x",
    ),
    (
        "{type: array, maxItems: 100, items: {type: string, maxLength: 64}, x-kubernetes-validations: [{rule: 'self.all(a, self.all(b, a != b))'}]}",
        "",
    ),
    (
        "{type: array, items: {type: string, x-kubernetes-validations: [{rule: 'self.contains(\"a\")'}]}}",
        "estimated rule cost exceeds budget",
    ),
    (
        "{type: array, maxItems: 64, items: {type: string, maxLength: 64, x-kubernetes-validations: [{rule: 'self.contains(\"a\")'}]}}",
        "",
    ),
    (
        "{type: string, x-kubernetes-validations: [{rule: 'self.matches(\"^[a-z]+$\")'}]}",
        "",
    ),
    (
        "{type: string, x-kubernetes-validations: [{rule: 'self.matches(self)'}]}",
        "estimated rule cost exceeds budget",
    ),
    (
        "{type: string, enum: [a, b], x-kubernetes-validations: [{rule: 'self.matches(self)'}]}",
        "",
    ),
    (
        "{type: array, items: {type: string, x-kubernetes-validations: [{rule: 'self.matches(\"^[a-z]+$\")'}]}}",
        "estimated rule cost total for entire OpenAPIv3 schema exceeds budget",
    ),
    (
        "{type: object, additionalProperties: {type: string}, x-kubernetes-validations: [{rule: 'self.all(k, self[k].size() > 1)'}]}",
        "",
    ),
    (
        "{type: object, additionalProperties: {type: string}, x-kubernetes-validations: [{rule: 'self.all(k, self[k].contains(self[k]))'}]}",
        "estimated rule cost exceeds budget",
    ),
    (
        "{type: array, items: {type: object, required: [name], properties: {name: {type: string}}}, x-kubernetes-validations: [{rule: 'self.all(x, self.exists_one(y, y.name == x.name))'}]}",
        "estimated rule cost exceeds budget",
    ),
    (
        "{type: array, maxItems: 50, items: {type: object, required: [name], properties: {name: {type: string, maxLength: 63}}}, x-kubernetes-validations: [{rule: 'self.all(x, self.exists_one(y, y.name == x.name))'}]}",
        "",
    ),
    (
        "{type: string, x-kubernetes-validations: [{rule: 'true', messageExpression: 'self.replace(\"a\", \"bbbb\").replace(\"b\", \"cccc\").replace(\"c\", \"dddd\")'}]}",
        "estimated messageExpression cost exceeds budget by factor of 1.321205x",
    ),
    (
        "{type: string, x-kubernetes-validations: [{rule: 'self.matches(\"^(?!a)\")'}]}",
        "invalid matches argument",
    ),
    (
        "{type: string, x-kubernetes-validations: [{rule: 'self.find(\"(\") == \"a\"'}]}",
        "invalid find argument",
    ),
    (
        "{type: string, x-kubernetes-validations: [{rule: 'size(self) > int(\"x\")'}]}",
        "program instantiation failed",
    ),
    (
        "{type: string, default: b, x-kubernetes-validations: [{rule: 'self == \"a\"'}]}",
        "default",
    ),
    (
        "{type: string, default: a, x-kubernetes-validations: [{rule: 'self == \"a\"'}]}",
        "",
    ),
    (
        "{type: integer, default: 1, x-kubernetes-validations: [{rule: 'self > oldSelf'}]}",
        "default",
    ),
    (
        "{type: object, additionalProperties: {type: integer, default: one}}",
        "",
    ),
    (
        "{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: 'has(self.a)', fieldPath: .a}]}",
        "",
    ),
    (
        "{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: 'has(self.a)', fieldPath: .b}]}",
        "must be a valid path",
    ),
    (
        "{type: object, properties: {a.b: {type: string}}, x-kubernetes-validations: [{rule: 'has(self.a__dot__b)', fieldPath: \"['a.b']\"}]}",
        "",
    ),
    (
        "{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: 'has(self.a)', fieldPath: a}]}",
        "must be a valid path",
    ),
    (
        "{type: object, properties: {a: {type: array, items: {type: string}}}, x-kubernetes-validations: [{rule: 'has(self.a)', fieldPath: '.a[0]'}]}",
        "must be a valid path",
    ),
    (
        "{type: array, maxItems: 3, items: {type: string, maxLength: 9, x-kubernetes-validations: [{rule: 'self == oldSelf'}]}}",
        "oldSelf cannot be used on the uncorrelatable portion",
    ),
    (
        "{type: array, maxItems: 3, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a], properties: {a: {type: string, maxLength: 9}}, x-kubernetes-validations: [{rule: 'self.a == oldSelf.a'}]}}",
        "",
    ),
    (
        "{type: string, x-kubernetes-validations: [{rule: 'self == \"a\"', optionalOldSelf: true}]}",
        "may not be set if oldSelf is not used in rule",
    ),
    (
        "{type: object, properties: {namespace: {type: string}}, x-kubernetes-validations: [{rule: 'self.namespace == \"a\"'}]}",
        "",
    ),
    (
        "{x-kubernetes-preserve-unknown-fields: true, x-kubernetes-validations: [{rule: 'true'}]}",
        "unable to convert structural schema to CEL declarations",
    ),
    ("{type: string, $schema: a}", "$schema is not supported"),
    (
        "{type: object, additionalProperties: true, x-kubernetes-validations: [{rule: 'true', fieldPath: .a}]}",
        "",
    ),
    (
        "{type: object, additionalProperties: true, x-kubernetes-validations: [{rule: 'true', fieldPath: .a.b}]}",
        "must be a valid path",
    ),
    (
        "{type: object, maxProperties: -1, properties: {a: {type: string}}, default: {}}",
        "must have at most -1 fields",
    ),
    (
        "{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, default: {}}",
        "is required",
    ),
    (
        "{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, default: {apiVersion: v1, kind: Pod}}",
        "",
    ),
    ("{type: array, items: true}", "items: Required value"),
    ("{type: string, items: true}", ""),
    (
        "{type: string, default: x, x-kubernetes-validations: [{rule: 'isQuantity(self)'}]}",
        "failed rule: isQuantity(self)",
    ),
    (
        "{type: string, default: 1Gi, x-kubernetes-validations: [{rule: 'isQuantity(self)'}]}",
        "",
    ),
    (
        "{type: array, items: {type: array, items: {type: string, x-kubernetes-validations: [{rule: 'self.size() > 1'}]}}}",
        "",
    ),
    (
        "{type: object, x-kubernetes-validations: [{rule: 'self.all(k, k in oldSelf)'}], additionalProperties: {type: string}}",
        "",
    ),
    // Of defaults, the API server checks the declared type, not x-kubernetes-int-or-string.
    ("{x-kubernetes-int-or-string: true, default: 1}", ""),
    ("{x-kubernetes-int-or-string: true, default: true}", ""),
    ("{x-kubernetes-int-or-string: true, type: number, default: 1.5}", ""),
    ("{x-kubernetes-int-or-string: true, type: boolean, default: true}", ""),
    ("{x-kubernetes-int-or-string: true, type: string, default: 10%}", ""),
    (
        "{x-kubernetes-int-or-string: true, type: integer, default: 10%}",
        "must be of type integer",
    ),
    (
        "{x-kubernetes-int-or-string: true, type: string, default: 1}",
        "must be of type string",
    ),
    (
        "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], default: true}",
        "under anyOf",
    ),
    (
        "{type: object, properties: {a: {x-kubernetes-int-or-string: true, type: integer}}, default: {a: b}}",
        "a: must be of type integer",
    ),
    // Without a type, only strings and lists fit a format.
    (
        "{x-kubernetes-preserve-unknown-fields: true, format: int64, default: 1}",
        "must fit the format int64",
    ),
    (
        "{x-kubernetes-preserve-unknown-fields: true, format: int64, default: a}",
        "",
    ),
    // The server divides an integer by the integer part of multipleOf.
    ("{type: integer, multipleOf: -2}", ""),
    ("{type: integer, multipleOf: -2, default: 4}", "not a positive number"),
    ("{type: integer, multipleOf: 0, default: 4}", "not a positive number"),
    (
        "{type: number, multipleOf: -0.5, default: 1.5}",
        "not a positive number",
    ),
    ("{type: number, multipleOf: 0.5, default: 1.5}", ""),
    (
        "{type: number, multipleOf: 0.5, default: 3}",
        "must be a multiple of 0.5",
    ),
    ("{type: number, multipleOf: 1.5, default: 2}", ""),
    ("{type: string, multipleOf: -2, default: a}", ""),
    ("{type: number, enum: [1, 2], default: 1.5}", ""),
    ("{type: number, enum: [1, 2], default: 2.5}", ""),
    ("{type: number, enum: [1, 2], default: 3.5}", "must be one of 1, 2"),
    // Of null, only the type and the enum are checked.
    (
        "{type: array, items: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}, default: [null]}",
        "",
    ),
    (
        "{type: array, items: {type: string, nullable: true, enum: [a]}, default: [null]}",
        "must not be null",
    ),
    (
        "{type: string, format: duration, default: 80}",
        "must be of type string",
    ),
    (
        "{type: string, format: duration, default: '80'}",
        "must have the format duration",
    ),
    ("{type: string, format: duration, default: 80 s}", ""),
    (
        "{type: string, format: date-time, default: '2020-01-01'}",
        "must have the format date-time",
    ),
    ("{type: string, format: byte, default: ''}", "must have the format byte"),
    ("{type: number, minimum: 1.5, default: 1}", ""),
    ("{type: number, minimum: 1.5, default: 1.25}", "must be at least 1.5"),
    ("{type: string, description: 5}", "cannot read the definition"),
    ("{type: string, description: '5'}", ""),
    ("{type: string, format: true}", "cannot read the definition"),
];

#[test]
fn each_schema_is_judged_as_the_api_server_does() {
    let mut wrong = Vec::new();
    for (schema, words) in ROWS {
        // Not a field of the example, so that the example remains valid.
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
            "        properties:\n          metadata: {type: object, additionalProperties: false}\n          spec:",
            "must not specify anything other than name and generateName",
        ),
        (
            "        properties:\n          spec:",
            "        properties:\n          metadata: {type: object, example: \"\"}\n          spec:",
            "must not specify anything other than name and generateName",
        ),
        (
            "        properties:\n          spec:",
            "        properties:\n          metadata: {type: object, x-kubernetes-map-type: \"\"}\n          spec:",
            "must not specify anything other than name and generateName",
        ),
        (
            "        properties:\n          spec:",
            "        properties:\n          apiVersion: {type: integer}\n          spec:",
            "must be string",
        ),
        (
            "        type: object\n        properties:",
            "        type: object\n        anyOf: [{properties: {absent: {minLength: 1}}}]\n        properties:",
            "must exist among the properties outside",
        ),
        (
            "        properties:\n          spec:",
            "        properties:\n          metadata: {type: object, default: {}}\n          spec:",
            "must not be set in top-level metadata",
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
