//! Compares two schemas of one version: finds objects of the older one that the newer one rejects or prunes.

use std::collections::HashSet;

use serde_json::Value;

use super::Loss;
use crate::crd::instance::{flag, member};
use crate::limits;

/// A removal from a schema.
#[derive(Debug)]
pub(super) struct SchemaChange {
    pub(super) loss: Loss,
    /// Path in an object: `spec.ports[].name`.
    pub(super) path: String,
    /// Pointer in the newer schema.
    pub(super) pointer: String,
    pub(super) message: String,
    pub(super) hint: &'static str,
}

const KEEP_VALUES: &str = "objects in clusters may hold such values: OLM then rejects the upgrade (\"updated validation is too \
                           restrictive\"); allow them still, or make a new version and convert";
const KEEP_FIELD: &str =
    "keep the field in the schema, marked as deprecated in its description, or convert to a new version";

pub(super) fn compare(old: &Value, new: &Value) -> Vec<SchemaChange> {
    let mut walk = Walk { found: Vec::new() };
    walk.schema(old, new, &Place::default(), 0);
    walk.found
}

/// Position of the walk, in an object and in the newer schema.
#[derive(Debug, Clone, Default)]
struct Place {
    path: String,
    pointer: String,
}

impl Place {
    fn property(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Place {
            path: format!("{}{dot}{name}", self.path),
            pointer: member(&format!("{}/properties", self.pointer), name),
        }
    }

    fn inner(&self, keyword: &str) -> Self {
        let suffix = if keyword == "items" { "[]" } else { ".*" };
        Place {
            path: format!("{}{suffix}", self.path),
            pointer: format!("{}/{keyword}", self.pointer),
        }
    }
}

struct Walk {
    found: Vec<SchemaChange>,
}

impl Walk {
    fn lose(&mut self, loss: Loss, place: &Place, keyword: &str, message: impl Into<String>) {
        let pointer = if keyword.is_empty() {
            place.pointer.clone()
        } else {
            format!("{}/{keyword}", place.pointer)
        };
        self.found.push(SchemaChange {
            loss,
            path: place.path.clone(),
            pointer,
            message: message.into(),
            hint: if loss == Loss::Field { KEEP_FIELD } else { KEEP_VALUES },
        });
    }

    fn schema(&mut self, old: &Value, new: &Value, place: &Place, depth: usize) {
        // Most parts of a CRD do not change.
        if depth > limits::COMPARED_DEPTH.count() || old == new {
            return;
        }
        if !self.kind(old, new, place) {
            return;
        }
        self.values(old, new, place);
        self.bounds(old, new, place);
        self.rules(old, new, place);
        self.conditions(old, new, place);
        self.required(old, new, place);
        self.fields(old, new, place, depth);
        if let (Some(before), Some(now)) = (old.get("items"), new.get("items")) {
            self.schema(before, now, &place.inner("items"), depth + 1);
        }
        if let (Some(before), Some(now)) = (object(old, "additionalProperties"), object(new, "additionalProperties")) {
            self.schema(before, now, &place.inner("additionalProperties"), depth + 1);
        }
    }

    /// Compares types. `false` when nothing below can be compared.
    fn kind(&mut self, old: &Value, new: &Value, place: &Place) -> bool {
        // A null takes the default where there is one.
        if flag(old, "nullable") && !flag(new, "nullable") && new.get("default").is_none() {
            self.lose(Loss::Value, place, "", "could be null");
        }
        let (before, now) = (kind(old), kind(new));
        let wider = matches!(
            (before, now),
            (_, "") | ("integer", "number" | "integer or string") | ("string", "integer or string")
        );
        if before == now || wider {
            return true;
        }
        let before = if before.is_empty() { "of any type" } else { before };
        self.lose(
            Loss::Value,
            place,
            "type",
            format!("was {before} and must now be {now}"),
        );
        false
    }

    fn values(&mut self, old: &Value, new: &Value, place: &Place) {
        let Some(now) = new.get("enum").and_then(Value::as_array) else {
            return;
        };
        match old.get("enum").and_then(Value::as_array) {
            None => self.lose(
                Loss::Value,
                place,
                "enum",
                "accepted any value and now accepts only those of a list",
            ),
            Some(before) => {
                let now: HashSet<&Value> = now.iter().collect();
                let gone: Vec<String> = before
                    .iter()
                    .filter(|value| !now.contains(value))
                    .map(Value::to_string)
                    .collect();
                if !gone.is_empty() {
                    self.lose(
                        Loss::Value,
                        place,
                        "enum",
                        format!("no longer accepts {}", gone.join(", ")),
                    );
                }
            }
        }
    }

    fn bounds(&mut self, old: &Value, new: &Value, place: &Place) {
        let number = |schema: &Value, keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        let upper = [
            ("maximum", "exclusiveMaximum"),
            ("maxLength", ""),
            ("maxItems", ""),
            ("maxProperties", ""),
        ];
        let lower = [
            ("minimum", "exclusiveMinimum"),
            ("minLength", ""),
            ("minItems", ""),
            ("minProperties", ""),
        ];
        for (keywords, sign) in [(upper, 1.0), (lower, -1.0)] {
            for (keyword, exclusive) in keywords {
                let Some(now) = number(new, keyword) else { continue };
                let before = number(old, keyword);
                let narrower = before.is_none_or(|before| now * sign < before * sign);
                let opened = before == Some(now) && flag(new, exclusive) && !flag(old, exclusive);
                // Lengths and numbers of items are always at least 0.
                let says_nothing = sign < 0.0 && keyword != "minimum" && now <= 0.0;
                if (narrower || opened) && !says_nothing {
                    let was = before.map_or("without".to_string(), |before| before.to_string());
                    let now = if opened {
                        format!("{now} exclusively")
                    } else {
                        now.to_string()
                    };
                    self.lose(Loss::Value, place, keyword, format!("has {keyword} {now}, was {was}"));
                }
            }
        }
        if let Some(now) = number(new, "multipleOf")
            && number(old, "multipleOf") != Some(now)
        {
            self.lose(Loss::Value, place, "multipleOf", format!("must be a multiple of {now}"));
        }
        for keyword in ["pattern", "format"] {
            let of = |schema| text(schema, keyword);
            // Formats of numbers specify their width, which few objects exceed.
            if !of(new).is_empty() && of(new) != of(old) && !(keyword == "format" && is_number(new)) {
                let message = match of(old) {
                    "" => format!("must fit the {keyword} {:?}", of(new)),
                    before => format!("has the {keyword} {:?}, was {before:?}", of(new)),
                };
                self.lose(Loss::Value, place, keyword, message);
            }
        }
        let unique = |schema: &Value| {
            flag(schema, "uniqueItems") || matches!(text(schema, "x-kubernetes-list-type"), "set" | "map")
        };
        if unique(new) && !unique(old) {
            self.lose(
                Loss::Value,
                place,
                "x-kubernetes-list-type",
                "may no longer hold an item twice",
            );
        }
    }

    /// A new or changed rule may reject values that were allowed.
    fn rules(&mut self, old: &Value, new: &Value, place: &Place) {
        let rules = |schema| list(schema, "x-kubernetes-validations");
        let known: HashSet<&str> = rules(old).iter().map(|rule| text(rule, "rule")).collect();
        for (at, rule) in rules(new).iter().enumerate() {
            let says = text(rule, "rule");
            // A transition rule only affects future changes.
            if known.contains(&says) || says.contains("oldSelf") {
                continue;
            }
            let says = says.split_whitespace().collect::<Vec<_>>().join(" ");
            let keyword = format!("x-kubernetes-validations/{at}");
            self.lose(Loss::Value, place, &keyword, format!("must satisfy a new rule: {says}"));
        }
    }

    fn required(&mut self, old: &Value, new: &Value, place: &Place) {
        let known: HashSet<&str> = list(old, "required").iter().filter_map(Value::as_str).collect();
        for name in list(new, "required").iter().filter_map(Value::as_str) {
            let was = known.contains(name);
            let has_default = property(new, name).is_some_and(|schema| schema.get("default").is_some());
            if !was && !has_default {
                self.lose(
                    Loss::Value,
                    &place.property(name),
                    "",
                    "is required now and has no default",
                );
            }
        }
    }

    /// Alternatives cannot be compared, but new ones can be reported.
    fn conditions(&mut self, old: &Value, new: &Value, place: &Place) {
        for keyword in ["allOf", "anyOf", "oneOf", "not"] {
            // `anyOf: [integer, string]` belongs to every such field.
            let usual = keyword == "anyOf" && kind(new) == "integer or string";
            if new.get(keyword).is_some() && old.get(keyword).is_none() && !usual {
                self.lose(
                    Loss::Value,
                    place,
                    keyword,
                    format!("must satisfy a new condition ({keyword})"),
                );
            }
        }
    }

    fn fields(&mut self, old: &Value, new: &Value, place: &Place, depth: usize) {
        let any_name = |schema: &Value| {
            schema
                .get("additionalProperties")
                .is_some_and(|value| value != &Value::Bool(false))
        };
        let keeps = |schema: &Value| flag(schema, "x-kubernetes-preserve-unknown-fields");
        let keeps_unknown = keeps(new) || any_name(new);
        if !keeps_unknown && keeps(old) {
            let message = "kept fields that the schema does not name and drops them now";
            self.lose(Loss::Field, place, "", message);
        } else if !keeps_unknown && any_name(old) {
            self.lose(Loss::Field, place, "", "had fields of any name and drops them now");
        }
        let before = old.get("properties").and_then(Value::as_object);
        for (name, before) in before.into_iter().flatten() {
            match property(new, name) {
                Some(now) => self.schema(before, now, &place.property(name), depth + 1),
                None if keeps_unknown => {}
                None => {
                    let message = "was removed from the schema: the API server drops it from objects";
                    self.lose(Loss::Field, &place.property(name), "", message);
                }
            }
        }
    }
}

fn text<'v>(schema: &'v Value, keyword: &str) -> &'v str {
    schema.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(schema: &'v Value, keyword: &str) -> &'v [Value] {
    schema
        .get(keyword)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn object<'v>(schema: &'v Value, keyword: &str) -> Option<&'v Value> {
    schema.get(keyword).filter(|value| value.is_object())
}

fn property<'v>(schema: &'v Value, name: &str) -> Option<&'v Value> {
    schema.get("properties")?.get(name)
}

fn is_number(schema: &Value) -> bool {
    matches!(kind(schema), "integer" | "number")
}

/// The type in words. Empty if any type fits.
fn kind(schema: &Value) -> &str {
    if flag(schema, "x-kubernetes-int-or-string") {
        return "integer or string";
    }
    text(schema, "type")
}
