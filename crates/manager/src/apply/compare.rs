//! Compares a desired object with the live one, by the kind's schema and the fields that the field manager owns.
use k8s_openapi::jiff::Timestamp;
use olmkit_go::quantity;
use serde_json::{Map, Value};

use super::{
    fields::{Fields, Path},
    schema::{Kind, Merge, Node, Schema},
};

/// A field that is not as desired.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub path: Path,
    /// The value that is desired. `None` for a field that is no longer desired.
    pub desired: Option<Value>,
    /// The value that the API server has.
    pub live: Option<Value>,
    pub kind: DifferenceKind,
}

/// How a field differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// It has another value, or none.
    Value,
    /// It was desired empty, which may mean that the API server chooses the value.
    Empty,
    /// It has all that is desired, and more.
    More,
    /// It is no longer desired.
    Dropped,
}

/// All differences between `desired` and `live`. `owned` are the fields that the field manager owns by applying. `None` if
/// the API server does not report them.
pub fn differences(schema: &Schema, desired: &Value, live: &Value, owned: Option<&Fields>) -> Vec<Difference> {
    let mut comparison = Comparison {
        schema,
        path: Path::default(),
        found: Vec::new(),
    };
    let owned = match owned {
        None => Owned::Unknown,
        Some(fields) => Owned::Fields(fields),
    };
    comparison.object(schema.root(), desired, live, owned);
    if let Owned::Fields(fields) = owned {
        comparison.dropped(schema.root(), fields, Some(desired), Some(live));
    }
    comparison.found
}

#[derive(Clone, Copy)]
enum Owned<'f> {
    /// The API server does not report owners.
    Unknown,
    /// The field is owned as one value.
    Whole,
    /// These parts of the field are owned.
    Fields(&'f Fields),
    /// The field is not owned.
    No,
}

impl<'f> Owned<'f> {
    fn part(self, key: &str) -> Owned<'f> {
        match self {
            Owned::Fields(fields) => match fields.get(key) {
                Some(part) if part.is_empty() => Owned::Whole,
                Some(part) => Owned::Fields(part),
                None => Owned::No,
            },
            // It was applied without parts.
            Owned::Whole => Owned::No,
            other => other,
        }
    }

    /// A change by another client would have ended the ownership.
    fn is_unchanged(self) -> bool {
        matches!(self, Owned::Whole | Owned::Fields(_))
    }
}

struct Comparison<'s> {
    schema: &'s Schema,
    path: Path,
    found: Vec<Difference>,
}

impl<'s> Comparison<'s> {
    /// Identity and type of the object are given. Everything else is compared.
    fn object(&mut self, root: Option<&'s Node>, desired: &Value, live: &Value, owned: Owned<'_>) {
        for (name, value) in desired.as_object().into_iter().flatten() {
            if matches!(name.as_str(), "apiVersion" | "kind") {
                continue;
            }
            let node = self.schema.field(root, name);
            self.path.push_field(name);
            let part = owned.part(self.path.last());
            if name == "metadata" {
                let given = ["name", "namespace", "generateName", "uid", "resourceVersion"];
                let fields = value.as_object().into_iter().flatten();
                for (name, value) in fields.filter(|(name, _)| !given.contains(&name.as_str())) {
                    let live = live.get("metadata").and_then(|metadata| metadata.get(name));
                    self.field(node, name, value, live, part);
                }
            } else {
                self.value(node, value, live.get(name), part);
            }
            self.path.pop();
        }
    }

    fn field(&mut self, parent: Option<&'s Node>, name: &str, desired: &Value, live: Option<&Value>, owned: Owned<'_>) {
        self.path.push_field(name);
        let part = match self.schema.rejects(parent, name) {
            // Also an empty value is sent, so that the API server can name the unknown field.
            true => Owned::No,
            false => owned.part(self.path.last()),
        };
        self.value(self.schema.field(parent, name), desired, live, part);
        self.path.pop();
    }

    fn value(&mut self, node: Option<&'s Node>, desired: &Value, live: Option<&Value>, owned: Owned<'_>) {
        let live = live.filter(|live| !live.is_null());
        match (desired, node.map(|node| &node.kind)) {
            (Value::Object(_), Some(Kind::Map { atomic: true, .. }))
            | (
                Value::Array(_),
                None
                | Some(
                    Kind::Plain
                    | Kind::List {
                        merge: Merge::Atomic, ..
                    },
                ),
            ) => {
                self.whole(node, desired, live, owned);
            }
            (Value::Object(map), _) => self.map(node, map, live, owned),
            (
                Value::Array(list),
                Some(Kind::List {
                    merge: Merge::Keyed(keys),
                    ..
                }),
            ) => {
                self.keyed(node, keys, list, live, owned);
            }
            (Value::Array(list), Some(Kind::List { merge: Merge::Set, .. })) => {
                let entries = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                for value in list {
                    // Another client may have doubled it, which an apply reverts.
                    let count = entries.iter().filter(|entry| *entry == value).count();
                    if count != 1 {
                        self.path.push_value(value);
                        self.note(Some(value), (count > 1).then_some(value), DifferenceKind::Value);
                        self.path.pop();
                    }
                }
                self.order(list, live, Value::clone);
            }
            _ => self.whole(node, desired, live, owned),
        }
    }

    fn map(&mut self, node: Option<&'s Node>, desired: &Map<String, Value>, live: Option<&Value>, owned: Owned<'_>) {
        match live {
            Some(Value::Object(live)) => {
                for (name, value) in desired {
                    self.field(node, name, value, live.get(name), owned);
                }
            }
            // The API server leaves out what is empty: then it is still owned.
            None if desired.is_empty() => {
                if !owned.is_unchanged() {
                    self.note(Some(&Value::Object(desired.clone())), None, DifferenceKind::Empty);
                }
            }
            None => {
                for (name, value) in desired {
                    self.field(node, name, value, None, owned);
                }
            }
            Some(live) => self.note(Some(&Value::Object(desired.clone())), Some(live), DifferenceKind::Value),
        }
    }

    fn keyed(
        &mut self,
        node: Option<&'s Node>,
        keys: &[String],
        desired: &[Value],
        live: Option<&Value>,
        owned: Owned<'_>,
    ) {
        let item = self.schema.item(node);
        let entries = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for entry in desired {
            let key = self.schema.key(item, keys, entry);
            let mut same = entries.iter().filter(|live| self.schema.key(item, keys, live) == key);
            self.path.push_key(&key);
            match (same.next(), same.next()) {
                (Some(live), None) => {
                    let part = owned.part(self.path.last());
                    self.value(item, entry, Some(live), part);
                }
                (None, _) => self.note(Some(entry), None, DifferenceKind::Value),
                // The last one of several counts.
                (Some(_), Some(second)) => {
                    let last = same.next_back().unwrap_or(second);
                    self.note(Some(entry), Some(last), DifferenceKind::Value);
                }
            }
            self.path.pop();
        }
        self.order(desired, live, |entry| self.schema.key(item, keys, entry));
    }

    /// The entries of a desired list must have their order, which an apply restores: containers start in it, and variables
    /// refer to earlier ones. Others may have added entries between them. The API server rejects a list with an entry twice.
    fn order<K: PartialEq>(&mut self, desired: &[Value], live: Option<&Value>, key: impl Fn(&Value) -> K) {
        let wanted: Vec<K> = desired.iter().map(&key).collect();
        let entries = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let places = wanted
            .iter()
            .filter_map(|wanted| entries.iter().position(|entry| key(entry) == *wanted));
        let is_ordered = places.is_sorted_by(|left, right| left < right);
        if !is_ordered {
            self.note(Some(&Value::Array(desired.to_vec())), live, DifferenceKind::Value);
        }
    }

    /// A value that has one owner.
    fn whole(&mut self, node: Option<&'s Node>, desired: &Value, live: Option<&Value>, owned: Owned<'_>) {
        let Some(live) = live else {
            if !is_empty(desired) || !owned.is_unchanged() {
                let kind = if is_empty(desired) {
                    DifferenceKind::Empty
                } else {
                    DifferenceKind::Value
                };
                self.note(Some(desired), None, kind);
            }
            return;
        };
        let unchanged = owned.is_unchanged();
        match equal(self.schema, node, desired, live, unchanged) {
            Equality::Equal => {}
            Equality::More => self.note(Some(desired), Some(live), DifferenceKind::More),
            Equality::Different if is_zero(desired) => self.note(Some(desired), Some(live), DifferenceKind::Empty),
            Equality::Different => self.note(Some(desired), Some(live), DifferenceKind::Value),
        }
    }

    /// The owned fields that are no longer desired.
    fn dropped(&mut self, node: Option<&'s Node>, owned: &Fields, desired: Option<&Value>, live: Option<&Value>) {
        for (key, part) in owned.parts() {
            // The field itself, in addition to its parts.
            if key == "." {
                continue;
            }
            let (inner, desired, live) = match self.step(node, key, desired, live) {
                Some(step) => step,
                None => continue,
            };
            match (desired, live) {
                (None, Some(live)) => self.note(None, Some(live), DifferenceKind::Dropped),
                (Some(_), Some(_)) => self.dropped(inner, part, desired, live),
                (_, None) => {}
            }
            self.path.pop();
        }
    }

    /// Goes to the part `key` of a field: its node, its desired and its live value.
    #[allow(clippy::type_complexity)]
    fn step<'v>(
        &mut self,
        node: Option<&'s Node>,
        key: &str,
        desired: Option<&'v Value>,
        live: Option<&'v Value>,
    ) -> Option<(Option<&'s Node>, Option<&'v Value>, Option<&'v Value>)> {
        let (kind, rest) = key.split_at_checked(2)?;
        match kind {
            "f:" => {
                self.path.push_field(rest);
                let in_object = |value: Option<&'v Value>| value?.get(rest);
                Some((self.schema.field(node, rest), in_object(desired), in_object(live)))
            }
            "k:" => {
                let key: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let names: Vec<String> = key.keys().cloned().collect();
                let item = self.schema.item(node);
                let schema = self.schema;
                self.path.push_key(&key);
                let entry = move |value: Option<&'v Value>| {
                    let mut entries = value?.as_array()?.iter();
                    entries.find(|entry| schema.key(item, &names, entry) == key)
                };
                Some((item, entry(desired), entry(live)))
            }
            "v:" => {
                let value: Value = serde_json::from_str(rest).ok()?;
                self.path.push_value(&value);
                let entry = |list: Option<&'v Value>| list?.as_array()?.iter().find(|entry| **entry == value);
                Some((self.schema.item(node), entry(desired), entry(live)))
            }
            _ => None,
        }
    }

    fn note(&mut self, desired: Option<&Value>, live: Option<&Value>, kind: DifferenceKind) {
        self.found.push(Difference {
            path: self.path.clone(),
            desired: desired.cloned(),
            live: live.cloned(),
            kind,
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Equality {
    Equal,
    /// All that is desired is there, and more.
    More,
    Different,
}

/// Compares two values by meaning. `unchanged`: no other client has changed the value since it was applied.
fn equal(schema: &Schema, node: Option<&Node>, desired: &Value, live: &Value, unchanged: bool) -> Equality {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => maps_equal(schema, node, desired, live, unchanged),
        (Value::Array(desired), Value::Array(live)) if desired.len() == live.len() => {
            let item = schema.item(node);
            let pairs = desired.iter().zip(live);
            all(pairs.map(|(desired, live)| equal(schema, item, desired, live, unchanged)))
        }
        // Admission appends tolerations and arguments.
        (Value::Array(desired), Value::Array(live)) if !desired.is_empty() => {
            let item = schema.item(node);
            let mut live = live.iter();
            let is_same = |desired: &Value, live| equal(schema, item, desired, live, unchanged) != Equality::Different;
            match desired.iter().all(|desired| live.any(|live| is_same(desired, live))) {
                true => Equality::More,
                false => Equality::Different,
            }
        }
        (desired, live) => match scalars_equal(node, desired, live) {
            true => Equality::Equal,
            false => Equality::Different,
        },
    }
}

fn maps_equal(
    schema: &Schema,
    node: Option<&Node>,
    desired: &Map<String, Value>,
    live: &Map<String, Value>,
    unchanged: bool,
) -> Equality {
    let (is_open, fields) = match node.map(|node| &node.kind) {
        Some(Kind::Map { open, fields, .. }) => (*open, Some(fields)),
        _ => (false, None),
    };
    let is_declared = |name: &str| fields.is_some_and(|fields| fields.contains_key(name));
    let wanted = desired
        .iter()
        .map(|(name, value)| match live.get(name).filter(|live| !live.is_null()) {
            Some(live) => equal(schema, schema.field(node, name), value, live, unchanged),
            None if value.is_null() => Equality::Equal,
            // An entry of a map is stored although its value is empty.
            None if is_open && !is_declared(name) => Equality::Different,
            // The API server has to name a field that the kind lacks.
            None if unchanged && is_empty(value) && schema.rejects(node, name) => Equality::More,
            None if unchanged && is_empty(value) => Equality::Equal,
            None => Equality::Different,
        });
    let more = live
        .iter()
        .filter(|(name, value)| !desired.contains_key(*name) && !value.is_null())
        .map(|(name, value)| {
            let default = schema.field(node, name).and_then(|node| node.default.as_ref());
            match is_declared(name) && default == Some(value) {
                true => Equality::Equal,
                // It may be a default that the schema does not contain, also if it is empty. But the empty selector of a peer means
                // all namespaces, and none means its own.
                false => Equality::More,
            }
        });
    all(wanted.chain(more))
}

fn all(parts: impl Iterator<Item = Equality>) -> Equality {
    parts.fold(Equality::Equal, |all, part| match (all, part) {
        (Equality::Different, _) | (_, Equality::Different) => Equality::Different,
        (Equality::More, _) | (_, Equality::More) => Equality::More,
        _ => Equality::Equal,
    })
}

fn scalars_equal(node: Option<&Node>, desired: &Value, live: &Value) -> bool {
    if desired == live {
        return true;
    }
    match (node.map(|node| &node.kind), desired, live) {
        (Some(Kind::Quantity), desired, live) => quantity::equal(&text(desired), &text(live)),
        (Some(Kind::Time), Value::String(desired), Value::String(live)) => {
            let time = |text: &str| text.parse::<Timestamp>().ok();
            time(desired).is_some() && time(desired) == time(live)
        }
        (_, Value::Number(desired), Value::Number(live)) => {
            // A float has room for 53 bits of an integer.
            let are_integers = [desired, live].iter().all(|number| number.is_i64() || number.is_u64());
            !are_integers && desired.as_f64() == live.as_f64()
        }
        _ => false,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value that Go's encoder leaves out.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        scalar => is_zero(scalar),
    }
}

/// The zero value of a scalar.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// `live` with the values of `desired` in it, as an apply by force merges them.
pub fn merged(schema: &Schema, node: Option<&Node>, desired: &Value, live: &Value) -> Value {
    match (desired, live, node.map(|node| &node.kind)) {
        (Value::Object(_), _, Some(Kind::Map { atomic: true, .. })) => desired.clone(),
        (Value::Object(desired), Value::Object(live), _) => {
            let mut merge = live.clone();
            for (name, value) in desired {
                let value = match live.get(name) {
                    Some(live) => merged(schema, schema.field(node, name), value, live),
                    None => value.clone(),
                };
                merge.insert(name.clone(), value);
            }
            Value::Object(merge)
        }
        (
            Value::Array(desired),
            Value::Array(live),
            Some(Kind::List {
                merge: Merge::Keyed(keys),
                ..
            }),
        ) => {
            let item = schema.item(node);
            let key = |entry: &Value| schema.key(item, keys, entry);
            let merge = |entry: &Value| match live.iter().find(|live| key(live) == key(entry)) {
                Some(live) => merged(schema, item, entry, live),
                None => entry.clone(),
            };
            Value::Array(ordered(desired, live, key, merge))
        }
        (Value::Array(desired), Value::Array(live), Some(Kind::List { merge: Merge::Set, .. })) => {
            Value::Array(ordered(desired, live, Value::clone, Value::clone))
        }
        _ => desired.clone(),
    }
}

/// The entries of both lists: the desired ones in their order, and the others where they are in `live`.
fn ordered<K: PartialEq>(
    desired: &[Value],
    live: &[Value],
    key: impl Fn(&Value) -> K,
    merge: impl Fn(&Value) -> Value,
) -> Vec<Value> {
    let wanted: Vec<K> = desired.iter().map(&key).collect();
    let (mut list, mut next) = (Vec::new(), 0);
    for entry in live {
        match wanted.iter().position(|wanted| *wanted == key(entry)) {
            None => list.push(entry.clone()),
            Some(place) => {
                list.extend(desired.iter().take(place + 1).skip(next).map(&merge));
                next = next.max(place + 1);
            }
        }
    }
    list.extend(desired.iter().skip(next).map(&merge));
    list
}

/// Sets the field at `path` in `desired` to its value in `live`, or removes it if `live` has none. The path has field names
/// only; in lists it means the field of each entry.
pub fn keep(schema: &Schema, node: Option<&Node>, desired: &mut Value, live: &Value, path: &[&str]) {
    let Some((name, rest)) = path.split_first() else { return };
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            let inner = schema.field(node, name);
            match (rest.is_empty(), desired.get_mut(*name), live.get(*name)) {
                (true, Some(value), Some(live)) => *value = live.clone(),
                (true, Some(_), None) => drop(desired.remove(*name)),
                (false, Some(value), Some(live)) => keep(schema, inner, value, live, rest),
                _ => {}
            }
        }
        (Value::Array(desired), Value::Array(live)) => {
            let item = schema.item(node);
            for (position, entry) in desired.iter_mut().enumerate() {
                let same = match node.map(|node| &node.kind) {
                    Some(Kind::List {
                        merge: Merge::Keyed(keys),
                        ..
                    }) => {
                        let key = schema.key(item, keys, entry);
                        live.iter().find(|live| schema.key(item, keys, live) == key)
                    }
                    _ => live.get(position),
                };
                if let Some(live) = same {
                    keep(schema, item, entry, live, path);
                }
            }
        }
        _ => {}
    }
}

/// Removes null values, which mean the same as absent ones unless the schema allows them. Adds their paths to `nulls`, except
/// those in lists without keys. `path` is that of `value`, or `None` in such a list.
pub fn strip_nulls(
    schema: &Schema,
    node: Option<&Node>,
    value: &mut Value,
    mut path: Option<&mut Path>,
    nulls: &mut Vec<Path>,
) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let field = schema.field(node, name);
            let is_null = value.is_null() && !field.is_some_and(|field| field.nullable);
            if !is_null && !value.is_object() && !value.is_array() {
                return true;
            }
            if let Some(path) = &mut path {
                path.push_field(name);
            }
            match is_null {
                true => nulls.extend(path.as_deref().cloned()),
                false => strip_nulls(schema, field, value, path.as_deref_mut(), nulls),
            }
            if let Some(path) = &mut path {
                path.pop();
            }
            !is_null
        }),
        Value::Array(list) => {
            let item = schema.item(node);
            let keys = match node.map(|node| &node.kind) {
                Some(Kind::List {
                    merge: Merge::Keyed(keys),
                    ..
                }) => Some(keys),
                _ => None,
            };
            let mut path = path.filter(|_| keys.is_some());
            for entry in list.iter_mut().filter(|entry| entry.is_object() || entry.is_array()) {
                if let (Some(path), Some(keys)) = (&mut path, keys) {
                    path.push_key(&schema.key(item, keys, entry));
                }
                strip_nulls(schema, item, entry, path.as_deref_mut(), nulls);
                if let Some(path) = &mut path {
                    path.pop();
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
