//! A custom resource's kind, read from its Rust type.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Error;
use crate::schema::{self, Descriptors};

/// The schema extension of a spec that describes the kind: `displayName`, `description`, `resources`.
pub const OWNED_EXTENSION: &str = "x-olm-owned";

/// A kind of objects that a custom resource consists of, for the catalog's page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Resource {
    /// The kind, `Deployment`.
    pub kind: String,
    /// Name of the object. Empty when it varies.
    #[serde(default)]
    pub name: String,
    /// API version without group, `v1`.
    pub version: String,
}

/// Descriptive data of one version of a kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presentation {
    pub(crate) version: String,
    pub(crate) display_name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) descriptors: Descriptors,
}

/// One kind, in one or more versions.
#[derive(Debug, Clone)]
pub struct Api {
    pub(crate) crd: CustomResourceDefinition,
    /// By version, as derived.
    schemas: BTreeMap<String, Value>,
    pub(crate) presentations: Vec<Presentation>,
    pub(crate) samples: Vec<Value>,
    pub(crate) options: schema::Options,
    pub(crate) conversion_path: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Owned {
    display_name: Option<String>,
    description: Option<String>,
    resources: Vec<Resource>,
}

impl Api {
    /// Reads a kind from its type: the definition as `kube` derives it, descriptors and presentation from the schema
    /// extensions on the same type.
    ///
    /// # Errors
    /// If the schema has no structural form, or an extension contains an unknown key.
    pub fn of<T: CustomResourceExt + JsonSchema>() -> Result<Self, Error> {
        Self::with_schema::<T>(schemars::schema_for!(T))
    }

    /// Reads a kind whose schema `kube` cannot print, and which therefore has `#[kube(schema = "disabled")]`: its
    /// derive panics for enums with a tag (`#[serde(tag = "type")]`) whose variants document one field differently. The
    /// schema is that of any type with the fields `spec` and optionally `status`.
    ///
    /// ```
    /// # use schemars::{JsonSchema, schema_for};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(kube::CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    /// #[kube(group = "example.com", version = "v1", kind = "Store", namespaced, schema = "disabled")]
    /// pub struct StoreSpec {
    ///     medium: Medium,
    /// }
    ///
    /// #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
    /// #[serde(tag = "type")]
    /// enum Medium {
    ///     Disk { size: u32 },
    ///     Tape { label: String },
    /// }
    ///
    /// #[derive(JsonSchema)]
    /// # #[allow(dead_code)]
    /// struct Schema {
    ///     spec: StoreSpec,
    /// }
    ///
    /// let store = olmkit_project::Api::with_schema::<Store>(schema_for!(Schema))?;
    /// let definition = store.definition()?;
    /// let medium = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/medium/properties/type/enum";
    /// assert_eq!(definition.pointer(medium), Some(&serde_json::json!(["Disk", "Tape"])));
    /// # Ok::<(), olmkit_project::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the schema has no structural form, or an extension contains an unknown key.
    pub fn with_schema<T: CustomResourceExt>(schema: schemars::Schema) -> Result<Self, Error> {
        Self::from_definition(T::crd(), schema)
    }

    /// A kind whose type is not available: the definition of one version, and the schema with its extensions.
    ///
    /// # Errors
    /// If the schema has no structural form, or an extension contains an unknown key.
    pub fn from_definition(crd: CustomResourceDefinition, schema: schemars::Schema) -> Result<Self, Error> {
        let raw = schema.to_value();
        let version = crd
            .spec
            .versions
            .first()
            .map(|version| version.name.clone())
            .unwrap_or_default();
        let owned = match find_owned(&raw) {
            Some(owned) => serde_json::from_value(owned.clone()).map_err(|source| Error::Setting {
                setting: format!("{}: {OWNED_EXTENSION}", crd.spec.names.kind),
                reason: source.to_string(),
            })?,
            None => Owned::default(),
        };
        let presentation = Presentation {
            version: version.clone(),
            display_name: owned.display_name,
            description: owned.description,
            resources: owned.resources,
            descriptors: schema::descriptors_of(raw.clone())?,
        };
        Ok(Self {
            crd,
            schemas: BTreeMap::from([(version, raw)]),
            presentations: vec![presentation],
            samples: Vec::new(),
            options: schema::Options::default(),
            conversion_path: None,
        })
    }

    /// Adds another version of the same kind, derived from its own type. `stored` names the version that etcd keeps.
    ///
    /// # Errors
    /// When group, kind, plural or scope differ, or no version is called `stored`.
    pub fn version(mut self, other: Self, stored: &str) -> Result<Self, Error> {
        self.crd = schema::merge_versions(vec![self.crd, other.crd], stored)?;
        self.schemas.extend(other.schemas);
        self.presentations.extend(other.presentations);
        self.samples.extend(other.samples);
        Ok(self)
    }

    /// Adds an example object: a file in `config/samples`, and an entry of `alm-examples` in the bundle.
    ///
    /// # Errors
    /// When the object does not serialise.
    pub fn sample<T: Serialize>(mut self, object: &T) -> Result<Self, Error> {
        let kind = self.crd.spec.names.kind.clone();
        let mut value = serde_json::to_value(object).map_err(|source| Error::Serialise {
            object: format!("the sample of {kind}"),
            source,
        })?;
        if let Some(map) = value.as_object_mut() {
            map.remove("status");
        }
        self.samples.push(value);
        Ok(self)
    }

    /// Sets the options for normalizing the schema.
    #[must_use]
    pub fn options(mut self, options: schema::Options) -> Self {
        self.options = options;
        self
    }

    /// Sets how the apiserver converts between versions, for example through a webhook of the operator.
    #[must_use]
    pub fn conversion(
        mut self,
        conversion: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceConversion,
    ) -> Self {
        self.crd.spec.conversion = Some(conversion);
        self
    }

    /// Lets a webhook of the operator at `path` convert between the versions.
    #[must_use]
    pub fn converted_at(mut self, path: &str) -> Self {
        self.conversion_path = Some(path.to_owned());
        self
    }

    /// The definition, normalised.
    ///
    /// # Errors
    /// When a schema has no structural form.
    pub fn definition(&self) -> Result<Value, Error> {
        Ok(schema::normalise_with(&self.crd, &self.schemas, &self.options)?)
    }

    /// `<group>_<plural>`, which controller-gen uses for file names.
    pub(crate) fn file_stem(&self) -> String {
        format!("{}_{}", self.crd.spec.group, self.crd.spec.names.plural)
    }
}

/// The extension may be on the root, or on the spec's own definition.
fn find_owned(schema: &Value) -> Option<&Value> {
    if let Some(owned) = schema.get(OWNED_EXTENSION) {
        return Some(owned);
    }
    let spec = schema.pointer("/properties/spec")?;
    if let Some(owned) = spec.get(OWNED_EXTENSION) {
        return Some(owned);
    }
    let name = spec.get("$ref")?.as_str()?.rsplit('/').next()?;
    schema.get("$defs")?.get(name)?.get(OWNED_EXTENSION)
}
