//! The internal version of a CRD, with the defaults of the API applied.

use serde_json::{Map, Value};

use super::ApiVersion;

/// A CRD as the API server's checks see it.
pub(super) struct Crd {
    pub(super) metadata: Value,
    pub(super) spec: Spec,
    pub(super) status: Value,
}

/// `spec`. What is identical in all versions of a v1 CRD stands here and no longer in the versions.
#[derive(Default)]
pub(super) struct Spec {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) names: Names,
    pub(super) scope: String,
    pub(super) versions: Vec<Version>,
    /// Whether the list is there at all; Go prints an absent one otherwise than an empty one.
    pub(super) lists_versions: bool,
    pub(super) shared: Shared,
    pub(super) conversion: Conversion,
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

/// What may stand in a version or in the spec. `None` is Go's nil.
#[derive(Default, Clone, PartialEq)]
pub(super) struct Shared {
    pub(super) validation: Option<Value>,
    pub(super) subresources: Option<Value>,
    pub(super) columns: Option<Vec<Value>>,
    pub(super) selectable_fields: Option<Vec<Value>>,
}

/// One of `spec.versions`.
pub(super) struct Version {
    pub(super) name: String,
    pub(super) served: bool,
    pub(super) storage: bool,
    pub(super) deprecated: bool,
    pub(super) deprecation_warning: Option<String>,
    pub(super) own: Shared,
}

/// `spec.conversion`.
#[derive(Default)]
pub(super) struct Conversion {
    pub(super) strategy: String,
    pub(super) client_config: Option<Value>,
    pub(super) review_versions: Vec<String>,
}

impl Crd {
    /// Takes a decoded CRD (exact field names, no nulls).
    pub(super) fn new(decoded: &Value, api: ApiVersion) -> Self {
        let raw = decoded.get("spec").unwrap_or(&Value::Null);
        let mut names = Names::of(raw.get("names"));
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
                .map(Version::of)
                .collect(),
            lists_versions: list(raw, "versions").is_some(),
            shared: Shared::default(),
            conversion: Conversion::of(raw.get("conversion"), api),
            preserve_unknown_fields: raw.get("preserveUnknownFields").and_then(Value::as_bool),
        };
        match api {
            ApiVersion::V1 => spec.hoist(),
            ApiVersion::V1Beta1 => spec.default_v1beta1(raw),
        }
        let part = |field: &str| decoded.get(field).cloned().unwrap_or_default();
        Self {
            metadata: part("metadata"),
            spec,
            status: part("status"),
        }
    }
}

impl Spec {
    /// Moves what all versions share from the versions to the spec.
    fn hoist(&mut self) {
        // Only v1beta1 reads a version from the file, and only there is an absent flag something else than false.
        self.preserve_unknown_fields.get_or_insert(false);
        self.version = String::new();
        let Some(first) = self.versions.first() else { return };
        self.version.clone_from(&first.name);
        let shared = first.own.clone();
        if self
            .versions
            .iter()
            .all(|version| same(&version.own.validation, &shared.validation))
        {
            self.shared.validation.clone_from(&shared.validation);
            self.versions
                .iter_mut()
                .for_each(|version| version.own.validation = None);
        }
        if self
            .versions
            .iter()
            .all(|version| version.own.subresources == shared.subresources)
        {
            self.shared.subresources.clone_from(&shared.subresources);
            self.versions
                .iter_mut()
                .for_each(|version| version.own.subresources = None);
        }
        if self
            .versions
            .iter()
            .all(|version| same_items(&version.own.columns, &shared.columns))
        {
            self.shared.columns.clone_from(&shared.columns);
            self.versions.iter_mut().for_each(|version| version.own.columns = None);
        }
        if self
            .versions
            .iter()
            .all(|version| same_items(&version.own.selectable_fields, &shared.selectable_fields))
        {
            self.shared.selectable_fields = shared.selectable_fields;
            self.versions
                .iter_mut()
                .for_each(|version| version.own.selectable_fields = None);
        }
    }

    fn default_v1beta1(&mut self, raw: &Value) {
        self.shared = Shared {
            validation: raw.get("validation").cloned(),
            subresources: raw.get("subresources").cloned(),
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
    pub(super) fn of(raw: Option<&Value>) -> Self {
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

impl Version {
    fn of(raw: &Value) -> Self {
        let flag = |field: &str| raw.get(field).and_then(Value::as_bool).unwrap_or(false);
        Self {
            name: text(raw, "name"),
            served: flag("served"),
            storage: flag("storage"),
            deprecated: flag("deprecated"),
            deprecation_warning: raw.get("deprecationWarning").and_then(Value::as_str).map(str::to_owned),
            own: Shared {
                validation: raw.get("schema").cloned(),
                subresources: raw.get("subresources").cloned(),
                columns: list(raw, "additionalPrinterColumns"),
                selectable_fields: list(raw, "selectableFields"),
            },
        }
    }
}

impl Conversion {
    fn of(raw: Option<&Value>, api: ApiVersion) -> Self {
        let Some(raw) = raw else {
            return Self {
                strategy: "None".to_owned(),
                ..Self::default()
            };
        };
        let (client_config, review_versions) = match api {
            ApiVersion::V1 => {
                let webhook = raw.get("webhook").unwrap_or(&Value::Null);
                (
                    webhook.get("clientConfig").cloned(),
                    texts(webhook, "conversionReviewVersions"),
                )
            }
            ApiVersion::V1Beta1 => (
                raw.get("webhookClientConfig").cloned(),
                texts(raw, "conversionReviewVersions"),
            ),
        };
        Self {
            strategy: text(raw, "strategy"),
            client_config,
            review_versions,
        }
    }
}

/// Go's semantic equality of two schemas: nil and empty lists, maps, strings and false are the same.
pub(super) fn same(a: &Option<Value>, b: &Option<Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a == b || without_zeros(a) == without_zeros(b),
        _ => a.is_none() && b.is_none(),
    }
}

/// Go's semantic equality of two lists.
pub(super) fn same_items(a: &Option<Vec<Value>>, b: &Option<Vec<Value>>) -> bool {
    let items = |list: &Option<Vec<Value>>| list.as_deref().unwrap_or_default().to_vec();
    let (a, b) = (Value::Array(items(a)), Value::Array(items(b)));
    a == b || without_zeros(&a) == without_zeros(&b)
}

fn without_zeros(value: &Value) -> Value {
    /// Fields of a schema that are pointers or free JSON: there a zero value differs from nothing.
    const KEPT: [&str; 6] = [
        "default",
        "example",
        "enum",
        "$ref",
        "x-kubernetes-preserve-unknown-fields",
        "nullable",
    ];
    match value {
        Value::Array(items) => Value::Array(items.iter().map(without_zeros).collect()),
        Value::Object(fields) => {
            let is_map = |name: &str| {
                matches!(
                    name,
                    "properties" | "patternProperties" | "definitions" | "dependencies"
                )
            };
            let kept = fields.iter().filter(|(name, value)| match value {
                Value::Array(items) => !items.is_empty(),
                Value::Object(inner) => !(inner.is_empty() && is_map(name)),
                Value::String(text) => !text.is_empty() || KEPT.contains(&name.as_str()),
                Value::Bool(flag) => *flag || KEPT.contains(&name.as_str()) || name.starts_with("additional"),
                _ => true,
            });
            let cleaned = kept.map(|(name, value)| {
                let value = if KEPT.contains(&name.as_str()) {
                    value.clone()
                } else {
                    without_zeros(value)
                };
                (name.clone(), value)
            });
            Value::Object(cleaned.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// A string field; empty when absent.
pub(super) fn text(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A list of strings; empty when absent.
pub(super) fn texts(value: &Value, field: &str) -> Vec<String> {
    let items = value.get(field).and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .map(|item| item.as_str().unwrap_or_default().to_owned())
        .collect()
}

fn list(value: &Value, field: &str) -> Option<Vec<Value>> {
    value.get(field).and_then(Value::as_array).cloned()
}
