//! Conversions between the versions of a kind, all through one of them.
use std::{collections::BTreeMap, fmt};

use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

type Read<K> = Box<dyn Fn(Value) -> Result<K, String> + Send + Sync>;
type Write<K> = Box<dyn Fn(K) -> Result<Value, String> + Send + Sync>;

struct Spoke<K> {
    read: Read<K>,
    write: Write<K>,
}

/// Conversions between the versions of a kind, all through the version `K`, the hub. The others are its spokes.
///
/// ```
/// use kube_manager::webhooks::Hub;
/// use serde_json::json;
///
/// # mod v1 {
/// # use kube::CustomResource;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// #[kube(group = "shop.example.com", version = "v1", kind = "Cache")]
/// pub struct CacheSpec { pub size: i32 }
/// # }
/// # mod v2 {
/// # use kube::CustomResource;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// #[kube(group = "shop.example.com", version = "v2", kind = "Cache")]
/// pub struct CacheSpec { pub replicas: i32 }
/// # }
///
/// fn up(old: v1::Cache) -> Result<v2::Cache, String> {
///     let spec = v2::CacheSpec { replicas: old.spec.size };
///     Ok(v2::Cache { metadata: old.metadata, spec })
/// }
/// fn down(new: v2::Cache) -> Result<v1::Cache, String> {
///     let spec = v1::CacheSpec { size: new.spec.replicas };
///     Ok(v1::Cache { metadata: new.metadata, spec })
/// }
///
/// let mut hub = Hub::default();
/// hub.spoke(down, up);
/// let old = json!({"apiVersion": "shop.example.com/v1", "kind": "Cache", "metadata": {}, "spec": {"size": 3}});
/// let new = hub.convert(old, "shop.example.com/v2")?;
/// assert_eq!(new["spec"], json!({"replicas": 3}));
/// # let hub: Hub<v2::Cache> = hub;
/// # Ok::<(), String>(())
/// ```
pub struct Hub<K> {
    spokes: BTreeMap<String, Spoke<K>>,
}

impl<K> Default for Hub<K> {
    fn default() -> Self {
        Self {
            spokes: BTreeMap::new(),
        }
    }
}

impl<K> fmt::Debug for Hub<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("spokes", &self.spokes.keys()).finish()
    }
}

impl<K> Hub<K>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
{
    /// Adds a version: how the hub becomes it, and how it becomes the hub.
    pub fn spoke<S>(
        &mut self,
        from_hub: impl Fn(K) -> Result<S, String> + Send + Sync + 'static,
        to_hub: impl Fn(S) -> Result<K, String> + Send + Sync + 'static,
    ) where
        S: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        let spoke = Spoke {
            read: Box::new(move |object| to_hub(read(object)?)),
            write: Box::new(move |hub| write(&from_hub(hub)?)),
        };
        self.spokes.insert(S::api_version(&()).into_owned(), spoke);
    }

    /// Converts an object into the version `wanted`, for [`Webhooks::converting`](super::Webhooks::converting). Labels and
    /// annotations that the conversion does not set, `None` included, are removed.
    ///
    /// # Errors
    /// When one of the versions is unknown, the object is not of its type, or a conversion fails.
    pub fn convert(&self, object: Value, wanted: &str) -> Result<Value, String> {
        let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let hub = K::api_version(&());
        let known = |version: &str| {
            let unknown = || format!("cannot convert from or to the version {version:?}");
            self.spokes.get(version).ok_or_else(unknown)
        };
        let middle = match from == hub {
            true => read(object)?,
            false => {
                let spoke = known(from)?;
                (spoke.read)(object)?
            }
        };
        let mut made = match wanted == hub {
            true => write(&middle)?,
            false => (known(wanted)?.write)(middle)?,
        };
        // A typed object is complete: if it has no labels or annotations, there are none.
        if let Some(fields) = made.as_object_mut()
            && let Some(metadata) = fields.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
        {
            for part in ["labels", "annotations"] {
                let is_absent = metadata.get(part).is_none_or(Value::is_null);
                if is_absent {
                    metadata.insert(part.to_owned(), json!({}));
                }
            }
        }
        Ok(made)
    }
}

fn read<T: DeserializeOwned>(object: Value) -> Result<T, String> {
    serde_json::from_value(object).map_err(|error| format!("cannot read the object: {error}"))
}

fn write<T: Serialize>(object: &T) -> Result<Value, String> {
    serde_json::to_value(object).map_err(|error| format!("cannot write the object: {error}"))
}

/// The value as another type: fields of the same name are taken over, others are dropped or have their defaults.
///
/// # Errors
/// When the other type needs a field that the value lacks, or of another type.
pub fn same_fields<A: Serialize, B: DeserializeOwned>(value: &A) -> Result<B, String> {
    read(write(value)?)
}

#[cfg(test)]
mod tests {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;

    mod v1 {
        use super::*;

        #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "shop.example.com", version = "v1", kind = "Cache")]
        pub struct CacheSpec {
            pub size: i32,
        }
    }

    mod v2 {
        use super::*;

        #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "shop.example.com", version = "v2", kind = "Cache")]
        pub struct CacheSpec {
            pub size: i32,
            #[serde(default)]
            pub note: String,
        }
    }

    mod v3 {
        use super::*;

        #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "shop.example.com", version = "v3", kind = "Cache")]
        pub struct CacheSpec {
            pub replicas: i32,
        }
    }

    fn hub() -> Hub<v1::Cache> {
        let mut hub = Hub::default();
        hub.spoke(
            |old: v1::Cache| Ok(v2::Cache::new("", same_fields(&old.spec)?)),
            |new: v2::Cache| Ok(v1::Cache::new("", same_fields(&new.spec)?)),
        );
        hub.spoke(
            |old: v1::Cache| {
                let replicas = old.spec.size;
                Ok(v3::Cache::new("", v3::CacheSpec { replicas }))
            },
            |new: v3::Cache| match new.spec.replicas {
                size @ 0.. => Ok(v1::Cache::new("", v1::CacheSpec { size })),
                _ => Err("spec.replicas: is negative".to_owned()),
            },
        );
        hub
    }

    fn object(version: &str, spec: &Value) -> Value {
        json!({"apiVersion": format!("shop.example.com/{version}"), "kind": "Cache", "metadata": {}, "spec": spec})
    }

    #[test]
    fn every_version_becomes_every_other() {
        let convert = |object, wanted: &str| hub().convert(object, &format!("shop.example.com/{wanted}"));
        let third = convert(object("v2", &json!({"size": 2, "note": "x"})), "v3").unwrap();
        assert_eq!(third["spec"], json!({"replicas": 2}));
        assert_eq!(third["apiVersion"], "shop.example.com/v3");
        let second = convert(third, "v2").unwrap();
        assert_eq!(second["spec"], json!({"size": 2, "note": ""}));
        assert_eq!(convert(second, "v1").unwrap()["spec"], json!({"size": 2}));
    }

    /// Else an annotation that keeps a field for another version would bring the field back after its removal.
    #[test]
    fn annotations_that_a_conversion_leaves_out_are_removed() {
        let mut old = object("v1", &json!({"size": 2}));
        old["metadata"] = json!({"name": "a", "annotations": {"note": "x"}, "labels": {"b": "c"}});
        let convert = |object: Value, wanted: &str| hub().convert(object, wanted);
        let new = crate::webhooks::conversion::one(old, "shop.example.com/v2", &convert).unwrap();
        assert_eq!(new["metadata"], json!({"name": "a", "annotations": {}, "labels": {}}));
    }

    #[test]
    fn an_unconvertible_object_is_named() {
        let error = |object, wanted| hub().convert(object, wanted).unwrap_err();
        let one = object("v1", &json!({"size": 1}));
        let unknown = error(one.clone(), "shop.example.com/v9");
        assert_eq!(unknown, "cannot convert from or to the version \"shop.example.com/v9\"");
        assert!(error(json!([]), "shop.example.com/v1").contains("the version \"\""));
        assert!(error(object("v1", &json!({})), "shop.example.com/v2").contains("missing field `size`"));
        let refused = error(object("v3", &json!({"replicas": -1})), "shop.example.com/v1");
        assert_eq!(refused, "spec.replicas: is negative");
    }
}
