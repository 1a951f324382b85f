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
];

/// Counts by area, kind of text and idiom.
type Counts = BTreeMap<(String, &'static str, &'static str), Vec<String>>;

/// Compares the counts of a repository with the allowed ones, or writes them.
///
/// # Errors
/// If a count has grown, or a file cannot be read.
pub fn check(root: &Path, update: bool) -> anyhow::Result<()> {
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
        for (number, kind, line) in lines {
            for (idiom, pattern) in &idioms {
                if pattern.is_match(line) {
                    let found = counts.entry((area.clone(), kind, idiom)).or_default();
                    found.push(format!("{path}:{number}: {}", line.trim()));
                }
            }
        }
    }
    let file = root.join(ALLOWED);
    if update {
        return std::fs::write(&file, rendered(&counts)).context(ALLOWED);
    }
    let allowed = std::fs::read_to_string(&file).context(ALLOWED)?;
    compare(&counts, &allowed)
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
fn tracked(root: &Path) -> anyhow::Result<Vec<String>> {
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

/// The crate or directory that a file belongs to; `None` if its text is not checked.
fn area(path: &str) -> Option<String> {
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

/// The prose of a page: lines outside code blocks.
fn page(text: &str) -> Vec<(usize, &'static str, &str)> {
    let mut in_code = false;
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (!in_code && !is_fence).then_some((index + 1, "pages", line))
    });
    lines.collect()
}

/// The comments and string literals of a Rust source. A line with both counts as a comment.
fn comments(text: &str) -> Vec<(usize, &'static str, &str)> {
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let begin = line.trim_start();
        if let Some(comment) = begin.strip_prefix("//") {
            return Some((index + 1, "comments", comment.trim_start_matches(['/', '!', ' '])));
        }
        let (_, rest) = line.split_once('"')?;
        Some((index + 1, "strings", rest))
    });
    lines.collect()
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
        let lines: Vec<usize> = page(text).into_iter().map(|(number, ..)| number).collect();
        assert_eq!(lines, [1, 5]);
    }

    #[test]
    fn comments_and_strings_of_a_source_are_found() {
        let text = "/// Doc.\nlet a = \"text\";\nlet b = 1;\n    // why\n";
        let found: Vec<_> = comments(text)
            .into_iter()
            .map(|(number, kind, _)| (number, kind))
            .collect();
        assert_eq!(found, [(1, "comments"), (2, "strings"), (4, "comments")]);
    }

    #[test]
    fn every_idiom_is_a_regular_expression() {
        for idiom in IDIOMS {
            Regex::new(idiom).unwrap();
        }
    }
}
