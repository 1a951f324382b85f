//! Types and bounds of a structural schema.

use olmkit_cel::GoRegex;
use serde_json::{Map, Value};

use super::range::{Range, impossible_bounds};
use super::{InstanceFault, InstanceFinding, REQUIRED, Work, flag, format, member};

/// Fields that the API server checks itself, regardless of the schema.
const OWN: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Checks an object against its root schema.
pub(super) fn check(schema: &Value, object: &Value, work: &mut Work) -> Vec<InstanceFinding> {
    let mut checker = Checker::new(work);
    match object {
        Value::Object(fields) => {
            checker.object(schema, fields, &OWN, "");
            checker.combined(schema, object, "");
        }
        _ => checker.value(schema, object, ""),
    }
    checker.findings
}

/// Checks a value against a schema below the root.
pub(super) fn check_value(schema: &Value, value: &Value, work: &mut Work) -> Vec<InstanceFinding> {
    let mut checker = Checker::new(work);
    checker.value(schema, value, "");
    checker.findings
}

struct Checker<'w> {
    findings: Vec<InstanceFinding>,
    work: &'w mut Work,
}

impl<'w> Checker<'w> {
    fn new(work: &'w mut Work) -> Self {
        Self {
            findings: Vec::new(),
            work,
        }
    }

    fn value(&mut self, schema: &Value, value: &Value, pointer: &str) {
        if self.work.budget.step(1).is_err() {
            return;
        }
        if value.is_null() && flag(schema, "nullable") {
            return;
        }
        if !self.has_type(schema, value, pointer) {
            return;
        }
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
            && !allowed.iter().any(|one| equal(one, value))
        {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            self.fault(
                pointer,
                format!("must be one of {}, is {}", allowed.join(", "), brief(value)),
            );
        }
        match value {
            Value::Object(fields) => self.object(schema, fields, &[], pointer),
            Value::Array(items) => self.array(schema, items, pointer),
            Value::String(text) => self.string(schema, text, pointer),
            Value::Number(number) => self.number(schema, number, pointer),
            _ => {}
        }
        self.combined(schema, value, pointer);
    }

    fn has_type(&mut self, schema: &Value, value: &Value, pointer: &str) -> bool {
        if flag(schema, "x-kubernetes-int-or-string") {
            if is_integer(value) || value.is_string() {
                return true;
            }
            self.fault(pointer, format!("must be an integer or a string, is {}", brief(value)));
            return false;
        }
        let Some(wanted) = schema.get("type").and_then(Value::as_str) else {
            return true;
        };
        let fits = match wanted {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => is_integer(value),
            _ => true,
        };
        // The server's validator ignores the type of a string or list if the schema has a format, except for numbers.
        let has_format = schema
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(|name| !name.is_empty());
        let is_open = has_format && !matches!(wanted, "number" | "integer");
        if fits || (is_open && (value.is_string() || value.is_array())) {
            return true;
        }
        self.fault(pointer, format!("must be of type {wanted}, is {}", brief(value)));
        false
    }

    fn object(&mut self, schema: &Value, fields: &Map<String, Value>, skipped: &[&str], pointer: &str) {
        for name in schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            if !fields.contains_key(name) && !skipped.contains(&name) {
                self.fault(&member(pointer, name), REQUIRED.to_owned());
            }
        }
        self.count(
            schema,
            ["minProperties", "maxProperties"],
            fields.len(),
            "fields",
            pointer,
        );
        let known = schema.get("properties");
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        for (name, field) in fields.iter().filter(|(name, _)| !skipped.contains(&name.as_str())) {
            if let Some(schema) = known.and_then(|known| known.get(name)).or(others) {
                self.value(schema, field, &member(pointer, name));
            }
        }
    }

    fn array(&mut self, schema: &Value, items: &[Value], pointer: &str) {
        self.count(schema, ["minItems", "maxItems"], items.len(), "items", pointer);
        if let Some(schema) = schema.get("items") {
            for (at, item) in items.iter().enumerate() {
                self.value(schema, item, &format!("{pointer}/{at}"));
            }
        }
        let keys: Vec<Value> = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => items.to_vec(),
            Some("map") => {
                let names = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                let names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
                let key = |item: &Value| {
                    names
                        .iter()
                        .map(|name| item.get(name).cloned().unwrap_or_default())
                        .collect()
                };
                items.iter().map(key).collect()
            }
            _ => return,
        };
        let mut seen = std::collections::HashSet::new();
        for (at, key) in keys.iter().enumerate() {
            if !seen.insert(key.to_string()) {
                self.fault(
                    &format!("{pointer}/{at}"),
                    format!("is a duplicate of an earlier item ({})", brief(key)),
                );
            }
        }
    }

    fn string(&mut self, schema: &Value, text: &str, pointer: &str) {
        self.count(
            schema,
            ["minLength", "maxLength"],
            text.chars().count(),
            "characters",
            pointer,
        );
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && self.matches(pattern, text) == Some(false)
        {
            self.fault(
                pointer,
                format!("must match the pattern {pattern}, is {}", brief(&text.into())),
            );
        }
        if let Some(name) = schema.get("format").and_then(Value::as_str)
            && !format::holds(name, text)
        {
            self.fault(
                pointer,
                format!("must have the format {name}, is {}", brief(&text.into())),
            );
        }
    }

    /// Returns true if a string matches a pattern. `None` if only Go can decide, or the budget is exhausted.
    fn matches(&mut self, pattern: &str, text: &str) -> Option<bool> {
        let Work { budget, patterns } = &mut *self.work;
        if !patterns.contains_key(pattern) {
            patterns.insert(pattern.to_owned(), GoRegex::within(pattern, budget).ok());
        }
        patterns.get(pattern)?.as_ref()?.is_match_within(text, budget).ok()
    }

    fn number(&mut self, schema: &Value, number: &serde_json::Number, pointer: &str) {
        let Some(value) = number.as_f64() else { return };
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        for (keyword, bound, wanted) in impossible_bounds(schema) {
            self.findings.push(InstanceFinding {
                pointer: pointer.to_owned(),
                fault: InstanceFault::Impossible,
                message: format!("cannot have a value: the {keyword} {bound} of its schema is not a {wanted}"),
            });
        }
        if let Some(least) = bound("minimum") {
            let exclusive = flag(schema, "exclusiveMinimum");
            if value < least || (exclusive && value <= least) {
                let words = if exclusive { "greater than" } else { "at least" };
                self.fault(pointer, format!("must be {words} {least}, is {number}"));
            }
        }
        if let Some(most) = bound("maximum") {
            let exclusive = flag(schema, "exclusiveMaximum");
            if value > most || (exclusive && value >= most) {
                let words = if exclusive { "less than" } else { "at most" };
                self.fault(pointer, format!("must be {words} {most}, is {number}"));
            }
        }
        if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0)
            && ((value / step) - (value / step).round()).abs() > 1e-9
        {
            self.fault(pointer, format!("must be a multiple of {step}, is {number}"));
        }
        let range = Range::of(schema);
        let is_exact = range == Range::Int64 && number.is_i64();
        if !is_exact && !range.holds(value) {
            self.fault(pointer, format!("must be a {}, is {number}", range.name()));
        }
    }

    fn count(&mut self, schema: &Value, [least, most]: [&str; 2], count: usize, what: &str, pointer: &str) {
        // A negative bound is allowed, and no count is below it.
        let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if let Some(least) = bound(least).filter(|least| count < *least) {
            self.fault(pointer, format!("must have at least {least} {what}, has {count}"));
        }
        if let Some(most) = bound(most).filter(|most| count > *most) {
            self.fault(pointer, format!("must have at most {most} {what}, has {count}"));
        }
    }

    fn combined(&mut self, schema: &Value, value: &Value, pointer: &str) {
        let list = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
        for part in list("allOf") {
            self.value(part, value, pointer);
        }
        if list("anyOf").next().is_some() && !list("anyOf").any(|part| self.fits(part, value, pointer)) {
            self.fault(
                pointer,
                "must fit at least one of the alternatives under anyOf".to_owned(),
            );
        }
        let fitting = list("oneOf").filter(|part| self.fits(part, value, pointer)).count();
        if list("oneOf").next().is_some() && fitting != 1 {
            self.fault(
                pointer,
                format!("must fit exactly one of the alternatives under oneOf, fits {fitting}"),
            );
        }
        if schema.get("not").is_some_and(|part| self.fits(part, value, pointer)) {
            self.fault(pointer, "must not fit the schema under not".to_owned());
        }
    }

    /// Returns true if a value has no fault against a part of a schema.
    fn fits(&mut self, part: &Value, value: &Value, pointer: &str) -> bool {
        let before = std::mem::take(&mut self.findings);
        self.value(part, value, pointer);
        std::mem::replace(&mut self.findings, before).is_empty()
    }

    fn fault(&mut self, pointer: &str, message: String) {
        // Not all of the value was checked, so alternatives can only seem to fit.
        if self.work.is_exhausted() {
            return;
        }
        self.findings.push(InstanceFinding {
            pointer: pointer.to_owned(),
            fault: InstanceFault::Invalid,
            message,
        });
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

/// A value for a message: whole if it is short.
fn brief(value: &Value) -> String {
    const SHOWN: usize = 60;
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        _ => {
            let text = value.to_string();
            match text.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
                None => text,
            }
        }
    }
}
