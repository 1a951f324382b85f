//! What Go says about a JSON syntax error.

/// Go's words for the first syntax error of the value at the start of a text; none if there is none.
pub fn syntax_error(text: &str) -> Option<String> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
    };
    scanner.values().err()
}

struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
}

/// What is open around the place that is read.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    List,
    Map,
}

const VALUE: &str = "looking for beginning of value";
const KEY: &str = "looking for beginning of object key string";

impl Scanner<'_> {
    /// Reads one value with everything in it. Depth costs no stack.
    fn values(&mut self) -> Result<(), String> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            // A value begins here.
            match self.token()? {
                b'{' => {
                    self.at += 1;
                    if self.token()? == b'}' {
                        self.at += 1;
                    } else {
                        self.key()?;
                        open.push(Open::Map);
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if self.token()? == b']' {
                        self.at += 1;
                    } else {
                        open.push(Open::List);
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // It has ended; so may what is around it.
            loop {
                let Some(around) = open.last() else { return Ok(()) };
                match (self.token()?, around) {
                    (b',', Open::List) => {
                        self.at += 1;
                        break;
                    }
                    (b',', Open::Map) => {
                        self.at += 1;
                        self.token()?;
                        self.key()?;
                        break;
                    }
                    (b']', Open::List) | (b'}', Open::Map) => {
                        self.at += 1;
                        open.pop();
                    }
                    (_, Open::List) => return Err(self.invalid("after array element")),
                    (_, Open::Map) => return Err(self.invalid("after object key:value pair")),
                }
            }
        }
    }

    /// The next byte that is no white space.
    fn token(&mut self) -> Result<u8, String> {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.byte()
    }

    fn byte(&self) -> Result<u8, String> {
        self.bytes
            .get(self.at)
            .copied()
            .ok_or_else(|| "unexpected EOF".to_owned())
    }

    fn invalid(&self, context: &str) -> String {
        let shown = match self.bytes.get(self.at).copied().unwrap_or_default() {
            b'\'' => "'\\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            b'\\' => "'\\\\'".to_owned(),
            b'\n' => "'\\n'".to_owned(),
            b'\r' => "'\\r'".to_owned(),
            b'\t' => "'\\t'".to_owned(),
            byte @ (0..=0x1f | 0x7f) => format!("'\\x{byte:02x}'"),
            // Go takes the byte for a character.
            byte @ 0x80..=0x9f => format!("'\\u00{byte:02x}'"),
            byte => format!("'{}'", char::from(byte)),
        };
        format!("invalid character {shown} {context}")
    }

    /// Reads a key and the colon behind it.
    fn key(&mut self) -> Result<(), String> {
        if self.byte()? != b'"' {
            return Err(self.invalid(KEY));
        }
        self.string()?;
        if self.token()? != b':' {
            return Err(self.invalid("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), String> {
        match self.byte()? {
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.invalid(VALUE)),
        }
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.byte()? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    match self.byte()? {
                        b'u' => {
                            for _ in 0..4 {
                                self.at += 1;
                                if !self.byte()?.is_ascii_hexdigit() {
                                    return Err(self.invalid("in \\u hexadecimal character escape"));
                                }
                            }
                        }
                        b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                        _ => return Err(self.invalid("in string escape code")),
                    }
                }
                0..=0x1f => return Err(self.invalid("in string literal")),
                _ => {}
            }
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for letter in word.bytes() {
            if self.byte()? != letter {
                let expecting = char::from(letter);
                return Err(self.invalid(&format!("in literal {word} (expecting '{expecting}')")));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.byte()? == b'-' {
            self.at += 1;
        }
        match self.byte()? {
            b'0' => self.at += 1,
            _ => self.digits("in numeric literal")?,
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte()?, b'+' | b'-') {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Result<(), String> {
        if !self.byte()?.is_ascii_digit() {
            return Err(self.invalid(context));
        }
        while matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_worded_as_in_go() {
        for (text, expected) in [
            ("{\"a\": [1, {\"b\": null}], \"c\": -1.5e+3}", None),
            ("{\"a\": 1", Some("unexpected EOF")),
            ("{\"a\": \"x", Some("unexpected EOF")),
            (
                "{a: 1}",
                Some("invalid character 'a' looking for beginning of object key string"),
            ),
            (
                "{\"a\": 1,}",
                Some("invalid character '}' looking for beginning of object key string"),
            ),
            ("{\"a\" 1}", Some("invalid character '1' after object key")),
            (
                "{\"a\": 1 \"b\"}",
                Some("invalid character '\"' after object key:value pair"),
            ),
            ("{\"a\": [1 2]}", Some("invalid character '2' after array element")),
            (
                "{\"a\": [1,]}",
                Some("invalid character ']' looking for beginning of value"),
            ),
            (
                "{\"a\": x}",
                Some("invalid character 'x' looking for beginning of value"),
            ),
            (
                "{\"a\": nul}",
                Some("invalid character '}' in literal null (expecting 'l')"),
            ),
            ("{\"a\": -x}", Some("invalid character 'x' in numeric literal")),
            (
                "{\"a\": 1.x}",
                Some("invalid character 'x' after decimal point in numeric literal"),
            ),
            ("{\"a\": 01}", Some("invalid character '1' after object key:value pair")),
            ("{\"a\": \"\\x\"}", Some("invalid character 'x' in string escape code")),
            (
                "{\"a\": \"\\u00g0\"}",
                Some("invalid character 'g' in \\u hexadecimal character escape"),
            ),
            ("{\"a\": \"\n\"}", Some("invalid character '\\n' in string literal")),
            (
                "{\"a\": é}",
                Some("invalid character 'Ã' looking for beginning of value"),
            ),
        ] {
            assert_eq!(syntax_error(text).as_deref(), expected, "{text}");
        }
    }
}
