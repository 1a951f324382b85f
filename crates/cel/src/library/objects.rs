//! Functions of optionals, quantities, versions and addresses.

use std::net::IpAddr;
use std::rc::Rc;

use olmkit_go::quantity::{self, Quantity, QuantityError};

use super::Found;
use crate::budget::Failure;
use crate::runtime::{ITEM, Runtime};
use crate::value::Value;
use crate::value::net::{self, Cidr};

pub(super) fn call(runtime: &mut Runtime, name: &str, is_member: bool, args: &[Value]) -> Found {
    if let Err(failure) = runtime.budget.allocate(ITEM) {
        return Some(Err(failure));
    }
    if !is_member {
        return made(runtime, name, args);
    }
    let (target, rest) = args.split_first()?;
    match target {
        Value::Optional(inner) => optional(name, inner.as_ref(), rest),
        Value::Quantity(own) => of_quantity(name, *own, rest),
        Value::Semver(own) => version(name, own, rest),
        Value::Ip(own) => address(name, *own, rest),
        Value::Cidr(own) => network(name, *own, rest),
        _ => None,
    }
}

/// Functions that construct such values from others.
fn made(runtime: &mut Runtime, name: &str, args: &[Value]) -> Found {
    if let [Value::String(text), ..] = args
        && let Err(failure) = runtime.budget.read(text.len())
    {
        return Some(Err(failure));
    }
    Some(match (name, args) {
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(Value::some(value.clone())),
        ("optional.ofNonZeroValue", [value]) => return non_zero(value),
        ("optional.unwrap", [Value::List(_)]) => return super::lists::call(runtime, "unwrapOpt", true, args),
        ("quantity", [Value::String(text)]) => parse_quantity(text).map(Value::Quantity),
        ("isQuantity", [Value::String(text)]) => Ok(Value::Bool(quantity::check(text).is_ok())),
        ("sign", [Value::Quantity(own)]) => Ok(Value::Int(own.sign())),
        ("semver", [Value::String(text)]) => parse_version(text, false),
        ("semver", [Value::String(text), Value::Bool(normalize)]) => parse_version(text, *normalize),
        ("isSemver", [Value::String(text)]) => Ok(Value::Bool(parse_version(text, false).is_ok())),
        ("isSemver", [Value::String(text), Value::Bool(normalize)]) => {
            Ok(Value::Bool(parse_version(text, *normalize).is_ok()))
        }
        ("ip", [Value::String(text)]) => net::parse_ip(text).map(Value::Ip).map_err(Failure::Error),
        ("isIP", [Value::String(text)]) => Ok(Value::Bool(net::parse_ip(text).is_ok())),
        ("ip.isCanonical", [Value::String(text)]) => net::parse_ip(text)
            .map(|ip| Value::Bool(ip.to_string() == **text))
            .map_err(Failure::Error),
        ("cidr", [Value::String(text)]) => Cidr::parse(text).map(Value::Cidr).map_err(Failure::Error),
        ("isCIDR", [Value::String(text)]) => Ok(Value::Bool(Cidr::parse(text).is_ok())),
        _ => return None,
    })
}

fn non_zero(value: &Value) -> Found {
    let is_zero = match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.items.is_empty(),
        Value::Duration(nanos) => *nanos == 0,
        // In Go, map literals report whether they are empty. Maps of objects do not.
        Value::Map(map) if !map.entries.is_empty() => false,
        Value::Optional(None) => true,
        Value::Optional(Some(_)) => false,
        other => {
            return Some(Err(Failure::undecided(format!(
                "whether a {} is empty",
                other.type_name()
            ))));
        }
    };
    Some(Ok(if is_zero {
        Value::Optional(None)
    } else {
        Value::some(value.clone())
    }))
}

fn optional(name: &str, inner: Option<&Rc<Value>>, rest: &[Value]) -> Found {
    Some(match (name, inner, rest) {
        ("hasValue", inner, []) => Ok(Value::Bool(inner.is_some())),
        ("value", Some(inner), []) | ("orValue", Some(inner), [_]) => (**inner).clone().sound(),
        ("value", None, []) => Err(Failure::error("optional.none() dereference")),
        ("orValue", None, [other]) | ("or", None, [other @ Value::Optional(_)]) => Ok(other.clone()),
        ("or", Some(inner), [_]) => Ok(Value::Optional(Some(inner.clone()))),
        _ => return None,
    })
}

/// A quantity as the API server parses it, or a failure if the amount has more digits than we compute with.
fn parse_quantity(text: &str) -> Result<Quantity, Failure> {
    Quantity::parse(text).map_err(|error| match error {
        QuantityError::Range => large_quantity(),
        other => Failure::error(other.to_string()),
    })
}

fn large_quantity() -> Failure {
    Failure::undecided("a very large quantity")
}

fn of_quantity(name: &str, own: Quantity, rest: &[Value]) -> Found {
    let other = match rest {
        [Value::Quantity(other)] => Some(*other),
        [Value::Int(other)] if name == "add" || name == "sub" => Some(Quantity::from_integer(*other)),
        _ => None,
    };
    Some(match (name, other) {
        ("isGreaterThan", Some(other)) => Ok(Value::Bool(own > other)),
        ("isLessThan", Some(other)) => Ok(Value::Bool(own < other)),
        ("compareTo", Some(other)) => Ok(Value::Int(ordinal(own.cmp(&other)))),
        ("add", Some(other)) => own.plus(other).map(Value::Quantity).ok_or_else(large_quantity),
        ("sub", Some(other)) => own
            .plus(other.negated())
            .map(Value::Quantity)
            .ok_or_else(large_quantity),
        ("asApproximateFloat", None) => Ok(Value::Double(own.approximate_float())),
        ("isInteger", None) => Ok(Value::Bool(own.integer().is_some())),
        ("asInteger", None) => own
            .integer()
            .map(Value::Int)
            .ok_or_else(|| Failure::error("cannot convert value to integer")),
        _ => return None,
    })
}

fn ordinal(order: std::cmp::Ordering) -> i64 {
    order as i64
}

/// A version. A normalised one may have a `v`, leading zeros, and fewer than three parts.
fn parse_version(text: &str, normalize: bool) -> Result<Value, Failure> {
    let normal = if normalize { normalized(text)? } else { text.to_owned() };
    let version = semver::Version::parse(&normal).map_err(|problem| Failure::error(problem.to_string()))?;
    Ok(Value::Semver(Rc::new(version)))
}

fn normalized(text: &str) -> Result<String, Failure> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err(Failure::error(
            "short version cannot contain PreRelease/Build meta data",
        ));
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}

fn without_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        trimmed.to_owned()
    } else {
        format!("0{trimmed}")
    }
}

fn version(name: &str, own: &semver::Version, rest: &[Value]) -> Found {
    let number = |number: u64| {
        i64::try_from(number)
            .map(Value::Int)
            .map_err(|_| Failure::undecided("a very large version"))
    };
    Some(match (name, rest) {
        ("major", []) => number(own.major),
        ("minor", []) => number(own.minor),
        ("patch", []) => number(own.patch),
        ("isGreaterThan", [Value::Semver(other)]) => Ok(Value::Bool(own.cmp_precedence(other).is_gt())),
        ("isLessThan", [Value::Semver(other)]) => Ok(Value::Bool(own.cmp_precedence(other).is_lt())),
        ("compareTo", [Value::Semver(other)]) => Ok(Value::Int(ordinal(own.cmp_precedence(other)))),
        _ => return None,
    })
}

fn address(name: &str, own: IpAddr, rest: &[Value]) -> Found {
    if !rest.is_empty() {
        return None;
    }
    if name == "family" {
        return Some(Ok(Value::Int(if own.is_ipv4() { 4 } else { 6 })));
    }
    net::property(own, name).map(|holds| Ok(Value::Bool(holds)))
}

fn network(name: &str, own: Cidr, rest: &[Value]) -> Found {
    Some(match (name, rest) {
        ("containsIP", [Value::Ip(ip)]) => Ok(Value::Bool(own.contains_ip(*ip))),
        ("containsIP", [Value::String(text)]) => match net::parse_ip(text) {
            Ok(ip) => Ok(Value::Bool(own.contains_ip(ip))),
            Err(problem) => Err(Failure::Error(problem)),
        },
        ("containsCIDR", [Value::Cidr(other)]) => Ok(Value::Bool(own.contains(*other))),
        ("containsCIDR", [Value::String(text)]) => match Cidr::parse(text) {
            Ok(other) => Ok(Value::Bool(own.contains(other))),
            Err(problem) => Err(Failure::Error(problem)),
        },
        ("ip", []) => Ok(Value::Ip(own.address)),
        ("prefixLength", []) => Ok(Value::Int(i64::from(own.bits))),
        ("masked", []) => Ok(Value::Cidr(own.masked())),
        _ => return None,
    })
}
