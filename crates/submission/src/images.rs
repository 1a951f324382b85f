//! The images that a ClusterServiceVersion names, found as `operator-manifest` finds them, which preflight and the pinning of
//! digests use.

use olmkit::object::references_in;
use olmkit_yaml::Position;

use crate::python::{EMPTY, EMPTY_LIST, Node, Raise, Value, View};

/// A reference to an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageReference {
    /// The reference as written.
    pub(crate) image: String,
    /// The field that names it: `relatedImages`, `container manager`, ….
    pub(crate) place: String,
    pub(crate) at: Position,
}

impl ImageReference {
    /// Returns true if it has a digest.
    pub(crate) fn is_pinned(&self) -> bool {
        is_pinned(&self.image)
    }
}

/// Returns true if a reference has a digest.
pub(crate) fn is_pinned(image: &str) -> bool {
    image
        .rsplit_once('@')
        .is_some_and(|(_, digest)| digest.starts_with("sha256:"))
}

/// Environment variables that name an image.
pub(crate) const ENVIRONMENT: &str = "RELATED_IMAGE_";

/// All image references, including duplicates.
pub(crate) fn of_csv(csv: View<'_>) -> Result<Vec<ImageReference>, Raise> {
    let mut found = Vec::new();
    for image in list(csv, &["spec"], "relatedImages")? {
        let text = image.get("image")?.text()?;
        found.push(named(text, "spec.relatedImages".to_owned(), image.get("image")?));
    }
    let containers = containers(csv)?;
    for (container, name) in &containers {
        let image = container.item("image")?;
        found.push(named(image.text()?, format!("container {name}"), image));
    }
    for (container, name) in &containers {
        for variable in items(container.get_or("env", &EMPTY_LIST)?)? {
            let Some(key) = variable.get("name")?.node.as_str() else {
                continue;
            };
            if !key.starts_with(ENVIRONMENT) {
                continue;
            }
            if variable.node.get("valueFrom").is_some() {
                return Err(variable.raise(format!("{key} has valueFrom; its value must be an image")));
            }
            let value = variable.item("value")?;
            found.push(named(value.text()?, format!("{key} of container {name}"), value));
        }
    }
    in_annotations(csv.node, false, &mut found);
    Ok(found)
}

/// Containers and init containers of the deployments with their names.
pub(crate) fn containers(csv: View<'_>) -> Result<Vec<(View<'_>, String)>, Raise> {
    let mut found = Vec::new();
    for kind in ["containers", "initContainers"] {
        for deployment in list(csv, &["spec", "install", "spec"], "deployments")? {
            for container in list(deployment, &["spec", "template", "spec"], kind)? {
                let name = container.get("name")?.node.as_str().unwrap_or_default().to_owned();
                found.push((container, name));
            }
        }
    }
    Ok(found)
}

/// The items of a list below nested mappings. None where something is missing.
pub(crate) fn list<'a>(view: View<'a>, path: &[&str], key: &str) -> Result<Vec<View<'a>>, Raise> {
    let mut inner = view;
    for key in path {
        inner = inner.get_or(key, &EMPTY)?;
    }
    items(inner.get_or(key, &EMPTY_LIST)?)
}

fn items(list: View<'_>) -> Result<Vec<View<'_>>, Raise> {
    match &list.node.value {
        Value::None => Ok(Vec::new()),
        Value::List(nodes) => Ok(nodes
            .iter()
            .map(|node| View {
                node,
                at: node.start,
                ..list
            })
            .collect()),
        _ => Err(list.raise(format!("a list is needed, found {}", list.node.kind()))),
    }
}

fn named(image: &str, place: String, view: View<'_>) -> ImageReference {
    ImageReference {
        image: image.to_owned(),
        place,
        at: view.at,
    }
}

/// Strings in the annotations of nested objects that look like a reference.
fn in_annotations(node: &Node, is_in_metadata: bool, found: &mut Vec<ImageReference>) {
    let Value::Dict(entries) = &node.value else { return };
    let annotations = node.get("metadata").and_then(|metadata| metadata.get("annotations"));
    if let Some(Value::Dict(annotations)) = annotations.map(|annotations| &annotations.value) {
        for (key, value) in annotations {
            let (Some(key), Some(text)) = (key.as_str(), value.as_str()) else {
                continue;
            };
            for image in references_in(text) {
                found.push(ImageReference {
                    image: image.to_owned(),
                    place: format!("annotation {key}"),
                    at: value.start,
                });
            }
        }
    }
    for (key, value) in entries {
        let is_metadata = key.as_str() == Some("metadata");
        if is_metadata && is_in_metadata {
            continue;
        }
        match &value.value {
            Value::List(items) => items.iter().for_each(|item| in_annotations(item, is_metadata, found)),
            _ => in_annotations(value, is_metadata, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::parse;

    #[test]
    fn images_are_found_where_the_original_finds_them() {
        let text = "metadata:\n  annotations:\n    containerImage: quay.io/a/b:v1\n    note: 'see https://quay.io/a/b and (quay.io/c/d:v2).'\n\
                    spec:\n  relatedImages:\n  - {name: x, image: quay.io/a/x@sha256:0}\n  install:\n    spec:\n      deployments:\n      \
                    - spec:\n          template:\n            metadata: {annotations: {other: 'registry.example.com:5000/e/f:1'}}\n            \
                    spec:\n              initContainers:\n              - {name: init, image: i}\n              containers:\n              \
                    - name: manager\n                image: quay.io/a/b:v1\n                env:\n                - {name: RELATED_IMAGE_X, value: quay.io/a/x:v3}\n                \
                    - {name: OTHER, value: quay.io/not/this:v1}\n";
        let node = parse(text).expect("YAML").pop().expect("a document");
        let view = View {
            file: "csv.yaml",
            node: &node,
            at: node.start,
        };
        let found = of_csv(view).expect("all is sound");
        let shown: Vec<String> = found
            .iter()
            .map(|named| format!("{}: {}", named.place, named.image))
            .collect();
        assert_eq!(
            shown,
            [
                "spec.relatedImages: quay.io/a/x@sha256:0",
                "container manager: quay.io/a/b:v1",
                "container init: i",
                "RELATED_IMAGE_X of container manager: quay.io/a/x:v3",
                "annotation containerImage: quay.io/a/b:v1",
                "annotation note: quay.io/c/d:v2",
                "annotation other: registry.example.com:5000/e/f:1",
            ]
        );
        assert!(
            found.first().is_some_and(ImageReference::is_pinned)
                && !found.last().is_some_and(ImageReference::is_pinned)
        );
    }
}
