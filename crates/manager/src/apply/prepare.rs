//! The desired object in the form that is sent.
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
};

use k8s_openapi::ByteString;
use kube::api::ApiResource;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    compare,
    error::Error,
    fields::{Fields, Path},
    schema::{Kind, Merge, Node, Schema},
};

/// Fields that the API server sets itself.
const SERVER_FIELDS: [&str; 6] = [
    "managedFields",
    "creationTimestamp",
    "generation",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// A desired object without the fields that express no wish.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    pub body: Value,
    /// Before fields were kept: it changes when the caller's wish changes.
    pub hash: u64,
    /// The caller has given a uid or a resource version: a conflict is its mistake.
    pub names_version: bool,
    /// Fields that the caller has set to null, which counts as absent.
    pub nulls: Vec<Path>,
}

impl Desired {
    pub fn prepare(schema: &Schema, resource: &ApiResource, mut body: Value) -> Result<Self, Error> {
        let Some(object) = body.as_object_mut() else {
            return Err(Error::bug(format!("a desired {} is no object", resource.kind)));
        };
        object.insert("apiVersion".to_owned(), resource.api_version.clone().into());
        object.insert("kind".to_owned(), resource.kind.clone().into());
        if schema.has_status {
            object.remove("status");
        }
        if resource.group.is_empty() && resource.kind == "Secret" {
            encode_string_data(object);
            unwrap_lines(object, "data");
        }
        if resource.group.is_empty() && resource.kind == "ConfigMap" {
            unwrap_lines(object, "binaryData");
        }
        let mut names_version = false;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !SERVER_FIELDS.contains(&name.as_str()));
            names_version = metadata.contains_key("uid") || metadata.contains_key("resourceVersion");
        }
        let (hash, mut nulls) = (hash(&body), Vec::new());
        let mut path = Path::default();
        compare::strip_nulls(schema, schema.root(), &mut body, Some(&mut path), &mut nulls);
        Ok(Self {
            hash,
            body,
            names_version,
            nulls,
        })
    }

    /// Keeps the live values of the fields `keep`.
    pub fn keep(&mut self, schema: &Schema, live: &Value, keep: &[&str]) {
        for path in keep {
            let names: Vec<&str> = path.split(['.', '/']).filter(|name| !name.is_empty()).collect();
            compare::keep(schema, schema.root(), &mut self.body, live, &names);
        }
    }

    /// Checks that `live` may be changed: it has the desired controller, or an earlier one of the same name, or none although
    /// this field manager has applied it.
    pub fn check_owner(&self, live: &Value, applied: bool) -> Result<(), String> {
        let Some(wanted) = controller(&self.body) else {
            return Ok(());
        };
        match controller(live) {
            Some(owner) if owner.get("uid") == wanted.get("uid") || is_same_name(owner, wanted) => Ok(()),
            Some(owner) => {
                let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
                Err(format!("belongs to {} {}", text("kind"), text("name")))
            }
            None if applied => Ok(()),
            None => Err("exists and was not created by this operator".to_owned()),
        }
    }

    /// The UIDs of owners of `live` with the name of a desired one and another UID.
    pub fn stale_owners<'v>(&self, live: &'v Value) -> Vec<&'v Value> {
        let wanted: Vec<&Value> = owners(&self.body).collect();
        let stale = owners(live).filter(|owner| {
            let known = wanted.iter().any(|wanted| wanted.get("uid") == owner.get("uid"));
            !known && wanted.iter().any(|wanted| is_same_name(owner, wanted))
        });
        stale.filter_map(|owner| owner.get("uid")).collect()
    }

    /// `live` with the desired fields, without stale owners, and without list entries that are not desired and whose fields
    /// `names` have the value of a desired entry.
    pub fn repaired(&self, schema: &Schema, live: &Value, names: &[String]) -> Value {
        let mut target = compare::merged(schema, schema.root(), &self.body, live);
        let stale: Vec<&Value> = self.stale_owners(live);
        if let Some(owners) = target
            .pointer_mut("/metadata/ownerReferences")
            .and_then(Value::as_array_mut)
        {
            owners.retain(|owner| !owner.get("uid").is_some_and(|uid| stale.contains(&uid)));
        }
        remove_colliding(schema, schema.root(), &self.body, &mut target, names);
        target
    }
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// The owner of `object` that is its controller.
pub fn controller(object: &Value) -> Option<&Value> {
    owners(object).find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

fn is_same_name(left: &Value, right: &Value) -> bool {
    let group = |owner: &Value| {
        let version = owner.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        version
            .rsplit_once('/')
            .map_or(String::new(), |(group, _)| group.to_owned())
    };
    left.get("kind") == right.get("kind") && left.get("name") == right.get("name") && group(left) == group(right)
}

/// The path of an owner reference.
pub fn owner_path(key: Option<&Map<String, Value>>) -> Path {
    let mut path = Path::default();
    path.push_field("metadata");
    path.push_field("ownerReferences");
    if let Some(key) = key {
        path.push_key(key);
    }
    path
}

/// The API server stores `stringData` as `data`. If it were applied unchanged, keys that are no longer desired would stay.
fn encode_string_data(secret: &mut Map<String, Value>) {
    let Some(Value::Object(texts)) = secret.remove("stringData") else {
        return;
    };
    let data = secret.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    if let Value::Object(data) = data {
        for (name, text) in texts {
            let bytes = ByteString(text.as_str().unwrap_or_default().as_bytes().to_vec());
            data.insert(name, serde_json::to_value(bytes).unwrap_or_default());
        }
    }
}

/// The API server stores base64 without line breaks.
fn unwrap_lines(object: &mut Map<String, Value>, field: &str) {
    let values = object.get_mut(field).and_then(Value::as_object_mut);
    for value in values.into_iter().flat_map(|values| values.values_mut()) {
        if let Value::String(text) = value {
            text.retain(|c| !matches!(c, '\r' | '\n'));
        }
    }
}

/// The fields of a desired object, as the API server would list them.
pub fn fields(schema: &Schema, desired: &Value) -> Fields {
    let mut object = desired.clone();
    if let Some(object) = object.as_object_mut() {
        object.remove("apiVersion");
        object.remove("kind");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !["name", "namespace", "uid", "resourceVersion"].contains(&name.as_str()));
        }
    }
    Fields::parse(&tree(schema, schema.root(), &object))
}

fn tree(schema: &Schema, node: Option<&Node>, value: &Value) -> Value {
    let parts: BTreeMap<String, Value> = match (value, node.map(|node| &node.kind)) {
        (Value::Object(_), Some(Kind::Map { atomic: true, .. })) => BTreeMap::new(),
        (Value::Object(map), _) => {
            let part = |(name, value): (&String, &Value)| {
                (Path::field_key(name), tree(schema, schema.field(node, name), value))
            };
            map.iter().map(part).collect()
        }
        (
            Value::Array(list),
            Some(Kind::List {
                merge: Merge::Keyed(keys),
                ..
            }),
        ) => {
            let item = schema.item(node);
            let part = |entry: &Value| {
                (
                    Path::item_key(&schema.key(item, keys, entry)),
                    tree(schema, item, entry),
                )
            };
            list.iter().map(part).collect()
        }
        (Value::Array(list), Some(Kind::List { merge: Merge::Set, .. })) => list
            .iter()
            .map(|value| (format!("v:{value}"), Value::Object(Map::new())))
            .collect(),
        _ => BTreeMap::new(),
    };
    Value::Object(parts.into_iter().collect())
}

fn remove_colliding(schema: &Schema, node: Option<&Node>, desired: &Value, target: &mut Value, names: &[String]) {
    match (desired, target, node.map(|node| &node.kind)) {
        (Value::Object(desired), Value::Object(target), _) => {
            for (name, value) in desired {
                if let Some(target) = target.get_mut(name) {
                    remove_colliding(schema, schema.field(node, name), value, target, names);
                }
            }
        }
        (
            Value::Array(desired),
            Value::Array(target),
            Some(Kind::List {
                merge: Merge::Keyed(keys),
                ..
            }),
        ) => {
            let item = schema.item(node);
            let key = |entry: &Value| schema.key(item, keys, entry);
            let wanted: Vec<_> = desired.iter().map(key).collect();
            target.retain(|entry| {
                let collides = |desired: &Value| {
                    names
                        .iter()
                        .any(|name| desired.get(name).is_some() && desired.get(name) == entry.get(name))
                };
                wanted.contains(&key(entry)) || !desired.iter().any(collides)
            });
            for entry in desired {
                let wanted = key(entry);
                if let Some(target) = target.iter_mut().find(|target| key(target) == wanted) {
                    remove_colliding(schema, item, entry, target, names);
                }
            }
        }
        _ => {}
    }
}

/// A digest of what an apply can change in an object: not the metadata that the API server keeps about each write, and not a
/// status that is written separately.
pub fn content(schema: &Schema, object: &Value) -> u64 {
    const WRITES: [&str; 3] = ["managedFields", "resourceVersion", "generation"];
    fn parts<'v>(value: &'v Value, without: &[&str]) -> BTreeMap<&'v String, &'v Value> {
        let parts = value.as_object().into_iter().flatten();
        parts.filter(|(name, _)| !without.contains(&name.as_str())).collect()
    }
    let metadata = object.get("metadata").map(|metadata| parts(metadata, &WRITES));
    let without: &[&str] = if schema.has_status {
        &["metadata", "status"]
    } else {
        &["metadata"]
    };
    hash(&(metadata, parts(object, without)))
}

/// A hash of the value's JSON.
pub fn hash(value: &impl Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    // In one piece: the hasher takes longer for many small ones. A value with text keys is always JSON.
    hasher.write(&serde_json::to_vec(value).unwrap_or_default());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret() -> ApiResource {
        ApiResource::erase::<k8s_openapi::api::core::v1::Secret>(&())
    }

    #[test]
    fn server_fields_are_omitted_and_string_data_is_encoded() {
        let desired = json!({
            "metadata": { "name": "a", "creationTimestamp": null, "managedFields": [], "uid": "u" },
            "stringData": { "password": "one" },
        });
        let desired = Desired::prepare(&Schema::default(), &secret(), desired).unwrap();
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a", "uid": "u" }, "data": { "password": "b25l" },
        });
        assert_eq!(desired.body, body);
        assert!(desired.names_version);
    }

    #[test]
    fn objects_of_another_owner_are_not_changed() {
        let owned = |kind: &str, name: &str, uid: &str| {
            json!({ "metadata": { "name": "a", "ownerReferences": [
                { "apiVersion": "example.com/v1", "kind": kind, "name": name, "uid": uid, "controller": true },
            ] } })
        };
        let desired = Desired::prepare(&Schema::default(), &secret(), owned("Cache", "web", "1")).unwrap();
        assert!(desired.check_owner(&owned("Cache", "web", "1"), false).is_ok());
        assert!(
            desired.check_owner(&owned("Cache", "web", "2"), false).is_ok(),
            "an earlier one of that name"
        );
        assert_eq!(desired.stale_owners(&owned("Cache", "web", "2")), [&json!("2")]);
        let other = desired.check_owner(&owned("Cache", "shop", "3"), true);
        assert_eq!(other.unwrap_err(), "belongs to Cache shop");
        let free = json!({ "metadata": { "name": "a" } });
        assert!(desired.check_owner(&free, true).is_ok());
        assert!(desired.check_owner(&free, false).is_err());
    }
}
