//! String, bytes and number literals.

use crate::token::Token;

/// A quoted literal at the start of `rest` and its length. `None` when there is none.
pub(crate) fn quoted(rest: &str) -> Result<Option<(Token, usize)>, String> {
    let bytes = rest.as_bytes();
    let mut at = 0;
    let is_bytes = matches!(bytes.first(), Some(b'b' | b'B'));
    at += usize::from(is_bytes);
    let is_raw = matches!(bytes.get(at), Some(b'r' | b'R'));
    at += usize::from(is_raw);
    let Some(quote @ (b'"' | b'\'')) = bytes.get(at) else {
        return Ok(None);
    };
    let triple = [*quote; 3];
    let is_triple = bytes.get(at..).is_some_and(|rest| rest.starts_with(&triple));
    let closing: &[u8] = if is_triple {
        &triple
    } else {
        std::slice::from_ref(quote)
    };
    let start = at + closing.len();
    let end = end_of_text(bytes, start, closing, is_raw)
        .ok_or_else(|| format!("token recognition error at: '{}'", shortened(rest)))?;
    let body = rest
        .get(start..end)
        .unwrap_or_default()
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let token = match (is_bytes, is_raw) {
        (false, true) => Token::String(body),
        (true, true) => Token::Bytes(body.into_bytes()),
        (false, false) => Token::String(unescape_text(&body)?),
        (true, false) => Token::Bytes(unescape_bytes(&body)?),
    };
    Ok(Some((token, end + closing.len())))
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Offset of the closing quotes.
fn end_of_text(bytes: &[u8], start: usize, closing: &[u8], is_raw: bool) -> Option<usize> {
    let mut at = start;
    loop {
        let rest = bytes.get(at..)?;
        match rest.first()? {
            _ if rest.starts_with(closing) => return Some(at),
            b'\\' if !is_raw => at += 2,
            b'\n' | b'\r' if closing.len() == 1 => return None,
            _ => at += 1,
        }
    }
}

/// One escape sequence: its value, whether that is a byte, and the rest.
fn escape(rest: &str) -> Result<(u32, bool, &str), String> {
    let invalid = || format!("invalid escape sequence: \\{}", rest.chars().next().unwrap_or(' '));
    let first = rest.chars().next().ok_or_else(invalid)?;
    let after = rest.get(first.len_utf8()..).unwrap_or_default();
    let digits = |from: &'_ str, count: usize, radix: u32| -> Option<u32> {
        let digits = from.get(..count)?;
        let all = digits.chars().all(|digit| digit.is_digit(radix));
        all.then(|| u32::from_str_radix(digits, radix).ok()).flatten()
    };
    let plain = match first {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        '\\' | '\'' | '"' | '`' | '?' => u32::from(first),
        'x' | 'X' | 'u' | 'U' => {
            let count = match first {
                'u' => 4,
                'U' => 8,
                _ => 2,
            };
            let value = digits(after, count, 16).ok_or_else(invalid)?;
            return Ok((value, count == 2, after.get(count..).unwrap_or_default()));
        }
        '0'..='3' => {
            let value = digits(rest, 3, 8).ok_or_else(invalid)?;
            return Ok((value, true, rest.get(3..).unwrap_or_default()));
        }
        _ => return Err(invalid()),
    };
    Ok((plain, true, after))
}

fn unescape_text(body: &str) -> Result<String, String> {
    let mut text = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let (value, _, after) = escape(after)?;
        text.push(char::from_u32(value).ok_or_else(|| "invalid unicode code point".to_owned())?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

fn unescape_bytes(body: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (value, is_byte, after) = escape(after)?;
        match u8::try_from(value) {
            Ok(byte) if is_byte => bytes.push(byte),
            _ => return Err("unable to unescape bytes: \\u is not allowed".to_owned()),
        }
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// A number at the start of `rest` and its length.
pub(crate) fn number(rest: &str) -> Result<(Token, usize), String> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    if bytes.starts_with(b"0x") {
        let count = bytes.iter().skip(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
        if count > 0 {
            return whole(rest, 2 + count);
        }
    }
    let whole_digits = digits(0);
    let mut length = whole_digits;
    let mut is_double = false;
    if bytes.get(length) == Some(&b'.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
        is_double = true;
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
            is_double = true;
        }
    }
    if !is_double {
        return whole(rest, whole_digits);
    }
    let text = rest.get(..length).unwrap_or_default();
    let value: f64 = text.parse().map_err(|_| "invalid double literal".to_owned())?;
    if value.is_infinite() {
        return Err("invalid double literal".to_owned());
    }
    Ok((Token::Double(value), length))
}

fn whole(rest: &str, length: usize) -> Result<(Token, usize), String> {
    let text = rest.get(..length).unwrap_or_default();
    if !matches!(rest.as_bytes().get(length), Some(b'u' | b'U')) {
        return Ok((Token::Int(text.to_owned()), length));
    }
    let value = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    let value = value.map_err(|_| "invalid uint literal".to_owned())?;
    Ok((Token::Uint(value), length + 1))
}

/// The value of an integer literal.
pub(crate) fn int(text: &str, is_negative: bool) -> Option<i64> {
    let value = match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16),
        None => text.parse::<i128>(),
    };
    let value = value.ok()?;
    i64::try_from(if is_negative { -value } else { value }).ok()
}
