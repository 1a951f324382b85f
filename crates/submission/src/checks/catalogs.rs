//! The catalogs that a change touches.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{Check, Context, Findings, Run, Suite, at, rule};
use crate::python::text::shown;
use crate::python::{Document, EMPTY_LIST, Raise, Value, read_stream};
use crate::repository::Repository;

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::Common, &REGISTRIES, Run::Catalogs(registries)),
    Check::new(Suite::Common, &OBJECTS, Run::Catalogs(objects)),
];

static REGISTRIES: Rule = rule(
    "pipeline/check_bundle_images_in_fbc",
    Severity::Error,
    "common",
    "Bundle images in a catalog must come from the registries that config.yaml allows",
)
.because(
    "The hosted catalog serves only bundles that went through the pipeline.",
    "0.1.0",
)
.example(
    "schema: olm.bundle\nimage: docker.io/me/hello-operator:v0.0.1",
    "schema: olm.bundle\nimage: quay.io/community-operator-pipeline-prod/hello-operator@sha256:…",
);

static OBJECTS: Rule = rule(
    "pipeline/check_olm_bundle_object_in_fbc",
    Severity::Error,
    "common",
    "A catalog for OpenShift 4.17 or later must not contain olm.bundle.object",
)
.because(
    "These catalogs carry olm.csv.metadata instead. With both they grow beyond what the console can load.",
    "0.1.0",
)
.example(
    "schema: olm.bundle\nproperties:\n- type: olm.bundle.object",
    "schema: olm.bundle\nproperties:\n- type: olm.csv.metadata",
);

/// The pipeline's name for an operator's part of a catalog.
fn name(catalog: &str, operator: &str) -> String {
    format!("OperatorCatalog({catalog}/{operator})")
}

fn documents(repository: &Repository, catalog: &str, operator: &str) -> Result<Vec<Document>, Raise> {
    let path = repository
        .operator_catalog_file(catalog, operator)
        .unwrap_or_else(|| format!("catalogs/{catalog}/{operator}/catalog.yaml"));
    read_stream(repository.files(), &path)
}

fn registries(context: &Context<'_>, catalogs: &[(String, String)], found: &mut Findings) -> Result<(), Raise> {
    if catalogs.is_empty() {
        return Ok(());
    }
    let config = context.repository.config()?.view();
    let allowed = config.get_or("allowed_bundle_registries", &EMPTY_LIST)?;
    if !allowed.is_true() {
        return Ok(());
    }
    let registries = allowed.iterate()?;
    for (catalog, operator) in catalogs {
        let mut refused = Vec::new();
        let mut first = None;
        for document in &documents(context.repository, catalog, operator)? {
            let blob = document.view();
            if blob.node.get("schema").and_then(crate::python::Node::as_str) != Some("olm.bundle") {
                continue;
            }
            let image = blob.get("image")?;
            if !image.is_true() {
                continue;
            }
            let text = image.text()?;
            let mut is_allowed = false;
            for registry in &registries {
                is_allowed = is_allowed || text.starts_with(allowed.inside(registry).text()?);
            }
            if !is_allowed {
                first.get_or_insert_with(|| (document.file.clone(), image.at));
                refused.push(text.to_owned());
            }
        }
        if let Some((file, position)) = first {
            let allowed: Vec<String> = registries.iter().map(|registry| shown(registry)).collect();
            let message = format!(
                "Invalid bundle image(s) found in {}: {}. Only these registries are allowed for bundle images: {}.",
                name(catalog, operator),
                refused.join(", "),
                allowed.join(", ")
            );
            found.push(Finding::from_rule(&REGISTRIES, message).file(file).at(position));
        }
    }
    Ok(())
}

fn objects(context: &Context<'_>, catalogs: &[(String, String)], found: &mut Findings) -> Result<(), Raise> {
    for (catalog, operator) in catalogs.iter().filter(|(catalog, _)| is_4_17_or_later(catalog)) {
        let documents = documents(context.repository, catalog, operator)?;
        let mut bundles = Vec::new();
        for document in &documents {
            if document.view().get("schema")?.node.as_str() == Some("olm.bundle") {
                bundles.push(document);
            }
        }
        for (number, bundle) in bundles.iter().enumerate() {
            if number > 0 && context.options.strict_compat {
                break;
            }
            let properties = bundle.view().get_or("properties", &EMPTY_LIST)?;
            let mut place = None;
            for property in properties.iterate()? {
                let kind = properties.inside(&property);
                let kind = kind.get("type")?;
                if kind.node.value == Value::Str("olm.bundle.object".to_owned()) {
                    place.get_or_insert(kind.at);
                }
            }
            let Some(place) = place else { continue };
            let message = format!(
                "Bundle object found in {} catalog uses 'olm.bundle.object'. This is not allowed for catalogs with version `>= \
                 4.17`. Render catalog again with latest [Makefile](https://redhat-openshift-ecosystem.github.io/\
                 operator-pipelines/users/fbc_workflow/#generate-catalogs-using-templates) using `make catalogs`. Bundle object \
                 is not supported in FBC.",
                name(catalog, operator)
            );
            let hint = if number == 0 {
                "render with `--migrate-level bundle-object-to-csv-metadata`"
            } else {
                "render with `--migrate-level bundle-object-to-csv-metadata`; differs from the hosted pipeline, which checks only the first bundle of a catalog"
            };
            found.push(
                at(Finding::from_rule(&OBJECTS, message), bundle.view())
                    .at(place)
                    .hint(hint),
            );
            break;
        }
    }
    Ok(())
}

/// Returns true if a catalog is called `v4.17` or has a higher version. Other names have none.
pub(crate) fn is_4_17_or_later(catalog: &str) -> bool {
    let number = |text: &str| {
        let sound = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        sound.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let version = || {
        let (major, minor) = catalog.strip_prefix('v')?.split_once('.')?;
        Some((number(major)?, number(minor)?))
    };
    version().is_some_and(|version| version >= (4, 17))
}

#[cfg(test)]
mod tests {
    use super::is_4_17_or_later;

    #[test]
    fn only_versions_are_compared() {
        assert!(is_4_17_or_later("v4.17") && is_4_17_or_later("v4.23") && is_4_17_or_later("v5.0"));
        assert!(!is_4_17_or_later("v4.9") && !is_4_17_or_later("latest") && !is_4_17_or_later("v4.17.1"));
    }
}
