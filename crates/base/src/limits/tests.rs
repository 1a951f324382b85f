use std::fs;
use std::path::Path;

use super::*;

#[test]
fn values_are_read_and_shown() {
    for (value, text) in [(1, "1"), (1 << 10, "1 KiB"), (256 << 20, "256 MiB"), (1000, "1,000")] {
        assert_eq!(shown(value, Unit::Bytes), text);
    }
    assert_eq!(shown(1_234_567, Unit::Count), "1,234,567");
    for text in [
        "catalog-file",
        "nosuch=1",
        "catalog-file=",
        "catalog-file=-1",
        "catalog-file=1TiB",
        "catalog-files=1MiB",
        "catalog-file=99999999999GiB",
        "yaml-nodes=1",
    ] {
        assert!(Chosen::parse([text]).is_err(), "{text}");
    }
}

#[test]
fn the_value_of_a_limit_does_not_change_after_its_first_use() {
    let chosen = |text: &str| Chosen::parse([text]).unwrap();
    // No other test of this crate uses these.
    assert_eq!(PICTURE_EDGES.get(), 100_000);
    assert_eq!(
        chosen("picture-edges=5").apply(),
        Err(InvalidLimit::InUse("picture-edges"))
    );
    assert_eq!(PICTURE_EDGES.get(), 100_000);
    let twice = Chosen::parse(["graph-text=1KiB", "graph-text=2KiB"]).unwrap();
    twice.apply().unwrap();
    assert_eq!(GRAPH_TEXT.get(), 2 << 10);
    chosen("graph-text=2048").apply().unwrap();
    assert!(chosen("graph-text=1KiB").apply().is_err());
}

/// Nothing below the readers reads a file without a limit.
#[test]
fn every_reader_has_a_limit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = [
        "base",
        "bundle",
        "catalog",
        "cluster",
        "diagnostics",
        "grants",
        "olmkit",
        "project",
        "scaffold",
        "scorecard",
        "submission",
        "v1",
    ];
    let sources = crates
        .iter()
        .flat_map(|name| walkdir::WalkDir::new(root.join(name).join("src")))
        .flatten();
    let mut found = Vec::new();
    for source in sources.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rs")) {
        let path = source.path().strip_prefix(&root).unwrap().to_owned();
        let text = fs::read_to_string(source.path()).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let reads = ["fs::read(", "fs::read_to_string(", ".read_to_end(", ".read_to_string("];
        let own = path.ends_with("limits/mod.rs")
            || path.starts_with("base/src/limits")
            || path.starts_with("base/src/files")
            || path.starts_with("base/src/process")
            || path.ends_with("bundle/src/load/tree.rs")
            // Streams that have their own limit.
            || path.ends_with("cluster/src/scorecard/gather.rs")
            || path.ends_with("scaffold/src/tree.rs");
        let is_test = path.to_string_lossy().contains("tests");
        if !own && !is_test && reads.iter().any(|read| code.contains(read)) {
            found.push(path);
        }
    }
    assert!(found.is_empty(), "read with limits::read_file: {found:?}");
}

#[test]
fn the_table_of_the_documentation_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/limits.md");
    let text = fs::read_to_string(&path).unwrap();
    let (head, present) = text.split_once("lib limits` -->\n").unwrap();
    let expected = format!("\n{}", table());
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(&path, format!("{head}lib limits` -->\n{expected}")).unwrap();
    } else {
        assert_eq!(
            present, expected,
            "run UPDATE_GENERATED=1 cargo test -p olmkit-base --lib limits"
        );
    }
}

#[test]
fn names_are_distinct() {
    let names: std::collections::BTreeSet<&str> = ALL.iter().map(|limit| limit.name).collect();
    assert_eq!(names.len(), ALL.len());
}
