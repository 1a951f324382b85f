//! The mail addresses that Go's `net/mail` takes, and its words for the others.

use crate::types::go_text::quote;

/// What is wrong with a single address; `None` when nothing is.
pub fn fault(text: &str) -> Option<String> {
    let mut parser = Parser { rest: text };
    let result = parser.address().and_then(|()| {
        if !parser.skip_comments() {
            return Err("misformatted parenthetical comment".to_string());
        }
        if parser.rest.is_empty() {
            Ok(())
        } else {
            Err(format!("expected single address, got {}", quote(parser.rest)))
        }
    });
    result.err().map(|reason| format!("mail: {reason}"))
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn address(&mut self) -> Result<(), String> {
        self.skip_space();
        if self.rest.is_empty() {
            return Err("no address".to_string());
        }
        let start = self.rest;
        if self.address_specification().is_ok() {
            return Ok(());
        }
        self.rest = start;
        let name = if start.starts_with('<') {
            String::new()
        } else {
            self.phrase()?
        };
        self.skip_space();
        if self.consume(':') {
            return self.group();
        }
        if !self.consume('<') {
            let plain = name.chars().all(|c| is_atom_text(c, true));
            return Err(if plain {
                "missing '@' or angle-addr"
            } else {
                "no angle-addr"
            }
            .to_string());
        }
        self.address_specification()?;
        if self.consume('>') {
            Ok(())
        } else {
            Err("unclosed angle-addr".to_string())
        }
    }

    /// A group must have exactly one member to pass for one address.
    fn group(&mut self) -> Result<(), String> {
        let mut members = 0;
        self.skip_space();
        if self.consume(';') {
            return if self.skip_comments() {
                Err("empty group".to_string())
            } else {
                Err("misformatted parenthetical comment".to_string())
            };
        }
        loop {
            self.skip_space();
            self.address()?;
            members += 1;
            if !self.skip_comments() {
                return Err("misformatted parenthetical comment".to_string());
            }
            if self.consume(';') {
                break;
            }
            if !self.consume(',') {
                return Err("expected comma".to_string());
            }
        }
        if members > 1 {
            Err("group with multiple addresses".to_string())
        } else {
            Ok(())
        }
    }

    fn address_specification(&mut self) -> Result<(), String> {
        self.skip_space();
        if self.rest.is_empty() {
            return Err("no addr-spec".to_string());
        }
        if self.rest.starts_with('"') {
            if self.quoted_string()?.is_empty() {
                return Err("empty quoted string in addr-spec".to_string());
            }
        } else {
            self.atom(true, false)?;
        }
        if !self.consume('@') {
            return Err("missing @ in addr-spec".to_string());
        }
        self.skip_space();
        if self.rest.is_empty() {
            return Err("no domain in addr-spec".to_string());
        }
        if self.rest.starts_with('[') {
            return self.domain_literal();
        }
        self.atom(true, false).map(|_| ())
    }

    fn domain_literal(&mut self) -> Result<(), String> {
        let end = self.rest.find(']').ok_or("unclosed domain-literal")?;
        let inside = self.rest.get(1..end).unwrap_or_default();
        if inside.chars().any(|c| !is_visible(c) || matches!(c, '[' | '\\')) {
            return Err("bad character in domain-literal".to_string());
        }
        if inside.parse::<std::net::IpAddr>().is_err() {
            return Err("invalid IP address in domain-literal".to_string());
        }
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        Ok(())
    }

    fn phrase(&mut self) -> Result<String, String> {
        let mut words: Vec<String> = Vec::new();
        let failure = loop {
            if !words.is_empty() && !self.skip_comments() {
                return Err("misformatted parenthetical comment".to_string());
            }
            self.skip_space();
            if self.rest.is_empty() {
                break "missing phrase".to_string();
            }
            let word = if self.rest.starts_with('"') {
                self.quoted_string()
            } else {
                self.atom(true, true).map(str::to_string)
            };
            match word {
                Ok(word) => words.push(word),
                Err(reason) => break reason,
            }
        };
        if words.is_empty() {
            Err(format!("missing word in phrase: mail: {failure}"))
        } else {
            Ok(words.join(" "))
        }
    }

    fn quoted_string(&mut self) -> Result<String, String> {
        let mut content = String::new();
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            if escaped {
                if !is_visible(c) && !matches!(c, ' ' | '\t') {
                    return Err(format!("bad character in quoted-string: {}", quote(&c.to_string())));
                }
                content.push(c);
                escaped = false;
            } else if c == '"' {
                self.rest = self.rest.get(at + 1..).unwrap_or_default();
                return Ok(content);
            } else if c == '\\' {
                escaped = true;
            } else if is_visible(c) || matches!(c, ' ' | '\t') {
                content.push(c);
            } else {
                return Err(format!("bad character in quoted-string: {}", quote(&c.to_string())));
            }
        }
        Err("unclosed quoted-string".to_string())
    }

    fn atom(&mut self, dots: bool, permissive: bool) -> Result<&'a str, String> {
        let end = self.rest.find(|c| !is_atom_text(c, dots)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err("invalid string".to_string());
        }
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        if !permissive {
            let faults = [
                (atom.starts_with('.'), "leading dot in atom"),
                (atom.contains(".."), "double dot in atom"),
                (atom.ends_with('.'), "trailing dot in atom"),
            ];
            if let Some((_, text)) = faults.iter().find(|(bad, _)| *bad) {
                return Err((*text).to_string());
            }
        }
        Ok(atom)
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

    /// Skips blanks and comments in parentheses; false when a comment does not end.
    fn skip_comments(&mut self) -> bool {
        loop {
            self.skip_space();
            if !self.rest.starts_with('(') {
                return true;
            }
            let (mut depth, mut end, mut escaped) = (0usize, None, false);
            for (at, c) in self.rest.char_indices() {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    end = Some(at + 1);
                    break;
                }
            }
            match end {
                Some(end) => self.rest = self.rest.get(end..).unwrap_or_default(),
                None => return false,
            }
        }
    }
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_atom_text(c: char, dots: bool) -> bool {
    match c {
        '.' => dots,
        '(' | ')' | '<' | '>' | '[' | ']' | ':' | ';' | '@' | '\\' | ',' | '"' => false,
        c => is_visible(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_go_takes_them() {
        for good in [
            "a@b",
            " a@example.com",
            "\"a b\"@example.com",
            "A Name <a@example.com>",
            "a@example.com (comment)",
            "<a@b.c>",
            "é@ü.de",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in [
            "not-an-address",
            "a@@example.com",
            "a.@example.com",
            "a@example.com, b@example.com",
            "a b@example.com",
            "a@",
            "<a@b",
        ] {
            assert!(fault(bad).is_some(), "{bad}");
        }
        assert_eq!(
            fault("a.@example.com").as_deref(),
            Some("mail: missing '@' or angle-addr")
        );
    }
}
