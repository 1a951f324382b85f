//! `tests/scorecard/config.yaml`

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The tests of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Configuration {
    /// `Configuration`. Not checked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `scorecard.operatorframework.io/v1alpha3`. Not checked.
    #[serde(rename = "apiVersion", skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// There so that kustomize can handle the object.
    pub metadata: Metadata,
    /// One stage runs after the other. A test that fails ends none.
    pub stages: Vec<Stage>,
    /// Storage for tests that do not configure any.
    pub storage: Storage,
    /// The service account of the pods.
    #[serde(rename = "serviceaccount", skip_serializing_if = "String::is_empty")]
    pub service_account: String,
}

/// The configuration's metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// Tests that run together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stage {
    /// Run the tests of a stage in parallel instead of in order.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
    /// The tests.
    pub tests: Vec<TestConfiguration>,
}

/// One test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestConfiguration {
    /// The image that is the test.
    pub image: String,
    /// Free text.
    #[serde(rename = "uniqueID", skip_serializing_if = "String::is_empty")]
    pub unique_id: String,
    /// The command, in place of the image's entrypoint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// Labels that selectors match.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Storage for the test's output files.
    pub storage: Storage,
}

/// Storage for a test's output files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Storage {
    /// The settings.
    pub spec: StorageSpec,
}

/// The settings of a storage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageSpec {
    /// Mount path.
    #[serde(rename = "mountPath")]
    pub mount_path: MountPath,
}

/// Mount path of a storage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MountPath {
    /// A directory in the test's container. Empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}
