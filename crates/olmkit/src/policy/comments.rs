//! Comments that ignore a finding at its place.
//!
//! `# olmkit: ignore RULE[,RULE…] reason` applies to its own line, and if there is nothing else on the line, to the
//! next line that is not such a comment. `# olmkit: ignore-file RULE[,RULE…] reason` applies to the whole file. A
//! comment without a reason has no effect.
//!
//! Strings that look like comments have no effect. In a file that cannot be parsed as YAML the two cannot be
//! distinguished, so no comment counts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::diagnostics::Finding;
use crate::limits;
use crate::object::comments::comments;
use crate::yaml::{self, Node};

/// The comments of the files that findings name. A file is read once.
pub(super) struct Comments {
    enabled: bool,
    files: HashMap<PathBuf, HashMap<Place, String>>,
}

/// Scope of a comment, with a rule in lowercase.
type Place = (Scope, String);

#[derive(Debug, PartialEq, Eq)]
struct Comment {
    scope: Scope,
    rules: Vec<String>,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scope {
    File,
    /// A line, counted from 1.
    Line(u32),
}

impl Comments {
    pub(super) fn new(enabled: bool) -> Self {
        Self {
            enabled,
            files: HashMap::new(),
        }
    }

    /// Why a finding is ignored, if a comment applies.
    pub(super) fn reason(&mut self, finding: &Finding) -> Option<String> {
        let file = finding.file.as_deref().filter(|_| self.enabled)?;
        let comments = match self.files.get(file) {
            Some(comments) => comments,
            None => self
                .files
                .entry(file.to_owned())
                .or_insert_with(|| by_place(of_file(file))),
        };
        let rule = finding.rule.to_ascii_lowercase();
        let line = finding.position.map(|position| Scope::Line(position.line));
        let mut scopes = [Some(Scope::File), line].into_iter().flatten();
        scopes.find_map(|scope| comments.get(&(scope, rule.clone())).cloned())
    }
}

/// The reasons by scope. The first comment of a scope counts.
fn by_place(comments: Vec<Comment>) -> HashMap<Place, String> {
    let mut found = HashMap::new();
    for comment in comments {
        for rule in comment.rules {
            let place = (comment.scope, rule.to_ascii_lowercase());
            found.entry(place).or_insert_with(|| comment.reason.clone());
        }
    }
    found
}

/// The comments of a file. Empty if it cannot be read.
fn of_file(path: &Path) -> Vec<Comment> {
    let is_yaml = path
        .extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml");
    if !is_yaml {
        return Vec::new();
    }
    let bytes = limits::read_file(path, &limits::CATALOG_FILE).unwrap_or_default();
    if !may_have_comments(&bytes) {
        return Vec::new();
    }
    parse(&String::from_utf8_lossy(&bytes))
}

/// Returns true if there is anything to look for: nearly all files have none.
pub(crate) fn may_have_comments(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"olmkit:").is_some()
}

fn parse(text: &str) -> Vec<Comment> {
    let mut found = Vec::new();
    // Comments on separate lines, until the line to which they apply.
    let mut waiting: Vec<Comment> = Vec::new();
    let real = real_comments(text);
    for (number, line) in (1..).zip(text.lines()) {
        let real = real.get(&number).copied();
        let comment = real.and_then(comment);
        let is_alone = real.is_some_and(|real| real == line.trim());
        if !is_alone {
            found.extend(waiting.drain(..).map(|comment| Comment {
                scope: Scope::Line(number),
                ..comment
            }));
        }
        let Some((of_file, rules, reason)) = comment else {
            continue;
        };
        let comment = Comment {
            scope: if of_file { Scope::File } else { Scope::Line(number) },
            rules,
            reason,
        };
        if is_alone && !of_file {
            waiting.push(comment);
        } else {
            found.push(comment);
        }
    }
    found
}

/// The comments by line.
fn real_comments(text: &str) -> HashMap<u32, &str> {
    // These are line ends only for YAML: its lines would differ from those of the file.
    let has_odd_ends = text
        .replace("\r\n", "\n")
        .contains(['\r', '\u{85}', '\u{2028}', '\u{2029}']);
    let documents: Result<Vec<Node>, _> = yaml::documents(text.as_bytes()).collect();
    let (Ok(documents), false) = (documents, has_odd_ends) else {
        return HashMap::new();
    };
    let numbered = comments(text, &documents).into_iter();
    numbered
        .filter_map(|(line, comment)| Some((u32::try_from(line).ok()?, comment)))
        .collect()
}

/// The comment of one line: whether it applies to the file, its rules, its reason.
fn comment(line: &str) -> Option<(bool, Vec<String>, String)> {
    let at = line.match_indices('#').map(|(at, _)| at).find(|at| {
        let before = line.get(..*at).and_then(|before| before.chars().next_back());
        before.is_none_or(char::is_whitespace) && is_ours(line.get(*at..).unwrap_or_default())
    })?;
    let text = line
        .get(at..)?
        .trim_start_matches('#')
        .trim_start()
        .strip_prefix("olmkit:")?;
    let (verb, rest) = text.trim_start().split_once(char::is_whitespace)?;
    let of_file = match verb {
        "ignore" => false,
        "ignore-file" => true,
        _ => return None,
    };
    let (rules, reason) = rest.trim_start().split_once(char::is_whitespace)?;
    let reason = reason.trim();
    let rules: Vec<String> = rules.split(',').map(str::to_owned).collect();
    (!reason.is_empty()).then(|| (of_file, rules, limits::message(reason)))
}

fn is_ours(text: &str) -> bool {
    text.trim_start_matches('#').trim_start().starts_with("olmkit:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u32, rules: &[&str], reason: &str) -> Comment {
        Comment {
            scope: Scope::Line(number),
            rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn comments_hold_for_their_line_or_the_next() {
        let text = "a: 1 # olmkit: ignore CSV-1 because\n\
                    # olmkit: ignore CSV-2,CSV-3 it is so\n\
                    # a remark\n\
                    b: 2\n\
                    # olmkit: ignore CSV-4\n\
                    c: x#olmkit:ignore CSV-5 no comment\n";
        assert_eq!(
            parse(text),
            [line(1, &["CSV-1"], "because"), line(4, &["CSV-2", "CSV-3"], "it is so")]
        );
    }

    #[test]
    fn strings_are_no_comments() {
        let comment = "# olmkit: ignore-file CSV-1,BND-4 no comment";
        for text in [
            format!("a: |\n  b\n  {comment}\nc: 1\n"),
            format!("a: >-\n  {comment}\n"),
            format!("a: 'b\n  {comment}\n  c'\n"),
            format!("a: \"b {comment}\"\n"),
            format!("a: 1\n---\nb: |\n  {comment}\n"),
            // Not YAML, so comments cannot be identified.
            format!("a: [\n{comment}\n"),
            format!("a: 1\u{2028}\nb: |\n  c\n  {comment}\n"),
            format!("a: 1\rb: |\n  {comment}\n"),
        ] {
            assert_eq!(parse(&text), [], "{text}");
        }
        let text = format!("a: |\n  b\n{comment}\n---\n# x\nb: 1 {comment}\n");
        assert_eq!(parse(&text).len(), 2, "{text}");
    }

    #[test]
    fn comments_hold_for_a_file() {
        let found = parse("x: 1\n# olmkit: ignore-file BND-4 kept for old clusters\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].scope, Scope::File);
    }
}
