//! String functions.

use super::Found;
use super::print;
use crate::budget::Failure;
use crate::runtime::{ITEM, Outcome, Runtime};
use crate::value::Value;

pub(super) fn call(runtime: &mut Runtime, name: &str, is_member: bool, args: &[Value]) -> Found {
    if !is_member {
        return match (name, args) {
            ("matches", [Value::String(text), Value::String(pattern)]) => Some(matches(runtime, text, pattern)),
            ("strings.quote", [Value::String(text)]) => Some(quote(runtime, text)),
            _ => None,
        };
    }
    let Some((Value::String(text), rest)) = args.split_first() else {
        return None;
    };
    if let Err(failure) = runtime.budget.read(text.len()) {
        return Some(Err(failure));
    }
    Some(match (name, rest) {
        ("contains", [Value::String(other)]) => search(runtime, text, other, |text, other| text.contains(other)),
        ("startsWith", [Value::String(other)]) => Ok(Value::Bool(text.starts_with(&**other))),
        ("endsWith", [Value::String(other)]) => Ok(Value::Bool(text.ends_with(&**other))),
        ("matches", [Value::String(pattern)]) => matches(runtime, text, pattern),
        ("find", [Value::String(pattern)]) => find(runtime, text, pattern),
        ("findAll", [Value::String(pattern)]) => find_all(runtime, text, pattern, -1),
        ("findAll", [Value::String(pattern), Value::Int(most)]) => find_all(runtime, text, pattern, *most),
        ("charAt", [Value::Int(at)]) => char_at(runtime, text, *at),
        ("indexOf", [Value::String(other)]) => index_of(runtime, text, other, 0),
        ("indexOf", [Value::String(other), Value::Int(from)]) => index_of(runtime, text, other, *from),
        ("lastIndexOf", [Value::String(other)]) => last_index_of(runtime, text, other, None),
        ("lastIndexOf", [Value::String(other), Value::Int(from)]) => last_index_of(runtime, text, other, Some(*from)),
        ("lowerAscii", []) => runtime.text(&text.to_ascii_lowercase()),
        ("upperAscii", []) => runtime.text(&text.to_ascii_uppercase()),
        ("trim", []) => runtime.text(text.trim()),
        ("replace", [Value::String(old), Value::String(new)]) => replace(runtime, text, old, new, -1),
        ("replace", [Value::String(old), Value::String(new), Value::Int(most)]) => {
            replace(runtime, text, old, new, *most)
        }
        ("split", [Value::String(separator)]) => split(runtime, text, separator, -1),
        ("split", [Value::String(separator), Value::Int(most)]) => split(runtime, text, separator, *most),
        ("substring", [Value::Int(from)]) => substring(runtime, text, *from, None),
        ("substring", [Value::Int(from), Value::Int(to)]) => substring(runtime, text, *from, Some(*to)),
        ("format", [Value::List(args)]) => print::format(runtime, text, &args.items),
        _ => return None,
    })
}

fn search(runtime: &mut Runtime, text: &str, other: &str, found: fn(&str, &str) -> bool) -> Outcome {
    runtime.budget.read(text.len() + other.len())?;
    Ok(Value::Bool(found(text, other)))
}

fn matches(runtime: &mut Runtime, text: &str, pattern: &str) -> Outcome {
    let compiled = runtime.patterns.get(pattern, runtime.budget)?;
    runtime.budget.step(compiled.steps(text.len()))?;
    Ok(Value::Bool(compiled.regex.is_match(text)))
}

fn find(runtime: &mut Runtime, text: &str, pattern: &str) -> Outcome {
    let compiled = runtime.patterns.get(pattern, runtime.budget)?;
    runtime.budget.step(compiled.steps(text.len()))?;
    let found = compiled.regex.find(text).map_or("", |found| found.as_str());
    runtime.budget.allocate(found.len() + ITEM)?;
    Ok(Value::string(found))
}

fn find_all(runtime: &mut Runtime, text: &str, pattern: &str, most: i64) -> Outcome {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let compiled = runtime.patterns.get(pattern, runtime.budget)?;
    let mut items = Vec::new();
    let mut last_end = None;
    runtime.budget.step(compiled.steps(text.len()))?;
    for found in compiled.regex.find_iter(text) {
        if items.len() >= most {
            break;
        }
        // Each search starts at the end of the last match, and may read the whole rest.
        runtime.budget.step(compiled.steps(text.len() - found.end()))?;
        runtime.budget.allocate(found.len() + 2 * ITEM)?;
        // Go omits an empty match after another match.
        if !(found.is_empty() && last_end == Some(found.start())) {
            items.push(Value::string(found.as_str()));
        }
        last_end = Some(found.end());
    }
    runtime.list(items)
}

fn out_of_range(at: i64) -> Failure {
    Failure::error(format!("index out of range: {at}"))
}

/// The number of bytes before this number of characters. `None` if there are fewer.
fn byte_at(text: &str, characters: usize) -> Option<usize> {
    let mut ends = text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len()));
    ends.nth(characters)
}

fn char_at(runtime: &mut Runtime, text: &str, at: i64) -> Outcome {
    let start = usize::try_from(at)
        .ok()
        .and_then(|at| byte_at(text, at))
        .ok_or_else(|| out_of_range(at))?;
    let found: String = text.get(start..).unwrap_or_default().chars().take(1).collect();
    runtime.text(&found)
}

fn position(text: &str, byte: usize) -> Value {
    let characters = text.get(..byte).unwrap_or_default().chars().count();
    Value::Int(i64::try_from(characters).unwrap_or(i64::MAX))
}

fn index_of(runtime: &mut Runtime, text: &str, other: &str, from: i64) -> Outcome {
    runtime.budget.read(text.len() + other.len())?;
    let offset = usize::try_from(from).map_err(|_| out_of_range(from))?;
    let start = byte_at(text, offset);
    if other.is_empty() {
        return Ok(start.map_or_else(|| position(text, text.len()), |start| position(text, start)));
    }
    let Some(start) = start else { return Ok(Value::Int(-1)) };
    let found = text.get(start..).and_then(|rest| rest.find(other));
    Ok(found.map_or(Value::Int(-1), |at| position(text, start + at)))
}

fn last_index_of(runtime: &mut Runtime, text: &str, other: &str, from: Option<i64>) -> Outcome {
    runtime.budget.read(text.len() + other.len())?;
    let Some(from) = from else {
        let found = text.rfind(other);
        return Ok(found.map_or(Value::Int(-1), |at| position(text, at)));
    };
    let offset = usize::try_from(from).map_err(|_| out_of_range(from))?;
    let start = byte_at(text, offset);
    if other.is_empty() {
        return Ok(start.map_or_else(|| position(text, text.len()), |start| position(text, start)));
    }
    let Some(start) = start.filter(|start| *start < text.len()) else {
        return Ok(Value::Int(-1));
    };
    let end = (start + other.len()).min(text.len());
    // The end may be inside a character, where no match can end either.
    let end = (end..=text.len())
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(text.len());
    let found = text
        .get(..end)
        .and_then(|head| head.rfind(other))
        .filter(|at| *at <= start);
    match found {
        Some(at) => Ok(position(text, at)),
        None => Ok(text
            .get(..start)
            .and_then(|head| head.rfind(other))
            .map_or(Value::Int(-1), |at| position(text, at))),
    }
}

fn replace(runtime: &mut Runtime, text: &str, old: &str, new: &str, most: i64) -> Outcome {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let places = if old.is_empty() {
        text.chars().count() + 1
    } else {
        text.matches(old).count()
    };
    let places = places.min(most);
    let length = text.len().saturating_add(places.saturating_mul(new.len()));
    runtime.budget.allocate(length.saturating_add(ITEM))?;
    Ok(Value::string(text.replacen(old, new, most)))
}

fn split(runtime: &mut Runtime, text: &str, separator: &str, most: i64) -> Outcome {
    if most == 0 {
        return runtime.list(Vec::new());
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let count = if separator.is_empty() {
        text.chars().count()
    } else {
        text.matches(separator).count() + 1
    };
    runtime
        .budget
        .allocate(text.len() + count.min(most).saturating_mul(2 * ITEM))?;
    let items: Vec<Value> = if separator.is_empty() {
        by_characters(text, most).into_iter().map(Value::string).collect()
    } else {
        text.splitn(most, separator).map(Value::string).collect()
    };
    runtime.list(items)
}

/// Splits into characters. The last part is the rest.
fn by_characters(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if parts.len() + 1 >= most {
            parts.push(rest);
            break;
        }
        let (head, tail) = rest.split_at(next.len_utf8());
        parts.push(head);
        rest = tail;
    }
    parts
}

fn substring(runtime: &mut Runtime, text: &str, from: i64, to: Option<i64>) -> Outcome {
    if let Some(to) = to.filter(|to| from > *to) {
        return Err(Failure::error(format!(
            "invalid substring range. start: {from}, end: {to}"
        )));
    }
    let at = |at: i64| {
        usize::try_from(at)
            .ok()
            .and_then(|at| byte_at(text, at))
            .ok_or_else(|| out_of_range(at))
    };
    let start = at(from)?;
    let end = to.map_or(Ok(text.len()), at)?;
    runtime.text(text.get(start..end).unwrap_or_default())
}

fn quote(runtime: &mut Runtime, text: &str) -> Outcome {
    runtime.budget.allocate(2 * text.len() + ITEM)?;
    let mut quoted = String::from("\"");
    for character in text.chars() {
        let escaped = match character {
            '\u{7}' => "\\a",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{b}' => "\\v",
            '\\' => "\\\\",
            '"' => "\\\"",
            plain => {
                quoted.push(plain);
                continue;
            }
        };
        quoted.push_str(escaped);
    }
    quoted.push('"');
    runtime.text(&quoted)
}
