//! Paths of fields, and the sets of fields that field managers own (`FieldsV1`).
use std::{
    collections::BTreeMap,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::{Map, Value};

use super::schema::{Node, Schema};

/// A set of fields as `metadata.managedFields` has it: a tree whose keys are `f:NAME`, `k:{KEY}`, `v:VALUE` and `.`.
///
/// A sorted list: most parts have one or two fields, for which a map would take half a kilobyte.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub struct Fields(Vec<(Box<str>, Fields)>);

/// A deeper set is cut off. The API server's own objects are far from it.
const MAX_DEPTH: usize = 64;

impl Fields {
    /// No fields.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Reads a `FieldsV1`.
    pub fn parse(value: &Value) -> Self {
        Self::parse_within(value, MAX_DEPTH)
    }

    fn parse_within(value: &Value, depth: usize) -> Self {
        let Some(map) = value.as_object().filter(|_| depth > 0) else {
            return Self::default();
        };
        let parts = map
            .iter()
            .map(|(key, part)| (canonical(key).into(), Self::parse_within(part, depth - 1)));
        let mut parts: Vec<(Box<str>, Self)> = parts.collect();
        parts.sort_by(|(left, _), (right, _)| left.cmp(right));
        Self(parts)
    }

    pub fn get(&self, key: &str) -> Option<&Self> {
        let place = self.0.binary_search_by(|(name, _)| name.as_ref().cmp(key)).ok()?;
        self.0.get(place).map(|(_, part)| part)
    }

    pub fn parts(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.0.iter().map(|(key, part)| (key.as_ref(), part))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the field at `path` is in the set, or one that contains it as one value.
    pub fn contains(&self, path: &Path) -> bool {
        let mut fields = self;
        for (at, key) in path.keys().enumerate() {
            match fields.get(key) {
                Some(part) => fields = part,
                None => return at > 0 && fields.is_empty(),
            }
        }
        true
    }
}

/// Keys of lists are compared as text, so their fields are sorted.
fn canonical(key: &str) -> String {
    let parsed = key
        .strip_prefix("k:")
        .and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    parsed.map_or_else(|| key.to_owned(), |key| Path::item_key(&key))
}

/// Where a field is, as `.spec.containers[name="web"].image` when displayed. A comparison visits each field, so the keys of its
/// parts are one text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    text: String,
    /// The end of each part in `text`.
    ends: Vec<usize>,
}

impl Path {
    pub fn push_field(&mut self, name: &str) {
        self.text.push_str("f:");
        self.push(name);
    }

    pub fn push_key(&mut self, key: &Map<String, Value>) {
        self.push(&Self::item_key(key));
    }

    pub fn push_value(&mut self, value: &Value) {
        self.push(&format!("v:{value}"));
    }

    /// Ends the part that `rest` completes.
    fn push(&mut self, rest: &str) {
        self.text.push_str(rest);
        self.ends.push(self.text.len());
    }

    pub fn pop(&mut self) {
        self.ends.pop();
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// The keys of the parts, as [`Fields`] has them.
    fn keys(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(&start, &end)| self.text.get(start..end).unwrap_or_default())
    }

    /// The key of the last part, as [`Fields`] has it. Empty for the object itself.
    pub fn last(&self) -> &str {
        let start = self.ends.iter().rev().nth(1).copied().unwrap_or(0);
        self.text.get(start..).unwrap_or_default()
    }

    pub fn field_key(name: &str) -> String {
        format!("f:{name}")
    }

    pub fn item_key(key: &Map<String, Value>) -> String {
        let sorted: BTreeMap<&String, &Value> = key.iter().collect();
        format!("k:{}", serde_json::to_string(&sorted).unwrap_or_default())
    }
}

/// Facts about a field.
impl Path {
    /// The older name of the field, under which the API server stores its value too.
    pub fn alias(&self) -> Option<Self> {
        let name = match self.last() {
            "f:serviceAccountName" => "serviceAccount",
            _ => return None,
        };
        let mut alias = self.clone();
        alias.pop();
        alias.push_field(name);
        Some(alias)
    }
}

/// Finds parts of a value.
impl Path {
    /// The value of the field in `object`.
    pub fn value_in<'v>(&self, schema: &Schema, object: &'v Value) -> Option<&'v Value> {
        let (mut node, mut value) = (schema.root(), object);
        for key in self.keys() {
            let (inner, at) = step(schema, node, key, value)?;
            (node, value) = (inner, at.of(value)?);
        }
        Some(value)
    }

    /// Removes the field from `object`.
    pub fn remove(&self, schema: &Schema, object: &mut Value) {
        let Some(parents) = self.ends.len().checked_sub(1) else {
            return;
        };
        let (last, mut node, mut value) = (self.last(), schema.root(), object);
        for key in self.keys().take(parents) {
            let Some((inner, at)) = step(schema, node, key, value) else {
                return;
            };
            let Some(found) = at.of_mut(value) else { return };
            (node, value) = (inner, found);
        }
        match (step(schema, node, last, value), value) {
            (Some((_, At::Field(name))), Value::Object(map)) => drop(map.remove(&name)),
            (Some((_, At::Entry(position))), Value::Array(list)) => drop(list.remove(position)),
            _ => {}
        }
    }
}

/// A field of an object, or an entry of a list.
enum At {
    Field(String),
    Entry(usize),
}

impl At {
    fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Field(name) => value.get(name),
            Self::Entry(position) => value.get(position),
        }
    }

    fn of_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        match self {
            Self::Field(name) => value.get_mut(name),
            Self::Entry(position) => value.get_mut(position),
        }
    }
}

/// The place of the part `key` in `value`, whose node is `node`, and the part's node.
fn step<'s>(schema: &'s Schema, node: Option<&'s Node>, key: &str, value: &Value) -> Option<(Option<&'s Node>, At)> {
    let (kind, rest) = key.split_at_checked(2)?;
    if kind == "f:" {
        return value
            .get(rest)
            .map(|_| (schema.field(node, rest), At::Field(rest.to_owned())));
    }
    let item = schema.item(node);
    let entries = value.as_array()?;
    let position = match kind {
        "k:" => {
            let key: Map<String, Value> = serde_json::from_str(rest).ok()?;
            let names: Vec<String> = key.keys().cloned().collect();
            entries.iter().position(|entry| schema.key(item, &names, entry) == key)
        }
        _ => {
            let wanted: Value = serde_json::from_str(rest).ok()?;
            entries.iter().position(|entry| *entry == wanted)
        }
    };
    Some((item, At::Entry(position?)))
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for key in self.keys() {
            match key.split_at_checked(2) {
                Some(("f:", name)) => write!(f, ".{name}")?,
                Some(("k:", key)) => {
                    let key: Map<String, Value> = serde_json::from_str(key).unwrap_or_default();
                    let parts: Vec<String> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    write!(f, "[{}]", parts.join(","))?;
                }
                Some((_, value)) => write!(f, "[={value}]")?,
                None => {}
            }
        }
        Ok(())
    }
}

/// An entry of `metadata.managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    pub manager: String,
    pub applies: bool,
    pub subresource: String,
    /// When it last changed a field, as RFC 3339 in UTC.
    pub time: String,
    pub fields: Fields,
}

/// The entries of `metadata.managedFields`. Clearing the list leaves one empty entry.
fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entries = entries.into_iter().flatten();
    entries.filter(|entry| entry.get("fieldsV1").is_some())
}

impl Owner {
    /// The entries of `object`.
    pub fn all(object: &Value) -> Vec<Self> {
        entries(object).map(Self::read).collect()
    }

    /// The entry of the fields that `manager` owns by applying the object.
    pub fn applied(object: &Value, manager: &str) -> Option<Self> {
        Self::find(object, manager, "")
    }

    fn find(object: &Value, manager: &str, subresource: &str) -> Option<Self> {
        fn text<'v>(entry: &'v Value, name: &str) -> &'v str {
            entry.get(name).and_then(Value::as_str).unwrap_or_default()
        }
        let mut own = entries(object).filter(|entry| {
            text(entry, "manager") == manager
                && text(entry, "operation") == "Apply"
                && text(entry, "subresource") == subresource
        });
        own.next().map(Self::read)
    }

    /// Returns true if `object` has no entries. The API server then does not report owners.
    pub fn are_unknown(object: &Value) -> bool {
        entries(object).next().is_none()
    }

    /// Reads an entry. Its fields may be JSON text, as in the cache of children.
    fn read(entry: &Value) -> Self {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let fields = match entry.get("fieldsV1") {
            Some(Value::String(text)) => serde_json::from_str(text).map(|tree| Fields::parse(&tree)).ok(),
            tree => tree.map(Fields::parse),
        };
        Self {
            manager: text("manager"),
            applies: entry.get("operation").and_then(Value::as_str) == Some("Apply"),
            subresource: text("subresource"),
            time: text("time"),
            fields: fields.unwrap_or_default(),
        }
    }

    /// The owner that changed a field last.
    pub fn latest<'o>(owners: impl Iterator<Item = &'o Self>) -> Option<&'o Self> {
        owners.max_by(|left, right| left.time.cmp(&right.time))
    }

    /// A digest of the fields.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.fields.hash(&mut hasher);
        hasher.finish()
    }

    /// The entry of the status fields that `manager` owns by applying them.
    pub fn of_status(object: &Value, manager: &str) -> Option<Self> {
        Self::find(object, manager, "status")
    }

    /// Returns true for the fields that `manager` owns by requests other than applies.
    pub fn has_updated(&self, manager: &str) -> bool {
        !self.applies && self.subresource.is_empty() && self.manager == manager
    }

    /// The manager's name, with the subresource that it used.
    pub fn name(&self) -> String {
        let manager = if self.manager.is_empty() {
            "an unnamed client"
        } else {
            self.manager.as_str()
        };
        match self.subresource.as_str() {
            "" => manager.to_owned(),
            subresource => format!("{manager} (through {subresource})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_name_fields_and_list_keys() {
        let mut path = Path::default();
        path.push_field("ports");
        path.push_key(json!({ "protocol": "TCP", "port": 1 }).as_object().unwrap());
        path.push_field("nodePort");
        assert_eq!(path.to_string(), r#".ports[port=1,protocol="TCP"].nodePort"#);
        let set = Fields::parse(&json!({ "f:ports": { r#"k:{"protocol":"TCP","port":1}"#: { "f:nodePort": {} } } }));
        assert!(set.contains(&path));
        path.pop();
        path.push_field("targetPort");
        assert!(!set.contains(&path));
    }

    #[test]
    fn a_field_that_is_one_value_contains_its_parts() {
        let set = Fields::parse(&json!({ "f:nodeSelector": {} }));
        let mut path = Path::default();
        path.push_field("nodeSelector");
        path.push_field("disk");
        assert!(set.contains(&path));
        assert!(!Fields::default().contains(&path), "an empty set has nothing");
    }

    #[test]
    fn fields_may_be_text() {
        let fields = json!({ "f:status": { "f:phase": {} } });
        let owners = |fields: Value| Owner::all(&json!({ "metadata": { "managedFields": [{ "fieldsV1": fields }] } }));
        assert_eq!(owners(json!(fields.to_string())), owners(fields));
        assert_eq!(owners(json!("{")), owners(json!({})));
    }

    #[test]
    fn cleared_owners_are_none() {
        assert!(Owner::all(&json!({ "metadata": { "managedFields": [{}] } })).is_empty());
    }
}
