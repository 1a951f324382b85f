//! Reads the table of functions.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Library;
use super::declarations::{TABLE, TYPES};
use crate::types::{Shape, Type};

/// One way to call a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) library: Library,
    /// True if the first parameter is the receiver.
    pub(crate) is_member: bool,
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
    /// Number of type variables in the signature. They are 0, 1, ….
    pub(crate) variables: u32,
}

static FUNCTIONS: LazyLock<HashMap<String, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: HashMap<String, Vec<Overload>> = HashMap::new();
    for (library, lines) in TABLE {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            for line in expanded(line) {
                if let Some((name, overload)) = read(library, &line) {
                    functions.entry(name.to_owned()).or_default().push(overload);
                }
            }
        }
    }
    functions
});

/// All ways to call a function. Empty when there is no such function.
pub(crate) fn overloads(name: &str) -> &'static [Overload] {
    FUNCTIONS.get(name).map_or(&[], Vec::as_slice)
}

/// Every function, once for each way to call it.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static Overload)> {
    let named = FUNCTIONS.iter();
    named.flat_map(|(name, overloads)| overloads.iter().map(move |overload| (name.as_str(), overload)))
}

/// The type with this name, as a type of types.
pub(crate) fn type_named(name: &str) -> Option<Type> {
    let inner = match name {
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "type" => Type::new(Shape::Type, vec![Type::Dyn]),
        "optional_type" => Type::optional(Type::Dyn),
        "null_type" => Type::Null,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        "bool" | "int" | "uint" | "double" | "string" | "bytes" | "dyn" => simple(name)?,
        _ => Type::Opaque(TYPES.iter().find(|(_, full)| *full == name)?.1),
    };
    Some(Type::new(Shape::Type, vec![inner]))
}

/// Expands a line with `{a|b}` to one line for each.
fn expanded(line: &str) -> Vec<String> {
    let choices = line.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    let Some((choices, _)) = choices else {
        return vec![line.to_owned()];
    };
    let group = format!("{{{choices}}}");
    choices.split('|').map(|choice| line.replace(&group, choice)).collect()
}

/// Reads `receiver name(parameters) result`. Functions without a receiver omit the first word.
fn read(library: Library, line: &str) -> Option<(&str, Overload)> {
    let words: Vec<&str> = line.split(' ').collect();
    let (receiver, call, result) = match words.as_slice() {
        [receiver, call, result] => (Some(*receiver), *call, *result),
        [call, result] => (None, *call, *result),
        _ => return None,
    };
    let (name, params) = call.strip_suffix(')')?.split_once('(')?;
    let mut names = Vec::new();
    let mut types = Vec::new();
    for text in receiver.into_iter().chain(split(params)) {
        types.push(type_of(text, &mut names)?);
    }
    let result = type_of(result, &mut names)?;
    let overload = Overload {
        library,
        is_member: receiver.is_some(),
        params: types,
        result,
        variables: u32::try_from(names.len()).ok()?,
    };
    Some((name, overload))
}

/// Cuts at the commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    parts
}

fn type_of(text: &str, variables: &mut Vec<String>) -> Option<Type> {
    if let Some((shape, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let args = split(inner)
            .into_iter()
            .map(|arg| type_of(arg, variables))
            .collect::<Option<Vec<_>>>()?;
        let shape = match shape {
            "list" => Shape::List,
            "map" => Shape::Map,
            "optional" => Shape::Optional,
            "type" => Shape::Type,
            _ => return None,
        };
        return Some(Type::new(shape, args));
    }
    if text.len() == 1 && text.starts_with(|c: char| c.is_ascii_uppercase()) {
        let at = variables.iter().position(|known| known == text).unwrap_or_else(|| {
            variables.push(text.to_owned());
            variables.len() - 1
        });
        return u32::try_from(at).ok().map(Type::Param);
    }
    simple(text)
}

fn simple(text: &str) -> Option<Type> {
    Some(match text {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "dyn" => Type::Dyn,
        _ => Type::Opaque(TYPES.iter().find(|(short, _)| *short == text)?.1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for (library, lines) in TABLE {
            for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
                for line in expanded(line) {
                    assert!(read(library, &line).is_some(), "{line}");
                }
            }
        }
        assert_eq!(overloads("_+_").len(), 9);
        assert_eq!(overloads("sum").len(), 4);
        assert!(overloads("nothing").is_empty());
    }
}
