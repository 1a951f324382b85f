//! DEP-11: whether a CEL expression of a dependency compiles to a boolean.

use olmkit_cel::{CompileError, Env, Program, Type};

/// Checks an expression over the variable `properties` with the function `semver_compare`.
///
/// # Errors
/// The error.
pub fn check(rule: &str) -> Result<(), String> {
    let properties = Type::list(Type::map(Type::String, Type::Dyn));
    let env = Env::standard().variable_of("properties", properties).function_of(
        "semver_compare",
        vec![Type::Dyn, Type::Dyn],
        Type::Int,
    );
    match Program::compile(&env, rule) {
        Ok(program) if matches!(program.result(), Type::Bool | Type::Unknown) => Ok(()),
        Ok(_) => Err("cel expressions must have type Bool".to_string()),
        // The bound is on the depth, where operator-sdk has one too.
        Err(CompileError::Refused(error) | CompileError::Undecided(error)) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_must_be_boolean_and_know_their_names() {
        for good in [
            "properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'a')",
            "properties.exists(p, p.type == 'x' && semver_compare(p.value.version, '1.0.0') >= 0)",
            "true",
            "size(properties) > 0",
            "properties.all(p, has(p.type))",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "1",
            "properties",
            "properties.exists(p, p.type == 'x'",
            "unknown == 1",
            "1 == 'a'",
            "'a' && true",
            "semver_compare('1')",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert_eq!(check("1 + 1"), Err("cel expressions must have type Bool".to_string()));
    }

    /// Such expressions exhausted the stack of the whole process.
    #[test]
    fn hostile_expressions_are_refused_at_once() {
        for piece in [
            "(",
            "[",
            "{",
            "!",
            "-",
            "a.",
            "a ? ",
            "'",
            "garbage ",
            "1 + (",
            "[1].all(x, ",
            "\u{0}",
            "properties.exists(p, ",
        ] {
            let started = std::time::Instant::now();
            let text = piece.repeat(200_000 / piece.len());
            assert!(check(&text).is_err(), "{piece}");
            assert!(started.elapsed() < std::time::Duration::from_secs(5), "{piece}");
        }
    }
}
