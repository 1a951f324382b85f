//! The custom resources of group `cache.example.com`, one module for each version.
//!
//! The CustomResourceDefinition, the descriptors of the ClusterServiceVersion and the documentation of the fields come
//! from these types alone. Two schema extensions have no place in the CRD. The renderer removes them
//! from it:
//!
//! | extension | where | value |
//! |---|---|---|
//! | [`DESCRIPTOR`] | a field of spec or status | `{"displayName": …, "x-descriptors": […]}` |
//! | [`OWNED`] | the spec itself | `{"displayName": …, "description": …, "resources": [{"kind", "name", "version"}]}` |
//!
//! `Memcached::crd()` drops unknown schema keys, so a renderer that wants them takes the schema from the
//! [`schemars::JsonSchema`] of the type.
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::{Value, json};

pub mod v1alpha1;

/// Schema extension of a field: its descriptor in the ClusterServiceVersion.
pub const DESCRIPTOR: &str = "x-olm-descriptor";

/// Schema extension of a spec: the entry under `customresourcedefinitions.owned` of the ClusterServiceVersion.
pub const OWNED: &str = "x-olm-owned";

/// The OLM console's widget for a number of pods.
pub const POD_COUNT: &str = "urn:alm:descriptor:com.tectonic.ui:podCount";
/// The OLM console's widget for a number.
pub const NUMBER: &str = "urn:alm:descriptor:com.tectonic.ui:number";
/// The OLM console's widget for a line of text.
pub const TEXT: &str = "urn:alm:descriptor:com.tectonic.ui:text";
/// The OLM console's widget for resource requests and limits.
pub const RESOURCE_REQUIREMENTS: &str = "urn:alm:descriptor:com.tectonic.ui:resourceRequirements";
/// The OLM console's list of values: a Deployment.
pub const SELECT_DEPLOYMENT: &str = "urn:alm:descriptor:com.tectonic.ui:select:Deployment";
/// The OLM console's list of values: a StatefulSet.
pub const SELECT_STATEFUL_SET: &str = "urn:alm:descriptor:com.tectonic.ui:select:StatefulSet";
/// The OLM console's list of values: a warm restart.
pub const SELECT_WARM_RESTART: &str = "urn:alm:descriptor:com.tectonic.ui:select:WarmRestart";
/// The OLM console's list of values: a resize in place.
pub const SELECT_RESIZE_IN_PLACE: &str = "urn:alm:descriptor:com.tectonic.ui:select:ResizeInPlace";
/// The OLM console folds fields with this mark away.
pub const ADVANCED: &str = "urn:alm:descriptor:com.tectonic.ui:advanced";
/// The OLM console's list of conditions.
pub const CONDITIONS: &str = "urn:alm:descriptor:io.kubernetes.conditions";
/// The OLM console's phase badge.
pub const PHASE: &str = "urn:alm:descriptor:io.kubernetes.phase";

/// The value of [`DESCRIPTOR`] for a field.
pub(crate) fn descriptor(display_name: &str, x_descriptors: &[&str]) -> Value {
    json!({ "displayName": display_name, "x-descriptors": x_descriptors })
}

/// The OpenAPI schema of `T` as a structural schema: references are inlined, enums folded, and the two extensions
/// of this module still in place.
pub fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(kube::core::schema::StructuralSchemaRewriter)
        .with_transform(kube::core::schema::OptionalEnum)
        .with_transform(kube::core::schema::OptionalIntOrString)
        .into_generator()
        .into_root_schema_for::<T>()
}
