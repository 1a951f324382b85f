//! The metadata that every object must have in good order, as the API server checks it for a cluster-scoped object.

use std::collections::BTreeMap;

use serde_json::Value;

use super::context::field;
use crate::object::{label_value_problems, qualified_name_problems};
use olmkit_go::strconv::quote;

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The API server's message, including the field.
    pub text: String,
    /// JSON pointer to the field.
    pub pointer: &'static str,
    /// The fix.
    pub hint: &'static str,
}

/// Maximum bytes of all annotations of one object.
const MOST_ANNOTATION_BYTES: usize = 256 << 10;

/// Checks the metadata of an object that was read without types.
pub fn check(object: &Value) -> Vec<Fault> {
    let empty = Value::Null;
    let metadata = object.get("metadata").unwrap_or(&empty);
    let mut faults = Vec::new();
    let mut add = |pointer: &'static str, hint: &'static str, text: String| {
        let place = pointer.trim_start_matches('/').replace('/', ".");
        faults.push(Fault {
            text: format!("{place}{text}"),
            pointer,
            hint,
        });
    };
    if field(metadata, "name").is_empty() {
        let hint = "give the object a name; quote it if it looks like a number or a boolean";
        add(
            "/metadata/name",
            hint,
            ": Required value: name or generateName is required".to_string(),
        );
    }
    if !field(metadata, "namespace").is_empty() {
        let hint = "remove the namespace: OLM installs the object where the operator is installed";
        add(
            "/metadata/namespace",
            hint,
            ": Forbidden: not allowed on this type".to_string(),
        );
    }
    if let Some(generation) = metadata
        .get("generation")
        .and_then(Value::as_i64)
        .filter(|generation| *generation < 0)
    {
        let text = format!(": Invalid value: {generation}: must be greater than or equal to 0");
        add("/metadata/generation", "remove the field: the API server sets it", text);
    }
    labels(metadata, &mut add);
    annotations(metadata, &mut add);
    owner_references(metadata, &mut add);
    finalizers(metadata, &mut add);
    managed_fields(metadata, &mut add);
    faults
}

type Add<'a> = dyn FnMut(&'static str, &'static str, String) + 'a;

/// A map of strings. Nulls are empty strings. Any other value makes the whole map count as absent.
fn string_map<'v>(metadata: &'v Value, key: &str) -> BTreeMap<&'v str, &'v str> {
    let Some(map) = metadata.get(key).and_then(Value::as_object) else {
        return BTreeMap::new();
    };
    let read = |value: &'v Value| if value.is_null() { Some("") } else { value.as_str() };
    let entries: Option<BTreeMap<_, _>> = map
        .iter()
        .map(|(key, value)| Some((key.as_str(), read(value)?)))
        .collect();
    entries.unwrap_or_default()
}

fn labels(metadata: &Value, add: &mut Add<'_>) {
    let hint = "a label is `prefix/name: value`; name and value have at most 63 letters, digits, `-`, `_`, `.`";
    for (key, value) in string_map(metadata, "labels") {
        for message in qualified_name_problems(key) {
            add(
                "/metadata/labels",
                hint,
                format!(": Invalid value: {}: {message}", quote(key)),
            );
        }
        for message in label_value_problems(value) {
            add(
                "/metadata/labels",
                hint,
                format!(": Invalid value: {}: {message}", quote(value)),
            );
        }
    }
}

fn annotations(metadata: &Value, add: &mut Add<'_>) {
    let annotations = string_map(metadata, "annotations");
    for key in annotations.keys() {
        for message in qualified_name_problems(&key.to_lowercase()) {
            let hint = "an annotation's key is `prefix/name`; the name has at most 63 letters, digits, `-`, `_`, `.`";
            add(
                "/metadata/annotations",
                hint,
                format!(": Invalid value: {}: {message}", quote(key)),
            );
        }
    }
    if annotations
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum::<usize>()
        > MOST_ANNOTATION_BYTES
    {
        let text = format!(": Too long: may not be more than {MOST_ANNOTATION_BYTES} bytes");
        add("/metadata/annotations", "keep large data in a ConfigMap", text);
    }
}

fn owner_references(metadata: &Value, add: &mut Add<'_>) {
    let pointer = "/metadata/ownerReferences";
    let hint = "remove the owner references: OLM sets them";
    let Some(references) = metadata.get("ownerReferences").and_then(Value::as_array) else {
        return;
    };
    if !references.iter().all(Value::is_object) {
        return;
    }
    let mut first_controller: Option<String> = None;
    for reference in references {
        let (api_version, kind) = (field(reference, "apiVersion"), field(reference, "kind"));
        let version = match api_version.matches('/').count() {
            0 => api_version,
            1 => api_version.split_once('/').map_or("", |(_, version)| version),
            _ => "",
        };
        let checks = [
            (
                "apiVersion",
                version.is_empty(),
                api_version,
                "version must not be empty",
            ),
            ("kind", kind.is_empty(), kind, "kind must not be empty"),
            (
                "name",
                field(reference, "name").is_empty(),
                "",
                "name must not be empty",
            ),
            ("uid", field(reference, "uid").is_empty(), "", "uid must not be empty"),
        ];
        for (name, bad, value, message) in checks {
            if bad {
                add(
                    pointer,
                    hint,
                    format!(".{name}: Invalid value: {}: {message}", quote(value)),
                );
            }
        }
        if api_version == "v1" && kind == "Event" {
            let text = format!(
                ": Invalid value: {}: /v1, Kind=Event is disallowed from being an owner",
                dump_owner(reference)
            );
            add(pointer, hint, text);
        }
        if reference.get("controller") == Some(&Value::Bool(true)) {
            let name = format!("{kind}/{}", field(reference, "name"));
            match &first_controller {
                None => first_controller = Some(name),
                Some(first) => {
                    let all: Vec<String> = references.iter().map(dump_owner).collect();
                    let text = format!(
                        ": Invalid value: []v1.OwnerReference{{{}}}: Only one reference can have Controller set to true. \
                         Found \"true\" in references for {first} and {name}",
                        all.join(", ")
                    );
                    add(pointer, hint, text);
                }
            }
        }
    }
}

/// An owner reference as `%#v` prints it. Pointers print as addresses, which no two runs share.
fn dump_owner(reference: &Value) -> String {
    let pointer = |key: &str| match reference.get(key) {
        Some(Value::Bool(_)) => "(*bool)(0x0)",
        _ => "(*bool)(nil)",
    };
    format!(
        "v1.OwnerReference{{APIVersion:{}, Kind:{}, Name:{}, UID:{}, Controller:{}, BlockOwnerDeletion:{}}}",
        quote(field(reference, "apiVersion")),
        quote(field(reference, "kind")),
        quote(field(reference, "name")),
        quote(field(reference, "uid")),
        pointer("controller"),
        pointer("blockOwnerDeletion"),
    )
}

fn finalizers(metadata: &Value, add: &mut Add<'_>) {
    let Some(list) = metadata.get("finalizers").and_then(Value::as_array) else {
        return;
    };
    let Some(finalizers) = list.iter().map(Value::as_str).collect::<Option<Vec<_>>>() else {
        return;
    };
    let hint = "a finalizer is `domain/name`; leave finalizers to the operator";
    for finalizer in &finalizers {
        for message in qualified_name_problems(finalizer) {
            add(
                "/metadata/finalizers",
                hint,
                format!(": Invalid value: {}: {message}", quote(finalizer)),
            );
        }
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let all: Vec<String> = finalizers.iter().map(|finalizer| quote(finalizer)).collect();
        let text = format!(
            ": Invalid value: []string{{{}}}: finalizer orphan and foregroundDeletion cannot be both set",
            all.join(", ")
        );
        add("/metadata/finalizers", hint, text);
    }
}

fn managed_fields(metadata: &Value, add: &mut Add<'_>) {
    let pointer = "/metadata/managedFields";
    let hint = "remove managedFields: the API server maintains them";
    let list = metadata
        .get("managedFields")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    for (at, entry) in list.iter().enumerate() {
        let operation = field(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            add(
                pointer,
                hint,
                format!(
                    "[{at}].operation: Invalid value: {}: must be `Apply` or `Update`",
                    quote(operation)
                ),
            );
        }
        let fields_type = field(entry, "fieldsType");
        if !fields_type.is_empty() && fields_type != "FieldsV1" {
            add(
                pointer,
                hint,
                format!(
                    "[{at}].fieldsType: Invalid value: {}: must be `FieldsV1`",
                    quote(fields_type)
                ),
            );
        }
        let manager = field(entry, "manager");
        if manager.len() > 128 {
            add(
                pointer,
                hint,
                format!("[{at}].manager: Too long: may not be more than 128 bytes"),
            );
        }
        for (position, c) in manager.char_indices().filter(|(_, c)| c.is_control()) {
            let text = format!(
                "[{at}].manager: Invalid value: {}: invalid character U+{:04X} (at position {position})",
                quote(manager),
                u32::from(c)
            );
            add(pointer, hint, text);
        }
        if field(entry, "subresource").len() > 256 {
            add(
                pointer,
                hint,
                format!("[{at}].subresource: Too long: may not be more than 256 bytes"),
            );
        }
    }
}

/// Several errors as Kubernetes prints them: without repeats, in brackets unless it is only one.
pub fn aggregate(texts: &[String]) -> String {
    let mut different: Vec<&str> = Vec::new();
    for text in texts {
        if !different.contains(&text.as_str()) {
            different.push(text);
        }
    }
    match different.as_slice() {
        [single] => (*single).to_string(),
        several => format!("[{}]", several.join(", ")),
    }
}
