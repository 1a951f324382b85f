//! Checks of `selectableFields`.

use serde_json::Value;

use super::finding::{BadValue, Findings};
use super::internal::{Shared, text};

/// Most selectable fields of a version.
const LIMIT: usize = 8;

/// Checks those that all versions share.
pub(super) fn check_shared(shared: &Shared, findings: &mut Findings) {
    let fields = shared.selectable_fields.unwrap_or_default();
    if fields.is_empty() {
        return;
    }
    match &shared.validation {
        None => {
            let problem = "selectableFields may only be set when validations.schema is included";
            findings.invalid("spec.selectableFields", BadValue::text(""), problem);
        }
        Some(validation) => check(
            fields,
            validation.get("openAPIV3Schema"),
            "spec.selectableFields",
            findings,
        ),
    }
}

/// Checks those of one version.
pub(super) fn check_version(own: &Shared, path: &str, findings: &mut Findings) {
    let fields = own.selectable_fields.unwrap_or_default();
    if fields.is_empty() {
        return;
    }
    let path = format!("{path}.selectableFields");
    match own
        .validation
        .as_ref()
        .and_then(|validation| validation.get("openAPIV3Schema"))
    {
        None => {
            let problem = "selectableFields may only be set when version.schema.openAPIV3Schema is not included";
            findings.invalid(&path, BadValue::text(""), problem);
        }
        Some(schema) => check(fields, Some(schema), &path, findings),
    }
}

fn check(fields: &[Value], schema: Option<&Value>, path: &str, findings: &mut Findings) {
    let mut seen: Vec<Vec<String>> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let (json_path, path) = (text(field, "jsonPath"), format!("{path}[{at}].jsonPath"));
        if json_path.is_empty() {
            findings.required(&path, "");
            continue;
        }
        let (names, found) = match follow(&json_path, schema) {
            Ok(found) => found,
            Err(problem) => {
                findings.invalid(
                    &path,
                    BadValue::text(&json_path),
                    format!("is an invalid path: {problem}"),
                );
                continue;
            }
        };
        if names.first().is_some_and(|name| name == "metadata") {
            findings.invalid(
                &path,
                BadValue::text(&json_path),
                "must not point to fields in metadata",
            );
        }
        let kind = found.map(|schema| text(schema, "type")).unwrap_or_default();
        if !matches!(kind.as_str(), "string" | "boolean" | "integer") {
            let problem = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                           with formats are allowed.";
            findings.invalid(&path, BadValue::text(&json_path), problem);
        }
        if seen.contains(&names) {
            findings.duplicate(&path, &json_path);
        } else {
            seen.push(names);
        }
    }
    if seen.len() > LIMIT {
        findings.too_many(path, seen.len(), LIMIT);
    }
}

/// Follows a path such as `.spec.size` through a schema. Returns its names and the schema at its end.
fn follow<'s>(path: &str, schema: Option<&'s Value>) -> Result<(Vec<String>, Option<&'s Value>), String> {
    let mut names = Vec::new();
    let mut at = schema;
    let mut rest = path;
    while !rest.is_empty() {
        if rest.starts_with('[') {
            return Err("array notation is not allowed".to_owned());
        }
        let Some(after) = rest.strip_prefix('.') else {
            let end = rest.find(['.', '[', ']']).unwrap_or(rest.len()).max(1);
            return Err(format!("expected [ or . but got: {}", rest.get(..end).unwrap_or(rest)));
        };
        if after.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let end = after.find(['.', '[', ']']).unwrap_or(after.len()).max(1);
        let (name, following) = after.split_at_checked(end).unwrap_or((after, ""));
        let invalid = || "does not refer to a valid field".to_owned();
        let here = at.ok_or_else(invalid)?;
        at = match (here.get("properties"), here.get("additionalProperties")) {
            (Some(properties), _) => Some(properties.get(name).ok_or_else(invalid)?),
            (None, Some(values)) => Some(values).filter(|values| values.is_object()),
            (None, None) => return Err(invalid()),
        };
        names.push(name.to_owned());
        rest = following;
    }
    Ok((names, at))
}
