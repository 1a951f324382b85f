//! Splits an expression into tokens.

use crate::error::ParseError;
use crate::literal;
use crate::token::Token;

/// Words that are kept for languages around CEL. They may name fields, but no variables.
pub(crate) const RESERVED: [&str; 18] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The operator or bracket at the start of a string.
fn punctuation(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [b'=', b'=', ..] => "==",
        [b'!', b'=', ..] => "!=",
        [b'<', b'=', ..] => "<=",
        [b'>', b'=', ..] => ">=",
        [b'&', b'&', ..] => "&&",
        [b'|', b'|', ..] => "||",
        [b'<', ..] => "<",
        [b'>', ..] => ">",
        [b'[', ..] => "[",
        [b']', ..] => "]",
        [b'{', ..] => "{",
        [b'}', ..] => "}",
        [b'(', ..] => "(",
        [b')', ..] => ")",
        [b'.', ..] => ".",
        [b',', ..] => ",",
        [b'-', ..] => "-",
        [b'!', ..] => "!",
        [b'?', ..] => "?",
        [b':', ..] => ":",
        [b'+', ..] => "+",
        [b'*', ..] => "*",
        [b'/', ..] => "/",
        [b'%', ..] => "%",
        _ => return None,
    })
}

pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next token and where it starts.
    pub(crate) fn next(&mut self) -> Result<(usize, Token), ParseError> {
        self.skip_space();
        let (start, rest) = (self.at, self.rest());
        let Some(first) = rest.chars().next() else {
            return Ok((start, Token::End));
        };
        if let Some((token, length)) =
            literal::quoted(rest).map_err(|problem| ParseError::syntax(self.text, start, problem))?
        {
            self.at += length;
            return Ok((start, token));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let length = rest
                .bytes()
                .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                .count();
            self.at += length;
            return Ok((start, Token::Ident(rest.get(..length).unwrap_or_default().to_owned())));
        }
        let is_fraction = first == '.' && rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if first.is_ascii_digit() || is_fraction {
            let (token, length) =
                literal::number(rest).map_err(|problem| ParseError::syntax(self.text, start, problem))?;
            self.at += length;
            return Ok((start, token));
        }
        if first == '`' {
            return self.escaped(start);
        }
        if let Some(found) = punctuation(rest.as_bytes()) {
            self.at += found.len();
            return Ok((start, Token::Punct(found)));
        }
        Err(ParseError::syntax(
            self.text,
            start,
            format!("token recognition error at: '{first}'"),
        ))
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let space = rest
                .bytes()
                .take_while(|byte| matches!(byte, b'\t' | b' ' | b'\r' | b'\n' | 0x0c))
                .count();
            if space > 0 {
                self.at += space;
            } else if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }

    fn escaped(&mut self, start: usize) -> Result<(usize, Token), ParseError> {
        let inner = self.rest().get(1..).unwrap_or_default();
        let length = inner
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"_.-/ ".contains(byte))
            .count();
        if length == 0 || inner.as_bytes().get(length) != Some(&b'`') {
            return Err(ParseError::syntax(
                self.text,
                start,
                "token recognition error at: '`'".to_owned(),
            ));
        }
        self.at += length + 2;
        Ok((
            start,
            Token::Escaped(inner.get(..length).unwrap_or_default().to_owned()),
        ))
    }
}
