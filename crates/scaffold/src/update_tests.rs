use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;

use super::*;

fn options() -> Init {
    Init {
        domain: "example.com".into(),
        name: Some("memcached-operator".into()),
        license: License::Apache2,
        namespaced: false,
        multigroup: false,
        source: Source::Registry,
    }
}

/// A project with two versions of a kind.
fn first() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    crate::init(folder.path(), &options()).unwrap();
    for version in ["v1alpha1", "v1"] {
        let api = crate::Api {
            group: "cache".into(),
            version: version.into(),
            kind: "Memcached".into(),
            plural: None,
            namespaced: true,
            resource: true,
            controller: None,
            image: None,
            external: crate::External::default(),
            force: false,
        };
        crate::create_api(folder.path(), &api).unwrap();
    }
    folder
}

/// Its files as an earlier release wrote them: `changes` are those of the templates since then, as path, then and now.
fn earlier(changes: &[(&str, &str, &str)]) -> (TempDir, Files) {
    let folder = first();
    let mut tree = Tree::at(folder.path());
    let mut file = ProjectFile::read(&tree).unwrap();
    let mut old = replay(&file, &options()).unwrap();
    for (path, then, now) in changes {
        let content = old.get_mut(Path::new(path)).unwrap();
        let text = String::from_utf8(content.clone()).unwrap();
        assert_eq!(text.matches(now).count(), 1, "{path}: {now}");
        *content = text.replace(now, then).into_bytes();
        tree.write(*path, content.clone());
        file.set_hash(path, Some(hash(content)));
    }
    tree.write(project_file::NAME, file.text().unwrap());
    tree.commit().unwrap();
    (folder, old)
}

/// Updates a project of that earlier release.
fn update_from(folder: &TempDir, old: &Files) -> Updated {
    let mut tree = Tree::at(folder.path());
    let mut file = ProjectFile::read(&tree).unwrap();
    let (new, mut updated) = (replay(&file, &options()).unwrap(), Updated::default());
    merge(&mut tree, &mut file, old, &new, &mut updated).unwrap();
    tree.write(project_file::NAME, file.text().unwrap());
    updated.report = tree.commit().unwrap();
    updated
}

fn read(folder: &TempDir, path: &str) -> String {
    fs::read_to_string(folder.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn edit(folder: &TempDir, path: &str, from: &str, to: &str) {
    let text = read(folder, path);
    assert_eq!(text.matches(from).count(), 1, "{path}: {from}");
    fs::write(folder.path().join(path), text.replace(from, to)).unwrap();
}

fn files(folder: &TempDir) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.path().to_owned()];
    while let Some(here) = open.pop() {
        for entry in fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => drop(found.insert(path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    found
}

#[test]
fn an_untouched_project_becomes_a_new_one() {
    let fresh = first();
    let (folder, old) = earlier(&[
        ("src/main.rs", "//! Begins.", "//! Starts the operator."),
        ("Makefile", "## What exists", "## Show this list"),
    ]);
    let updated = update_from(&folder, &old);
    assert_eq!(
        updated.report.changed,
        ["Makefile", "PROJECT", "src/main.rs"].map(PathBuf::from)
    );
    let relative = |folder: &TempDir| -> BTreeMap<PathBuf, Vec<u8>> {
        let strip = |path: PathBuf| path.strip_prefix(folder.path()).unwrap().to_owned();
        files(folder)
            .into_iter()
            .map(|(path, content)| (strip(path), content))
            .collect()
    };
    assert!(relative(&folder) == relative(&fresh));
    assert_eq!(update(folder.path(), false).unwrap(), Updated::default());
}

/// Edits where the templates did not change, in files that did and files that did not, one in a file that is no longer written, and
/// two on lines that the templates changed too.
#[test]
fn edits_survive() {
    let (folder, mut old) = earlier(&[
        ("Cargo.toml", "anyhow = \"0\"", "anyhow = \"1\""),
        (
            "src/packaging.rs",
            "/// How it is started.",
            "/// How the operator is started.",
        ),
        ("src/main.rs", "//! Begins.", "//! Starts the operator."),
        ("Makefile", "## What exists", "## Show this list"),
        ("README.md", "what is written", "what olmkit has written"),
    ]);
    for path in ["src/run.rs", "src/options.rs"] {
        old.insert(PathBuf::from(path), b"// Old.\n".to_vec());
        fs::write(folder.path().join(path), "// Old.\n").unwrap();
    }
    let edits = [
        ("Cargo.toml", "version = \"0.0.1\"", "version = \"0.3.0\""),
        ("Cargo.toml", "schemars = \"1\"", "schemars = \"1\"\nurl = \"2\""),
        (
            "src/packaging.rs",
            "        .arg(\"--leader-elect\")\n",
            "        .arg(\"--leader-elect\")\n        .arg(\"--log-level=debug\")\n",
        ),
        (
            "src/controller/memcached.rs",
            "/// The ConfigMap of",
            "/// Mine: the ConfigMap of",
        ),
        (
            "README.md",
            "A Kubernetes operator in Rust, made with olmkit.",
            "My operator.",
        ),
        ("src/run.rs", "// Old.", "// Mine."),
        // These two meet changes of the templates.
        ("src/main.rs", "//! Begins.", "//! Starts mine."),
        ("Makefile", "## What exists", "## Mine"),
    ];
    for (path, from, to) in edits {
        edit(&folder, path, from, to);
    }
    let updated = update_from(&folder, &old);
    let paths = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(PathBuf::from).collect() };
    assert_eq!(updated.conflicts, paths(&["Makefile", "src/main.rs"]));
    assert_eq!(updated.left, paths(&["src/run.rs"]));
    assert_eq!(updated.report.removed, paths(&["src/options.rs"]));
    for (path, _, to) in edits {
        let text = read(&folder, path);
        assert!(text.contains(to), "{path} lost {to}: {text}");
    }
    for (path, text) in [
        ("Cargo.toml", "anyhow = \"1\""),
        ("src/packaging.rs", "/// How the operator is started."),
        ("src/main.rs", "//! Starts the operator."),
        ("Makefile", "## Show this list"),
        ("README.md", "what olmkit has written"),
    ] {
        assert!(read(&folder, path).contains(text), "{path} lacks {text}");
    }
    for path in ["Makefile", "src/main.rs"] {
        let text = read(&folder, path);
        assert_eq!(text.matches("<<<<<<< ours\n").count(), 1, "{text}");
        assert_eq!(text.matches(">>>>>>> theirs\n").count(), 1, "{text}");
    }
    for path in ["Cargo.toml", "src/packaging.rs", "README.md"] {
        assert!(!read(&folder, path).contains("<<<<<<<"), "{path}");
    }
    syn::parse_file(&read(&folder, "src/packaging.rs")).unwrap();
    // An unresolved conflict does not stop a second update, which has nothing to do.
    let again = update(folder.path(), false).unwrap();
    assert!(again.report.changed.is_empty() && again.left.is_empty(), "{again:?}");
}

#[test]
fn a_dry_run_shows_what_an_update_writes() {
    let (folder, _) = earlier(&[("src/main.rs", "//! Begins.", "//! Starts the operator.")]);
    let before = files(&folder);
    let planned = update(folder.path(), true).unwrap();
    assert!(files(&folder) == before, "a dry run writes nothing");
    assert!(
        planned.diff.contains("--- a/src/main.rs\n+++ b/src/main.rs\n"),
        "{}",
        planned.diff
    );
    assert!(
        planned.diff.contains("-//! Begins.\n+//! Starts the operator.\n"),
        "{}",
        planned.diff
    );
    assert_eq!(update(folder.path(), false).unwrap(), planned);
}

#[test]
fn files_that_the_author_deleted_stay_deleted() {
    let (folder, mut old) = earlier(&[
        ("Makefile", "## What exists", "## Show this list"),
        ("Dockerfile", "AS builder", "AS build"),
    ]);
    old.insert(PathBuf::from("src/run.rs"), b"// Old.\n".to_vec());
    for path in ["Makefile", "Dockerfile"] {
        fs::remove_file(folder.path().join(path)).unwrap();
    }
    let updated = update_from(&folder, &old);
    assert_eq!(
        updated.deleted,
        [PathBuf::from("Dockerfile"), PathBuf::from("Makefile")]
    );
    for path in ["Makefile", "Dockerfile", "src/run.rs"] {
        assert!(!folder.path().join(path).exists(), "{path}");
    }
}

#[test]
fn a_file_of_the_author_in_a_new_place_is_kept_beside_the_new_one() {
    let (folder, mut old) = earlier(&[]);
    old.remove(Path::new("src/webhook/mod.rs"));
    let mut file = ProjectFile::read(&Tree::at(folder.path())).unwrap();
    file.set_hash("src/webhook/mod.rs", None);
    fs::write(folder.path().join(project_file::NAME), file.text().unwrap()).unwrap();
    fs::write(folder.path().join("src/webhook/mod.rs"), "// Mine.\n").unwrap();
    let updated = update_from(&folder, &old);
    assert_eq!(updated.conflicts, [PathBuf::from("src/webhook/mod.rs")]);
    let text = read(&folder, "src/webhook/mod.rs");
    assert!(text.contains("// Mine.\n") && text.contains("pub fn all"), "{text}");
}

/// A build between two releases has written other files, of which PROJECT has the hashes alone.
#[test]
fn files_that_are_no_longer_generated_go_unless_they_were_changed() {
    let folder = first();
    let mut tree = Tree::at(folder.path());
    let mut file = ProjectFile::read(&tree).unwrap();
    for path in ["src/conditions.rs", "src/permissions.rs"] {
        tree.write(path, "// Generated.\n");
        file.set_hash(path, Some(hash(b"// Generated.\n")));
    }
    tree.write(project_file::NAME, file.text().unwrap());
    tree.commit().unwrap();
    edit(&folder, "src/permissions.rs", "Generated", "Mine");
    let updated = update(folder.path(), false).unwrap();
    assert_eq!(updated.report.removed, [PathBuf::from("src/conditions.rs")]);
    assert_eq!(updated.left, [PathBuf::from("src/permissions.rs")]);
}

/// operator-sdk fails in a project with a layout that it does not know. Early projects had one.
#[test]
fn an_update_removes_the_layout() {
    let folder = first();
    edit(
        &folder,
        "PROJECT",
        "\nplugins:\n",
        "\nlayout:\n- rust.olmkit/v1\nplugins:\n",
    );
    let updated = update(folder.path(), false).unwrap();
    assert_eq!(updated.report.changed, [PathBuf::from("PROJECT")]);
    let project = read(&folder, "PROJECT");
    assert!(
        !project.contains("layout") && project.contains("plugins:\n  rust.olmkit/v1:\n"),
        "{project}"
    );
}

#[test]
fn a_failed_update_changes_no_file() {
    let (folder, _) = earlier(&[("src/main.rs", "//! Begins.", "//! Starts the operator.")]);
    let program = env!("CARGO_PKG_VERSION");
    let refused = |expected: &str| {
        let before = files(&folder);
        let error = update(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(files(&folder) == before, "something changed");
    };
    edit(
        &folder,
        "PROJECT",
        &format!("cliVersion: {program}"),
        "cliVersion: 99.0.0",
    );
    refused("olmkit 99.0.0 has written the project");
    edit(
        &folder,
        "PROJECT",
        "cliVersion: 99.0.0",
        &format!("cliVersion: {program}"),
    );
    edit(&folder, "Cargo.toml", "[package]", "[package");
    refused("Cargo.toml: ");
    fs::remove_file(folder.path().join("PROJECT")).unwrap();
    refused("contains no file PROJECT");
}

#[test]
fn marks_of_an_earlier_conflict_stop_an_update() {
    let (folder, old) = earlier(&[("src/main.rs", "//! Begins.", "//! Starts the operator.")]);
    edit(&folder, "src/main.rs", "//! Begins.", "<<<<<<< HEAD\n//! Begins.");
    let mut tree = Tree::at(folder.path());
    let mut file = ProjectFile::read(&tree).unwrap();
    let new = replay(&file, &options()).unwrap();
    let error = merge(&mut tree, &mut file, &old, &new, &mut Updated::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("src/main.rs:1: here begins a conflict of an earlier merge"),
        "{error}"
    );
}

#[test]
fn libraries_stay_where_they_are_from() {
    let program = env!("CARGO_PKG_VERSION");
    for case in [
        (
            "path = \"/x/crates/manager\"",
            Source::Path("/x".into()),
            Source::Path("/x".into()),
        ),
        ("version = \"0.0.9\"", Source::Version("0.0.8".into()), Source::Registry),
        (
            "git = \"https://example.com/o\", tag = \"v0.0.8\"",
            Source::Git {
                url: "https://example.com/o".into(),
                tag: "v0.0.8".into(),
            },
            Source::Git {
                url: "https://example.com/o".into(),
                tag: format!("v{program}"),
            },
        ),
        (
            "git = \"https://example.com/o\", tag = \"mine\"",
            Source::Git {
                url: "https://example.com/o".into(),
                tag: "mine".into(),
            },
            Source::Git {
                url: "https://example.com/o".into(),
                tag: "mine".into(),
            },
        ),
    ] {
        let (dependency, old, new) = case;
        let mut tree = Tree::at("nowhere");
        tree.write(
            "Cargo.toml",
            format!("[dependencies]\nkube-manager = {{ {dependency} }}\n"),
        );
        let text = ProjectFile::new("example.com", "memcached-operator", false, false)
            .text()
            .unwrap()
            .replace(&format!("cliVersion: {program}"), "cliVersion: 0.0.8");
        let file = ProjectFile::parse(text.as_bytes()).unwrap();
        let facts = Facts::new(&tree, &file).unwrap();
        assert_eq!((facts.old, facts.new), (old, new), "{dependency}");
    }
}
