//! Allowed dependencies between modules, and the dependencies of the released operator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

/// Modules of the library from the bottom up. A module may use those on lines above it, and those on its own line. The
/// dependencies of a crate are in its manifest, which the compiler enforces.
const OLMKIT: &[&[&str]] = &[
    &["process", "git"],
    &["diagnostics", "types", "crd"],
    &["admission"],
    &["bundle"],
    &["catalog"],
    &["olmv1"],
    &["policy"],
    &["validate"],
    &["rules", "scorecard"],
    &["fix"],
];

/// Modules of the ground that all crates share.
const BASE: &[&[&str]] = &[&["object"], &["limits"], &["files", "temporary"]];

/// Modules of the operator from the ground up.
const OPERATOR: &[&[&str]] = &[&["api"], &["operand"], &["status"], &["controller"], &["options"]];

/// Modules of the manager from the ground up.
const MANAGER: &[&[&str]] = &[
    &[
        "backoff",
        "explain",
        "metrics",
        "namespaces",
        "connection",
        "quantity",
        "compressed",
        "shutdown",
        "access",
        "lanes",
        "samples",
        "transport",
        "certificates",
        "reviews",
        "options",
    ],
    &[
        "listener",
        "listing",
        "failure",
        "finalizer",
        "conditions",
        "health",
        "rollout",
        "olm",
    ],
    &["drift", "queue", "readiness", "probes", "lease", "events", "log"],
    &["cache", "worker", "webhooks", "names"],
    &["follow", "packed", "apply"],
    // Each starts the other: the manager has controllers, and these use its watches.
    &["manager", "reconcile"],
];

#[test]
fn modules_of_olmkit_use_only_what_is_below_them() {
    check("crates/base/src", BASE);
    check("crates/olmkit/src", OLMKIT);
}

#[test]
fn modules_of_the_operator_use_only_what_is_below_them() {
    check("src", OPERATOR);
}

#[test]
fn modules_of_the_manager_use_only_what_is_below_them() {
    check("crates/manager/src", MANAGER);
}

/// Nothing that packages or serves catalogs is in the operator's image.
#[test]
fn the_shipped_operator_holds_no_packaging_code_and_no_grpc() {
    let crates = dependencies("memcached-operator");
    assert!(crates.contains("kube-manager") && crates.contains("kube"), "{crates:?}");
    let unwanted = [
        "olmkit",
        "kube-testbed",
        "tonic",
        "prost",
        "h2",
        "oci-client",
        "reqwest",
        "openssl",
        "aws-lc-rs",
    ];
    lacks("memcached-operator", &crates, &unwanted);
}

/// A Rust operator that renders its package compiles neither the rules nor CEL for it.
#[test]
fn rendering_manifests_needs_no_rules() {
    let unwanted = ["olmkit", "olmkit-cel", "rayon", "annotate-snippets", "toml"];
    lacks("olmkit-project", &dependencies("olmkit-project"), &unwanted);
}

/// A Rust operator that renders its package compiles no network code for it, and a program that validates bundles needs
/// no runtime.
#[test]
fn the_library_has_no_network_and_no_runtime() {
    let libraries = [
        "olmkit",
        "olmkit-base",
        "olmkit-project",
        "olmkit-yaml",
        "olmkit-cel",
        "olmkit-scorecard",
        "olmkit-submission",
    ];
    for library in libraries {
        let unwanted = [
            "tokio",
            "hyper",
            "reqwest",
            "tonic",
            "rustls",
            "kube",
            "kube-client",
            "clap",
        ];
        lacks(library, &dependencies(library), &unwanted);
    }
}

/// The helper of pods is pulled on every node: images and the catalog server, without rules and flows.
#[test]
fn images_and_server_need_no_cluster() {
    for library in ["olmkit-oci", "olmkit-serve"] {
        lacks(
            library,
            &dependencies(library),
            &["kube-client", "olmkit-cluster", "clap"],
        );
    }
}

#[track_caller]
fn lacks(package: &str, crates: &BTreeSet<String>, unwanted: &[&str]) {
    for name in unwanted {
        assert!(
            !crates.contains(*name),
            "{package} depends on {name}: see `cargo tree -p {package} -i {name}`"
        );
    }
}

/// Every crate that a package is built from.
fn dependencies(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", package, "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}

/// Checks each `crate::module` in the files below `source`.
fn check(source: &str, layers: &[&[&str]]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let height: BTreeMap<&str, usize> = layers
        .iter()
        .enumerate()
        .flat_map(|(height, modules)| modules.iter().map(move |module| (*module, height)))
        .collect();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for file in files(&root) {
        let relative = file.strip_prefix(&root).unwrap();
        let module = relative
            .iter()
            .next()
            .unwrap()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs")
            .trim_end_matches("_tests")
            .to_owned();
        // The roots may use everything; other programs are users of the library.
        if ["lib", "main", "bin"].contains(&module.as_str()) {
            continue;
        }
        let Some(own) = height.get(module.as_str()) else {
            panic!(
                "{} is in a module without a place in the layers; give it one here",
                relative.display()
            );
        };
        seen.insert(module.clone());
        let text = std::fs::read_to_string(&file).unwrap();
        for (line, used) in uses(&text) {
            let Some(theirs) = height.get(used.as_str()) else {
                continue;
            };
            if theirs > own {
                wrong.push(format!(
                    "{}:{line}: {module} uses {used}, which is above it",
                    file.display()
                ));
            }
        }
    }
    assert!(!seen.is_empty(), "no module found below {}", root.display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first segments after `crate::` in `text`, with their lines; also within `use crate::{a::…, b::…}`. Tests are not
/// restricted, so everything after `#[cfg(test)]` at the start of a line is ignored.
fn uses(text: &str) -> Vec<(usize, String)> {
    let end = text.find("\n#[cfg(test)]").unwrap_or(text.len());
    let text = &text[..end];
    let mut found = Vec::new();
    for (position, _) in text.match_indices("crate::") {
        let line_start = text[..position].rfind('\n').map_or(0, |at| at + 1);
        let before = text[line_start..position].trim_start();
        // Comments do not use modules; nor do names that end in "crate".
        if before.starts_with("//") || before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let line = text[..position].matches('\n').count() + 1;
        let rest = &text[position + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.push((line, identifier(rest))),
            Some(group) => found.extend(members(group).into_iter().map(|name| (line, name))),
        }
    }
    found
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first segments of the members of a use group whose `{` has been read.
fn members(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut found) = (1, 0, Vec::new());
    for (position, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            found.push(identifier(group[start..position].trim_start()));
            start = position + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// `docs/contributing/evidence/security.md` names a test for each promise: `file.rs`: `test`, `test`; `file.rs`: `test`.
#[test]
fn the_tests_that_the_evidence_page_names_exist() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/contributing/evidence/security.md"))
            .unwrap();
    let (mut source, mut named) = (String::new(), 0);
    for word in page.split('`').skip(1).step_by(2) {
        if word.ends_with(".rs") {
            source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(word))
                .unwrap_or_else(|error| panic!("docs/contributing/evidence/security.md names {word}: {error}"));
        } else if word.contains('_') {
            named += 1;
            assert!(
                source.contains(&format!("fn {word}(")),
                "docs/contributing/evidence/security.md names {word}"
            );
        }
    }
    assert!(named > 20, "{named} tests");
}

#[test]
fn uses_are_found_in_every_form() {
    let text = "use crate::yaml::Node;\nuse crate::{\n    bundle::{self, Bundle},\n    image,\n};\n// crate::cli is prose\n\
                fn f() -> crate::rbac::Grant {}\n#[cfg(test)]\nmod tests { use crate::cli; }\n";
    let found: Vec<(usize, String)> = uses(text);
    let expected = [(1, "yaml"), (2, "bundle"), (2, "image"), (7, "rbac")];
    assert_eq!(found, expected.map(|(line, name)| (line, name.to_owned())));
}
