//! Values as Go's `fmt` prints them in messages.

use std::fmt::Write as _;

use serde_json::Value;

use super::go_number;

/// A string as `%q` prints it.
pub fn quote(text: &str) -> String {
    quote_where(text, |c| {
        c.is_ascii_graphic() || c == ' ' || (!c.is_ascii() && is_printable(c))
    })
}

/// A string as `%+q` prints it: everything beyond ASCII escaped.
pub fn quote_ascii(text: &str) -> String {
    quote_where(text, |c| c.is_ascii_graphic() || c == ' ')
}

fn is_printable(c: char) -> bool {
    // What Rust's own debug form leaves alone is what is printable, except blanks other than the plain one.
    !c.is_whitespace() && c.escape_debug().count() == 1
}

fn quote_where(text: &str, plain: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if plain(c) => out.push(c),
            '\0'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if u32::from(c) <= 0xffff => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

/// A JSON value as `%v` prints the tree that Go decodes it into: `map[a:1 b:[x y]]`.
pub fn value(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(_) => {
            let _ = write!(out, "{value}");
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => out.push_str(&go_number::general(float)),
            _ => {
                let _ = write!(out, "{number}");
            }
        },
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push_str("map[");
            for (at, (key, item)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write_value(out, item);
            }
            out.push(']');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_trees_are_printed_as_go_prints_them() {
        assert_eq!(quote("a\"b\té\u{1}"), "\"a\\\"b\\té\\x01\"");
        assert_eq!(quote_ascii("é😀"), "\"\\u00e9\\U0001f600\"");
        let tree = serde_json::json!({"b": [1, "x y", null], "a": {"c": 1.5}});
        assert_eq!(value(&tree), "map[a:map[c:1.5] b:[1 x y <nil>]]");
    }
}
