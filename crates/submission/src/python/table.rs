//! Maps with values as keys, in linear time for any keys, because a repository may be untrusted.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{Node, Value};

/// Up to this many entries a walk along them is quicker than a table.
const FEW: usize = 16;

/// When two values are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Equality {
    /// Python's `==`: 1, 1.0 and True are equal.
    Python,
    /// That of JSON: a boolean is not a number.
    Json,
}

/// Values by key. An entry that is replaced keeps its position.
pub(crate) struct Table<K, V> {
    equality: Equality,
    entries: Vec<(K, V)>,
    places: HashMap<u64, Vec<usize>>,
}

impl<K: Borrow<Node>, V> Table<K, V> {
    pub(crate) fn new(equality: Equality) -> Self {
        Self {
            equality,
            entries: Vec::new(),
            places: HashMap::new(),
        }
    }

    fn find(&self, key: &Node, alike: &[usize]) -> Option<usize> {
        let is_same = |at: &usize| {
            let entry = self.entries.get(*at);
            entry.is_some_and(|(other, _)| self.equality.holds(key, other.borrow()))
        };
        alike.iter().copied().find(is_same)
    }

    fn place(&self, key: &Node) -> Option<usize> {
        let alike = self.places.get(&self.equality.fingerprint(key))?;
        self.find(key, alike)
    }

    pub(crate) fn get(&self, key: &Node) -> Option<&V> {
        self.place(key)
            .and_then(|at| self.entries.get(at))
            .map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, key: &Node) -> Option<&mut V> {
        let at = self.place(key)?;
        self.entries.get_mut(at).map(|(_, value)| value)
    }

    /// Inserts a value and returns the previous one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let fingerprint = self.equality.fingerprint(key.borrow());
        let alike = self.places.get(&fingerprint).map(Vec::as_slice).unwrap_or_default();
        if let Some(at) = self.find(key.borrow(), alike) {
            let (_, known) = self.entries.get_mut(at)?;
            return Some(std::mem::replace(known, value));
        }
        // NaN is not even equal to itself: nothing finds it again, so it need not be compared with the next one.
        if alike.is_empty() || self.equality.holds(key.borrow(), key.borrow()) {
            self.places.entry(fingerprint).or_default().push(self.entries.len());
        }
        self.entries.push((key, value));
        None
    }

    pub(crate) fn into_entries(self) -> Vec<(K, V)> {
        self.entries
    }
}

impl Equality {
    /// Returns true if two values are one.
    pub(crate) fn holds(self, a: &Node, b: &Node) -> bool {
        #[cfg(test)]
        counted::COMPARED.with(|count| count.set(count.get() + 1));
        match (&a.value, &b.value) {
            (Value::Bool(_), Value::Bool(_)) => a.value == b.value,
            (Value::Bool(_), _) | (_, Value::Bool(_)) if self == Self::Json => false,
            (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.holds(a, b)),
            (Value::Dict(a), Value::Dict(b)) => a.len() == b.len() && self.holds_for_entries(a, b),
            (a, b) => match (number(a), number(b)) {
                (Some(a), Some(b)) => a == b,
                (None, None) => a == b,
                _ => false,
            },
        }
    }

    /// The order of the entries does not count.
    fn holds_for_entries(self, a: &[(Node, Node)], b: &[(Node, Node)]) -> bool {
        if a.len() <= FEW {
            let is_in_b = |(key, value): &(Node, Node)| {
                b.iter()
                    .any(|(name, other)| Self::Python.holds(key, name) && self.holds(value, other))
            };
            return a.iter().all(is_in_b);
        }
        let mut table: Table<&Node, &Node> = Table::new(Self::Python);
        for (key, value) in b {
            table.insert(key, value);
        }
        a.iter()
            .all(|(key, value)| table.get(key).is_some_and(|other| self.holds(value, other)))
    }

    /// A hash like Python's `hash`: equal values have the same one, different values rarely.
    fn fingerprint(self, node: &Node) -> u64 {
        let mut hasher = DefaultHasher::new();
        match (&node.value, number(&node.value)) {
            (Value::Bool(value), _) if self == Self::Json => value.hash(&mut hasher),
            (_, Some(number)) => (if number == 0.0 { 0.0 } else { number }).to_bits().hash(&mut hasher),
            (Value::Str(text), _) => text.hash(&mut hasher),
            (Value::List(items), _) => items.iter().for_each(|item| self.fingerprint(item).hash(&mut hasher)),
            (Value::Dict(entries), _) => entries
                .iter()
                .fold(0, |all: u64, (key, value)| {
                    let mut hasher = DefaultHasher::new();
                    (Self::Python.fingerprint(key), self.fingerprint(value)).hash(&mut hasher);
                    all.wrapping_add(hasher.finish())
                })
                .hash(&mut hasher),
            (value, None) => format!("{value:?}").hash(&mut hasher),
        }
        hasher.finish()
    }
}

/// The number that a value is to `==`.
#[expect(clippy::cast_precision_loss, reason = "only equality of small numbers matters")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

/// Number of comparisons, which size tests check because time is unreliable on a busy machine.
#[cfg(test)]
pub(crate) mod counted {
    use std::cell::Cell;

    thread_local! {
        pub(crate) static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// The number of comparisons in a function.
    pub(crate) fn comparisons(function: impl FnOnce()) -> usize {
        let before = COMPARED.with(Cell::get);
        function();
        COMPARED.with(Cell::get) - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i64) -> Node {
        Node::new(Value::Int(value))
    }

    fn number(value: f64) -> Node {
        Node::new(Value::Float(value))
    }

    #[test]
    fn equal_keys_are_one_entry() {
        let mut table = Table::new(Equality::Python);
        assert_eq!(table.insert(int(1), "a"), None);
        assert_eq!(table.insert(number(1.0), "b"), Some("a"));
        assert_eq!(table.insert(Node::new(Value::Bool(true)), "c"), Some("b"));
        assert_eq!((table.get(&int(1)), table.get(&int(2))), (Some(&"c"), None));
        let mut table = Table::new(Equality::Json);
        assert_eq!(table.insert(int(1), "a"), None);
        assert_eq!(table.insert(Node::new(Value::Bool(true)), "b"), None);
        assert_eq!(table.into_entries().len(), 2);
    }

    #[test]
    fn nan_keys_are_never_found_and_use_no_memory() {
        let mut table = Table::new(Equality::Python);
        let count = counted::comparisons(|| {
            for _ in 0..10_000 {
                assert_eq!(table.insert(number(f64::NAN), ()), None);
            }
        });
        assert!(count <= 20_000, "{count}");
        assert_eq!(table.get(&number(f64::NAN)), None);
    }

    #[test]
    fn large_mappings_are_compared_in_linear_time() {
        let of = |keys: &mut dyn Iterator<Item = i64>| {
            Node::new(Value::Dict(keys.map(|key| (int(key), int(key))).collect()))
        };
        let (up, down) = (of(&mut (0..10_000)), of(&mut (0..10_000).rev()));
        let count = counted::comparisons(|| assert!(up.equals(&down)));
        assert!(count < 100_000, "{count}");
        assert!(!up.equals(&of(&mut (1..10_001))));
    }
}
