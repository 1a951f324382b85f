//! Detects which operators, bundles and catalogs a change affects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use olmkit::diagnostics::{Finding, Rule};
use regex::Regex;
use serde::Serialize;

use crate::repository::Repository;

/// A pair such as operator and version of a bundle, or catalog and operator.
pub(crate) type Pair = (String, String);

/// Added, modified and deleted items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Affected<T> {
    pub(crate) added: BTreeSet<T>,
    pub(crate) modified: BTreeSet<T>,
    pub(crate) deleted: BTreeSet<T>,
}

impl<T: Ord + Clone> Affected<T> {
    fn new(all: impl Iterator<Item = T>, is_in: impl Fn(&T) -> (bool, bool)) -> Self {
        let (mut added, mut modified, mut deleted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for one in all {
            match is_in(&one) {
                (true, false) => added.insert(one),
                (true, true) => modified.insert(one),
                (false, true) => deleted.insert(one),
                (false, false) => false,
            };
        }
        Self {
            added,
            modified,
            deleted,
        }
    }

    pub(crate) fn added_or_modified(&self) -> BTreeSet<T> {
        self.added.union(&self.modified).cloned().collect()
    }

    pub(crate) fn all(&self) -> BTreeSet<T> {
        self.added_or_modified().union(&self.deleted).cloned().collect()
    }
}

/// Items that a change affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub(crate) operators: Affected<String>,
    pub(crate) bundles: Affected<Pair>,
    catalogs: Affected<String>,
    pub(crate) catalog_operators: Affected<Pair>,
    pub(crate) extra_files: BTreeSet<String>,
}

impl Change {
    /// Groups the changed files of `head` against `base` by operator, bundle and catalog.
    pub fn detect(head: &Repository, base: &Repository, files: &[String]) -> Self {
        let (mut operators, mut bundles) = (BTreeSet::new(), BTreeSet::new());
        let (mut catalogs, mut catalog_operators) = (BTreeSet::new(), BTreeSet::new());
        let mut extra_files = BTreeSet::new();
        let either = |is: &dyn Fn(&Repository) -> bool| is(head) || is(base);
        for file in files {
            let parts: Vec<&str> = file.split('/').filter(|part| !part.is_empty()).collect();
            match parts.as_slice() {
                ["operators", operator, version, ..] if either(&|repository| repository.has_operator(operator)) => {
                    operators.insert((*operator).to_owned());
                    let has = |repository: &Repository| {
                        repository.has_operator(operator) && repository.has_bundle(operator, version)
                    };
                    if either(&has) {
                        bundles.insert(((*operator).to_owned(), (*version).to_owned()));
                    }
                }
                ["catalogs", catalog, operator, ..]
                    if either(&|repository| repository.has_operator_catalog(catalog, operator)) =>
                {
                    catalogs.insert((*catalog).to_owned());
                    catalog_operators.insert(((*catalog).to_owned(), (*operator).to_owned()));
                }
                _ => {
                    extra_files.insert(file.clone());
                }
            }
        }
        let both = |is: &dyn Fn(&Repository) -> bool| (is(head), is(base));
        Self {
            operators: Affected::new(operators.into_iter(), |name| {
                both(&|repository| repository.has_operator(name))
            }),
            bundles: Affected::new(bundles.into_iter(), |(operator, version)| {
                both(&|repository| repository.has_bundle(operator, version))
            }),
            catalogs: Affected::new(catalogs.into_iter(), |name| {
                both(&|repository| repository.has_catalog(name))
            }),
            catalog_operators: Affected::new(catalog_operators.into_iter(), |(catalog, operator)| {
                both(&|repository| repository.has_operator_catalog(catalog, operator))
            }),
            extra_files,
        }
    }

    /// The operator that the static checks test, and its bundle.
    pub fn target(&self) -> (Option<String>, Option<String>) {
        let operator = self.operators.all().into_iter().next();
        let operator = operator.or_else(|| Some(self.catalog_operators.all().into_iter().next()?.1));
        let bundle = self.bundles.added_or_modified().into_iter().next();
        (operator, bundle.map(|(_, version)| version))
    }

    /// The catalogs that the static checks test, as `CATALOG/OPERATOR`.
    pub fn affected_catalogs(&self) -> Vec<String> {
        joined(self.catalog_operators.all())
    }

    /// Returns true if the static checks run at all: a bundle or a catalog is touched.
    pub fn touches_bundle_or_catalog(&self) -> bool {
        !self.bundles.all().is_empty() || !self.catalog_operators.all().is_empty()
    }

    /// The change as the pipeline hands it on.
    ///
    /// # Errors
    /// A catalog's name is not a version, on which the pipeline fails. The message names it.
    pub fn summary(&self) -> Result<Summary, String> {
        let (operator_name, version) = self.target();
        let operator_name = operator_name.unwrap_or_default();
        let bundle_version = version.unwrap_or_default();
        let under = |path: String, wanted: &str| if wanted.is_empty() { String::new() } else { path };
        let written = self.catalog_operators.added_or_modified();
        let names: BTreeSet<String> = written.iter().map(|(catalog, _)| catalog.clone()).collect();
        Ok(Summary {
            affected_operators: self.operators.all().into_iter().collect(),
            added_operators: self.operators.added.iter().cloned().collect(),
            modified_operators: self.operators.modified.iter().cloned().collect(),
            deleted_operators: self.operators.deleted.iter().cloned().collect(),
            added_or_modified_operators: self.operators.added_or_modified().into_iter().collect(),
            affected_bundles: joined(self.bundles.all()),
            added_bundles: joined(self.bundles.added.clone()),
            modified_bundles: joined(self.bundles.modified.clone()),
            deleted_bundles: joined(self.bundles.deleted.clone()),
            added_or_modified_bundles: joined(self.bundles.added_or_modified()),
            affected_catalogs: by_version(self.catalogs.all())?,
            added_catalogs: by_version(self.catalogs.added.clone())?,
            modified_catalogs: by_version(self.catalogs.modified.clone())?,
            deleted_catalogs: by_version(self.catalogs.deleted.clone())?,
            added_or_modified_catalogs: by_version(self.catalogs.added_or_modified())?,
            affected_catalog_operators: joined(self.catalog_operators.all()),
            added_catalog_operators: joined(self.catalog_operators.added.clone()),
            modified_catalog_operators: joined(self.catalog_operators.modified.clone()),
            deleted_catalog_operators: joined(self.catalog_operators.deleted.clone()),
            added_or_modified_catalog_operators: joined(written),
            catalogs_with_added_or_modified_operators: by_version(names)?,
            extra_files: self.extra_files.iter().cloned().collect(),
            operator_path: under(format!("operators/{operator_name}"), &operator_name),
            bundle_path: under(format!("operators/{operator_name}/{bundle_version}"), &bundle_version),
            operator_name,
            bundle_version,
        })
    }
}

/// A finding at the first of some bundles.
pub(crate) fn first_bundle(rule: &'static Rule, message: String, bundles: &BTreeSet<Pair>) -> Finding {
    let finding = Finding::from_rule(rule, message);
    match bundles.first() {
        Some((operator, version)) => finding.file(format!("operators/{operator}/{version}")),
        None => finding,
    }
}

/// `first/second`, sorted.
fn joined(pairs: BTreeSet<Pair>) -> Vec<String> {
    let texts: BTreeSet<String> = pairs
        .into_iter()
        .map(|(first, second)| format!("{first}/{second}"))
        .collect();
    texts.into_iter().collect()
}

/// Python's versions (PEP 440), which a name is after its first letter.
static PYTHON_VERSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\s*v?(?:\d+!)?(\d+(?:\.\d+)*)(?:[-_.]?(?:alpha|a|beta|b|preview|pre|c|rc)[-_.]?\d*)?(?:-\d+|[-_.]?(?:post|rev|r)[-_.]?\d*)?(?:[-_.]?dev[-_.]?\d*)?(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?\s*$",
    )
    .ok()
});

fn by_version(names: BTreeSet<String>) -> Result<Vec<String>, String> {
    let mut sorted: BTreeMap<(Vec<u64>, String), String> = BTreeMap::new();
    for name in names {
        let mut characters = name.chars();
        characters.next();
        let version = characters.as_str();
        let captures = PYTHON_VERSION.as_ref().and_then(|pattern| pattern.captures(version));
        let Some(release) = captures.and_then(|captures| captures.get(1)) else {
            return Err(format!(
                "the name of the catalog {name:?} is not a version such as v4.20; the hosted pipeline fails on it"
            ));
        };
        let mut numbers: Vec<u64> = release
            .as_str()
            .split('.')
            .map(|part| part.parse().unwrap_or(u64::MAX))
            .collect();
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        sorted.insert((numbers, name.clone()), name);
    }
    Ok(sorted.into_values().collect())
}

/// A change as the pipeline hands it on to its later steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names of the pipeline say what they hold")]
pub struct Summary {
    pub affected_operators: Vec<String>,
    pub added_operators: Vec<String>,
    pub modified_operators: Vec<String>,
    pub deleted_operators: Vec<String>,
    pub added_or_modified_operators: Vec<String>,
    pub affected_bundles: Vec<String>,
    pub added_bundles: Vec<String>,
    pub modified_bundles: Vec<String>,
    pub deleted_bundles: Vec<String>,
    pub added_or_modified_bundles: Vec<String>,
    pub affected_catalogs: Vec<String>,
    pub added_catalogs: Vec<String>,
    pub modified_catalogs: Vec<String>,
    pub deleted_catalogs: Vec<String>,
    pub added_or_modified_catalogs: Vec<String>,
    pub affected_catalog_operators: Vec<String>,
    pub added_catalog_operators: Vec<String>,
    pub modified_catalog_operators: Vec<String>,
    pub deleted_catalog_operators: Vec<String>,
    pub added_or_modified_catalog_operators: Vec<String>,
    pub catalogs_with_added_or_modified_operators: Vec<String>,
    pub extra_files: Vec<String>,
    pub operator_name: String,
    pub bundle_version: String,
    pub operator_path: String,
    pub bundle_path: String,
}
