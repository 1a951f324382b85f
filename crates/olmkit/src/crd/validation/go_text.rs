//! Go's `%v` and `%#v` of a list of versions, which some messages contain.

use serde_json::Value;

use super::finding::{BadValue, POINTER};
use super::internal::{Spec, Version, text};
use olmkit_go::strconv::quote;

/// `spec.versions` as a value in a finding. Addresses are all the same here. They change in every run of Go.
pub(super) fn versions_value(spec: &Spec) -> BadValue {
    let plain: Vec<String> = spec.versions.iter().map(plain_version).collect();
    let shown: Vec<String> = spec.versions.iter().map(shown_version).collect();
    let nil = spec.versions.is_empty() && !spec.lists_versions;
    let shown = if nil {
        "(nil)".to_owned()
    } else {
        format!("{{{}}}", shown.join(", "))
    };
    BadValue {
        plain: format!("[{}]", plain.join(" ")),
        shown: format!("[]apiextensions.CustomResourceDefinitionVersion{shown}"),
    }
}

fn plain_version(version: &Version) -> String {
    let pointer = |set: bool| if set { POINTER } else { "<nil>" };
    let columns: Vec<String> = version.own.columns.into_iter().flatten().map(plain_column).collect();
    let fields: Vec<String> = version
        .own
        .selectable_fields
        .into_iter()
        .flatten()
        .map(|field| format!("{{{}}}", text(field, "jsonPath")))
        .collect();
    format!(
        "{{{} {} {} {} {} {} {} [{}] [{}]}}",
        version.name,
        version.served,
        version.storage,
        version.deprecated,
        pointer(version.deprecation_warning.is_some()),
        pointer(version.own.validation.is_some()),
        pointer(version.own.subresources.is_some()),
        columns.join(" "),
        fields.join(" ")
    )
}

fn plain_column(column: &Value) -> String {
    let [name, kind, format, description] = ["name", "type", "format", "description"].map(|field| text(column, field));
    format!(
        "{{{name} {kind} {format} {description} {} {}}}",
        priority(column),
        json_path(column)
    )
}

fn shown_version(version: &Version) -> String {
    let pointer = |kind: &str, set: bool| format!("(*{kind})({})", if set { POINTER } else { "nil" });
    let own = &version.own;
    format!(
        "apiextensions.CustomResourceDefinitionVersion{{Name:{}, Served:{}, Storage:{}, Deprecated:{}, \
         DeprecationWarning:{}, Schema:{}, Subresources:{}, AdditionalPrinterColumns:{}, SelectableFields:{}}}",
        quote(&version.name),
        version.served,
        version.storage,
        version.deprecated,
        pointer("string", version.deprecation_warning.is_some()),
        pointer("apiextensions.CustomResourceValidation", own.validation.is_some()),
        pointer("apiextensions.CustomResourceSubresources", own.subresources.is_some()),
        list(
            "apiextensions.CustomResourceColumnDefinition",
            own.columns,
            shown_column
        ),
        list("apiextensions.SelectableField", own.selectable_fields, |field| {
            format!(
                "apiextensions.SelectableField{{JSONPath:{}}}",
                quote(&text(field, "jsonPath"))
            )
        }),
    )
}

fn list(kind: &str, items: Option<&[Value]>, show: impl Fn(&Value) -> String) -> String {
    match items {
        None => format!("[]{kind}(nil)"),
        Some(items) => format!("[]{kind}{{{}}}", items.iter().map(show).collect::<Vec<_>>().join(", ")),
    }
}

fn shown_column(column: &Value) -> String {
    let [name, kind, format, description] =
        ["name", "type", "format", "description"].map(|field| quote(&text(column, field)));
    format!(
        "apiextensions.CustomResourceColumnDefinition{{Name:{name}, Type:{kind}, Format:{format}, \
         Description:{description}, Priority:{}, JSONPath:{}}}",
        priority(column),
        quote(&json_path(column))
    )
}

fn priority(column: &Value) -> i64 {
    column.get("priority").and_then(Value::as_i64).unwrap_or(0)
}

fn json_path(column: &Value) -> String {
    [text(column, "jsonPath"), text(column, "JSONPath")].concat()
}
