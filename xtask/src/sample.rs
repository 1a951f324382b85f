//! Random sentences of the repository, to review them by the writing guide: `cargo xtask prose --sample`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;
use regex::Regex;

use crate::prose::{self, Line};

/// A path and a sentence in it.
type Place = (String, String);

/// Pages that are not sampled: evidence quotes old sentences, and the rules are strings of the sources.
const NOT_SAMPLED: [&str; 3] = ["docs/contributing/evidence/", "docs/reference/rules/", "CHANGELOG"];

/// Help pages, which contain the help output in blocks of code.
const HELP: &str = "docs/reference/commands/";

/// Prints `count` random sentences of each kind as the rows of a Markdown table. The same seed selects the same sentences.
///
/// # Errors
/// If git or a file cannot be read.
pub fn print(root: &Path, count: usize, seed: &str) -> anyhow::Result<()> {
    let mut number = 0;
    for (kind, sentences) in sentences(root)? {
        for (path, sentence) in chosen(sentences, count, seed) {
            number += 1;
            println!("| {number} | {kind} | `{path}` | {} | |", sentence.replace('|', "\\|"));
        }
    }
    Ok(())
}

fn sentences(root: &Path) -> anyhow::Result<BTreeMap<&'static str, BTreeSet<Place>>> {
    let end = Regex::new("[.!?:]\\s+[A-Z`\"\\[]")?;
    let mut found: BTreeMap<_, BTreeSet<Place>> = BTreeMap::new();
    let mut add = |kind, path: &str, paragraphs: Vec<String>| {
        let least = if kind == "strings" { 5 } else { 4 };
        let sentences = paragraphs.iter().flat_map(|text| split(text, &end));
        let long = sentences.filter(|sentence| sentence.split_whitespace().count() >= least);
        let places = long.map(|sentence| (path.to_owned(), sentence));
        found.entry(kind).or_default().extend(places);
    };
    for path in prose::tracked(root)? {
        if NOT_SAMPLED.iter().any(|start| path.starts_with(start)) || prose::area(&path).is_none() {
            continue;
        }
        let text = std::fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
        if path.ends_with(".md") {
            add("pages", &path, paragraphs(prose::page(&text), "pages"));
            if path.starts_with(HELP) {
                add("help", &path, help(&text));
            }
            continue;
        }
        add("comments", &path, paragraphs(prose::comments(&text), "comments"));
        let is_test = path.contains("tests") || path.contains("test-support") || !path.contains("src/");
        if !is_test {
            let source = text.split("\n#[cfg(test)]").next().unwrap_or_default();
            add("strings", &path, paragraphs(prose::comments(source), "strings"));
        }
    }
    Ok(found)
}

/// Lines of one kind, joined with the lines that continue them.
fn paragraphs(lines: Vec<Line>, kind: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in lines.into_iter().filter(|line| line.kind == kind) {
        match found.last_mut().filter(|_| line.continues) {
            Some(last) => {
                last.push(' ');
                last.push_str(line.text.trim().trim_end_matches('\\'));
            }
            // A row of a table.
            None if line.text.starts_with('|') => found.extend(line.text.split(" | ").map(str::to_owned)),
            None => found.push(line.text.trim().to_owned()),
        }
    }
    found
}

/// The descriptions of commands and flags in the blocks of a help page.
fn help(text: &str) -> Vec<String> {
    let is_description = |line: &str| {
        let others = [
            "-",
            "[",
            "<",
            "```",
            "olmkit ",
            "Usage:",
            "Examples:",
            "Arguments:",
            "Options:",
            "Possible",
        ];
        !line.is_empty() && !others.iter().any(|start| line.starts_with(start))
    };
    let mut found = Vec::new();
    for block in text.split("```text\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let lines: Vec<&str> = block.lines().map(str::trim).collect();
        let parts = lines.split(|line| !is_description(line));
        found.extend(parts.filter(|part| !part.is_empty()).map(|part| part.join(" ")));
    }
    found
}

fn split(text: &str, end: &Regex) -> Vec<String> {
    let text = text.trim_matches([' ', '-', '*', '|', '>', '#']);
    let mut start = 0;
    let mut found = Vec::new();
    for mark in end.find_iter(text) {
        // The mark itself has one byte, and so has the first character of the next sentence.
        found.push(text[start..=mark.start()].trim().to_owned());
        start = mark.end() - 1;
    }
    found.push(text[start..].trim().to_owned());
    found
}

/// The sentences with the lowest hashes.
fn chosen(sentences: BTreeSet<Place>, count: usize, seed: &str) -> Vec<Place> {
    let mut hashed: Vec<(u64, Place)> = sentences
        .into_iter()
        .map(|place| (hash([seed, &place.0, &place.1]), place))
        .collect();
    hashed.sort();
    hashed.into_iter().take(count).map(|(_, place)| place).collect()
}

/// FNV-1a, mixed so that similar sentences differ in the high bits. Rust's own hash may change with its version.
fn hash(texts: [&str; 3]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides_the_sentences() {
        let sentences: BTreeSet<Place> = (0..100)
            .map(|at| ("a.md".to_owned(), format!("Sentence {at}.")))
            .collect();
        let first = chosen(sentences.clone(), 5, "a");
        assert_eq!(first.len(), 5);
        assert_eq!(first, chosen(sentences.clone(), 5, "a"));
        assert_ne!(first, chosen(sentences, 5, "b"));
    }

    #[test]
    fn lines_are_joined_and_split_into_sentences() {
        let text = "One sentence with `code` that\ncontinues. Another one.\n\n- an item\n```sh\ncode\n```\n";
        let end = Regex::new("[.!?:]\\s+[A-Z`\"\\[]").unwrap();
        let found = paragraphs(prose::page(text), "pages");
        let found: Vec<String> = found.iter().flat_map(|text| split(text, &end)).collect();
        let found: Vec<&str> = found
            .iter()
            .map(String::as_str)
            .filter(|text| !text.is_empty())
            .collect();
        assert_eq!(
            found,
            ["One sentence with `code` that continues.", "Another one.", "an item"]
        );
    }

    #[test]
    fn help_is_without_flags_and_usage() {
        let text = "```text\nLoad a bundle\n\nUsage: olmkit load\n\nOptions:\n  -o, --output <FORMAT>\n          Print it\n          as text\n```\n";
        assert_eq!(help(text), ["Load a bundle", "Print it as text"]);
    }
}
