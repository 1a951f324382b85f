//! CEL rules: their texts, and whether they compile.

use serde_json::Value;

use super::super::finding::{BadValue, Findings};
use super::path::Path;
use super::{each_below, text};
use crate::crd::cel;

/// Reasons that a rule may give.
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

/// Checks what accompanies the expressions.
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
    }
}

/// Checks that expressions compile. What they cost is not checked here.
pub(super) fn check(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    check_below(schema, path, true, findings);
}

fn check_below(schema: &Value, path: &Path<'_>, is_object: bool, findings: &mut Findings) {
    if rules(schema).next().is_some()
        && let Some(own) = cel::declare::declare(schema, is_object, "self")
    {
        for (at, rule) in rules(schema).filter(|(_, rule)| !text(rule, "rule").trim().is_empty()) {
            if let Err(Some(refusal)) = cel::compile(rule, &own) {
                let field = format!("{path}.x-kubernetes-validations[{at}].{}", refusal.field);
                findings.invalid(&field, BadValue::text(text(rule, refusal.field)), refusal.message);
            }
        }
    }
    each_below(schema, path, &mut |below, path| {
        check_below(below, path, cel::is_embedded(below), findings);
    });
}
