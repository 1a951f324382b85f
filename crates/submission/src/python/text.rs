//! Python's `str` and `repr`.

use olmkit_go::unicode::is_print;

use super::{Node, Value};

/// String forms are truncated here: a value that refers to itself many times would print as a very long one.
const LONGEST: usize = 1 << 20;

/// Python's `str`.
pub(crate) fn shown(node: &Node) -> String {
    match &node.value {
        Value::Str(text) => text.clone(),
        Value::Date(date) => date.to_string(),
        _ => repr(node),
    }
}

/// Python's `repr`.
pub(crate) fn repr(node: &Node) -> String {
    let mut out = String::new();
    write(node, &mut out);
    out
}

fn write(node: &Node, out: &mut String) {
    if out.len() > LONGEST {
        return;
    }
    match &node.value {
        Value::None => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::BigInt(digits) => out.push_str(digits),
        Value::Float(value) => out.push_str(&float(*value)),
        Value::Str(text) => out.push_str(&quoted(text)),
        Value::Date(date) => out.push_str(&date.repr()),
        Value::Other(name) => out.push_str(name),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Dict(entries) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write(key, out);
                out.push_str(": ");
                write(value, out);
            }
            out.push('}');
        }
    }
}

/// A quoted string in `repr` form.
pub(crate) fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if character == quote => {
                out.push('\\');
                out.push(character);
            }
            _ if is_print(character) => out.push(character),
            _ => {
                let code = u32::from(character);
                out.push_str(&match code {
                    0..=0xff => format!("\\x{code:02x}"),
                    0x100..=0xffff => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
        }
    }
    out.push(quote);
    out
}

/// A list of strings in `repr` form.
pub(crate) fn list<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| quoted(item.as_ref())).collect();
    format!("[{}]", items.join(", "))
}

/// A list of pairs, as `repr` writes it.
pub(crate) fn pairs<'a>(items: impl IntoIterator<Item = &'a (String, String)>) -> String {
    let items: Vec<String> = items
        .into_iter()
        .map(|(first, second)| format!("({}, {})", quoted(first), quoted(second)))
        .collect();
    format!("[{}]", items.join(", "))
}

fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{value}");
    if plain.contains('.') {
        plain
    } else {
        format!("{plain}.0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_python_prints_them() {
        for (value, wanted) in [
            (Value::Float(4.0), "4.0"),
            (Value::Float(1e16), "1e+16"),
            (Value::Float(0.0001), "0.0001"),
            (Value::Float(0.00001), "1e-05"),
            (Value::Str("it's".into()), "\"it's\""),
            (Value::Str("a'b\"\n\u{7f}\u{200b}é".into()), "'a\\'b\"\\n\\x7f\\u200bé'"),
            (Value::None, "None"),
        ] {
            assert_eq!(repr(&Node::new(value)), wanted);
        }
    }
}
