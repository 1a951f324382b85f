//! Operators with two operands.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::ast::Binary;
use crate::budget::{Budget, Failure};
use crate::runtime::{ITEM, Outcome, overflow};
use crate::value::time::Timestamp;
use crate::value::{List, ListKind, Value, compare};

/// Applies an operator to two values.
pub(crate) fn binary(operator: Binary, left: Value, right: Value, budget: &mut Budget) -> Outcome {
    let is = |holds: fn(Ordering) -> bool, budget: &mut Budget| {
        compare::order(&left, &right, budget).map(|order| Value::Bool(holds(order)))
    };
    match operator {
        Binary::Equal => compare::equal(&left, &right, budget).map(Value::Bool),
        Binary::NotEqual => compare::equal(&left, &right, budget).map(|equal| Value::Bool(!equal)),
        Binary::Less => is(Ordering::is_lt, budget),
        Binary::LessEqual => is(Ordering::is_le, budget),
        Binary::Greater => is(Ordering::is_gt, budget),
        Binary::GreaterEqual => is(Ordering::is_ge, budget),
        Binary::In => contains(&right, &left, budget),
        Binary::Add => add(left, right, budget),
        Binary::Subtract => subtract(&left, &right),
        Binary::Multiply | Binary::Divide | Binary::Modulo => multiply(operator, &left, &right),
    }
}

fn contains(range: &Value, item: &Value, budget: &mut Budget) -> Outcome {
    match range {
        Value::List(list) => compare::contains(list, item, budget).map(Value::Bool),
        Value::Map(map) => match map.find(item) {
            Some(value) => value.clone().sound().map(|_| Value::Bool(true)),
            None => Ok(Value::Bool(false)),
        },
        Value::Preserved(_) => Err(Failure::undecided("data without a schema")),
        _ => Err(Failure::no_overload()),
    }
}

/// The sum of two values, or their concatenation.
pub(crate) fn add(left: Value, right: Value, budget: &mut Budget) -> Outcome {
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
            budget.allocate(left.len() + right.len() + ITEM)?;
            Ok(Value::String(Rc::from([&*left, &*right].concat())))
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            budget.allocate(left.len() + right.len() + ITEM)?;
            Ok(Value::Bytes(Rc::from([&*left, &*right].concat())))
        }
        (Value::List(left), Value::List(right)) => join(&left, &right, budget),
        _ => Err(Failure::no_overload()),
    }
}

fn join(left: &List, right: &List, budget: &mut Budget) -> Outcome {
    let length = left.items.len() + right.items.len();
    budget.allocate(length.saturating_mul(ITEM))?;
    let mut items = left.items.clone();
    match &left.kind {
        ListKind::Atomic => items.extend_from_slice(&right.items),
        ListKind::Set => {
            for item in &right.items {
                if !compare::contains(left, item, budget)? {
                    items.push(item.clone());
                }
            }
        }
        ListKind::Map(keys) => {
            for item in &right.items {
                let at = compare::position_by_keys(&left.items, item, keys, budget)?;
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
