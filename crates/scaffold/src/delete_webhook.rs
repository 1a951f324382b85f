//! Takes webhooks out of a project again.

use std::path::{Path, PathBuf};

use crate::create_webhook;
use crate::project_file::{self, ProjectFile, Resource};
use crate::texts::webhook::{listing, written};
use crate::{Error, Report, Tree, layout, manifest, modules, record, settings};

/// Webhooks to delete; without any of the three, all of the version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteWebhook {
    /// The group without the project's domain.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// True to delete the defaulting webhook.
    pub defaulting: bool,
    /// True to delete the validating webhook.
    pub validation: bool,
    /// True to delete the conversion.
    pub conversion: bool,
    /// True to delete files that have changed since they were created.
    pub force: bool,
}

/// Deletes webhooks of a version of a kind from the project in a directory.
///
/// # Errors
/// When the project has no such webhook, or its file has changed. Nothing is deleted then.
pub fn delete_webhook(folder: &Path, webhook: &DeleteWebhook) -> Result<Report, Error> {
    let mut tree = Tree::at(folder);
    let before = ProjectFile::read(&tree)?;
    let known = create_webhook::find(&before, &webhook.group, &webhook.version, &webhook.kind)?;
    let wanted = wanted(&known, webhook)?;
    let mut left = known.clone();
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for part in layout::webhooks(wanted.defaulting, wanted.validation, wanted.conversion) {
        for (path, function, statement) in listing(&before, &known, part) {
            modules::edit(&mut tree, path, |source| {
                source.remove_statements(&function, &[statement])
            })?;
        }
        files.push((
            layout::webhook(&before, &known, part).file.into(),
            written(&before, &known, part)?,
        ));
    }
    left.webhooks.defaulting &= !wanted.defaulting;
    left.webhooks.validation &= !wanted.validation;
    if wanted.conversion {
        left.webhooks.conversion = false;
        left.webhooks.spokes.clear();
    }
    for (path, text) in files {
        modules::delete(&mut tree, path, &text, webhook.force)?;
    }
    let mut now = before.clone();
    now.set_resource(&left);
    if wanted.conversion && !converts(&now) {
        settings::remove_install_modes(&mut tree, settings::ALL_NAMESPACES)?;
        let manifest = tree.text(manifest::FILE)?;
        tree.write(manifest::FILE, create_webhook::without_proptest(&manifest));
    }
    let render = record::finish(&mut tree, Some(&before), now)?;
    Ok(Report {
        render,
        ..tree.commit()?
    })
}

fn converts(file: &ProjectFile) -> bool {
    file.resources().iter().any(|resource| resource.webhooks.conversion)
}

/// The existing webhooks among those to delete.
fn wanted(known: &Resource, webhook: &DeleteWebhook) -> Result<project_file::Webhooks, Error> {
    let all = !webhook.defaulting && !webhook.validation && !webhook.conversion;
    let webhooks = &known.webhooks;
    let mut wanted = webhooks.clone();
    for (flag, present, name) in [
        (webhook.defaulting, &mut wanted.defaulting, "defaulting webhook"),
        (webhook.validation, &mut wanted.validation, "validating webhook"),
        (webhook.conversion, &mut wanted.conversion, "conversion webhook"),
    ] {
        if flag && !*present {
            return Err(Error::Usage(format!(
                "{}/{} {} has no {name}",
                known.group, known.version, known.kind
            )));
        }
        *present = *present && (flag || all);
    }
    if wanted.is_empty() {
        return Err(Error::Usage(format!(
            "{}/{} {} has no webhook",
            known.group, known.version, known.kind
        )));
    }
    Ok(wanted)
}
