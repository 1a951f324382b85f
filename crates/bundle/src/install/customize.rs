//! The user's changes to Deployments: OLM v1's `deploymentConfig`, which is the `config` of OLM v0's Subscription.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use olmkit_base::object::SetAt as _;

use super::{fields_mut, items_mut, text};

/// Applies a configuration to a Deployment.
pub(super) fn apply(deployment: &mut Value, config: &Value) {
    let list = |field: &str| {
        let list = config.get(field).and_then(Value::as_array);
        list.map(Vec::as_slice).unwrap_or_default()
    };
    if let Some(pod) = deployment.pointer_mut("/spec/template/spec") {
        if let Some(containers) = pod.get_mut("containers").and_then(Value::as_array_mut) {
            for container in containers {
                override_named(container, "env", list("env"));
                append_new(container, "envFrom", list("envFrom"));
                override_named(container, "volumeMounts", list("volumeMounts"));
                if let Some(resources) = config.get("resources") {
                    container.set_at(&["resources"], resources.clone());
                }
            }
        }
        override_named(pod, "volumes", list("volumes"));
        append_new(pod, "tolerations", list("tolerations"));
        if let Some(selector) = config.get("nodeSelector") {
            pod.set_at(&["nodeSelector"], selector.clone());
        }
        if let Some(affinity) = config.get("affinity") {
            override_affinity(pod, affinity);
        }
    }
    if let Some(Value::Object(annotations)) = config.get("annotations")
        && !annotations.is_empty()
    {
        for place in ["", "/spec/template"] {
            if let Some(metadata) = deployment
                .pointer_mut(place)
                .and_then(|object| fields_mut(object, "metadata"))
                && let Some(Value::Object(known)) = Some(metadata.entry("annotations").or_insert_with(|| json!({})))
            {
                add_missing(known, annotations);
            }
        }
    }
}

fn add_missing(known: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        known.entry(key).or_insert_with(|| value.clone());
    }
}

/// New items replace those of the same name, others are appended. Among the new ones, names may repeat.
fn override_named(object: &mut Value, field: &str, news: &[Value]) {
    if news.is_empty() {
        return;
    }
    let Some(items) = items_mut(object, field) else { return };
    let places = items.iter().enumerate();
    let places: HashMap<String, usize> = places.map(|(at, item)| (text(item, "name").to_owned(), at)).collect();
    for new in news {
        match places.get(text(new, "name")).and_then(|at| items.get_mut(*at)) {
            Some(known) => *known = new.clone(),
            None => items.push(new.clone()),
        }
    }
}

fn append_new(object: &mut Value, field: &str, news: &[Value]) {
    if news.is_empty() {
        return;
    }
    let Some(items) = items_mut(object, field) else { return };
    for new in news {
        if !items.contains(new) {
            items.push(new.clone());
        }
    }
}

const AFFINITIES: [&str; 3] = ["nodeAffinity", "podAffinity", "podAntiAffinity"];

/// Each of the three kinds is replaced on its own. An empty one erases, and `{}` erases them all.
fn override_affinity(pod: &mut Value, affinity: &Value) {
    let Some(pod) = pod.as_object_mut() else { return };
    if AFFINITIES.iter().all(|kind| affinity.get(kind).is_none()) {
        pod.remove("affinity");
        return;
    }
    let Some(known) = pod.entry("affinity").or_insert_with(|| json!({})).as_object_mut() else {
        return;
    };
    for kind in AFFINITIES {
        match affinity.get(kind) {
            Some(new) if is_empty(new) => drop(known.remove(kind)),
            Some(new) => drop(known.insert(kind.to_owned(), new.clone())),
            None => {}
        }
    }
    if known.values().all(is_empty) {
        pod.remove("affinity");
    }
}

fn is_empty(affinity: &Value) -> bool {
    let none = |list: Option<&Value>| list.and_then(Value::as_array).is_none_or(Vec::is_empty);
    let required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution");
    let no_required = match required {
        Some(Value::Object(terms)) => none(terms.get("nodeSelectorTerms")),
        other => none(other),
    };
    no_required && none(affinity.get("preferredDuringSchedulingIgnoredDuringExecution"))
}
