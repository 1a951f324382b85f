//! The rules of operatorhub.io on a change as a whole.

use std::collections::BTreeSet;

use olmkit::diagnostics::{Finding, Rule, Severity};

use crate::change::Change;
use crate::checked::Checked;
use crate::checks::name_of;
use crate::checks::operator_hub::{SUITE, is_sound, rule, unsound};
use crate::python::text::list;
use crate::python::{Node, Value};
use crate::repository::Repository;

pub(crate) static RULES: &[&Rule] = &[&EXISTING, &FILES, &ONE, &REBASE];

static FILES: Rule = rule(
    "operatorhub/files",
    Severity::Error,
    "A change must touch only files below operators/",
)
.because("Everything else in the repository belongs to its maintainers.", "0.1.0")
.example("README.md", "operators/hello/README.md");

static ONE: Rule = rule(
    "operatorhub/one-operator",
    Severity::Error,
    "A change must touch only one operator",
)
.because("Reviewers and tests belong to one operator.", "0.1.0");

static REBASE: Rule = rule(
    "operatorhub/rebase",
    Severity::Error,
    "All published operator versions must be present",
)
.because(
    "A missing version would be removed from the index. Usually the fork is older than the last release.",
    "0.1.0",
);

static EXISTING: Rule = rule(
    "operatorhub/existing-versions",
    Severity::Error,
    "In a published version only descriptions, the icon and the examples may change",
)
.because(
    "Clusters have installed it. Publish a new version instead, or request the label allow/serious-changes-to-existing.",
    "0.1.0",
)
.example("spec.install of a published version changes", "spec.description of a published version changes");

/// Fields that may change in the ClusterServiceVersion of a published version.
const ALLOWED: [&str; 5] = [
    "metadata.annotations.alm-examples",
    "metadata.annotations.description",
    "spec.description",
    "spec.displayName",
    "spec.icon",
];

impl Change {
    /// Checks the rules of operatorhub.io on the change. `files` are those that changed.
    pub fn check_operator_hub(&self, head: &Repository, base: &Repository, files: &[String]) -> Vec<Checked> {
        let mut found = Vec::new();
        let outside: Vec<&String> = files.iter().filter(|file| !file.starts_with("operators/")).collect();
        if let Some(first) = outside.first() {
            let message = format!("the change touches files outside of operators/: {}", list(&outside));
            let hint = "remove these files from the change; a maintainer can set the label allow/ci-changes";
            found.push(Finding::from_rule(&FILES, message).file(first.as_str()).hint(hint));
        }
        let operators: BTreeSet<&str> = files
            .iter()
            .filter_map(|file| file.strip_prefix("operators/")?.split_once('/'))
            .map(|(operator, _)| operator)
            .collect();
        if operators.len() > 1 {
            let message = format!("the change touches {} operators: {}", operators.len(), list(&operators));
            found.push(Finding::from_rule(&ONE, message).hint("open one pull request for each operator"));
        }
        for operator in operators.iter().filter(|operator| !is_sound(operator)) {
            found.push(unsound("operator", operator).file(format!("operators/{operator}")));
        }
        for (operator, version) in &self.bundles.deleted {
            let message = format!("the published version {version} of {operator} is missing");
            let hint =
                "rebase the fork; to remove a version, ask a maintainer for the label allow/operator-version-overwrite";
            found.push(
                Finding::from_rule(&REBASE, message)
                    .file(format!("operators/{operator}"))
                    .hint(hint),
            );
        }
        for (operator, version) in &self.bundles.modified {
            existing(head, base, operator, version, &mut found);
        }
        let of = |finding: Finding| Checked {
            suite: SUITE,
            check: name_of(finding.rule),
            finding,
            is_traceback: false,
        };
        found.into_iter().map(of).collect()
    }
}

/// Changes in the ClusterServiceVersion of a published bundle.
fn existing(head: &Repository, base: &Repository, operator: &str, version: &str, found: &mut Vec<Finding>) {
    let of = |repository: &Repository| repository.operator(operator)?.bundle(version)?.csv().ok();
    let (Some(new), Some(old)) = (of(head), of(base)) else {
        return;
    };
    let mut changed = Vec::new();
    differences(&old.root, &new.root, "", &mut changed);
    changed.retain(|path| !ALLOWED.contains(&path.as_str()));
    if changed.is_empty() {
        return;
    }
    let message = format!("the change modifies {} of a published version", changed.join(", "));
    let hint = "restore it, and add a new version";
    found.push(
        Finding::from_rule(&EXISTING, message)
            .file(new.file)
            .at(new.root.start)
            .hint(hint),
    );
}

/// The paths of values that differ, to the depth of the allowed changes.
fn differences(old: &Node, new: &Node, path: &str, changed: &mut Vec<String>) {
    let is_deep = matches!(path, "" | "metadata" | "metadata.annotations" | "spec");
    let (Value::Dict(before), Value::Dict(after), true) = (&old.value, &new.value, is_deep) else {
        if !old.equals(new) {
            changed.push(path.to_owned());
        }
        return;
    };
    let names: BTreeSet<&str> = before.iter().chain(after).filter_map(|(key, _)| key.as_str()).collect();
    for name in names {
        let inner = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        };
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => differences(old, new, &inner, changed),
            _ => changed.push(inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Memory;

    fn repository(versions: &[(&str, &str)]) -> Repository {
        let files = versions.iter().flat_map(|(path, spec)| {
            let directory = format!("operators/{path}");
            [
                (
                    format!("{directory}/manifests/a.clusterserviceversion.yaml"),
                    format!("metadata:\n  name: a.v1\n{spec}"),
                ),
                (
                    format!("{directory}/metadata/annotations.yaml"),
                    "annotations: {}\n".to_owned(),
                ),
            ]
        });
        Repository::new(Arc::new(files.collect::<Memory>()))
    }

    fn found(base: &[(&str, &str)], head: &[(&str, &str)], files: &[&str]) -> Vec<&'static str> {
        let (base, head) = (repository(base), repository(head));
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let change = Change::detect(&head, &base, &files);
        let found = change.check_operator_hub(&head, &base, &files);
        found.iter().map(|checked| checked.check).collect()
    }

    #[test]
    fn each_rule_finds_its_defect_and_nothing_else() {
        let old = [("a/1.0.0", "spec: {version: 1.0.0, description: x}\n")];
        let both = [old[0], ("a/1.1.0", "spec: {version: 1.1.0}\n")];
        let csv = "operators/a/1.0.0/manifests/a.clusterserviceversion.yaml";
        let new = "operators/a/1.1.0/manifests/a.clusterserviceversion.yaml";
        assert_eq!(found(&old, &both, &[new]), [""; 0]);
        assert_eq!(found(&old, &both, &[new, "README.md"]), ["files"]);
        assert_eq!(found(&old, &both, &[new, "operators/b/ci.yaml"]), ["one-operator"]);
        assert_eq!(
            found(&old, &both, &[new, "operators/a b/ci.yaml"]),
            ["one-operator", "names"]
        );
        assert_eq!(found(&both, &old, &[new]), ["rebase"]);
        let other_text = [("a/1.0.0", "spec: {version: 1.0.0, description: y}\n")];
        assert_eq!(found(&old, &other_text, &[csv]), [""; 0]);
        let other_field = [("a/1.0.0", "spec: {version: 1.0.0, description: x, maturity: alpha}\n")];
        assert_eq!(found(&old, &other_field, &[csv]), ["existing-versions"]);
    }
}
