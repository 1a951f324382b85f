//! Steps of the pipeline, in addition to its static tests, that need no service.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{BundleContext, Check, Context, Findings, Run, Suite, at, rule};
use crate::bundle::{MANIFESTS, METADATA, OPENSHIFT};
use crate::python::Raise;
use crate::python::text::shown;
use crate::repository::Operator;
use crate::versions::Release;

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::Common, &READ_CONFIG, Run::Operator(read_config)).step(),
    Check::new(Suite::Isv, &PROJECT, Run::Operator(project)).step(),
    Check::new(Suite::Common, &VERSIONS, Run::Bundle(versions)).of_pull_request(),
    Check::new(Suite::Common, &DOCKERFILE, Run::Bundle(dockerfile)).of_pull_request(),
];

static READ_CONFIG: Rule = rule(
    "pipeline/read-config",
    Severity::Error,
    "step",
    "ci.yaml must have updateGraph or fbc.enabled, not both",
)
.because(
    "With file-based catalogs the templates define the upgrade graph. The task read-config rejects both.",
    "0.1.0",
)
.example(
    "updateGraph: replaces-mode\nfbc:\n  enabled: true",
    "fbc:\n  enabled: true",
);

static PROJECT: Rule = rule(
    "pipeline/certification-project-check",
    Severity::Error,
    "step",
    "A certified operator's ci.yaml must name its certification project",
)
.because("The task certification-project-check stops without it.", "0.1.0")
.example("merge: true", "cert_project_id: 0123456789abcdef01234567");

static VERSIONS: Rule = rule(
    "pipeline/get-supported-versions",
    Severity::Error,
    "step",
    "com.redhat.openshift.versions must select a supported OpenShift. Only community bundles may omit it",
)
.because(
    "The pipeline tests and publishes the bundle for each selected version, and stops without one.",
    "0.1.0",
)
.example(
    "annotations:\n  com.redhat.openshift.versions: v4.6-v4.8",
    "annotations:\n  com.redhat.openshift.versions: v4.16",
);

static DOCKERFILE: Rule = rule(
    "pipeline/dockerfile-creation",
    Severity::Error,
    "step",
    "annotations.yaml must name the directories of manifests and metadata",
)
.because(
    "The pipeline builds the bundle image from a Dockerfile that it generates from the annotations.",
    "0.1.0",
)
.example(
    "annotations:\n  operators.operatorframework.io.bundle.manifests.v1: deploy/",
    "annotations:\n  operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
     operators.operatorframework.io.bundle.metadata.v1: metadata/",
);

/// The fix for a range that ends before the supported versions, or starts after them.
fn supported_versions(context: &BundleContext<'_>) -> String {
    let supported = context.options.platforms.supported();
    let name = |release: &Release| format!("{}.{}", release.major, release.minor);
    let range = match supported.as_slice() {
        [newest, .., oldest] => format!("{} to {}", name(oldest), name(newest)),
        [only] => name(only),
        [] => "none".to_owned(),
    };
    format!("include a supported version ({range}); --ocp-versions and --platforms change the supported versions")
}

fn versions(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let annotation = context.bundle.annotations()?.get(OPENSHIFT)?;
    // A repository that does not name its organization may be a community repository.
    let organization = context.repository.organization();
    let is_community = organization.is_none_or(|organization| organization == "community-operators");
    let (message, hint) = if !annotation.is_true() {
        if is_community {
            return Ok(());
        }
        let hint = "add it to metadata/annotations.yaml, such as v4.16 for that version and all later ones";
        (format!("the annotation {OPENSHIFT} is missing"), hint.to_owned())
    } else {
        let range = shown(annotation.node);
        match context.options.platforms.selected(Some(&range)) {
            Some(versions) if !versions.is_empty() => return Ok(()),
            Some(_) => (
                format!("{OPENSHIFT} {range:?} selects no supported OpenShift version"),
                supported_versions(context),
            ),
            None => (
                format!("{OPENSHIFT} {range:?} is not a range of versions"),
                "write v4.16, =v4.16 or v4.16-v4.20".to_owned(),
            ),
        }
    };
    found.push(at(Finding::from_rule(&VERSIONS, message), annotation).hint(hint));
    Ok(())
}

fn dockerfile(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let annotations = context.bundle.annotations()?;
    for (key, usual) in [(MANIFESTS, "manifests/"), (METADATA, "metadata/")] {
        let directory = annotations.get(key)?;
        let path = context.bundle.path(shown(directory.node).trim_matches('/'));
        let message = if directory.is_none() {
            format!("the annotation {key} is missing")
        } else if !context.bundle.files().is_directory(&path) {
            format!(
                "{key} is {:?}, which is not a directory of the bundle",
                shown(directory.node)
            )
        } else {
            continue;
        };
        found.push(at(Finding::from_rule(&DOCKERFILE, message), directory).hint(format!("set it to {usual}")));
    }
    Ok(())
}

fn read_config(_: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let mode = operator.config()?.view().get("updateGraph")?;
    if operator.uses_catalogs()? && mode.is_true() {
        let message = "updateGraph and fbc.enabled exclude each other";
        found.push(at(Finding::from_rule(&READ_CONFIG, message), mode).hint("remove updateGraph"));
    }
    Ok(())
}

fn project(_: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let project = operator.config()?.view().get("cert_project_id")?;
    if !project.is_true() {
        let message = "ci.yaml does not define cert_project_id";
        let hint = "add `cert_project_id:` with the ID that the partner portal shows for the project";
        let file = format!("operators/{}/ci.yaml", operator.name);
        found.push(Finding::from_rule(&PROJECT, message).file(file).hint(hint));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use olmkit::diagnostics::Severity;

    use crate::checks::fixture::{ANNOTATIONS, Edit, checks, found_with};
    use crate::{Memory, Options, Repository, Suite, check_operator};

    fn found(ci: &str, strict_compat: bool) -> Vec<&'static str> {
        let files: Memory = [("operators/hello/ci.yaml", ci)].into_iter().collect();
        let repository = Repository::new(Arc::new(files));
        let operator = repository.operator("hello").expect("it has a ci.yaml");
        let options = Options {
            strict_compat,
            suites: vec![Suite::Isv, Suite::Common],
            ..Options::default()
        };
        let checked = check_operator(&repository, &operator, &options);
        checked.iter().map(|checked| checked.check).collect()
    }

    #[test]
    fn steps_run_unless_the_static_tests_alone_are_wanted() {
        let both = "updateGraph: replaces-mode\nfbc: {enabled: true}\n";
        assert_eq!(found(both, false), ["certification-project-check", "read-config"]);
        assert!(found(both, true).is_empty());
        assert!(found("cert_project_id: x\nfbc: {enabled: true}\n", false).is_empty());
        assert!(found("cert_project_id: x\nupdateGraph: replaces-mode\n", false).is_empty());
    }

    /// The steps that have findings for one pull request after changes to a sound bundle.
    fn steps(organization: &str, edits: &[Edit<'_>]) -> Vec<&'static str> {
        let options = Options {
            suites: vec![Suite::Common],
            pull_request: true,
            ..Options::default()
        };
        let config = format!("organization: {organization}\n");
        let edits = [&[("config.yaml", "", config.as_str())][..], edits].concat();
        let found = found_with(&options, &edits);
        let mut steps = checks(&found, Severity::Error);
        steps.retain(|name| !name.starts_with("check_"));
        steps
    }

    #[test]
    fn a_bundle_selects_a_supported_openshift() {
        let range = |text| (ANNOTATIONS, "  com.redhat.openshift.versions: v4.20\n", text);
        let step = vec!["get-supported-versions"];
        for organization in ["community-operators", "certified-operators"] {
            assert!(steps(organization, &[]).is_empty());
            assert_eq!(
                steps(organization, &[range("  com.redhat.openshift.versions: v4.6-v4.8\n")]),
                step
            );
            assert_eq!(
                steps(organization, &[range("  com.redhat.openshift.versions: latest\n")]),
                step
            );
        }
        assert!(steps("community-operators", &[range("")]).is_empty());
        assert_eq!(steps("certified-operators", &[range("")]), step);
    }

    #[test]
    fn the_annotations_make_a_dockerfile() {
        let step = vec!["dockerfile-creation"];
        let key = "operators.operatorframework.io.bundle.metadata.v1";
        let line = format!("  {key}: metadata/\n");
        assert_eq!(steps("community-operators", &[(ANNOTATIONS, line.as_str(), "")]), step);
        let elsewhere = format!("  {key}: meta/\n");
        assert_eq!(
            steps(
                "community-operators",
                &[(ANNOTATIONS, line.as_str(), elsewhere.as_str())]
            ),
            step
        );
        let without_slash = format!("  {key}: metadata\n");
        assert!(
            steps(
                "community-operators",
                &[(ANNOTATIONS, line.as_str(), without_slash.as_str())]
            )
            .is_empty()
        );
    }
}
