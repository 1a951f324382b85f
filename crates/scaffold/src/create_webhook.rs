//! Webhooks of a kind: defaulting, validation, and conversion between its versions.

use std::path::Path;

use crate::layout::{self, CONVERSION};
use crate::project_file::{ProjectFile, Resource};
use crate::texts::webhook::{add_spokes, listing, written};
use crate::{Error, Report, Tree, manifest, modules, names, record, settings};

/// Webhooks to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Webhook {
    /// The group without the project's domain.
    pub group: String,
    /// The version of the objects; for a conversion, the hub.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// True if objects are completed before they are stored.
    pub defaulting: bool,
    /// True if objects are checked before they are stored.
    pub validation: bool,
    /// True if objects are converted between versions.
    pub conversion: bool,
    /// The versions that are converted to and from the hub. All others if none is given.
    pub spokes: Vec<String>,
    /// True to overwrite files.
    pub force: bool,
}

/// Adds webhooks of a kind to the project in a directory.
///
/// # Errors
/// When the project has no such kind or has the webhook already, a file is in the way, or a source file lacks its place.
/// Nothing is written then.
pub fn create_webhook(folder: &Path, webhook: &Webhook) -> Result<Report, Error> {
    let mut tree = Tree::at(folder);
    let render = add(&mut tree, webhook)?;
    Ok(Report {
        render,
        ..tree.commit()?
    })
}

/// Puts the webhooks into a tree. Returns whether `make manifests` has to render `config/`.
fn add(tree: &mut Tree, webhook: &Webhook) -> Result<bool, Error> {
    let before = ProjectFile::read(tree)?;
    let now = sources(tree, &before, webhook)?;
    record::finish(tree, Some(&before), now)
}

/// Adds the sources of the webhooks to a tree. Returns the new PROJECT.
pub(crate) fn sources(tree: &mut Tree, before: &ProjectFile, webhook: &Webhook) -> Result<ProjectFile, Error> {
    let known = find(before, &webhook.group, &webhook.version, &webhook.kind)?;
    check(before, &known, webhook)?;
    let mut now = before.clone();
    let mut resource = known.clone();
    resource.webhooks.defaulting |= webhook.defaulting;
    resource.webhooks.validation |= webhook.validation;
    for part in layout::webhooks(webhook.defaulting, webhook.validation, false) {
        put(tree, before, &resource, part, webhook.force)?;
    }
    if webhook.conversion {
        let fresh = spokes(before, &known, webhook)?;
        let all = known.webhooks.spokes.iter().chain(fresh.iter().filter(|spoke| {
            // With --force the known ones are given again.
            !known.webhooks.spokes.contains(spoke)
        }));
        resource.webhooks.spokes = all.cloned().collect();
        resource.webhooks.conversion = true;
        if known.webhooks.conversion && !webhook.force {
            let path = layout::webhook(before, &resource, CONVERSION).file;
            add_spokes(tree, before, &resource, &path, &fresh)?;
        } else {
            put(tree, before, &resource, CONVERSION, webhook.force)?;
        }
    }
    now.set_resource(&resource);
    Ok(now)
}

/// The version of a kind that webhooks are for.
pub(crate) fn find(file: &ProjectFile, group: &str, version: &str, kind: &str) -> Result<Resource, Error> {
    let wanted = Resource {
        group: names::group(group, file.domain())?,
        version: version.to_owned(),
        kind: kind.to_owned(),
        ..Resource::default()
    };
    let known = file.resources();
    let found = known
        .into_iter()
        .find(|known| known.is_version_of(&wanted) && known.api);
    found.ok_or_else(|| {
        Error::Usage(format!(
            "the project has no {}/{} {}; olmkit create api creates it",
            wanted.group, wanted.version, wanted.kind
        ))
    })
}

fn check(file: &ProjectFile, known: &Resource, webhook: &Webhook) -> Result<(), Error> {
    let usage = |message: String| Err(Error::Usage(message));
    if !webhook.defaulting && !webhook.validation && !webhook.conversion {
        return usage("give --defaulting, --programmatic-validation or --conversion".to_owned());
    }
    if !webhook.spokes.is_empty() && !webhook.conversion {
        return usage("--spoke requires --conversion".to_owned());
    }
    if ["Arc", "Denied", "Hub", "Review", "Webhooks"].contains(&known.kind.as_str()) {
        return usage(format!(
            "the kind {} would hide a type of the same name that webhooks are written with",
            known.kind
        ));
    }
    let webhooks = &known.webhooks;
    for (wanted, present, name) in [
        (webhook.defaulting, webhooks.defaulting, "defaulting"),
        (webhook.validation, webhooks.validation, "validating"),
    ] {
        if wanted && present && !webhook.force {
            return usage(format!(
                "{}/{} {} has a {name} webhook; --force overwrites its file",
                known.group, known.version, known.kind
            ));
        }
    }
    if webhook.conversion && file.namespaced() {
        return usage(
            "a definition is converted for the whole cluster, so OLM rejects conversion webhooks of operators that watch \
             only some namespaces; olmkit edit --namespaced=false lets this one watch all"
                .to_owned(),
        );
    }
    Ok(())
}

/// The versions to add to the conversion.
fn spokes(file: &ProjectFile, hub: &Resource, webhook: &Webhook) -> Result<Vec<String>, Error> {
    let usage = |message: String| Err(Error::Usage(message));
    let all = file.resources();
    let kind = format!("{} {}", hub.group, hub.kind);
    let versions: Vec<&Resource> = all.iter().filter(|other| other.api && other.is_kind_of(hub)).collect();
    if let Some(other) = versions
        .iter()
        .find(|other| other.webhooks.conversion && other.version != hub.version)
    {
        return usage(format!(
            "{kind} has the hub {}; give --version {}",
            other.version, other.version
        ));
    }
    let others: Vec<&String> = versions
        .iter()
        .map(|other| &other.version)
        .filter(|version| **version != hub.version)
        .collect();
    let known = &hub.webhooks.spokes;
    let again = |version: &String| known.contains(version) && !webhook.force;
    let mut spokes: Vec<String> = Vec::new();
    for spoke in &webhook.spokes {
        if *spoke == hub.version {
            return usage(format!(
                "{spoke} is the hub, which needs no conversion; give the other versions"
            ));
        }
        if !others.contains(&spoke) {
            return usage(format!("{kind} has no version {spoke}; olmkit create api creates it"));
        }
        if again(spoke) {
            return usage(format!("{kind} converts {spoke} already; --force overwrites the file"));
        }
        if !spokes.contains(spoke) {
            spokes.push(spoke.clone());
        }
    }
    if webhook.spokes.is_empty() {
        spokes.extend(
            others
                .iter()
                .filter(|version| !again(version))
                .map(|version| (*version).clone()),
        );
        if others.is_empty() {
            return usage(format!(
                "{kind} has one version; a conversion needs another, from olmkit create api"
            ));
        }
        if spokes.is_empty() {
            return usage(format!(
                "{kind} converts all its versions already; --force overwrites the file"
            ));
        }
    }
    let left = others
        .into_iter()
        .find(|version| !spokes.contains(version) && !known.contains(version));
    match left {
        Some(left) => usage(format!(
            "{kind} is served in {left} too, and the API server requires conversions for every version; add --spoke {left}"
        )),
        None => Ok(spokes),
    }
}

/// Writes the file of a webhook, and lists it.
fn put(tree: &mut Tree, file: &ProjectFile, resource: &Resource, part: &str, force: bool) -> Result<(), Error> {
    let path = layout::webhook(file, resource, part).file;
    tree.create(path.clone(), written(file, resource, part)?, force)?;
    modules::declare(tree, Path::new(&path))?;
    for (path, function, statement) in listing(file, resource, part) {
        modules::edit(tree, path, |source| source.add_statements(&function, &[statement]))?;
    }
    if part == CONVERSION {
        settings::add_install_modes(tree, settings::ALL_NAMESPACES)?;
        // The tests of conversions need it.
        manifest::depend(tree, "dev-dependencies", ("proptest", PROPTEST), with_dev_dependencies)?;
    }
    Ok(())
}

const PROPTEST: &str = "proptest = \"1\"\n";

/// Adds a table for it, before the profiles if there are some.
fn with_dev_dependencies(manifest: &str) -> Option<String> {
    let table = format!("[dev-dependencies]\n{PROPTEST}\n");
    Some(match manifest.find("\n[profile.") {
        Some(at) => {
            let mut text = manifest.to_owned();
            text.insert_str(at + 1, &table);
            text
        }
        None => format!("{}\n\n{}\n", manifest.trim_end(), table.trim_end()),
    })
}

/// Takes back what [`with_dev_dependencies`] wrote.
pub(crate) fn without_proptest(manifest: &str) -> String {
    let table = format!("[dev-dependencies]\n{PROPTEST}\n");
    match manifest.strip_suffix(&format!("\n{}\n", table.trim_end())) {
        Some(rest) => rest.to_owned(),
        None => manifest.replace(&table, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_proptest(manifest: &str) -> Result<String, Error> {
        let mut tree = Tree::at("");
        tree.write(manifest::FILE, manifest.to_owned());
        manifest::depend(
            &mut tree,
            "dev-dependencies",
            ("proptest", PROPTEST),
            with_dev_dependencies,
        )?;
        tree.text(manifest::FILE)
    }

    #[test]
    fn proptest_is_added_once_and_taken_back() {
        for text in [
            "[package]\nname = \"a\"\n",
            "[package]\nname = \"a\"\n\n[profile.dev]\ndebug = false\n",
        ] {
            let added = with_proptest(text).unwrap();
            assert!(
                added.parse::<toml::Table>().unwrap().contains_key("dev-dependencies"),
                "{added}"
            );
            assert_eq!(with_proptest(&added).unwrap(), added);
            assert_eq!(without_proptest(&added), text);
        }
        let mine = "[dev-dependencies]\na = \"1\"\n";
        assert_eq!(
            with_proptest(&format!("[package]\n\n{mine}")).unwrap(),
            "[package]\n\n[dev-dependencies]\nproptest = \"1\"\na = \"1\"\n"
        );
        assert!(with_proptest("dev-dependencies = { a = \"1\" }\n").is_err());
        assert!(with_proptest("a = [").is_err());
    }
}
