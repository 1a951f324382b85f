use std::collections::BTreeMap;
use std::fs;

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::*;

fn project(templates: u32) -> ProjectFile {
    let mut file = ProjectFile::new("example.com", "memcached-operator", false, false);
    file.set_templates(templates);
    file
}

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

fn resource(version: &str, controller: bool) -> crate::Resource {
    crate::Resource {
        group: "cache.example.com".into(),
        version: version.into(),
        kind: "Memcached".into(),
        plural: "memcacheds".into(),
        namespaced: true,
        api: true,
        controller,
        path: format!("src/api/{version}/memcached.rs"),
        ..crate::Resource::default()
    }
}

/// A project of the first version of the templates, as the program of that time wrote it: PROJECT has no hashes.
fn first() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut file = project(1);
    file.set_resource(&resource("v1alpha1", true));
    file.set_resource(&resource("v1", false));
    let mut tree = Tree::at(folder.path());
    for (path, content) in replay(&file, &options()).unwrap() {
        tree.write(path, content);
    }
    tree.write("config/package.yaml", package());
    tree.write("config/icon.svg", include_str!("../templates/project/icon.svg.j2"));
    config::update(&mut tree, None, &file).unwrap();
    let text = file.text().unwrap();
    let text = text.replace("  rust.olmkit/v1:\n    templates: 1\n", "  rust.olmkit/v1: {}\n");
    assert!(text.contains("{}"), "{text}");
    tree.write(project_file::NAME, text);
    tree.commit().unwrap();
    folder
}

fn package() -> String {
    let folder = tempfile::tempdir().unwrap();
    crate::init(folder.path(), &options()).unwrap();
    fs::read_to_string(folder.path().join("config/package.yaml")).unwrap()
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

/// The first version was never released with hashes, so what it wrote must be known exactly: the digest is that of a project
/// which the program of that time wrote.
#[test]
fn the_first_version_is_written_as_it_was() {
    let mut file = project(1);
    file.set_resource(&resource("v1alpha1", true));
    file.set_resource(&resource("v1", false));
    let mut digest = Sha256::new();
    for (path, content) in replay(&file, &options()).unwrap() {
        digest.update(format!("{} {}\n", path.display(), hash(&content)));
    }
    let digest: String = digest
        .finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(digest, "7c62ed3d6d904a95");
}

#[test]
fn an_untouched_project_becomes_a_new_one() {
    let folder = first();
    let updated = update(folder.path(), false).unwrap();
    assert_eq!(updated.conflicts, Vec::<PathBuf>::new());
    assert!(
        updated.report.changed.len() > 5 && !updated.report.render,
        "{:?}",
        updated.report
    );
    let fresh = tempfile::tempdir().unwrap();
    crate::init(fresh.path(), &options()).unwrap();
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
        crate::create_api(fresh.path(), &api).unwrap();
    }
    let relative = |folder: &TempDir| -> BTreeMap<PathBuf, String> {
        files(folder)
            .into_iter()
            .map(|(path, content)| {
                let path = path.strip_prefix(folder.path()).unwrap().to_owned();
                (path, String::from_utf8(content).unwrap())
            })
            .collect()
    };
    let (now, wanted) = (relative(&folder), relative(&fresh));
    assert_eq!(now.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (path, text) in &wanted {
        assert_eq!(&now[path], text, "{}", path.display());
    }
    let again = update(folder.path(), false).unwrap();
    assert_eq!(again, Updated::default());
}

/// Ten edits of the author: eight where the templates did not change, in files that did and files that did not, and two on
/// lines that they changed too.
#[test]
fn ten_edits_survive() {
    let folder = first();
    let edits = [
        ("Cargo.toml", "version = \"0.0.1\"", "version = \"0.3.0\""),
        ("Cargo.toml", "serde_json = \"1\"", "serde_json = \"1\"\nurl = \"2\""),
        ("src/run.rs", "Duration::from_secs(6)", "Duration::from_secs(7)"),
        ("src/options.rs", "default_value_t = 2", "default_value_t = 4"),
        (
            "src/packaging.rs",
            "        .arg(\"--leader-elect\")\n",
            "        .arg(\"--leader-elect\")\n        .arg(\"--log-level=debug\")\n",
        ),
        (
            "src/controller/memcached.rs",
            "fn clean_up",
            "/// Mine.\n    fn clean_up",
        ),
        ("src/main.rs", "//! Starts the operator.", "//! Starts my operator."),
        (
            "README.md",
            "A Kubernetes operator in Rust, made with olmkit.",
            "My operator.",
        ),
        // These two meet changes of the templates.
        (
            "src/options.rs",
            "over plain HTTP; 0 disables",
            "to everybody; 0 disables",
        ),
        ("Makefile", "Run the operator image IMG in the cluster", "Deploy IMG"),
    ];
    for (path, from, to) in edits {
        edit(&folder, path, from, to);
    }
    let before = files(&folder);
    let planned = update(folder.path(), true).unwrap();
    assert!(files(&folder) == before, "a dry run writes nothing");
    assert!(
        planned.diff.contains("--- a/Cargo.toml\n+++ b/Cargo.toml\n"),
        "{}",
        planned.diff
    );
    assert!(
        planned.diff.contains("--- /dev/null\n+++ b/src/webhook/mod.rs\n"),
        "{}",
        planned.diff
    );

    let updated = update(folder.path(), false).unwrap();
    assert_eq!(updated, planned);
    let expected: Vec<PathBuf> = ["Makefile", "src/options.rs"].map(PathBuf::from).into();
    assert_eq!(updated.conflicts, expected);
    for (path, _, to) in edits {
        let text = read(&folder, path);
        assert!(text.contains(to), "{path} lost {to}: {text}");
    }
    for (path, text) in [
        ("Cargo.toml", "features = [\"webhooks\"]"),
        ("src/lib.rs", "pub mod webhook;"),
        ("src/options.rs", "pub metrics_secure: bool"),
        ("src/packaging.rs", "fn webhooks(all: &mut Vec<Webhook>)"),
        ("src/run.rs", "fn webhook_certificates"),
        ("src/webhook/mod.rs", "pub fn all"),
        ("README.md", "`src/webhook/`"),
        ("Makefile", "webhooks need cert-manager there"),
    ] {
        assert!(read(&folder, path).contains(text), "{path} lacks {text}");
    }
    for path in ["Makefile", "src/options.rs"] {
        let text = read(&folder, path);
        assert_eq!(text.matches("<<<<<<< ours\n").count(), 1, "{text}");
        assert_eq!(text.matches(">>>>>>> theirs\n").count(), 1, "{text}");
    }
    for path in [
        "Cargo.toml",
        "src/run.rs",
        "src/packaging.rs",
        "src/main.rs",
        "README.md",
    ] {
        assert!(!read(&folder, path).contains("<<<<<<<"), "{path}");
    }
    syn::parse_file(&read(&folder, "src/run.rs")).unwrap();
    syn::parse_file(&read(&folder, "src/packaging.rs")).unwrap();
    // What is not resolved does not stop a second update, which has nothing to do.
    assert!(update(folder.path(), false).unwrap().report.changed.is_empty());
}

#[test]
fn what_the_author_deleted_stays_deleted() {
    let folder = first();
    fs::remove_file(folder.path().join("src/run.rs")).unwrap();
    fs::remove_file(folder.path().join("Dockerfile")).unwrap();
    let updated = update(folder.path(), false).unwrap();
    assert_eq!(updated.deleted, [PathBuf::from("src/run.rs")]);
    assert!(!folder.path().join("src/run.rs").exists() && !folder.path().join("Dockerfile").exists());
}

#[test]
fn a_file_of_the_author_in_a_new_place_is_kept_beside_the_new_one() {
    let folder = first();
    fs::create_dir(folder.path().join("src/webhook")).unwrap();
    fs::write(folder.path().join("src/webhook/mod.rs"), "// Mine.\n").unwrap();
    let updated = update(folder.path(), false).unwrap();
    assert_eq!(updated.conflicts, [PathBuf::from("src/webhook/mod.rs")]);
    let text = read(&folder, "src/webhook/mod.rs");
    assert!(text.contains("// Mine.\n") && text.contains("pub fn all"), "{text}");
}

#[test]
fn what_cannot_be_updated_is_refused_and_stays_as_it_is() {
    let folder = first();
    edit(&folder, "src/run.rs", "//! Runs", "<<<<<<< HEAD\n//! Runs");
    let refused = |expected: &str| {
        let before = files(&folder);
        let error = update(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(files(&folder) == before, "something changed");
    };
    refused("src/run.rs:1: here begins a conflict of an earlier merge");
    edit(&folder, "src/run.rs", "<<<<<<< HEAD\n", "");
    edit(
        &folder,
        "PROJECT",
        "  rust.olmkit/v1: {}\n",
        "  rust.olmkit/v1: {templates: 99}\n",
    );
    refused("version 99 of the templates");
    edit(&folder, "PROJECT", "{templates: 99}", "{}");
    edit(&folder, "Cargo.toml", "[package]", "[package");
    refused("Cargo.toml: ");
    fs::remove_file(folder.path().join("PROJECT")).unwrap();
    refused("holds no file PROJECT");
}

#[test]
fn libraries_stay_where_they_are_from() {
    let program = env!("CARGO_PKG_VERSION");
    for (dependency, old, new) in [
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
        let mut tree = Tree::at("nowhere");
        tree.write(
            "Cargo.toml",
            format!("[dependencies]\nolmkit-manager = {{ {dependency} }}\n"),
        );
        let text = project(1)
            .text()
            .unwrap()
            .replace(&format!("cliVersion: {program}"), "cliVersion: 0.0.8");
        let file = ProjectFile::parse(text.as_bytes()).unwrap();
        let facts = Facts::of(&tree, &file).unwrap();
        assert_eq!((facts.old, facts.new), (old, new), "{dependency}");
    }
}
