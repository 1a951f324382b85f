//! Facts in the files of `metadata/` that a comparison of two bundles shows: channels, versions of OpenShift, dependencies.

use std::collections::BTreeSet;

use olmkit_bundle::load::{CHANNELS, DEFAULT_CHANNEL, Entry, Tree};
use olmkit_yaml::{self as yaml, Node};

/// The annotation with the versions of OpenShift whose catalogs contain the bundle.
const OPENSHIFT_VERSIONS: &str = "com.redhat.openshift.versions";

/// The facts, each a sentence. As opm does, any file is read. Files that cannot be read have none.
pub(super) fn facts(tree: &Tree) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    for (_, entry) in tree.children("metadata") {
        let Entry::File(bytes) = entry else { continue };
        let Ok(node) = yaml::parse(bytes) else { continue };
        if let Some(annotations) = node.get("annotations") {
            let value = |key: &str| annotations.get(key).and_then(Node::as_str).unwrap_or_default();
            let channels = value(CHANNELS).split(',').map(str::trim);
            let channels = channels.filter(|channel| !channel.is_empty());
            facts.extend(channels.map(|channel| format!("channel {channel}")));
            for (name, key) in [
                ("default channel", DEFAULT_CHANNEL),
                ("OpenShift versions", OPENSHIFT_VERSIONS),
            ] {
                if !value(key).is_empty() {
                    facts.insert(format!("{name} {}", value(key)));
                }
            }
        }
        let dependencies = node.get("dependencies").map(Node::items).unwrap_or_default();
        for dependency in dependencies {
            let kind = dependency.get("type").and_then(Node::as_str).unwrap_or_default();
            let value = dependency.get("value").and_then(|value| value.to_json().ok());
            facts.insert(format!("dependency {kind} {}", value.unwrap_or_default()));
        }
    }
    facts
}
