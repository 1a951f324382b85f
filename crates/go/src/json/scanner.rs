//! Syntax errors of JSON.

use crate::strconv::quote;

/// A syntax error with Go's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The message: `invalid character 'x' looking for beginning of value`.
    pub message: String,
    /// Number of bytes read, including the invalid one.
    pub offset: usize,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}

/// Checks that the input is exactly one JSON value, as `json.Unmarshal` does before it decodes.
///
/// # Errors
/// The first fault.
pub fn check(text: &str) -> Result<(), SyntaxError> {
    let mut scanner = Scanner::over(text, true);
    scanner.value()?;
    scanner.skip_space();
    match scanner.peek() {
        None => Ok(()),
        Some(_) => Err(scanner.invalid("after top-level value")),
    }
}

/// Checks the value at the start of the input, as `json.Decoder.Decode` does.
///
/// # Errors
/// The first fault. `EOF` when there is nothing but white space.
pub fn check_first(text: &str) -> Result<(), SyntaxError> {
    Scanner::over(text, false).value()
}

/// `encoding/json` rejects deeper nesting.
const MAX_DEPTH: usize = 10_000;

struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
    /// The input must end after the value.
    whole: bool,
}

/// The innermost open object or array at the current position.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    List,
    Map,
}

impl<'t> Scanner<'t> {
    fn over(text: &'t str, whole: bool) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
            whole,
        }
    }

    /// Reads one value with everything in it. Depth costs no stack.
    fn value(&mut self) -> Result<(), SyntaxError> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            // A value begins here.
            match self.token()? {
                bracket @ (b'{' | b'[') => {
                    if open.len() == MAX_DEPTH {
                        return Err(self.invalid("exceeded max depth"));
                    }
                    self.at += 1;
                    let (closing, around) = if bracket == b'{' {
                        (b'}', Open::Map)
                    } else {
                        (b']', Open::List)
                    };
                    if self.token()? == closing {
                        self.at += 1;
                    } else {
                        if around == Open::Map {
                            self.key()?;
                        }
                        open.push(around);
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // It has ended. Its parents may have ended too.
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

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte that is not white space.
    fn token(&mut self) -> Result<u8, SyntaxError> {
        self.skip_space();
        self.byte()
    }

    fn byte(&self) -> Result<u8, SyntaxError> {
        self.peek().ok_or_else(|| {
            let blank = self
                .bytes
                .iter()
                .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
            let message = match (self.whole, blank) {
                (true, _) => "unexpected end of JSON input",
                (false, true) => "EOF",
                (false, false) => "unexpected EOF",
            };
            SyntaxError {
                message: message.to_owned(),
                offset: self.bytes.len(),
            }
        })
    }

    /// The next byte if white space is not allowed. At the end, `json.Unmarshal` tests whether a space would complete
    /// the value.
    fn inner_byte(&self) -> Result<u8, SyntaxError> {
        match self.peek() {
            None if self.whole => Ok(b' '),
            _ => self.byte(),
        }
    }

    /// The byte at hand is wrong.
    fn invalid(&self, context: &str) -> SyntaxError {
        // Go treats the byte as a character.
        let shown = match char::from(self.peek().unwrap_or(b' ')) {
            '\'' => "\\'".to_owned(),
            '"' => "\"".to_owned(),
            other => quote(other.encode_utf8(&mut [0; 4])).trim_matches('"').to_owned(),
        };
        SyntaxError {
            message: format!("invalid character '{shown}' {context}"),
            offset: (self.at + 1).min(self.bytes.len()),
        }
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Result<(), SyntaxError> {
        if self.byte()? != b'"' {
            return Err(self.invalid("looking for beginning of object key string"));
        }
        self.string()?;
        if self.token()? != b':' {
            return Err(self.invalid("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), SyntaxError> {
        match self.byte()? {
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.invalid("looking for beginning of value")),
        }
    }

    fn string(&mut self) -> Result<(), SyntaxError> {
        self.at += 1;
        loop {
            match self.byte()? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    match self.inner_byte()? {
                        b'u' => {
                            for _ in 0..4 {
                                self.at += 1;
                                if !self.inner_byte()?.is_ascii_hexdigit() {
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

    fn literal(&mut self, word: &str) -> Result<(), SyntaxError> {
        for letter in word.bytes() {
            if self.inner_byte()? != letter {
                let expecting = char::from(letter);
                return Err(self.invalid(&format!("in literal {word} (expecting '{expecting}')")));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        if self.inner_byte()? == b'-' {
            self.at += 1;
        }
        match self.inner_byte()? {
            b'0' => self.at += 1,
            _ => self.digits("in numeric literal")?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.inner_byte()?, b'+' | b'-') {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Result<(), SyntaxError> {
        if !self.inner_byte()?.is_ascii_digit() {
            return Err(self.invalid(context));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }
}
