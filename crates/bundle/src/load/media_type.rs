//! Detects the type of a directory's manifests.

use std::collections::BTreeMap;
use std::fmt;

use super::manifest::Manifest;
use super::tree::{Entry, Tree};
use olmkit_diagnostics::{Finding, Origin, Severity, define_rules};
use olmkit_go::filepath;
use olmkit_yaml as yaml;

define_rules! {
    LOC_6 = {
        id: "LOC-6",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "The manifests directory must hold files.",
        why: "OLM reads only this directory, and a bundle without manifests installs nothing.",
        bad: "manifests/\n  crds/demo.yaml",
        good: "manifests/\n  demo.yaml",
        since: "0.1.0",
    }
    LOC_7 = {
        id: "LOC-7",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "Every entry in the manifests directory must be a readable file.",
        why: "An entry that cannot be read stops operator-sdk, and is missing in the image.",
        bad: "manifests/crd.yaml -> ../missing.yaml",
        good: "manifests/crd.yaml",
        since: "0.1.0",
    }
}

/// The kind of manifests, as the `mediatype` annotation names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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
) -> Result<MediaType, Box<Finding>> {
    if matches!(tree.entry(directory), Some(Entry::LinkedDirectory)) {
        // Listing a linked directory works, walking it does not: the loader stops there.
        return Ok(MediaType::RegistryV1);
    }
    let shown = filepath::join(root, directory);
    let mut files = Vec::new();
    for (name, entry) in tree.children(directory) {
        match entry {
            Entry::Directory => {}
            Entry::File(_) => files.push(name),
            Entry::LinkedDirectory | Entry::Unreadable(_) => {
                let path = filepath::join(&shown, name);
                let problem = Finding::from_rule(&LOC_7, format!("Unable to read file {path} in bundle"))
                    .file(filepath::join(directory, name))
                    .hint("replace the link by the file it should point to");
                return Err(Box::new(problem));
            }
        }
    }
    if files.is_empty() {
        let problem = Finding::from_rule(&LOC_6, format!("The directory {shown} contains no yaml files"))
            .file(directory)
            .hint("the manifests of a bundle lie in `manifests/`, not below it; the annotation for the manifests directory must name it");
        return Err(Box::new(problem));
    }
    if tree
        .file(&filepath::join(directory, "Chart.yaml"))
        .is_some_and(is_chart)
    {
        return Ok(MediaType::Helm);
    }
    let has_csv = files.iter().any(|name| {
        manifests
            .get(&filepath::join(directory, name))
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
