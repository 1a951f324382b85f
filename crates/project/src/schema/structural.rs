//! Walks a schema: references are inlined, and each node is converted to the structural form.

use serde_json::{Map, Value, json};

use super::combine;
use super::keywords::KEPT;
use super::{DESCRIPTOR_EXTENSION, Error, defaults, scalar};
use olmkit_base::limits::SCHEMA_DEPTH;

/// Options for normalization.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Keeps `nullable: true` on optional fields. Off by default: `Option<T>` in Rust means "may be absent", as in Go,
    /// and a nullable field keeps explicit nulls instead of having them pruned or defaulted. Enums without data are
    /// never nullable, because the server rejects null for them even then.
    pub keep_nullable: bool,
    /// Omits descriptions. Embedded Kubernetes types add tens of kilobytes of them. Client-side `kubectl apply` cannot
    /// apply a CRD above 262144 bytes.
    pub strip_descriptions: bool,
}

/// Gives a derived schema the structural form that the API server demands. References to definitions inside the schema
/// are inlined.
///
/// ```
/// use serde_json::json;
/// let derived = json!({
///     "$schema": "https://json-schema.org/draft/2020-12/schema",
///     "title": "Spec",
///     "type": "object",
///     "properties": {"port": {"type": ["integer", "null"], "format": "uint16", "minimum": 0.0}},
/// });
/// let structural = olmkit_project::schema::normalise_schema(derived, &Default::default())?;
/// assert_eq!(structural, json!({
///     "type": "object",
///     "properties": {"port": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535}},
/// }));
/// # Ok::<(), olmkit_project::schema::Error>(())
/// ```
///
/// # Errors
/// When a reference cannot be inlined, or alternatives of an enum have no structural form. See [`Error`].
pub fn normalise_schema(schema: Value, options: &Options) -> Result<Value, Error> {
    let Value::Object(mut root) = schema else {
        return Err(Error::NotASchema {
            path: ".".into(),
            what: "the root".into(),
        });
    };
    let mut definitions = Map::new();
    for keyword in ["$defs", "definitions"] {
        if let Some(Value::Object(found)) = root.remove(keyword) {
            definitions.extend(found);
        }
    }
    let mut walk = Walk {
        definitions,
        options,
        inlining: Vec::new(),
    };
    let mut value = Value::Object(root);
    walk.node(&mut value, "", 0)?;
    Ok(value)
}

struct Walk<'a> {
    definitions: Map<String, Value>,
    options: &'a Options,
    /// References that are being inlined, outermost first: one that appears twice is recursive.
    inlining: Vec<String>,
}

impl Walk<'_> {
    fn node(&mut self, schema: &mut Value, path: &str, depth: usize) -> Result<(), Error> {
        // The deepest of Kubernetes' own types have about 20 levels.
        if depth > SCHEMA_DEPTH.count() {
            return Err(Error::TooDeep {
                path: shown(path),
                limit: SCHEMA_DEPTH.count(),
            });
        }
        // `true` accepts everything. `false` accepts nothing, which no structural schema can express.
        if let Value::Bool(_) = schema {
            *schema = json!({"x-kubernetes-preserve-unknown-fields": true});
            return Ok(());
        }
        let Value::Object(node) = schema else {
            return Err(Error::NotASchema {
                path: shown(path),
                what: "the value".into(),
            });
        };
        let entered = self.inlining.len();
        self.inline(node, path)?;
        types(node, self.options);
        combine::normalise(node, &shown(path))?;
        // Alternatives may have been references: their content needs the same conversion.
        types(node, self.options);
        values(node);
        objects(node);
        scalar::normalise(node);
        self.children(node, path, depth)?;
        self.finish(node);
        self.inlining.truncate(entered);
        Ok(())
    }

    /// Replaces `$ref` on the node and on its alternatives (whose properties are about to be hoisted).
    fn inline(&mut self, node: &mut Map<String, Value>, path: &str) -> Result<(), Error> {
        while let Some(Value::String(reference)) = node.remove("$ref") {
            let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
            let fail = |reason| Error::Reference {
                path: shown(path),
                reference: reference.clone(),
                reason,
            };
            if !reference.starts_with('#') {
                return Err(fail("it leads out of the schema"));
            }
            if self.inlining.contains(&name) {
                return Err(fail(
                    "the type contains itself; a CRD schema cannot be recursive. Give the field type \
                                 serde_json::Value",
                ));
            }
            let Some(Value::Object(target)) = self.definitions.get(&name).cloned() else {
                return Err(fail("there is no such definition"));
            };
            self.inlining.push(name);
            combine::merge_into(node, target, &shown(path))?;
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(Value::Array(mut alternatives)) = node.remove(keyword) else {
                continue;
            };
            for alternative in alternatives.iter_mut().filter_map(Value::as_object_mut) {
                self.inline(alternative, path)?;
                self.inline_properties(alternative, path)?;
            }
            node.insert(keyword.into(), Value::Array(alternatives));
        }
        Ok(())
    }

    /// Two variants may have the same field: comparing its types requires resolved references.
    fn inline_properties(&mut self, variant: &mut Map<String, Value>, path: &str) -> Result<(), Error> {
        let Some(Value::Object(properties)) = variant.get_mut("properties") else {
            return Ok(());
        };
        for (name, property) in properties {
            if let Value::Object(property) = property {
                let entered = self.inlining.len();
                self.inline(property, &format!("{path}.{name}"))?;
                self.inlining.truncate(entered);
            }
        }
        Ok(())
    }

    fn children(&mut self, node: &mut Map<String, Value>, path: &str, depth: usize) -> Result<(), Error> {
        if let Some(Value::Object(properties)) = node.get_mut("properties") {
            for (name, schema) in properties {
                self.node(schema, &format!("{path}.{name}"), depth + 1)?;
            }
        }
        if let Some(items) = node.get_mut("items") {
            if let Value::Array(tuple) = items {
                // A tuple: the server supports only lists of one type.
                let first = tuple.first().cloned().unwrap_or(Value::Bool(true));
                *items = if tuple.iter().all(|other| *other == first) {
                    first
                } else {
                    Value::Bool(true)
                };
            }
            self.node(items, &format!("{path}[]"), depth + 1)?;
        }
        if let Some(extra @ Value::Object(_)) = node.get_mut("additionalProperties") {
            self.node(extra, &format!("{path}.*"), depth + 1)?;
        }
        Ok(())
    }

    /// Final steps after the children are converted: removes keywords that do not belong in a CRD, adds missing types,
    /// converts lists.
    fn finish(&self, node: &mut Map<String, Value>) {
        combine::describe_variants(node);
        lists(node);
        if self.options.strip_descriptions {
            node.remove("description");
        }
        // Descriptors are read from the normalised tree before they are stripped. See crd::normalise.
        node.retain(|keyword, _| KEPT.contains(&keyword.as_str()) || keyword == DESCRIPTOR_EXTENSION);
        // The server compares null with the values of an enum and never finds it, even if it is among them. For an enum
        // that is not nullable it drops nulls, which is better than rejecting them.
        if !self.options.keep_nullable || node.contains_key("enum") {
            node.remove("nullable");
        }
        missing_type(node);
        defaults::normalise(node);
        if let Some(Value::Array(required)) = node.get_mut("required") {
            required.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            required.dedup();
            if required.is_empty() {
                node.remove("required");
            }
        }
        for empty in ["properties", "enum"] {
            let is_empty = match node.get(empty) {
                Some(Value::Object(map)) => map.is_empty(),
                Some(Value::Array(list)) => list.is_empty(),
                _ => false,
            };
            if is_empty {
                node.remove(empty);
            }
        }
    }
}

fn shown(path: &str) -> String {
    if path.is_empty() {
        ".".to_owned()
    } else {
        path.to_owned()
    }
}

/// Type lists with null, null among enum values, `const`.
fn types(node: &mut Map<String, Value>, options: &Options) {
    let mut nullable = false;
    if let Some(Value::Array(types)) = node.get("type") {
        let mut rest: Vec<Value> = types
            .iter()
            .filter(|own| own.as_str() != Some("null"))
            .cloned()
            .collect();
        nullable = rest.len() < types.len();
        let is_int_or_string = rest.len() == 2 && rest.contains(&json!("integer")) && rest.contains(&json!("string"));
        match rest.len() {
            1 => {
                node.insert("type".into(), rest.remove(0));
            }
            _ if is_int_or_string => {
                node.remove("type");
                node.insert("x-kubernetes-int-or-string".into(), true.into());
            }
            _ => {
                // Several types: any value is accepted, because a structural schema has one type.
                node.remove("type");
                node.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
            }
        }
    }
    if let Some(value) = node.remove("const") {
        node.entry("enum").or_insert_with(|| Value::Array(vec![value]));
    }
    if let Some(Value::Array(values)) = node.get_mut("enum") {
        let before = values.len();
        values.retain(|value| !value.is_null());
        nullable |= values.len() < before;
    }
    if nullable && options.keep_nullable {
        node.insert("nullable".into(), true.into());
    }
}

/// `examples` of newer JSON Schema is `example` of OpenAPI 3.0.
fn values(node: &mut Map<String, Value>) {
    if let Some(Value::Array(examples)) = node.remove("examples")
        && let Some(first) = examples.into_iter().next()
    {
        node.entry("example").or_insert(first);
    }
    if let Some(first) = node.remove("prefixItems") {
        node.entry("items").or_insert(first);
    }
}

/// `additionalProperties` with `properties`, closed and open objects.
fn objects(node: &mut Map<String, Value>) {
    keys_by_pattern(node);
    let open = match node.get("additionalProperties") {
        // The server prunes unknown fields (and clients can ask it to reject them), so no keyword is needed.
        Some(Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        // A flattened map with declared properties.
        Some(Value::Object(_))
            if node
                .get("properties")
                .and_then(Value::as_object)
                .is_some_and(|map| !map.is_empty()) =>
        {
            true
        }
        Some(Value::Object(extra)) if extra.is_empty() => true,
        _ => return,
    };
    node.remove("additionalProperties");
    if open {
        node.entry("type").or_insert_with(|| "object".into());
        node.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
    }
}

/// A map with numeric keys has a pattern for its keys. The server does not support such patterns: any key is accepted,
/// but the values keep their type.
fn keys_by_pattern(node: &mut Map<String, Value>) {
    let Some(Value::Object(patterns)) = node.remove("patternProperties") else {
        return;
    };
    let mut schemas = patterns.into_iter().map(|(_, schema)| schema);
    let plain = !node.contains_key("properties") && !matches!(node.get("additionalProperties"), Some(Value::Object(_)));
    let values = match (schemas.next(), schemas.next()) {
        (Some(only), None) if plain => only,
        _ => Value::Bool(true),
    };
    node.insert("additionalProperties".into(), values);
}

/// Sets, and the keys of list maps.
fn lists(node: &mut Map<String, Value>) {
    if node.remove("uniqueItems") == Some(Value::Bool(true)) && !node.contains_key("x-kubernetes-list-type") {
        let scalar = node
            .get("items")
            .and_then(|items| items.get("type"))
            .and_then(Value::as_str)
            .is_some_and(|own| !matches!(own, "object" | "array"));
        if scalar {
            node.insert("x-kubernetes-list-type".into(), "set".into());
        }
    }
    if node.get("x-kubernetes-list-type").and_then(Value::as_str) != Some("map") {
        return;
    }
    let keys: Vec<Value> = match node.get("x-kubernetes-list-map-keys") {
        Some(Value::Array(keys)) => keys.clone(),
        _ => return,
    };
    let Some(Value::Object(items)) = node.get_mut("items") else {
        return;
    };
    let defaulted: Vec<Value> = items
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| {
            properties
                .iter()
                .filter(|(_, schema)| schema.get("default").is_some())
                .map(|(name, _)| name.as_str().into())
                .collect()
        })
        .unwrap_or_default();
    let required = items.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required {
        for key in keys {
            if !required.contains(&key) && !defaulted.contains(&key) {
                required.push(key);
            }
        }
        required.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
        if required.is_empty() {
            items.remove("required");
        }
    }
}

/// A node without a type gets the one its keywords imply, or accepts every value.
fn missing_type(node: &mut Map<String, Value>) {
    if node.contains_key("type")
        || node.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true))
        || node.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
    {
        return;
    }
    let implied = if node.contains_key("properties") || node.contains_key("additionalProperties") {
        Some("object")
    } else if node.contains_key("items") {
        Some("array")
    } else {
        match node
            .get("enum")
            .and_then(Value::as_array)
            .and_then(|values| values.first())
        {
            Some(Value::String(_)) => Some("string"),
            Some(Value::Bool(_)) => Some("boolean"),
            Some(Value::Number(number)) => Some(if number.is_f64() { "number" } else { "integer" }),
            _ => None,
        }
    };
    match implied {
        Some(implied) => node.insert("type".into(), implied.into()),
        None => node.insert("x-kubernetes-preserve-unknown-fields".into(), true.into()),
    };
}
