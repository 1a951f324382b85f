//! What an upgrade from one bundle to another means for a user: what is gained, what is lost, what must be granted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::read::Bundle;
use super::{list, text};

/// The differences of two bundles, each a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// What the later bundle has besides.
    pub gained: Vec<String>,
    /// What it has no longer.
    pub lost: Vec<String>,
    /// Permissions that it wants besides.
    pub granted: Vec<String>,
    /// Permissions that it gives back.
    pub returned: Vec<String>,
}

impl Summary {
    /// Whether the bundles are alike in all that is compared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("Gained", &self.gained),
            ("Lost", &self.lost),
            ("To grant", &self.granted),
            ("No longer needed", &self.returned),
        ];
        for (title, lines) in parts {
            if lines.is_empty() {
                continue;
            }
            writeln!(formatter, "{title}:")?;
            for line in lines {
                writeln!(formatter, "  {line}")?;
            }
        }
        Ok(())
    }
}

/// Compares two bundles.
#[must_use]
pub fn summary(old: &Bundle, new: &Bundle) -> Summary {
    let mut summary = Summary::default();
    let facts: [fn(&Bundle) -> BTreeSet<String>; 5] = [versions, definitions, webhooks, images, modes];
    for fact in facts {
        let (before, now) = (fact(old), fact(new));
        summary.gained.extend(now.difference(&before).cloned());
        summary.lost.extend(before.difference(&now).cloned());
    }
    let (before, now) = (permissions(old), permissions(new));
    summary.granted.extend(now.difference(&before).cloned());
    summary.returned.extend(before.difference(&now).cloned());
    summary
}

fn versions(bundle: &Bundle) -> BTreeSet<String> {
    BTreeSet::from([format!("version {}", text(&bundle.csv.value, "/spec/version"))])
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
    out
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
    for deployment in list(csv, "/spec/install/spec/deployments") {
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

/// Each right as `VERBS on RESOURCE of GROUP`, the verbs of equal rights together.
fn permissions(bundle: &Bundle) -> BTreeSet<String> {
    let mut rights: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for (place, scope) in [("permissions", "watched namespaces"), ("clusterPermissions", "cluster")] {
        for entry in list(&bundle.csv.value, &format!("/spec/install/spec/{place}")) {
            for rule in list(entry, "/rules") {
                let texts = |field: &str| -> Vec<&str> {
                    list(rule, &format!("/{field}"))
                        .iter()
                        .filter_map(Value::as_str)
                        .collect()
                };
                let names = texts("resourceNames");
                let only = if names.is_empty() {
                    String::new()
                } else {
                    format!(" named {}", names.join(", "))
                };
                let mut subjects: Vec<String> = texts("nonResourceURLs")
                    .iter()
                    .map(|url| format!("URL {url}"))
                    .collect();
                for group in texts("apiGroups") {
                    let group = if group.is_empty() { "the core group" } else { group };
                    subjects.extend(
                        texts("resources")
                            .iter()
                            .map(|resource| format!("{resource} of {group}{only}")),
                    );
                }
                for subject in subjects {
                    let verbs = texts("verbs").into_iter().map(str::to_owned);
                    rights.entry((scope.to_owned(), subject)).or_default().extend(verbs);
                }
            }
        }
    }
    // One line for each verb would be long, one for each subject would hide what is new.
    rights
        .into_iter()
        .flat_map(|((scope, subject), verbs)| verbs.into_iter().map(move |verb| format!("{scope}: {verb} {subject}")))
        .collect()
}
