//! Evaluation, type checks, and budgets of expressions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod checks;
mod hostile;
mod values;

use olmkit_cel::{Budget, CompileError, Env, Failure, Program, Type, Value};

/// An environment in which `self` may be anything.
fn any_env() -> Env {
    Env::kubernetes().variable_of("self", Type::Dyn)
}

/// Result of an expression over `self`: `true`, `refused`, `error: …`, `undecided`, `exhausted`, or the value.
fn ending(text: &str, own: &Value, budget: &mut Budget) -> String {
    let program = match Program::compile(&any_env(), text) {
        Ok(program) => program,
        Err(CompileError::Refused(_)) => return "refused".to_owned(),
        Err(CompileError::Undecided(_)) => return "undecided".to_owned(),
    };
    match program.run(&[("self", own.clone())], budget) {
        Ok(value) => shown(&value),
        Err(Failure::Error(message)) => format!("error: {message}"),
        Err(Failure::Undecided(_)) => "undecided".to_owned(),
        Err(Failure::Exhausted) => "exhausted".to_owned(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => format!("{value}u"),
        Value::Double(value) => format!("{value:?}"),
        Value::String(text) => format!("{text:?}"),
        Value::Bytes(bytes) => format!("b{bytes:?}"),
        Value::List(list) => format!("[{}]", list.items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let entries = map
                .entries
                .iter()
                .map(|(key, value)| format!("{}: {}", shown(&key.to_value()), shown(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Optional(None) => "none".to_owned(),
        Value::Optional(Some(inner)) => format!("some({})", shown(inner)),
        Value::Type(name) => name.to_string(),
        other => other.type_name().to_owned(),
    }
}
