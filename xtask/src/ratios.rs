//! Word ratios of the pages, compared with the targets of the writing guide (`docs/contributing/writing.md`).

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::prose::page;

/// A counted group of words: heading, target for 1,000 words, and the words. A target with `true` is a minimum.
const GROUPS: &[(&str, f64, bool, &[&str])] = &[
    ("of", 14.0, false, &["of"]),
    ("what", 2.0, false, &["what"]),
    ("that, which", 13.0, false, &["that", "which"]),
    ("`;`", 2.0, false, &[";"]),
    ("you, your", 8.0, true, &["you", "your"]),
    ("if, when", 8.0, true, &["if", "when"]),
    (
        "who, others",
        0.3,
        false,
        &["who", "whoever", "somebody", "nobody", "others"],
    ),
];

/// Words of a page, and the count of each group.
#[derive(Debug, Clone, Default, PartialEq)]
struct Ratios {
    words: usize,
    found: Vec<usize>,
}

impl Ratios {
    fn new(text: &str) -> Self {
        let prose: Vec<String> = page(text)
            .iter()
            .map(|line| line.without_code().to_lowercase())
            .collect();
        let prose = prose.join("\n").replace(';', " ; ");
        let words: Vec<&str> = prose
            .split(|character: char| !character.is_alphanumeric() && !"'-;".contains(character))
            .filter(|word| !word.trim_matches('-').is_empty())
            .collect();
        let count = |group: &[&str]| words.iter().filter(|word| group.contains(word)).count();
        Self {
            words: words.iter().filter(|word| **word != ";").count(),
            found: GROUPS.iter().map(|(.., group)| count(group)).collect(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.words += other.words;
        self.found.resize(other.found.len(), 0);
        for (sum, count) in self.found.iter_mut().zip(&other.found) {
            *sum += count;
        }
    }

    /// A row of a Markdown table. Ratios beyond their target are bold.
    fn row(&self, name: &str) -> String {
        let cells = GROUPS
            .iter()
            .zip(&self.found)
            .map(|((_, target, is_minimum, _), count)| {
                let ratio = (10_000.0 * *count as f64 / self.words.max(1) as f64).round() / 10.0;
                let is_met = if *is_minimum {
                    ratio >= *target
                } else {
                    ratio <= *target
                };
                if is_met {
                    format!("{ratio:.1}")
                } else {
                    format!("**{ratio:.1}**")
                }
            });
        format!(
            "| {name} | {} | {} |",
            self.words,
            cells.collect::<Vec<_>>().join(" | ")
        )
    }
}

/// Prints a Markdown table of the pages below `docs/` and the README, in the work tree or at a commit.
///
/// # Errors
/// If git or a file cannot be read.
pub fn print(root: &Path, commit: Option<&str>) -> anyhow::Result<()> {
    let list = match commit {
        Some(commit) => git(root, &["ls-tree", "-r", "--name-only", commit])?,
        None => git(root, &["ls-files"])?,
    };
    let is_page = |path: &&str| path.ends_with(".md") && (path.starts_with("docs/") || *path == "README.md");
    let heads = GROUPS
        .iter()
        .map(|(head, target, is_minimum, _)| format!("{head} {} {target}", if *is_minimum { "≥" } else { "≤" }));
    println!("| page | words | {} |", heads.collect::<Vec<_>>().join(" | "));
    println!("|---|---:|{}", "---:|".repeat(GROUPS.len()));
    let mut sum = Ratios::default();
    for path in list.lines().filter(is_page) {
        let text = match commit {
            Some(commit) => git(root, &["show", &format!("{commit}:{path}")])?,
            None => std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?,
        };
        let ratios = Ratios::new(&text);
        println!("{}", ratios.row(path));
        sum.add(&ratios);
    }
    println!("{}", sum.row("all"));
    Ok(())
}

fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output();
    let output = output.context("cannot run git")?;
    ensure!(output.status.success(), "git {} failed", arguments.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_prose_are_counted() {
        let found =
            Ratios::new("# Of pages\n\nIf you see `what`, stop; that is all - of it.\n```\nwhat of code;\n```\n");
        assert_eq!(found.words, 12);
        assert_eq!(found.found, [2, 0, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn ratios_beyond_their_target_are_bold() {
        let found = Ratios::new("one of two");
        assert!(
            found
                .row("a")
                .starts_with("| a | 3 | **333.3** | 0.0 | 0.0 | 0.0 | **0.0** |"),
            "{}",
            found.row("a")
        );
    }
}
