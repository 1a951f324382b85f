//! Kubernetes versions that the expressions of a schema need.

use olmkit_cel::{KubernetesVersion, Library, Program};
use serde_json::Value;

use super::{compile, declare, is_embedded, rules, text};

/// An expression and the library that requires a Kubernetes version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    /// The first version whose API server takes it.
    pub(crate) since: KubernetesVersion,
    /// The library of that version.
    pub(crate) library: Library,
    /// The expression.
    pub(crate) rule: String,
}

/// The expression below a schema that needs the newest Kubernetes. The first of equals.
pub(crate) fn newest_need(schema: &Value) -> Option<Need> {
    below(schema, true)
}

fn below(schema: &Value, is_object: bool) -> Option<Need> {
    let own = own_need(schema, is_object);
    let items = schema.get("items").into_iter();
    let others = schema.get("additionalProperties").filter(|others| others.is_object());
    let named = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let deeper = items
        .chain(others)
        .chain(named.map(|(_, schema)| schema))
        .filter_map(|schema| below(schema, is_embedded(schema)));
    newest(own.into_iter().chain(deeper))
}

fn own_need(schema: &Value, is_object: bool) -> Option<Need> {
    let rules = rules(schema);
    if rules.is_empty() {
        return None;
    }
    let own = declare::declare(schema, is_object, "self")?;
    newest(rules.iter().filter_map(|rule| {
        let compiled = compile(rule, &own).ok()?;
        let of = |program: &Program, name: &str| {
            let library = program
                .libraries()
                .iter()
                .copied()
                .max_by_key(|library| library.since())?;
            Some(Need {
                since: library.since(),
                library,
                rule: text(rule, name).to_owned(),
            })
        };
        let message = compiled
            .message
            .as_ref()
            .and_then(|program| of(program, "messageExpression"));
        newest(of(&compiled.program, "rule").into_iter().chain(message))
    }))
}

fn newest(needs: impl Iterator<Item = Need>) -> Option<Need> {
    needs.reduce(|newest, need| if need.since > newest.since { need } else { newest })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_expression_counts() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "x-kubernetes-validations": [{"rule": "self.size() > 1"}]},
            "b": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [
                {"rule": "isIP(self)"},
                {"rule": "quantity(self).isGreaterThan(quantity('1'))"},
            ]}},
        }});
        let need = newest_need(&schema).expect("a need");
        assert_eq!((need.library, need.rule.as_str()), (Library::Ip, "isIP(self)"));
        assert_eq!(need.since.to_string(), "1.31");
        assert_eq!(newest_need(&json!({"type": "object"})), None);
    }
}
