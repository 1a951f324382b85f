//! Setting a field of a JSON value wherever it is.

use serde_json::{Map, Value};

/// Sets a field by its path. A missing or null value on the path, or one that is not an object, becomes an object, so
/// it cannot fail.
pub trait SetAt {
    /// Sets the field at `path` to `value`. An empty path replaces the whole value.
    fn set_at(&mut self, path: &[&str], value: Value);
}

impl SetAt for Value {
    fn set_at(&mut self, path: &[&str], value: Value) {
        let mut place = self;
        for key in path {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            let Value::Object(fields) = place else { return };
            place = fields.entry(*key).or_insert(Value::Null);
        }
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_on_the_path_become_objects() {
        let mut value = json!({"spec": "text", "metadata": {"name": "a"}});
        value.set_at(&["spec", "install", "strategy"], json!("deployment"));
        value.set_at(&["metadata", "labels"], json!({"a": "b"}));
        assert_eq!(
            value,
            json!({"spec": {"install": {"strategy": "deployment"}}, "metadata": {"name": "a", "labels": {"a": "b"}}})
        );
    }
}
