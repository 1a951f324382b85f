//! For tests of conversions: objects that a definition allows, made from random bytes.
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, Resource};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{Hub, conversion};

/// Converts a random object of the version `A` to the version `B` and back, as the API server has it done. Nothing may be lost
/// on the way, or clients of one version destroy what those of another have written. A field that `B` lacks has its place in an
/// annotation there, which the way back removes.
///
/// # Errors
/// When a conversion fails, or the object that comes back differs.
pub fn round_trip<A, B, H>(hub: &Hub<H>, bytes: &[u8]) -> Result<(), String>
where
    A: CustomResourceExt + Resource<DynamicType = ()> + DeserializeOwned + Serialize,
    B: Resource<DynamicType = ()>,
    H: Resource<DynamicType = ()> + DeserializeOwned + Serialize,
{
    let text =
        |error: serde_json::Error| format!("an object that the definition allows is not one of the type: {error}");
    // As the type writes it.
    let typed: A = serde_json::from_value(object(&A::crd(), bytes)).map_err(text)?;
    let before = serde_json::to_value(typed).map_err(text)?;
    let convert = |object: Value, wanted: &str| hub.convert(object, wanted);
    let there = conversion::one(before.clone(), &B::api_version(&()), &convert)?;
    let mut back = conversion::one(there.clone(), &A::api_version(&()), &convert)?;
    for part in ["labels", "annotations"] {
        let is_empty = |part: &mut Value| part.as_object().is_some_and(Map::is_empty);
        if let Some(metadata) = back.get_mut("metadata").and_then(Value::as_object_mut)
            && metadata.get_mut(part).is_some_and(is_empty)
        {
            metadata.remove(part);
        }
    }
    if back == before {
        return Ok(());
    }
    Err(format!(
        "before: {before}\nas {}: {there}\nafter: {back}",
        B::api_version(&())
    ))
}

/// An object of the first version of a definition, as `crd()` of a derived type returns it. The bytes decide what it
/// contains, so a test with random bytes also finds a small example when it fails. Strings respect their bounds, `enum` and
/// `format`, but not a `pattern` or a rule in CEL.
#[must_use]
pub fn object(definition: &CustomResourceDefinition, bytes: &[u8]) -> Value {
    let names = &definition.spec.names;
    let Some(version) = definition.spec.versions.first() else {
        return Value::Null;
    };
    let schema = version
        .schema
        .as_ref()
        .and_then(|schema| schema.open_api_v3_schema.as_ref());
    let schema = serde_json::to_value(schema).unwrap_or_default();
    let mut bytes = bytes.iter().copied();
    let mut object = json!({
        "apiVersion": format!("{}/{}", definition.spec.group, version.name),
        "kind": names.kind,
        "metadata": {"name": "sample"},
    });
    for part in ["spec", "status"] {
        if let (Some(schema), Some(object)) = (schema.pointer(&format!("/properties/{part}")), object.as_object_mut())
            && (part == "spec" || draw(&mut bytes, 2) == 1)
        {
            object.insert(part.to_owned(), value(schema, &mut bytes, 0));
        }
    }
    object
}

/// Deeper schemas are those that refer to themselves.
const DEEPEST: usize = 32;

/// A number below `end`; 0 when the bytes are used up.
fn draw(bytes: &mut impl Iterator<Item = u8>, end: u64) -> u64 {
    let drawn = bytes.next().unwrap_or_default();
    u64::from(drawn) % end.max(1)
}

fn value(schema: &Value, bytes: &mut impl Iterator<Item = u8>, depth: usize) -> Value {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let size = |key: &str| schema.get(key).and_then(Value::as_u64);
    if let Some(allowed) = schema
        .get("enum")
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty())
    {
        let at = usize::try_from(draw(bytes, allowed.len() as u64)).unwrap_or_default();
        return allowed.get(at).cloned().unwrap_or_default();
    }
    if depth > DEEPEST {
        return Value::Null;
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => object_value(schema, bytes, depth),
        Some("array") => {
            let least = size("minItems").unwrap_or_default();
            let most = size("maxItems").unwrap_or(u64::MAX).min(least.saturating_add(3));
            // Entries with equal keys would not be two.
            let most = if schema.get("x-kubernetes-list-type").is_some() {
                least.max(1).min(most)
            } else {
                most
            };
            let count = least + draw(bytes, most.saturating_sub(least) + 1);
            let item = schema.get("items").cloned().unwrap_or_default();
            (0..count).map(|_| value(&item, bytes, depth + 1)).collect()
        }
        Some("boolean") => (draw(bytes, 2) == 1).into(),
        Some("integer") => {
            let least = number("minimum").map_or(-100, |bound| bound.ceil() as i64);
            let most = number("maximum").map_or(least.saturating_add(1000), |bound| bound.floor() as i64);
            let wide = draw(bytes, 256) * 256 + draw(bytes, 256);
            let span = most.saturating_sub(least).max(0).saturating_add(1);
            let step = i64::try_from(wide).unwrap_or_default() % span;
            (least + step).into()
        }
        Some("number") => {
            let least = number("minimum").unwrap_or_default();
            let most = number("maximum").unwrap_or(least + 100.0);
            let part = draw(bytes, 256) as f64 / 256.0;
            json!(least + (most - least) * part)
        }
        Some("string") => text(schema, bytes).into(),
        // A Quantity or an IntOrString: their schemas are equal, and only a string can be either.
        _ if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) => {
            let unit = ["", "m", "k", "Mi"].get(draw(bytes, 4) as usize).unwrap_or(&"");
            format!("{}{unit}", 1 + draw(bytes, 200)).into()
        }
        _ => Value::Null,
    }
}

fn object_value(schema: &Value, bytes: &mut impl Iterator<Item = u8>, depth: usize) -> Value {
    let mut made = Map::new();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    // Fields of which exactly one is set, as for an enum with data.
    let alternatives: Vec<&str> = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|one| one.pointer("/required/0")?.as_str())
        .collect();
    let chosen = alternatives.get(draw(bytes, alternatives.len() as u64) as usize);
    for (name, field) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if alternatives.contains(&name.as_str()) {
            if chosen == Some(&name.as_str()) {
                made.insert(name.clone(), value(field, bytes, depth + 1));
            }
        } else if required.contains(&name.as_str()) || draw(bytes, 2) == 1 {
            made.insert(name.clone(), value(field, bytes, depth + 1));
        }
    }
    if let Some(other) = schema.get("additionalProperties").filter(|other| other.is_object()) {
        for at in 0..draw(bytes, 3) {
            made.insert(format!("key-{at}"), value(other, bytes, depth + 1));
        }
    }
    Value::Object(made)
}

fn text(schema: &Value, bytes: &mut impl Iterator<Item = u8>) -> String {
    match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => {
            let (hour, minute) = (draw(bytes, 24), draw(bytes, 60));
            return format!("2024-02-29T{hour:02}:{minute:02}:00Z");
        }
        Some("date") => return format!("2024-02-{:02}", draw(bytes, 29) + 1),
        // Base64.
        Some("byte") => return if draw(bytes, 2) == 1 { "AQI=" } else { "" }.to_owned(),
        _ => {}
    }
    let size = |key: &str| schema.get(key).and_then(Value::as_u64);
    let least = size("minLength").unwrap_or_default();
    let most = size("maxLength").unwrap_or(u64::MAX).min(least.saturating_add(12));
    let count = least + draw(bytes, most.saturating_sub(least) + 1);
    (0..count).map(|_| char::from(b'a' + draw(bytes, 26) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::{
        api::core::v1::ResourceRequirements,
        apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
    };
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    enum Mode {
        One,
        Two,
    }

    #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "shop.example.com", version = "v1", kind = "Cache")]
    struct CacheSpec {
        #[schemars(range(min = 3, max = 5))]
        size: i32,
        #[schemars(length(min = 2, max = 4))]
        name: String,
        part: f64,
        mode: Mode,
        on: Option<bool>,
        list: Vec<BTreeMap<String, u8>>,
        storage: Quantity,
        port: IntOrString,
        resources: ResourceRequirements,
        place: Place,
    }

    /// Fields of which one is set.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    enum Place {
        Bucket { url: String },
        Volume { claim: String },
    }

    mod v2 {
        use super::*;

        /// It lacks most fields, and an annotation keeps them.
        #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "shop.example.com", version = "v2", kind = "Cache")]
        pub struct CacheSpec {
            pub size: i32,
        }
    }

    const KEPT: &str = "shop.example.com/kept";

    fn down(object: Cache) -> Result<v2::Cache, String> {
        let mut new = v2::Cache::new("", v2::CacheSpec { size: object.spec.size });
        new.metadata = object.metadata;
        let kept = serde_json::to_string(&object.spec).map_err(|error| error.to_string())?;
        new.metadata
            .annotations
            .get_or_insert_default()
            .insert(KEPT.to_owned(), kept);
        Ok(new)
    }

    /// `forget` removes the annotation, and the list with it if it is empty.
    fn up(object: v2::Cache, forget: bool) -> Result<Cache, String> {
        let mut metadata = object.metadata;
        let kept = metadata.annotations.as_ref().and_then(|all| all.get(KEPT)).cloned();
        let spec = kept.ok_or("nothing was kept")?;
        if forget && let Some(all) = &mut metadata.annotations {
            all.remove(KEPT);
            metadata.annotations = metadata.annotations.filter(|all| !all.is_empty());
        }
        let spec = serde_json::from_str(&spec).map_err(|error| error.to_string())?;
        Ok(Cache { metadata, spec })
    }

    fn round_trips(hub: impl Fn() -> Hub<v2::Cache>) -> Result<(), String> {
        (0..200).try_for_each(|seed| round_trip::<Cache, v2::Cache, _>(&hub(), &bytes(seed)))
    }

    fn bytes(seed: u64) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..random.usize(0..60)).map(|_| random.u8(..)).collect()
    }

    #[test]
    fn lossy_conversions_fail_the_round_trip() {
        let hub = |forget: bool| {
            move || {
                let mut hub = Hub::default();
                hub.spoke(move |new| up(new, forget), down);
                hub
            }
        };
        assert_eq!(round_trips(hub(true)), Ok(()));
        let left = round_trips(hub(false)).unwrap_err();
        assert!(left.contains("after: ") && left.contains(KEPT), "{left}");
    }

    #[test]
    fn objects_are_of_the_type_and_within_its_bounds() {
        let mut sizes = std::collections::BTreeSet::new();
        for seed in 0..200u64 {
            let made: Cache = serde_json::from_value(object(&Cache::crd(), &bytes(seed))).unwrap();
            assert!((3..=5).contains(&made.spec.size), "{}", made.spec.size);
            assert!((2..=4).contains(&made.spec.name.len()), "{}", made.spec.name);
            sizes.insert(made.spec.size);
        }
        assert_eq!(sizes.len(), 3);
    }
}
