//! The APIs that a bundle owns, provides and requires.

use std::collections::BTreeSet;

use super::Error;
use super::manifests::Manifest;
use crate::decode::{Mismatch, Place, fields, string};
use crate::text::Value;
use olmkit_go::json::names_field;

/// An API. Sorted as Go prints a map of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Api {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural name.
    pub plural: String,
}

impl std::fmt::Display for Api {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{}/{}/{} ({})",
            self.group, self.version, self.kind, self.plural
        )
    }
}

/// Every version of every CRD in the bundle, served or not, owned or not, and the owned API services.
///
/// # Errors
/// A CRD or the CSV's API service list does not fit its type.
pub fn provided(manifests: &[Manifest], csv: &Value<'_>) -> Result<BTreeSet<Api>, Error> {
    let mut apis = BTreeSet::new();
    for manifest in manifests
        .iter()
        .filter(|manifest| manifest.kind == "CustomResourceDefinition")
    {
        let version = manifest
            .value
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match version {
            "apiextensions.k8s.io/v1" => custom_resource(&manifest.value, false, &mut apis),
            "apiextensions.k8s.io/v1beta1" => custom_resource(&manifest.value, true, &mut apis),
            _ => {}
        }
    }
    let (owned, _) = api_services(csv)?;
    apis.extend(owned);
    Ok(apis)
}

fn custom_resource(crd: &Value<'_>, beta: bool, apis: &mut BTreeSet<Api>) {
    let text = |value: Option<&Value<'_>>, key: &str| {
        value
            .and_then(|value| field(value, key))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let spec = field(crd, "spec");
    let names = spec.and_then(|spec| field(spec, "names"));
    let base = Api {
        group: text(spec, "group"),
        version: String::new(),
        kind: text(names, "kind"),
        plural: text(names, "plural"),
    };
    for version in spec
        .and_then(|spec| field(spec, "versions"))
        .map(Value::items)
        .unwrap_or_default()
    {
        apis.insert(Api {
            version: text(Some(version), "name"),
            ..base.clone()
        });
    }
    let single = text(spec, "version");
    if beta && !single.is_empty() {
        apis.insert(Api {
            version: single,
            ..base
        });
    }
}

/// A field of a typed object: its name matches in any case.
pub fn field<'v, 'a>(value: &'v Value<'a>, name: &str) -> Option<&'v Value<'a>> {
    value
        .entries()
        .iter()
        .rev()
        .find(|(key, _)| names_field(key, name))
        .map(|(_, value)| value)
}

/// Owned and required CRDs of the CSV.
///
/// # Errors
/// The list does not fit its type, or a name is not `plural.group`.
pub fn custom_resources(csv: &Value<'_>) -> Result<(Vec<Api>, Vec<Api>), Error> {
    let split = |mut api: Api| {
        let Some((plural, group)) = api.plural.split_once('.') else {
            return Err(Error::Bundle(format!(
                "couldn't parse plural.group from crd name: {}",
                api.plural
            )));
        };
        (api.plural, api.group) = (plural.to_owned(), group.to_owned());
        Ok(api)
    };
    let (owned, required) = definition_lists(csv, "customresourcedefinitions")?;
    Ok((
        owned.into_iter().map(split).collect::<Result<_, _>>()?,
        required.into_iter().map(split).collect::<Result<_, _>>()?,
    ))
}

/// Owned and required API services of the CSV.
///
/// # Errors
/// The list does not fit its type.
pub fn api_services(csv: &Value<'_>) -> Result<(Vec<Api>, Vec<Api>), Error> {
    definition_lists(csv, "apiservicedefinitions")
        .map_err(|error| Error::Bundle(format!("error getting apiservice definitions: {error}")))
}

fn definition_lists(csv: &Value<'_>, key: &str) -> Result<(Vec<Api>, Vec<Api>), Error> {
    let object_map = |text: &str| Error::Bundle(format!("error unmarshaling into object map: {text}"));
    // The outer key is matched exactly, as in a Go map. A missing spec is empty JSON there.
    let spec = field(csv, "spec").ok_or_else(|| object_map("unexpected end of JSON input"))?;
    if !matches!(spec, Value::Mapping(_) | Value::Null) {
        let kind = spec.go_kind();
        return Err(object_map(&format!(
            "json: cannot unmarshal {kind} into Go value of type map[string]*json.RawMessage"
        )));
    }
    let Some(lists) = spec.get(key) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let mut mismatch = Mismatch::default();
    let root = Place::root("registry.definitions");
    let (mut owned, mut required) = (Vec::new(), Vec::new());
    for (name, value) in fields(lists, "registry.definitions", &root, &mut mismatch) {
        if names_field(name, "owned") {
            owned = keys(value, &root.field("", "owned"), &mut mismatch);
        } else if names_field(name, "required") {
            required = keys(value, &root.field("", "required"), &mut mismatch);
        }
    }
    mismatch.finish((owned, required)).map_err(Error::Bundle)
}

/// A list of definitions. The name is stored in `plural`.
fn keys(value: &Value<'_>, place: &Place<'_>, mismatch: &mut Mismatch) -> Vec<Api> {
    let items = match value {
        Value::Sequence(items) => items.as_slice(),
        Value::Null => &[],
        other => {
            mismatch.report(other, "[]*registry.DefinitionKey", place);
            &[]
        }
    };
    items
        .iter()
        .map(|item| {
            let mut api = Api::default();
            for (name, value) in fields(item, "registry.DefinitionKey", place, mismatch) {
                let at = |field| place.field("DefinitionKey", field);
                match name {
                    name if names_field(name, "group") => string(value, &mut api.group, &at("group"), mismatch),
                    name if names_field(name, "version") => string(value, &mut api.version, &at("version"), mismatch),
                    name if names_field(name, "kind") => string(value, &mut api.kind, &at("kind"), mismatch),
                    name if names_field(name, "name") => string(value, &mut api.plural, &at("name"), mismatch),
                    _ => {}
                }
            }
            api
        })
        .collect()
}

/// Every owned CRD and version must be among the bundle's CRDs.
///
/// # Errors
/// opm's message with the first missing one and all existing ones.
pub fn check_owned(owned: &[Api], provided: &BTreeSet<Api>) -> Result<(), Error> {
    let wanted: BTreeSet<&Api> = owned.iter().collect();
    for api in wanted {
        if !provided.contains(api) {
            let found: Vec<String> = provided.iter().map(|api| format!("{api}:{{}}")).collect();
            let found = found.join(" ");
            return Err(Error::Bundle(format!(
                "couldn't find {api} in bundle. found: map[{found}]"
            )));
        }
    }
    Ok(())
}
