//! The hosted pipelines' rules on a change as a whole.

use olmkit::diagnostics::{Finding, Rule, Severity};

use crate::change::{Change, first_bundle};
use crate::checked::Checked;
use crate::checks::{CHANGE_SUITE, name_of};
use crate::deletion;
use crate::python::Raise;
use crate::python::text::{list, pairs};
use crate::repository::Repository;

pub(crate) static RULES: &[&Rule] = &[&ADDED, &CATALOG_TOO, &OPERATORS, &deletion::DELETED, &EXTRA, &MODIFIED];

const fn rule(id: &'static str, summary: &'static str) -> Rule {
    crate::checks::rule(id, Severity::Error, CHANGE_SUITE, summary)
}

static ADDED: Rule = rule(
    "pipeline/check_added_bundles",
    "A change must add at most one bundle, and none if it deletes some",
)
.because(
    "The pipeline builds, tests and releases one bundle for each pull request.",
    "0.1.0",
);

static CATALOG_TOO: Rule = rule(
    "pipeline/check_affected_catalog_operators",
    "A change must touch a bundle or catalogs, not both",
)
.because("A catalog may name only bundles that are released already.", "0.1.0");

static OPERATORS: Rule = rule(
    "pipeline/check_affected_operators",
    "A change that touches a bundle must touch only one operator",
)
.because("Reviewers and tests belong to one operator.", "0.1.0");

static EXTRA: Rule = rule(
    "pipeline/check_extra_files",
    "A change must touch only operator and catalog files",
)
.because("Everything else in the repository belongs to its maintainers.", "0.1.0")
.example("operators/README.md", "operators/hello-operator/README.md");

static MODIFIED: Rule = rule("pipeline/check_modified_bundles", "A released bundle must not change")
    .because("Clusters have installed it. Publish a new version instead.", "0.1.0");

impl Change {
    /// Checks the hosted pipelines' rules on the change.
    pub fn check(&self, head: &Repository, base: &Repository) -> Vec<Checked> {
        let mut found = Vec::new();
        let result = self.rules(head, base, &mut found);
        let of = |finding: Finding, is_traceback| Checked {
            suite: CHANGE_SUITE,
            check: name_of(finding.rule),
            finding,
            is_traceback,
        };
        let mut all: Vec<Checked> = found.into_iter().map(|finding| of(finding, false)).collect();
        if let Err(raise) = result {
            let mut finding = Finding::from_rule(&deletion::DELETED, raise.text);
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
            found.push(Finding::from_rule(&OPERATORS, message).hint("open one pull request for each operator"));
        }
        deletion::check(&bundles.deleted, head, base, found)?;
        if !self.extra_files.is_empty() {
            let message = format!("The PR affects non-operator files: {}", list(&self.extra_files));
            let file = self.extra_files.first().cloned().unwrap_or_default();
            found.push(
                Finding::from_rule(&EXTRA, message)
                    .file(file)
                    .hint("remove these files from the change"),
            );
        }
        if !bundles.modified.is_empty() {
            let message = format!("The PR modifies existing bundles: {}", pairs(&bundles.modified));
            found.push(
                first_bundle(&MODIFIED, message, &bundles.modified)
                    .hint("restore it, and add a bundle with a new version"),
            );
        }
        Ok(())
    }
}
