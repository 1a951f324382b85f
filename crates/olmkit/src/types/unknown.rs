//! Fields of a manifest that the Go types do not have: every tool silently ignores them.

use serde_json::Value;

use crate::object::pointer_part;
use olmkit_go::structs::decode::lookup;
use olmkit_go::structs::{Custom, Struct, Structs, Type, structs};

/// Required similarity for a name to count as a misspelling of another (1 is equal).
const ALIKE: f64 = 0.75;

/// Maximum bytes of the pointers and names of all unknown fields of a manifest: their keys may be of any length.
const MOST_BYTES: usize = 16 << 20;

/// A field that its type does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownField {
    /// JSON pointer to its value.
    pub pointer: String,
    /// The key.
    pub name: String,
    /// The type that does not have it, as Go names it: `v1.Container`.
    pub of: &'static str,
    /// The field that was probably meant.
    pub meant: Option<&'static str>,
}

/// How the reader of a manifest compares names of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// As encoding/json, with which OLM reads ClusterServiceVersions.
    Ignored,
    /// As the API server, and as OLM reads CRDs.
    Exact,
}

/// The unknown fields of `value` as the struct that the table of [`olmkit_go::structs`] lists under `key`. Values that are
/// not of their field's type are skipped, and if there are very many fields, only the first ones are listed.
pub fn unknown_fields(value: &Value, key: &str, case: Case) -> Vec<UnknownField> {
    let mut search = Search {
        table: structs(),
        case,
        found: Vec::new(),
        left: MOST_BYTES,
        pointer: String::new(),
    };
    if let Some(kind) = search.table.get(key) {
        search.value(value, kind);
    }
    search.found
}

struct Search {
    table: &'static Structs,
    case: Case,
    found: Vec<UnknownField>,
    /// Remaining bytes for the report.
    left: usize,
    pointer: String,
}

impl Search {
    fn value(&mut self, value: &Value, kind: &Type) {
        match (kind, value) {
            (Type::Pointer(inner), _) => self.value(value, inner),
            (Type::List(inner), Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.below(&at.to_string(), item, inner);
                }
            }
            (Type::Map(inner), Value::Object(entries)) => {
                for (key, item) in entries {
                    self.below(key, item, inner);
                }
            }
            (
                Type::Struct(at)
                | Type::Custom(Custom::SchemaOrBool(at) | Custom::SchemaOrList(at) | Custom::SchemaOrNames(at)),
                Value::Object(entries),
            ) => {
                let table = self.table;
                let Some(entry) = table.at(*at) else { return };
                for (key, item) in entries {
                    let known = lookup(entry, key).filter(|(name, _)| self.case == Case::Ignored || name == key);
                    match known.and_then(|(_, path)| table.along(entry, path)) {
                        Some(kind) => self.below(key, item, kind),
                        None => self.unknown(entry, key),
                    }
                }
            }
            _ => {}
        }
    }

    fn unknown(&mut self, of: &Struct, key: &str) {
        let bytes = self.pointer.len() + 2 * key.len() + size_of::<UnknownField>();
        let Some(left) = self.left.checked_sub(bytes) else {
            return;
        };
        self.left = left;
        self.found.push(UnknownField {
            pointer: format!("{}/{}", self.pointer, pointer_part(key)),
            name: key.to_owned(),
            of: of.go_name,
            meant: meant(of, key),
        });
    }

    fn below(&mut self, key: &str, value: &Value, kind: &Type) {
        // Scalars have no fields.
        if !value.is_object() && !value.is_array() {
            return;
        }
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&pointer_part(key));
        self.value(value, kind);
        self.pointer.truncate(length);
    }
}

fn meant(entry: &Struct, key: &str) -> Option<&'static str> {
    // Longer than any field, and compared with each of them.
    if key.len() > 100 {
        return None;
    }
    let alike = |name: &&'static str| strsim::jaro_winkler(&name.to_lowercase(), &key.to_lowercase());
    let mut names: Vec<&'static str> = entry.by_name.keys().copied().collect();
    names.sort_unstable();
    names
        .into_iter()
        .filter(|name| alike(name) >= ALIKE)
        .max_by(|a, b| alike(a).total_cmp(&alike(b)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unknown(value: &Value, key: &str) -> Vec<(String, Option<&'static str>)> {
        unknown_fields(value, key, Case::Ignored)
            .into_iter()
            .map(|field| (field.pointer, field.meant))
            .collect()
    }

    #[test]
    fn a_name_in_another_case_is_unknown_to_the_api_server_only() {
        let definition = json!({"spec": {"Group": "example.com"}});
        let key = "v1.CustomResourceDefinition";
        assert!(unknown(&definition, key).is_empty());
        let found = unknown_fields(&definition, key, Case::Exact);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].meant, Some("group"));
    }

    #[test]
    fn fields_are_looked_for_at_every_depth() {
        let container =
            json!({"name": "a", "imagePullpolicy": "Always", "ressources": {}, "env": [{"name": "A", "image": "b"}]});
        let csv = json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "metadata": {"annotations": {"any": "thing"}},
            "spec": {"install": {"spec": {"deployments": [{"spec": {"template": {"spec": {"containers": [container]}}}}]}}},
        });
        let at = "/spec/install/spec/deployments/0/spec/template/spec/containers/0";
        assert_eq!(
            unknown(&csv, "ClusterServiceVersion"),
            [
                (format!("{at}/env/0/image"), None),
                (format!("{at}/ressources"), Some("resources")),
            ]
        );
    }

    #[test]
    fn of_countless_fields_the_first_are_named() {
        let fields: serde_json::Map<String, Value> = (0..10_000).map(|at| (format!("f{at}"), json!(1))).collect();
        let long = "x".repeat(1 << 20);
        let crd = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {long: fields}}}}]}});
        let found = unknown(&crd, "v1.CustomResourceDefinition");
        assert!((1..20).contains(&found.len()), "{}", found.len());
    }

    #[test]
    fn names_of_properties_are_free_and_keywords_are_not() {
        let crd = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
            "properties": {"whatever": {"type": "string", "maxlen": 3}},
            "additionalProperties": {"typ": "string"},
            "default": {"a": {"b": "c"}},
        }}}]}});
        let schema = "/spec/versions/0/schema/openAPIV3Schema";
        assert_eq!(
            unknown(&crd, "v1.CustomResourceDefinition"),
            [
                (format!("{schema}/additionalProperties/typ"), Some("type")),
                (format!("{schema}/properties/whatever/maxlen"), Some("maxLength")),
            ]
        );
    }
}
