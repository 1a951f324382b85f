//! The files of a bundle: its directory name, and the allowed contents.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{BundleContext, Check, Findings, Run, Suite, at, rule};
use crate::files::join;
use crate::python::text::shown;
use crate::python::{EMPTY, Raise, Value, read_document};

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::Common, &NETWORK_POLICY, Run::Bundle(network_policy)),
    Check::new(Suite::Common, &DIRECTORY, Run::Bundle(directory)),
];

static NETWORK_POLICY: Rule = rule(
    "pipeline/check_network_policy_presence",
    Severity::Error,
    "common",
    "A bundle must not contain a NetworkPolicy",
)
.because(
    "The pipeline rejects the kind, although OLM has installed it since 2025. Let the operator create the policy.",
    "0.1.0",
)
.example(
    "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy",
    "# the operator creates the NetworkPolicy when it runs",
);

static DIRECTORY: Rule = rule(
    "pipeline/check_operator_version_directory_name",
    Severity::Error,
    "common",
    "A bundle's directory must be named after its spec.version",
)
.because("The pipeline finds a bundle by its directory name.", "0.1.0")
.example(
    "# operators/hello-operator/v0.0.3/manifests/hello-operator.clusterserviceversion.yaml\nspec:\n  version: 0.0.3",
    "# operators/hello-operator/0.0.3/manifests/hello-operator.clusterserviceversion.yaml\nspec:\n  version: 0.0.3",
);

fn network_policy(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let folder = context.bundle.path("manifests");
    let names = context.bundle.files().list(&folder);
    for ending in [".yaml", ".yml"] {
        for name in names.iter().filter(|name| name.ends_with(ending)) {
            let document = read_document(context.bundle.files(), &join(&folder, name))?;
            if !matches!(document.root.value, Value::Dict(_)) {
                continue;
            }
            let view = document.view();
            let kind = view.get("kind")?;
            if kind.node.as_str() != Some("NetworkPolicy") {
                continue;
            }
            let version = view.get("apiVersion")?;
            if !version.is_true() || !version.text()?.starts_with("networking.k8s.io/") {
                continue;
            }
            let message = format!(
                "Bundle contains a NetworkPolicy in {name}. Network policies are not a supported resource that Operator \
                 Lifecycle Manager(OLM) can install and manage."
            );
            found.push(
                at(Finding::from_rule(&NETWORK_POLICY, message), kind)
                    .hint("OLM installs it, but the pipeline rejects it: let the operator create it"),
            );
        }
    }
    Ok(())
}

fn directory(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let bundle = context.bundle;
    let version = context.csv()?.get_or("spec", &EMPTY)?.get("version")?;
    if version.node.as_str() == Some(bundle.version.as_str()) {
        return Ok(());
    }
    let shown = if version.is_true() {
        shown(version.node)
    } else {
        String::new()
    };
    let message = format!(
        "Bundle directory name '{}/{}' does not match the expected operator CSV version '{shown}' from ./{}.",
        bundle.operator,
        bundle.version,
        bundle.csv_file()?
    );
    let hint = if shown.is_empty() {
        format!("set spec.version to {}", bundle.version)
    } else {
        format!(
            "rename the directory to {shown}, or set spec.version to {}",
            bundle.version
        )
    };
    found.push(at(Finding::from_rule(&DIRECTORY, message), version).hint(hint));
    Ok(())
}
