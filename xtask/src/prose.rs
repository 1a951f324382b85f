//! Counts idioms that the writing guide rejects (`docs/contributing/writing.md`). No count may grow.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use regex::Regex;

/// File with the allowed counts.
const ALLOWED: &str = "docs/contributing/prose.txt";

/// Rejected phrases, as regular expressions. Case does not matter.
const IDIOMS: &[&str] = &[
    r"way out",
    r"leaves? \w+ away",
    r"but for\b",
    r"\banew\b",
    r"by chance",
    r"\bis gone\b",
    r"\bsince\.",
    r"\bbeside\b",
    r"\bblanks?\b",
    r"\btexts\b",
    r"\bof (its|their|his|our) own\b",
    r"\b(some|any|no)body\b",
    r"\bmeanwhile\b",
    r"\brights\b",
    r"\bfolders?\b",
    r"\bstrangers?\b|\bforeign\b|\bof others\b",
    r"\bwhoever\b",
    r"(^|[.!?] )(What|Which|Whose|Whether)\b[^?]*$",
    r"\blooks? at\b",
    r"\bwrong usage\b",
    r"\bas (it|they) (is|are)\b",
    r"\bgoes with\b",
    r"\bholds\b",
    r"\bstands\b",
    r"\bsays\b",
    r"\bknows\b",
    r"\bso many\b",
];

/// Counts by area, kind of text and idiom.
type Counts = BTreeMap<(String, &'static str, &'static str), Vec<String>>;

/// Compares the counts of a repository with the allowed ones, or writes them.
///
/// # Errors
/// If a count has grown, or git or a file cannot be read.
pub fn check(root: &Path, update: bool) -> anyhow::Result<()> {
    let counts = count(root)?;
    let file = root.join(ALLOWED);
    if update {
        return std::fs::write(&file, rendered(&counts)).context(ALLOWED);
    }
    let allowed = std::fs::read_to_string(&file).context(ALLOWED)?;
    compare(&counts, &allowed)
}

/// Prints each line with an idiom.
///
/// # Errors
/// If git or a file cannot be read.
pub fn list(root: &Path) -> anyhow::Result<()> {
    for ((_, kind, idiom), found) in count(root)? {
        for place in found {
            println!("{kind}, {idiom}: {place}");
        }
    }
    Ok(())
}

fn count(root: &Path) -> anyhow::Result<Counts> {
    let idioms: Vec<(&str, Regex)> = IDIOMS
        .iter()
        .map(|idiom| Ok((*idiom, Regex::new(&format!("(?i){idiom}"))?)))
        .collect::<anyhow::Result<_>>()?;
    let mut counts = Counts::new();
    for path in tracked(root)? {
        let Some(area) = area(&path) else { continue };
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else {
            continue;
        };
        let lines = if path.ends_with(".md") {
            page(&text)
        } else {
            comments(&text)
        };
        for line in lines {
            let text = line.without_code();
            for (idiom, pattern) in &idioms {
                if pattern.is_match(&text) {
                    let found = counts.entry((area.clone(), line.kind, idiom)).or_default();
                    found.push(format!("{path}:{}: {}", line.number, text.trim()));
                }
            }
        }
    }
    Ok(counts)
}

/// The counts as lines: area, kind, count, idiom.
fn rendered(counts: &Counts) -> String {
    let mut out = "# Idioms by area, as `cargo xtask prose --update` writes them. Counts must not grow.\n".to_owned();
    for ((area, kind, idiom), found) in counts {
        let _ = writeln!(out, "{area}\t{kind}\t{}\t{idiom}", found.len());
    }
    out
}

fn compare(counts: &Counts, allowed: &str) -> anyhow::Result<()> {
    let mut most: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for line in allowed.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.splitn(4, '\t').collect();
        let [area, kind, count, idiom] = cells[..] else {
            bail!("{ALLOWED}: {line:?} has not four columns");
        };
        most.insert((area, kind, idiom), count.parse().with_context(|| line.to_owned())?);
    }
    let mut grown = String::new();
    for ((area, kind, idiom), found) in counts {
        let allowed = most.get(&(area.as_str(), *kind, *idiom)).copied().unwrap_or_default();
        if found.len() > allowed {
            let _ = writeln!(
                grown,
                "{area}, {kind}: {idiom} occurs {} times, allowed {allowed}",
                found.len()
            );
            for place in found.iter().take(10) {
                let _ = writeln!(grown, "  {place}");
            }
        }
    }
    let total: usize = counts.values().map(Vec::len).sum();
    ensure!(
        grown.is_empty(),
        "the writing guide rejects these phrases; rephrase your lines:\n{grown}"
    );
    println!("{total} idioms, no count has grown");
    Ok(())
}

/// Paths of the files under version control.
///
/// # Errors
/// If git fails.
pub fn tracked(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let output = output.context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files failed");
    let text = String::from_utf8(output.stdout)?;
    Ok(text
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect())
}

/// The crate or directory that a file belongs to. `None` if its text is not checked.
pub fn area(path: &str) -> Option<String> {
    let is_checked = (path.ends_with(".rs") || path.ends_with(".md"))
        && !path.starts_with("CHANGELOG")
        && !path.starts_with("docs/contributing/writing.md")
        && path != "xtask/src/prose.rs";
    let parts: Vec<&str> = path.split('/').collect();
    is_checked.then(|| match parts[..] {
        ["crates", name, ..] => format!("crates/{name}"),
        ["docs", directory, _, ..] => format!("docs/{directory}"),
        [directory, _, ..] => directory.to_owned(),
        _ => ".".to_owned(),
    })
}

/// One line of a text.
#[derive(Debug, PartialEq)]
pub struct Line {
    /// The number in the file.
    pub number: usize,
    /// `pages`, `comments` or `strings`.
    pub kind: &'static str,
    /// The content.
    pub text: String,
    /// The line continues the sentence of the line before it.
    pub continues: bool,
}

impl Line {
    fn new(number: usize, kind: &'static str, text: &str, before: &str) -> Self {
        Self {
            number,
            kind,
            text: text.to_owned(),
            continues: continues(before, text),
        }
    }

    /// The content without inline code. It begins with an ellipsis if it continues the sentence of the line before it.
    pub fn without_code(&self) -> String {
        let text = without_code(&self.text);
        if self.continues { format!("… {text}") } else { text }
    }
}

/// The prose of a page: lines outside code blocks.
pub fn page(text: &str) -> Vec<Line> {
    let mut in_code = false;
    let mut before = "";
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        if !in_code && !is_fence && !line.trim_start().starts_with("<!--") {
            lines.push(Line::new(index + 1, "pages", line, before));
        }
        before = line;
    }
    lines
}

/// The comments and string literals of a Rust source. A line that begins with a comment has no literals. A literal counts
/// from three words on: shorter ones are names or inputs.
pub fn comments(text: &str) -> Vec<Line> {
    let mut before = "";
    let mut is_open = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(comment) = line.trim_start().strip_prefix("//") {
            let comment = comment.trim_start_matches(['/', '!', ' ']);
            lines.push(Line::new(number, "comments", comment, before));
            before = comment;
            continue;
        }
        before = "";
        let was_open = is_open;
        for (index, literal) in literals(line, &mut is_open).into_iter().enumerate() {
            if literal.split_whitespace().count() > 2 {
                let is_last = |last: &Line| last.kind == "strings" && last.number + 1 == number;
                let continues = was_open && index == 0 && lines.last().is_some_and(is_last);
                lines.push(Line {
                    continues,
                    ..Line::new(number, "strings", &literal, "")
                });
            }
        }
    }
    lines
}

/// The string literals of a line. `is_open` is true between the lines of a literal that continues after a backslash.
fn literals(line: &str, is_open: &mut bool) -> Vec<String> {
    let line = line.replace("'\"'", "").replace("\\\"", "'");
    let parts: Vec<&str> = line.split('"').collect();
    let first = usize::from(!*is_open);
    *is_open = parts.len().is_multiple_of(2) != *is_open && line.ends_with('\\');
    parts.into_iter().skip(first).step_by(2).map(str::to_owned).collect()
}

/// Returns true if a line continues the sentence of the line before it.
fn continues(before: &str, line: &str) -> bool {
    let end = before.trim_end().chars().next_back();
    let starts = line.trim_start().starts_with(['#', '|', '-', '>']) || line.trim_start().starts_with(char::is_numeric);
    !starts && end.is_some_and(|end| !".:?!|>".contains(end)) && !before.trim_start().starts_with('#')
}

/// A text without the content of its inline code.
fn without_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(index, part)| if index % 2 == 0 { part } else { "code" })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(found: usize) -> Counts {
        let places = vec!["a.rs:1: written anew".to_owned(); found];
        Counts::from([(("crates/a".to_owned(), "comments", r"\banew\b"), places)])
    }

    #[test]
    fn growth_fails_and_names_the_lines() {
        let allowed = rendered(&counts(1));
        compare(&counts(1), &allowed).unwrap();
        compare(&Counts::new(), &allowed).unwrap();
        let error = compare(&counts(2), &allowed).unwrap_err().to_string();
        assert!(
            error.contains("occurs 2 times, allowed 1\n  a.rs:1: written anew"),
            "{error}"
        );
        assert!(compare(&counts(1), "").is_err());
    }

    #[test]
    fn code_of_pages_is_not_prose() {
        let text = "one\n```sh\ntwo\n```\nthree\n";
        let lines: Vec<usize> = page(text).iter().map(|line| line.number).collect();
        assert_eq!(lines, [1, 5]);
    }

    #[test]
    fn only_the_start_of_a_sentence_counts() {
        let text = "// Returns the name,\n// which is unique.\n// Which one.\n";
        let found: Vec<String> = comments(text).iter().map(Line::without_code).collect();
        assert_eq!(found, ["Returns the name,", "… which is unique.", "Which one."]);
        assert_eq!(page("| what |\nWhat is it.\n")[1].without_code(), "What is it.");
    }

    #[test]
    fn code_and_names_are_not_prose() {
        assert_eq!(without_code("the `folder` of `x`"), "the code of code");
        assert!(comments("let a = f(\"folder\", folder);\n").is_empty());
        let found = comments("    bail!(\"{a} is in a \\\"folder\\\"\", folder);\n");
        assert_eq!(found, [Line::new(1, "strings", "{a} is in a 'folder'", "")]);
        let found = comments("f(\"one two three \\\n four five six\", seven eight nine, \"ten\");\n");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn comments_and_strings_of_a_source_are_found() {
        let text = "/// Doc.\nlet a = \"text of three\";\nlet b = 1;\n    // why\n";
        let found: Vec<_> = comments(text).iter().map(|line| (line.number, line.kind)).collect();
        assert_eq!(found, [(1, "comments"), (2, "strings"), (4, "comments")]);
    }

    #[test]
    fn every_idiom_is_a_regular_expression() {
        for idiom in IDIOMS {
            Regex::new(idiom).unwrap();
        }
    }
}
