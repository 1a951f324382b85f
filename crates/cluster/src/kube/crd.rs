//! Custom resource definitions of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::conditions::Conditions as _;
use super::origin::Origin;
use crate::base::json::text;
use crate::base::kinds;

/// Relevant data of a CRD in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrdState {
    /// True if its API is served.
    pub established: bool,
    /// Versions served.
    pub served: BTreeSet<String>,
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Plural.
    pub plural: String,
    /// True if its objects live in namespaces.
    pub namespaced: bool,
    /// True if it is being deleted.
    pub deleting: bool,
    /// The version that objects are stored in.
    pub storage: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Its creator.
    pub origin: Origin,
}

impl CrdState {
    /// Reads a CRD.
    pub fn from_crd(crd: &Value) -> Self {
        let versions = crd
            .pointer("/spec/versions")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let flag = |version: &Value, name: &str| version.get(name).and_then(Value::as_bool).unwrap_or(false);
        CrdState {
            established: crd.is_true("Established"),
            served: versions
                .iter()
                .filter(|version| flag(version, "served"))
                .map(|version| text(version, "/name").to_owned())
                .collect(),
            group: text(crd, "/spec/group").to_owned(),
            kind: text(crd, "/spec/names/kind").to_owned(),
            plural: text(crd, "/spec/names/plural").to_owned(),
            namespaced: text(crd, "/spec/scope") != "Cluster",
            deleting: crd.pointer("/metadata/deletionTimestamp").is_some(),
            storage: versions
                .iter()
                .find(|version| flag(version, "storage"))
                .map(|version| text(version, "/name").to_owned())
                .unwrap_or_default(),
            labels: crd
                .pointer("/metadata/labels")
                .and_then(|labels| serde_json::from_value(labels.clone()).ok())
                .unwrap_or_default(),
            origin: Origin::of_crd(crd),
        }
    }

    /// The kind of its objects, in the version that they are stored in.
    pub fn instances(&self) -> kinds::Kind {
        let version = if self.served.contains(&self.storage) {
            &self.storage
        } else {
            self.served.iter().next().unwrap_or(&self.storage)
        };
        kinds::Kind {
            group: self.group.clone(),
            version: version.clone(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
            namespaced: self.namespaced,
        }
    }
}
