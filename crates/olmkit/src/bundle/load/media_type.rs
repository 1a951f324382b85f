//! What kind of manifests a directory holds.

use std::collections::BTreeMap;
use std::fmt;

use super::manifest::Manifest;
use super::tree::{Entry, Tree};
use super::{Problem, paths};
use crate::yaml;

/// The kind of manifests, as the `mediatype` annotation names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    /// A ClusterServiceVersion with the objects it needs.
    RegistryV1,
    /// A Helm chart.
    Helm,
    /// Any manifests.
    Plain,
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MediaType::RegistryV1 => "registry+v1",
            MediaType::Helm => "helm",
            MediaType::Plain => "plain",
        })
    }
}

/// Finds the media type of a directory of the bundle.
pub(crate) fn detect(
    tree: &Tree,
    root: &str,
    directory: &str,
    manifests: &BTreeMap<String, Manifest>,
) -> Result<MediaType, Box<Problem>> {
    if matches!(tree.entry(directory), Some(Entry::LinkedDirectory)) {
        // Listing a linked directory works, walking it does not: the loader stops there.
        return Ok(MediaType::RegistryV1);
    }
    let shown = paths::join(root, directory);
    let mut files = Vec::new();
    for (name, entry) in tree.children(directory) {
        match entry {
            Entry::Directory => {}
            Entry::File(_) => files.push(name),
            Entry::LinkedDirectory | Entry::Unreadable(_) => {
                let path = paths::join(&shown, name);
                return Err(Problem::new("LOC-7", format!("Unable to read file {path} in bundle"))
                    .at_file(&paths::join(directory, name))
                    .hint("replace the link by the file it should point to"));
            }
        }
    }
    if files.is_empty() {
        return Err(Problem::new("LOC-6", format!("The directory {shown} contains no yaml files"))
            .at_file(directory)
            .hint("the manifests of a bundle lie in `manifests/`, not below it; the annotation for the manifests directory must name it"));
    }
    if tree.file(&paths::join(directory, "Chart.yaml")).is_some_and(is_chart) {
        return Ok(MediaType::Helm);
    }
    let has_csv = files.iter().any(|name| {
        manifests
            .get(&paths::join(directory, name))
            .is_some_and(|file| file.kind() == "ClusterServiceVersion")
    });
    Ok(if has_csv {
        MediaType::RegistryV1
    } else {
        MediaType::Plain
    })
}

fn is_chart(bytes: &[u8]) -> bool {
    let Ok(node) = yaml::parse(bytes) else { return false };
    node.get("name")
        .and_then(yaml::Node::spelling)
        .is_some_and(|name| !name.is_empty())
}
