//! Conversions between types, and sizes.

use std::rc::Rc;

use olmkit_go::strconv;

use super::Found;
use crate::budget::Failure;
use crate::runtime::{Runtime, overflow};
use crate::value::Value;
use crate::value::time::{self, Timestamp};

pub(super) fn call(runtime: &mut Runtime, name: &str, is_member: bool, args: &[Value]) -> Found {
    let [value] = args else { return None };
    if name == "size" {
        return size(runtime, value);
    }
    if is_member {
        return None;
    }
    Some(match (name, value) {
        ("type", value) => runtime
            .budget
            .allocate(64)
            .map(|()| Value::Type(Rc::from(value.type_name()))),
        ("dyn", value) => Ok(value.clone()),
        ("bool", Value::Bool(_))
        | ("bytes", Value::Bytes(_))
        | ("double", Value::Double(_))
        | ("duration", Value::Duration(_))
        | ("int", Value::Int(_))
        | ("string", Value::String(_))
        | ("timestamp", Value::Timestamp(_))
        | ("uint", Value::Uint(_)) => Ok(value.clone()),
        ("string", value) => string(runtime, value)?,
        ("bytes", Value::String(text)) => runtime
            .budget
            .allocate(text.len())
            .map(|()| Value::Bytes(Rc::from(text.as_bytes()))),
        ("bool", Value::String(text)) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(refused("string", "bool")),
        },
        ("int", value) => int(value)?,
        ("uint", value) => uint(value)?,
        ("double", value) => double(value)?,
        ("duration", Value::String(text)) => time::parse_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| refused("string", "google.protobuf.Duration")),
        ("timestamp", Value::String(text)) => Timestamp::parse(text)
            .map(Value::Timestamp)
            .ok_or_else(|| refused("string", "google.protobuf.Timestamp")),
        ("timestamp", Value::Int(seconds)) => Timestamp::new(*seconds, 0)
            .map(Value::Timestamp)
            .ok_or_else(|| Failure::error("timestamp overflow")),
        _ => return None,
    })
}

fn refused(from: &str, to: &str) -> Failure {
    Failure::error(format!("type conversion error from '{from}' to '{to}'"))
}

fn size(runtime: &mut Runtime, value: &Value) -> Found {
    let size = match value {
        Value::String(text) => {
            if let Err(failure) = runtime.budget.read(text.len()) {
                return Some(Err(failure));
            }
            text.chars().count()
        }
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.entries.len() + map.others.len(),
        _ => return None,
    };
    Some(i64::try_from(size).map(Value::Int).map_err(|_| overflow()))
}

fn string(runtime: &mut Runtime, value: &Value) -> Found {
    let text = match value {
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => return Some(runtime.text(text)),
            Err(_) => return Some(Err(Failure::error("invalid UTF-8 in bytes, cannot convert to string"))),
        },
        Value::Timestamp(moment) => match moment.text() {
            Some(text) => text,
            None => return Some(Err(Failure::undecided("the text of a moment with an offset"))),
        },
        other => plain_text(other)?,
    };
    Some(runtime.text(&text))
}

/// The string form of a value, if it is short.
pub(super) fn plain_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => strconv::format_g(*value),
        Value::Timestamp(moment) => moment.text()?,
        Value::Duration(nanos) => time::duration_text(*nanos),
        Value::Ip(ip) => ip.to_string(),
        Value::Cidr(cidr) => cidr.to_string(),
        _ => return None,
    })
}

#[allow(clippy::cast_possible_truncation)]
fn int(value: &Value) -> Found {
    Some(match value {
        Value::Uint(value) => i64::try_from(*value).map(Value::Int).map_err(|_| overflow()),
        Value::Double(value) if value.is_finite() && value.abs() < 9_223_372_036_854_775_808.0 => {
            Ok(Value::Int(*value as i64))
        }
        Value::Double(_) => Err(overflow()),
        Value::String(text) => strconv::parse_int(text, 10)
            .map(Value::Int)
            .map_err(|_| refused("string", "int")),
        Value::Timestamp(moment) => Ok(Value::Int(moment.seconds)),
        Value::Duration(nanos) => Ok(Value::Int(*nanos)),
        _ => return None,
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn uint(value: &Value) -> Found {
    let overflow = || Failure::error("unsigned integer overflow");
    Some(match value {
        Value::Int(value) => u64::try_from(*value).map(Value::Uint).map_err(|_| overflow()),
        Value::Double(value) if *value >= 0.0 && *value < 18_446_744_073_709_551_616.0 => {
            Ok(Value::Uint(*value as u64))
        }
        Value::Double(_) => Err(overflow()),
        Value::String(text) => strconv::parse_uint(text, 10)
            .map(Value::Uint)
            .map_err(|_| refused("string", "uint")),
        _ => return None,
    })
}

#[allow(clippy::cast_precision_loss)]
fn double(value: &Value) -> Found {
    Some(match value {
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        Value::String(text) if text.len() > 1_000 || text.contains(['x', 'X', 'p', 'P', '_']) => {
            Err(Failure::undecided("an unusual text of a number"))
        }
        Value::String(text) => match text.parse::<f64>() {
            Ok(value) if value.is_infinite() && !text.contains(['n', 'N']) => Err(refused("string", "double")),
            Ok(value) => Ok(Value::Double(value)),
            Err(_) => Err(refused("string", "double")),
        },
        _ => return None,
    })
}
