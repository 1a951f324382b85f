//! Effects of an upgrade on a user: additions, removals, and permissions to grant.

mod permissions;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

pub use permissions::TooManyPermissions;

use crate::property;
use crate::read::{Bundle, Object};
use crate::{list, text};
use olmkit_catalog::model;
use permissions::{lines, permissions};

/// The differences of two bundles, each a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Facts of the later bundle only.
    pub gained: Vec<String>,
    /// Facts of the earlier bundle only.
    pub lost: Vec<String>,
    /// Items in both, with other content.
    pub changed: Vec<String>,
    /// Permissions of the later bundle only.
    pub granted: Vec<String>,
    /// Permissions of the earlier bundle only.
    pub returned: Vec<String>,
}

impl Summary {
    /// Returns true if the bundles are alike in all that is compared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// The nonempty parts, with their titles.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        let parts: [(_, &[String]); 5] = [
            ("Gained", &self.gained),
            ("Lost", &self.lost),
            ("Changed", &self.changed),
            ("To grant", &self.granted),
            ("No longer needed", &self.returned),
        ];
        parts.into_iter().filter(|(_, lines)| !lines.is_empty())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, lines) in self.parts() {
            writeln!(formatter, "{title}:")?;
            for line in lines {
                writeln!(formatter, "  {line}")?;
            }
        }
        Ok(())
    }
}

/// Compares two bundles.
///
/// # Errors
/// See [`TooManyPermissions`].
pub fn summary(old: &Bundle, new: &Bundle) -> Result<Summary, TooManyPermissions> {
    let mut summary = Summary::default();
    let facts: [fn(&Bundle) -> BTreeSet<String>; 11] = [
        names,
        |bundle| bundle.metadata.clone(),
        edges,
        properties,
        definitions,
        required,
        objects,
        webhooks,
        images,
        modes,
        deployments,
    ];
    for fact in facts {
        let (before, now) = (fact(old), fact(new));
        summary.gained.extend(now.difference(&before).cloned());
        summary.lost.extend(before.difference(&now).cloned());
    }
    summary.changed = changed(old, new);
    let (before, now) = (permissions(old)?, permissions(new)?);
    summary.granted = lines(now.difference(&before));
    summary.returned = lines(before.difference(&now));
    Ok(summary)
}

fn names(bundle: &Bundle) -> BTreeSet<String> {
    let csv = &bundle.csv.value;
    let mut names = BTreeSet::from([
        format!("package {}", bundle.package),
        format!("version {}", text(csv, "/spec/version")),
        format!("ClusterServiceVersion {}", bundle.csv.name()),
    ]);
    let kubernetes = text(csv, "/spec/minKubeVersion");
    if !kubernetes.is_empty() {
        names.insert(format!("minimum Kubernetes version {kubernetes}"));
    }
    names
}

/// The upgrade edges that the ClusterServiceVersion describes.
fn edges(bundle: &Bundle) -> BTreeSet<String> {
    let csv = &bundle.csv.value;
    let skips = list(csv, "/spec/skips").iter().filter_map(Value::as_str);
    let mut edges: BTreeSet<String> = skips.map(|skip| format!("skips {skip}")).collect();
    let annotations = csv.pointer("/metadata/annotations");
    let range = annotations.and_then(|annotations| annotations.get("olm.skipRange")?.as_str());
    edges.extend(range.map(|range| format!("skipRange {range}")));
    let replaces = text(csv, "/spec/replaces");
    if !replaces.is_empty() {
        edges.insert(format!("replaces {replaces}"));
    }
    edges
}

/// The properties of the bundle, such as the highest version of OpenShift. Others describe its package and APIs.
fn properties(bundle: &Bundle) -> BTreeSet<String> {
    let annotations = bundle.csv.value.pointer("/metadata/annotations");
    let text = annotations.and_then(|annotations| annotations.get("olm.properties")?.as_str());
    let properties = property::parse(text.unwrap_or_default()).unwrap_or_default();
    let own = [model::PROPERTY_PACKAGE, model::PROPERTY_GVK];
    let further = properties
        .iter()
        .filter(|property| !own.contains(&property.kind.as_str()));
    further
        .map(|property| format!("property {} {}", property.kind, property.value))
        .collect()
}

/// The APIs that other operators or the cluster must serve.
fn required(bundle: &Bundle) -> BTreeSet<String> {
    let csv = &bundle.csv.value;
    let mut required = BTreeSet::new();
    for definition in list(csv, "/spec/customresourcedefinitions/required") {
        let (name, version) = (text(definition, "/name"), text(definition, "/version"));
        required.insert(format!("required CRD {name}, version {version}"));
    }
    for service in list(csv, "/spec/apiservicedefinitions/required") {
        let (version, group) = (text(service, "/version"), text(service, "/group"));
        required.insert(format!("required APIService {version}.{group}"));
    }
    for api in list(csv, "/spec/nativeAPIs") {
        let (group, version, kind) = (text(api, "/group"), text(api, "/version"), text(api, "/kind"));
        required.insert(format!("required API {kind}.{version}.{group}"));
    }
    required
}

fn definitions(bundle: &Bundle) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for definition in &bundle.definitions {
        out.insert(format!("CRD {}", definition.name()));
        for version in list(&definition.value, "/spec/versions") {
            let name = text(version, "/name");
            let flag = |field: &str| version.get(field) == Some(&Value::Bool(true));
            if flag("served") {
                out.insert(format!("CRD {}: version {name} is served", definition.name()));
            }
            if flag("storage") {
                out.insert(format!("CRD {}: objects are stored as {name}", definition.name()));
            }
        }
    }
    for service in list(&bundle.csv.value, "/spec/apiservicedefinitions/owned") {
        let (version, group) = (text(service, "/version"), text(service, "/group"));
        out.insert(format!("APIService {version}.{group}"));
    }
    out
}

/// The kind and name of an object that is neither a ClusterServiceVersion nor a CRD.
fn described(object: &Object) -> String {
    format!("{} {}", object.kind(), object.name())
}

fn objects(bundle: &Bundle) -> BTreeSet<String> {
    bundle.others.iter().map(described).collect()
}

fn webhooks(bundle: &Bundle) -> BTreeSet<String> {
    list(&bundle.csv.value, "/spec/webhookdefinitions")
        .iter()
        .map(|webhook| format!("{} {}", text(webhook, "/type"), text(webhook, "/generateName")))
        .collect()
}

fn images(bundle: &Bundle) -> BTreeSet<String> {
    let csv = &bundle.csv.value;
    let mut images: BTreeSet<&str> = list(csv, "/spec/relatedImages")
        .iter()
        .map(|image| text(image, "/image"))
        .collect();
    for deployment in list(csv, DEPLOYMENTS) {
        for kind in ["containers", "initContainers"] {
            let containers = list(deployment, &format!("/spec/template/spec/{kind}"));
            images.extend(containers.iter().map(|container| text(container, "/image")));
        }
    }
    images.into_iter().map(|image| format!("image {image}")).collect()
}

fn modes(bundle: &Bundle) -> BTreeSet<String> {
    list(&bundle.csv.value, "/spec/installModes")
        .iter()
        .filter(|mode| mode.get("supported") == Some(&Value::Bool(true)))
        .map(|mode| format!("install mode {}", text(mode, "/type")))
        .collect()
}

const DEPLOYMENTS: &str = "/spec/install/spec/deployments";

fn deployments(bundle: &Bundle) -> BTreeSet<String> {
    let deployments = list(&bundle.csv.value, DEPLOYMENTS).iter();
    deployments
        .map(|deployment| format!("Deployment {}", text(deployment, "/name")))
        .collect()
}

/// The items of two lists with the same name.
fn pairs<'a>(
    old: &'a Bundle,
    new: &'a Bundle,
    pointer: &str,
    name: fn(&Value) -> String,
) -> Vec<(String, &'a Value, &'a Value)> {
    let earlier: BTreeMap<String, &Value> = list(&old.csv.value, pointer)
        .iter()
        .map(|item| (name(item), item))
        .collect();
    let now = list(&new.csv.value, pointer).iter();
    now.filter_map(|item| Some((name(item), *earlier.get(&name(item))?, item)))
        .collect()
}

/// The keys of two maps whose values differ, except some.
fn differing<'a>(old: Option<&'a Value>, new: Option<&'a Value>, except: &[&str]) -> Vec<&'a str> {
    let [before, now] = [old, new].map(|map| map.and_then(Value::as_object));
    let keys: BTreeSet<&str> = [before, now]
        .into_iter()
        .flatten()
        .flat_map(|map| map.keys().map(String::as_str))
        .collect();
    let of = |map: Option<&'a Map<String, Value>>, key: &str| map.and_then(|map| map.get(key));
    keys.into_iter()
        .filter(|key| !except.contains(key) && of(before, key) != of(now, key))
        .collect()
}

/// The parts of a Deployment that differ. Images are listed separately.
fn deployment_parts(old: &Value, new: &Value) -> Vec<String> {
    let both = |pointer: &str| (old.pointer(pointer), new.pointer(pointer));
    let mut parts = Vec::new();
    let (before, now) = both("/label");
    if before != now {
        parts.push("labels".to_owned());
    }
    let replicas = |deployment: &Value| {
        // The API server's default.
        let replicas = deployment.pointer("/spec/replicas").and_then(Value::as_i64);
        replicas.unwrap_or(1)
    };
    let (before, now) = (replicas(old), replicas(new));
    if before != now {
        parts.push(format!("{before} -> {now} replicas"));
    }
    let mut fields = |(old, new), except: &[&str], prefix: &str| {
        parts.extend(
            differing(old, new, except)
                .iter()
                .map(|field| format!("{prefix}{field}")),
        );
    };
    fields(both("/spec"), &["replicas", "template"], "");
    fields(both("/spec/template/metadata"), &["creationTimestamp"], "pod ");
    fields(both("/spec/template/spec"), &["containers", "initContainers"], "");
    for kind in ["containers", "initContainers"] {
        let pointer = format!("/spec/template/spec/{kind}");
        let [before, now] = [old, new].map(|deployment| -> BTreeMap<&str, &Value> {
            let containers = list(deployment, &pointer).iter();
            containers
                .map(|container| (text(container, "/name"), container))
                .collect()
        });
        for (name, container) in &now {
            match before.get(name) {
                Some(earlier) => {
                    let fields = differing(Some(earlier), Some(container), &["image"]);
                    if !fields.is_empty() {
                        parts.push(format!("{} of container {name}", fields.join(", ")));
                    }
                }
                None => parts.push(format!("new container {name}")),
            }
        }
        let removed = before.keys().filter(|name| !now.contains_key(*name));
        parts.extend(removed.map(|name| format!("removed container {name}")));
    }
    parts
}

/// The parts of a CRD that differ, except which versions are served and stored.
fn definition_parts(old: &Value, new: &Value) -> Vec<String> {
    let mut parts = Vec::new();
    for (prefix, pointer, except) in [
        ("", "/spec", &["versions", "names"][..]),
        ("names: ", "/spec/names", &[]),
        ("", "/metadata", &["annotations", "labels", "creationTimestamp", "name"]),
    ] {
        let fields = differing(old.pointer(pointer), new.pointer(pointer), except);
        if !fields.is_empty() {
            parts.push(format!("{prefix}{}", fields.join(", ")));
        }
    }
    let earlier: BTreeMap<&str, &Value> = list(old, "/spec/versions")
        .iter()
        .map(|version| (text(version, "/name"), version))
        .collect();
    for version in list(new, "/spec/versions") {
        let name = text(version, "/name");
        let fields = differing(
            earlier.get(name).copied(),
            Some(version),
            &["served", "storage", "name"],
        );
        if earlier.contains_key(name) && !fields.is_empty() {
            parts.push(format!("{} of version {name}", fields.join(", ")));
        }
    }
    parts
}

/// Items in both bundles with other content: further objects, CRDs, Deployments, webhooks and API services.
fn changed(old: &Bundle, new: &Bundle) -> Vec<String> {
    let before: BTreeMap<String, &Object> = old.others.iter().map(|object| (described(object), object)).collect();
    let mut changed: Vec<String> = new
        .others
        .iter()
        .map(|object| (described(object), object))
        .filter(|(name, object)| before.get(name).is_some_and(|earlier| earlier.value != object.value))
        .map(|(name, _)| name)
        .collect();
    for (name, earlier, now) in pairs(old, new, DEPLOYMENTS, |deployment| text(deployment, "/name").to_owned()) {
        let parts = deployment_parts(earlier, now);
        if !parts.is_empty() {
            changed.push(format!("Deployment {name}: {}", parts.join("; ")));
        }
    }
    let earlier: BTreeMap<&str, &Object> = old.definitions.iter().map(|object| (object.name(), object)).collect();
    for definition in &new.definitions {
        let Some(before) = earlier.get(definition.name()) else {
            continue;
        };
        let parts = definition_parts(&before.value, &definition.value);
        if !parts.is_empty() {
            changed.push(format!("CRD {}: {}", definition.name(), parts.join("; ")));
        }
    }
    let described_webhook = |webhook: &Value| format!("{} {}", text(webhook, "/type"), text(webhook, "/generateName"));
    let described_service =
        |service: &Value| format!("APIService {}.{}", text(service, "/version"), text(service, "/group"));
    let of_csv = pairs(old, new, "/spec/webhookdefinitions", described_webhook)
        .into_iter()
        .chain(pairs(old, new, "/spec/apiservicedefinitions/owned", described_service));
    for (name, earlier, now) in of_csv {
        let fields = differing(Some(earlier), Some(now), &["description", "displayName"]);
        if !fields.is_empty() {
            changed.push(format!("{name}: {}", fields.join(", ")));
        }
    }
    changed.sort();
    changed.dedup();
    changed
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)] // a test fails by panicking
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use olmkit_bundle::load::Tree;

    const ANNOTATIONS: &str = "annotations:\n  operators.operatorframework.io.bundle.package.v1: shop\n";

    /// A bundle with lines of `spec.install.spec` and further objects, each a kind, a name and the other lines.
    fn bundle(name: &str, install: &str, others: &[(&str, &str, &str)]) -> Bundle {
        let csv = format!(
            "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: {name}}}\nspec:\n  \
             version: 1.0.0\n  install:\n    strategy: deployment\n    spec:\n{install}"
        );
        let mut files = vec![
            ("manifests/csv.yaml".to_owned(), csv),
            ("metadata/annotations.yaml".to_owned(), ANNOTATIONS.to_owned()),
        ];
        for (kind, name, rest) in others {
            let version = if *kind == "ClusterRole" {
                "rbac.authorization.k8s.io/v1"
            } else {
                "v1"
            };
            let text = format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\n{rest}");
            files.push((format!("manifests/{kind}-{name}.yaml"), text));
        }
        let files = files.into_iter().map(|(path, text)| (path, text.into_bytes()));
        Bundle::read(&Tree::from_files(files)).unwrap()
    }

    #[test]
    fn names_objects_and_replicas_are_compared() {
        let deployment = |replicas: &str| format!("      deployments: [{{name: manager, spec: {{{replicas}}}}}]\n");
        let config = ("ConfigMap", "config", "data: {a: b}\n");
        let role = ("ClusterRole", "viewer", "rules: []\n");
        let removed = ("ConfigMap", "removed", "data: {a: b}\n");
        let objects = [config, role, removed, ("Service", "old", "")];
        let old = bundle("shop.v1.0.0", &deployment(""), &objects);
        let new = bundle(
            "store.v1.0.0",
            &deployment("replicas: 0"),
            &[("ConfigMap", "config", "data: {a: c}\n")],
        );
        let summary = summary(&old, &new).unwrap();
        assert_eq!(summary.gained, ["ClusterServiceVersion store.v1.0.0"]);
        assert_eq!(
            summary.lost,
            [
                "ClusterServiceVersion shop.v1.0.0",
                "ClusterRole viewer",
                "ConfigMap removed",
                "Service old"
            ]
        );
        assert_eq!(
            summary.changed,
            ["ConfigMap config", "Deployment manager: 1 -> 0 replicas"]
        );
        let other = bundle(
            "shop.v1.0.0",
            "      deployments: [{name: other}]\n",
            &[config, role, removed],
        );
        let moved = super::summary(&old, &other).unwrap();
        assert_eq!(
            (moved.gained, moved.lost),
            (
                vec!["Deployment other".to_owned()],
                vec!["Service old".to_owned(), "Deployment manager".to_owned()]
            )
        );
        let explicit = bundle("shop.v1.0.0", &deployment("replicas: 1"), &objects);
        assert!(super::summary(&old, &explicit).unwrap().is_empty(), "1 is the default");
    }

    #[test]
    fn edges_required_apis_webhooks_and_parts_of_deployments_are_compared() {
        let with = |pod: &str, more: &str| {
            let deployment =
                format!("      deployments: [{{name: manager, spec: {{template: {{spec: {{{pod}}}}}}}}}]\n");
            bundle("shop.v1.0.0", &format!("{deployment}{more}"), &[])
        };
        let old = with(
            "containers: [{name: a, image: r.io/a:1, args: [x]}, {name: b}]",
            "  webhookdefinitions: [{type: ValidatingAdmissionWebhook, generateName: w, sideEffects: None}]\n  replaces: shop.v0.9.0\n",
        );
        let new = with(
            "hostNetwork: true, containers: [{name: a, image: r.io/a:2, args: [z], env: [{name: E}]}, {name: c}]",
            "  webhookdefinitions: [{type: ValidatingAdmissionWebhook, generateName: w, sideEffects: Some}]\n  skips: [shop.v0.9.0]\n  \
             customresourcedefinitions: {required: [{name: as.b.io, version: v1}]}\n  \
             apiservicedefinitions: {required: [{group: b.io, version: v1}]}\n  nativeAPIs: [{group: apps, version: v1, kind: \
             Deployment}]\n",
        );
        let summary = summary(&old, &new).unwrap();
        assert_eq!(
            summary.gained,
            [
                "skips shop.v0.9.0",
                "required API Deployment.v1.apps",
                "required APIService v1.b.io",
                "required CRD as.b.io, version v1",
                "image r.io/a:2"
            ]
        );
        assert_eq!(summary.lost, ["replaces shop.v0.9.0", "image r.io/a:1"]);
        assert_eq!(
            summary.changed,
            [
                "Deployment manager: hostNetwork; args, env of container a; new container c; removed container b",
                "ValidatingAdmissionWebhook w: sideEffects"
            ]
        );
        assert!(super::summary(&new, &new).unwrap().is_empty());
    }

    #[test]
    fn parts_of_crds_are_compared() {
        let crd = |spec: &str, version: &str| {
            let rest = format!(
                "spec: {{group: b.io, {spec}, versions: [{{name: v1, {version}}}, {{name: v2, served: true}}]}}\n"
            );
            let text = format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: as.b.io}}\n{rest}"
            );
            let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: shop.v1.0.0}\n";
            let files = [("csv.yaml", csv), ("crd.yaml", text.as_str())];
            let files = files.map(|(name, text)| (format!("manifests/{name}"), text.as_bytes().to_vec()));
            let annotations = ("metadata/annotations.yaml".to_owned(), ANNOTATIONS.as_bytes().to_vec());
            Bundle::read(&Tree::from_files(files.into_iter().chain([annotations]))).unwrap()
        };
        let old = crd(
            "scope: Namespaced",
            "schema: {openAPIV3Schema: {type: object}}, subresources: {status: {}}",
        );
        let new = crd(
            "scope: Cluster, names: {plural: as, kind: A, shortNames: [a]}, conversion: {strategy: None}",
            "schema: {openAPIV3Schema: {type: object, required: [spec]}}, additionalPrinterColumns: [{name: a, type: string, jsonPath: .a}]",
        );
        let summary = summary(&old, &new).unwrap();
        assert_eq!(
            summary.changed,
            [
                "CRD as.b.io: conversion, scope; names: kind, plural, shortNames; additionalPrinterColumns, schema, subresources of version v1"
            ]
        );
        assert_eq!((summary.gained.len(), summary.lost.len()), (0, 0));
    }

    #[test]
    fn channels_dependencies_and_properties_are_compared() {
        let bundle = |annotations: &str, dependencies: &str, properties: &str| {
            let csv = format!(
                "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: shop.v1.0.0\n  \
                 annotations: {{olm.properties: '{properties}'}}\n"
            );
            let files = [
                ("manifests/csv.yaml", csv),
                ("metadata/annotations.yaml", format!("{ANNOTATIONS}{annotations}")),
                (
                    "metadata/dependencies.yaml",
                    format!("dependencies: [{dependencies}]\n"),
                ),
            ];
            Bundle::read(&Tree::from_files(files.map(|(path, text)| (path, text.into_bytes())))).unwrap()
        };
        let old = bundle(
            "  operators.operatorframework.io.bundle.channels.v1: alpha,beta\n",
            "",
            "[]",
        );
        let new = bundle(
            "  operators.operatorframework.io.bundle.channels.v1: beta\n  \
             operators.operatorframework.io.bundle.channel.default.v1: beta\n  com.redhat.openshift.versions: v4.20\n",
            "{type: olm.package, value: {packageName: a, version: '>1.0.0'}}",
            "[{\"type\": \"olm.maxOpenShiftVersion\", \"value\": \"4.21\"}]",
        );
        let summary = summary(&old, &new).unwrap();
        assert_eq!(
            summary.gained,
            [
                "OpenShift versions v4.20",
                "default channel beta",
                "dependency olm.package {\"packageName\":\"a\",\"version\":\">1.0.0\"}",
                "property olm.maxOpenShiftVersion \"4.21\"",
            ]
        );
        assert_eq!(summary.lost, ["channel alpha"]);
    }

    fn with_rules(rules: &str) -> Bundle {
        let install = format!("      clusterPermissions: [{{serviceAccountName: a, rules: [{rules}]}}]\n");
        bundle("shop.v1.0.0", &install, &[])
    }

    #[test]
    fn permissions_that_differ_in_one_part_share_a_line() {
        let old = with_rules("{apiGroups: [apps], resources: [deployments], verbs: [get]}");
        let new = with_rules(
            "{apiGroups: [apps, ''], resources: [deployments, pods], verbs: [get, list]}, {nonResourceURLs: [/metrics], verbs: \
             [get]}, {apiGroups: [''], resources: [secrets], resourceNames: [b, a], verbs: [get]}",
        );
        let summary = summary(&old, &new).unwrap();
        assert_eq!(
            summary.granted,
            [
                "cluster: get URL /metrics",
                "cluster: get secrets of the core group named a, b",
                "cluster: get, list deployments, pods of the core group",
                "cluster: get, list pods of apps",
                "cluster: list deployments of apps",
            ]
        );
        assert_eq!(summary.returned, [""; 0]);
    }

    #[test]
    fn permissions_are_counted_before_they_are_expanded() {
        let names = (0..600).fold(String::new(), |mut names, number| {
            let _ = write!(names, "n{number}, ");
            names
        });
        let all = format!("{{apiGroups: [{names}], resources: [{names}], verbs: [{names}]}}");
        let one = with_rules("{apiGroups: [''], resources: [pods], verbs: [get]}");
        let error = summary(&one, &with_rules(&all)).unwrap_err();
        assert_eq!((error.csv.as_str(), error.count), ("shop.v1.0.0", 600 * 600 * 600));
        assert!(
            error.to_string().contains("--limit compared-permissions=VALUE"),
            "{error}"
        );
        let named = format!("{{apiGroups: [{names}], resources: [a], resourceNames: [{names}], verbs: [{names}]}}");
        assert!(summary(&with_rules(&named), &one).is_err());
        // Few permissions with long names use as much memory.
        let long = (0..400).fold(String::new(), |mut names, number| {
            let _ = write!(names, "{number}{}, ", "n".repeat(500));
            names
        });
        let long = format!("{{apiGroups: [''], resources: [{long}], verbs: [{long}]}}");
        let error = summary(&one, &with_rules(&long)).unwrap_err();
        assert!(error.in_bytes && error.count > 400 * 400 * 1000, "{error:?}");
    }
}
