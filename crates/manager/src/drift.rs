//! Drift: whether the applied fields of an object have changed.
//!
//! Applying again would show this at the cost of a request. These functions show it from a watched object: every applied
//! field must be present with its value. Fields of other owners are ignored.
//!
//! This comparison misses fields that are no longer applied. [`fingerprint`] closes that gap: apply it as an annotation,
//! and a changed configuration is a changed annotation.
use std::collections::BTreeSet;

use olmkit_go::quantity;
use serde_json::{Map, Value};

/// A fingerprint of a configuration: 16 hexadecimal digits (FNV-1a, 64 bits), the same on every machine and in every
/// build. It identifies configurations and does not protect against forgery.
pub fn fingerprint(configuration: &Value) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let text = configuration.to_string();
    let hash = text
        .bytes()
        .fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}

/// The path of the first field of `applied` that is not in `live` with the same value. `None` if all are.
///
/// Lists are compared as server-side apply merges them: entries are matched by their key, such as the `name` of a container, the
/// `mountPath` of a volume mount, or `port` and `protocol` of a Service, and further entries are ignored. All other lists must be equal. Quantities are equal if their values are: the API server
/// stores `1024Mi` as `1Gi`. A field that was applied with an empty value may be missing.
///
/// ```
/// use kube_manager::drift::differs;
/// use serde_json::json;
///
/// let applied = json!({ "spec": { "replicas": 2, "containers": [{ "name": "cache", "image": "memcached:1.6" }] } });
/// let live = json!({ "spec": { "replicas": 2, "paused": true, "containers": [
///     { "name": "sidecar" }, { "name": "cache", "image": "memcached:1.5" },
/// ] } });
/// assert_eq!(differs(&applied, &live).as_deref(), Some(".spec.containers[cache].image"));
/// ```
pub fn differs(applied: &Value, live: &Value) -> Option<String> {
    compare(applied, Some(live), &mut String::new(), false)
}

fn compare(applied: &Value, live: Option<&Value>, path: &mut String, quantities: bool) -> Option<String> {
    let Some(live) = live.filter(|live| !live.is_null()) else {
        return (!is_empty(applied)).then(|| path.clone());
    };
    match (applied, live) {
        (Value::Null, live) if is_empty(live) => None,
        (Value::Object(applied), Value::Object(live)) => compare_maps(applied, live, path),
        (Value::Array(applied), Value::Array(live)) => compare_lists(applied, live, path),
        (Value::String(applied), Value::String(live)) if quantities && quantity::equal(applied, live) => None,
        (applied, live) => (applied != live).then(|| path.clone()),
    }
}

fn compare_maps(applied: &Map<String, Value>, live: &Map<String, Value>, path: &mut String) -> Option<String> {
    applied.iter().find_map(|(name, value)| {
        let length = path.len();
        path.push('.');
        path.push_str(name);
        let quantities = path.ends_with(".limits") || path.ends_with(".requests");
        let found = match (value, live.get(name)) {
            (Value::Object(applied), Some(Value::Object(live))) if quantities => {
                compare_quantities(applied, live, path)
            }
            (value, live) => compare(value, live, path, false),
        };
        path.truncate(length);
        found
    })
}

fn compare_quantities(applied: &Map<String, Value>, live: &Map<String, Value>, path: &str) -> Option<String> {
    applied
        .iter()
        .find_map(|(name, value)| compare(value, live.get(name), &mut format!("{path}.{name}"), true))
}

fn compare_lists(applied: &[Value], live: &[Value], path: &mut String) -> Option<String> {
    let keys = KEYS.iter().find_map(|key| keys(applied, key));
    let Some((key, keys)) = keys.filter(|_| !applied.is_empty()) else {
        if applied.len() != live.len() {
            return Some(path.clone());
        }
        return applied
            .iter()
            .zip(live)
            .enumerate()
            .find_map(|(index, (applied, live))| {
                within(path, &index.to_string(), |path| {
                    compare(applied, Some(live), path, false)
                })
            });
    };
    applied.iter().zip(&keys).find_map(|(entry, name)| {
        let live = live.iter().find(|live| key_of(live, key).as_ref() == Some(name));
        within(path, name, |path| compare(entry, live, path, false))
    })
}

/// Fields that are keys of lists in Kubernetes' types. Those that fewer types have come first: a volume mount also has a name,
/// which is that of its volume.
const KEYS: [&str; 9] = [
    "mountPath",
    "devicePath",
    "containerPort",
    "topologyKey",
    "port",
    "name",
    "uid",
    "type",
    "ip",
];

/// The values of `key` in all entries, if each has another one.
fn keys<'a>(entries: &[Value], key: &'a str) -> Option<(&'a str, Vec<String>)> {
    let found: Option<Vec<String>> = entries.iter().map(|entry| key_of(entry, key)).collect();
    let found = found?;
    let distinct: BTreeSet<&String> = found.iter().collect();
    (distinct.len() == found.len()).then_some((key, found))
}

/// The key of a port includes its protocol, which is TCP by default, and the key of a spread constraint includes its action.
fn key_of(entry: &Value, key: &str) -> Option<String> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str);
    match key {
        "port" | "containerPort" => {
            let port = entry.get(key)?.as_u64()?;
            Some(match text("protocol") {
                None | Some("TCP") => port.to_string(),
                Some(other) => format!("{port}/{other}"),
            })
        }
        "topologyKey" => Some(format!("{} {}", text(key)?, text("whenUnsatisfiable")?)),
        key => text(key).map(str::to_owned),
    }
}

fn within<T>(path: &mut String, entry: &str, inner: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    path.push('[');
    path.push_str(entry);
    path.push(']');
    let result = inner(path);
    path.truncate(length);
    result
}

/// Values that the API server leaves out of what it stores.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_others_are_left_to_them() {
        let applied = json!({ "labels": { "a": "1" }, "args": ["-m", "64"] });
        assert_eq!(
            differs(
                &applied,
                &json!({ "labels": { "a": "1", "b": "2" }, "args": ["-m", "64"], "more": {} })
            ),
            None
        );
    }

    #[test]
    fn null_is_no_value() {
        let applied = json!({ "selector": null, "replicas": null });
        assert_eq!(differs(&applied, &json!({ "selector": {}, "replicas": 0 })), None);
        assert_eq!(differs(&json!({ "selector": {} }), &json!({ "selector": null })), None);
        assert_eq!(
            differs(&applied, &json!({ "replicas": 1 })).as_deref(),
            Some(".replicas")
        );
    }

    #[test]
    fn entries_are_matched_by_the_key_of_their_list() {
        let same = |applied: Value, live: Value| assert_eq!(differs(&applied, &live), None);
        // Another client has added a port before ours.
        same(
            json!({ "ports": [{ "port": 11211 }, { "port": 53, "protocol": "UDP" }] }),
            json!({ "ports": [
                { "port": 53, "protocol": "TCP" }, { "port": 53, "protocol": "UDP" },
                { "port": 11211, "protocol": "TCP", "targetPort": 11211 },
            ] }),
        );
        same(
            json!({ "volumeMounts": [{ "name": "data", "mountPath": "/a", "subPath": "a" }, { "name": "data", "mountPath": "/b", "subPath": "b" }] }),
            json!({ "volumeMounts": [{ "name": "data", "mountPath": "/b", "subPath": "b" }, { "name": "data", "mountPath": "/a", "subPath": "a" }] }),
        );
        let applied = json!({ "ports": [{ "port": 11211, "targetPort": 11211 }] });
        let live = json!({ "ports": [{ "port": 80, "targetPort": 11211 }] });
        assert_eq!(differs(&applied, &live).as_deref(), Some(".ports[11211]"));
        // Entries with one key are compared by position.
        let twice = json!({ "tolerations": [{ "type": "a", "value": 1 }, { "type": "a", "value": 2 }] });
        same(twice.clone(), twice.clone());
        let turned = json!({ "tolerations": [{ "type": "a", "value": 2 }, { "type": "a", "value": 1 }] });
        assert_eq!(differs(&twice, &turned).as_deref(), Some(".tolerations[0].value"));
    }

    #[test]
    fn every_kind_of_change_is_found() {
        let applied = json!({
            "labels": { "a": "1" },
            "args": ["-m", "64"],
            "containers": [{ "name": "cache", "ports": [{ "name": "memcached", "containerPort": 11211 }] }],
            "replicas": 0,
        });
        let change = |pointer: &str, value: Value| {
            let mut live = applied.clone();
            *live.pointer_mut(pointer).unwrap() = value;
            differs(&applied, &live)
        };
        assert_eq!(change("/labels/a", json!("2")).as_deref(), Some(".labels.a"));
        assert_eq!(change("/labels", json!({})).as_deref(), Some(".labels.a"));
        assert_eq!(change("/args", json!(["64", "-m"])).as_deref(), Some(".args[0]"));
        assert_eq!(change("/args", json!(["-m", "64", "-v"])).as_deref(), Some(".args"));
        assert_eq!(change("/containers", json!([])).as_deref(), Some(".containers[cache]"));
        let path = ".containers[cache].ports[11211]";
        assert_eq!(
            change("/containers/0/ports/0/containerPort", json!(1)).as_deref(),
            Some(path)
        );
        assert_eq!(change("/replicas", json!(1)).as_deref(), Some(".replicas"));
    }

    #[test]
    fn quantities_are_compared_by_value_and_only_where_they_are_quantities() {
        let applied = json!({ "resources": { "limits": { "memory": "1024Mi", "cpu": "0.5" } } });
        assert_eq!(
            differs(
                &applied,
                &json!({ "resources": { "limits": { "memory": "1Gi", "cpu": "500m" } } })
            ),
            None
        );
        let live = json!({ "resources": { "limits": { "memory": "1025Mi", "cpu": "500m" } } });
        assert_eq!(differs(&applied, &live).as_deref(), Some(".resources.limits.memory"));
        assert!(differs(&json!({ "tag": "1.0" }), &json!({ "tag": "1" })).is_some());
    }

    #[test]
    fn empty_values_may_be_missing() {
        assert_eq!(
            differs(
                &json!({ "flag": false, "list": [], "map": { "inner": {} } }),
                &json!({})
            ),
            None
        );
        assert!(differs(&json!({ "flag": true }), &json!({})).is_some());
    }

    #[test]
    fn fingerprints_are_stable() {
        assert_eq!(
            fingerprint(&json!({ "b": 1, "a": [true] })),
            fingerprint(&json!({ "a": [true], "b": 1 }))
        );
        assert_eq!(fingerprint(&json!({})), "08f44b07b5901a25");
    }
}
