//! Checks of `spec`.

use serde_json::Value;

use super::conversion;
use super::finding::{BadValue, Findings};
use super::go_text::versions_value;
use super::internal::{Crd, Names, Shared, Spec, Version, same, same_items, text};
use super::selectable_fields;
use crate::object::{dns1035_label_problems, dns1123_subdomain_problems};

/// Allowed types of a printer column.
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

/// Allowed formats of a printer column.
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// Checks the spec of a CRD.
pub(super) fn check(crd: &Crd, findings: &mut Findings) {
    let spec = &crd.spec;
    group_and_scope(spec, findings);
    schemas_present(spec, findings);
    if has_defaults(spec) && spec.preserve_unknown_fields.unwrap_or(true) {
        let problem = "must be false in order to use defaults in the schema";
        findings.invalid("spec.preserveUnknownFields", BadValue::word(true), problem);
    }
    for (at, version) in spec.versions.iter().enumerate() {
        check_version(version, &format!("spec.versions[{at}]"), findings);
    }
    shared_or_own(spec, findings);
    identical(spec, findings);
    version_list(spec, findings);
    required_names(&spec.names, findings);
    names(&spec.names, "spec.names", findings);
    subresources(spec.shared.subresources, "spec.subresources", findings);
    columns(&spec.shared, "spec", findings);
    selectable_fields::check_shared(&spec.shared, findings);
    if spec.conversion.strategy != "None" && spec.preserve_unknown_fields.unwrap_or(true) {
        let strategy = BadValue::text(&spec.conversion.strategy);
        findings.invalid(
            "spec.conversion.strategy",
            strategy,
            "must be None if spec.preserveUnknownFields is true",
        );
    }
    conversion::check(&spec.conversion, findings);
}

fn group_and_scope(spec: &Spec, findings: &mut Findings) {
    let group = &spec.group;
    let problems = dns1123_subdomain_problems(group);
    if group.is_empty() {
        findings.required("spec.group", "");
    } else if !problems.is_empty() {
        findings.invalid("spec.group", BadValue::text(group), problems.join(","));
    } else if !group.contains('.') {
        findings.invalid(
            "spec.group",
            BadValue::text(group),
            "should be a domain with at least one dot",
        );
    }
    match spec.scope.as_str() {
        "" => findings.required("spec.scope", ""),
        "Cluster" | "Namespaced" => {}
        other => findings.not_supported("spec.scope", other, &["Cluster", "Namespaced"]),
    }
}

fn schemas_present(spec: &Spec, findings: &mut Findings) {
    let has_schema = |shared: &Shared| {
        shared
            .validation
            .as_ref()
            .is_some_and(|it| it.get("openAPIV3Schema").is_some())
    };
    if has_schema(&spec.shared) {
        return;
    }
    for (at, version) in spec.versions.iter().enumerate() {
        if !has_schema(&version.own) {
            findings.required(
                &format!("spec.versions[{at}].schema.openAPIV3Schema"),
                "schemas are required",
            );
        }
    }
}

fn has_defaults(spec: &Spec) -> bool {
    let all = std::iter::once(&spec.shared).chain(spec.versions.iter().map(|version| &version.own));
    all.filter_map(|shared| shared.validation.as_ref()?.get("openAPIV3Schema"))
        .any(schema_has_default)
}

/// Returns true if a schema or one below it has a default.
fn schema_has_default(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else {
        return false;
    };
    let in_list = |value: &Value| {
        value
            .as_array()
            .is_some_and(|items| items.iter().any(schema_has_default))
    };
    keywords.iter().any(|(keyword, value)| match keyword.as_str() {
        "default" => true,
        "items" => schema_has_default(value) || in_list(value),
        "not" | "additionalProperties" | "additionalItems" => schema_has_default(value),
        "allOf" | "anyOf" | "oneOf" => in_list(value),
        "properties" | "patternProperties" | "definitions" | "dependencies" => value
            .as_object()
            .is_some_and(|map| map.values().any(schema_has_default)),
        _ => false,
    })
}

fn check_version(version: &Version, path: &str, findings: &mut Findings) {
    let problems = dns1035_label_problems(&version.name);
    if !problems.is_empty() {
        findings.invalid(
            &format!("{path}.name"),
            BadValue::text(&version.name),
            problems.join(","),
        );
    }
    deprecation_warning(version, path, findings);
    subresources(version.own.subresources, &format!("{path}.subresources"), findings);
    columns(&version.own, path, findings);
    selectable_fields::check_version(&version.own, path, findings);
}

fn deprecation_warning(version: &Version, path: &str, findings: &mut Findings) {
    let Some(warning) = &version.deprecation_warning else {
        return;
    };
    let mut problems = Vec::new();
    if !version.deprecated {
        problems.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > 256 {
            problems.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            problems.push("must not be an empty string".to_owned());
        }
        let hidden = |character: char| character.is_control() || (character.is_whitespace() && character != ' ');
        if let Some(at) = warning.find(hidden) {
            problems.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {at}"
            ));
        }
    }
    for problem in problems {
        findings.invalid(
            &format!("{path}.deprecationWarning"),
            BadValue::text(warning).behind_pointer(),
            problem,
        );
    }
}

fn shared_or_own(spec: &Spec, findings: &mut Findings) {
    let any = |has: fn(&Shared) -> bool| spec.versions.iter().any(|version| has(&version.own));
    if spec.shared.validation.is_some() && any(|own| own.validation.is_some()) {
        findings.forbidden(
            "spec.validation",
            "top-level and per-version schemas are mutually exclusive",
        );
    }
    if spec.shared.subresources.is_some() && any(|own| own.subresources.is_some()) {
        findings.forbidden(
            "spec.subresources",
            "top-level and per-version subresources are mutually exclusive",
        );
    }
    if has_columns(&spec.shared) && any(has_columns) {
        let problem = "top-level and per-version additionalPrinterColumns are mutually exclusive";
        findings.forbidden("spec.additionalPrinterColumns", problem);
    }
}

fn has_columns(shared: &Shared) -> bool {
    shared.columns.as_ref().is_some_and(|columns| !columns.is_empty())
}

fn identical(spec: &Spec, findings: &mut Findings) {
    let Some(first) = spec.versions.first().map(|version| &version.own) else {
        return;
    };
    let all = |holds: &dyn Fn(&Shared) -> bool| spec.versions.iter().all(|version| holds(&version.own));
    let checks = [
        (
            all(&|own| own.validation.is_some() && same(own.validation, first.validation)),
            "schemas",
            "validation",
        ),
        (
            all(&|own| own.subresources.is_some() && own.subresources == first.subresources),
            "subresources",
            "subresources",
        ),
        (
            all(&|own| has_columns(own) && same_items(own.columns, first.columns)),
            "additionalPrinterColumns",
            "additionalPrinterColumns",
        ),
    ];
    for (_, what, instead) in checks.into_iter().filter(|(found, ..)| *found) {
        let problem = format!(
            "per-version {what} may not all be set to identical values (top-level {instead} should be used instead)"
        );
        findings.invalid("spec.versions", versions_value(spec), problem);
    }
}

fn version_list(spec: &Spec, findings: &mut Findings) {
    let mut names: Vec<&str> = spec.versions.iter().map(|version| version.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < spec.versions.len() {
        findings.invalid(
            "spec.versions",
            versions_value(spec),
            "must contain unique version names",
        );
    }
    if spec.versions.iter().filter(|version| version.storage).count() != 1 {
        let problem = "must have exactly one version marked as storage version";
        findings.invalid("spec.versions", versions_value(spec), problem);
    }
    if spec.version.is_empty() {
        return;
    }
    let problems = dns1035_label_problems(&spec.version);
    if !problems.is_empty() {
        findings.invalid("spec.version", BadValue::text(&spec.version), problems.join(","));
    }
    if spec.versions.first().is_some_and(|first| first.name != spec.version) {
        let problem = "must match the first version in spec.versions";
        findings.invalid("spec.version", BadValue::text(&spec.version), problem);
    }
}

fn required_names(names: &Names, findings: &mut Findings) {
    let required = [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ];
    for (field, _) in required.into_iter().filter(|(_, name)| name.is_empty()) {
        findings.required(&format!("spec.names.{field}"), "");
    }
}

/// Checks the names that are set.
pub(super) fn names(names: &Names, path: &str, findings: &mut Findings) {
    for (field, name) in [("plural", &names.plural), ("singular", &names.singular)] {
        label(&format!("{path}.{field}"), name, false, findings);
    }
    for (field, name) in [("kind", &names.kind), ("listKind", &names.list_kind)] {
        let problems = dns1035_label_problems(&name.to_lowercase());
        if !name.is_empty() && !problems.is_empty() {
            let problem = format!(
                "may have mixed case, but should otherwise match: {}",
                problems.join(",")
            );
            findings.invalid(&format!("{path}.{field}"), BadValue::text(name), problem);
        }
    }
    for (at, name) in names.short_names.iter().enumerate() {
        label(&format!("{path}.shortNames[{at}]"), name, true, findings);
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let problem = "kind and listKind may not be the same";
        findings.invalid(&format!("{path}.listKind"), BadValue::text(&names.list_kind), problem);
    }
    for (at, name) in names.categories.iter().enumerate() {
        label(&format!("{path}.categories[{at}]"), name, true, findings);
    }
}

fn label(path: &str, name: &str, also_empty: bool, findings: &mut Findings) {
    let problems = dns1035_label_problems(name);
    if (also_empty || !name.is_empty()) && !problems.is_empty() {
        findings.invalid(path, BadValue::text(name), problems.join(","));
    }
}

fn columns(shared: &Shared, path: &str, findings: &mut Findings) {
    for (at, column) in shared.columns.into_iter().flatten().enumerate() {
        let path = format!("{path}.additionalPrinterColumns[{at}]");
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        if text(column, "name").is_empty() {
            findings.required(&format!("{path}.name"), "");
        }
        match text(column, "type") {
            kind if kind.is_empty() => findings.required(&format!("{path}.type"), types),
            kind if COLUMN_TYPES.contains(&kind.as_str()) => {}
            kind => findings.invalid(&format!("{path}.type"), BadValue::text(&kind), types),
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format.as_str()) {
            let problem = format!("must be one of {}", COLUMN_FORMATS.join(","));
            findings.invalid(&format!("{path}.format"), BadValue::text(&format), problem);
        }
        // The field is called JSONPath in v1beta1 and jsonPath in v1.
        let json_path = [text(column, "jsonPath"), text(column, "JSONPath")].concat();
        if json_path.is_empty() {
            findings.required(&format!("{path}.JSONPath"), "");
        } else {
            starts_with_dot(&json_path, &format!("{path}.JSONPath"), findings);
        }
    }
}

fn starts_with_dot(json_path: &str, field: &str, findings: &mut Findings) -> bool {
    if !json_path.starts_with('.') {
        findings.invalid(
            field,
            BadValue::text(json_path),
            "must be a simple json path starting with .",
        );
    }
    json_path.starts_with('.')
}

fn subresources(subresources: Option<&Value>, path: &str, findings: &mut Findings) {
    let Some(scale) = subresources.and_then(|it| it.get("scale")) else {
        return;
    };
    for (field, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let (value, field) = (text(scale, field), format!("{path}.scale.{field}"));
        if value.is_empty() {
            findings.required(&field, "");
        } else if starts_with_dot(&value, &field, findings) && !value.starts_with(root) {
            let problem = format!("should be a json path under {}", root.trim_end_matches('.'));
            findings.invalid(&field, BadValue::text(&value), problem);
        }
    }
    let (selector, field) = (
        text(scale, "labelSelectorPath"),
        format!("{path}.scale.labelSelectorPath"),
    );
    if !selector.is_empty()
        && starts_with_dot(&selector, &field, findings)
        && !selector.starts_with(".spec.")
        && !selector.starts_with(".status.")
    {
        let problem = "should be a json path under either .spec or .status";
        findings.invalid(&field, BadValue::text(&selector).behind_pointer(), problem);
    }
}
