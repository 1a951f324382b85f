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
    assert_eq!(digest(replay(&file, &options()).unwrap()), "7c62ed3d6d904a95");
}

/// A project of the second version with everything that was possible then.
fn second() -> (ProjectFile, Files) {
    let mut file = project(2);
    let image = crate::Image {
        image: "docker.io/library/nginx:1.29".into(),
        container_port: "80".into(),
        ..crate::Image::default()
    };
    let webhooks = |defaulting: bool, validation: bool, spokes: &[&str]| crate::project_file::Webhooks {
        defaulting,
        validation,
        conversion: !spokes.is_empty(),
        spokes: spokes.iter().map(|spoke| (*spoke).to_owned()).collect(),
    };
    let kind = |kind: &str, plural: &str, namespaced: bool| crate::Resource {
        kind: kind.into(),
        plural: plural.into(),
        namespaced,
        path: format!("src/api/v1/{plural}.rs").replace("s.rs", ".rs"),
        ..resource("v1", true)
    };
    let mut first = resource("v1alpha1", true);
    first.webhooks = webhooks(true, true, &["v1"]);
    file.set_resource(&first);
    file.set_resource(&resource("v1", false));
    file.set_resource(&crate::Resource {
        image: Some(image),
        ..kind("Web", "webs", true)
    });
    file.set_resource(&kind("Zone", "zones", false));
    file.set_resource(&crate::Resource {
        group: "apps".into(),
        api: false,
        path: "k8s_openapi::api::apps::v1".into(),
        foreign: Some(crate::Foreign {
            core: true,
            module: String::new(),
        }),
        ..kind("Deployment", "deployments", true)
    });
    let files = replay(&file, &options()).unwrap();
    (file, files)
}

fn digest(files: Files) -> String {
    let mut digest = Sha256::new();
    for (path, content) in files {
        digest.update(format!("{} {}\n", path.display(), hash(&content)));
    }
    let bytes = digest.finalize();
    bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// As for the first version.
#[test]
fn the_second_version_is_written_as_it_was() {
    assert_eq!(digest(second().1), "1be02679d1a40462");
}

#[test]
fn a_project_of_the_second_version_becomes_a_new_one() {
    let (file, files) = second();
    let folder = tempfile::tempdir().unwrap();
    let mut tree = Tree::at(folder.path());
    for (path, content) in files {
        tree.write(path, content);
    }
    tree.write("config/package.yaml", package());
    tree.write("config/icon.svg", include_str!("../templates/project/icon.svg.j2"));
    config::update(&mut tree, None, &file).unwrap();
    tree.write(project_file::NAME, file.text().unwrap());
    tree.commit().unwrap();
    let updated = update(folder.path(), false).unwrap();
    assert_eq!((updated.conflicts, updated.left), (Vec::new(), Vec::new()));
    assert!(!updated.report.render, "config/ is what it was");
    let mut now = file.clone();
    now.set_templates(templates::NEWEST);
    for (path, content) in replay(&now, &options()).unwrap() {
        let wanted = String::from_utf8(content).unwrap();
        assert_eq!(read(&folder, path.to_str().unwrap()), wanted, "{}", path.display());
    }
    assert!(!folder.path().join("src/run.rs").exists());
}

#[test]
fn an_untouched_project_becomes_a_new_one() {
    let folder = first();
    let updated = update(folder.path(), false).unwrap();
    let none = Vec::<PathBuf>::new();
    assert_eq!((&updated.conflicts, &updated.left), (&none, &none));
    let report = &updated.report;
    assert!(report.changed.len() > 5 && !report.render, "{report:?}");
    let removed = ["src/manager.rs", "src/options.rs", "src/run.rs"].map(PathBuf::from);
    assert_eq!(report.removed, removed);
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

/// Ten edits of the author: seven where the templates did not change, in files that did and files that did not, one in a file that
/// is no longer written, and two on lines that the templates changed too.
#[test]
fn ten_edits_survive() {
    let folder = first();
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
            "fn clean_up",
            "/// Mine.\n    fn clean_up",
        ),
        (
            "src/controller/memcached.rs",
            "(\"message\".to_owned(), object",
            "(\"greeting\".to_owned(), object",
        ),
        ("src/main.rs", "//! Starts the operator.", "//! Starts my operator."),
        (
            "README.md",
            "A Kubernetes operator in Rust, made with olmkit.",
            "My operator.",
        ),
        ("src/run.rs", "Duration::from_secs(6)", "Duration::from_secs(7)"),
        // These two meet changes of the templates.
        ("src/main.rs", "default_retry = false", "default_retry = true"),
        ("Makefile", "Run the operator image IMG in the cluster", "Deploy IMG"),
    ];
    for (path, from, to) in edits {
        edit(&folder, path, from, to);
    }
    let before = files(&folder);
    let planned = update(folder.path(), true).unwrap();
    assert!(files(&folder) == before, "a dry run writes nothing");
    for expected in [
        "--- a/Cargo.toml\n+++ b/Cargo.toml\n",
        "--- /dev/null\n+++ b/src/webhook/mod.rs\n",
        "--- a/src/options.rs\n+++ /dev/null\n",
    ] {
        assert!(planned.diff.contains(expected), "{expected} in {}", planned.diff);
    }

    let updated = update(folder.path(), false).unwrap();
    assert_eq!(updated, planned);
    let paths = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(PathBuf::from).collect() };
    assert_eq!(updated.conflicts, paths(&["Makefile", "src/main.rs"]));
    assert_eq!(updated.left, paths(&["src/run.rs"]));
    assert_eq!(updated.report.removed, paths(&["src/manager.rs", "src/options.rs"]));
    for (path, _, to) in edits {
        let text = read(&folder, path);
        assert!(text.contains(to), "{path} lost {to}: {text}");
    }
    for (path, text) in [
        ("Cargo.toml", "features = [\"flags\", \"log\", \"webhooks\"]"),
        ("src/lib.rs", "pub mod webhook;"),
        ("src/packaging.rs", "fn webhooks(all: &mut Vec<Webhook>)"),
        ("src/main.rs", "Manager::builder(NAME)"),
        ("src/controller/memcached.rs", ".owns::<ConfigMap>("),
        ("src/webhook/mod.rs", "pub fn all"),
        ("README.md", "`src/webhook/`"),
        ("Makefile", "webhooks need cert-manager there"),
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
    syn::parse_file(&read(&folder, "src/controller/memcached.rs")).unwrap();
    syn::parse_file(&read(&folder, "src/packaging.rs")).unwrap();
    // What is not resolved does not stop a second update, which has nothing to do.
    let again = update(folder.path(), false).unwrap();
    assert!(again.report.changed.is_empty() && again.left.is_empty(), "{again:?}");
}

#[test]
fn what_the_author_deleted_stays_deleted() {
    let folder = first();
    for path in ["Makefile", "Dockerfile", "src/run.rs"] {
        fs::remove_file(folder.path().join(path)).unwrap();
    }
    let updated = update(folder.path(), false).unwrap();
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
    edit(&folder, "src/main.rs", "//! Starts", "<<<<<<< HEAD\n//! Starts");
    let refused = |expected: &str| {
        let before = files(&folder);
        let error = update(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(files(&folder) == before, "something changed");
    };
    refused("src/main.rs:1: here begins a conflict of an earlier merge");
    edit(&folder, "src/main.rs", "<<<<<<< HEAD\n", "");
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
    ]
    .into_iter()
    .flat_map(|case| [(case.clone(), "olmkit-manager"), (case, "kube-manager")])
    {
        let ((dependency, old, new), name) = case;
        let mut tree = Tree::at("nowhere");
        tree.write("Cargo.toml", format!("[dependencies]\n{name} = {{ {dependency} }}\n"));
        let text = project(1)
            .text()
            .unwrap()
            .replace(&format!("cliVersion: {program}"), "cliVersion: 0.0.8");
        let file = ProjectFile::parse(text.as_bytes()).unwrap();
        let facts = Facts::of(&tree, &file).unwrap();
        assert_eq!((facts.old, facts.new), (old, new), "{name}: {dependency}");
    }
}
