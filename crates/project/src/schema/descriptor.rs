//! Descriptors: form metadata of a field in addition to its schema, declared on the field itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Error, Options, normalise_schema};

/// The schema extension that makes a field appear among the descriptors of the ClusterServiceVersion. Its value is `true`
/// for the defaults, or an object with any of `displayName`, `x-descriptors`, `description` and `order`.
///
/// ```
/// # use schemars::JsonSchema;
/// #[derive(JsonSchema)]
/// struct Spec {
///     /// How many servers to run.
///     #[schemars(extend("x-olm-descriptor" = {"x-descriptors": ["urn:alm:descriptor:com.tectonic.ui:podCount"]}))]
///     size: i32,
/// }
/// ```
pub const DESCRIPTOR_EXTENSION: &str = "x-olm-descriptor";

/// One entry of `specDescriptors` or `statusDescriptors`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Purpose of the field: its documentation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The label in a form.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// Path of the field, below `spec` or `status`: JSON names joined with dots. A list adds `[0]`.
    pub path: String,
    /// The widgets for the field, as `urn:alm:descriptor:…` strings.
    #[serde(default, rename = "x-descriptors", skip_serializing_if = "Vec::is_empty")]
    pub x_descriptors: Vec<String>,
}

/// The descriptors of one kind in one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Descriptors {
    /// Fields users fill in.
    pub spec: Vec<Descriptor>,
    /// Fields the operator reports.
    pub status: Vec<Descriptor>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Extension {
    display_name: Option<String>,
    #[serde(rename = "x-descriptors")]
    x_descriptors: Vec<String>,
    description: Option<String>,
    order: Option<i64>,
}

/// Reads the descriptors from a custom resource's type. The fields come sorted by `order`, then by path, as operator-sdk
/// sorts them.
///
/// # Errors
/// If the schema has no structural form, or an extension contains an unknown key.
pub fn descriptors<T: JsonSchema>() -> Result<Descriptors, Error> {
    descriptors_of(schemars::schema_for!(T).to_value())
}

/// As [`descriptors`], from a schema with the properties `spec` and `status`.
pub fn descriptors_of(schema: Value) -> Result<Descriptors, Error> {
    let schema = normalise_schema(schema, &Options::default())?;
    let read = |part: &str| -> Result<Vec<Descriptor>, Error> {
        let mut found = Vec::new();
        if let Some(schema) = schema.pointer(&format!("/properties/{part}")) {
            collect(schema, "", &mut found)?;
        }
        found.sort_by(|(one, first), (other, second)| {
            let last = |order: &Option<i64>| order.unwrap_or(i64::MAX);
            last(one).cmp(&last(other)).then_with(|| first.path.cmp(&second.path))
        });
        Ok(found.into_iter().map(|(_, descriptor)| descriptor).collect())
    };
    Ok(Descriptors {
        spec: read("spec")?,
        status: read("status")?,
    })
}

fn collect(schema: &Value, path: &str, found: &mut Vec<(Option<i64>, Descriptor)>) -> Result<(), Error> {
    if let Some(extension) = schema.get(DESCRIPTOR_EXTENSION).filter(|_| !path.is_empty()) {
        let extension: Extension = match extension {
            Value::Bool(true) => Extension::default(),
            Value::Bool(false) => return Ok(()),
            other => serde_json::from_value(other.clone()).map_err(|source| Error::Definition {
                name: path.to_owned(),
                reason: format!("the extension {DESCRIPTOR_EXTENSION} is not understood: {source}"),
            })?,
        };
        let name = path.rsplit('.').next().unwrap_or(path).trim_end_matches("[0]");
        let documented = || {
            schema
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        found.push((
            extension.order,
            Descriptor {
                description: extension.description.unwrap_or_else(documented),
                display_name: extension.display_name.unwrap_or_else(|| display_name(name)),
                path: path.to_owned(),
                x_descriptors: extension.x_descriptors,
            },
        ));
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, schema) in properties {
            let below = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            collect(schema, &below, found)?;
        }
    }
    if let Some(items) = schema.get("items") {
        // The extension on the list itself has been read. Items carry their own only below their properties.
        let below = format!("{path}[0]");
        if let Some(Value::Object(properties)) = items.get("properties") {
            for (name, schema) in properties {
                collect(schema, &format!("{below}.{name}"), found)?;
            }
        }
    }
    Ok(())
}

/// A name split into words at `.`, `-`, `_`, spaces and before capitals, each capitalized.
///
/// ```
/// assert_eq!(olmkit_project::schema::display_name("memcached-operator"), "Memcached Operator");
/// assert_eq!(olmkit_project::schema::display_name("containerPort"), "Container Port");
/// assert_eq!(olmkit_project::schema::display_name("APIKey"), "APIKey");
/// ```
#[must_use]
pub fn display_name(name: &str) -> String {
    let mut words = Vec::new();
    for part in name
        .split(['.', '-', '_', ' '])
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let mut word = String::new();
        let mut before: Option<char> = None;
        for letter in part.chars() {
            if letter.is_uppercase() && before.is_some_and(|before| !before.is_uppercase()) {
                words.push(std::mem::take(&mut word));
            }
            word.push(letter);
            before = Some(letter);
        }
        words.push(word);
    }
    words.iter().map(|word| capitalised(word)).collect::<Vec<_>>().join(" ")
}

/// Capitalizes the first letter of a word, which need not be its first character.
fn capitalised(word: &str) -> String {
    match word.char_indices().find(|(_, letter)| letter.is_alphabetic()) {
        Some((at, letter)) => {
            let (head, tail) = word.split_at(at);
            let tail: String = tail.chars().skip(1).collect();
            format!("{head}{}{tail}", letter.to_uppercase())
        }
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Root {
        spec: Spec,
        status: Option<Status>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Spec {
        /// Number of items.
        #[schemars(extend("x-olm-descriptor" = {"x-descriptors": ["urn:alm:descriptor:com.tectonic.ui:podCount"], "order": 1}))]
        size: i32,
        /// The image.
        #[schemars(extend("x-olm-descriptor" = true))]
        image_name: Option<String>,
        hidden: String,
        volumes: Vec<Volume>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Volume {
        #[schemars(extend("x-olm-descriptor" = {"displayName": "Path in the pod"}))]
        path: String,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Status {
        /// The current phase.
        #[schemars(extend("x-olm-descriptor" = true))]
        phase: Option<String>,
    }

    #[test]
    fn descriptors_come_from_the_fields_that_ask_for_one() {
        let found = descriptors::<Root>().unwrap();
        let paths: Vec<_> = found
            .spec
            .iter()
            .map(|one| (one.path.as_str(), one.display_name.as_str()))
            .collect();
        assert_eq!(
            paths,
            [
                ("size", "Size"),
                ("image_name", "Image Name"),
                ("volumes[0].path", "Path in the pod")
            ]
        );
        assert_eq!(
            found.spec[0].x_descriptors,
            ["urn:alm:descriptor:com.tectonic.ui:podCount"]
        );
        assert_eq!(found.status[0].description, "The current phase.");
    }

    #[test]
    fn names_become_words() {
        for (name, words) in [
            ("appoperatoR", "Appoperato R"),
            ("app--_Operator", "App Operator"),
            ("APP", "APP"),
            (
                "another-AppOperator_againTwiceThrice More",
                "Another App Operator Again Twice Thrice More",
            ),
        ] {
            assert_eq!(display_name(name), words);
        }
    }
}
