//! Label selectors of ClusterExtensions for catalogs.

use olmkit::object::selector::matches;
use serde_json::{Map, Value};

use crate::base::json::text;

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
            matches(text(expression, "/operator"), value(text(expression, "/key")), values).unwrap_or(false)
        })
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
