//! CEL rules (`x-kubernetes-validations`).

use std::borrow::Cow;

use kube_cel::{ErrorKind, Validator};
use serde_json::Value;

use super::{InstanceFault, InstanceFinding};

/// Macros that run their body once for each item of a list.
const LOOPS: [&str; 6] = [".all(", ".exists(", ".exists_one(", ".map(", ".filter(", "sortBy("];

/// Most steps that a rule may take, counted as if every list held all values of the object.
const MOST_STEPS: u64 = 20_000_000;

/// Evaluates the rules of a schema over an object that fits it.
pub(super) fn check(schema: &Value, object: &Value) -> Vec<InstanceFinding> {
    let size = count(object);
    let (mut any, mut costly) = (false, false);
    each_rule(schema, &mut |rule| {
        any = true;
        costly |= !is_affordable(rule, size);
    });
    if !any {
        return Vec::new();
    }
    // Schemas may be large, so they are copied only when something must go.
    let affordable = if costly {
        Cow::Owned(without_costly_rules(schema, size))
    } else {
        Cow::Borrowed(schema)
    };
    let errors = match Validator::new().validate(&affordable, object, None) {
        Ok(()) => return Vec::new(),
        Err(errors) => errors.into_vec(),
    };
    let broken = errors
        .into_iter()
        .filter(|error| error.kind == ErrorKind::ValidationFailure);
    broken
        .map(|error| InstanceFinding {
            pointer: pointer(&error.field_path),
            fault: InstanceFault::Rule,
            message: format!(
                "{} (rule {})",
                error.message.trim(),
                error.rule.split_whitespace().collect::<Vec<_>>().join(" ")
            ),
        })
        .collect()
}

fn each_rule(schema: &Value, found: &mut impl FnMut(&Value)) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("x-kubernetes-validations", Value::Array(rules)) => rules.iter().for_each(&mut *found),
                    _ => each_rule(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_rule(item, found)),
        _ => {}
    }
}

/// A schema without the rules whose loops may run too often.
fn without_costly_rules(schema: &Value, size: u64) -> Value {
    match schema {
        Value::Object(fields) => {
            let cleaned = fields.iter().map(|(name, value)| {
                let value = match (name.as_str(), value) {
                    ("x-kubernetes-validations", Value::Array(rules)) => {
                        Value::Array(rules.iter().filter(|rule| is_affordable(rule, size)).cloned().collect())
                    }
                    _ => without_costly_rules(value, size),
                };
                (name.clone(), value)
            });
            Value::Object(cleaned.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| without_costly_rules(item, size)).collect()),
        other => other.clone(),
    }
}

fn is_affordable(rule: &Value, size: u64) -> bool {
    let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
    let loops = LOOPS.iter().map(|name| text.matches(name).count()).sum::<usize>();
    let loops = u32::try_from(loops).unwrap_or(u32::MAX);
    // Transition rules speak of an older object; there is none.
    !text.contains("oldSelf") && size.checked_pow(loops.max(1)).is_some_and(|steps| steps <= MOST_STEPS)
}

fn count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(count).sum::<u64>() + 1,
        Value::Object(fields) => fields.values().map(count).sum::<u64>() + 1,
        _ => 1,
    }
}

/// `spec.ports[0].name` as a JSON pointer.
fn pointer(path: &str) -> String {
    let tokens = path.split(['.', '[', ']']).filter(|token| !token.is_empty());
    tokens
        .map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1")))
        .collect()
}
