//! Any text as a CEL expression, and the rest as the JSON of its variable: compiling and running end within their
//! budgets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olmkit_cel::{Budget, Env, GoRegex, Program, Type, Value};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (expression, json) = text.split_once('\0').unwrap_or((&text, "{\"a\": [1, \"b\", null]}"));
    let value = serde_json::from_str(json).unwrap_or_default();
    let env = Env::kubernetes().variable_of("self", Type::Dyn);
    if let Ok(program) = Program::compile(&env, expression) {
        let mut budget = Budget::for_object();
        let _ = program.run(&[("self", Value::from_json(&value))], &mut budget);
    }
    if let Ok(regex) = GoRegex::new(expression) {
        let _ = regex.is_match(json);
    }
    // DEP-11: an expression of a dependency is compiled and not run.
    let properties = Type::list(Type::map(Type::String, Type::Dyn));
    let parameters = vec![Type::Dyn, Type::Dyn];
    let env =
        Env::standard()
            .variable_of("properties", properties)
            .function_of("semver_compare", parameters, Type::Int);
    let _ = Program::compile(&env, expression).map(|program| program.result().clone());
});
