//! Checks a bundle blob by itself: its version, release, properties, image references.

use super::Problem;
use super::facts::BundleFacts;
use crate::model::Bundle;
use crate::property::{self, PackageProperty};
use olmkit_base::object::{Reference, Version};
use olmkit_diagnostics::{Origin, Severity, define_rules};
use olmkit_go::strconv::quote;

define_rules! {
    PROPERTY = {
        id: "catalog-property",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A bundle's properties must be decodable.",
        why: "OLM resolves versions and dependencies from the properties.",
        bad: "properties:\n- type: olm.gvk\n  value: widgets",
        good: "properties:\n- type: olm.gvk\n  value: {group: example.com, version: v1, kind: Widget}",
        since: "0.1.0",
    }
    PACKAGE_PROPERTY = {
        id: "catalog-package-property",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A bundle must have exactly one `olm.package` property with its package name.",
        why: "OLM reads the bundle's version from it.",
        bad: "package: demo\nproperties:\n- type: olm.package\n  value: {packageName: other, version: 1.0.0}",
        good: "package: demo\nproperties:\n- type: olm.package\n  value: {packageName: demo, version: 1.0.0}",
        since: "0.1.0",
    }
    IMAGE = {
        id: "catalog-image",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "Each image in a bundle must be a valid reference.",
        why: "An invalid reference can be neither pulled nor mirrored.",
        bad: "image: https://quay.io/example/demo",
        good: "image: quay.io/example/demo@sha256:…",
        since: "0.1.0",
    }
    VERSION = {
        id: "catalog-version",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A bundle's version and release must be valid.",
        why: "OLM orders bundles by version, then by release.",
        bad: "value: {packageName: demo, version: v1}",
        good: "value: {packageName: demo, version: 1.0.0}",
        since: "0.1.0",
    }
}

/// Reads a bundle blob by type, with all its own errors.
pub fn bundle_facts(bundle: &Bundle) -> (BundleFacts<'_>, Vec<Problem>) {
    let mut facts = BundleFacts {
        bundle,
        version: Version::default(),
        release: String::new(),
        packages: None,
        deprecation: None,
    };
    let mut problems = Vec::new();
    let (package, name) = (quote(&bundle.package), quote(&bundle.name));
    let report = |rule, message: String, pointer: String| {
        Problem::error(rule, message, &bundle.origin)
            .at(pointer)
            .of(&bundle.name)
    };
    match property::parse(bundle) {
        Err((index, error)) => {
            let message = format!("parse properties for bundle {name}: {error}");
            problems.push(report(&PROPERTY, message, format!("/properties/{index}")));
        }
        Ok(packages) => {
            facts.packages = Some(packages.len());
            if packages.len() != 1 {
                let count = packages.len();
                let message = format!(
                    "package {package} bundle {name} must have exactly 1 \"olm.package\" property, found {count}"
                );
                problems.push(report(&PACKAGE_PROPERTY, message, "/properties".into()));
            }
            if let [own] = packages.as_slice() {
                if own.package != bundle.package {
                    let message = format!(
                        "package {package} does not match \"olm.package\" property {}",
                        quote(&own.package)
                    );
                    problems.push(report(&PACKAGE_PROPERTY, message, "/package".into()));
                }
                images(bundle, &mut problems);
                version(bundle, own, &mut facts, &mut problems);
            }
        }
    }
    (facts, problems)
}

fn images(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let related = bundle.related_images.iter().enumerate();
    let images =
        std::iter::once((None, &bundle.image)).chain(related.map(|(index, image)| (Some(index), &image.image)));
    for (index, image) in images.filter(|(_, image)| !image.is_empty()) {
        if let Err(error) = Reference::parse_normalized(image) {
            let (field, pointer) = match index {
                None => ("image".to_owned(), "/image".to_owned()),
                Some(index) => (
                    format!("relatedImages[{index}].image"),
                    format!("/relatedImages/{index}/image"),
                ),
            };
            // The library below opm does not repeat the name.
            let error = match error.to_string() {
                text if text.ends_with("must be lowercase") => {
                    "invalid reference format: repository name must be lowercase".to_owned()
                }
                text => text,
            };
            let (package, name) = (quote(&bundle.package), quote(&bundle.name));
            let message = format!(
                "package {package} bundle {name} {field}: invalid image pull spec {}: {error}",
                quote(image)
            );
            problems.push(
                Problem::error(&IMAGE, message, &bundle.origin)
                    .at(pointer)
                    .of(&bundle.name),
            );
        }
    }
}

fn version(bundle: &Bundle, own: &PackageProperty, facts: &mut BundleFacts<'_>, problems: &mut Vec<Problem>) {
    let name = quote(&bundle.name);
    let mut report = |message: String| {
        problems.push(
            Problem::error(&VERSION, message, &bundle.origin)
                .at("/properties")
                .of(&bundle.name),
        );
    };
    match Version::parse(&own.version) {
        Ok(version) => facts.version = version,
        Err(error) => report(format!(
            "error parsing bundle {name} version {}: {error}",
            quote(&own.version)
        )),
    }
    match release(&own.release) {
        Ok(()) => facts.release.clone_from(&own.release),
        Err(error) => report(format!(
            "error parsing bundle {name} release version {release}: invalid release {release}: {error}",
            release = quote(&own.release)
        )),
    }
}

/// A release: at most 20 characters, pre-release identifiers separated by dots.
fn release(text: &str) -> Result<(), String> {
    const LONGEST: usize = 20;
    if text.is_empty() {
        return Ok(());
    }
    if text.len() > LONGEST {
        return Err(format!("exceeds maximum length of {LONGEST} characters"));
    }
    for (index, segment) in text.split('.').enumerate() {
        // The rules for one identifier are those of a version's pre-release part.
        if segment.is_empty() {
            return Err(format!("segment {index}: Prerelease is empty"));
        }
        Version::parse(&format!("0.0.0-{segment}")).map_err(|error| format!("segment {index}: {error}"))?;
    }
    Ok(())
}
