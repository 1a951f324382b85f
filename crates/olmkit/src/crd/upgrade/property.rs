//! The checks of one property.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::flatten::Flat;
use super::{Problem, Side, go_text};
use olmkit_go::strconv::quote;

/// A check's result for a property.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PropertyResult {
    pub validation: &'static str,
    pub text: String,
    /// The two schemas without the keywords that have a check, if they differ: two such differences are the same problem only if
    /// these are equal.
    rest: Option<(Schema, Schema)>,
    /// The keyword of the message.
    keyword: &'static str,
}

/// A schema without the schemas of its properties and items.
type Schema = Map<String, Value>;

impl PropertyResult {
    pub(super) fn problem(self, version: &str, property: &str, old: &Flat<'_>, new: &Flat<'_>) -> Problem {
        let there = new.properties.get(property);
        let (side, place) = match there {
            Some(place) => (Side::New, Some(place)),
            None => (Side::Old, old.properties.get(property)),
        };
        let mut pointer = place.map(|place| place.pointer.clone()).unwrap_or_default();
        if !self.keyword.is_empty() && place.is_some_and(|place| place.schema.get(self.keyword).is_some()) {
            pointer = format!("{pointer}/{}", self.keyword);
        }
        Problem {
            version: Some(version.to_owned()),
            property: Some(property.to_owned()),
            validation: self.validation,
            text: self.text,
            side,
            pointer,
        }
    }
}

/// The checks' results for the properties of the old schema, including removed ones.
pub(super) fn compare(old: &Flat<'_>, new: &Flat<'_>) -> BTreeMap<String, Vec<PropertyResult>> {
    let mut found = BTreeMap::new();
    for (path, place) in &old.properties {
        let there = new.properties.get(path);
        if there.is_some_and(|there| are_alone_equal(place.schema, there.schema)) {
            continue;
        }
        let now = there.map(|place| alone(place.schema)).unwrap_or_default();
        let said = check(alone(place.schema), now);
        if !said.is_empty() {
            found.insert(path.clone(), said);
        }
    }
    found
}

/// Returns true if two schemas are equal without the schemas of their properties and items.
fn are_alone_equal(one: &Value, other: &Value) -> bool {
    let (one, other) = (one.as_object(), other.as_object());
    let own = |schema: Option<&Map<String, Value>>| {
        let fields = schema.into_iter().flatten();
        fields
            .filter(|(key, _)| !matches!(key.as_str(), "properties" | "items"))
            .count()
    };
    let is_in = |(key, value): (&String, &Value)| {
        matches!(key.as_str(), "properties" | "items") || other.and_then(|other| other.get(key)) == Some(value)
    };
    own(one) == own(other) && one.into_iter().flatten().all(is_in)
}

/// A schema without the schemas of its properties and items, which are compared separately.
fn alone(schema: &Value) -> Schema {
    let fields = schema.as_object().into_iter().flatten();
    fields
        .filter(|(key, _)| !matches!(key.as_str(), "properties" | "items"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Upper limits and lower ones.
const MAXIMA: [&str; 4] = ["maximum", "maxItems", "maxLength", "maxProperties"];
const MINIMA: [&str; 4] = ["minimum", "minItems", "minLength", "minProperties"];

fn check(mut old: Schema, mut new: Schema) -> Vec<PropertyResult> {
    let mut found = Vec::new();
    let mut say = |keyword: &'static str, text: Option<String>| {
        found.extend(text.map(|text| PropertyResult {
            validation: keyword,
            text,
            rest: None,
            keyword,
        }));
    };
    let mut take = |keyword: &str| (old.remove(keyword), new.remove(keyword));
    say("default", default(take("default")));
    say("enum", values(take("enum")));
    for keyword in MAXIMA {
        say(keyword, limit(keyword, take(keyword), "maximum", Ordering::Less));
    }
    for keyword in MINIMA {
        say(keyword, limit(keyword, take(keyword), "minimum", Ordering::Greater));
    }
    say("required", required(take("required")));
    say("type", kind(take("type")));
    take("description");
    say("pattern", pattern(take("pattern")));
    say("nullable", nullable(take("nullable")));
    say("oneOf", alternatives(take("oneOf")));
    if old != new {
        found.push(PropertyResult {
            validation: "unhandled",
            text: go_text::unhandled(&old, &new),
            keyword: "",
            rest: Some((old, new)),
        });
    }
    found
}

type Both = (Option<Value>, Option<Value>);

fn default((old, new): Both) -> Option<String> {
    let raw = |value: &Value| quote(&olmkit_go::json::marshal(value));
    match (old, new) {
        (None, Some(new)) => Some(format!("default added when there was none previously : {}", raw(&new))),
        (Some(old), None) => Some(format!("default value removed : {}", raw(&old))),
        (Some(old), Some(new)) if old != new => Some(format!("default value changed : {} -> {}", raw(&old), raw(&new))),
        _ => None,
    }
}

/// The strings of a list. `raw` converts each.
fn set(list: Option<Value>, raw: impl Fn(&Value) -> String) -> BTreeSet<String> {
    let list = list.as_ref().and_then(Value::as_array);
    list.into_iter().flatten().map(raw).collect()
}

/// A list of strings in Go's printed form.
fn listed<'s>(texts: impl IntoIterator<Item = &'s String>) -> String {
    let texts: Vec<&str> = texts.into_iter().map(String::as_str).collect();
    format!("[{}]", texts.join(" "))
}

fn values((old, new): Both) -> Option<String> {
    let (old, new) = (set(old, olmkit_go::json::marshal), set(new, olmkit_go::json::marshal));
    if old.is_empty() && !new.is_empty() {
        return Some(format!(
            "enum constraint added when there was none previously : {}",
            listed(&new)
        ));
    }
    let gone: Vec<&String> = old.difference(&new).collect();
    (!gone.is_empty()).then(|| format!("allowed enum values removed : {}", listed(gone)))
}

/// A limit that was added, or moved to where it forbids more.
fn limit(keyword: &str, (old, new): Both, what: &str, forbids: Ordering) -> Option<String> {
    let new = new?;
    let text = |value: &Value| match keyword {
        "maximum" | "minimum" => olmkit_go::strconv::format_g(value.as_f64().unwrap_or_default()),
        _ => value.to_string(),
    };
    let Some(old) = old else {
        return Some(format!(
            "{what} constraint added when there was none previously : {}",
            text(&new)
        ));
    };
    let moved = new.as_f64().partial_cmp(&old.as_f64());
    let verb = if forbids == Ordering::Less {
        "decreased"
    } else {
        "increased"
    };
    (moved == Some(forbids)).then(|| format!("{what} {verb} : {} -> {}", text(&old), text(&new)))
}

fn required((old, new): Both) -> Option<String> {
    let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (old, new) = (set(old, name), set(new, name));
    let more: Vec<&String> = new.difference(&old).collect();
    (!more.is_empty()).then(|| format!("new required fields: {}", listed(more)))
}

fn text_of(value: &Option<Value>) -> &str {
    value.as_ref().and_then(Value::as_str).unwrap_or_default()
}

fn kind((old, new): Both) -> Option<String> {
    let (old, new) = (text_of(&old), text_of(&new));
    (old != new).then(|| format!("type changed : {} -> {}", quote(old), quote(new)))
}

fn pattern((old, new): Both) -> Option<String> {
    let (old, new) = (text_of(&old), text_of(&new));
    let verb = match (old, new) {
        _ if old == new => return None,
        ("", _) => "added",
        (_, "") => "removed",
        _ => "changed",
    };
    Some(format!("pattern {verb} : {} -> {}", quote(old), quote(new)))
}

fn nullable((old, new): Both) -> Option<String> {
    let set = |value: Option<Value>| value == Some(Value::Bool(true));
    match (set(old), set(new)) {
        (false, true) => Some("nullable added : false -> true".to_owned()),
        (true, false) => Some("nullable removed : true -> false".to_owned()),
        _ => None,
    }
}

fn alternatives((old, new): Both) -> Option<String> {
    let (old, new) = (set(old, go_text::schema), set(new, go_text::schema));
    if old.is_empty() && !new.is_empty() {
        return Some(format!(
            "oneOf constraint added when there was none previously: {}",
            listed(&new)
        ));
    }
    let gone: Vec<&String> = old.difference(&new).collect();
    if !gone.is_empty() {
        return Some(format!("allowed oneOf schemas removed: {}", listed(gone)));
    }
    let more: Vec<&String> = new.difference(&old).collect();
    (!more.is_empty()).then(|| format!("allowed oneOf schemas added: {}", listed(more)))
}
