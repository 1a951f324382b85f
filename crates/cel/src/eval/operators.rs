//! Operators with two operands.

use std::cmp::Ordering;
use std::rc::Rc;

use super::{Evaluator, ITEM, Outcome, overflow};
use crate::ast::Binary;
use crate::budget::Failure;
use crate::value::time::Timestamp;
use crate::value::{List, ListKind, Value, compare};

impl Evaluator<'_> {
    pub(super) fn binary(&mut self, operator: Binary, left: Value, right: Value) -> Outcome {
        let is = |holds: fn(Ordering) -> bool, evaluator: &mut Self| {
            compare::order(&left, &right, evaluator.budget).map(|order| Value::Bool(holds(order)))
        };
        match operator {
            Binary::Equal => compare::equal(&left, &right, self.budget).map(Value::Bool),
            Binary::NotEqual => compare::equal(&left, &right, self.budget).map(|equal| Value::Bool(!equal)),
            Binary::Less => is(Ordering::is_lt, self),
            Binary::LessEqual => is(Ordering::is_le, self),
            Binary::Greater => is(Ordering::is_gt, self),
            Binary::GreaterEqual => is(Ordering::is_ge, self),
            Binary::In => self.contains(&right, &left),
            Binary::Add => self.add(left, right),
            Binary::Subtract => subtract(&left, &right),
            Binary::Multiply | Binary::Divide | Binary::Modulo => multiply(operator, &left, &right),
        }
    }

    fn contains(&mut self, range: &Value, item: &Value) -> Outcome {
        match range {
            Value::List(list) => compare::contains(list, item, self.budget).map(Value::Bool),
            Value::Map(map) => match map.find(item) {
                Some(value) => value.clone().sound().map(|_| Value::Bool(true)),
                None => Ok(Value::Bool(false)),
            },
            Value::Preserved(_) => Err(Failure::undecided("data without a schema")),
            _ => Err(Failure::no_overload()),
        }
    }

    pub(crate) fn add(&mut self, left: Value, right: Value) -> Outcome {
        match (left, right) {
            (Value::Int(left), Value::Int(right)) => left.checked_add(right).map(Value::Int).ok_or_else(overflow),
            (Value::Uint(left), Value::Uint(right)) => left.checked_add(right).map(Value::Uint).ok_or_else(overflow),
            (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
            (Value::Duration(left), Value::Duration(right)) => {
                left.checked_add(right).map(Value::Duration).ok_or_else(overflow)
            }
            (Value::Timestamp(moment), Value::Duration(nanos)) | (Value::Duration(nanos), Value::Timestamp(moment)) => {
                shifted(moment, i128::from(nanos))
            }
            (Value::String(left), Value::String(right)) => {
                self.budget.allocate(left.len() + right.len() + ITEM)?;
                Ok(Value::String(Rc::from([&*left, &*right].concat())))
            }
            (Value::Bytes(left), Value::Bytes(right)) => {
                self.budget.allocate(left.len() + right.len() + ITEM)?;
                Ok(Value::Bytes(Rc::from([&*left, &*right].concat())))
            }
            (Value::List(left), Value::List(right)) => self.join(&left, &right),
            _ => Err(Failure::no_overload()),
        }
    }

    fn join(&mut self, left: &List, right: &List) -> Outcome {
        let length = left.items.len() + right.items.len();
        self.budget.allocate(length.saturating_mul(ITEM))?;
        let mut items = left.items.clone();
        match &left.kind {
            ListKind::Atomic => items.extend_from_slice(&right.items),
            ListKind::Set => {
                for item in &right.items {
                    if !compare::contains(left, item, self.budget)? {
                        items.push(item.clone());
                    }
                }
            }
            ListKind::Map(keys) => {
                for item in &right.items {
                    let at = compare::position_by_keys(&left.items, item, keys, self.budget)?;
                    match at.and_then(|at| items.get_mut(at)) {
                        Some(own) => *own = item.clone(),
                        None => items.push(item.clone()),
                    }
                }
            }
        }
        let kind = left.kind.clone();
        Ok(Value::List(Rc::new(List { items, kind })))
    }
}

fn shifted(moment: Timestamp, nanos: i128) -> Outcome {
    let found = moment.plus(nanos).ok_or_else(|| Failure::error("timestamp overflow"))?;
    Ok(Value::Timestamp(found))
}

fn subtract(left: &Value, right: &Value) -> Outcome {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.checked_sub(*right).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(left), Value::Uint(right)) => left.checked_sub(*right).map(Value::Uint).ok_or_else(overflow),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Duration(left), Value::Duration(right)) => {
            left.checked_sub(*right).map(Value::Duration).ok_or_else(overflow)
        }
        (Value::Timestamp(moment), Value::Duration(nanos)) => shifted(*moment, -i128::from(*nanos)),
        (Value::Timestamp(left), Value::Timestamp(right)) => {
            let nanos = left.total_nanos() - right.total_nanos();
            i64::try_from(nanos).map(Value::Duration).map_err(|_| overflow())
        }
        _ => Err(Failure::no_overload()),
    }
}

fn multiply(operator: Binary, left: &Value, right: &Value) -> Outcome {
    let by_zero = || {
        Failure::error(if operator == Binary::Modulo {
            "modulus by zero"
        } else {
            "division by zero"
        })
    };
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) if operator != Binary::Multiply => {
            Err(by_zero())
        }
        (Value::Int(left), Value::Int(right)) => {
            let result = match operator {
                Binary::Multiply => left.checked_mul(*right),
                Binary::Divide => left.checked_div(*right),
                _ => left.checked_rem(*right),
            };
            result.map(Value::Int).ok_or_else(overflow)
        }
        (Value::Uint(left), Value::Uint(right)) => {
            let result = match operator {
                Binary::Multiply => left.checked_mul(*right),
                Binary::Divide => left.checked_div(*right),
                _ => left.checked_rem(*right),
            };
            result.map(Value::Uint).ok_or_else(overflow)
        }
        (Value::Double(left), Value::Double(right)) => match operator {
            Binary::Multiply => Ok(Value::Double(left * right)),
            Binary::Divide => Ok(Value::Double(left / right)),
            _ => Err(Failure::no_overload()),
        },
        _ => Err(Failure::no_overload()),
    }
}
