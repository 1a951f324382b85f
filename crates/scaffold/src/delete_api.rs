//! Removes a kind from a project. Deletes the output of `create api`, and keeps the author's changes.

use std::path::{Path, PathBuf};

use crate::layout::Places;
use crate::project_file::{ProjectFile, Resource};
use crate::{Error, Report, Tree, external, modules, names, record, texts};

/// A version of a kind to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteApi {
    /// The group without the project's domain.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// True to delete files that have changed since they were created.
    pub force: bool,
}

/// Deletes a version of a kind, with its reconciler, from the project in a directory.
///
/// # Errors
/// When the project has no such version, other versions depend on it, or its files have changed. Nothing is deleted then.
pub fn delete_api(folder: &Path, api: &DeleteApi) -> Result<Report, Error> {
    let mut tree = Tree::at(folder);
    let before = ProjectFile::read(&tree)?;
    let resource = find(&before, api)?;
    let mut now = before.clone();
    now.remove_resource(&resource);
    external::forget(&mut tree, &now, &resource)?;
    let places = Places::new(&before, &resource);
    let mut files = Vec::new();
    if resource.api {
        files.push((PathBuf::from(&resource.path), texts::api::types(&resource)));
        packaging(&mut tree, &now, &resource, &places)?;
    }
    if resource.controller {
        let text = texts::api::controller(&before, &resource)?;
        files.push((PathBuf::from(&places.controller), text));
        let call = &places.call;
        modules::edit(&mut tree, "src/controller/mod.rs", |source| {
            source.remove_statements("add_all", &[texts::api::add_statement(call)])
        })?;
        if let Some(image) = texts::api::image_statement(&resource) {
            modules::edit(&mut tree, "src/packaging.rs", |source| {
                source.remove_statements("images", &[image])
            })?;
        }
    }
    for (path, text) in files {
        modules::delete(&mut tree, path, &text, api.force)?;
    }
    let render = record::finish(&mut tree, Some(&before), now)?;
    Ok(Report {
        render,
        ..tree.commit()?
    })
}

fn find(file: &ProjectFile, api: &DeleteApi) -> Result<Resource, Error> {
    let all = file.resources();
    let of_others = all.iter().find(|known| {
        let group = if known.group.is_empty() { "core" } else { &known.group };
        let named = group == api.group || group.split('.').next() == Some(api.group.as_str());
        known.foreign.is_some() && named && known.version == api.version && known.kind == api.kind
    });
    if let Some(found) = of_others {
        return Ok(found.clone());
    }
    let wanted = Resource {
        group: names::group(&api.group, file.domain())?,
        version: api.version.clone(),
        kind: api.kind.clone(),
        ..Resource::default()
    };
    let known = file.resources();
    let versions: Vec<&Resource> = known.iter().filter(|other| other.is_kind_of(&wanted)).collect();
    let Some(found) = versions.iter().find(|other| other.is_version_of(&wanted)) else {
        return Err(Error::Usage(format!(
            "the project has no {}/{} {}",
            wanted.group, wanted.version, wanted.kind
        )));
    };
    let first = versions.first().is_some_and(|first| first.is_version_of(&wanted));
    if first && versions.len() > 1 {
        return Err(Error::Usage(format!(
            "{} is the storage version of {}; olmkit edit --storage-version VERSION --group={} --kind={} makes another version \
             the storage version",
            wanted.version, wanted.kind, api.group, wanted.kind
        )));
    }
    let converted = versions
        .iter()
        .any(|other| other.webhooks.spokes.contains(&wanted.version));
    if !found.webhooks.is_empty() || converted {
        let hub = versions.iter().find(|other| other.webhooks.conversion);
        let of = match (found.webhooks.is_empty(), hub) {
            (true, Some(hub)) => &hub.version,
            _ => &wanted.version,
        };
        return Err(Error::Usage(format!(
            "{}/{} {} has webhooks; olmkit delete webhook --version {of} deletes them first",
            wanted.group, wanted.version, wanted.kind
        )));
    }
    Ok((*found).clone())
}

fn packaging(tree: &mut Tree, now: &ProjectFile, resource: &Resource, places: &Places) -> Result<(), Error> {
    let others = now.resources();
    let first = others.iter().find(|other| other.api && other.is_kind_of(resource));
    modules::edit(tree, "src/packaging.rs", |source| match first {
        Some(first) => source.remove_statements(&places.function, &texts::api::version_statements(resource, first)),
        None => {
            source.remove_statements("apis", &[format!("all.push({}()?);", places.function)])?;
            source.remove_function(&places.function)
        }
    })
}
