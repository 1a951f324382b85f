//! The CustomResourceDefinition around the schema.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use olmkit_base::object::SetAt as _;
use serde_json::{Map, Value, json};

use super::{DESCRIPTOR_EXTENSION, Error, Options, normalise_schema};

/// Gives a derived CustomResourceDefinition the form that `controller-gen` writes: structural schemas with `apiVersion`,
/// `kind` and `metadata` at their root, no empty lists, no status, versions sorted.
///
/// The result is a value in the API server's JSON form, ready for the YAML writer.
///
/// # Errors
/// When a version has no schema, or one that has no structural form.
pub fn normalise(crd: &CustomResourceDefinition, options: &Options) -> Result<Value, Error> {
    normalise_with(crd, &BTreeMap::new(), options)
}

/// As [`normalise`], with the schemas of some versions as `schemars` prints them. `kube`'s conversion to
/// `CustomResourceDefinition` loses keywords, such as the patterns of numeric keys.
pub fn normalise_with(
    crd: &CustomResourceDefinition,
    schemas: &BTreeMap<String, Value>,
    options: &Options,
) -> Result<Value, Error> {
    let mut value = serde_json::to_value(crd)?;
    let name = crd.metadata.name.clone().unwrap_or_default();
    let fail = |reason: String| Error::Definition {
        name: name.clone(),
        reason,
    };
    let Some(root) = value.as_object_mut() else {
        return Err(fail("it is not an object".into()));
    };
    root.remove("status");
    if let Some(Value::Object(metadata)) = root.get_mut("metadata") {
        metadata.remove("creationTimestamp");
    }
    let Some(Value::Object(spec)) = root.get_mut("spec") else {
        return Err(fail("it has no spec".into()));
    };
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        drop_empty(names, &["shortNames", "categories"]);
        names
            .entry("listKind")
            .or_insert_with(|| format!("{}List", crd.spec.names.kind).into());
    }
    let kind = spec
        .get("names")
        .and_then(|names| names.get("kind"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let (kind, plural) = (kind.to_owned(), crd.spec.names.plural.clone());
    let Some(Value::Array(versions)) = spec.get_mut("versions") else {
        return Err(fail("it has no versions".into()));
    };
    for version in &mut *versions {
        let Some(version) = version.as_object_mut() else {
            continue;
        };
        drop_empty(
            version,
            &["additionalPrinterColumns", "selectableFields", "subresources"],
        );
        let own = version
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if let Some(schema) = schemas.get(&own) {
            version.insert("schema".into(), json!({ "openAPIV3Schema": schema }));
        }
        let Some(schema) = version
            .get_mut("schema")
            .and_then(|schema| schema.get_mut("openAPIV3Schema"))
        else {
            return Err(fail(format!("version {own} has no schema; the API server demands one")));
        };
        let mut normal = normalise_schema(schema.take(), options)?;
        strip_extension(&mut normal);
        finish_root(&mut normal, &kind, &plural, options);
        *schema = normal;
    }
    versions.sort_by(|one, other| {
        one.get("name")
            .and_then(Value::as_str)
            .cmp(&other.get("name").and_then(Value::as_str))
    });
    check_versions(versions).map_err(fail)?;
    Ok(value)
}

fn check_versions(versions: &[Value]) -> Result<(), String> {
    let count = |flag: &str| {
        versions
            .iter()
            .filter(|version| version.get(flag) == Some(&Value::Bool(true)))
            .count()
    };
    match (count("storage"), count("served")) {
        (0, _) => Err("no version is the storage version".into()),
        (_, 0) => Err("no version is served".into()),
        (1, _) => Ok(()),
        (several, _) => Err(format!(
            "{several} versions claim to be the storage version; exactly one may"
        )),
    }
}

/// Merges the definitions of one kind's versions, each derived from a separate Rust type.
///
/// # Errors
/// When there is none, when group, kind, scope or names differ, or when `stored` is not among the versions.
pub fn merge_versions(crds: Vec<CustomResourceDefinition>, stored: &str) -> Result<CustomResourceDefinition, Error> {
    let mut crds = crds.into_iter();
    let Some(mut merged) = crds.next() else {
        return Err(Error::Definition {
            name: "(none)".into(),
            reason: "no version was given".into(),
        });
    };
    let name = merged.metadata.name.clone().unwrap_or_default();
    let fail = |reason: String| Error::Definition {
        name: name.clone(),
        reason,
    };
    for other in crds {
        if other.spec.group != merged.spec.group
            || other.spec.scope != merged.spec.scope
            || other.spec.names.kind != merged.spec.names.kind
            || other.spec.names.plural != merged.spec.names.plural
        {
            let theirs = other.metadata.name.unwrap_or_default();
            return Err(fail(format!(
                "group, kind, plural and scope must be equal in all versions; {theirs} differs"
            )));
        }
        merged.spec.versions.extend(other.spec.versions);
    }
    for version in &mut merged.spec.versions {
        version.storage = version.name == stored;
    }
    if !merged.spec.versions.iter().any(|version| version.storage) {
        return Err(fail(format!("the storage version {stored} is not among its versions")));
    }
    Ok(merged)
}

fn drop_empty(map: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        let empty = match map.get(*key) {
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if empty {
            map.remove(*key);
        }
    }
}

fn strip_extension(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.remove(DESCRIPTOR_EXTENSION);
            map.values_mut().for_each(strip_extension);
        }
        Value::Array(list) => list.iter_mut().for_each(strip_extension),
        _ => {}
    }
}

/// The root gets the fields of every object, with the descriptions of `controller-gen`, for `kubectl explain`.
fn finish_root(schema: &mut Value, kind: &str, plural: &str, options: &Options) {
    let Some(root) = schema.as_object_mut() else { return };
    root.insert("type".into(), "object".into());
    root.remove("x-kubernetes-preserve-unknown-fields");
    let derived = root
        .get("description")
        .and_then(Value::as_str)
        .is_none_or(|text| text.starts_with("Auto-generated"));
    if derived && !options.strip_descriptions {
        root.insert(
            "description".into(),
            format!("{kind} is the Schema for the {plural} API").into(),
        );
    }
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else {
        return;
    };
    let mut version = json!({"type": "string"});
    let mut own_kind = json!({"type": "string"});
    if !options.strip_descriptions {
        version.set_at(
            &["description"],
            "The versioned schema of this object: group and version. More info: \
            https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"
                .into(),
        );
        own_kind.set_at(
            &["description"],
            "The REST resource this object represents, in CamelCase; it cannot be changed. More \
            info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
                .into(),
        );
    }
    properties.insert("apiVersion".into(), version);
    properties.insert("kind".into(), own_kind);
    properties.insert("metadata".into(), json!({"type": "object"}));
    // The server would write a default for the whole status on creation, without an observation.
    if let Some(Value::Object(status)) = properties.get_mut("status") {
        status.remove("default");
    }
}
