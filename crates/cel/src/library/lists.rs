//! Functions of lists and sets.

use std::cmp::Ordering;

use super::run::Found;
use crate::budget::Failure;
use crate::eval::{Evaluator, ITEM};
use crate::value::{List, Value, compare};

type Outcome = Result<Value, Failure>;

pub(super) fn call(evaluator: &mut Evaluator, name: &str, is_member: bool, args: &[Value]) -> Found {
    if !is_member {
        return match (name, args) {
            ("lists.range", [Value::Int(count)]) => Some(range(evaluator, *count)),
            (_, [Value::List(left), Value::List(right)]) => sets(evaluator, name, left, right),
            _ => None,
        };
    }
    let Some((Value::List(list), rest)) = args.split_first() else {
        return None;
    };
    Some(match (name, rest) {
        ("isSorted", []) => is_sorted(evaluator, list),
        ("sum", []) => sum(evaluator, list),
        ("max", []) => extreme(evaluator, list, Ordering::Greater),
        ("min", []) => extreme(evaluator, list, Ordering::Less),
        ("indexOf", [item]) => index_of(evaluator, list, item, false),
        ("lastIndexOf", [item]) => index_of(evaluator, list, item, true),
        ("join", []) => join(evaluator, list, ""),
        ("join", [Value::String(separator)]) => join(evaluator, list, separator),
        ("slice", [Value::Int(from), Value::Int(to)]) => slice(evaluator, list, *from, *to),
        ("flatten", []) => flatten(evaluator, list, 1),
        ("flatten", [Value::Int(levels)]) => flatten(evaluator, list, *levels),
        ("reverse", []) => {
            let items = list.items.iter().rev().cloned().collect();
            evaluator.list(items)
        }
        ("distinct", []) => distinct(evaluator, list),
        ("sort", []) => sort(evaluator, list),
        ("first", []) => end(evaluator, list.items.first()),
        ("last", []) => end(evaluator, list.items.last()),
        ("unwrapOpt", []) => unwrap(evaluator, list),
        _ => return None,
    })
}

fn range(evaluator: &mut Evaluator, count: i64) -> Outcome {
    let length = usize::try_from(count)
        .map_err(|_| Failure::error(format!("lists.range: size must be non-negative, got {count}")))?;
    evaluator.budget.allocate(length.saturating_mul(ITEM))?;
    let items = (0..count).map(Value::Int).collect();
    Ok(Value::list(items))
}

fn sets(evaluator: &mut Evaluator, name: &str, left: &List, right: &List) -> Found {
    let contains_all = |evaluator: &mut Evaluator, list: &List, items: &List| {
        for item in &items.items {
            if !compare::contains(list, item, evaluator.budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let result = match name {
        "sets.contains" => contains_all(evaluator, left, right),
        "sets.equivalent" => match contains_all(evaluator, left, right) {
            Ok(true) => contains_all(evaluator, right, left),
            other => other,
        },
        "sets.intersects" => (|| {
            for item in &left.items {
                if compare::contains(right, item, evaluator.budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })(),
        _ => return None,
    };
    Some(result.map(Value::Bool))
}

fn is_sorted(evaluator: &mut Evaluator, list: &List) -> Outcome {
    for pair in list.items.windows(2) {
        if let [left, right] = pair
            && compare::order(left, right, evaluator.budget)?.is_gt()
        {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum(evaluator: &mut Evaluator, list: &List) -> Outcome {
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
        evaluator.budget.step(1)?;
        total = evaluator.add(total, item.clone().sound()?)?;
    }
    Ok(total)
}

fn extreme(evaluator: &mut Evaluator, list: &List, wanted: Ordering) -> Outcome {
    let mut items = list.items.iter();
    let name = if wanted.is_gt() { "max" } else { "min" };
    let Some(mut found) = items.next() else {
        return Err(Failure::error(format!("{name} called on empty list")));
    };
    for item in items {
        if compare::order(item, found, evaluator.budget)? == wanted {
            found = item;
        }
    }
    found.clone().sound()
}

fn index_of(evaluator: &mut Evaluator, list: &List, item: &Value, is_last: bool) -> Outcome {
    let mut found = -1;
    for (own, at) in list.items.iter().zip(0_i64..) {
        if compare::equal(own, item, evaluator.budget)? {
            found = at;
            if !is_last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn join(evaluator: &mut Evaluator, list: &List, separator: &str) -> Outcome {
    let mut joined = String::new();
    for (at, item) in list.items.iter().enumerate() {
        let Value::String(text) = item else {
            return Err(Failure::error("join: invalid input"));
        };
        evaluator.budget.allocate(text.len() + separator.len())?;
        joined.push_str(if at > 0 { separator } else { "" });
        joined.push_str(text);
    }
    evaluator.text(&joined)
}

fn slice(evaluator: &mut Evaluator, list: &List, from: i64, to: i64) -> Outcome {
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
    evaluator.list(items.to_vec())
}

fn flatten(evaluator: &mut Evaluator, list: &List, levels: i64) -> Outcome {
    if levels < 0 {
        return Err(Failure::error("level must be non-negative"));
    }
    let mut items = Vec::new();
    flatten_into(evaluator, list, levels, &mut items)?;
    evaluator.list(items)
}

/// Lists nest no deeper than expressions and schemas do.
fn flatten_into(evaluator: &mut Evaluator, list: &List, levels: i64, items: &mut Vec<Value>) -> Result<(), Failure> {
    for item in &list.items {
        evaluator.budget.allocate(ITEM)?;
        match item {
            Value::List(inner) if levels > 0 => flatten_into(evaluator, inner, levels - 1, items)?,
            other => items.push(other.clone().sound()?),
        }
    }
    Ok(())
}

fn distinct(evaluator: &mut Evaluator, list: &List) -> Outcome {
    let mut found = List::default();
    for item in &list.items {
        if !compare::contains(&found, item, evaluator.budget)? {
            found.items.push(item.clone());
        }
    }
    evaluator.list(found.items)
}

fn sort(evaluator: &mut Evaluator, list: &List) -> Outcome {
    let pairs = list.items.iter().map(|item| (item.clone(), item.clone())).collect();
    evaluator.budget.allocate(list.items.len().saturating_mul(3 * ITEM))?;
    let sorted = evaluator.sorted(pairs)?;
    evaluator.list(sorted)
}

fn end(evaluator: &mut Evaluator, item: Option<&Value>) -> Outcome {
    evaluator.budget.allocate(ITEM)?;
    Ok(match item {
        None => Value::Optional(None),
        Some(item) => Value::some(item.clone().sound()?),
    })
}

fn unwrap(evaluator: &mut Evaluator, list: &List) -> Outcome {
    let mut items = Vec::new();
    for item in &list.items {
        match item {
            Value::Optional(None) => {}
            Value::Optional(Some(inner)) => items.push((**inner).clone()),
            _ => return Err(Failure::no_overload()),
        }
    }
    evaluator.list(items)
}
