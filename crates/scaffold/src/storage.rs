//! Moves the storage version of a kind: `olmkit edit --storage-version`.

use std::path::Path;

use crate::layout::{Places, type_path};
use crate::project_file::{ProjectFile, Resource};
use crate::{Error, Report, Tree, create_webhook, modules, record, texts};

/// A version of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageVersion {
    /// The group without the project's domain.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// Makes a version the one in which the API server stores objects and which the controller uses.
///
/// # Errors
/// When the project has no such version, it is the storage version already, or a source lacks a statement to change. Nothing is
/// written then.
pub fn set_storage_version(folder: &Path, wanted: &StorageVersion) -> Result<Report, Error> {
    let mut tree = Tree::at(folder);
    let before = ProjectFile::read(&tree)?;
    let next = create_webhook::find(&before, &wanted.group, &wanted.version, &wanted.kind)?;
    let all = before.resources();
    let versions: Vec<&Resource> = all
        .iter()
        .filter(|other| other.api && other.is_kind_of(&next))
        .collect();
    let stored = match versions.first() {
        Some(first) if !first.is_version_of(&next) => *first,
        _ => {
            return Err(Error::Usage(format!(
                "{} is the storage version of {} already",
                next.version, next.kind
            )));
        }
    };
    sources(&mut tree, &before, &versions, stored, &next)?;
    let mut now = before.clone();
    now.store_as(&next, stored);
    let render = record::finish(&mut tree, Some(&before), now)?;
    Ok(Report {
        render,
        ..tree.commit()?
    })
}

fn sources(
    tree: &mut Tree,
    file: &ProjectFile,
    versions: &[&Resource],
    stored: &Resource,
    next: &Resource,
) -> Result<(), Error> {
    let used = |resource: &Resource| format!("use {};", type_path(resource));
    let mut pairs = vec![(used(stored), used(next))];
    for version in versions.iter().skip(1) {
        let joined = if version.is_version_of(next) { stored } else { version };
        let (old, new) = (
            texts::api::version_statements(version, stored),
            texts::api::version_statements(joined, next),
        );
        pairs.extend(old.into_iter().zip(new));
    }
    let Places {
        function, controller, ..
    } = Places::new(file, next);
    modules::edit(tree, "src/packaging.rs", |source| {
        source.replace_statements(&function, &pairs)
    })?;
    if stored.controller {
        let text = tree.text(&controller)?;
        tree.write(controller, text.replace(&used(stored), &used(next)));
    }
    Ok(())
}
