//! Examples for each rule that yamllint 1.38.0 rejects and accepts with the pipeline's settings, from its actual
//! output.

use super::*;

fn found(text: &str) -> Vec<(&'static str, u32)> {
    lint(text, usize::MAX)
        .into_iter()
        .map(|problem| (problem.rule, problem.at.line))
        .collect()
}

#[test]
fn each_rule_finds_what_yamllint_finds() {
    let cases: &[(&str, &[(&str, u32)])] = &[
        ("a: 1\n", &[]),
        ("a: 1", &[("new-line-at-end-of-file", 1)]),
        ("a: 1\r\n", &[("new-lines", 1)]),
        ("a: 1 \nb: |\n  x \n", &[("trailing-spaces", 1), ("trailing-spaces", 3)]),
        ("a: 1\n\n\nb: 2\n", &[]),
        ("a: 1\n\n\n\nb: 2\n", &[("empty-lines", 4)]),
        ("\na: 1\n", &[("empty-lines", 1)]),
        ("a: 1\n\n", &[("empty-lines", 2)]),
        ("a: {b: 1}\n", &[]),
        ("a: { b: 1 }\n", &[("braces", 1), ("braces", 1)]),
        ("a: { }\nb: {}\n", &[("braces", 1)]),
        ("a: [ 1 ]\n", &[("brackets", 1), ("brackets", 1)]),
        ("a: [\n  1\n]\n", &[]),
        ("a : 1\n", &[("colons", 1)]),
        ("a:  1\n", &[("colons", 1)]),
        ("a: &x 1\n*x : 2\n", &[]),
        ("a: [1,2]\n", &[("commas", 1)]),
        ("a: [1 , 2]\n", &[("commas", 1)]),
        ("a: [1,  2]\n", &[("commas", 1)]),
        ("a: 'x : y , { z'  # : ,,\n", &[]),
        ("a:\n-  1\n", &[("hyphens", 2)]),
        ("a: 1\na: 2\n", &[("key-duplicates", 2)]),
        ("a: {<<: {x: 1}, <<: {y: 1}}\n", &[]),
        ("a: *x\n", &[("anchors", 1)]),
        ("a:\n  b:\n    c: 1\n", &[]),
        ("a:\n  b:\n     c: 1\n", &[("indentation", 3)]),
        ("a:\n    b:\n        c: 1\n", &[]),
        ("a:\n- b:\n  - c\n- d:\n    - e\n", &[]),
        ("a:\n- b:\n    - c\n- d:\n     - e\n", &[("indentation", 5)]),
        ("a:\n  b: 1\nc:\n   - d\n", &[("indentation", 4)]),
        ("a:\n  -\n    b: 1\n  -\n     c: 1\n", &[("indentation", 5)]),
        ("a:\n  'text'\nb:\n   'text'\n", &[("indentation", 4)]),
        ("- a: 1\n  b:\n    c: 1\n-   d: 1\n", &[("hyphens", 4)]),
        ("a: {b: 1,\n    c: 2}\n", &[]),
        ("a: [1,\n  2]\n", &[("indentation", 2)]),
        ("a: [\n  1,\n   2\n]\n", &[("indentation", 3)]),
        ("x:\n  y: 1\na: [\n  1,\n  2\n  ]\n", &[("indentation", 6)]),
        ("x:\n  y:\n    - a: [\n      1\n    ]\n", &[]),
        ("? a\n: b\n", &[]),
        ("a:\n- b\nc:\n  - d\n", &[]),
        ("  a: 1\n", &[("indentation", 1)]),
        ("a: b: c\n", &[("syntax", 1)]),
    ];
    for (text, wanted) in cases {
        assert_eq!(found(text), *wanted, "{text:?}");
    }
}

/// Problems counted the characters before them in their line, and events its spaces: the time grew with the square.
#[test]
fn one_long_line_is_read_about_once() {
    let many = 100_000;
    let flow = format!("a: [{}]\n", "é ,".repeat(many));
    let indented = format!("{}[{}]\n", " ".repeat(many), "a,".repeat(many));
    for text in [flow, indented] {
        let start = std::time::Instant::now();
        let problems = lint(&text, usize::MAX);
        assert!(problems.len() >= many, "{}", problems.len());
        let last = problems.last().map(|problem| (problem.at.line, problem.at.column));
        assert!(last > Some((1, u32::try_from(2 * many).unwrap())), "{last:?}");
        assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
        assert!(lint(&text, 5).len() <= 5);
    }
}
