//! Keeps input from the event parser on which it would crash: a tag that ends at a comma, as in `[!!str, a]`. go-yaml
//! rejects such input too.

use libyaml_safer::Scanner;

use super::input::{Pieces, position_of};
use super::{Error, Position};

/// Maximum number of possible tags to check. Each check costs a scan up to its position.
const MOST_LOOKS: usize = 64;

/// Refuses a text with a tag that ends at a comma.
pub(super) fn check(text: &str) -> Result<(), Error> {
    let bytes = text.as_bytes();
    let mut commas = Commas::new(bytes);
    let mut looks = 0;
    for start in memchr::memchr_iter(b'!', bytes) {
        let Some(comma) = commas.after(start).filter(|_| may_start_token(text, start)) else {
            continue;
        };
        looks += 1;
        if looks > MOST_LOOKS {
            let problem = format!("more than {MOST_LOOKS} values look like a tag before a comma");
            return Err(Error::Limit {
                problem,
                position: Some(position_of(text, start)),
            });
        }
        if is_tag(text, start) {
            let position = position_of(text, comma);
            let line = (position.line > 1).then_some(position.line);
            let problem = "did not find expected whitespace or line break".to_owned();
            return Err(Error::Yaml {
                problem,
                line,
                position: Some(position),
            });
        }
    }
    Ok(())
}

/// Finds the commas after possible tags, for increasing offsets.
struct Commas<'t> {
    bytes: &'t [u8],
    plain: Run,
    /// From the first angle bracket to the closing one, and the next character.
    in_brackets: Run,
    after_brackets: Run,
}

impl<'t> Commas<'t> {
    fn new(bytes: &'t [u8]) -> Self {
        Self {
            bytes,
            plain: Run::default(),
            in_brackets: Run::default(),
            after_brackets: Run::default(),
        }
    }

    /// Offset of the comma that follows the `!` at `start` and the characters of a tag. A tag in angle brackets may have commas in it.
    fn after(&mut self, start: usize) -> Option<usize> {
        let (bytes, next) = (self.bytes, start + 1);
        let end = if bytes.get(next) == Some(&b'<') {
            let is_inside = |byte| byte != b'>' && (is_of_tag(byte) || byte == b',');
            let close = self.in_brackets.end(bytes, next, is_inside);
            self.after_brackets.end(bytes, close, is_of_tag)
        } else {
            self.plain.end(bytes, next, is_of_tag)
        };
        (bytes.get(end) == Some(&b',')).then_some(end)
    }
}

fn is_of_tag(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_;/?:@&=+$.%!~*'()<>[]".contains(&byte)
}

/// The last run of characters that was scanned. Tags that begin in it end with it, so one long run is scanned once, not
/// once for each `!` in it.
#[derive(Default)]
struct Run {
    begin: usize,
    end: usize,
}

impl Run {
    /// End of the run of such characters that begins at `at`.
    fn end(&mut self, bytes: &[u8], at: usize, belongs: impl Fn(u8) -> bool) -> usize {
        if !(self.begin..self.end).contains(&at) {
            let rest = bytes.get(at..).unwrap_or_default();
            let length = rest.iter().take_while(|byte| belongs(**byte)).count();
            *self = Self {
                begin: at,
                end: at + length,
            };
        }
        self.end
    }
}

/// Returns true if a token may start here: after an indicator, at the start of a line, after a quoted text or an anchor.
fn may_start_token(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let trimmed = before.trim_end_matches([' ', '\t']);
    let before_token = [
        '[', '{', ',', ':', '-', '?', '"', '\'', '\n', '\r', '\u{85}', '\u{2028}', '\u{2029}', ']', '}',
    ];
    if trimmed.ends_with(before_token) || trimmed.is_empty() {
        return true;
    }
    let mut words = trimmed.rsplit([' ', '\t', '\n', '\r', '[', '{', ',']);
    // The space comes first: without one, each `!` of a long run would scan the part of the run before it.
    trimmed.len() < before.len() && words.next().is_some_and(|word| word.contains('&'))
}

/// Returns true if the scanner reads `!` as a tag. It scans the input up to there and a brace, which cannot continue a
/// tag, so an error at this position is that of a tag. (Its tokens do not show it: a later error drops the tokens that
/// wait to become keys.)
fn is_tag(text: &str, start: usize) -> bool {
    let head = format!("{}{{\n", text.get(..=start).unwrap_or_default());
    let Position { line, column } = position_of(text, start);
    let mut scanner = Scanner::new();
    scanner.set_encoding(libyaml_safer::Encoding::Utf8);
    scanner.set_input(Pieces::new(&head));
    let mark = scanner.find_map(Result::err).and_then(|error| error.context_mark());
    mark.is_some_and(|mark| (mark.line + 1, mark.column + 1) == (u64::from(line), u64::from(column)))
}

#[cfg(test)]
mod tests {
    use super::{Commas, check};
    use crate::compose::compose;
    use crate::input::prepare;
    use crate::parse;

    #[test]
    fn tags_before_commas_are_refused_where_they_are_tags() {
        for text in [
            "[!!str, a]",
            "a: {b: !x, c: d}",
            "- [a !b, !c, d]",
            "[&a !b, c]",
            "[!, a]",
            "{!!str,a: 1}",
            "[!<a,b>, c]",
            // The list would have to be a key of the mapping before it, and is none.
            "a: b\n[ c,:!d-,e",
            "a:\n &b {\t!c/d:T &e !f.g!,h  - i:#j {}\n",
            "a: b\n{\"c\":[!,3,{\"d\":null}]",
        ] {
            let error = parse(text.as_bytes()).expect_err(text);
            assert!(
                error.to_string().contains("whitespace or line break"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn long_runs_are_read_once() {
        for text in ["!", ":!", "!<,", "[!<,", " !<", "!<a>!"] {
            let text = text.repeat(1 << 20);
            let mut commas = Commas::new(text.as_bytes());
            let found = memchr::memchr_iter(b'!', text.as_bytes()).filter_map(|start| commas.after(start));
            assert_eq!(found.count(), 0);
            assert!(check(&text).is_ok());
        }
        let text = "!<a,!b>c!d,";
        let mut commas = Commas::new(text.as_bytes());
        let found: Vec<_> = memchr::memchr_iter(b'!', text.as_bytes())
            .map(|start| commas.after(start))
            .collect();
        assert_eq!(found, [Some(10), Some(10), Some(10)]);
    }

    #[test]
    fn a_panic_of_the_event_parser_is_an_error() {
        let input = prepare(b"[!!str, a]\n").expect("text");
        assert!(compose(&input, 0).is_err());
    }

    #[test]
    fn exclamation_marks_in_text_are_text() {
        for text in [
            "a: wow !important, yes",
            "a: |\n  [!x, y]\n",
            "a: '- !x, y'",
            "[a !b, c]",
            "# !x, y\na: b",
            "[!<tag:yaml.org,2002:str> a, b]",
        ] {
            assert!(parse(text.as_bytes()).is_ok(), "{text}: {:?}", parse(text.as_bytes()));
        }
    }
}
