//! Functions of lists and sets.

use std::cmp::Ordering;

use super::Found;
use crate::budget::Failure;
use crate::operators;
use crate::runtime::{ITEM, Outcome, Runtime};
use crate::value::{List, Value, compare};

pub(super) fn call(runtime: &mut Runtime, name: &str, is_member: bool, args: &[Value]) -> Found {
    if !is_member {
        return match (name, args) {
            ("lists.range", [Value::Int(count)]) => Some(range(runtime, *count)),
            (_, [Value::List(left), Value::List(right)]) => sets(runtime, name, left, right),
            _ => None,
        };
    }
    let Some((Value::List(list), rest)) = args.split_first() else {
        return None;
    };
    Some(match (name, rest) {
        ("isSorted", []) => is_sorted(runtime, list),
        ("sum", []) => sum(runtime, list),
        ("max", []) => extreme(runtime, list, Ordering::Greater),
        ("min", []) => extreme(runtime, list, Ordering::Less),
        ("indexOf", [item]) => index_of(runtime, list, item, false),
        ("lastIndexOf", [item]) => index_of(runtime, list, item, true),
        ("join", []) => join(runtime, list, ""),
        ("join", [Value::String(separator)]) => join(runtime, list, separator),
        ("slice", [Value::Int(from), Value::Int(to)]) => slice(runtime, list, *from, *to),
        ("flatten", []) => flatten(runtime, list, 1),
        ("flatten", [Value::Int(levels)]) => flatten(runtime, list, *levels),
        ("reverse", []) => {
            let items = list.items.iter().rev().cloned().collect();
            runtime.list(items)
        }
        ("distinct", []) => distinct(runtime, list),
        ("sort", []) => sort(runtime, list),
        ("first", []) => end(runtime, list.items.first()),
        ("last", []) => end(runtime, list.items.last()),
        ("unwrapOpt", []) => unwrap(runtime, list),
        _ => return None,
    })
}

fn range(runtime: &mut Runtime, count: i64) -> Outcome {
    let length = usize::try_from(count)
        .map_err(|_| Failure::error(format!("lists.range: size must be non-negative, got {count}")))?;
    runtime.budget.allocate(length.saturating_mul(ITEM))?;
    let items = (0..count).map(Value::Int).collect();
    Ok(Value::list(items))
}

fn sets(runtime: &mut Runtime, name: &str, left: &List, right: &List) -> Found {
    let contains_all = |runtime: &mut Runtime, list: &List, items: &List| {
        for item in &items.items {
            if !compare::contains(list, item, runtime.budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let result = match name {
        "sets.contains" => contains_all(runtime, left, right),
        "sets.equivalent" => match contains_all(runtime, left, right) {
            Ok(true) => contains_all(runtime, right, left),
            other => other,
        },
        "sets.intersects" => (|| {
            for item in &left.items {
                if compare::contains(right, item, runtime.budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })(),
        _ => return None,
    };
    Some(result.map(Value::Bool))
}

fn is_sorted(runtime: &mut Runtime, list: &List) -> Outcome {
    for pair in list.items.windows(2) {
        if let [left, right] = pair
            && compare::order(left, right, runtime.budget)?.is_gt()
        {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum(runtime: &mut Runtime, list: &List) -> Outcome {
    let mut items = list.items.iter();
    let Some(first) = items.next() else {
        // Its type is known to the checker only.
        return Err(Failure::undecided("the sum of an empty list"));
    };
    let mut total = first.clone().sound()?;
    if !matches!(
        total,
        Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_)
    ) {
        return Err(Failure::no_overload());
    }
    for item in items {
        runtime.budget.step(1)?;
        total = operators::add(total, item.clone().sound()?, runtime.budget)?;
    }
    Ok(total)
}

fn extreme(runtime: &mut Runtime, list: &List, wanted: Ordering) -> Outcome {
    let mut items = list.items.iter();
    let name = if wanted.is_gt() { "max" } else { "min" };
    let Some(mut found) = items.next() else {
        return Err(Failure::error(format!("{name} called on empty list")));
    };
    for item in items {
        if compare::order(item, found, runtime.budget)? == wanted {
            found = item;
        }
    }
    found.clone().sound()
}

fn index_of(runtime: &mut Runtime, list: &List, item: &Value, is_last: bool) -> Outcome {
    let mut found = -1;
    for (own, at) in list.items.iter().zip(0_i64..) {
        if compare::equal(own, item, runtime.budget)? {
            found = at;
            if !is_last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn join(runtime: &mut Runtime, list: &List, separator: &str) -> Outcome {
    let mut joined = String::new();
    for (at, item) in list.items.iter().enumerate() {
        let Value::String(text) = item else {
            return Err(Failure::error("join: invalid input"));
        };
        runtime.budget.allocate(text.len() + separator.len())?;
        joined.push_str(if at > 0 { separator } else { "" });
        joined.push_str(text);
    }
    runtime.text(&joined)
}

fn slice(runtime: &mut Runtime, list: &List, from: i64, to: i64) -> Outcome {
    let wrong = |why: &str| Failure::error(format!("cannot slice({from}, {to}), {why}"));
    let (Ok(start), Ok(end)) = (usize::try_from(from), usize::try_from(to)) else {
        return Err(wrong("negative indexes not supported"));
    };
    if start > end {
        return Err(wrong("start index must be less than or equal to end index"));
    }
    let length = list.items.len();
    let items = list
        .items
        .get(start..end)
        .ok_or_else(|| wrong(&format!("list is length {length}")))?;
    runtime.list(items.to_vec())
}

fn flatten(runtime: &mut Runtime, list: &List, levels: i64) -> Outcome {
    if levels < 0 {
        return Err(Failure::error("level must be non-negative"));
    }
    let mut items = Vec::new();
    flatten_into(runtime, list, levels, &mut items)?;
    runtime.list(items)
}

/// Lists nest no deeper than expressions and schemas do.
fn flatten_into(runtime: &mut Runtime, list: &List, levels: i64, items: &mut Vec<Value>) -> Result<(), Failure> {
    for item in &list.items {
        runtime.budget.allocate(ITEM)?;
        match item {
            Value::List(inner) if levels > 0 => flatten_into(runtime, inner, levels - 1, items)?,
            other => items.push(other.clone().sound()?),
        }
    }
    Ok(())
}

fn distinct(runtime: &mut Runtime, list: &List) -> Outcome {
    let mut found = List::default();
    for item in &list.items {
        if !compare::contains(&found, item, runtime.budget)? {
            found.items.push(item.clone());
        }
    }
    runtime.list(found.items)
}

fn sort(runtime: &mut Runtime, list: &List) -> Outcome {
    let pairs = list.items.iter().map(|item| (item.clone(), item.clone())).collect();
    runtime.budget.allocate(list.items.len().saturating_mul(3 * ITEM))?;
    let sorted = compare::sorted(pairs, runtime.budget)?;
    runtime.list(sorted)
}

fn end(runtime: &mut Runtime, item: Option<&Value>) -> Outcome {
    runtime.budget.allocate(ITEM)?;
    Ok(match item {
        None => Value::Optional(None),
        Some(item) => Value::some(item.clone().sound()?),
    })
}

fn unwrap(runtime: &mut Runtime, list: &List) -> Outcome {
    let mut items = Vec::new();
    for item in &list.items {
        match item {
            Value::Optional(None) => {}
            Value::Optional(Some(inner)) => items.push((**inner).clone()),
            _ => return Err(Failure::no_overload()),
        }
    }
    runtime.list(items)
}
