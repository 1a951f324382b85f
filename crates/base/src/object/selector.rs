//! Label selectors.

use serde_json::{Map, Value};

/// Returns true if one of a selector's `matchExpressions` matches a label with this value, or a missing label. `None`
/// for an unknown operator.
///
/// ```
/// use olmkit_base::object::selector::matches;
/// assert_eq!(matches("In", Some("a"), ["a", "b"]), Some(true));
/// assert_eq!(matches("NotIn", None, ["a"]), Some(true));
/// assert_eq!(matches("Near", Some("a"), []), None);
/// ```
pub fn matches<'v>(operator: &str, value: Option<&str>, values: impl IntoIterator<Item = &'v str>) -> Option<bool> {
    let is_listed = || value.is_some_and(|value| values.into_iter().any(|listed| listed == value));
    match operator {
        "In" => Some(is_listed()),
        "NotIn" => Some(!is_listed()),
        "Exists" => Some(value.is_some()),
        "DoesNotExist" => Some(value.is_none()),
        _ => None,
    }
}

/// Returns true if a label selector (`matchLabels` and `matchExpressions`) matches an object with these labels. A
/// missing selector matches every object. An unknown operator matches none.
#[must_use]
pub fn selects(selector: Option<&Value>, labels: Option<&Map<String, Value>>) -> bool {
    let Some(selector) = selector.filter(|selector| !selector.is_null()) else {
        return true;
    };
    let value = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let equal = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    equal
        .into_iter()
        .flatten()
        .all(|(key, wanted)| wanted.as_str().is_some_and(|wanted| value(key) == Some(wanted)))
        && expressions.into_iter().flatten().all(|expression| {
            let values = expression.get("values").and_then(Value::as_array);
            let values = values.into_iter().flatten().filter_map(Value::as_str);
            matches(text(expression, "operator"), value(text(expression, "key")), values).unwrap_or(false)
        })
}

fn text<'v>(expression: &'v Value, field: &str) -> &'v str {
    expression.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_takes_what_kubernetes_takes() {
        let labels = json!({"a": "1", "b": "2"});
        let takes = |selector: Value| selects(Some(&selector), labels.as_object());
        assert!(selects(None, labels.as_object()));
        assert!(takes(json!({})));
        assert!(takes(json!({"matchLabels": {"a": "1"}})));
        assert!(!takes(json!({"matchLabels": {"a": "1", "b": "1"}})));
        let expression = |operator: &str, key: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        assert!(takes(expression("In", "a", json!(["1", "3"]))));
        assert!(!takes(expression("In", "c", json!(["1"]))));
        assert!(takes(expression("NotIn", "c", json!(["1"]))));
        assert!(!takes(expression("NotIn", "a", json!(["1"]))));
        assert!(takes(expression("Exists", "a", json!(null))));
        assert!(!takes(expression("DoesNotExist", "a", json!(null))));
        assert!(!takes(expression("Near", "a", json!(null))));
        assert!(!selects(Some(&json!({"matchLabels": {"a": "1"}})), None));
    }
}
