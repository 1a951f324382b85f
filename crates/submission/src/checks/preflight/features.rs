//! Annotations that declare the features that an operator supports.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::rule;
use crate::checks::{BundleContext, Findings, at};
use crate::images::{ENVIRONMENT, containers, is_pinned, list};
use crate::python::text::shown;
use crate::python::{EMPTY, Raise, View};

const PREFIX: &str = "features.operators.openshift.io/";
/// The previous annotation for this.
const LEGACY: &str = "operators.openshift.io/infrastructure-features";

const REQUIRED_FEATURES: [&str; 7] = [
    "disconnected",
    "fips-compliant",
    "proxy-aware",
    "tls-profiles",
    "token-auth-aws",
    "token-auth-azure",
    "token-auth-gcp",
];
const OPTIONAL_FEATURES: [&str; 3] = ["cnf", "cni", "csi"];

pub(super) static REQUIRED: Rule = rule(
    "preflight/RequiredAnnotations",
    Severity::Error,
    "The annotations for features must be present, each \"true\" or \"false\"",
)
.because(
    "The catalog shows the supported environments. A certified operator must declare them.",
    "0.1.0",
)
.example(
    "features.operators.openshift.io/disconnected: \"True\"",
    "features.operators.openshift.io/disconnected: \"true\"",
);

pub(super) static RESTRICTED: Rule = rule(
    "preflight/FollowsRestrictedNetworkEnablementGuidelines",
    Severity::Warning,
    "The operator should be installable without internet access and declare it",
)
.because(
    "Mirroring copies spec.relatedImages. A cluster without internet access cannot pull an image that is not listed there or has no digest. Not enforced.",
    "0.1.0",
)
.example(
    "features.operators.openshift.io/disconnected: \"true\"\n# and no spec.relatedImages",
    "features.operators.openshift.io/disconnected: \"true\"\n# spec.relatedImages with digests, which the containers get as RELATED_IMAGE_…",
);

fn annotations<'a>(context: &BundleContext<'a>) -> Result<View<'a>, Raise> {
    let metadata = context.csv()?.get_or("metadata", &EMPTY)?;
    let annotations = metadata.get_or("annotations", &EMPTY)?;
    Ok(if annotations.is_true() {
        annotations
    } else {
        View {
            node: &EMPTY,
            ..annotations
        }
    })
}

pub(super) fn required(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let annotations = annotations(context)?;
    let required = REQUIRED_FEATURES.iter().map(|feature| (feature, true));
    for (feature, is_required) in required.chain(OPTIONAL_FEATURES.iter().map(|feature| (feature, false))) {
        let key = format!("{PREFIX}{feature}");
        let value = annotations.get(&key)?;
        let message = match annotations.node.get(&key) {
            None if is_required => format!("metadata.annotations lacks {key}"),
            None => continue,
            Some(node) if matches!(node.as_str(), Some("true" | "false")) => continue,
            Some(node) => format!("{key} is {}, neither \"true\" nor \"false\"", shown(node)),
        };
        let hint = format!("set it to \"true\" or \"false\", in quotes: {key}: \"false\"");
        found.push(at(Finding::from_rule(&REQUIRED, message), value).hint(hint));
    }
    Ok(())
}

pub(super) fn restricted(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let csv = context.csv()?;
    let annotations = annotations(context)?;
    let disconnected = annotations.get(&format!("{PREFIX}disconnected"))?;
    let is_claimed = disconnected.node.as_str() == Some("true") || is_listed(annotations.get(LEGACY)?);
    if !is_claimed {
        let message = "the operator does not claim to support restricted networks";
        let hint = format!("ignore this if it does not; otherwise set {PREFIX}disconnected to \"true\"");
        found.push(at(Finding::from_rule(&RESTRICTED, message), disconnected).hint(hint));
        return Ok(());
    }
    let related = list(csv, &["spec"], "relatedImages")?;
    if related.is_empty() {
        let message = "the operator claims to support restricted networks but has no spec.relatedImages";
        let hint = "list every image that the operator runs, with its digest";
        found.push(at(Finding::from_rule(&RESTRICTED, message), csv.get_or("spec", &EMPTY)?).hint(hint));
        return Ok(());
    }
    for image in &related {
        let image = image.get("image")?;
        let text = shown(image.node);
        if !is_pinned(&text) {
            let message = format!("the related image {text} has no digest");
            found.push(
                at(Finding::from_rule(&RESTRICTED, message), image).hint("reference it by digest: IMAGE@sha256:…"),
            );
            return Ok(());
        }
    }
    for (container, _) in containers(csv)? {
        for variable in list(container, &[], "env")? {
            let name = variable.get("name")?;
            if name.node.as_str().is_some_and(|name| name.starts_with(ENVIRONMENT)) {
                return Ok(());
            }
        }
    }
    let message = format!("no container has an environment variable {ENVIRONMENT}…");
    let hint = "pass the related images to the operator in such variables";
    found.push(at(Finding::from_rule(&RESTRICTED, message), csv.get_or("spec", &EMPTY)?).hint(hint));
    Ok(())
}

/// Returns true if the older annotation, a list as JSON, has the feature.
fn is_listed(value: View<'_>) -> bool {
    let text = value.node.as_str().unwrap_or_default();
    let features: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    features.iter().any(|feature| feature.to_lowercase() == "disconnected")
}
