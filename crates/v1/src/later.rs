//! Problems that OLM v1 accepts and that fail later on a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::list;
use super::modes::InstallMode;
use super::read::{Bundle, Place};
use super::render::{Options, kinds_and_names};
use olmkit_bundle::install::object_name;

/// A problem that occurs after OLM v1 has accepted a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trouble {
    /// The problem, one sentence.
    pub message: String,
    /// The fix.
    pub hint: &'static str,
    /// Its position.
    pub place: Place,
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn has(rule: &Value, field: &str, wanted: &[&str]) -> bool {
    let items = rule.get(field).and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .any(|item| wanted.contains(&item))
}

fn grants_leases(rule: &Value) -> bool {
    has(rule, "apiGroups", &["coordination.k8s.io", "*"]) && has(rule, "resources", &["leases", "*"])
}

const PERMISSIONS: &str = "/spec/install/spec/permissions";
const CLUSTER_PERMISSIONS: &str = "/spec/install/spec/clusterPermissions";

/// Leases that an operator is granted in the watched namespace only: with OLM v1 it never becomes leader there.
#[must_use]
pub fn leases(bundle: &Bundle) -> Option<Trouble> {
    if !bundle.install_modes().has(InstallMode::SingleNamespace) {
        return None;
    }
    let csv = &bundle.csv.value;
    let rules = |entry: &Value| list(entry, "/rules").iter().any(grants_leases);
    let at = list(csv, PERMISSIONS).iter().position(rules)?;
    let clusterwide = list(csv, CLUSTER_PERMISSIONS).iter().any(rules);
    let of_bundle = bundle
        .others
        .iter()
        .filter(|object| ["Role", "ClusterRole"].contains(&object.kind()))
        .any(|object| rules(&object.value));
    (!clusterwide && !of_bundle).then(|| Trouble {
        message: "leases are granted in `permissions` only: when OLM v1 lets the operator watch another namespace, it has no \
                  right to its lease in its own and never becomes leader"
            .to_owned(),
        hint: "add a Role for leases and a RoleBinding as objects of the bundle, or grant leases in `clusterPermissions`",
        place: bundle.csv.place(&format!("{PERMISSIONS}/{at}/rules")),
    })
}

/// Objects that the API server, or one of the two appliers of OLM v1, rejects.
#[must_use]
pub fn refused_later(bundle: &Bundle) -> Vec<Trouble> {
    let csv = &bundle.csv;
    let mut found = Vec::new();
    let webhooks = list(&csv.value, "/spec/webhookdefinitions");
    for (at, webhook) in webhooks.iter().enumerate() {
        let name = text(webhook, "generateName");
        let port = webhook.get("containerPort").and_then(Value::as_i64).unwrap_or_default();
        if !(1..=65535).contains(&port) {
            found.push(Trouble {
                message: format!(
                    "webhook {name:?} has no containerPort: OLM v1 writes port {port}, which the API server rejects"
                ),
                hint: "set `containerPort: 443`, the port that OLM v0 takes by default",
                place: csv.place(&format!("/spec/webhookdefinitions/{at}")),
            });
        }
    }
    let answering: BTreeSet<&str> = webhooks.iter().map(|webhook| text(webhook, "deploymentName")).collect();
    for (at, entry) in list(&csv.value, "/spec/install/spec/deployments").iter().enumerate() {
        let name = text(entry, "name");
        let service = object_name(&name.replace('.', "-"), "service");
        if answering.contains(name) && service.len() > 63 {
            found.push(Trouble {
                message: format!(
                    "the Service of Deployment {name:?} gets a name of {} characters: the API server takes 63",
                    service.len()
                ),
                hint: "make the Deployment's name shorter",
                place: csv.place(&format!("/spec/install/spec/deployments/{at}/name")),
            });
        }
    }
    found.extend(duplicates(bundle));
    found
}

/// Objects that are created twice: the future applier of OLM v1 (Boxcutter) rejects them.
fn duplicates(bundle: &Bundle) -> Vec<Trouble> {
    let mut options = Options::new("operator");
    let modes = bundle.install_modes();
    if !modes.has(InstallMode::AllNamespaces) {
        let own = modes.has(InstallMode::OwnNamespace);
        options.config = serde_json::json!({"watchNamespace": if own { "operator" } else { "watched" }});
    }
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for object in kinds_and_names(bundle, &options).unwrap_or_default() {
        *counts.entry(object).or_default() += 1;
    }
    counts
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|((kind, name), _)| {
            let own = bundle
                .others
                .iter()
                .find(|object| object.kind() == kind && object.name() == name);
            Trouble {
                message: format!(
                    "OLM v1 creates {kind} {name:?} twice: installing by ClusterObjectSets (Boxcutter) rejects this"
                ),
                hint: if own.is_some() {
                    "remove the object from the bundle: OLM makes it from the ClusterServiceVersion"
                } else {
                    "join the equal entries of the permissions"
                },
                place: own.map_or_else(
                    || bundle.csv.place("/spec/install/spec"),
                    |object| object.place("/metadata/name"),
                ),
            }
        })
        .collect()
}

/// The resources of OLM v0 that an operator works with.
const OLM_V0: [&str; 5] = [
    "subscriptions",
    "installplans",
    "clusterserviceversions",
    "catalogsources",
    "*",
];

/// Permissions on OLM v0's API without any on OLM v1's: condition C5 of the migration.
#[must_use]
pub fn works_with_olm_v0(bundle: &Bundle) -> Option<Trouble> {
    grants_olm_v0_only(&bundle.csv.value).map(|pointer| Trouble {
        message:
            "the operator may work with OLM v0\'s API and not with OLM v1\'s: the migration to OLM v1 excludes it (C5)"
                .to_owned(),
        hint: "let it work without OLM\'s API, or with `olm.operatorframework.io` too",
        place: bundle.csv.place(&pointer),
    })
}

/// The first rule of a ClusterServiceVersion for OLM v0's API, if none is for OLM v1's.
pub(super) fn grants_olm_v0_only(csv: &Value) -> Option<String> {
    let mut first = None;
    for pointer in [PERMISSIONS, CLUSTER_PERMISSIONS] {
        for (at, entry) in list(csv, pointer).iter().enumerate() {
            for (number, rule) in list(entry, "/rules").iter().enumerate() {
                if has(rule, "apiGroups", &["olm.operatorframework.io"]) {
                    return None;
                }
                if first.is_none()
                    && has(rule, "apiGroups", &["operators.coreos.com"])
                    && has(rule, "resources", &OLM_V0)
                {
                    first = Some(format!("{pointer}/{at}/rules/{number}"));
                }
            }
        }
    }
    first
}
