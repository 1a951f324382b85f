//! CEL rules: strings, compilation and cost.

use serde_json::Value;

use super::path::Path;
use super::{each_below, text};
use crate::crd::cel;
use crate::crd::validation::finding::{BadValue, Findings};

/// Allowed reasons of a rule.
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

fn rules(schema: &Value) -> impl Iterator<Item = (usize, &Value)> {
    schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
}

/// Checks the messages of the expressions.
pub(super) fn check_texts(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    for (at, rule) in rules(schema) {
        let field = |name: &str| format!("{path}.x-kubernetes-validations[{at}].{name}");
        let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
        let has_line_end = |text: &str| text.contains(['\n', '\r']);
        if expression.is_empty() {
            findings.required(&field("rule"), "rule is not specified");
        } else if !message.is_empty() && message.trim().is_empty() {
            findings.invalid(
                &field("message"),
                BadValue::text(message),
                "message must be non-empty if specified",
            );
        } else if has_line_end(message.trim()) {
            findings.invalid(
                &field("message"),
                BadValue::text(message),
                "message must not contain line breaks",
            );
        } else if has_line_end(expression) && message.trim().is_empty() {
            findings.required(
                &field("message"),
                "message must be specified if rule contains line breaks",
            );
        }
        let message_expression = text(rule, "messageExpression");
        if !message_expression.is_empty() && message_expression.trim().is_empty() {
            findings.required(
                &field("messageExpression"),
                "messageExpression must be non-empty if specified",
            );
        }
        let reason = text(rule, "reason");
        if rule.get("reason").is_some() && !REASONS.contains(&reason) {
            findings.not_supported(&field("reason"), reason, &REASONS);
        }
        let field_path = text(rule, "fieldPath");
        if !field_path.is_empty() && field_path.trim().is_empty() {
            let problem = "fieldPath must be non-empty if specified";
            findings.invalid(&field("fieldPath"), BadValue::text(field_path), problem);
        }
        if has_line_end(field_path) {
            let problem = "must not contain line breaks";
            findings.invalid(&field("fieldPath"), BadValue::text(field_path), problem);
        }
        if !field_path.is_empty() && !is_field(schema, field_path) {
            findings.invalid(&field("fieldPath"), BadValue::text(field_path), "must be a valid path");
        }
    }
}

/// Most that one expression may cost, and all of a schema together.
const EXPRESSION_COST: u64 = 10_000_000;
const SCHEMA_COST: u64 = 100_000_000;

/// Checks expressions: that they compile, their cost, and that they use `oldSelf` only if the server can find the
/// previous value.
pub(super) fn check(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    let mut walk = Walk { findings, total: 0 };
    let place = Place {
        is_object: true,
        in_scope: false,
        shown: None,
        values: Some(1),
        uncorrelated: None,
    };
    walk.schema(schema, path, &place);
    if walk.total > SCHEMA_COST {
        let problem = over_budget(
            "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
            walk.total,
            SCHEMA_COST,
        );
        findings.forbidden(&path.to_string(), problem);
    }
}

/// Position of a schema.
struct Place {
    /// True if its values are whole objects.
    is_object: bool,
    /// True if a schema above has rules.
    in_scope: bool,
    /// The schema that expressions use instead: rules on an object use its `kind`, `apiVersion` and `metadata` without
    /// bounds, and then rules on these fields do too.
    shown: Option<Value>,
    /// Maximum number of values in an object. `None` if no schema above limits it.
    values: Option<u64>,
    /// The list above whose items cannot be found again in the object that was there before.
    uncorrelated: Option<String>,
}

impl Place {
    /// See [`Place::shown`].
    fn shown_field(&self, schema: &Value, name: &str) -> Option<Value> {
        match &self.shown {
            Some(shown) => shown.get("properties")?.get(name).cloned(),
            None if self.is_object => cel::object_field(schema, name),
            None => None,
        }
    }
}

struct Walk<'f> {
    findings: &'f mut Findings,
    /// The cost of the expressions so far.
    total: u64,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &Value, path: &Path<'_>, place: &Place) {
        let has_rules = rules(schema).next().is_some();
        if has_rules {
            self.rules(schema, path, place);
        }
        let in_scope = place.in_scope || has_rules;
        let factor = match text(schema, "type") {
            "object" if schema.get("additionalProperties").is_some() => limit(schema, "maxProperties"),
            "array" => limit(schema, "maxItems"),
            _ => Some(1),
        };
        let values = place
            .values
            .zip(factor)
            .map(|(values, factor)| values.saturating_mul(factor));
        each_below(schema, path, &mut |below, path| {
            // Items of other lists are not found again.
            let is_map = text(schema, "x-kubernetes-list-type") == "map";
            let list = match path {
                Path::Keyword(list, "items") if !is_map => Some(*list),
                _ => None,
            };
            let shown = match path {
                Path::Property(_, name) if in_scope => place.shown_field(schema, name),
                _ => None,
            };
            let place = Place {
                is_object: cel::is_embedded(below) && shown.is_none(),
                in_scope,
                shown,
                values,
                uncorrelated: place.uncorrelated.clone().or_else(|| list.map(ToString::to_string)),
            };
            self.schema(below, path, &place);
        });
    }

    fn rules(&mut self, schema: &Value, path: &Path<'_>, place: &Place) {
        let shown = place.shown.as_ref().unwrap_or(schema);
        let own = cel::declare::declare(shown, place.is_object, "self");
        let sizes = cel::sizes::Sizes::new(shown, place.is_object);
        let (Some(own), Some(sizes)) = (own, sizes) else {
            let problem = "failed to construct type information for x-kubernetes-validations rules: unable to convert \
                           structural schema to CEL declarations";
            self.findings
                .internal(&format!("{path}.x-kubernetes-validations"), problem);
            return;
        };
        let values = place.values.unwrap_or_else(|| sizes.most_values());
        for (at, rule) in rules(schema).filter(|(_, rule)| !text(rule, "rule").trim().is_empty()) {
            let field = |name: &str| format!("{path}.x-kubernetes-validations[{at}].{name}");
            let (compiled, costs) = match cel::compile_with_costs(rule, &own, &sizes) {
                Ok(found) => found,
                Err(Some(refusal)) => {
                    let value = BadValue::text(text(rule, refusal.field));
                    self.findings.invalid(&field(refusal.field), value, refusal.message);
                    continue;
                }
                Err(None) => continue,
            };
            let cost = costs.rule.map(|cost| cost.saturating_mul(values));
            self.cost("estimated rule cost", &field("rule"), cost);
            self.cost(
                "estimated messageExpression cost",
                &field("messageExpression"),
                costs.message,
            );
            let uses_old = compiled.program.uses("oldSelf");
            if let Some(list) = place.uncorrelated.as_ref().filter(|_| uses_old) {
                let problem =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
                self.findings
                    .invalid(&field("rule"), BadValue::text(text(rule, "rule")), problem);
            }
            if let Some(optional) = rule
                .get("optionalOldSelf")
                .filter(|optional| !uses_old && !optional.is_null())
            {
                let problem = "may not be set if oldSelf is not used in rule";
                self.findings
                    .invalid(&field("optionalOldSelf"), BadValue::word(optional), problem);
            }
        }
    }

    fn cost(&mut self, what: &str, field: &str, cost: Option<u64>) {
        let Some(cost) = cost else { return };
        self.total = self.total.saturating_add(cost);
        if cost > EXPRESSION_COST {
            self.findings.forbidden(field, over_budget(what, cost, EXPRESSION_COST));
        }
    }
}

/// A limit on the number of items or entries. A negative one allows none.
fn limit(schema: &Value, name: &str) -> Option<u64> {
    let limit = schema.get(name).and_then(Value::as_i64)?;
    Some(u64::try_from(limit).unwrap_or(0))
}

/// The server's message about a cost.
#[allow(clippy::cast_precision_loss, clippy::as_conversions)]
fn over_budget(what: &str, cost: u64, budget: u64) -> String {
    let times = cost as f64 / budget as f64;
    let factor = if times > 100.0 {
        "more than 100x".to_owned()
    } else if times < 1.5 {
        format!("{times:.6}x")
    } else {
        format!("{times:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// Returns true if a `fieldPath` such as `.spec['a.b']` names a field of the schema.
fn is_field(schema: &Value, path: &str) -> bool {
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name = if let Some(quoted) = rest.strip_prefix("['") {
            let Some((name, after)) = unquoted(quoted) else {
                return false;
            };
            let Some(after) = after.strip_prefix(']') else {
                return false;
            };
            rest = after;
            name
        } else {
            let Some(named) = rest.strip_prefix('.').filter(|named| !named.is_empty()) else {
                return false;
            };
            // The server treats a delimiter directly after the point as a name.
            let end = named.find(['.', '[', ']']).unwrap_or(named.len()).max(1);
            let Some((name, after)) = named.split_at_checked(end) else {
                return false;
            };
            rest = after;
            name.to_owned()
        };
        let named = schema
            .get("properties")
            .and_then(Value::as_object)
            .filter(|named| !named.is_empty());
        let others = schema.get("additionalProperties");
        let below = match (named, others) {
            (Some(named), _) => named.get(&name),
            (None, Some(others)) if others.is_object() => Some(others),
            // The server accepts a free field, but fails on a path that continues below it.
            (None, Some(_)) => return rest.is_empty(),
            (None, None) => None,
        };
        let Some(below) = below else { return false };
        schema = below;
    }
    true
}

/// The string up to the closing quote, and the rest.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\'' => return Some((name, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                escaped @ ('\'' | '\\') => name.push(escaped),
                // Names with control characters do not occur.
                _ => return None,
            },
            other => name.push(other),
        }
    }
    None
}
