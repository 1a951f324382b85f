//! Expressions of schemas (`x-kubernetes-validations`): their types, their values, and whether they compile.

pub(super) mod declare;
pub(super) mod sizes;
pub(super) mod value;
mod versions;

use std::cell::RefCell;

use olmkit_cel::{CompileError, Env, Program, Type};
use serde_json::Value;
use sizes::Sizes;
pub(crate) use versions::{Need, newest_need};

/// Programs of a rule.
pub(super) struct Rule {
    /// Must be true.
    pub(super) program: Program,
    /// Computes the message. Absent if there is none or it does not compile.
    pub(super) message: Option<Program>,
}

/// Errors of the API server's compiler in a rule.
pub(super) struct RuleError {
    /// The field with the expression.
    pub(super) field: &'static str,
    /// The message.
    pub(super) message: String,
}

/// The API server's estimate of an expression's maximum cost. `None` if only the server can compute it.
#[derive(Default)]
pub(super) struct Costs {
    pub(super) rule: Option<u64>,
    pub(super) message: Option<u64>,
}

/// Compiles a rule for values of type `own`. Without a type nothing is known about the rule.
///
/// # Errors
/// The API server's error. `None` if its result is unknown.
pub(super) fn compile(rule: &Value, own: &Type) -> Result<Rule, Option<RuleError>> {
    compiled(rule, own, &Program::compile)
}

/// As [`compile`], with the cost of the expressions over values of these sizes.
pub(super) fn compile_with_costs(rule: &Value, own: &Type, sizes: &Sizes) -> Result<(Rule, Costs), Option<RuleError>> {
    let found = RefCell::new(Vec::new());
    let rule = compiled(rule, own, &|env, text| {
        let (program, cost) = Program::compile_with_cost(env, text, &|path| sizes.at(path))?;
        found.borrow_mut().push(cost);
        Ok(program)
    })?;
    let mut found = found.into_inner().into_iter();
    let costs = Costs {
        rule: found.next().flatten(),
        message: found.next().flatten(),
    };
    Ok((rule, costs))
}

type Compile<'c> = &'c dyn Fn(&Env, &str) -> Result<Program, CompileError>;

fn compiled(rule: &Value, own: &Type, compile: Compile<'_>) -> Result<Rule, Option<RuleError>> {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_optional = rule.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or(false);
    let old = if is_optional {
        Type::optional(own.clone())
    } else {
        own.clone()
    };
    let env = Env::kubernetes()
        .variable_of("self", own.clone())
        .variable_of("oldSelf", old);
    let refuse = |field, message| Some(RuleError { field, message });
    let program = match compile(&env, text("rule")) {
        Ok(program) => program,
        Err(CompileError::Undecided(_)) => return Err(None),
        Err(CompileError::Refused(error)) => return Err(refuse("rule", format!("compilation failed: {error}"))),
    };
    if !matches!(program.result(), Type::Bool | Type::Unknown) {
        return Err(refuse("rule", "cel expression must evaluate to a bool".to_owned()));
    }
    let expression = text("messageExpression");
    if expression.is_empty() {
        return Ok(Rule { program, message: None });
    }
    let message = match compile(&env, expression) {
        Ok(message) if matches!(message.result(), Type::String | Type::Unknown) => Some(message),
        Ok(_) => {
            return Err(refuse(
                "messageExpression",
                "messageExpression must evaluate to a string".to_owned(),
            ));
        }
        Err(CompileError::Undecided(_)) => None,
        Err(CompileError::Refused(error)) => {
            let message = format!("messageExpression compilation failed: {error}");
            return Err(refuse("messageExpression", message));
        }
    };
    Ok(Rule { program, message })
}

/// The rules of a schema node.
pub(super) fn rules(schema: &Value) -> &[Value] {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.map_or(&[], Vec::as_slice)
}

/// Returns true if a schema or one below it has rules.
pub(super) fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            !rules(schema).is_empty() || fields.iter().any(|(name, below)| name != "default" && has_rules(below))
        }
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

/// Returns true if a schema is that of a whole object within another.
pub(super) fn is_embedded(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-embedded-resource")
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn text<'s>(schema: &'s Value, name: &str) -> &'s str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Fields of `apiVersion`, `kind` and `metadata` that rules on whole objects can use, regardless of the schema.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The schema of one of [`OBJECT_FIELDS`]. `None` for other fields, and if the schema itself declares more.
pub(super) fn object_field(schema: &Value, name: &str) -> Option<Value> {
    if !OBJECT_FIELDS.contains(&name) || declares_object_fields(schema) {
        return None;
    }
    let text = serde_json::json!({"type": "string"});
    Some(match name {
        "metadata" => serde_json::json!({"type": "object", "properties": {"name": text, "generateName": text}}),
        _ => text,
    })
}

fn declares_object_fields(schema: &Value) -> bool {
    let has_type = |pointer: &str, wanted: &str| {
        schema
            .pointer(pointer)
            .and_then(|field| field.get("type"))
            .and_then(Value::as_str)
            == Some(wanted)
    };
    has_type("/properties/kind", "string")
        && has_type("/properties/apiVersion", "string")
        && has_type("/properties/metadata", "object")
        && has_type("/properties/metadata/properties/name", "string")
        && has_type("/properties/metadata/properties/generateName", "string")
}

#[cfg(test)]
mod tests;
