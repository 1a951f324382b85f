//! The images that a bundle names.

use std::collections::BTreeSet;

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::rule;
use crate::checks::{BundleContext, Findings};
use crate::images::{list, of_csv};
use crate::python::Raise;

pub(super) static CERTIFIED: Rule = rule(
    "preflight/BundleImageRefsAreCertified",
    Severity::Warning,
    "Every image should be referenced by digest",
)
.because(
    "Only an image with a digest can be looked up in the hosted service for certified images, which olmkit does not query. Not enforced.",
    "0.1.0",
)
.example("image: quay.io/example/hello:v0.0.1", "image: quay.io/example/hello@sha256:…");

pub(super) static RELATED: Rule = rule(
    "preflight/AllImageRefsInRelatedImages",
    Severity::Warning,
    "spec.relatedImages should list every image",
)
.because(
    "Mirroring copies only spec.relatedImages. preflight passes anyway, and announces that a later release will fail.",
    "0.1.0",
)
.example(
    "# a container has quay.io/example/hello@sha256:…\nspec: {}",
    "spec:\n  relatedImages:\n  - name: hello\n    image: quay.io/example/hello@sha256:…",
);

pub(super) fn certified(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let csv = context.csv()?;
    let mut seen = BTreeSet::new();
    for named in of_csv(csv)? {
        if !named.is_pinned() && seen.insert(named.image.clone()) {
            let message = format!("{} ({}) has no digest", named.image, named.place);
            let finding = Finding::from_rule(&CERTIFIED, message).file(csv.file).at(named.at);
            found.push(finding.hint("reference it by digest: IMAGE@sha256:…"));
        }
    }
    Ok(())
}

pub(super) fn related(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let csv = context.csv()?;
    let mut listed = BTreeSet::new();
    for image in list(csv, &["spec"], "relatedImages")? {
        listed.insert(image.get("image")?.text()?.to_owned());
    }
    for named in of_csv(csv)? {
        if listed.insert(named.image.clone()) {
            let message = format!("{} ({}) is not in spec.relatedImages", named.image, named.place);
            let finding = Finding::from_rule(&RELATED, message).file(csv.file).at(named.at);
            found.push(finding.hint("add it there; preflight passes anyway, for now"));
        }
    }
    Ok(())
}
