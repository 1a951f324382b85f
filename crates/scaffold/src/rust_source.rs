//! Reads Rust sources of projects that exist. The parser calls itself for what is nested, so a source whose nesting would take the
//! stack of the process is refused before.

use std::path::Path;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

use crate::Error;

/// Most operators, keywords and brackets around an expression or a type.
const DEEPEST: usize = 400;

/// The weight of a bracket: the parser descends through the expression grammar for each.
const BRACKET: usize = 8;

/// Bytes of stack for the parser.
const STACK: usize = 64 << 20;

/// Parses a source. `path` is for messages.
///
/// # Errors
/// It does not parse, or is nested too deeply.
pub(crate) fn parse(path: &Path, text: &str) -> Result<syn::File, Error> {
    let failed = |span: Span, reason: String| {
        let start = span.start();
        Error::Parse {
            path: path.to_owned(),
            line: start.line,
            column: start.column + 1,
            reason,
        }
    };
    // The parser reports text that is not even tokens. It removes a first line `#!…`.
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let after_first_line = body.split_once('\n').map_or("", |(_, rest)| rest);
    let first = body.starts_with("#!").then_some(after_first_line);
    for part in [Some(body), first].into_iter().flatten() {
        if let Some(span) = part.parse().ok().and_then(too_deep) {
            return Err(failed(span, "nested too deeply to be read".to_owned()));
        }
    }
    // Where it is not optimised, the parser at the limit takes more than the main thread has.
    stacker::grow(STACK, || syn::parse_file(text)).map_err(|error| failed(error.span(), error.to_string()))
}

/// The first place that is nested too deeply.
fn too_deep(tokens: TokenStream) -> Option<Span> {
    // For each open bracket its tokens, and how deep the expression or type before the next one is.
    let mut open = vec![(tokens.into_iter().peekable(), 0, 0)];
    while let Some((tokens, outside, depth)) = open.last_mut() {
        let Some(token) = tokens.next() else {
            open.pop();
            continue;
        };
        match &token {
            TokenTree::Punct(mark) if matches!(mark.as_char(), ',' | ';') => *depth = *outside,
            TokenTree::Punct(mark) if nests(mark.as_char()) => *depth += 1,
            TokenTree::Ident(word) if is_keyword(&word.to_string()) => *depth += 1,
            TokenTree::Group(group) => {
                let inside = *depth + BRACKET;
                let goes_on = matches!(tokens.peek(), Some(TokenTree::Ident(word)) if word == "else");
                if group.delimiter() == Delimiter::Brace && !goes_on {
                    *depth = *outside;
                }
                if inside > DEEPEST {
                    return Some(group.span_open());
                }
                open.push((group.stream().into_iter().peekable(), inside, inside));
                continue;
            }
            _ => {}
        }
        if *depth > DEEPEST {
            return Some(token.span());
        }
    }
    None
}

/// Returns true if a mark may stand before an expression or a type of the same kind.
fn nests(mark: char) -> bool {
    matches!(mark, '!' | '-' | '*' | '&' | '|' | '=' | '<')
}

/// Returns true if a keyword may.
fn is_keyword(word: &str) -> bool {
    const ALL: &[&str] = &[
        "async", "break", "const", "dyn", "else", "fn", "for", "if", "impl", "let", "move", "mut", "return", "static",
        "unsafe", "yield",
    ];
    ALL.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_would_take_the_stack_are_refused() {
        let many = 200_000;
        for (before, after) in [
            ("(", ")"),
            ("[", "]"),
            ("{", "}"),
            ("!", ""),
            ("- ", ""),
            ("&mut ", ""),
            ("|| ", ""),
            ("return ", ""),
            ("a = ", ""),
            ("!(-", ")"),
            ("if a {} else ", "{}"),
        ] {
            let text = format!("fn f() {{ {}x{} }}", before.repeat(many), after.repeat(many));
            let error = parse(Path::new("src/lib.rs"), &text).err().unwrap();
            assert!(error.to_string().contains("nested too deeply"), "{before}: {error}");
        }
        let hidden = format!("#!'\nfn f() {{ {}x }}", "!".repeat(many));
        let error = parse(Path::new("src/lib.rs"), &hidden).err().unwrap();
        assert!(error.to_string().contains("nested too deeply"), "{error}");
        for (before, after) in [
            ("Box<", ">"),
            ("*const ", ""),
            ("fn() -> ", ""),
            ("&", ""),
            ("[", "; 1]"),
        ] {
            let text = format!("type T = {}u8{};", before.repeat(many), after.repeat(many));
            let error = parse(Path::new("src/lib.rs"), &text).err().unwrap();
            assert!(error.to_string().contains("nested too deeply"), "{before}: {error}");
        }
    }

    #[test]
    fn just_below_the_limit_the_stack_suffices() {
        for (before, after, count) in [("(", ")", 45), ("!", "", 380), ("Box<", ">", 380), ("!(", ")", 40)] {
            let (open, close) = (before.repeat(count), after.repeat(count));
            let text = match before {
                "Box<" => format!("type T = {open}u8{close};"),
                _ => format!("fn f() {{ {open}x{close} }}"),
            };
            let file = parse(Path::new("src/lib.rs"), &text);
            assert!(file.is_ok(), "{before}: {:?}", file.err());
        }
    }

    #[test]
    fn long_sources_are_not_deep() {
        let functions = "fn f(a: &str) -> bool { if !a.is_empty() { return true } else { false } }\n".repeat(2_000);
        let chain = format!("fn g() {{ x{} }}", ".a(1)".repeat(2_000));
        for text in [functions, chain] {
            assert!(parse(Path::new("src/lib.rs"), &text).is_ok());
        }
    }
}
