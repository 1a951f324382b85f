//! Facts with one home: the repository's address is in `Cargo.toml`, and each published crate describes its changes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The files in git.
fn files() -> Vec<PathBuf> {
    let root = test_support::repository("");
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).unwrap();
    let names = names.split('\0').filter(|name| !name.is_empty());
    names.map(|name| root.join(name)).collect()
}

/// The addresses of repositories called `name` on GitHub in a text, such as `github.com/example/olmkit`.
fn addresses<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    for (start, host) in text.match_indices("github.com/") {
        let owner = start + host.len();
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let Some((_, rest)) = text[owner..]
            .split_once('/')
            .filter(|(owner, _)| owner.chars().all(is_name))
        else {
            continue;
        };
        let repository = rest.split(|c| !is_name(c)).next().unwrap_or_default();
        if repository.trim_end_matches('.').trim_end_matches(".git") == name {
            let end = text.len() - rest.len() + name.len();
            found.push(&text[start..end]);
        }
    }
    found
}

#[test]
fn every_address_of_the_repository_is_that_of_the_manifest() {
    let address = env!("CARGO_PKG_REPOSITORY").strip_prefix("https://").unwrap();
    let name = address.rsplit('/').next().unwrap();
    let mut checked = 0;
    for file in files() {
        // Binary files have no addresses.
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        for found in addresses(&text, name) {
            assert_eq!(found, address, "{}", file.display());
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} addresses found");
}

#[test]
fn addresses_are_found_in_texts() {
    let text = "https://github.com/a/tool/blob/main, github.com/b/tool.git. github.com/c/other and git@github.com/";
    assert_eq!(addresses(text, "tool"), ["github.com/a/tool", "github.com/b/tool"]);
}

#[test]
fn every_published_crate_has_a_changelog_and_a_readme() {
    let mut checked = 0;
    for file in files() {
        let directory = file.parent().unwrap_or(Path::new(""));
        let is_crate =
            file.ends_with("Cargo.toml") && directory.parent().is_some_and(|parent| parent.ends_with("crates"));
        if !is_crate {
            continue;
        }
        let changelog = std::fs::read_to_string(directory.join("CHANGELOG.md"))
            .unwrap_or_else(|error| panic!("{}/CHANGELOG.md: {error}", directory.display()));
        let (head, entry) = changelog
            .split_once("\n## [Unreleased]\n")
            .unwrap_or_else(|| panic!("{}/CHANGELOG.md has no section [Unreleased]", directory.display()));
        assert!(head.starts_with("# Changelog\n"), "{}", directory.display());
        assert!(
            entry.lines().any(|line| line.starts_with("- ")),
            "{}",
            directory.display()
        );
        assert!(
            directory.join("README.md").is_file(),
            "{} has no README.md",
            directory.display()
        );
        checked += 1;
    }
    assert!(checked > 15, "only {checked} crates found");
}

/// Hand-written pages agree about lints and the result. `olmkit::rules` tests that no other lint is an error.
#[test]
fn pages_agree_on_what_lints_change() {
    const EXCEPTION: &str = "The exception is OPM-1, which is an error.";
    let root = test_support::repository("");
    let mut pages = Vec::new();
    for file in files() {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let is_generated = name.starts_with("docs/reference/rules/") || name.starts_with("docs/reference/commands/");
        let is_page = name.ends_with(".md") && (name.starts_with("docs/") || name == "README.md");
        if !is_page || is_generated || name.contains("/evidence/") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (at, found) in text.match_indices("change the result") {
            let start = text[..at].rfind(". ").map_or(0, |end| end + 2);
            let is_about_lints = text[start..at].contains("They ") || text[start..at].contains("ints ");
            assert!(is_about_lints, "{name}: {}", &text[start..at + found.len()]);
            let rest = &text[at + found.len()..];
            let wanted = if name == "docs/guides/catalogs.md" {
                " unless you pass `--fail-on warning`. ".to_owned()
            } else {
                format!(" unless you pass `--strict` or `--fail-on warning`. {EXCEPTION} ")
            };
            let shown: String = rest.chars().take(wanted.len()).collect();
            assert_eq!(shown, wanted, "{name}");
            pages.push(name.clone());
        }
    }
    assert_eq!(
        pages,
        [
            "docs/guides/catalogs.md",
            "docs/guides/validate.md",
            "docs/reference/compatibility.md",
            "docs/start/faq.md",
        ]
    );
}
