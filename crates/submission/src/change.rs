//! What a change to a repository touches, and the rules on the change as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use olmkit::diagnostics::{Finding, Origin, Rule, Severity};
use regex::Regex;
use serde::Serialize;

use crate::deletion;
use crate::python::Raise;
use crate::python::text::{list, pairs};
use crate::repository::Repository;
use crate::run::Checked;

pub(crate) static RULES: &[&Rule] = &[&ADDED, &CATALOG_TOO, &OPERATORS, &deletion::DELETED, &EXTRA, &MODIFIED];

const SUITE: &str = "pull-request";

pub(crate) const fn rule(id: &'static str, summary: &'static str) -> Rule {
    Rule::of_tool(id, Severity::Error, Origin::Pipeline(SUITE), summary)
}

static ADDED: Rule = rule(
    "pipeline/check_added_bundles",
    "A change adds one bundle at most, and none if it deletes some",
)
.because(
    "The pipeline builds, tests and releases one bundle for each pull request.",
    "0.2.0",
);

static CATALOG_TOO: Rule = rule(
    "pipeline/check_affected_catalog_operators",
    "A change touches a bundle or catalogs, not both",
)
.because("A catalog may name only bundles that are released already.", "0.2.0");

static OPERATORS: Rule = rule(
    "pipeline/check_affected_operators",
    "A change that touches a bundle touches one operator",
)
.because("Reviewers and tests belong to one operator.", "0.2.0");

static EXTRA: Rule = rule(
    "pipeline/check_extra_files",
    "A change touches files of operators and catalogs only",
)
.because("Everything else in the repository belongs to its maintainers.", "0.2.0")
.example("operators/README.md", "operators/hello-operator/README.md");

static MODIFIED: Rule = rule("pipeline/check_modified_bundles", "A released bundle does not change")
    .because("Clusters have installed it; publish a new version instead.", "0.2.0");

/// A pair such as operator and version of a bundle, or catalog and operator.
pub(crate) type Pair = (String, String);

/// What was added, modified and deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Affected<T> {
    added: BTreeSet<T>,
    modified: BTreeSet<T>,
    deleted: BTreeSet<T>,
}

impl<T: Ord + Clone> Affected<T> {
    fn of(all: impl Iterator<Item = T>, is_in: impl Fn(&T) -> (bool, bool)) -> Self {
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

    fn added_or_modified(&self) -> BTreeSet<T> {
        self.added.union(&self.modified).cloned().collect()
    }

    fn all(&self) -> BTreeSet<T> {
        self.added_or_modified().union(&self.deleted).cloned().collect()
    }
}

/// What a change touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    operators: Affected<String>,
    bundles: Affected<Pair>,
    catalogs: Affected<String>,
    catalog_operators: Affected<Pair>,
    extra_files: BTreeSet<String>,
}

impl Change {
    /// Sorts the changed files of `head` against `base` by what they belong to.
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
            operators: Affected::of(operators.into_iter(), |name| {
                both(&|repository| repository.has_operator(name))
            }),
            bundles: Affected::of(bundles.into_iter(), |(operator, version)| {
                both(&|repository| repository.has_bundle(operator, version))
            }),
            catalogs: Affected::of(catalogs.into_iter(), |name| {
                both(&|repository| repository.has_catalog(name))
            }),
            catalog_operators: Affected::of(catalog_operators.into_iter(), |(catalog, operator)| {
                both(&|repository| repository.has_operator_catalog(catalog, operator))
            }),
            extra_files,
        }
    }

    /// The operator that the static checks look at, and its bundle.
    pub fn target(&self) -> (Option<String>, Option<String>) {
        let operator = self.operators.all().into_iter().next();
        let operator = operator.or_else(|| Some(self.catalog_operators.all().into_iter().next()?.1));
        let bundle = self.bundles.added_or_modified().into_iter().next();
        (operator, bundle.map(|(_, version)| version))
    }

    /// The catalogs that the static checks look at, as `CATALOG/OPERATOR`.
    pub fn affected_catalogs(&self) -> Vec<String> {
        joined(self.catalog_operators.all())
    }

    /// Whether the static checks run at all: a bundle or a catalog is touched.
    pub fn touches_bundle_or_catalog(&self) -> bool {
        !self.bundles.all().is_empty() || !self.catalog_operators.all().is_empty()
    }

    /// Published bundles that are gone.
    pub(crate) fn deleted_bundles(&self) -> &BTreeSet<Pair> {
        &self.bundles.deleted
    }

    /// Published bundles that are not what they were.
    pub(crate) fn modified_bundles(&self) -> &BTreeSet<Pair> {
        &self.bundles.modified
    }

    /// Checks the rules of operatorhub.io on the change; `files` are those that changed.
    pub fn check_operator_hub(&self, head: &Repository, base: &Repository, files: &[String]) -> Vec<Checked> {
        crate::hub_change::check(self, head, base, files)
    }

    /// Checks the rules of the hosted pipeline on the change.
    pub fn check(&self, head: &Repository, base: &Repository) -> Vec<Checked> {
        let mut found = Vec::new();
        let result = self.rules(head, base, &mut found);
        let of = |finding: Finding, is_traceback| Checked {
            suite: SUITE,
            check: crate::checks::name_of(finding.rule),
            finding,
            is_traceback,
        };
        let mut all: Vec<Checked> = found.into_iter().map(|finding| of(finding, false)).collect();
        if let Err(raise) = result {
            let mut finding = Finding::of(&deletion::DELETED, raise.text);
            finding.file = raise.file.map(Into::into);
            finding.position = raise.position;
            all.push(of(
                finding.hint("the change cannot be checked; the hosted pipeline prints a Python traceback"),
                true,
            ));
        }
        all
    }

    fn rules(&self, head: &Repository, base: &Repository, found: &mut Vec<Finding>) -> Result<(), Raise> {
        let bundles = &self.bundles;
        if bundles.added.len() > 1 {
            let message = format!("The PR affects more than one bundle: {}", pairs(&bundles.added));
            found.push(first_bundle(&ADDED, message, &bundles.added).hint("open one pull request for each bundle"));
        }
        if !bundles.added.is_empty() && !bundles.deleted.is_empty() {
            let message = "The PR adds and deletes bundles at the same time. This is not allowed. Please split the changes into \
                           2 separate pull requests.";
            found.push(first_bundle(&ADDED, message.to_owned(), &bundles.deleted));
        }
        let written = bundles.added_or_modified();
        if !written.is_empty() && !self.catalog_operators.all().is_empty() {
            let message = format!(
                "The PR affects a bundle ({}) and catalog ({}) at the same time. Split operator and catalog changes into 2 \
                 separate pull requests.",
                pairs(&written),
                pairs(&self.catalog_operators.all())
            );
            found.push(first_bundle(&CATALOG_TOO, message, &written));
        }
        if self.operators.all().len() > 1 && !bundles.all().is_empty() {
            let message = format!("The PR affects more than one operator: {}", list(self.operators.all()));
            found.push(Finding::of(&OPERATORS, message).hint("open one pull request for each operator"));
        }
        deletion::check(&bundles.deleted, head, base, found)?;
        if !self.extra_files.is_empty() {
            let message = format!("The PR affects non-operator files: {}", list(&self.extra_files));
            let file = self.extra_files.first().cloned().unwrap_or_default();
            found.push(
                Finding::of(&EXTRA, message)
                    .file(file)
                    .hint("take these files out of the change"),
            );
        }
        if !bundles.modified.is_empty() {
            let message = format!("The PR modifies existing bundles: {}", pairs(&bundles.modified));
            found.push(
                first_bundle(&MODIFIED, message, &bundles.modified)
                    .hint("leave it as it is, and add a bundle of a new version"),
            );
        }
        Ok(())
    }

    /// The change as the pipeline hands it on.
    ///
    /// # Errors
    /// A catalog's name is not a version, on which the pipeline fails; the message names it.
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

pub(crate) fn first_bundle(rule: &'static Rule, message: String, bundles: &BTreeSet<Pair>) -> Finding {
    let finding = Finding::of(rule, message);
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
