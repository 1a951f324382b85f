//! The functions that `olmkit bundle validate` runs, in `crates/cli/hot-functions.ld`: `cargo xtask hot-functions`.
//!
//! The linker places them next to each other. Otherwise they are spread over fifteen megabytes of code. The kernel maps sixteen
//! pages around each page that is used, so that one megabyte of code would take five in memory.
//!
//! The list names functions, not addresses. It stays useful when the code changes, and outdated entries do no harm.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::command::output;

const LIST: &str = "crates/cli/hot-functions.ld";

/// Percentage of listed functions that a program must have. The linker merges equal functions and the compiler inlines others,
/// so that builds differ in their functions.
const LEAST: usize = 75;

/// Checks that a program with symbols has most of the listed functions.
///
/// # Errors
/// If too many no longer exist.
pub fn check(root: &Path, program: &Path) -> anyhow::Result<()> {
    let list = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
    let symbols = output(Command::new("nm").arg("--defined-only").arg(program))?;
    let existing: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    let existing: BTreeSet<&str> = existing.into_iter().filter_map(without_hash).collect();
    let listed: Vec<&str> = list.lines().filter_map(listed).collect();
    let found = listed.iter().filter(|function| existing.contains(**function)).count();
    let share = (100 * found).checked_div(listed.len()).unwrap_or(0);
    println!(
        "{found} of {} functions in hot-functions.ld exist ({share} %)",
        listed.len()
    );
    ensure!(
        share >= LEAST,
        "the list is outdated; write it again with cargo xtask hot-functions"
    );
    Ok(())
}

/// A mangled name up to its hash, which differs from build to build.
fn without_hash(symbol: &str) -> Option<&str> {
    let start = symbol.starts_with("_ZN").then(|| symbol.rfind("17h")).flatten()? + 3;
    let (name, hash) = symbol.split_at_checked(start)?;
    let is_hash = hash.len() > 16 && hash.bytes().take(16).all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(name)
}

/// The function in a line of the list, without its hash.
fn listed(line: &str) -> Option<&str> {
    let (_, function) = line.split_once("*(.text._ZN")?;
    let pattern = line.get(line.len() - function.len() - 3..)?.split(' ').next()?;
    pattern.strip_suffix("*E").filter(|function| function.ends_with("17h"))
}

/// Writes the list: the functions that a program runs for some bundles. Needs valgrind.
///
/// # Errors
/// If valgrind or the program fails.
pub fn write(root: &Path, program: &Path, bundles: &[PathBuf]) -> anyhow::Result<()> {
    let (mut reference, mut all) = (BTreeSet::new(), BTreeSet::new());
    for bundle in bundles {
        reference.extend(functions(program, bundle, &["-o", "json-alpha1"])?);
        all.extend(functions(program, bundle, &[])?);
    }
    let text = rendered(&reference, &all)?;
    std::fs::write(root.join(LIST), &text).context(LIST)?;
    println!("{} functions in {LIST}", text.matches("_ZN").count() / 2);
    Ok(())
}

/// The functions that a program runs for one bundle.
fn functions(program: &Path, bundle: &Path, flags: &[&str]) -> anyhow::Result<BTreeSet<String>> {
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("functions");
    let mut option = std::ffi::OsString::from("--callgrind-out-file=");
    option.push(&file);
    let ended = Command::new("valgrind")
        .args(["--tool=callgrind", "--demangle=no", "--compress-strings=no"])
        .arg(option)
        .arg(program)
        .args(["bundle", "validate"])
        .arg(bundle)
        .args(flags)
        .output()
        .context("cannot run valgrind")?;
    // 1: the bundle has findings.
    ensure!(
        matches!(ended.status.code(), Some(0 | 1)),
        "valgrind failed: {}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let text = std::fs::read_to_string(&file)?;
    let named = text.lines().filter_map(|line| line.strip_prefix("fn="));
    Ok(named.filter_map(without_hash).map(str::to_owned).collect())
}

/// The linker script: the functions of operator-sdk's rules first.
fn rendered(reference: &BTreeSet<String>, all: &BTreeSet<String>) -> anyhow::Result<String> {
    let mut text = String::from(
        "/* Functions that validating a bundle runs, next to each other. Written by cargo xtask hot-functions. */\n\
         SECTIONS {\n  .text.hot_functions : {\n",
    );
    let line =
        |text: &mut String, function: &str| writeln!(text, "    *(.text.{function}*E .text.unlikely.{function}*E)");
    for function in reference {
        line(&mut text, function)?;
    }
    text.push_str("    /* Lints of olmkit. */\n");
    for function in all.difference(reference) {
        line(&mut text, function)?;
    }
    text.push_str("  }\n}\nINSERT BEFORE .text;\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_compared_without_their_hash() {
        let reference = BTreeSet::from(["_ZN6olmkit4main17h".to_owned()]);
        let all = BTreeSet::from(["_ZN6olmkit4main17h".to_owned(), "_ZN6olmkit5lints17h".to_owned()]);
        let text = rendered(&reference, &all).unwrap();
        let found: Vec<&str> = text.lines().filter_map(listed).collect();
        assert_eq!(found, ["_ZN6olmkit4main17h", "_ZN6olmkit5lints17h"]);
        assert_eq!(
            without_hash("_ZN6olmkit4main17h0123456789abcdefE"),
            Some("_ZN6olmkit4main17h")
        );
        assert_eq!(without_hash("main"), None);
    }
}
