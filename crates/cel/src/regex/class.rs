//! Classes of characters, and escapes.

use super::refused;
use super::unclear;
use crate::budget::Failure;

/// Classes between `[:` and `:]`, which Go and the `regex` crate read alike.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// A class after its bracket, and the rest.
pub(super) fn translate(text: &str) -> Result<(String, &str), Failure> {
    let mut out = String::from("[");
    let mut rest = text;
    if let Some(inner) = rest.strip_prefix('^') {
        out.push('^');
        rest = inner;
    }
    let mut is_first = true;
    loop {
        if let Some(behind) = rest.strip_prefix(']').filter(|_| !is_first) {
            out.push(']');
            return Ok((out, behind));
        }
        is_first = false;
        if let Some((name, behind)) = rest.strip_prefix("[:").and_then(|inner| inner.split_once(":]")) {
            if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                return Err(refused("invalid character class range"));
            }
            out.push_str(&format!("[:{name}:]"));
            rest = behind;
            continue;
        }
        if let Some(escaped) = rest.strip_prefix('\\')
            && let Some((class, behind)) = named(escaped)?
        {
            out.push_str(&format!("[{class}]"));
            rest = behind;
            continue;
        }
        let (low, behind) = character(rest)?;
        rest = behind;
        out.push_str(&literal(low));
        let range = rest
            .strip_prefix('-')
            .filter(|rest| !rest.is_empty() && !rest.starts_with(']'));
        if let Some(high) = range {
            let (high, behind) = character(high)?;
            if high < low {
                return Err(refused("invalid character class range"));
            }
            out.push('-');
            out.push_str(&literal(high));
            rest = behind;
        }
    }
}

fn literal(c: char) -> String {
    if c.is_ascii_alphanumeric() {
        return c.to_string();
    }
    format!("\\x{{{:x}}}", u32::from(c))
}

fn character(rest: &str) -> Result<(char, &str), Failure> {
    if let Some(escaped) = rest.strip_prefix('\\') {
        return escape(escaped);
    }
    let c = rest.chars().next().ok_or_else(|| refused("missing closing ]"))?;
    Ok((c, rest.get(c.len_utf8()..).unwrap_or_default()))
}

/// The content of a class with a name, after its backslash.
pub(super) fn named(rest: &str) -> Result<Option<(String, &str)>, Failure> {
    let mut behind = rest.chars();
    let class = match behind.next() {
        Some('d') => "0-9",
        Some('D') => "^0-9",
        Some('w') => "0-9A-Za-z_",
        Some('W') => "^0-9A-Za-z_",
        Some('s') => "\\t\\n\\x0C\\r ",
        Some('S') => "^\\t\\n\\x0C\\r ",
        Some(sign @ ('p' | 'P')) => {
            let inner = behind.as_str();
            let (name, behind) = match inner.strip_prefix('{') {
                Some(inner) => inner
                    .split_once('}')
                    .ok_or_else(|| refused("invalid character class range"))?,
                None => inner.split_at(inner.chars().next().map_or(0, char::len_utf8)),
            };
            // Go accepts class names depending on the version of Unicode. The crate also accepts names that Go
            // rejects.
            let is_plain = name.len() < 40 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if name.is_empty() || !is_plain || !name.starts_with(|c: char| c.is_ascii_uppercase()) {
                return Err(unclear());
            }
            return Ok(Some((format!("\\{sign}{{{name}}}"), behind)));
        }
        _ => return Ok(None),
    };
    Ok(Some((class.to_owned(), behind.as_str())))
}

/// A character after its backslash, and the rest.
pub(super) fn escape(rest: &str) -> Result<(char, &str), Failure> {
    let mut behind = rest.chars();
    let invalid = || refused("invalid escape sequence");
    let c = behind
        .next()
        .ok_or_else(|| refused("trailing backslash at end of expression"))?;
    let plain = match c {
        'a' => '\x07',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '0'..='7' => return octal(rest),
        'x' => return hexadecimal(behind.as_str()),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
        _ => return Err(invalid()),
    };
    Ok((plain, behind.as_str()))
}

/// Up to three digits. A single one other than zero would be a back reference.
fn octal(rest: &str) -> Result<(char, &str), Failure> {
    let end = rest
        .bytes()
        .take(3)
        .take_while(|byte| (b'0'..=b'7').contains(byte))
        .count();
    let (digits, behind) = rest.split_at(end);
    if end == 1 && digits != "0" {
        return Err(refused("invalid escape sequence"));
    }
    let code = u32::from_str_radix(digits, 8).unwrap_or_default();
    Ok((char::from_u32(code).ok_or_else(unclear)?, behind))
}

/// `41` or `{41}`.
fn hexadecimal(rest: &str) -> Result<(char, &str), Failure> {
    let invalid = || refused("invalid escape sequence");
    let (digits, behind) = match rest.strip_prefix('{') {
        Some(inner) => inner.split_once('}').ok_or_else(invalid)?,
        None => (rest.get(..2).ok_or_else(invalid)?, rest.get(2..).unwrap_or_default()),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(invalid());
    }
    let code = u32::from_str_radix(digits, 16).map_err(|_| invalid())?;
    if code > 0x10_ffff {
        return Err(invalid());
    }
    Ok((char::from_u32(code).ok_or_else(unclear)?, behind))
}
