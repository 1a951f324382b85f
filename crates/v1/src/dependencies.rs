//! Dependencies on other packages and APIs. OLM v1 resolves none of them, so it rejects a bundle that has one.

use serde_json::Value;

use super::property::parse;
use super::read::{Bundle, Place};
use olmkit_base::object::pointer_part;
use olmkit_bundle::load::{Entry, Tree};
use olmkit_catalog::model;
use olmkit_yaml::{self as yaml, Node};

/// The types of properties that are dependencies.
pub(super) const REFUSED: [&str; 3] = [
    model::PROPERTY_PACKAGE_REQUIRED,
    model::PROPERTY_GVK_REQUIRED,
    "olm.constraint",
];

/// A dependency that OLM v1 rejects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dependency {
    /// The type of the property in a catalog, such as `olm.gvk.required`.
    pub property: String,
    /// Position of its declaration.
    pub place: Place,
}

impl Dependency {
    /// OLM v1's message for a bundle of this name.
    #[must_use]
    pub fn message(&self, bundle: &str) -> String {
        format!(
            "bundle \"{bundle}\" has a dependency declared via property \"{}\" which is currently not supported",
            self.property
        )
    }
}

/// The type that a property of a bundle directory has in a catalog, if OLM v1 rejects it.
fn refused(kind: &str, in_dependencies: bool) -> Option<&str> {
    let kind = match kind {
        model::PROPERTY_PACKAGE if in_dependencies => model::PROPERTY_PACKAGE_REQUIRED,
        model::PROPERTY_GVK if in_dependencies => model::PROPERTY_GVK_REQUIRED,
        other => other,
    };
    REFUSED.contains(&kind).then_some(kind)
}

/// Returns true if a value of the annotation `olm.properties` contains a dependency.
#[must_use]
pub fn is_in_annotation(text: &str) -> bool {
    let properties = parse(text).unwrap_or_default();
    properties
        .iter()
        .any(|property| refused(&property.kind, false).is_some())
}

/// The dependencies of a bundle, the one that OLM v1 names in front. As opm does, any file of `metadata/` is read, and the first
/// with entries counts.
#[must_use]
pub fn dependencies(bundle: &Bundle, tree: &Tree) -> Vec<Dependency> {
    let mut found = Vec::new();
    let files: Vec<(String, Node)> = tree
        .children("metadata")
        .filter_map(|(name, entry)| match entry {
            Entry::File(bytes) => Some((format!("metadata/{name}"), yaml::parse(bytes).ok()?)),
            _ => None,
        })
        .collect();
    for (key, in_dependencies) in [("dependencies", true), ("properties", false)] {
        let entries = |node: &Node| node.get(key).map(|list| list.items().to_vec()).unwrap_or_default();
        let listed = files.iter().map(|(file, node)| (file, entries(node)));
        let Some((file, entries)) = listed.into_iter().find(|(_, entries)| !entries.is_empty()) else {
            continue;
        };
        for (at, entry) in entries.iter().enumerate() {
            let kind = entry.get("type").and_then(Node::as_str).unwrap_or_default();
            if let Some(property) = refused(kind, in_dependencies) {
                found.push(Dependency {
                    property: property.to_owned(),
                    place: Place {
                        file: file.clone(),
                        position: Some(entry.start),
                        pointer: format!("/{key}/{at}"),
                    },
                });
            }
        }
    }
    for kind in ["customresourcedefinitions", "apiservicedefinitions"] {
        let pointer = format!("/spec/{kind}/required");
        let required = bundle.csv.value.pointer(&pointer).and_then(Value::as_array);
        for at in 0..required.map_or(0, Vec::len) {
            found.push(Dependency {
                property: model::PROPERTY_GVK_REQUIRED.to_owned(),
                place: bundle.csv.place(&format!("{pointer}/{at}")),
            });
        }
    }
    let annotation = format!("/metadata/annotations/{}", pointer_part("olm.properties"));
    for property in parse(bundle.csv.text(&annotation)).unwrap_or_default() {
        if let Some(kind) = refused(&property.kind, false) {
            found.push(Dependency {
                property: kind.to_owned(),
                place: bundle.csv.place(&annotation),
            });
        }
    }
    found.sort_by(|left, right| left.property.cmp(&right.property));
    found
}
