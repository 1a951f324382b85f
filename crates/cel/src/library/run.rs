//! Finds the function that a call means.

use crate::budget::Failure;
use crate::runtime::{Outcome, Runtime};
use crate::value::Value;

/// Calls a function. The receiver is the first argument.
pub(crate) fn call(runtime: &mut Runtime, name: &str, is_member: bool, args: &[Value]) -> Outcome {
    for arg in args {
        if let Value::Broken(failure) = arg {
            return Err((**failure).clone());
        }
    }
    let groups = [
        super::convert::call,
        super::strings::call,
        super::lists::call,
        super::objects::call,
        super::urls::call,
        super::times::call,
        super::formats::call,
    ];
    for group in groups {
        if let Some(result) = group(runtime, name, is_member, args) {
            return result;
        }
    }
    // Distinguishes unknown functions from known ones with arguments of the wrong types.
    if super::signature::overloads(name).is_empty() {
        return Err(Failure::undecided(format!("the function {name}")));
    }
    if args.iter().any(|arg| matches!(arg, Value::Preserved(_))) {
        return Err(Failure::undecided("data without a schema"));
    }
    Err(Failure::no_overload())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::{IpAddr, Ipv4Addr};
    use std::rc::Rc;

    use super::*;
    use crate::budget::Budget;
    use crate::library::declarations::TYPES;
    use crate::library::signature;
    use crate::types::{Shape, Type};
    use crate::value::net::Cidr;
    use crate::value::time::Timestamp;
    use crate::value::{Key, ParsedUrl};

    fn sample(of: &Type) -> Value {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        match of {
            Type::Null => Value::Null,
            Type::Bool => Value::Bool(true),
            Type::Int | Type::Dyn | Type::Unknown | Type::Param(_) | Type::Object(_) => Value::Int(1),
            Type::Uint => Value::Uint(1),
            Type::Double => Value::Double(1.0),
            Type::String => Value::string("1"),
            Type::Bytes => Value::Bytes(Rc::from(*b"1")),
            Type::Timestamp => Timestamp::new(1, 0).map_or(Value::Null, Value::Timestamp),
            Type::Duration => Value::Duration(1),
            Type::Opaque("net.IP") => Value::Ip(address),
            Type::Opaque("net.CIDR") => Value::Cidr(Cidr { address, bits: 8 }),
            Type::Opaque("kubernetes.Quantity") => Value::Quantity(olmkit_go::quantity::Quantity::from_integer(1)),
            Type::Opaque("kubernetes.Semver") => Value::Semver(Rc::new(semver::Version::new(1, 0, 0))),
            Type::Opaque("kubernetes.URL") => Value::Url(Rc::new(ParsedUrl {
                text: "/".to_owned(),
                url: olmkit_go::url::Url::default(),
            })),
            Type::Opaque(_) => Value::Format("dns1123Label"),
            Type::Of(compound) => {
                let inner = compound.args.last().map_or(Value::Null, sample);
                match compound.shape {
                    Shape::List => Value::list(vec![inner]),
                    Shape::Map => Value::map(BTreeMap::from([(Key::Int(1), inner)])),
                    Shape::Optional => Value::some(inner),
                    Shape::Type => Value::Type(Rc::from("int")),
                }
            }
        }
    }

    /// A function that is declared but not implemented would cause findings for objects that the API server accepts.
    #[test]
    fn every_declared_function_is_there() {
        assert_eq!(TYPES.len(), 6);
        let mut count = 0;
        for (name, overload) in signature::all() {
            // Operators and macros are not calls when an expression runs.
            if name.contains(['_', '@']) {
                continue;
            }
            let args: Vec<Value> = overload.params.iter().map(sample).collect();
            let mut budget = Budget::for_object();
            let mut runtime = Runtime::new(&mut budget);
            let result = call(&mut runtime, name, overload.is_member, &args);
            let is_missing = match &result {
                Err(Failure::Error(message)) => message == "no such overload",
                Err(Failure::Undecided(reason)) => reason.starts_with("the function"),
                _ => false,
            };
            assert!(!is_missing, "{name} of {args:?}: {result:?}");
            count += 1;
        }
        assert!(count > 150, "{count}");
    }
}
