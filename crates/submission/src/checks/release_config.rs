//! `release-config.yaml`.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::schema::{RELEASE_CONFIG, errors};
use super::{BundleContext, Check, Findings, Run, Suite, at, rule};
use crate::python::text::{list, shown};
use crate::python::{Document, EMPTY, EMPTY_LIST, Equality, Node, Raise, Table, View, read_document};

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::Common, &CONSISTENT, Run::Bundle(consistent)),
    Check::new(Suite::Common, &SCHEMA, Run::Bundle(schema)),
];

static CONSISTENT: Rule = rule(
    "pipeline/check_bundle_release_config",
    Severity::Error,
    "common",
    "release-config.yaml must name templates that ci.yaml maps to catalogs",
)
.because(
    "The pipeline adds the bundle to these templates after the merge. A template that it cannot find stops the release.",
    "0.1.0",
)
.example(
    "catalog_templates:\n- template_name: basic.yaml   # not in fbc.catalog_mapping of ci.yaml\n  channels: [stable]",
    "catalog_templates:\n- template_name: v4.20.yaml\n  channels: [stable]",
);

static SCHEMA: Rule = rule(
    "pipeline/check_validate_schema_bundle_release_config",
    Severity::Error,
    "common",
    "release-config.yaml must have the keys and types that the pipeline reads",
)
.because("The release would fail after the merge.", "0.1.0")
.example(
    "catalog_templates:\n- template_name: basic.yaml",
    "catalog_templates:\n- template_name: basic.yaml\n  channels: [stable]",
);

/// The channels of a semver template.
const SEMVER_CHANNELS: [&str; 3] = ["Fast", "Candidate", "Stable"];

/// The file, if there is one with content.
fn release_config(context: &BundleContext<'_>) -> Result<Option<Document>, Raise> {
    let path = context.bundle.path("release-config.yaml");
    if !context.bundle.files().is_file(&path) {
        return Ok(None);
    }
    let config = read_document(context.bundle.files(), &path)?;
    Ok(config.root.is_true().then_some(config))
}

fn schema(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let Some(config) = release_config(context)? else {
        return Ok(());
    };
    for error in errors(&config.root, &RELEASE_CONFIG) {
        let message = format!(
            "Bundle's 'release-config.yaml' contains invalid data which does not comply with the schema: {}",
            error.message
        );
        found.push(
            Finding::from_rule(&SCHEMA, message)
                .file(&config.file)
                .at(error.at)
                .path(error.path),
        );
    }
    Ok(())
}

fn consistent(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let Some(config) = release_config(context)? else {
        return Ok(());
    };
    let config = config.view();
    if !context.operator.uses_catalogs()? {
        let message = "Bundle's 'release-config.yaml' is used but FBC is not enabled for the operator. \
                       Update the 'fbc.enabled' field in the ci.yaml file.";
        found.push(at(Finding::from_rule(&CONSISTENT, message), config));
        return Ok(());
    }
    let ci = context.operator.config()?.view();
    let mapping = ci.get_or("fbc", &EMPTY)?.get_or("catalog_mapping", &EMPTY_LIST)?;
    let mut templates: Table<Node, Node> = Table::new(Equality::Python);
    for template in mapping.iterate()? {
        let name = mapping.inside(&template).item("template_name")?;
        let name = hashable(name)?.node.clone();
        templates.insert(name, template.into_owned());
    }
    let wanted = config.item("catalog_templates")?;
    for template in wanted.iterate()? {
        let template = wanted.inside(&template);
        let name = hashable(template.item("template_name")?)?;
        match templates.get(name.node) {
            Some(mapped) => semver_channels(mapping.inside(mapped), template, found)?,
            None => {
                let message = format!(
                    "Bundle's 'release-config.yaml' contains a catalog template '{}' that is not defined in the ci.yaml \
                     file under 'catalog_mapping'. Add the template to the 'catalog_mapping.",
                    shown(name.node)
                );
                found.push(at(Finding::from_rule(&CONSISTENT, message), name));
            }
        }
    }
    Ok(())
}

fn hashable(view: View<'_>) -> Result<View<'_>, Raise> {
    if view.node.is_hashable() {
        return Ok(view);
    }
    Err(view.raise(format!("expected the name of a template, found {}", view.node.kind())))
}

fn semver_channels(mapped: View<'_>, template: View<'_>, found: &mut Findings) -> Result<(), Raise> {
    if mapped.item("type")?.node.as_str() != Some("olm.semver") {
        return Ok(());
    }
    let channels = template.item("channels")?;
    let names = channels.iterate()?;
    if let Some(name) = names.iter().find(|name| !name.is_hashable()) {
        return Err(channels.raise(format!("expected the name of a channel, found {}", name.kind())));
    }
    let allowed = |name: &Node| name.as_str().is_some_and(|name| SEMVER_CHANNELS.contains(&name));
    if names.iter().all(|name| allowed(name)) {
        return Ok(());
    }
    let message = format!(
        "Bundle's 'release-config.yaml' contains a semver catalog template '{}' with invalid channels: {}. Allowed channels are: \
         {}. Follow olm [documentation](https://olm.operatorframework.io/docs/reference/catalog-templates/#specification) to see \
         more details about semver template.",
        shown(template.item("template_name")?.node),
        shown(channels.node),
        list(SEMVER_CHANNELS)
    );
    found.push(at(Finding::from_rule(&CONSISTENT, message), channels));
    Ok(())
}
