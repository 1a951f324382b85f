//! A bundle in a catalog: parts that cost OLM time without affecting the results are omitted.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olmkit::bundle::kinds::{self, Program};
use olmkit::object::Version;
use serde_json::{Value, json};

use crate::bundles::Subject;

/// The channel of every package.
const CHANNEL: &str = "all";

/// A bundle, and the namespace into which OLM installs it.
pub struct Trial<'s> {
    /// The tested bundle.
    pub subject: &'s Subject,
    /// Name of package and namespace.
    pub name: String,
    /// The install mode.
    pub mode: String,
    /// The ClusterServiceVersion as the catalog has it.
    pub csv: Value,
    /// The CRDs without their schemas.
    pub definitions: Vec<Value>,
    /// Objects of kinds that the API server serves.
    pub objects: Vec<Value>,
    /// Objects of APIs that the cluster does not serve.
    pub foreign: Vec<Value>,
}

impl<'s> Trial<'s> {
    /// The bundle, unless it cannot be installed: it lacks a ClusterServiceVersion, an install mode or a version, or
    /// has CRDs of v1beta1.
    pub fn new(subject: &'s Subject, at: usize, everywhere: bool, served: &BTreeSet<(String, String)>) -> Option<Self> {
        let of_kind = |kind: &'static str| subject.objects.iter().filter(move |object| object["kind"] == kind);
        let csv = plain(of_kind("ClusterServiceVersion").next()?);
        Version::parse(csv["spec"]["version"].as_str()?).ok()?;
        if of_kind("CustomResourceDefinition").any(|crd| crd["apiVersion"] != "apiextensions.k8s.io/v1") {
            return None;
        }
        let definitions = of_kind("CustomResourceDefinition").map(without_schemas).collect();
        let others = subject.objects.iter().filter(|object| {
            let kind = object["kind"].as_str().unwrap_or_default();
            !matches!(kind, "ClusterServiceVersion" | "CustomResourceDefinition")
                && kinds::is_accepted(kind, Program::OlmV0, kinds::NEWEST_OLM_V0)
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (objects, foreign) = others
            .cloned()
            .partition(|object| served.contains(&(text(&object["apiVersion"]), text(&object["kind"]))));
        Some(Self {
            subject,
            name: format!("p{at}"),
            mode: mode(&csv, everywhere)?,
            csv,
            definitions,
            objects,
            foreign,
        })
    }

    /// The name of the ClusterServiceVersion.
    pub fn csv_name(&self) -> &str {
        self.csv["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The API groups of the CRDs: two operators that own the same API conflict.
    pub fn groups(&self) -> BTreeSet<&str> {
        let groups = self.definitions.iter().filter_map(|crd| crd["spec"]["group"].as_str());
        groups.chain([self.csv_name()]).collect()
    }

    /// The namespace that the operator watches. None if it watches all.
    pub fn target(&self) -> Option<String> {
        match self.mode.as_str() {
            "AllNamespaces" => None,
            "OwnNamespace" => Some(self.name.clone()),
            _ => Some(format!("{}-watched", self.name)),
        }
    }

    /// Package, channel and bundle of a file-based catalog.
    pub fn blobs(&self) -> String {
        let objects = [&self.csv].into_iter().chain(&self.definitions).chain(&self.objects);
        let mut properties = vec![json!({
            "type": "olm.package",
            "value": {"packageName": self.name, "version": self.csv["spec"]["version"]},
        })];
        properties.extend(self.definitions.iter().flat_map(provided));
        properties.extend(objects.map(
            |object| json!({"type": "olm.bundle.object", "value": {"data": STANDARD.encode(object.to_string())}}),
        ));
        [
            json!({"schema": "olm.package", "name": self.name, "defaultChannel": CHANNEL}),
            json!({"schema": "olm.channel", "package": self.name, "name": CHANNEL, "entries": [{"name": self.csv_name()}]}),
            json!({"schema": "olm.bundle", "package": self.name, "name": self.csv_name(), "properties": properties}),
        ]
        .map(|blob| blob.to_string())
        .join("\n")
    }

    /// The objects that a user creates to install it.
    pub fn requests(&self, catalog: &str) -> Vec<(String, Value)> {
        let namespace = |name: &str| {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            ("/api/v1/namespaces".to_owned(), object)
        };
        let olm = |version: &str, plural: &str| {
            format!("/apis/operators.coreos.com/{version}/namespaces/{}/{plural}", self.name)
        };
        let targets = self.target();
        let mut requests = vec![namespace(&self.name)];
        requests.extend(
            targets
                .iter()
                .filter(|target| **target != self.name)
                .map(|target| namespace(target)),
        );
        let spec = targets.map_or(json!({}), |target| json!({"targetNamespaces": [target]}));
        requests.push((
            olm("v1", "operatorgroups"),
            json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "group"}, "spec": spec}),
        ));
        requests.push((
            olm("v1alpha1", "subscriptions"),
            json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "operator"},
                "spec": {"name": self.name, "channel": CHANNEL, "source": catalog, "sourceNamespace": "olm"},
            }),
        ));
        requests
    }
}

/// The ClusterServiceVersion without required operators and APIs (OLM parses their names in any case), earlier
/// versions, and display data.
fn plain(csv: &Value) -> Value {
    let mut csv = csv.clone();
    for (parent, keys) in [
        ("", &["status"][..]),
        ("/metadata", &["namespace"]),
        (
            "/metadata/annotations",
            &["alm-examples", "olm.examples", "olm.skipRange", "olm.properties"],
        ),
        (
            "/spec",
            &["icon", "description", "replaces", "skips", "nativeAPIs", "nativeApis"],
        ),
        ("/spec/customresourcedefinitions", &["required"]),
        ("/spec/apiservicedefinitions", &["required"]),
    ] {
        let Some(parent) = csv.pointer_mut(parent).and_then(Value::as_object_mut) else {
            continue;
        };
        for key in keys {
            parent.remove(*key);
        }
    }
    csv
}

/// The CRD with schemas that accept everything: schemas are tested on the API server.
fn without_schemas(crd: &Value) -> Value {
    let mut crd = crd.clone();
    if let Some(object) = crd.as_object_mut() {
        object.remove("status");
    }
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if let Some(version) = version.as_object_mut() {
            version.remove("selectableFields");
        }
        version["schema"] =
            json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    }
    crd
}

/// The APIs of a CRD, as properties.
fn provided(crd: &Value) -> Vec<Value> {
    let spec = &crd["spec"];
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions
        .map(|version| {
            json!({"type": "olm.gvk", "value": {
                "group": spec["group"], "kind": spec["names"]["kind"], "version": version["name"],
            }})
        })
        .collect()
}

/// The install mode: one namespace or all of them, as requested, if the operator supports it.
fn mode(csv: &Value, everywhere: bool) -> Option<String> {
    let modes = csv["spec"]["installModes"].as_array()?;
    let mut order = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
    if everywhere {
        order.reverse();
    }
    let is_supported = |wanted: &&str| {
        modes
            .iter()
            .any(|mode| mode["type"] == *wanted && mode["supported"] == true)
    };
    order
        .iter()
        .find(|mode| is_supported(mode))
        .map(|mode| (*mode).to_owned())
}
