//! CEL rules (`x-kubernetes-validations`).

use std::collections::HashMap;
use std::rc::Rc;

use olmkit_cel::{Budget, Failure, Value as Cel};
use serde_json::Value;

use super::{InstanceFault, InstanceFinding, Work, member};
use crate::crd::cel::{self, Rule};

/// Maximum bytes of a message. The API server takes the plain message instead of longer ones.
const MESSAGE: usize = 5 * 1024;

/// Evaluates the rules of a schema over an object that fits it. One budget applies to all of them, as in the API
/// server; when it is exhausted, the remaining rules count as satisfied.
pub(super) fn check(schema: &Value, object: &Value, work: &mut Work) -> Vec<InstanceFinding> {
    if !cel::has_rules(schema) {
        return Vec::new();
    }
    let begin = work.budget.at_most(&Budget::for_object());
    let mut walk = Walk::new(begin.clone());
    // An exhausted budget ends the walk. Earlier findings are kept.
    let _ = walk.root(schema, object);
    work.budget.take_used(&begin, &walk.budget);
    walk.findings
}

/// Evaluates the rules over a default: as over the value of a new object, and over one that had the same value before.
pub(super) fn check_default(schema: &Value, default: &Value, is_object: bool, work: &mut Work) -> Vec<InstanceFinding> {
    for has_old in [true, false] {
        let begin = work.budget.at_most(&Budget::for_object());
        let mut walk = Walk::new(begin.clone());
        // An exhausted budget ends the walk. Earlier findings are kept.
        let _ = walk.value(Place {
            schema,
            rules: schema,
            json: default,
            is_object,
            has_old,
            pointer: "",
        });
        work.budget.take_used(&begin, &walk.budget);
        if !walk.findings.is_empty() {
            return walk.findings;
        }
    }
    Vec::new()
}

struct Walk {
    budget: Budget,
    /// Compiled rules by schema path. List items share one entry.
    compiled: HashMap<*const Value, Vec<Option<Rule>>>,
    findings: Vec<InstanceFinding>,
}

/// One value and its context.
#[derive(Clone, Copy)]
struct Place<'w> {
    /// The schema with its types.
    schema: &'w Value,
    /// Contains rules: the schema itself, or a part of its `allOf`.
    rules: &'w Value,
    json: &'w Value,
    /// True if this is a whole object.
    is_object: bool,
    /// True if the same value was there before, which rules see as `oldSelf`.
    has_old: bool,
    pointer: &'w str,
}

impl Walk {
    fn new(budget: Budget) -> Self {
        Self {
            budget,
            compiled: HashMap::new(),
            findings: Vec::new(),
        }
    }

    fn root(&mut self, schema: &Value, object: &Value) -> Result<(), Failure> {
        let place = Place {
            schema,
            rules: schema,
            json: object,
            is_object: true,
            has_old: false,
            pointer: "",
        };
        self.value(place)
    }

    fn value(&mut self, place: Place<'_>) -> Result<(), Failure> {
        self.budget.step(1)?;
        if place.json.is_null() {
            return Ok(());
        }
        if !cel::rules(place.rules).is_empty() {
            self.own_rules(place)?;
        }
        for part in place.rules.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.value(Place { rules: part, ..place })?;
        }
        match place.json {
            Value::Array(items) => {
                let (Some(schema), Some(rules)) = (place.schema.get("items"), place.rules.get("items")) else {
                    return Ok(());
                };
                // Items of other lists are not found again in an older object.
                let list_type = place.schema.get("x-kubernetes-list-type").and_then(Value::as_str);
                let has_old = place.has_old && list_type == Some("map");
                for (at, item) in items.iter().enumerate() {
                    self.below((schema, rules), item, has_old, &format!("{}/{at}", place.pointer))?;
                }
                Ok(())
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    if let (Some(schema), Some(rules)) = (of_field(place.schema, name), of_field(place.rules, name)) {
                        self.below((schema, rules), field, place.has_old, &member(place.pointer, name))?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn below(
        &mut self,
        (schema, rules): (&Value, &Value),
        json: &Value,
        has_old: bool,
        pointer: &str,
    ) -> Result<(), Failure> {
        let is_object = cel::is_embedded(schema);
        self.value(Place {
            schema,
            rules,
            json,
            is_object,
            has_old,
            pointer,
        })
    }

    fn own_rules(&mut self, place: Place<'_>) -> Result<(), Failure> {
        let key = std::ptr::from_ref(place.rules);
        let programs = match self.compiled.remove(&key) {
            Some(programs) => programs,
            None => {
                self.budget.step(compile_steps(place))?;
                compile(place)
            }
        };
        let own = cel::value::convert(place.schema, place.json, place.is_object, &mut self.budget)?;
        let mut result = Ok(());
        for (rule, program) in cel::rules(place.rules).iter().zip(&programs) {
            if let Some(program) = program {
                result = self.rule(place, rule, program, &own);
            }
            if result.is_err() {
                break;
            }
        }
        self.compiled.insert(key, programs);
        result
    }

    fn rule(&mut self, place: Place<'_>, rule: &Value, compiled: &Rule, own: &Cel) -> Result<(), Failure> {
        let is_optional = rule.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or(false);
        // Rules of transitions refer to an older object.
        let old = match (place.has_old, is_optional) {
            (true, true) => Cel::Optional(Some(Rc::new(own.clone()))),
            (true, false) => own.clone(),
            (false, false) if compiled.program.uses("oldSelf") => return Ok(()),
            (false, _) => Cel::Optional(None),
        };
        let variables = [("self", own.clone()), ("oldSelf", old)];
        let message = match compiled.program.run(&variables, &mut self.budget) {
            Ok(Cel::Bool(false)) => self.message(rule, compiled, &variables),
            Ok(_) | Err(Failure::Undecided(_)) => return Ok(()),
            Err(Failure::Error(problem)) if problem.starts_with("no such overload") => format!(
                "'{problem}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                plain(rule)
            ),
            Err(Failure::Error(problem)) => format!("{problem} evaluating rule: {}", plain(rule)),
            Err(Failure::Exhausted) => return Err(Failure::Exhausted),
        };
        let shown = text(rule, "rule").split_whitespace().collect::<Vec<_>>().join(" ");
        self.findings.push(InstanceFinding {
            pointer: format!("{}{}", place.pointer, field_path(text(rule, "fieldPath"))),
            fault: InstanceFault::Rule,
            message: format!("{} (rule {shown})", message.trim()),
        });
        Ok(())
    }

    /// The rule's message if it is not satisfied.
    fn message(&mut self, rule: &Value, compiled: &Rule, variables: &[(&str, Cel)]) -> String {
        // If the message cannot be computed, the rule is still broken.
        if let Some(expression) = &compiled.message
            && let Ok(Cel::String(message)) = expression.run(variables, &mut self.budget)
        {
            let message = message.trim();
            if !message.is_empty() && message.len() <= MESSAGE && !message.contains('\n') {
                return message.to_owned();
            }
        }
        let message = text(rule, "message").trim();
        if message.is_empty() {
            return format!("failed rule: {}", plain(rule));
        }
        message.to_owned()
    }
}

/// Steps of the compiler for each character of a rule.
const CHARACTER_STEPS: u64 = 2;

fn compile_steps(place: Place<'_>) -> u64 {
    let rules = cel::rules(place.rules).iter();
    let lengths = rules.flat_map(|rule| [text(rule, "rule").len(), text(rule, "messageExpression").len()]);
    // Longer ones are not compiled.
    let lengths = lengths.filter(|length| *length <= olmkit_cel::limits::EXPRESSION_CHARACTERS);
    lengths.fold(0, |sum: u64, length| {
        sum.saturating_add((length as u64).saturating_mul(CHARACTER_STEPS))
    })
}

fn compile(place: Place<'_>) -> Vec<Option<Rule>> {
    let own = cel::declare::declare(place.schema, place.is_object, "self");
    let rules = cel::rules(place.rules).iter();
    rules
        .map(|rule| own.as_ref().and_then(|own| cel::compile(rule, own).ok()))
        .collect()
}

/// The schema of a field or of a map's value.
fn of_field<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let property = schema.get("properties").and_then(|properties| properties.get(name));
    property.or_else(|| schema.get("additionalProperties").filter(|others| others.is_object()))
}

fn text<'r>(rule: &'r Value, name: &str) -> &'r str {
    rule.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The rule's message, else the rule.
fn plain(rule: &Value) -> &str {
    let message = text(rule, "message").trim();
    if message.is_empty() {
        text(rule, "rule").trim()
    } else {
        message
    }
}

/// `.spec.ports['a.b']` as a JSON pointer.
fn field_path(path: &str) -> String {
    let mut pointer = String::new();
    let mut rest = path;
    loop {
        let token = if let Some(quoted) = rest.strip_prefix("['") {
            let end = quoted.find("']").unwrap_or(quoted.len());
            rest = quoted.get(end + 2..).unwrap_or_default();
            quoted.get(..end).unwrap_or_default()
        } else {
            let named = rest.strip_prefix('.').unwrap_or(rest);
            let end = named.find(['.', '[']).unwrap_or(named.len());
            rest = named.get(end..).unwrap_or_default();
            named.get(..end).unwrap_or_default()
        };
        if token.is_empty() {
            return pointer;
        }
        pointer = member(&pointer, token);
    }
}
