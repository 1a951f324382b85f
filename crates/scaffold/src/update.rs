//! The files of a project as a newer version of this crate writes them.
//!
//! PROJECT names the release that wrote a project, and lists the created parts. `update` renders the files twice in memory:
//! with that release's templates, and with the current ones. An unchanged file is replaced. In a file with the author's changes, the
//! changes from then to now are merged. Neither needs the network or an older binary.
//!
//! Before the first release there is one state of the templates, so then and now do not differ. From the first release
//! on, each release keeps one whole snapshot of `templates` and `twin` under its name, which [`replay`] reads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::create_api;
use crate::create_webhook::{self, Webhook};
use crate::init::{self, Init, License};
use crate::project_file::{self, ProjectFile};
use crate::record::{self, hash};
use crate::{Error, Report, Source, Tree, config, manifest};

/// The changes that an update made or would make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Updated {
    /// The files that changed.
    pub report: Report,
    /// Files with conflicts: both the author and the templates have changed the same lines. They hold both, marked.
    pub conflicts: Vec<PathBuf>,
    /// Files that the author has deleted and the templates have changed. They stay deleted.
    pub deleted: Vec<PathBuf>,
    /// Files that the author has changed and the templates no longer have. They stay, and nothing uses them.
    pub left: Vec<PathBuf>,
    /// The changes, in the unified format.
    pub diff: String,
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Updates the project in a directory. With `dry_run`, nothing is written.
///
/// # Errors
/// When the project is from a newer version, a file already contains conflict marks, or a file cannot be read or
/// written. Nothing is written then.
pub fn update(folder: &Path, dry_run: bool) -> Result<Updated, Error> {
    let mut tree = Tree::at(folder);
    let before = ProjectFile::read(&tree)?;
    let (from, own) = (before.program(), env!("CARGO_PKG_VERSION"));
    if from != own {
        return Err(Error::Usage(format!(
            "PROJECT: olmkit {from} has written the project, and this is olmkit {own}, which has only its own templates; install \
             a newer olmkit"
        )));
    }
    let mut now = before.clone();
    now.set_program();
    now.set_namespaced(before.namespaced());
    let facts = Facts::new(&tree, &before)?;
    let old = replay(&before, &facts.init(&before, facts.old.clone()))?;
    let new = replay(&now, &facts.init(&now, facts.new.clone()))?;
    let mut updated = Updated::default();
    merge(&mut tree, &mut now, &old, &new, &mut updated)?;
    let render = config::update(&mut tree, Some(&before), &now)?;
    tree.write(project_file::NAME, now.text()?);
    updated.diff = diff(&tree)?;
    let report = match dry_run {
        true => tree.report()?,
        false => tree.commit()?,
    };
    updated.report = Report { render, ..report };
    Ok(updated)
}

/// Updates all files, and their hashes in PROJECT.
fn merge(
    tree: &mut Tree,
    project: &mut ProjectFile,
    old: &Files,
    new: &Files,
    updated: &mut Updated,
) -> Result<(), Error> {
    let before = project.clone();
    let generated = before.generated().map(PathBuf::from);
    let paths: BTreeSet<PathBuf> = old.keys().chain(new.keys()).cloned().chain(generated).collect();
    for path in &paths {
        one(tree, &before, path, (old.get(path), new.get(path)), updated)?;
        let name = path.to_str().unwrap_or_default();
        project.set_hash(name, new.get(path).map(|content| hash(content)));
    }
    Ok(())
}

/// Updates one file, from what it was as generated to what it is now.
fn one(
    tree: &mut Tree,
    project: &ProjectFile,
    path: &Path,
    (old, new): (Option<&Vec<u8>>, Option<&Vec<u8>>),
    updated: &mut Updated,
) -> Result<(), Error> {
    let Some(known) = tree.read(path)? else {
        match (old, new) {
            (None, Some(new)) => tree.write(path, new.clone()),
            (Some(old), Some(new)) if old != new => updated.deleted.push(path.to_owned()),
            _ => {}
        }
        return Ok(());
    };
    let stored = project.hash(path.to_str().unwrap_or_default());
    let untouched = old == Some(&known) || stored.is_some_and(|stored| stored == hash(&known));
    match new {
        None if untouched => tree.remove(path),
        // Keeps the author's changes.
        None if old.is_some() || stored.is_some() => updated.left.push(path.to_owned()),
        None => {}
        Some(new) if untouched => tree.write(path, new.clone()),
        Some(new) if Some(new) == old || *new == known => {}
        Some(new) => {
            let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
            let mine = tree.text(path)?;
            if let Some(line) = mine.lines().position(|line| line.starts_with("<<<<<<< ")) {
                return Err(Error::Usage(format!(
                    "{}:{}: here begins a conflict of an earlier merge; resolve it first",
                    path.display(),
                    line + 1
                )));
            }
            let old = old.map(|old| text(old)).unwrap_or_default();
            match diffy::MergeOptions::new().merge(&old, &mine, &text(new)) {
                Ok(merged) => tree.write(path, merged),
                Err(marked) => {
                    tree.write(path, marked);
                    updated.conflicts.push(path.to_owned());
                }
            }
        }
    }
    Ok(())
}

/// Inputs of a project's files that are not in PROJECT.
struct Facts {
    license: License,
    /// Where olmkit's libraries came from, and come from now.
    old: Source,
    new: Source,
}

impl Facts {
    fn new(tree: &Tree, project: &ProjectFile) -> Result<Self, Error> {
        let manifest = manifest::parse(&tree.text(manifest::FILE)?)?;
        let at = |keys: &[&str]| {
            let mut place = manifest.get(*keys.first()?)?;
            for key in keys.get(1..)? {
                place = place.get(key)?;
            }
            place.as_str()
        };
        let license = match at(&["package", "license"]) {
            Some("Apache-2.0") => License::Apache2,
            _ => License::None,
        };
        let dependency = |key: &str| at(&["dependencies", "kube-manager", key]);
        let program = project.program();
        let (old, new) = match (dependency("path"), dependency("git"), dependency("tag")) {
            (Some(path), ..) => {
                let folder = path.strip_suffix("/crates/manager").unwrap_or(path);
                let source = Source::Path(folder.into());
                (source.clone(), source)
            }
            (_, Some(url), tag) => {
                let git = |tag: String| Source::Git {
                    url: url.to_owned(),
                    tag,
                };
                let then = format!("v{program}");
                match tag {
                    // A tag of the author's choice stays.
                    Some(tag) if tag != then => (git(tag.to_owned()), git(tag.to_owned())),
                    _ => (git(then), git(format!("v{}", env!("CARGO_PKG_VERSION")))),
                }
            }
            _ => (Source::Version(program.to_owned()), Source::Registry),
        };
        // These come from Cargo.toml, where a string can hold anything.
        old.check()?;
        new.check()?;
        Ok(Self { license, old, new })
    }

    fn init(&self, project: &ProjectFile, source: Source) -> Init {
        Init {
            domain: project.domain().to_owned(),
            name: Some(project.name().to_owned()),
            license: self.license,
            namespaced: project.namespaced(),
            multigroup: project.multigroup(),
            source,
        }
    }
}

/// The sources of a project as the templates make them.
fn replay(project: &ProjectFile, options: &Init) -> Result<Files, Error> {
    let nowhere = tempfile::tempdir().map_err(|source| Error::Io {
        action: "create a directory in",
        path: std::env::temp_dir(),
        source,
    })?;
    let mut tree = Tree::at(nowhere.path());
    let mut file = project.clone();
    file.clear_resources();
    init::sources(&mut tree, &file, options)?;
    for resource in project.resources() {
        create_api::put(&mut tree, &mut file, &resource, resource.api, resource.controller, true)?;
    }
    for resource in project
        .resources()
        .iter()
        .filter(|resource| !resource.webhooks.is_empty())
    {
        let webhooks = &resource.webhooks;
        let webhook = Webhook {
            group: short(&file, &resource.group),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
            defaulting: webhooks.defaulting,
            validation: webhooks.validation,
            conversion: webhooks.conversion,
            spokes: webhooks.spokes.clone(),
            force: true,
        };
        file = create_webhook::sources(&mut tree, &file, &webhook)?;
    }
    let tracked = tree.all().filter(|(path, _)| record::is_tracked(path));
    Ok(tracked
        .filter_map(|(path, content)| Some((path.to_owned(), content?.to_vec())))
        .collect())
}

/// A group without the project's domain.
fn short(file: &ProjectFile, group: &str) -> String {
    let domain = file.domain();
    match group.strip_suffix(&format!(".{domain}")) {
        Some(short) => short.to_owned(),
        None if group == domain => String::new(),
        None => group.to_owned(),
    }
}

/// All changes in the unified diff format.
fn diff(tree: &Tree) -> Result<String, Error> {
    let disk = Tree::at(tree.root());
    let mut diff = String::new();
    for (path, content) in tree.all() {
        let before = disk.read(path)?;
        if before.as_deref() == content {
            continue;
        }
        let text = |content: Option<&[u8]>| String::from_utf8_lossy(content.unwrap_or_default()).into_owned();
        let name = |side: &str, there: bool| match there {
            true => format!("{side}/{}", path.display()),
            false => "/dev/null".to_owned(),
        };
        let mut options = diffy::DiffOptions::new();
        options.set_original_filename(name("a", before.is_some()));
        options.set_modified_filename(name("b", content.is_some()));
        diff.push_str(
            &options
                .create_patch(&text(before.as_deref()), &text(content))
                .to_string(),
        );
    }
    Ok(diff)
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
