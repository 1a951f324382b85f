//! Equality and order of values.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value as Json;

use super::{List, ListKind, Map, Value};
use crate::budget::{Budget, Failure};

/// Returns true if two values are equal. Values of different types are not, but numbers are compared as numbers.
pub(crate) fn equal(left: &Value, right: &Value, budget: &mut Budget) -> Result<bool, Failure> {
    budget.step(1)?;
    Ok(match (left, right) {
        (Value::Broken(failure), _) | (_, Value::Broken(failure)) => return Err((**failure).clone()),
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => {
            budget.read(left.len().min(right.len()))?;
            left == right
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            budget.read(left.len().min(right.len()))?;
            left == right
        }
        (Value::List(left), Value::List(right)) => return lists(left, right, budget),
        (Value::Map(left), Value::Map(right)) => return maps(left, right, budget),
        (Value::Timestamp(left), Value::Timestamp(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::Optional(left), Value::Optional(right)) => match (left, right) {
            (Some(left), Some(right)) => return equal(left, right, budget),
            (left, right) => left.is_none() && right.is_none(),
        },
        (Value::Url(left), Value::Url(right)) => {
            if left.text != right.text {
                return Err(Failure::undecided("a comparison of URLs"));
            }
            true
        }
        (Value::Ip(left), Value::Ip(right)) => left == right,
        (Value::Cidr(left), Value::Cidr(right)) => left == right,
        (Value::Quantity(left), Value::Quantity(right)) => left == right,
        (Value::Semver(left), Value::Semver(right)) => left.cmp_precedence(right).is_eq(),
        (Value::Format(left), Value::Format(right)) => left == right,
        (Value::Preserved(left), Value::Preserved(right)) => return preserved(left, right, budget),
        (Value::Preserved(_), _) | (_, Value::Preserved(_)) => {
            return Err(Failure::undecided("a comparison of data without a schema"));
        }
        (left, right) => numbers(left, right) == Some(Ordering::Equal),
    })
}

/// JSON is compared by a separate recursion, whose cost is its size.
fn preserved(left: &Json, right: &Json, budget: &mut Budget) -> Result<bool, Failure> {
    budget.step(size(left).min(size(right)))?;
    Ok(left == right)
}

fn size(json: &Json) -> u64 {
    match json {
        Json::Array(items) => items.iter().map(size).sum::<u64>() + 1,
        Json::Object(fields) => fields.values().map(size).sum::<u64>() + 1,
        Json::String(text) => u64::try_from(text.len() / 10).unwrap_or(0) + 1,
        _ => 1,
    }
}

fn lists(left: &Rc<List>, right: &Rc<List>, budget: &mut Budget) -> Result<bool, Failure> {
    if left.items.len() != right.items.len() {
        return Ok(false);
    }
    match &left.kind {
        ListKind::Atomic => {
            for (left, right) in left.items.iter().zip(&right.items) {
                if !equal(left, right, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListKind::Set => {
            for item in &right.items {
                if !contains(left, item, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListKind::Map(keys) => {
            for item in &right.items {
                let Some(at) = position_by_keys(&left.items, item, keys, budget)? else {
                    return Ok(false);
                };
                let same = left.items.get(at).map_or(Ok(false), |own| equal(own, item, budget));
                if !same? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Returns true if a list contains an item. An item that cannot be compared matters only if none is equal.
pub(crate) fn contains(list: &List, item: &Value, budget: &mut Budget) -> Result<bool, Failure> {
    let mut failed = None;
    for own in &list.items {
        match equal(own, item, budget) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(Failure::Exhausted) => return Err(Failure::Exhausted),
            Err(failure) => failed = Some(failure.or(failed)),
        }
    }
    failed.map_or(Ok(false), Err)
}

/// Index of the item with the same key fields.
pub(crate) fn position_by_keys(
    items: &[Value],
    item: &Value,
    keys: &[String],
    budget: &mut Budget,
) -> Result<Option<usize>, Failure> {
    let Value::Map(item) = item else {
        return Err(Failure::undecided("an item of a list of maps that is not an object"));
    };
    for (at, own) in items.iter().enumerate() {
        let Value::Map(own) = own else { continue };
        let mut is_same = true;
        for key in keys {
            is_same = match (own.field(key), item.field(key)) {
                (Some(left), Some(right)) => equal(left, right, budget)?,
                (left, right) => left.is_none() && right.is_none(),
            };
            if !is_same {
                break;
            }
        }
        budget.step(1)?;
        if is_same {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn maps(left: &Map, right: &Map, budget: &mut Budget) -> Result<bool, Failure> {
    if left.entries.len() + left.others.len() != right.entries.len() + right.others.len() {
        return Ok(false);
    }
    for (key, value) in &left.entries {
        let Some(other) = right.entries.get(key) else {
            return Ok(false);
        };
        if !equal(value, other, budget)? {
            return Ok(false);
        }
    }
    for (name, value) in &left.others {
        // A field that only one of them has makes no difference to the API server.
        if let Some(other) = right.others.get(name)
            && !preserved(value, other, budget)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two numbers of any type. `None` unless both are numbers.
pub(crate) fn numbers(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Double(left), other) => Some(whole(other)?).and_then(|right| double_to_whole(*left, right)),
        (other, Value::Double(right)) => {
            let left = whole(other)?;
            double_to_whole(*right, left).map(Ordering::reverse)
        }
        (left, right) => Some(whole(left)?.cmp(&whole(right)?)),
    }
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}

fn double_to_whole(double: f64, other: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // Beyond 2^64 a double is larger than every other number. Up to there the conversion is exact, except for the
    // fraction.
    if double.abs() > 2.0e19 {
        return Some(if double > 0.0 {
            Ordering::Greater
        } else {
            Ordering::Less
        });
    }
    #[allow(clippy::cast_possible_truncation)]
    let floor = double.floor() as i128;
    let order = floor.cmp(&other);
    Some(if order.is_eq() && double.fract() != 0.0 {
        Ordering::Greater
    } else {
        order
    })
}

/// The order of two values, if CEL defines one.
pub(crate) fn order(left: &Value, right: &Value, budget: &mut Budget) -> Result<Ordering, Failure> {
    budget.step(1)?;
    Ok(match (left, right) {
        (Value::Broken(failure), _) | (_, Value::Broken(failure)) => return Err((**failure).clone()),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => {
            budget.read(left.len().min(right.len()))?;
            left.cmp(right)
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            budget.read(left.len().min(right.len()))?;
            left.cmp(right)
        }
        (Value::Timestamp(left), Value::Timestamp(right)) => left.cmp(right),
        (Value::Duration(left), Value::Duration(right)) => left.cmp(right),
        (Value::Double(number), _) | (_, Value::Double(number)) if number.is_nan() => {
            return Err(Failure::error("NaN values cannot be ordered"));
        }
        (left, right) => return numbers(left, right).ok_or_else(Failure::no_overload),
    })
}

/// Items in the order of their keys. Go does not keep the order of equal keys; where that shows, nothing is decided.
pub(crate) fn sorted(mut items: Vec<(Value, Value)>, budget: &mut Budget) -> Result<Vec<Value>, Failure> {
    let first = items.first().map(|(key, _)| key.type_name().to_owned());
    if items.iter().any(|(key, _)| Some(key.type_name()) != first.as_deref()) {
        return Err(Failure::error("list elements must have the same type"));
    }
    // The budget is taken first: an order that fails halfway is inconsistent, and sorting would panic.
    let rounds = u64::from(items.len().max(2).ilog2()) + 1;
    for (key, _) in &items {
        let before = budget.steps();
        order(key, key, budget)?;
        budget.step((before - budget.steps()) * rounds)?;
    }
    let mut unlimited = Budget::new(u64::MAX, u64::MAX);
    items.sort_by(|(left, _), (right, _)| order(left, right, &mut unlimited).unwrap_or(Ordering::Equal));
    for pair in items.windows(2) {
        if let [(left, one), (right, other)] = pair
            && order(left, right, budget)?.is_eq()
            && !equal(one, other, budget)?
        {
            return Err(Failure::undecided("the order of items with equal keys"));
        }
    }
    Ok(items.into_iter().map(|(_, item)| item).collect())
}
