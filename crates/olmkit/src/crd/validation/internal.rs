//! The internal version of a CRD, with the defaults of the API applied.

use serde_json::{Map, Value};

use super::ApiVersion;

/// A CRD in the API server's internal form. Large parts are borrowed.
pub(super) struct Crd<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: Spec<'a>,
    pub(super) status: &'a Value,
}

/// `spec`. Parts that are identical in all versions of a v1 CRD are stored here and not in the versions.
#[derive(Default)]
pub(super) struct Spec<'a> {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) names: Names,
    pub(super) scope: String,
    pub(super) versions: Vec<Version<'a>>,
    /// True if the list exists; Go prints an absent one differently from an empty one.
    pub(super) lists_versions: bool,
    pub(super) shared: Shared<'a>,
    pub(super) conversion: Conversion<'a>,
    pub(super) preserve_unknown_fields: Option<bool>,
}

/// `spec.names` or `status.acceptedNames`.
#[derive(Default)]
pub(super) struct Names {
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) short_names: Vec<String>,
    pub(super) categories: Vec<String>,
}

/// Fields that may be in a version or in the spec. `None` is Go's nil.
#[derive(Default, Clone, Copy, PartialEq)]
pub(super) struct Shared<'a> {
    pub(super) validation: Option<&'a Value>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: Option<&'a [Value]>,
    pub(super) selectable_fields: Option<&'a [Value]>,
}

/// One of `spec.versions`.
pub(super) struct Version<'a> {
    pub(super) name: String,
    pub(super) served: bool,
    pub(super) storage: bool,
    pub(super) deprecated: bool,
    pub(super) deprecation_warning: Option<String>,
    pub(super) own: Shared<'a>,
}

/// `spec.conversion`.
#[derive(Default)]
pub(super) struct Conversion<'a> {
    pub(super) strategy: String,
    pub(super) client_config: Option<&'a Value>,
    pub(super) review_versions: Vec<String>,
}

impl<'a> Crd<'a> {
    /// Takes a decoded CRD (exact field names, no nulls).
    pub(super) fn new(decoded: &'a Value, api: ApiVersion) -> Self {
        let raw = decoded.get("spec").unwrap_or(&Value::Null);
        let mut names = Names::from_raw(raw.get("names"));
        if names.singular.is_empty() {
            names.singular = names.kind.to_lowercase();
        }
        if names.list_kind.is_empty() && !names.kind.is_empty() {
            names.list_kind = format!("{}List", names.kind);
        }
        let mut spec = Spec {
            group: text(raw, "group"),
            version: text(raw, "version"),
            names,
            scope: text(raw, "scope"),
            versions: list(raw, "versions")
                .unwrap_or_default()
                .iter()
                .map(Version::from_raw)
                .collect(),
            lists_versions: list(raw, "versions").is_some(),
            shared: Shared::default(),
            conversion: Conversion::from_raw(raw.get("conversion"), api),
            preserve_unknown_fields: raw.get("preserveUnknownFields").and_then(Value::as_bool),
        };
        match api {
            ApiVersion::V1 => spec.hoist(),
            ApiVersion::V1Beta1 => spec.default_v1beta1(raw),
        }
        let part = |field: &str| decoded.get(field).unwrap_or(&Value::Null);
        Self {
            metadata: part("metadata"),
            spec,
            status: part("status"),
        }
    }
}

impl<'a> Spec<'a> {
    /// Moves what all versions share from the versions to the spec.
    fn hoist(&mut self) {
        // Only v1beta1 reads a version from the file, and only there is an absent flag something else than false.
        self.preserve_unknown_fields.get_or_insert(false);
        self.version = String::new();
        let Some(first) = self.versions.first() else { return };
        self.version.clone_from(&first.name);
        let shared = first.own;
        if self
            .versions
            .iter()
            .all(|version| same(version.own.validation, shared.validation))
        {
            self.shared.validation = shared.validation;
            self.versions
                .iter_mut()
                .for_each(|version| version.own.validation = None);
        }
        if self
            .versions
            .iter()
            .all(|version| version.own.subresources == shared.subresources)
        {
            self.shared.subresources = shared.subresources;
            self.versions
                .iter_mut()
                .for_each(|version| version.own.subresources = None);
        }
        if self
            .versions
            .iter()
            .all(|version| same_items(version.own.columns, shared.columns))
        {
            self.shared.columns = shared.columns;
            self.versions.iter_mut().for_each(|version| version.own.columns = None);
        }
        if self
            .versions
            .iter()
            .all(|version| same_items(version.own.selectable_fields, shared.selectable_fields))
        {
            self.shared.selectable_fields = shared.selectable_fields;
            self.versions
                .iter_mut()
                .for_each(|version| version.own.selectable_fields = None);
        }
    }

    fn default_v1beta1(&mut self, raw: &'a Value) {
        self.shared = Shared {
            validation: raw.get("validation"),
            subresources: raw.get("subresources"),
            columns: list(raw, "additionalPrinterColumns"),
            selectable_fields: list(raw, "selectableFields"),
        };
        if self.scope.is_empty() {
            self.scope = "Namespaced".to_owned();
        }
        if self.versions.is_empty() && !self.version.is_empty() {
            let name = self.version.clone();
            self.versions.push(Version {
                name,
                served: true,
                storage: true,
                deprecated: false,
                deprecation_warning: None,
                own: Shared::default(),
            });
        }
        if self.version.is_empty()
            && let Some(first) = self.versions.first()
        {
            self.version.clone_from(&first.name);
        }
        if self.conversion.strategy == "Webhook" && self.conversion.review_versions.is_empty() {
            self.conversion.review_versions.push("v1beta1".to_owned());
        }
        self.preserve_unknown_fields.get_or_insert(true);
    }
}

impl Names {
    pub(super) fn from_raw(raw: Option<&Value>) -> Self {
        let raw = raw.unwrap_or(&Value::Null);
        Self {
            plural: text(raw, "plural"),
            singular: text(raw, "singular"),
            kind: text(raw, "kind"),
            list_kind: text(raw, "listKind"),
            short_names: texts(raw, "shortNames"),
            categories: texts(raw, "categories"),
        }
    }
}

impl<'a> Version<'a> {
    fn from_raw(raw: &'a Value) -> Self {
        let flag = |field: &str| raw.get(field).and_then(Value::as_bool).unwrap_or(false);
        Self {
            name: text(raw, "name"),
            served: flag("served"),
            storage: flag("storage"),
            deprecated: flag("deprecated"),
            deprecation_warning: raw.get("deprecationWarning").and_then(Value::as_str).map(str::to_owned),
            own: Shared {
                validation: raw.get("schema"),
                subresources: raw.get("subresources"),
                columns: list(raw, "additionalPrinterColumns"),
                selectable_fields: list(raw, "selectableFields"),
            },
        }
    }
}

impl<'a> Conversion<'a> {
    fn from_raw(raw: Option<&'a Value>, api: ApiVersion) -> Self {
        let Some(raw) = raw else {
            return Self {
                strategy: "None".to_owned(),
                ..Self::default()
            };
        };
        let (client_config, review_versions) = match api {
            ApiVersion::V1 => {
                let webhook = raw.get("webhook").unwrap_or(&Value::Null);
                (webhook.get("clientConfig"), texts(webhook, "conversionReviewVersions"))
            }
            ApiVersion::V1Beta1 => (raw.get("webhookClientConfig"), texts(raw, "conversionReviewVersions")),
        };
        Self {
            strategy: text(raw, "strategy"),
            client_config,
            review_versions,
        }
    }
}

/// Go's semantic equality of two schemas: nil and empty lists, maps, strings and false are the same.
pub(super) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        // Versions often have the same schema, and equality is faster.
        (Some(a), Some(b)) => std::ptr::eq(a, b) || a == b || same_but_for_zeros(a, b),
        _ => a.is_none() && b.is_none(),
    }
}

/// Go's semantic equality of two lists.
pub(super) fn same_items(a: Option<&[Value]>, b: Option<&[Value]>) -> bool {
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_but_for_zeros(a, b))
}

/// Fields of a schema that are pointers or free JSON: there a zero value differs from nothing.
const KEPT: [&str; 6] = [
    "default",
    "example",
    "enum",
    "$ref",
    "x-kubernetes-preserve-unknown-fields",
    "nullable",
];

fn same_but_for_zeros(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_but_for_zeros(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let set = |fields: &Map<String, Value>| fields.iter().filter(|(name, value)| is_set(name, value)).count();
            let found = |(name, value): (&String, &Value)| match b.get(name) {
                Some(other) if KEPT.contains(&name.as_str()) => value == other,
                Some(other) => is_set(name, other) && same_but_for_zeros(value, other),
                None => false,
            };
            set(a) == set(b) && a.iter().filter(|(name, value)| is_set(name, value)).all(found)
        }
        _ => a == b,
    }
}

/// False for a field that Go cannot distinguish from an absent one.
fn is_set(name: &str, value: &Value) -> bool {
    let is_map = || {
        matches!(
            name,
            "properties" | "patternProperties" | "definitions" | "dependencies"
        )
    };
    match value {
        Value::Array(items) => !items.is_empty() || matches!(name, "default" | "example"),
        Value::Object(inner) => !(inner.is_empty() && is_map()),
        Value::String(text) => !text.is_empty() || KEPT.contains(&name),
        Value::Bool(flag) => *flag || KEPT.contains(&name) || name.starts_with("additional"),
        _ => true,
    }
}

/// A string field. Empty when absent.
pub(super) fn text(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A list of strings. Empty when absent.
pub(super) fn texts(value: &Value, field: &str) -> Vec<String> {
    let items = value.get(field).and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .map(|item| item.as_str().unwrap_or_default().to_owned())
        .collect()
}

fn list<'a>(value: &'a Value, field: &str) -> Option<&'a [Value]> {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice)
}
