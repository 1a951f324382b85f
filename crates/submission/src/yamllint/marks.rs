//! Spaces around the marks of YAML: braces, brackets, colons, commas, dashes.

use super::{Source, UnplacedProblem};

/// Parts of a document outside scalars and comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Open(u8),
    Close(u8),
    Comma,
    Colon,
    Question,
    Dash,
    /// A scalar, an alias, a property, `---`.
    Other,
}

struct Placed {
    token: Token,
    start: usize,
    end: usize,
    is_alias: bool,
}

pub(super) fn check(source: &Source<'_>) -> Vec<UnplacedProblem> {
    let tokens = tokens(source);
    let mut found = source.first();
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let after = tokens.get(at + 1);
        // Spaces to a neighbour on the same line.
        let spaces_before = before.filter(|before| is_same_line(source, before.end, token.start));
        let spaces_before = spaces_before.map(|before| token.start - before.end);
        let spaces_after = after.filter(|after| is_same_line(source, token.end, after.start));
        let spaces_after = spaces_after.map(|after| after.start - token.end);
        let mut say = |rule, message: String, offset| found.push(rule, message, offset);
        match token.token {
            Token::Open(mark) => {
                let (rule, name) = flow(mark);
                if spaces_after.is_some_and(|spaces| spaces > 0) {
                    let end = after.map_or(token.end, |after| after.start - 1);
                    let is_empty = after.is_some_and(|after| matches!(after.token, Token::Close(_)));
                    let kind = if is_empty { "empty " } else { "" };
                    say(rule, format!("too many spaces inside {kind}{name}"), end);
                }
            }
            Token::Close(mark) => {
                let (rule, name) = flow(mark);
                let is_empty = before.is_some_and(|before| matches!(before.token, Token::Open(_)));
                if !is_empty && spaces_before.is_some_and(|spaces| spaces > 0) {
                    say(rule, format!("too many spaces inside {name}"), token.start - 1);
                }
            }
            Token::Comma => {
                let is_first = before.is_some_and(|before| !is_same_line(source, before.end, token.start));
                if is_first || spaces_before.is_some_and(|spaces| spaces > 0) {
                    say(
                        "commas",
                        "too many spaces before comma".to_owned(),
                        token.start.saturating_sub(1),
                    );
                }
                match spaces_after {
                    Some(0) => say("commas", "too few spaces after comma".to_owned(), token.end),
                    Some(2..) => {
                        let end = after.map_or(token.end, |after| after.start - 1);
                        say("commas", "too many spaces after comma".to_owned(), end);
                    }
                    _ => {}
                }
            }
            Token::Colon => {
                let allowed = usize::from(before.is_some_and(|before| before.is_alias));
                if spaces_before.is_some_and(|spaces| spaces > allowed) {
                    say("colons", "too many spaces before colon".to_owned(), token.start - 1);
                }
                if spaces_after.is_some_and(|spaces| spaces > 1) {
                    let end = after.map_or(token.end, |after| after.start - 1);
                    say("colons", "too many spaces after colon".to_owned(), end);
                }
            }
            Token::Question => {
                if spaces_after.is_some_and(|spaces| spaces > 1) {
                    let end = after.map_or(token.end, |after| after.start - 1);
                    say("colons", "too many spaces after question mark".to_owned(), end);
                }
            }
            Token::Dash => {
                if spaces_after.is_some_and(|spaces| spaces > 1) {
                    let end = after.map_or(token.end, |after| after.start - 1);
                    say("hyphens", "too many spaces after hyphen".to_owned(), end);
                }
            }
            Token::Other => {}
        }
    }
    found.found
}

fn flow(mark: u8) -> (&'static str, &'static str) {
    if mark == b'{' || mark == b'}' {
        ("braces", "braces")
    } else {
        ("brackets", "brackets")
    }
}

fn is_same_line(source: &Source<'_>, from: usize, to: usize) -> bool {
    let between = source.text.get(from..to).unwrap_or_default();
    from <= to && !between.contains('\n')
}

fn tokens(source: &Source<'_>) -> Vec<Placed> {
    let bytes = source.text.as_bytes();
    let mut opaque = source.opaque().into_iter().peekable();
    let mut found: Vec<Placed> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        while opaque.peek().is_some_and(|span| span.end <= at) {
            opaque.next();
        }
        if let Some(span) = opaque.next_if(|span| span.start <= at) {
            let mut end = span.end;
            // A block scalar ends where the next line starts.
            while end > span.start && bytes.get(end - 1).is_some_and(u8::is_ascii_whitespace) {
                end -= 1;
            }
            found.push(Placed {
                token: Token::Other,
                start: at,
                end,
                is_alias: byte == b'*',
            });
            at = span.end.max(at + 1);
            continue;
        }
        let next = bytes.get(at + 1).copied().unwrap_or(b'\n');
        let is_line_start = at == 0 || bytes.get(at - 1) == Some(&b'\n');
        let is_marker = is_line_start
            && source
                .text
                .get(at..at + 3)
                .is_some_and(|text| text == "---" || text == "...")
            && bytes.get(at + 3).is_none_or(u8::is_ascii_whitespace);
        let one = |token| Placed {
            token,
            start: at,
            end: at + 1,
            is_alias: false,
        };
        let line_end = || {
            bytes
                .iter()
                .skip(at)
                .position(|byte| *byte == b'\n')
                .map_or(bytes.len(), |size| at + size)
        };
        let token = match byte {
            b'#' => {
                at = line_end();
                continue;
            }
            b'%' if is_line_start => {
                at = line_end();
                continue;
            }
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            _ if is_marker => Placed {
                end: at + 3,
                ..one(Token::Other)
            },
            b'{' | b'[' => one(Token::Open(byte)),
            b'}' | b']' => one(Token::Close(byte)),
            b',' => one(Token::Comma),
            b':' => one(Token::Colon),
            b'?' if next.is_ascii_whitespace() => one(Token::Question),
            b'-' if next.is_ascii_whitespace() => one(Token::Dash),
            _ => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']');
                let size = bytes
                    .iter()
                    .skip(at + 1)
                    .position(is_end)
                    .map_or(bytes.len() - at, |size| size + 1);
                Placed {
                    end: at + size,
                    ..one(Token::Other)
                }
            }
        };
        at = token.end;
        found.push(token);
    }
    found
}
