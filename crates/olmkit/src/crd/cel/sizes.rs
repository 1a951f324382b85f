//! Maximum sizes of the values of a schema: the numbers in the API server's cost estimate for rules. They are part of
//! its API, because they decide which rules it accepts.

use std::collections::{BTreeMap, HashSet};

use olmkit_cel::escape;
use serde_json::Value;

use super::{OBJECT_FIELDS, flag, is_embedded, object_field, text};

/// Maximum bytes of a request.
const REQUEST: u64 = 3 * 1024 * 1024;
/// Maximum characters of a date, a time or a duration, with quotes.
const DATE: u64 = 12;
const TIME: u64 = 32;

/// The sizes of the values of a schema.
pub(in crate::crd) struct Sizes {
    /// Maximum number of characters, items or entries; 0 for values without a size.
    most: u64,
    /// Least bytes of a value in JSON.
    least_bytes: u64,
    below: Below,
}

enum Below {
    Nothing,
    Fields(BTreeMap<String, Sizes>),
    Items(Box<Sizes>),
    Values(Box<Sizes>),
}

impl Sizes {
    /// The sizes of a schema. `None` when expressions cannot see its values.
    pub(in crate::crd) fn new(schema: &Value, is_object: bool) -> Option<Self> {
        let number = |name: &str| {
            let given = schema.get(name).and_then(Value::as_i64);
            given.map(|given| u64::try_from(given).unwrap_or(0))
        };
        let plain = |most, least_bytes| {
            let below = Below::Nothing;
            Some(Self {
                most,
                least_bytes,
                below,
            })
        };
        // A character has up to four bytes.
        let characters = || number("maxLength").map(|length| length.saturating_mul(4));
        if flag(schema, "x-kubernetes-int-or-string") {
            return plain(characters().unwrap_or(REQUEST - 2), 1);
        }
        match text(schema, "type") {
            "array" => {
                let items = schema.get("items")?;
                let items = Self::new(items, is_embedded(items))?;
                Some(Self {
                    most: number("maxItems").unwrap_or((REQUEST - 2) / (items.least_bytes + 1)),
                    least_bytes: 2,
                    below: Below::Items(Box::new(items)),
                })
            }
            "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
                Some(values) => {
                    let values = Self::new(values, is_embedded(values))?;
                    Some(Self {
                        most: number("maxProperties").unwrap_or((REQUEST - 2) / (values.least_bytes + 6)),
                        least_bytes: 2,
                        below: Below::Values(Box::new(values)),
                    })
                }
                None => Some(Self::of_fields(schema, is_object)),
            },
            "string" => match text(schema, "format") {
                "byte" => plain(number("maxLength").unwrap_or(REQUEST - 2), 2),
                "duration" => plain(TIME, 3),
                "date" => plain(DATE, DATE),
                "date-time" => plain(TIME, 21),
                _ => plain(characters().or_else(|| longest(schema)).unwrap_or(REQUEST - 2), 2),
            },
            "boolean" => plain(0, 4),
            "number" | "integer" => plain(0, 1),
            _ => None,
        }
    }

    fn of_fields(schema: &Value, is_object: bool) -> Self {
        let required = schema.get("required").and_then(Value::as_array);
        let required: HashSet<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
        let is_required = |name: &str| required.contains(name);
        let mut least_bytes = 2;
        let mut fields = BTreeMap::new();
        let mut add = |name: &str, own: &Value| {
            let Some(sizes) = Self::new(own, is_embedded(own)) else {
                return;
            };
            if is_required(name) && own.get("default").is_none_or(Value::is_null) {
                let length = u64::try_from(name.len()).unwrap_or(u64::MAX);
                least_bytes = sizes.least_bytes.saturating_add(length).saturating_add(4 + least_bytes);
            }
            if let Some(escaped) = escape(name) {
                fields.insert(escaped, sizes);
            }
        };
        let always = |name: &str| if is_object { object_field(schema, name) } else { None };
        let named = schema.get("properties").and_then(Value::as_object);
        for (name, own) in named.into_iter().flatten().filter(|(name, _)| always(name).is_none()) {
            add(name, own);
        }
        for name in OBJECT_FIELDS {
            if let Some(own) = always(name) {
                add(name, &own);
            }
        }
        Self {
            most: 0,
            least_bytes,
            below: Below::Fields(fields),
        }
    }

    /// The maximum size of a nested value, see [`olmkit_cel::Sizes`].
    pub(in crate::crd) fn at(&self, path: &[&str]) -> Option<u64> {
        let Some((name, rest)) = path.split_first() else {
            return Some(self.most);
        };
        match (&self.below, *name) {
            (Below::Items(items), "@items") => items.at(rest),
            (Below::Values(values), "@values" | "@items") => values.at(rest),
            // The server takes the keys of maps to have no size.
            (Below::Values(_), "@keys") => rest.is_empty().then_some(0),
            (Below::Fields(fields), name) => fields.get(name)?.at(rest),
            _ => None,
        }
    }

    /// Maximum number of such values in a request.
    pub(in crate::crd) fn most_values(&self) -> u64 {
        REQUEST / self.least_bytes.saturating_add(1)
    }
}

/// The length of the longest string in an enumeration.
fn longest(schema: &Value) -> Option<u64> {
    let allowed = schema
        .get("enum")
        .and_then(Value::as_array)
        .filter(|allowed| !allowed.is_empty())?;
    let lengths = allowed.iter().filter_map(Value::as_str).map(str::len);
    u64::try_from(lengths.max().unwrap_or(0)).ok()
}
