//! `ci.yaml`.

use std::rc::Rc;

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::schema::{Schema, errors};
use super::{Check, Context, Findings, Run, Suite, at, rule};
use crate::python::text::repr;
use crate::python::{EMPTY, EMPTY_LIST, Equality, Node, Raise, Table, Value};
use crate::repository::Operator;

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::Common, &CATALOG_USAGE, Run::Operator(catalog_usage)),
    Check::new(Suite::Common, &SCHEMA, Run::Operator(schema)),
];

static CATALOG_USAGE: Rule = rule(
    "pipeline/check_catalog_usage_ci_config",
    Severity::Error,
    "common",
    "A catalog must be rendered from only one template",
)
.because(
    "Two templates would overwrite each other's catalog.",
    "0.1.0",
)
.example(
    "fbc:\n  catalog_mapping:\n  - {template_name: a.yaml, catalog_names: [v4.20]}\n  - {template_name: b.yaml, catalog_names: [v4.20]}",
    "fbc:\n  catalog_mapping:\n  - {template_name: a.yaml, catalog_names: [v4.19]}\n  - {template_name: b.yaml, catalog_names: [v4.20]}",
);

static SCHEMA: Rule = rule(
    "pipeline/check_schema_operator_ci_config",
    Severity::Error,
    "common",
    "ci.yaml must have the keys and types that the pipeline reads",
)
.because(
    "The pipeline ignores unknown keys, and stops on a value with another type.",
    "0.1.0",
)
.example("updateGraph: legacy", "updateGraph: replaces-mode");

fn schema(_: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let config = operator.config()?;
    for error in errors(&config.root, &CI) {
        let message = format!(
            "Operator's 'ci.yaml' contains invalid data which does not comply with the schema: {}",
            error.message
        );
        let mut finding = Finding::from_rule(&SCHEMA, message)
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

/// Limit for template names that findings repeat. One long name may be used in a hundred thousand catalogs.
const MOST_BYTES: usize = 1 << 20;

fn catalog_usage(_: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let config = operator.config()?.view();
    let mapping = config.get_or("fbc", &EMPTY)?.get_or("catalog_mapping", &EMPTY_LIST)?;
    if !mapping.is_true() {
        return Ok(());
    }
    let mut users: Table<Node, Vec<Rc<(Node, usize)>>> = Table::new(Equality::Python);
    for template in mapping.iterate()? {
        let template = mapping.inside(&template);
        let catalogs = template.get_or("catalog_names", &EMPTY_LIST)?;
        let name = template.get("template_name")?.node;
        let name = Rc::new((name.clone(), repr(name).len()));
        for catalog in catalogs.iterate()? {
            if !catalog.is_hashable() {
                return Err(catalogs.raise(format!("expected the name of a catalog, found {}", catalog.kind())));
            }
            if let Some(templates) = users.get_mut(&catalog) {
                templates.push(Rc::clone(&name));
            } else {
                users.insert(catalog.into_owned(), vec![Rc::clone(&name)]);
            }
        }
    }
    let mut left = MOST_BYTES;
    for (catalog, templates) in users.into_entries().iter().filter(|(_, templates)| templates.len() > 1) {
        let size = templates.iter().fold(0, |all: usize, name| all.saturating_add(name.1));
        let Some(rest) = left.checked_sub(size) else {
            let message = "too many catalogs have several templates to list them";
            found.push(at(Finding::from_rule(&CATALOG_USAGE, message), mapping.inside(catalog)));
            break;
        };
        left = rest;
        let names = templates.iter().map(|name| name.0.clone()).collect();
        let message = format!(
            "Operator's 'ci.yaml' contains multiple templates '{}' for the same catalog '{}'.",
            repr(&Node::new(Value::List(names))),
            crate::python::text::shown(catalog)
        );
        let hint = "list each catalog below one template; merge the templates if both belong to it";
        found.push(at(Finding::from_rule(&CATALOG_USAGE, message), mapping.inside(catalog)).hint(hint));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::python::comparisons;
    use crate::{Memory, Options, Repository, Suite, check_bundle, check_operator};

    fn repository(mapping: String, release: String) -> Repository {
        let directory = "operators/hello";
        let files = [
            (
                format!("{directory}/ci.yaml"),
                format!("fbc:\n  enabled: true\n  catalog_mapping:\n{mapping}"),
            ),
            (
                format!("{directory}/0.0.1/release-config.yaml"),
                format!("catalog_templates:\n{release}"),
            ),
            (format!("{directory}/0.0.1/manifests/x"), String::new()),
            (format!("{directory}/0.0.1/metadata/x"), String::new()),
        ];
        Repository::new(Arc::new(files.into_iter().collect::<Memory>()))
    }

    fn messages(repository: &Repository, check: &str) -> Vec<String> {
        let operator = repository.operator("hello").expect("it has a ci.yaml");
        let options = Options {
            suites: vec![Suite::Common],
            ..Options::default()
        };
        let found = check_operator(repository, &operator, &options);
        let found = found
            .into_iter()
            .chain(check_bundle(repository, &operator, "0.0.1", &options));
        found
            .filter(|checked| checked.check == check)
            .map(|checked| checked.finding.message)
            .collect()
    }

    #[test]
    fn hostile_names_are_not_compared_with_each_other() {
        let mapping =
            (0..5_000).map(|n| format!("  - {{template_name: {n}, catalog_names: [{n}], type: olm.semver}}\n"));
        let release = (0..5_000).map(|n| format!("- {{template_name: {n}, channels: [Fast]}}\n"));
        let repository = repository(mapping.collect(), release.collect());
        for (check, wanted) in [("check_catalog_usage_ci_config", 0), ("check_bundle_release_config", 0)] {
            let mut found = Vec::new();
            let count = comparisons(|| found = messages(&repository, check));
            assert_eq!(found.len(), wanted, "{check}: {found:?}");
            assert!(count < 200_000, "{check}: {count}");
        }
    }

    #[test]
    fn a_long_name_is_not_repeated_for_each_catalog() {
        let name = "x".repeat(100_000);
        let twice: String = (0..1_000).map(|n| format!("{n}, {n}, ")).collect();
        let mapping = format!("  - {{template_name: {name}, catalog_names: [{twice}], type: olm.semver}}\n");
        let found = messages(&repository(mapping, String::new()), "check_catalog_usage_ci_config");
        assert!(
            found.iter().map(String::len).sum::<usize>() < 3 << 20,
            "{}",
            found.len()
        );
        assert!(
            found
                .last()
                .is_some_and(|message| message.starts_with("too many catalogs"))
        );
    }
}
