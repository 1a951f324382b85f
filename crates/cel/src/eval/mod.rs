//! Runs an expression, counting each step and each allocated byte.

mod fold;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

use crate::ast::{Call, Expr, Index, Literal, Node, Select, Unary};
use crate::budget::{Budget, Failure};
use crate::library::{run, signature};
use crate::operators;
use crate::runtime::{ITEM, Outcome, Runtime, overflow};
use crate::value::{Key, Map, Value};

/// Runs an expression with these variables.
pub(crate) fn evaluate<'e>(node: &'e Node, variables: &'e [(&'e str, Value)], budget: &'e mut Budget) -> Outcome {
    Evaluator::new(variables, budget).eval(node)
}

struct Evaluator<'e> {
    variables: &'e [(&'e str, Value)],
    /// Variables of macros, the innermost last.
    scope: Vec<(&'e str, Value)>,
    runtime: Runtime<'e>,
}

impl<'e> Evaluator<'e> {
    fn new(variables: &'e [(&'e str, Value)], budget: &'e mut Budget) -> Self {
        Self {
            variables,
            scope: Vec::new(),
            runtime: Runtime::new(budget),
        }
    }

    fn eval(&mut self, node: &'e Node) -> Outcome {
        self.runtime.budget.step(1)?;
        match &node.expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Ident(name) => self.ident(name),
            Expr::Select(select) => self.select(select),
            Expr::Index(index) => self.index(index),
            Expr::Call(call) => self.call(call),
            Expr::Unary(operator, operand) => self.unary(*operator, operand),
            Expr::Binary(operator, operands) => {
                let left = self.eval(&operands.0)?;
                let right = self.eval(&operands.1)?;
                operators::binary(*operator, left, right, self.runtime.budget)
            }
            Expr::And(terms) => self.logic(terms, false),
            Expr::Or(terms) => self.logic(terms, true),
            Expr::Conditional(parts) => self.conditional(parts),
            Expr::List(_) | Expr::Map(_) => self.aggregate(node),
            Expr::Message(name, _) => Err(Failure::undecided(format!("the message {name}"))),
            Expr::Fold(fold) => self.fold(fold),
        }
    }

    fn literal(&mut self, literal: &Literal) -> Outcome {
        Ok(match literal {
            Literal::Null => Value::Null,
            Literal::Bool(value) => Value::Bool(*value),
            Literal::Int(value) => Value::Int(*value),
            Literal::Uint(value) => Value::Uint(*value),
            Literal::Double(value) => Value::Double(*value),
            Literal::String(text) => return self.runtime.text(text),
            Literal::Bytes(bytes) => {
                self.runtime.budget.allocate(bytes.len())?;
                Value::Bytes(Rc::from(bytes.as_slice()))
            }
        })
    }

    fn ident(&mut self, name: &str) -> Outcome {
        self.runtime
            .budget
            .step(u64::try_from(self.scope.len() / 16).unwrap_or(0))?;
        if let Some((_, value)) = self.scope.iter().rev().find(|(known, _)| *known == name) {
            return value.clone().sound();
        }
        let name = name.trim_start_matches('.');
        if let Some((_, value)) = self.variables.iter().find(|(known, _)| *known == name) {
            return value.clone().sound();
        }
        if signature::type_named(name).is_some() {
            return Ok(Value::Type(Rc::from(name)));
        }
        Err(Failure::undecided(format!("the variable {name}")))
    }

    fn unary(&mut self, operator: Unary, operand: &'e Node) -> Outcome {
        match (operator, self.eval(operand)?) {
            (Unary::Not, Value::Bool(value)) => Ok(Value::Bool(!value)),
            (Unary::Negate, Value::Int(value)) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
            (Unary::Negate, Value::Double(value)) => Ok(Value::Double(-value)),
            (Unary::Negate, Value::Duration(value)) => value.checked_neg().map(Value::Duration).ok_or_else(overflow),
            _ => Err(Failure::no_overload()),
        }
    }

    /// `&&` (decided by the first false) and `||` (by the first true). A term that fails matters only if no other decides.
    fn logic(&mut self, terms: &'e [Node], deciding: bool) -> Outcome {
        let mut failed: Option<Failure> = None;
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == deciding => return Ok(Value::Bool(deciding)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = Some(Failure::no_overload().or(failed)),
                Err(Failure::Exhausted) => return Err(Failure::Exhausted),
                Err(failure) => failed = Some(failure.or(failed)),
            }
        }
        failed.map_or(Ok(Value::Bool(!deciding)), Err)
    }

    fn conditional(&mut self, parts: &'e [Node; 3]) -> Outcome {
        let [condition, yes, no] = parts;
        match self.eval(condition)? {
            Value::Bool(true) => self.eval(yes),
            Value::Bool(false) => self.eval(no),
            _ => Err(Failure::no_overload()),
        }
    }

    fn aggregate(&mut self, node: &'e Node) -> Outcome {
        match &node.expr {
            Expr::List(items) => {
                let mut values = Vec::new();
                for (optional, item) in items {
                    let value = self.eval(item)?;
                    self.runtime.budget.allocate(ITEM)?;
                    values.extend(present(value, *optional)?);
                }
                self.runtime.list(values)
            }
            Expr::Map(entries) => {
                let mut values = BTreeMap::new();
                for entry in entries {
                    let key = self.eval(&entry.key)?;
                    let value = self.eval(&entry.value)?;
                    self.runtime.budget.allocate(3 * ITEM)?;
                    let key = key.key().ok_or_else(|| Failure::error("unsupported key type"))?;
                    let Some(value) = present(value, entry.optional)? else {
                        continue;
                    };
                    // Of equal keys the last one counts.
                    values.insert(key, value);
                }
                Ok(Value::map(values))
            }
            _ => Err(Failure::no_overload()),
        }
    }

    fn select(&mut self, select: &'e Select) -> Outcome {
        let operand = self.eval(&select.operand)?;
        let (operand, is_optional) = match operand {
            Value::Optional(None) if select.test => return Ok(Value::Bool(false)),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        let found = match &operand {
            Value::Map(map) => map.field(&select.field),
            Value::Preserved(_) => return Err(Failure::undecided("a field of data without a schema")),
            _ if select.optional => return Err(Failure::undecided("an optional field of a value without fields")),
            _ => return Err(Failure::no_overload()),
        };
        if select.test {
            return Ok(Value::Bool(found.is_some()));
        }
        let is_optional = is_optional || select.optional;
        self.found(found, is_optional, || format!("no such key: {}", select.field))
    }

    /// The field or item, as an optional if `is_optional` is set.
    fn found(&mut self, found: Option<&Value>, is_optional: bool, problem: impl Fn() -> String) -> Outcome {
        match found {
            Some(value) if is_optional => {
                self.runtime.budget.allocate(ITEM)?;
                Ok(Value::some(value.clone().sound()?))
            }
            Some(value) => value.clone().sound(),
            None if is_optional => Ok(Value::Optional(None)),
            None => Err(Failure::error(problem())),
        }
    }

    fn index(&mut self, index: &'e Index) -> Outcome {
        let operand = self.eval(&index.operand)?;
        let at = self.eval(&index.index)?;
        let (operand, is_optional) = match operand {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, index.optional),
        };
        match &operand {
            Value::List(list) => {
                let position = match &at {
                    Value::Int(at) => usize::try_from(*at).ok(),
                    Value::Uint(at) => usize::try_from(*at).ok(),
                    Value::Double(_) => return Err(Failure::undecided("a position that is a double")),
                    _ => return Err(Failure::error("unsupported index type")),
                };
                let found = position.and_then(|at| list.items.get(at));
                self.found(found, is_optional, || "index out of bounds".to_owned())
            }
            Value::Map(map) => {
                let found = map.find(&at);
                self.found(found, is_optional, || match &at {
                    Value::String(text) => format!("no such key: {text}"),
                    _ => "no such key".to_owned(),
                })
            }
            Value::Preserved(_) => Err(Failure::undecided("an item of data without a schema")),
            _ => Err(Failure::no_overload()),
        }
    }

    fn call(&mut self, call: &'e Call) -> Outcome {
        let mut args = Vec::with_capacity(call.args.len() + 1);
        if let Some(target) = &call.target {
            let target = self.eval(target)?;
            // The alternative of an optional is looked at only if it is needed.
            if let (Value::Optional(Some(inner)), [_], "or" | "orValue") =
                (&target, call.args.as_slice(), call.name.as_str())
            {
                return if call.name == "or" {
                    Ok(target.clone())
                } else {
                    (**inner).clone().sound()
                };
            }
            args.push(target);
        }
        for arg in &call.args {
            args.push(self.eval(arg)?);
        }
        run::call(
            &mut self.runtime,
            call.name.trim_start_matches('.'),
            call.target.is_some(),
            &args,
        )
    }
}

/// The value of an element that may be optional.
fn present(value: Value, optional: bool) -> Result<Option<Value>, Failure> {
    match (optional, value) {
        (false, value) => Ok(Some(value)),
        (true, Value::Optional(None)) => Ok(None),
        (true, Value::Optional(Some(inner))) => (*inner).clone().sound().map(Some),
        (true, _) => Err(Failure::no_overload()),
    }
}

/// Adds an entry. No key may be there twice.
fn insert(entries: &mut BTreeMap<Key, Value>, key: Key, value: Value) -> Result<(), Failure> {
    let slot = match entries.entry(key) {
        Entry::Vacant(slot) => {
            slot.insert(value);
            return Ok(());
        }
        Entry::Occupied(slot) => slot,
    };
    let shown = match slot.key() {
        Key::Bool(key) => key.to_string(),
        Key::Int(key) => key.to_string(),
        Key::Uint(key) => key.to_string(),
        Key::String(key) => key.to_string(),
    };
    Err(Failure::error(format!("insert failed: key {shown} already exists")))
}

/// The keys of a map in order.
fn keys(map: &Map) -> Vec<Value> {
    map.entries.keys().map(Key::to_value).collect()
}
