//! `ci.yaml`.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::schema::{Schema, errors};
use super::{Check, Context, Found, Run, Suite, at, rule};
use crate::python::text::repr;
use crate::python::{EMPTY, EMPTY_LIST, Node, Raise, Value};
use crate::repository::Operator;

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::Common, &CATALOG_USAGE, Run::Operator(catalog_usage)),
    Check::new(Suite::Common, &SCHEMA, Run::Operator(schema)),
];

static CATALOG_USAGE: Rule = rule(
    "pipeline/check_catalog_usage_ci_config",
    Severity::Error,
    "common",
    "A catalog is made from one template only",
)
.because(
    "Two templates would overwrite each other's catalog.",
    "0.2.0",
)
.example(
    "fbc:\n  catalog_mapping:\n  - {template_name: a.yaml, catalog_names: [v4.20]}\n  - {template_name: b.yaml, catalog_names: [v4.20]}",
    "fbc:\n  catalog_mapping:\n  - {template_name: a.yaml, catalog_names: [v4.19]}\n  - {template_name: b.yaml, catalog_names: [v4.20]}",
);

static SCHEMA: Rule = rule(
    "pipeline/check_schema_operator_ci_config",
    Severity::Error,
    "common",
    "ci.yaml has the keys and types that the pipeline reads",
)
.because(
    "The pipeline ignores a key that it does not know, and stops on a value of another type.",
    "0.2.0",
)
.example("updateGraph: legacy", "updateGraph: replaces-mode");

fn schema(_: &Context<'_>, operator: &Operator, found: &mut Found) -> Result<(), Raise> {
    let config = operator.config()?;
    for error in errors(&config.root, &CI) {
        let message = format!(
            "Operator's 'ci.yaml' contains invalid data which does not comply with the schema: {}",
            error.message
        );
        let mut finding = Finding::of(&SCHEMA, message)
            .file(&config.file)
            .at(error.at)
            .path(error.path);
        if config.root.value == Value::None {
            finding = finding.hint("the file is empty: remove it, or write {} into it");
        }
        found.push(finding);
    }
    Ok(())
}

fn catalog_usage(_: &Context<'_>, operator: &Operator, found: &mut Found) -> Result<(), Raise> {
    let config = operator.config()?.view();
    let mapping = config.get_or("fbc", &EMPTY)?.get_or("catalog_mapping", &EMPTY_LIST)?;
    if !mapping.is_true() {
        return Ok(());
    }
    let mut users: Vec<(Node, Vec<Node>)> = Vec::new();
    for template in mapping.iterate()? {
        let template = mapping.inside(&template);
        let catalogs = template.get_or("catalog_names", &EMPTY_LIST)?;
        let name = template.get("template_name")?.node.clone();
        for catalog in catalogs.iterate()? {
            if !catalog.is_hashable() {
                return Err(catalogs.raise(format!("the name of a catalog is needed, found {}", catalog.kind())));
            }
            match users.iter_mut().find(|(known, _)| known.equals(&catalog)) {
                Some((_, templates)) => templates.push(name.clone()),
                None => users.push((catalog.into_owned(), vec![name.clone()])),
            }
        }
    }
    for (catalog, templates) in users.iter().filter(|(_, templates)| templates.len() > 1) {
        let message = format!(
            "Operator's 'ci.yaml' contains multiple templates '{}' for the same catalog '{}'.",
            repr(&Node::of(Value::List(templates.clone()))),
            crate::python::text::shown(catalog)
        );
        let hint = "list each catalog below one template; merge the templates if both belong into it";
        found.push(at(Finding::of(&CATALOG_USAGE, message), mapping.inside(catalog)).hint(hint));
    }
    Ok(())
}

static CI: Schema = Schema::object(
    true,
    &[
        ("updateGraph", Schema::one_of(&["replaces-mode", "semver-mode"])),
        ("reviewers", Schema::list(&Schema::TEXT, 1, false)),
        ("merge", Schema::BOOLEAN),
        ("cert_project_id", Schema::TEXT),
        (
            "fbc",
            Schema::object(
                false,
                &[
                    ("enabled", Schema::BOOLEAN),
                    (
                        "version_promotion_strategy",
                        Schema::one_of(&["review-needed", "always", "never"]),
                    ),
                    ("catalog_mapping", Schema::list(&MAPPING, 0, false)),
                ],
                &[],
            ),
        ),
    ],
    &[],
);

static MAPPING: Schema = Schema::object(
    true,
    &[
        ("template_name", Schema::TEXT),
        ("catalog_names", Schema::list(&Schema::TEXT, 1, true)),
        ("type", Schema::one_of(&["olm.template.basic", "olm.semver"])),
    ],
    &["template_name", "type", "catalog_names"],
);
