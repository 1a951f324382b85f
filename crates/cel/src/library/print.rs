//! `format`: inserts list values into a format string.

use olmkit_go::strconv;

use super::convert::plain_text;
use crate::budget::Failure;
use crate::limits;
use crate::runtime::{ITEM, Runtime};
use crate::value::Value;

pub(super) fn format(runtime: &mut Runtime, template: &str, args: &[Value]) -> Result<Value, Failure> {
    let mut out = String::new();
    let mut rest = template;
    let mut args = args.iter().enumerate();
    let mut taken = 0_usize;
    while let Some((before, after)) = rest.split_once('%') {
        push(runtime, &mut out, before)?;
        if let Some(after) = after.strip_prefix('%') {
            push(runtime, &mut out, "%")?;
            rest = after;
            continue;
        }
        let (_, arg) = args
            .next()
            .ok_or_else(|| Failure::error(format!("index {taken} out of range")))?;
        taken += 1;
        rest = clause(runtime, &mut out, after, arg)?;
    }
    push(runtime, &mut out, rest)?;
    runtime.text(&out)
}

/// Appends a string and takes its cost.
fn push(runtime: &mut Runtime, out: &mut String, text: &str) -> Result<(), Failure> {
    runtime.budget.allocate(text.len())?;
    out.push_str(text);
    Ok(())
}

/// Prints one value by the clause at the start of `rest` and returns the remaining format string.
fn clause<'t>(runtime: &mut Runtime, out: &mut String, rest: &'t str, arg: &Value) -> Result<&'t str, Failure> {
    let (precision, rest) = match rest.strip_prefix('.') {
        None => (6, rest),
        Some(rest) => {
            let count = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, rest) = rest.split_at(count);
            let precision = digits
                .parse()
                .ok()
                .filter(|precision| *precision <= limits::FORMAT_PRECISION);
            (
                precision.ok_or_else(|| Failure::undecided("an unusual precision"))?,
                rest,
            )
        }
    };
    let verb = rest
        .chars()
        .next()
        .ok_or_else(|| Failure::error("unexpected end of string"))?;
    let text = match verb {
        's' => {
            whole(runtime, out, arg, false)?;
            String::new()
        }
        'd' => integer(arg, 10, "decimal clause can only be used on integers")?,
        'b' => match arg {
            Value::Bool(value) => u8::from(*value).to_string(),
            other => integer(other, 2, "only integers and bools can be formatted as binary")?,
        },
        'o' => integer(arg, 8, "octal clause can only be used on integers")?,
        'x' => hex(runtime, arg)?,
        'X' => hex(runtime, arg)?.to_uppercase(),
        'f' => fixed(arg, precision)?,
        'e' => return Err(Failure::undecided("scientific notation")),
        other => return Err(Failure::error(format!("unrecognized formatting clause \"{other}\""))),
    };
    push(runtime, out, &text)?;
    Ok(rest.get(verb.len_utf8()..).unwrap_or_default())
}

fn integer(arg: &Value, base: u32, problem: &str) -> Result<String, Failure> {
    let (sign, value) = match arg {
        Value::Int(value) => (if *value < 0 { "-" } else { "" }, value.unsigned_abs()),
        Value::Uint(value) => ("", *value),
        _ => return Err(Failure::error(problem)),
    };
    Ok(match base {
        2 => format!("{sign}{value:b}"),
        8 => format!("{sign}{value:o}"),
        16 => format!("{sign}{value:x}"),
        _ => format!("{sign}{value}"),
    })
}

fn hex(runtime: &mut Runtime, arg: &Value) -> Result<String, Failure> {
    let bytes = match arg {
        Value::String(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes,
        other => {
            return integer(
                other,
                16,
                "only integers, byte buffers, and strings can be formatted as hex",
            );
        }
    };
    runtime.budget.allocate(2 * bytes.len())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn fixed(arg: &Value, precision: usize) -> Result<String, Failure> {
    match arg {
        // The API server writes large numbers with separators of thousands.
        Value::Double(value) if value.is_finite() && value.abs() < 999.0 => Ok(format!("{value:.precision$}")),
        Value::Double(_) | Value::String(_) => Err(Failure::undecided("a number with separators")),
        _ => Err(Failure::error("fixed-point clause can only be used on doubles")),
    }
}

/// Prints any value. Within lists and maps as a literal.
fn whole(runtime: &mut Runtime, out: &mut String, value: &Value, is_inner: bool) -> Result<(), Failure> {
    runtime.budget.step(1)?;
    match value {
        Value::List(list) => {
            push(runtime, out, "[")?;
            for (at, item) in list.items.iter().enumerate() {
                push(runtime, out, if at > 0 { ", " } else { "" })?;
                whole(runtime, out, item, true)?;
            }
            push(runtime, out, "]")
        }
        Value::Map(map) if map.is_object => Err(Failure::undecided("the text of an object")),
        Value::Map(map) => {
            let mut pairs = Vec::with_capacity(map.entries.len());
            for (key, value) in &map.entries {
                runtime.budget.allocate(2 * ITEM)?;
                let mut shown = (String::new(), String::new());
                whole(runtime, &mut shown.0, &key.to_value(), true)?;
                whole(runtime, &mut shown.1, value, true)?;
                pairs.push(shown);
            }
            pairs.sort();
            let pairs: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            push(runtime, out, &format!("{{{}}}", pairs.join(", ")))
        }
        Value::String(text) if is_inner => {
            runtime.budget.allocate(text.len().saturating_mul(4))?;
            push(runtime, out, &strconv::quote(text))
        }
        Value::String(text) => push(runtime, out, text),
        Value::Bytes(bytes) if !is_inner => match std::str::from_utf8(bytes) {
            Ok(text) => push(runtime, out, text),
            Err(_) => Err(Failure::error("invalid UTF-8 in bytes, cannot convert to string")),
        },
        Value::Null => push(runtime, out, "null"),
        Value::Timestamp(moment) => {
            let text = moment
                .text()
                .ok_or_else(|| Failure::undecided("the text of a moment with an offset"))?;
            let shown = if is_inner {
                format!("timestamp(\"{text}\")")
            } else {
                text
            };
            push(runtime, out, &shown)
        }
        Value::Duration(_) if is_inner => {
            let text = plain_text(value).unwrap_or_default();
            push(runtime, out, &format!("duration(\"{text}\")"))
        }
        Value::Double(number) if is_inner && number.is_finite() => push(runtime, out, &format!("{number:.6}")),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Duration(_) => {
            push(runtime, out, &plain_text(value).unwrap_or_default())
        }
        Value::Double(_) if !is_inner => push(runtime, out, &plain_text(value).unwrap_or_default()),
        Value::Broken(failure) => Err((**failure).clone()),
        other => Err(Failure::undecided(format!("the text of a {}", other.type_name()))),
    }
}
