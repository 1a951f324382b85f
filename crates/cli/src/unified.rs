//! Unified diffs of fixed files.

use std::fmt::Write as _;

use olmkit::object::UntrustedText;
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, TextDiff, group_diff_ops};

/// Lines around a change.
const CONTEXT: usize = 3;

/// If the changed lines before and after, multiplied, are more than this, a diff is not the smallest one: the time for
/// that one would grow with the square of the changes.
const MOST_COMPARISONS: usize = 4_000_000;

/// Lines that are searched for the next equal one in a large diff.
const WINDOW: usize = 8;

/// The changes of a file.
pub fn unified(path: &str, before: &str, after: &str) -> String {
    // The name of a file may contain line ends.
    let path = UntrustedText::new(path).to_string();
    let (old, new) = (lines(before), lines(after));
    if small(&old, &new) {
        let diff = TextDiff::from_lines(before, after);
        return diff.unified_diff().header(&path, &path).to_string();
    }
    let mut out = format!("--- {path}\n+++ {path}\n");
    for hunk in group_diff_ops(operations(&old, &new), CONTEXT) {
        let _ = writeln!(out, "{}", UnifiedHunkHeader::new(&hunk));
        for operation in &hunk {
            let (_, removed, added) = operation.as_tag_tuple();
            if matches!(operation, DiffOp::Equal { .. }) {
                print(' ', old.get(removed), &mut out);
            } else {
                print('-', old.get(removed), &mut out);
                print('+', new.get(added), &mut out);
            }
        }
    }
    out
}

fn print(sign: char, lines: Option<&[&str]>, out: &mut String) {
    for line in lines.unwrap_or_default() {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns true if the smallest diff takes little time.
fn small(old: &[&str], new: &[&str]) -> bool {
    let same = |pairs: usize, at: &dyn Fn(usize) -> bool| (0..pairs).take_while(|pair| at(*pair)).count();
    let most = old.len().min(new.len());
    let first = same(most, &|at| old.get(at) == new.get(at));
    let last = same(most - first, &|at| old.iter().nth_back(at) == new.iter().nth_back(at));
    let changed = |all: &[&str]| all.len() - first - last;
    changed(old).saturating_mul(changed(new)) <= MOST_COMPARISONS
}

/// A diff in linear time: after a difference, both sides continue at the nearest equal lines. Fixes change few lines at
/// one place.
fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let mut operations: Vec<DiffOp> = Vec::new();
    let (mut old_index, mut new_index) = (0, 0);
    while old_index < old.len() || new_index < new.len() {
        let is_equal = |removed: usize, added: usize| {
            let line = old.get(old_index + removed);
            line.is_some() && line == new.get(new_index + added)
        };
        let len = (0..).take_while(|length| is_equal(*length, *length)).count();
        if len > 0 {
            operations.push(DiffOp::Equal {
                old_index,
                new_index,
                len,
            });
            (old_index, new_index) = (old_index + len, new_index + len);
            continue;
        }
        let distances = 1..=2 * WINDOW;
        let nearest = distances
            .flat_map(|sum| (0..=sum).map(move |removed| (removed, sum - removed)))
            .filter(|(removed, added)| *removed <= WINDOW && *added <= WINDOW)
            .find(|(removed, added)| is_equal(*removed, *added));
        let (old_len, new_len) = nearest.unwrap_or((1, 1));
        let old_len = old_len.min(old.len() - old_index);
        let new_len = new_len.min(new.len() - new_index);
        match operations.last_mut() {
            Some(DiffOp::Replace {
                old_len: removed,
                new_len: added,
                ..
            }) => (*removed, *added) = (*removed + old_len, *added + new_len),
            _ => operations.push(DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            }),
        }
        (old_index, new_index) = (old_index + old_len, new_index + new_len);
    }
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that the operations make of another one.
    fn applied(old: &[&str], new: &[&str]) -> String {
        let mut made = String::new();
        let mut at = 0;
        for operation in operations(old, new) {
            let (_, removed, added) = operation.as_tag_tuple();
            assert_eq!(removed.start, at, "each line once");
            at = removed.end;
            if matches!(operation, DiffOp::Equal { .. }) {
                assert_eq!(old[removed.clone()], new[added]);
                made.extend(old[removed].iter().copied());
            } else {
                made.extend(new[added].iter().copied());
            }
        }
        assert_eq!(at, old.len());
        made
    }

    #[test]
    fn a_large_diff_leads_to_the_new_text() {
        let numbered = |from: usize, to: usize| (from..to).map(|line| format!("{line}\n")).collect::<String>();
        let many = numbered(0, 9_000);
        let spaced = many.replace('\n', " \n");
        let shifted = numbered(0, 100) + "new\n" + &numbered(103, 5_000) + &numbered(5_020, 9_000) + "end";
        for (old, new) in [
            (&many, &spaced),
            (&many, &shifted),
            (&shifted, &many),
            (&spaced, &shifted),
        ] {
            assert_eq!(applied(&lines(old), &lines(new)), **new);
            let text = unified("a", old, new);
            assert!(text.starts_with("--- a\n+++ a\n@@ -"), "{text:.100}");
        }
        for (old, new) in [("", "a\n"), ("a\n", ""), ("a", "a\n"), ("a\nb\nc\n", "b\nx\nc\n")] {
            assert_eq!(applied(&lines(old), &lines(new)), new);
        }
        // All lines are removed before the first one is added, as in the smallest diff.
        let text = unified("a", &spaced, &many);
        assert!(
            text.contains("@@ -1,9000 +1,9000 @@\n-0 \n-1 \n") && text.contains("-8999 \n+0\n+1\n"),
            "{text:.100}"
        );
    }

    #[test]
    fn both_kinds_of_diffs_agree_on_changed_lines() {
        let old: String = (0..2_000)
            .map(|line| format!("{line}{}\n", if line % 5 == 0 { " " } else { "" }))
            .collect();
        let new = old.replace(" \n", "\n");
        let exact = TextDiff::from_lines(old.as_str(), new.as_str());
        assert_eq!(operations(&lines(&old), &lines(&new)), exact.ops());
    }

    #[test]
    fn a_file_name_begins_no_line() {
        let text = unified("a\n::error::forged", "a\n", "b\n");
        assert!(
            text.starts_with("--- a\\n::error::forged\n+++ a\\n::error::forged\n"),
            "{text}"
        );
    }
}
