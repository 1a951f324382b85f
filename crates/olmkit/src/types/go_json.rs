//! JSON as Go's encoding/json prints it: compact, keys sorted, `<`, `>` and `&` escaped.

use std::fmt::Write as _;

use serde_json::Value;

use super::go_number;

/// Prints a value.
pub fn compact(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// The number of bytes that [`compact`] prints.
pub fn compact_length(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(value) => 5 - usize::from(*value),
        Value::Number(number) => go_number::json(number).len(),
        Value::String(text) => string_length(text),
        Value::Array(items) => 1 + items.len().max(1) + items.iter().map(compact_length).sum::<usize>(),
        Value::Object(entries) => {
            let inside: usize = entries
                .iter()
                .map(|(key, item)| string_length(key) + 1 + compact_length(item))
                .sum();
            1 + entries.len().max(1) + inside
        }
    }
}

fn string_length(text: &str) -> usize {
    // Escapes are rare: only these bytes have longer forms.
    let longer = |byte: &u8| matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0..=0x1f);
    if text.as_bytes().iter().any(longer) {
        string(text).len()
    } else {
        text.len() + 2
    }
}

/// Prints a string with its quotes.
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) => {
            let _ = write!(out, "{value}");
        }
        Value::Number(number) => out.push_str(&go_number::json(number)),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            for (at, (key, item)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                write_value(out, item);
            }
            out.push('}');
        }
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Checks that a text is one JSON value, as strictly as Go does: any UTF-8, control characters only escaped, nothing behind the
/// value but white space, at most 10000 levels.
///
/// # Errors
/// How many bytes Go has read when it gives up.
pub fn check(text: &str) -> Result<(), usize> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
    };
    scanner.document()
}

/// What Go says about the byte that [`check`] found. Its texts depend on what it was reading; this tells the most common ones.
pub fn syntax_error(text: &str, read: usize) -> String {
    let head = text.as_bytes().get(..read).unwrap_or_default();
    let Some(last) = head.last().filter(|_| read > 0) else {
        return "unexpected end of JSON input".to_string();
    };
    if read == text.len()
        && check(text.get(..read).unwrap_or_default()) == Err(read)
        && check(&format!("{text} ")) == Err(read + 1)
    {
        return "unexpected end of JSON input".to_string();
    }
    let shown = match last {
        b'\'' => "'\\''".to_string(),
        b'"' => "'\"'".to_string(),
        byte if byte.is_ascii_graphic() || *byte == b' ' => format!("'{}'", char::from(*byte)),
        byte => format!("'\\x{byte:02x}'"),
    };
    let before = text.get(..read - 1).unwrap_or_default().trim_end();
    let context = match before.as_bytes().last() {
        Some(b'{') => "looking for beginning of object key string",
        Some(b',') if before.rfind('{') > before.rfind('[') => "looking for beginning of object key string",
        Some(b':' | b',' | b'[') | None => "looking for beginning of value",
        Some(b'"') if before.rfind('{') > before.rfind('[') => "after object key",
        _ => "after top-level value",
    };
    format!("invalid character {shown} {context}")
}

const DEEPEST: usize = 10_000;

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), usize> {
        // What is still open, innermost last.
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    self.at += 1;
                    open.push(bracket);
                    if open.len() > DEEPEST {
                        return Err(self.at);
                    }
                    self.blanks();
                    let closing = if bracket == b'{' { b'}' } else { b']' };
                    if self.peek() != Some(closing) {
                        if bracket == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            loop {
                self.blanks();
                match (open.last(), self.peek()) {
                    (None, None) => return Ok(()),
                    (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => {
                        self.at += 1;
                        open.pop();
                    }
                    (Some(b'['), Some(b',')) => {
                        self.at += 1;
                        break;
                    }
                    (Some(b'{'), Some(b',')) => {
                        self.at += 1;
                        self.blanks();
                        self.key()?;
                        break;
                    }
                    _ => return self.fail(),
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The byte at hand is the one that Go refuses; at the end of the text it has read them all.
    fn fail<T>(&self) -> Result<T, usize> {
        Err((self.at + 1).min(self.bytes.len()))
    }

    fn key(&mut self) -> Result<(), usize> {
        if self.peek() != Some(b'"') {
            return self.fail();
        }
        self.string()?;
        self.blanks();
        if self.peek() != Some(b':') {
            return self.fail();
        }
        self.at += 1;
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), usize> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fail(),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), usize> {
        for byte in word {
            if self.peek() != Some(*byte) {
                return self.fail();
            }
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), usize> {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    return self.fail();
                                }
                                self.at += 1;
                            }
                        }
                        _ => return self.fail(),
                    }
                }
                Some(0..=0x1f) | None => return self.fail(),
                Some(_) => self.at += 1,
            }
        }
    }

    fn digits(&mut self) -> Result<(), usize> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.fail();
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), usize> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_checked_as_go_checks_it() {
        for good in [
            "[]",
            " {\"a\": [1, -0.5e+3, \"\\u00e9\\/\"], \"b\": {}} ",
            "null",
            "\"\u{7f}\"",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, read) in [
            (" ", 1),
            ("- a", 2),
            ("[1] x", 5),
            ("{\"a\" 1}", 6),
            ("[1,]", 4),
            ("01", 2),
            ("\"a", 2),
            ("[\"\t\"]", 3),
        ] {
            assert_eq!(check(bad), Err(read), "{bad}");
        }
    }

    #[test]
    fn json_is_spelled_as_go_spells_it() {
        let value = serde_json::json!({"b": [1.0, null, true], "a": "<x>\u{7f}\u{1}é"});
        assert_eq!(
            compact(&value),
            "{\"a\":\"\\u003cx\\u003e\u{7f}\\u0001é\",\"b\":[1,null,true]}"
        );
    }
}
