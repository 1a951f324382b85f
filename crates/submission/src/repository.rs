//! An operator repository: operators with their bundles, and catalogs.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::bundle::Bundle;
use crate::files::{Files, join};
use crate::python::{Document, Raise, RaiseKind, read_document};

/// The names that the file of an operator in a catalog may have.
pub(crate) const CATALOG_FILES: [&str; 3] = ["catalog.yaml", "catalog.yml", "catalog.json"];

/// A repository.
pub struct Repository {
    files: Arc<dyn Files>,
    config: OnceLock<Result<Document, Raise>>,
}

impl Repository {
    /// A repository with these files.
    pub fn new(files: Arc<dyn Files>) -> Self {
        Self {
            files,
            config: OnceLock::new(),
        }
    }

    /// Returns true if there is anything to check: a directory `operators`.
    pub fn is_repository(&self) -> bool {
        self.files.is_directory("operators")
    }

    pub(crate) fn files(&self) -> &dyn Files {
        &*self.files
    }

    /// `config.yaml`. An empty mapping without one.
    pub(crate) fn config(&self) -> Result<&Document, Raise> {
        let read = || optional(&*self.files, "config.yaml");
        self.config.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// The organization that `config.yaml` names.
    pub fn organization(&self) -> Option<String> {
        let config = self.config().ok()?;
        config.root.get("organization")?.as_str().map(str::to_owned)
    }

    /// Returns true if it is a clone of operatorhub.io's repository: `config.yaml` names its cluster, or names no
    /// organization and operatorhub.io's list of categories exists.
    pub fn is_operator_hub(&self) -> bool {
        let config = self.config().ok();
        let cluster = config.and_then(|config| config.root.get("cluster")?.as_str());
        cluster == Some("k8s") || (self.organization().is_none() && self.files.is_file("categories.json"))
    }

    /// The operators, sorted.
    pub fn operators(&self) -> Vec<String> {
        let mut names = self.files.list("operators");
        names.retain(|name| self.has_operator(name));
        names
    }

    /// Returns true if an operator of that name exists: a directory with a bundle or a `ci.yaml`.
    pub fn has_operator(&self, name: &str) -> bool {
        if !is_name(name) {
            return false;
        }
        let directory = join("operators", name);
        self.files.is_file(&join(&directory, "ci.yaml"))
            || self
                .files
                .list(&directory)
                .iter()
                .any(|version| self.has_bundle(name, version))
    }

    /// Returns true if the bundle exists: a directory with `manifests` and `metadata`.
    pub fn has_bundle(&self, operator: &str, version: &str) -> bool {
        let directory = format!("operators/{operator}/{version}");
        is_name(operator)
            && is_name(version)
            && self.files.is_directory(&join(&directory, "manifests"))
            && self.files.is_directory(&join(&directory, "metadata"))
    }

    /// An operator.
    pub fn operator(&self, name: &str) -> Option<Operator> {
        self.has_operator(name).then(|| {
            let mut versions = self.files.list(&join("operators", name));
            versions.retain(|version| self.has_bundle(name, version));
            let of = |version: String| Bundle::new(Arc::clone(&self.files), name, version);
            Operator {
                files: Arc::clone(&self.files),
                name: name.to_owned(),
                bundles: versions.into_iter().map(of).collect(),
                config: OnceLock::new(),
                channels: OnceLock::new(),
            }
        })
    }

    /// The templates that an operator's `ci.yaml` maps to catalogs.
    pub fn catalog_templates(&self, operator: &str) -> Vec<String> {
        let of = |operator: Operator| {
            let mapping = operator.config().ok()?.root.get("fbc")?.get("catalog_mapping")?.items();
            let names = mapping.iter().filter_map(|one| one.get("template_name")?.as_str());
            Some(names.map(str::to_owned).collect())
        };
        self.operator(operator).and_then(of).unwrap_or_default()
    }

    /// Returns true if an operator's `ci.yaml` has `updateGraph`.
    pub fn has_update_graph(&self, operator: &str) -> bool {
        let has = |operator: &Operator| {
            operator
                .config()
                .is_ok_and(|config| config.root.get("updateGraph").is_some())
        };
        self.operator(operator).as_ref().is_some_and(has)
    }

    /// The catalogs, sorted.
    pub(crate) fn catalogs(&self) -> Vec<String> {
        let mut names = self.files.list("catalogs");
        names.retain(|name| self.has_catalog(name));
        names
    }

    /// Returns true if a catalog of that name exists: a directory in which an operator has a catalog file.
    pub(crate) fn has_catalog(&self, name: &str) -> bool {
        let operators = || self.files.list(&join("catalogs", name));
        is_name(name)
            && operators()
                .iter()
                .any(|operator| self.has_operator_catalog(name, operator))
    }

    /// Returns true if an operator has a file in a catalog.
    pub(crate) fn has_operator_catalog(&self, catalog: &str, operator: &str) -> bool {
        is_name(catalog) && is_name(operator) && self.operator_catalog_file(catalog, operator).is_some()
    }

    /// The file of an operator in a catalog. It need not be a file to be there.
    pub(crate) fn operator_catalog_file(&self, catalog: &str, operator: &str) -> Option<String> {
        let directory = format!("catalogs/{catalog}/{operator}");
        let names = self.files.list(&directory);
        let name = CATALOG_FILES
            .into_iter()
            .find(|name| names.iter().any(|there| there == name))?;
        Some(join(&directory, name))
    }

    /// The catalogs that an operator is in, as `CATALOG/OPERATOR`.
    pub fn catalogs_of(&self, operator: &str) -> Vec<String> {
        let catalogs = self.files.list("catalogs").into_iter();
        catalogs
            .filter(|catalog| self.has_operator_catalog(catalog, operator))
            .map(|catalog| format!("{catalog}/{operator}"))
            .collect()
    }
}

/// A single path segment that stays inside the directory.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && !matches!(name, "." | "..")
}

/// A file, or an empty mapping if there is none.
fn optional(files: &dyn Files, path: &str) -> Result<Document, Raise> {
    match read_document(files, path) {
        Err(raise) if raise.kind == RaiseKind::FileNotFound => Ok(Document::empty(path)),
        result => result,
    }
}

/// An operator with its bundles.
pub struct Operator {
    files: Arc<dyn Files>,
    pub(crate) name: String,
    pub(crate) bundles: Vec<Bundle>,
    config: OnceLock<Result<Document, Raise>>,
    /// The positions of the bundles in each channel.
    channels: OnceLock<Result<BTreeMap<String, Vec<usize>>, Raise>>,
}

impl Operator {
    /// The bundles in a channel, in the order of [`Self::bundles`]. Thousands of bundles may have hundreds of channels each.
    pub(crate) fn in_channel(&self, channel: &str) -> Result<Vec<&Bundle>, Raise> {
        let read = || {
            let mut channels: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for (at, bundle) in self.bundles.iter().enumerate() {
                for name in bundle.channels()? {
                    channels.entry(name.clone()).or_default().push(at);
                }
            }
            Ok(channels)
        };
        let channels = self.channels.get_or_init(read).as_ref().map_err(Clone::clone)?;
        let positions = channels.get(channel).into_iter().flatten();
        Ok(positions.filter_map(|at| self.bundles.get(*at)).collect())
    }

    /// `ci.yaml`. An empty mapping without one.
    pub(crate) fn config(&self) -> Result<&Document, Raise> {
        let read = || optional(&*self.files, &format!("operators/{}/ci.yaml", self.name));
        self.config.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// Returns true if the operator is published through file-based catalogs according to `ci.yaml`.
    pub(crate) fn uses_catalogs(&self) -> Result<bool, Raise> {
        let fbc = self.config()?.view().get_or("fbc", &crate::python::EMPTY)?;
        Ok(fbc.get("enabled")?.is_true())
    }

    /// The versions of its bundles, which are their directory names.
    pub fn versions(&self) -> Vec<String> {
        self.bundles.iter().map(|bundle| bundle.version.clone()).collect()
    }

    /// The bundle in a directory.
    pub(crate) fn bundle(&self, version: &str) -> Option<&Bundle> {
        self.bundles.iter().find(|bundle| bundle.version == version)
    }
}
