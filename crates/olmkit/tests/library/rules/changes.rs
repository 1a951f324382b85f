//! The committed bundle, and changes of it.

use std::collections::BTreeSet;

use olmkit::bundle::load::{self, Limits, Tree};
use olmkit::rules::{self, Origin};
use olmkit::validate::{self, Options, Outcome, Selector};

pub use test_support::demo_bundle::{ANNOTATIONS, CRD, CSV, DIGEST, SERVICE};

/// The selector for rules that belong to no other validator.
pub const SUITE: &str = "suite=operatorframework";
/// In place of a replacement: the file is omitted.
pub const REMOVED: &str = "\0";

/// File, text, its replacement (an empty text: something is appended), rules that break.
pub type Change = (&'static str, &'static str, &'static str, &'static [&'static str]);

pub fn bundle() -> Tree {
    Tree::from_dir(&test_support::demo_bundle::path(), Limits::default()).expect("the committed bundle")
}

pub fn changed(file: &str, from: &str, to: &str) -> Tree {
    let mut tree = bundle();
    if to == REMOVED {
        let kept = tree.walk("").filter_map(|(path, entry)| match entry {
            load::Entry::File(bytes) if path != file => Some((path, bytes.clone())),
            _ => None,
        });
        return Tree::from_files(kept.collect::<Vec<_>>());
    }
    let text = String::from_utf8(tree.file(file).unwrap_or_default().to_vec()).expect("text");
    if from.is_empty() {
        tree.insert(file, format!("{text}{to}").into_bytes());
    } else {
        assert!(text.contains(from), "{file} has no {from:?}");
        tree.insert(file, text.replacen(from, to, 1).into_bytes());
    }
    tree
}

pub fn options(selector: &str) -> Options {
    Options {
        lints: true,
        unproven: true,
        selector: Selector::parse(selector).expect("selector"),
        ..Options::default()
    }
}

/// The rules that findings belong to.
pub fn ids(outcome: &Outcome) -> BTreeSet<&'static str> {
    outcome.findings().map(|finding| finding.rule).collect()
}

/// The findings for a bundle.
pub fn outcome(tree: Tree, options: &Options) -> Outcome {
    validate::validate(&load::read(tree, "demo"), options)
}

/// Applies changes and returns those that break other rules than listed, or for which a lint changes the result.
pub fn wrong(changes: &[Change], selector: &str) -> Vec<String> {
    let options = options(selector);
    // The committed bundle has no icon.
    let usual = ids(&outcome(bundle(), &options));
    let mut wrong = Vec::new();
    for (file, from, to, expected) in changes {
        let outcome = outcome(changed(file, from, to), &options);
        let mut broken = ids(&outcome);
        broken.retain(|id| !usual.contains(id));
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        if broken != expected {
            wrong.push(format!(
                "{file}: {from:?} -> {to:?}: {broken:?} instead of {expected:?}"
            ));
        }
        let lint = |id: &&str| rules::find(id).is_some_and(|rule| rule.origin == Origin::Lint);
        if broken.iter().all(lint) && !outcome.passed() {
            wrong.push(format!("{file}: {from:?} -> {to:?}: lints changed the verdict"));
        }
    }
    wrong
}
