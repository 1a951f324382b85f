//! Types and bounds of a structural schema.

use olmkit_cel::GoRegex;
use serde_json::{Map, Value};

use crate::object::is_string_format;

use super::range::{self, Range};
use super::{InstanceFault, InstanceFinding, REQUIRED, Work, flag, format, member};

/// Fields that the API server checks itself, regardless of the schema.
const OWN: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Checks an object against its root schema.
pub(super) fn check(schema: &Value, object: &Value, work: &mut Work) -> Vec<InstanceFinding> {
    let mut checker = Checker::new(Types::OfObjects, work);
    match object {
        Value::Object(fields) => {
            checker.object(schema, fields, &OWN, "");
            checker.combined(schema, object, "");
        }
        _ => checker.value(schema, object, ""),
    }
    checker.findings
}

/// Checks a default against its schema.
pub(super) fn check_default(schema: &Value, value: &Value, work: &mut Work) -> Vec<InstanceFinding> {
    let mut checker = Checker::new(Types::OfDefaults, work);
    checker.value(schema, value, "");
    checker.findings
}

/// The API server converts a schema in two ways: one for objects, one for defaults when the CRD is created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Types {
    /// `x-kubernetes-int-or-string` replaces the declared type, and unsupported formats are ignored.
    OfObjects,
    /// Only the declared type applies.
    OfDefaults,
}

impl Types {
    /// The types of a schema. Any value fits an empty list.
    fn of(self, schema: &Value) -> &'static [&'static str] {
        match self {
            Self::OfObjects => range::types_of_objects(schema),
            Self::OfDefaults => range::declared_types(schema),
        }
    }

    /// The format of a schema, or an empty string.
    fn format(self, schema: &Value) -> &str {
        let name = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        let is_used = self == Self::OfDefaults
            || match *self.of(schema) {
                ["string"] | [] | [_, _] => is_string_format(name),
                ["integer"] => matches!(name, "int32" | "int64"),
                ["number"] => matches!(name, "float" | "double"),
                _ => false,
            };
        if is_used { name } else { "" }
    }
}

struct Checker<'w> {
    types: Types,
    findings: Vec<InstanceFinding>,
    work: &'w mut Work,
}

impl<'w> Checker<'w> {
    fn new(types: Types, work: &'w mut Work) -> Self {
        Self {
            types,
            findings: Vec::new(),
            work,
        }
    }

    fn value(&mut self, schema: &Value, value: &Value, pointer: &str) {
        if self.work.budget.step(1).is_err() {
            return;
        }
        // Of null, the server checks only the type and the enum, which no null fits.
        if value.is_null() {
            let has_enum = schema
                .get("enum")
                .and_then(Value::as_array)
                .is_some_and(|allowed| !allowed.is_empty());
            if (flag(schema, "nullable") || self.has_type(schema, value, pointer)) && has_enum {
                self.fault(pointer, "must not be null, because the schema has an enum".to_owned());
            }
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
        let types = self.types.of(schema);
        let format = self.types.format(schema);
        if types.is_empty() && (format.is_empty() || value.is_null()) {
            return true;
        }
        let fits = types.iter().any(|wanted| match *wanted {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => range::is_integer(value),
            _ => true,
        });
        // The server's validator ignores the type of a string or list if the schema has a format, except for numbers.
        let is_open = !format.is_empty() && !types.iter().any(|wanted| matches!(*wanted, "number" | "integer"));
        if fits || (is_open && (value.is_string() || value.is_array())) {
            return true;
        }
        let wanted = match *types {
            [] => format!("fit the format {format} of a schema without type"),
            [wanted] => format!("be of type {wanted}"),
            _ => "be an integer or a string".to_owned(),
        };
        self.fault(pointer, format!("must {wanted}, is {}", brief(value)));
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
        let name = self.types.format(schema);
        if !format::holds(name, text) {
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
        let types = self.types.of(schema);
        let range = Range::new(types, self.types.format(schema));
        for (keyword, bound, wanted) in range.impossible_bounds(schema, types) {
            self.findings.push(InstanceFinding {
                pointer: pointer.to_owned(),
                fault: InstanceFault::Impossible,
                message: format!("cannot have a value: the {keyword} {bound} of its schema is not a {wanted}"),
            });
        }
        // The server compares integers with the integer part of a bound that is in range.
        let integer = number.as_i64();
        let part = |bound: f64| if range.holds(bound) { integer_part(bound) } else { bound };
        let compared = |bound: f64| if integer.is_some() { part(bound) } else { bound };
        if let Some(least) = bound("minimum") {
            let exclusive = flag(schema, "exclusiveMinimum");
            if value < compared(least) || (exclusive && value <= compared(least)) {
                let words = if exclusive { "greater than" } else { "at least" };
                self.fault(pointer, format!("must be {words} {least}, is {number}"));
            }
        }
        if let Some(most) = bound("maximum") {
            let exclusive = flag(schema, "exclusiveMaximum");
            if value > compared(most) || (exclusive && value >= compared(most)) {
                let words = if exclusive { "less than" } else { "at most" };
                self.fault(pointer, format!("must be {words} {most}, is {number}"));
            }
        }
        if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0)
            && !range::is_multiple(integer.filter(|_| range.holds(step)), value, step)
        {
            self.fault(pointer, format!("must be a multiple of {step}, is {number}"));
        }
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

/// The integer part of a bound, as the API server computes it on amd64: bounds beyond 64 bits become the least integer.
fn integer_part(bound: f64) -> f64 {
    const LEAST: f64 = -9_223_372_036_854_775_808.0;
    if (LEAST..-LEAST).contains(&bound) {
        bound.trunc()
    } else {
        LEAST
    }
}

/// Returns true if a value fits a member of an enum.
fn equal(allowed: &Value, value: &Value) -> bool {
    match (allowed, value) {
        (Value::Number(allowed), Value::Number(value)) => {
            let is_equal = allowed.as_f64() == value.as_f64();
            // The server converts the value to the type of the allowed one.
            #[expect(clippy::cast_possible_truncation, reason = "as the API server does")]
            let is_part =
                allowed.is_i64() && value.is_f64() && allowed.as_i64() == value.as_f64().map(|value| value as i64);
            is_equal || is_part
        }
        _ => allowed == value,
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
