//! The metadata of any object, and small kinds.

use std::collections::HashSet;

use serde_json::Value;

use super::{Fields, is_set, list, maps, number, object, text};
use crate::admission::forms;
use crate::admission::walk::{Walk, is_empty, labels};

/// Maximum bytes of a ConfigMap's or Secret's data, and of all annotations of an object.
const MOST_DATA: usize = 1 << 20;
const MOST_ANNOTATIONS: usize = 256 << 10;

pub(super) fn metadata(walk: &mut Walk<'_>, map: &Fields) {
    if let Some((key, problem)) = object(map, "labels").and_then(labels) {
        walk.reject_at(&["labels", &key.unwrap_or_default()], problem);
    }
    let mut size = 0;
    for (key, value) in object(map, "annotations").into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        if let Some(problem) = forms::problem("qualified", &key.to_lowercase()) {
            walk.reject_at(&["annotations", key], problem);
        }
    }
    if size > MOST_ANNOTATIONS {
        walk.reject_at(&["annotations"], format!("must not exceed {MOST_ANNOTATIONS} bytes"));
    }
    // The API server ignores the rest in the template of a Deployment.
    if walk.is_below("template") {
        return;
    }
    for (index, finalizer) in list(map, "finalizers").iter().enumerate() {
        if let Some(problem) = forms::problem("qualified", finalizer.as_str().unwrap_or_default()) {
            walk.reject_at(&["finalizers", &index.to_string()], problem);
        }
    }
    for (index, owner) in maps(map, "ownerReferences") {
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, key).is_empty() {
                walk.reject_at(&["ownerReferences", &index.to_string(), key], "must not be empty");
            }
        }
    }
}

pub(super) fn config_map(walk: &mut Walk<'_>, map: &Fields) {
    let mut size = 0;
    for bag in ["data", "binaryData"] {
        for (key, value) in object(map, bag).into_iter().flatten() {
            let length = value.as_str().map_or(0, str::len);
            size += if bag == "data" { length } else { length / 4 * 3 };
            if let Some(problem) = forms::problem("configkey", key) {
                walk.reject_at(&[bag, key], problem);
            } else if bag == "data" && object(map, "binaryData").is_some_and(|other| other.contains_key(key)) {
                walk.reject_at(&[bag, key], "must not be in binaryData too");
            }
        }
    }
    if size > MOST_DATA + 4 {
        walk.reject(format!("the data must not exceed {MOST_DATA} bytes"));
    }
}

pub(super) fn secret(walk: &mut Walk<'_>, map: &Fields) {
    let mut keys = HashSet::new();
    for bag in ["data", "stringData"] {
        for key in object(map, bag).into_iter().flatten().map(|(key, _)| key) {
            keys.insert(key.as_str());
            if let Some(problem) = forms::problem("configkey", key) {
                walk.reject_at(&[bag, key], problem);
            }
        }
    }
    let needed: &[&str] = match text(map, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" if !keys.contains("username") => &["password"],
        "kubernetes.io/service-account-token" => {
            let account = map
                .get("metadata")
                .and_then(|metadata| metadata.get("annotations"))
                .and_then(|annotations| annotations.get("kubernetes.io/service-account.name"));
            if is_empty(account) {
                walk.reject_at(&["type"], "needs the annotation kubernetes.io/service-account.name");
            }
            &[]
        }
        _ => &[],
    };
    for key in needed.iter().filter(|key| !keys.contains(**key)) {
        walk.reject_at(&["data"], format!("{key} is required for a Secret of this type"));
    }
}

pub(super) fn priority_class(walk: &mut Walk<'_>, map: &Fields) {
    let name = map
        .get("metadata")
        .and_then(|metadata| metadata.get("name"))
        .and_then(Value::as_str);
    let name = name.unwrap_or_default();
    if name.starts_with("system-") {
        if !matches!(name, "system-cluster-critical" | "system-node-critical") {
            walk.reject_at(&["metadata", "name"], "names with the prefix system- are reserved");
        }
    } else if number(map, "value").is_some_and(|value| value > 1_000_000_000) {
        walk.reject_at(&["value"], "must be at most 1000000000");
    }
}

pub(super) fn budget(walk: &mut Walk<'_>, map: &Fields) {
    if is_set(map, "minAvailable") && is_set(map, "maxUnavailable") {
        walk.reject("minAvailable and maxUnavailable cannot be both set");
    }
}
