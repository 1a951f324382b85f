//! Mail addresses as Go's `net/mail` reads them.

use crate::strconv::{quote, quote_rune};
use crate::{base64, netip};

/// A mail address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// The name before the address or in a comment after it. May be empty.
    pub name: String,
    /// `user@domain`
    pub address: String,
}

/// `mail.ParseAddress`.
///
/// # Errors
/// Go's message, `mail: …`.
pub fn parse_address(text: &str) -> Result<Address, String> {
    let mut parser = Parser { rest: text };
    let mut addresses = parser.address(true)?;
    parser.skip_comments()?;
    if !parser.rest.is_empty() {
        return Err(format!("mail: expected single address, got {}", quote(parser.rest)));
    }
    match (addresses.pop(), addresses.is_empty()) {
        (None, _) => Err("mail: empty group".to_owned()),
        (Some(address), true) => Ok(address),
        (Some(_), false) => Err("mail: group with multiple addresses".to_owned()),
    }
}

const BAD_COMMENT: &str = "mail: misformatted parenthetical comment";

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// An address, or a group of them if allowed.
    fn address(&mut self, group_allowed: bool) -> Result<Vec<Address>, String> {
        self.skip_space();
        if self.rest.is_empty() {
            return Err("mail: no address".to_owned());
        }
        let start = self.rest;
        if let Ok(address) = self.specification() {
            self.skip_space();
            let name = if self.consume('(') {
                self.name_in_comment()?
            } else {
                String::new()
            };
            return Ok(vec![Address { name, address }]);
        }
        self.rest = start;
        let name = if start.starts_with('<') {
            String::new()
        } else {
            self.phrase()?
        };
        self.skip_space();
        if group_allowed && self.consume(':') {
            return self.group();
        }
        if !self.consume('<') {
            let plain = name.chars().all(is_atom_text);
            let problem = if plain {
                "missing '@' or angle-addr"
            } else {
                "no angle-addr"
            };
            return Err(format!("mail: {problem}"));
        }
        let address = self.specification()?;
        if self.consume('>') {
            Ok(vec![Address { name, address }])
        } else {
            Err("mail: unclosed angle-addr".to_owned())
        }
    }

    /// The members of a group whose colon was read.
    fn group(&mut self) -> Result<Vec<Address>, String> {
        let mut members = Vec::new();
        self.skip_space();
        if self.consume(';') {
            self.skip_comments()?;
            return Ok(members);
        }
        loop {
            self.skip_space();
            members.extend(self.address(false)?);
            self.skip_comments()?;
            if self.consume(';') {
                self.skip_comments()?;
                return Ok(members);
            }
            if !self.consume(',') {
                return Err("mail: expected comma".to_owned());
            }
        }
    }

    /// `user@domain`
    fn specification(&mut self) -> Result<String, String> {
        self.skip_space();
        if self.rest.is_empty() {
            return Err("mail: no addr-spec".to_owned());
        }
        let user = if self.rest.starts_with('"') {
            let user = self.quoted_string();
            if user.as_ref().map_or(true, String::is_empty) {
                return Err("mail: empty quoted string in addr-spec".to_owned());
            }
            user?
        } else {
            self.atom(false)?.to_owned()
        };
        if !self.consume('@') {
            return Err("mail: missing @ in addr-spec".to_owned());
        }
        self.skip_space();
        if self.rest.is_empty() {
            return Err("mail: no domain in addr-spec".to_owned());
        }
        let domain = if self.consume('[') {
            self.domain_literal()?
        } else {
            self.atom(false)?.to_owned()
        };
        Ok(format!("{user}@{domain}"))
    }

    /// An address in brackets, after its opening bracket.
    fn domain_literal(&mut self) -> Result<String, String> {
        let bad = |c: char| c != ']' && (!is_visible(c) || matches!(c, '[' | '\\'));
        let end = self.rest.find(|c| c == ']' || bad(c));
        let (inside, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        match rest.chars().next() {
            None => return Err("mail: unclosed domain-literal".to_owned()),
            Some(']') => {}
            Some(other) => return Err(format!("mail: bad character in domain-literal: {}", quote_rune(other))),
        }
        if !netip::parse_addr(inside).is_ok_and(|address| address.zone.is_empty()) {
            let problem = "mail: invalid IP address in domain-literal";
            return Err(format!("{problem}: {}", quote(inside)));
        }
        self.rest = rest;
        self.consume(']');
        Ok(format!("[{inside}]"))
    }

    /// One or more words in front of an address.
    fn phrase(&mut self) -> Result<String, String> {
        let mut words: Vec<String> = Vec::new();
        // Encoded words that follow each other are one.
        let mut encoded = String::new();
        let mut failure = None;
        loop {
            if !words.is_empty() {
                self.skip_comments()?;
            }
            self.skip_space();
            if self.rest.is_empty() {
                break;
            }
            let word = if self.rest.starts_with('"') {
                self.quoted_string().map(|word| (word, false))
            } else {
                self.atom(true).and_then(|word| match decode_word(word)? {
                    Some(word) => Ok((word, true)),
                    None => Ok((word.to_owned(), false)),
                })
            };
            match word {
                Ok((word, true)) => encoded.push_str(&word),
                Ok((word, false)) => {
                    if !encoded.is_empty() {
                        words.push(std::mem::take(&mut encoded));
                    }
                    words.push(word);
                }
                Err(problem) => {
                    failure = Some(problem);
                    break;
                }
            }
        }
        if !encoded.is_empty() {
            words.push(encoded);
        }
        match failure {
            Some(problem) if words.is_empty() => Err(format!("mail: missing word in phrase: {problem}")),
            _ => Ok(words.join(" ")),
        }
    }

    fn quoted_string(&mut self) -> Result<String, String> {
        let mut content = String::new();
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            let allowed = is_visible(c) || matches!(c, ' ' | '\t');
            match c {
                '"' if !escaped => {
                    self.rest = self.rest.get(at + 1..).unwrap_or_default();
                    return Ok(content);
                }
                '\\' if !escaped => escaped = true,
                _ if allowed => {
                    content.push(c);
                    escaped = false;
                }
                _ => return Err(format!("mail: bad character in quoted-string: {}", quote_rune(c))),
            }
        }
        Err("mail: unclosed quoted-string".to_owned())
    }

    /// A word with dots. `permissive` allows them at its ends and next to each other.
    fn atom(&mut self, permissive: bool) -> Result<&'a str, String> {
        let end = self.rest.find(|c| !is_atom_text(c)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err("mail: invalid string".to_owned());
        }
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        let faults = [
            (atom.starts_with('.'), "leading"),
            (atom.contains(".."), "double"),
            (atom.ends_with('.'), "trailing"),
        ];
        match faults.iter().find(|(bad, _)| *bad && !permissive) {
            Some((_, which)) => Err(format!("mail: {which} dot in atom")),
            None => Ok(atom),
        }
    }

    fn consume(&mut self, c: char) -> bool {
        self.rest.strip_prefix(c).is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Skips spaces and comments in parentheses.
    fn skip_comments(&mut self) -> Result<(), String> {
        self.skip_space();
        while self.consume('(') {
            self.comment()?;
            self.skip_space();
        }
        Ok(())
    }

    /// The content of a comment after its opening parenthesis.
    fn comment(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut depth = 1usize;
        let mut characters = self.rest.chars();
        while let Some(mut c) = characters.next() {
            match c {
                '\\' => c = characters.next().unwrap_or('\\'),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = characters.as_str();
                return Ok(text);
            }
            text.push(c);
        }
        self.rest = "";
        Err(BAD_COMMENT.to_owned())
    }

    /// The name in a comment after an address, after its opening parenthesis.
    fn name_in_comment(&mut self) -> Result<String, String> {
        let comment = self.comment()?;
        let words = comment.split([' ', '\t']).filter(|word| !word.is_empty());
        let decoded = words.map(|word| Ok(decode_word(word)?.unwrap_or_else(|| word.to_owned())));
        Ok(decoded.collect::<Result<Vec<String>, String>>()?.join(" "))
    }
}

/// Decodes `=?charset?encoding?text?=`. `None` for every other word, including malformed ones.
///
/// # Errors
/// The charset is not one of the three that Go supports.
fn decode_word(word: &str) -> Result<Option<String>, String> {
    let inside = word.strip_prefix("=?").and_then(|rest| rest.strip_suffix("?="));
    let parts: Vec<&str> = inside.unwrap_or_default().split('?').collect();
    let ([charset, encoding, text], true) = (parts.as_slice(), word.len() >= 8) else {
        return Ok(None);
    };
    let content = match *encoding {
        _ if charset.is_empty() => None,
        "q" | "Q" => decode_q(text),
        "b" | "B" => base64::decode(text).ok(),
        _ => None,
    };
    let Some(content) = content else { return Ok(None) };
    Ok(Some(match charset.to_ascii_lowercase().as_str() {
        "utf-8" => String::from_utf8_lossy(&content).into_owned(),
        "iso-8859-1" => content.into_iter().map(char::from).collect(),
        "us-ascii" => {
            let ascii = |byte: u8| {
                if byte.is_ascii() {
                    char::from(byte)
                } else {
                    char::REPLACEMENT_CHARACTER
                }
            };
            content.into_iter().map(ascii).collect()
        }
        _ => return Err(format!("charset not supported: {}", quote(&charset.to_lowercase()))),
    }))
}

fn decode_q(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'_' => b' ',
            b'=' => {
                let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
                u8::try_from(digit()? << 4 | digit()?).ok()?
            }
            b' '..=b'~' | b'\n' | b'\r' | b'\t' => byte,
            _ => return None,
        });
    }
    Some(out)
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_atom_text(c: char) -> bool {
    match c {
        '(' | ')' | '<' | '>' | '[' | ']' | ':' | ';' | '@' | '\\' | ',' | '"' => false,
        c => is_visible(c),
    }
}
