//! Objects written as JSON.
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Error, Object};
use crate::explain::without_position;

/// An object of kind `C` from JSON, as `serde_json::json!` writes it. A field that `C` does not have is an error, where
/// `serde_json::from_value` would drop it.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_manager::reconcile::object;
/// use serde_json::json;
///
/// let map: ConfigMap = object(json!({ "metadata": { "name": "files" }, "data": { "a": "1" } })).unwrap();
/// assert_eq!(map.data.unwrap()["a"], "1");
/// let typo = object::<ConfigMap>(json!({ "metadata": { "nmae": "files" } })).unwrap_err();
/// assert_eq!(typo.to_string(), "ConfigMap has no field .metadata.nmae");
/// ```
///
/// # Errors
/// When the JSON has a field or a value that the kind does not allow.
pub fn object<C: Object>(value: Value) -> Result<C, Error> {
    let kind = C::kind(&());
    let object: C = typed(&value).map_err(|error| Error::bug(format!("{kind}: {error}")))?;
    let read = serde_json::to_value(&object).map_err(|error| Error::bug(format!("{kind}: {error}")))?;
    match lost(&value, &read, &mut String::new()) {
        Some(field) => Err(Error::bug(format!("{kind} has no field {field}"))),
        None => Ok(object),
    }
}

/// An object from its JSON. It is read as text, as the objects of watches are: the code that reads a kind from another form takes
/// a hundred kilobytes in each program.
///
/// # Errors
/// When `T` cannot hold the value.
pub(super) fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    let read = serde_json::to_vec(value).and_then(|text| serde_json::from_slice(&text));
    read.map_err(|error| without_position(&error.to_string()).to_owned())
}

/// The first field of `given` that `read` lacks.
fn lost(given: &Value, read: &Value, path: &mut String) -> Option<String> {
    let length = path.len();
    let found = match (given, read) {
        (Value::Object(given), Value::Object(read)) => given.iter().find_map(|(name, value)| {
            path.push('.');
            path.push_str(name);
            let found = match read.get(name) {
                Some(read) => lost(value, read, path),
                // Absent and null mean the same.
                None => (!value.is_null()).then(|| path.clone()),
            };
            path.truncate(length);
            found
        }),
        (Value::Array(given), Value::Array(read)) => {
            given.iter().zip(read).find_map(|(given, read)| lost(given, read, path))
        }
        _ => None,
    };
    path.truncate(length);
    found
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_typo_in_a_nested_list_is_found() {
        let deployment = |field: &str| {
            let container = json!({ "name": "a", "image": "b", field: {} });
            object::<Deployment>(
                json!({ "spec": { "selector": {}, "template": { "spec": { "containers": [container] } } } }),
            )
        };
        assert!(deployment("resources").is_ok());
        let error = deployment("resuorces").unwrap_err();
        assert_eq!(
            error.to_string(),
            "Deployment has no field .spec.template.spec.containers.resuorces"
        );
    }
}
