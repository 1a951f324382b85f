//! DEP-11: whether a CEL expression of a dependency compiles to a boolean.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};

/// Checks an expression over the variable `properties` with the function `semver_compare`.
///
/// # Errors
/// What is wrong with it.
pub fn check(rule: &str) -> Result<(), String> {
    let program = cel::Program::compile(rule).map_err(|error| format!("ERROR: <input>:{error}"))?;
    let mut checker = Checker {
        variables: vec![("properties".to_string(), Kind::List)],
    };
    match checker.kind(program.expression())? {
        Kind::Bool => Ok(()),
        _ => Err("cel expressions must have type Bool".to_string()),
    }
}

/// What an expression yields, as far as it can be told before it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    List,
    Map,
    /// Known only when the expression is run.
    Any,
}

struct Checker {
    variables: Vec<(String, Kind)>,
}

impl Checker {
    fn kind(&mut self, expression: &IdedExpr) -> Result<Kind, String> {
        match &expression.expr {
            Expr::Unspecified => Ok(Kind::Any),
            Expr::Literal(literal) => Ok(match literal {
                LiteralValue::Boolean(_) => Kind::Bool,
                LiteralValue::Bytes(_) => Kind::Bytes,
                LiteralValue::Double(_) => Kind::Double,
                LiteralValue::Int(_) => Kind::Int,
                LiteralValue::Null => Kind::Null,
                LiteralValue::String(_) => Kind::Text,
                LiteralValue::UInt(_) => Kind::Uint,
            }),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => match self.kind(&select.operand)? {
                Kind::Map | Kind::Any => Ok(if select.test { Kind::Bool } else { Kind::Any }),
                other => Err(format!("type '{}' does not support field selection", name_of(other))),
            },
            Expr::List(list) => {
                list.elements
                    .iter()
                    .try_for_each(|element| self.kind(element).map(|_| ()))?;
                Ok(Kind::List)
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.kind(&entry.key)?;
                        self.kind(&entry.value)?;
                    }
                }
                Ok(Kind::Map)
            }
            Expr::Struct(_) => Ok(Kind::Any),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => {
                let range = self.kind(&comprehension.iter_range)?;
                if !matches!(range, Kind::List | Kind::Map | Kind::Any) {
                    return Err(format!(
                        "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                        name_of(range)
                    ));
                }
                let start = self.kind(&comprehension.accu_init)?;
                let known = self.variables.len();
                let element = match (&comprehension.iter_range.expr, range) {
                    (Expr::Ident(name), _) if name == "properties" => Kind::Map,
                    _ => Kind::Any,
                };
                self.variables.push((comprehension.accu_var.clone(), start));
                self.variables.push((comprehension.iter_var.clone(), element));
                if let Some(second) = &comprehension.iter_var2 {
                    self.variables.push((second.clone(), Kind::Any));
                }
                self.kind(&comprehension.loop_cond)?;
                self.kind(&comprehension.loop_step)?;
                let result = self.kind(&comprehension.result);
                self.variables.truncate(known);
                result
            }
        }
    }

    fn variable(&self, name: &str) -> Result<Kind, String> {
        const TYPES: [&str; 11] = [
            "bool",
            "int",
            "uint",
            "double",
            "string",
            "bytes",
            "list",
            "map",
            "null_type",
            "type",
            "dyn",
        ];
        let known = self.variables.iter().rev().find(|(known, _)| known == name);
        match known {
            Some((_, kind)) => Ok(*kind),
            None if TYPES.contains(&name) => Ok(Kind::Any),
            None => Err(format!(
                "ERROR: <input>: undeclared reference to '{name}' (in container '')"
            )),
        }
    }

    fn call(&mut self, call: &CallExpr) -> Result<Kind, String> {
        let mut kinds = Vec::new();
        if let Some(target) = &call.target {
            kinds.push(self.kind(target)?);
        }
        for argument in &call.args {
            kinds.push(self.kind(argument)?);
        }
        let first = kinds.first().copied().unwrap_or(Kind::Any);
        let second = kinds.get(1).copied().unwrap_or(Kind::Any);
        let no_overload = || {
            let names: Vec<&str> = kinds.iter().map(|kind| name_of(*kind)).collect();
            Err(format!(
                "ERROR: <input>: found no matching overload for '{}' applied to '({})'",
                call.func_name,
                names.join(", ")
            ))
        };
        let all = |allowed: &[Kind]| kinds.iter().all(|kind| *kind == Kind::Any || allowed.contains(kind));
        let alike = first == Kind::Any || second == Kind::Any || first == second;
        let numbers = [Kind::Int, Kind::Uint, Kind::Double];
        match call.func_name.as_str() {
            "_&&_" | "_||_" | "!_" | "@not_strictly_false" => {
                if all(&[Kind::Bool]) {
                    Ok(Kind::Bool)
                } else {
                    no_overload()
                }
            }
            "_==_" | "_!=_" => {
                let nullable = |kind| matches!(kind, Kind::Null);
                if alike || nullable(first) || nullable(second) {
                    Ok(Kind::Bool)
                } else {
                    no_overload()
                }
            }
            "_<_" | "_<=_" | "_>_" | "_>=_" => {
                let comparable = all(&[Kind::Bool, Kind::Int, Kind::Uint, Kind::Double, Kind::Text, Kind::Bytes]);
                let mixed = numbers.contains(&first) && numbers.contains(&second);
                if comparable && (alike || mixed) {
                    Ok(Kind::Bool)
                } else {
                    no_overload()
                }
            }
            "@in" => {
                if matches!(second, Kind::List | Kind::Map | Kind::Any) {
                    Ok(Kind::Bool)
                } else {
                    no_overload()
                }
            }
            "_+_" | "_-_" | "_*_" | "_/_" | "_%_" => {
                let allowed: &[Kind] = match call.func_name.as_str() {
                    "_+_" => &[Kind::Int, Kind::Uint, Kind::Double, Kind::Text, Kind::Bytes, Kind::List],
                    _ => &numbers,
                };
                if all(allowed) && alike {
                    Ok(if first == Kind::Any { second } else { first })
                } else {
                    no_overload()
                }
            }
            "-_" => {
                if all(&[Kind::Int, Kind::Double]) {
                    Ok(first)
                } else {
                    no_overload()
                }
            }
            "_?_:_" => {
                let third = kinds.get(2).copied().unwrap_or(Kind::Any);
                match first {
                    Kind::Bool | Kind::Any if second == third => Ok(second),
                    Kind::Bool | Kind::Any => Ok(Kind::Any),
                    _ => no_overload(),
                }
            }
            "_[_]" => match (first, &call.args.first().map(|argument| &argument.expr)) {
                (Kind::List, Some(Expr::Ident(name))) if name == "properties" => Ok(Kind::Map),
                (Kind::List | Kind::Map | Kind::Any, _) => Ok(Kind::Any),
                _ => no_overload(),
            },
            "semver_compare" => {
                if kinds.len() == 2 {
                    Ok(Kind::Int)
                } else {
                    no_overload()
                }
            }
            "size" | "int" => Ok(Kind::Int),
            "contains" | "startsWith" | "endsWith" | "matches" => {
                if all(&[Kind::Text]) {
                    Ok(Kind::Bool)
                } else {
                    no_overload()
                }
            }
            "bool" => Ok(Kind::Bool),
            "string" => Ok(Kind::Text),
            "double" => Ok(Kind::Double),
            "uint" => Ok(Kind::Uint),
            "bytes" => Ok(Kind::Bytes),
            "dyn" | "type" | "duration" | "timestamp" => Ok(Kind::Any),
            name if name.starts_with("get") && call.target.is_some() => Ok(Kind::Int),
            name => Err(format!(
                "ERROR: <input>: undeclared reference to '{name}' (in container '')"
            )),
        }
    }
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Int => "int",
        Kind::Uint => "uint",
        Kind::Double => "double",
        Kind::Text => "string",
        Kind::Bytes => "bytes",
        Kind::Null => "null",
        Kind::List => "list(dyn)",
        Kind::Map => "map(dyn, dyn)",
        Kind::Any => "dyn",
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
}
