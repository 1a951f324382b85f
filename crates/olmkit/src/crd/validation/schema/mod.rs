//! Checks of `openAPIV3Schema`. operator-sdk omits all their findings, so authors learn of them from the API server,
//! when the operator is installed.

mod defaults;
mod extensions;
mod nested;
mod path;
mod pattern;
mod rules;
mod structural;

use serde_json::{Map, Value};

use self::path::Path;
use super::finding::{BadValue, Findings};
use super::internal::{Crd, Shared};
use crate::crd::instance::Work;

/// Schema fields with one schema.
const ONE: [&str; 2] = ["items", "not"];

/// Schema fields that are set even if they contain an empty map.
const POINTERS: [&str; 3] = ["default", "example", "externalDocs"];

/// Schema fields with lists of alternatives.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Checks the schemas of all versions.
pub(super) fn check(crd: &Crd, work: &mut Work, findings: &mut Findings) {
    let status = |shared: &Shared| {
        shared
            .subresources
            .as_ref()
            .is_some_and(|own| own.get("status").is_some())
    };
    let any_status = status(&crd.spec.shared) || crd.spec.versions.iter().any(|version| status(&version.own));
    check_root(&crd.spec.shared, "spec.validation", any_status, work, findings);
    for (at, version) in crd.spec.versions.iter().enumerate() {
        let has_status = status(&version.own) || status(&crd.spec.shared);
        check_root(
            &version.own,
            &format!("spec.versions[{at}].schema"),
            has_status,
            work,
            findings,
        );
    }
}

fn check_root(shared: &Shared, path: &str, has_status: bool, work: &mut Work, findings: &mut Findings) {
    let Some(schema) = shared
        .validation
        .as_ref()
        .and_then(|validation| validation.get("openAPIV3Schema"))
    else {
        return;
    };
    let path = format!("{path}.openAPIV3Schema");
    let path = &Path::Root(&path);
    if has_status {
        root_with_status(schema, path, findings);
    } else if flag(schema, "nullable") {
        findings.forbidden(&format!("{path}.nullable"), "nullable cannot be true at the root");
    }
    let before = findings.0.len();
    let mut walk = Walk {
        findings,
        structure: Findings::default(),
        has_defaults: false,
        has_rules: false,
    };
    walk.schema(schema, Some(Level::Root), path);
    let Walk {
        mut structure,
        has_defaults,
        has_rules,
        ..
    } = walk;
    findings.0.append(&mut structure.0);
    // Defaults and rules presume a sound schema, as in the API server.
    if findings.0.len() == before {
        if has_defaults {
            defaults::check(schema, path, work, findings);
        }
        if has_rules {
            rules::check(schema, path, findings);
        }
    }
}

/// With a status subresource, the schema of the status is separated from the root, so the root may not have keywords
/// that would be lost.
fn root_with_status(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    const FORBIDDEN: [&str; 22] = [
        "$ref",
        "$schema",
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "default",
        "definitions",
        "dependencies",
        "enum",
        "id",
        "maxProperties",
        "minProperties",
        "not",
        "nullable",
        "oneOf",
        "patternProperties",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    // Empty lists and maps count too.
    let is_zero = |name: &str| match schema.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::Bool(false)) => !matches!(name, "additionalItems" | "additionalProperties" | "default"),
        Some(Value::String(text)) => text.is_empty() && matches!(name, "$schema" | "id"),
        Some(_) => false,
    };
    for name in FORBIDDEN.iter().filter(|name| !is_zero(name)) {
        let problem = "only description, type, properties, required and validations are allowed at the root of the \
                       schema if the status subresource is enabled";
        findings.forbidden(&format!("{path}.{name}"), problem);
    }
}

/// Level of a schema in the structure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// One traversal of all schemas of a version. The API server traverses them twice, so the findings of the second check
/// come last.
struct Walk<'f> {
    /// Checks of every schema, also below `allOf` and the like.
    findings: &'f mut Findings,
    /// Checks of the structural form.
    structure: Findings,
    /// True if there are defaults: most schemas have none.
    has_defaults: bool,
    /// True if there are CEL rules.
    has_rules: bool,
}

impl Walk<'_> {
    /// Checks a schema and those below it. Schemas below `allOf` and the like have no structural level.
    fn schema(&mut self, schema: &Value, level: Option<Level>, path: &Path<'_>) {
        let plain = match level {
            Some(Level::Root) => None,
            _ => plain(schema),
        };
        if plain == Some(Plain::Leaf) {
            return;
        }
        if plain.is_none() {
            self.keywords(schema, level, path);
        }
        each_below(schema, path, &mut |below, path| {
            let is_item = matches!(path, Path::Keyword(_, "items"));
            let level = level.map(|_| if is_item { Level::Item } else { Level::Field });
            self.schema(below, level, path);
        });
        if plain.is_none() {
            self.alternatives(schema, path);
        }
    }

    fn keywords(&mut self, schema: &Value, level: Option<Level>, path: &Path<'_>) {
        self.has_defaults |= schema.get("default").is_some();
        self.has_rules |= schema.get("x-kubernetes-validations").is_some();
        unsupported(schema, path, self.findings);
        extensions::check(schema, path, self.findings);
        rules::check_texts(schema, path, self.findings);
        if let Some(level) = level {
            structural::check(schema, level, path, &mut self.structure);
        }
    }

    fn alternatives(&mut self, schema: &Value, path: &Path<'_>) {
        if let Some(not) = schema.get("not") {
            self.schema(not, None, &Path::Keyword(path, "not"));
        }
        for name in LISTS {
            let items = schema.get(name).and_then(Value::as_array).into_iter().flatten();
            for (at, below) in items.enumerate() {
                self.schema(below, None, &Path::Alternative(path, name, at));
            }
        }
    }
}

/// A schema that no check applies to, as nine in ten: a type, descriptions and bounds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    /// No schemas are below it.
    Leaf,
    /// There may be some.
    Branch,
}

/// Returns true if a schema is plain, only by its keywords.
fn plain(schema: &Value) -> Option<Plain> {
    let mut kind = "";
    let (mut has_items, mut has_fields) = (false, false);
    for (keyword, value) in schema.as_object()? {
        match keyword.as_str() {
            "type" => kind = value.as_str().unwrap_or_default(),
            "items" if value.is_object() => has_items = true,
            "properties" => has_fields = true,
            "description" | "title" | "format" | "enum" | "required" | "minimum" | "maximum" | "minLength"
            | "maxLength" | "minItems" | "maxItems" | "example" => {}
            _ => return None,
        }
    }
    match kind {
        "array" if !has_items => None,
        "array" | "boolean" | "integer" | "number" | "object" | "string" if has_items || has_fields => {
            Some(Plain::Branch)
        }
        "boolean" | "integer" | "number" | "object" | "string" => Some(Plain::Leaf),
        _ => None,
    }
}

fn unsupported(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    match text(schema, "type") {
        "" => {}
        "null" => {
            findings.forbidden(
                &format!("{path}.type"),
                "type cannot be set to null, use nullable as an alternative",
            );
        }
        kind if !TYPES.contains(&kind) => findings.not_supported(&format!("{path}.type"), kind, &TYPES),
        _ => {}
    }
    // Of these the server forbids even the empty ones.
    let always = ["additionalItems", "dependencies", "$ref"];
    let filled = ["id", "$schema", "patternProperties", "definitions"];
    let found = always.into_iter().filter(|name| schema.get(name).is_some());
    for name in found.chain(filled.into_iter().filter(|name| is_set(schema, name))) {
        findings.forbidden(&format!("{path}.{name}"), format!("{name} is not supported"));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        findings.forbidden(
            &format!("{path}.items"),
            "items must be a schema object and not an array",
        );
    }
    if flag(schema, "uniqueItems") {
        let problem = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        findings.forbidden(&format!("{path}.uniqueItems"), problem);
    }
    let others = schema.get("additionalProperties");
    if others.is_some_and(|others| *others != Value::Bool(true)) && is_set(schema, "properties") {
        let problem = "additionalProperties and properties are mutual exclusive";
        findings.forbidden(&format!("{path}.additionalProperties"), problem);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let field = format!("{path}.x-kubernetes-preserve-unknown-fields");
        findings.invalid(&field, BadValue::word(false), "must be true or undefined");
    }
}

/// Visits the schemas below a schema that declare fields: properties, items, additionalProperties.
fn each_below(schema: &Value, path: &Path<'_>, visit: &mut dyn FnMut(&Value, &Path<'_>)) {
    let (mut items, mut others, mut fields) = (None, None, None);
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match keyword.as_str() {
            "items" => items = Some(value),
            "additionalProperties" => others = Some(value),
            "properties" => fields = value.as_object(),
            _ => {}
        }
    }
    for (name, below) in [("items", items), ("additionalProperties", others)] {
        if let Some(below) = below.filter(|below| below.is_object()) {
            visit(below, &Path::Keyword(path, name));
        }
    }
    for (name, below) in fields.into_iter().flatten() {
        visit(below, &Path::Property(path, name));
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&NONE)
        .iter()
}

fn text<'s>(schema: &'s Value, name: &str) -> &'s str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// Returns true if a field is not empty: empty lists, maps and strings count as unset.
fn is_set(schema: &Value, name: &str) -> bool {
    match schema.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty() || ONE.contains(&name) || POINTERS.contains(&name),
        Some(_) => true,
    }
}

/// A JSON value in a message.
fn shown(value: &Value) -> BadValue {
    match value {
        Value::String(text) => BadValue::text(text),
        other => BadValue::word(other),
    }
}
