//! operatorhub.io: requirements of its pipeline for an operator and its bundles.
//!
//! The originals are Ansible roles without check names, messages or positions. The rules are theirs, the wording is
//! ours.

mod bundle;
mod image;

use std::collections::BTreeMap;

use olmkit::diagnostics::{Finding, Origin, Rule, Severity};

use super::{Check, Context, Findings, Run, Suite, at};
use crate::files::join;
use crate::python::{EMPTY_LIST, Raise};
use crate::repository::Operator;

/// The name of the suite.
pub(crate) const SUITE: &str = "operatorhub";

/// The annotation with the newest Kubernetes that a bundle runs on.
pub(super) const MAX_KUBERNETES: &str = "operatorhub.io/ui-metadata-max-k8s-version";

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::OperatorHub, &FORMAT, Run::Operator(format)),
    Check::new(Suite::OperatorHub, &NAMES, Run::Operator(names)),
    Check::new(Suite::OperatorHub, &PACKAGE, Run::Operator(package)),
    Check::new(Suite::OperatorHub, &REVIEWERS, Run::Operator(reviewers)),
];

pub(super) use bundle::CHECKS as BUNDLE_CHECKS;
pub(super) use image::CHECKS as IMAGE_CHECKS;

pub(crate) const fn rule(id: &'static str, severity: Severity, summary: &'static str) -> Rule {
    Rule::of_tool(id, severity, Origin::Pipeline(SUITE), summary)
}

static FORMAT: Rule = rule(
    "operatorhub/format",
    Severity::Error,
    "Every operator version must be in the bundle format",
)
.because(
    "The package manifest format is rejected, and a mix of both formats cannot be added to the index.",
    "0.1.0",
)
.example(
    "operators/hello/hello.package.yaml\noperators/hello/0.0.1/hello.clusterserviceversion.yaml",
    "operators/hello/0.0.1/manifests/hello.clusterserviceversion.yaml\noperators/hello/0.0.1/metadata/annotations.yaml",
);

static NAMES: Rule = rule(
    "operatorhub/names",
    Severity::Error,
    "Operator and version names must contain only letters, digits, dots, underscores and dashes",
)
.because("The pipeline's scripts do not find other names.", "0.1.0")
.example("operators/hello world/0.0.1", "operators/hello-world/0.0.1");

static PACKAGE: Rule = rule(
    "operatorhub/package",
    Severity::Error,
    "All bundles of an operator must have the package name of its directory",
)
.because("Each directory is one package in the index.", "0.1.0")
.example(
    "# operators/hello/0.0.1/metadata/annotations.yaml\noperators.operatorframework.io.bundle.package.v1: hello-operator",
    "operators.operatorframework.io.bundle.package.v1: hello",
);

static REVIEWERS: Rule = rule(
    "operatorhub/reviewers",
    Severity::Error,
    "ci.yaml must name reviewers or omit the key",
)
.because(
    "The pipeline stops at an empty list. Without the file, every change waits for a repository maintainer.",
    "0.1.0",
)
.example("reviewers: []", "reviewers:\n- octocat");

/// Returns true if a name reaches all scripts of the pipeline unharmed.
pub(crate) fn is_sound(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.bytes().all(allowed)
}

/// The finding for an unsound name.
pub(crate) fn unsound(what: &str, name: &str) -> Finding {
    let message =
        format!("the name of the {what}, {name:?}, has other characters than letters, digits, '.', '_' and '-'");
    Finding::from_rule(&NAMES, message).hint("rename the directory")
}

fn names(_: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let directory = join("operators", &operator.name);
    if !is_sound(&operator.name) {
        found.push(unsound("operator", &operator.name).file(&directory));
    }
    for version in operator.versions().iter().filter(|version| !is_sound(version)) {
        found.push(unsound("version", version).file(join(&directory, version)));
    }
    Ok(())
}

fn format(context: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let files = context.repository.files();
    let directory = join("operators", &operator.name);
    let names = files.list(&directory);
    if let Some(name) = names.iter().find(|name| name.ends_with(".package.yaml")) {
        let message = "the operator is in the package manifest format, which is rejected";
        let hint = "convert it with `olmkit generate bundle` or `operator-sdk pkgman-to-bundle`, and remove this file";
        found.push(
            Finding::from_rule(&FORMAT, message)
                .file(join(&directory, name))
                .hint(hint),
        );
    }
    for name in names {
        let version = join(&directory, &name);
        let annotated = || files.is_file(&join(&version, "metadata/annotations.yaml"));
        if name != "catalog-templates" && files.is_directory(&version) && !annotated() {
            let message = "the version is not in the bundle format: it has no metadata/annotations.yaml";
            let hint =
                "put the manifests into `manifests/`, and the annotations of the bundle into metadata/annotations.yaml";
            found.push(Finding::from_rule(&FORMAT, message).file(version).hint(hint));
        }
    }
    Ok(())
}

fn package(_: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let mut packages: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for bundle in &operator.bundles {
        let package = bundle.package()?;
        if package != operator.name {
            let annotations = bundle.annotations()?;
            let value = annotations.get(crate::bundle::PACKAGE)?;
            let message = if package.is_empty() {
                format!("{bundle} names no package")
            } else {
                format!(
                    "{bundle} belongs to package {package}, the directory name is {}",
                    operator.name
                )
            };
            let hint = format!("set {} to {}", crate::bundle::PACKAGE, operator.name);
            found.push(at(Finding::from_rule(&PACKAGE, message), value).hint(hint));
        }
        packages.entry(package).or_default().push(&bundle.version);
    }
    if packages.len() > 1 {
        let shown: Vec<String> = packages
            .iter()
            .map(|(package, versions)| format!("{package:?} ({})", versions.join(", ")))
            .collect();
        let message = format!(
            "the bundles of {} are of several packages: {}",
            operator.name,
            shown.join("; ")
        );
        found.push(Finding::from_rule(&PACKAGE, message).file(join("operators", &operator.name)));
    }
    Ok(())
}

fn reviewers(_: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let config = operator.config()?.view();
    let file = format!("operators/{}/ci.yaml", operator.name);
    if config.node.get("reviewers").is_none() {
        let message = "no reviewers are named: a maintainer of the repository must approve every change";
        let hint = format!("list the GitHub names of the operator's maintainers below `reviewers` in {file}");
        found.push(
            Finding::new(&REVIEWERS, Severity::Info, message)
                .file(config.file)
                .hint(hint),
        );
        return Ok(());
    }
    let reviewers = config.get_or("reviewers", &EMPTY_LIST)?;
    if !reviewers.is_true() {
        let message = "`reviewers` is empty";
        found.push(at(Finding::from_rule(&REVIEWERS, message), reviewers).hint("name at least one, or remove the key"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
