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
    &["types", "crd"],
    &["admission"],
    &["policy"],
    &["validate"],
    &["rules", "scorecard"],
    &["fix"],
];

/// Modules of the ground that all crates share.
const BASE: &[&[&str]] = &[&["object"], &["limits"], &["files", "temporary", "process"], &["git"]];

/// Modules of the operator from the ground up.
const OPERATOR: &[&[&str]] = &[
    &["api"],
    &["operand"],
    &["observed"],
    &["status"],
    &["resize"],
    &["controller"],
    &["options"],
];

/// Modules of the manager from the ground up.
const MANAGER: &[&[&str]] = &[
    &[
        "backoff",
        "explain",
        "tenure",
        "exposition",
        "cause",
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
        "scan",
        "failure",
        "finalizer",
        "conditions",
        "health",
        "rollout",
        "olm",
    ],
    &["drift", "queue", "readiness", "probes", "lease", "events", "log"],
    &["cache", "worker", "webhooks", "names"],
    &["follow"],
    &["apply"],
    // Each starts the other: the manager has controllers, and these use its watches.
    &["manager", "reconcile"],
];

/// Directories of the cluster crate from the ground up. Unlike in the lists above, those on one line do not use each other.
const CLUSTER: &[&[&str]] = &[
    &["base"],
    &["kube"],
    &["bundle", "observe", "rights"],
    &["v0", "v1", "migrate", "scorecard"],
    &["olm", "diagnose"],
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

#[test]
fn directories_of_the_cluster_crate_use_only_what_is_below_them() {
    let height = |module: &str| {
        CLUSTER
            .iter()
            .position(|line| line.contains(&module))
            .unwrap_or_else(|| panic!("{module} has no place in the layers of the cluster crate; give it one here"))
    };
    let graph = imports(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("crates/cluster/src")
            .as_path(),
    );
    let mut wrong = Vec::new();
    for (module, used) in &graph {
        let Some((own, _)) = module.split_first() else {
            continue;
        };
        for other in used {
            let allowed = other
                .first()
                .is_some_and(|other| other == own || height(other) < height(own));
            if !allowed {
                wrong.push(format!("{} uses {}, which is not below it", name(module), name(other)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Modules import from their siblings, and not from the `mod.rs` above them, which imports them.
#[test]
fn imports_of_the_cluster_crate_have_no_cycle() {
    let graph = imports(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("crates/cluster/src")
            .as_path(),
    );
    let count: usize = graph.values().map(BTreeSet::len).sum();
    println!("crates/cluster: {} files, {count} imports between them", graph.len());
    assert!(graph.len() > 50 && count > graph.len(), "{graph:?}");
    let cycle: Vec<String> = cyclic(&graph).iter().map(name).collect();
    assert!(cycle.is_empty(), "import cycles between {}", cycle.join(", "));
}

/// A file may import from the `mod.rs` files above it, as all files import from the root of the crate. All other imports have one
/// direction.
#[test]
fn files_of_a_crate_do_not_import_each_other() {
    // A rule of a kind of object continues the walk over the values below it.
    const RECURSIVE: [&[&str]; 2] = [&["admission", "rules"], &["admission", "walk"]];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    let mut count = 0;
    for source in sources(root) {
        let mut graph = imports(&source);
        for (module, used) in &mut graph {
            used.retain(|other| !module.starts_with(other) && !other.starts_with(module));
        }
        count += graph.len();
        let cycle = cyclic(&graph);
        let names = cycle.iter().filter(|module| {
            let is_known = RECURSIVE.iter().any(|known| module.iter().take(2).eq(known.iter()));
            !is_known
        });
        let names: Vec<String> = names.map(name).collect();
        if !names.is_empty() {
            wrong.push(format!("{}: {}", source.display(), names.join(", ")));
        }
    }
    assert!(count > 500, "{count} files");
    assert!(wrong.is_empty(), "files that import each other:\n{}", wrong.join("\n"));
}

/// The source directories: this package, all crates, and the programs for development.
fn sources(root: &Path) -> Vec<PathBuf> {
    let crates = std::fs::read_dir(root.join("crates")).unwrap();
    let mut found: Vec<PathBuf> = crates.map(|entry| entry.unwrap().path().join("src")).collect();
    found.extend(["src", "xtask/src", "dev/node/src"].map(|folder| root.join(folder)));
    found.sort();
    found
}

/// One style for all crates: CONTRIBUTING.md describes it.
#[test]
fn files_follow_one_style() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = Command::new("git")
        .args(["ls-files", "*.rs"])
        .current_dir(root)
        .output()
        .unwrap();
    if !listed.status.success() {
        println!("skipped: this is no git repository");
        return;
    }
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut wrong = Vec::new();
    for file in listed.lines().filter(|file| root.join(file).is_file()) {
        let path = root.join(file);
        if path.with_extension("").is_dir() {
            wrong.push(format!(
                "{file}: a module with submodules is a mod.rs in their directory"
            ));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let twice = ["super", "super"].join("::");
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.contains(&twice)) {
            wrong.push(format!(
                "{file}:{}: begin the path with crate: {}",
                number + 1,
                line.trim()
            ));
        }
        let tests = text.find("\n#[cfg(test)]\nmod tests {\n").map(|start| &text[start..]);
        if tests.is_some_and(|tests| tests.find("\n}\n").is_some_and(|end| end + 3 < tests.len())) {
            wrong.push(format!("{file}: unit tests are at the end of the file"));
        }
    }
    assert!(listed.lines().count() > 500, "{listed}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Manager, renderer and operators share the type of a permission.
#[test]
fn one_type_describes_permissions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = sources(root);
    folders.push(root.join("examples"));
    let is_definition = |line: &&str| {
        let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
        let is_type = words
            .next()
            .is_some_and(|word| ["struct", "enum", "type"].contains(&word));
        is_type
            && words
                .next()
                .is_some_and(|word| word.split(['<', ';', '(']).next() == Some("Grant"))
    };
    let mut found = Vec::new();
    for file in folders.iter().flat_map(|folder| files(folder)) {
        let text = std::fs::read_to_string(&file).unwrap();
        let count = text.lines().filter(is_definition).count();
        found.extend(std::iter::repeat_n(file.strip_prefix(root).unwrap().to_owned(), count));
    }
    assert_eq!(found, [Path::new("crates/grants/src/lib.rs")]);
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
        // The roots may use everything. Other programs are users of the library.
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

/// The path of a module below its crate. The crate's root is empty.
type Module = Vec<String>;

fn name(module: &Module) -> String {
    match module.as_slice() {
        [] => "lib.rs".to_owned(),
        path => path.join("::"),
    }
}

/// The modules that each file below `root` imports, except in tests. Each file is one module.
fn imports(root: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut texts = BTreeMap::new();
    for file in files(root) {
        let relative = file.strip_prefix(root).unwrap().with_extension("");
        let mut module: Module = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if ["mod", "lib"].contains(&module.last().unwrap().as_str()) {
            module.pop();
        }
        texts.insert(module, code(&std::fs::read_to_string(&file).unwrap()));
    }
    let used = |module: &Module, text: &str| {
        paths(text)
            .iter()
            .filter_map(|path| target(module, path, |module| texts.contains_key(module)))
            .filter(|other| other != module)
            .collect()
    };
    texts
        .iter()
        // Files of tests that another file includes.
        .filter(|(module, _)| !module.last().is_some_and(|name| name.ends_with("_tests")))
        .map(|(module, text)| (module.clone(), used(module, text)))
        .collect()
}

/// The module that a path in `module` leads to.
fn target(module: &Module, path: &[String], exists: impl Fn(&Module) -> bool) -> Option<Module> {
    let mut found: Module = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "super" | "self" => module.clone(),
        child => {
            let child: Module = module.iter().cloned().chain([child.to_owned()]).collect();
            exists(&child).then(|| module.clone())?
        }
    };
    for segment in path {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => drop(found.pop()),
            _ => {
                found.push(segment.clone());
                if !exists(&found) {
                    found.pop();
                    break;
                }
            }
        }
    }
    Some(found)
}

/// A file without strings, comments and tests.
fn code(text: &str) -> String {
    let text = &text[..text.find("\n#[cfg(test)]").unwrap_or(text.len())];
    let (mut found, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => string_length(rest),
            '\'' if rest.starts_with("'\\") => rest[3..].find('\'').map_or(rest.len(), |end| end + 4),
            '\'' if rest.chars().nth(2) == Some('\'') => rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at),
            _ => {
                found.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    found
}

/// The length of the string literal at the start of `text`.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (position, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return position + 1,
            _ => {}
        }
    }
    text.len()
}

/// The paths with more than one segment in code, and all paths of `use` declarations.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(|c: char| c.is_alphanumeric() || c == '_') {
        rest = &rest[start..];
        let word = identifier(rest);
        if word == "use" && rest[3..].starts_with(' ') {
            let end = rest.find(';').unwrap_or(rest.len());
            expand(&rest[4..end], &mut Vec::new(), &mut found);
            rest = &rest[end..];
            continue;
        }
        let mut path = vec![word];
        rest = &rest[path[0].len()..];
        while let Some(next) = rest.strip_prefix("::").filter(|next| !identifier(next).is_empty()) {
            path.push(identifier(next));
            rest = &next[identifier(next).len()..];
        }
        if path.len() > 1 {
            found.push(path);
        }
    }
    found
}

/// Adds the paths of a use tree below `prefix`.
fn expand(tree: &str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let length = prefix.len();
    let (path, group) = tree
        .split_once('{')
        .map_or((tree, None), |(path, group)| (path, Some(group)));
    prefix.extend(path.split("::").map(|segment| identifier(segment.trim())));
    prefix.retain(|segment| !segment.is_empty());
    match group {
        None => found.push(prefix.clone()),
        Some(group) => {
            let (mut depth, mut start) = (1, 0);
            for (position, c) in group.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => {}
                }
                if depth == 0 || (depth == 1 && c == ',') {
                    if !group[start..position].trim().is_empty() {
                        expand(&group[start..position], prefix, found);
                    }
                    start = position + 1;
                }
                if depth == 0 {
                    break;
                }
            }
        }
    }
    prefix.truncate(length);
}

/// The modules that are left after repeatedly removing those that import none of the others, or that none imports.
fn cyclic(graph: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let mut left: BTreeSet<Module> = graph.keys().cloned().collect();
    loop {
        let imports = |module: &Module| graph[module].iter().any(|other| left.contains(other));
        let is_imported = |module: &Module| left.iter().any(|other| graph[other].contains(module));
        let next: BTreeSet<Module> = left
            .iter()
            .filter(|module| imports(module) && is_imported(module))
            .cloned()
            .collect();
        if next.len() == left.len() {
            return left;
        }
        left = next;
    }
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

/// Files of the catalog crate that read the `skips` of a channel entry. `resolver` alone follows upgrade edges, `graph`
/// finds heads, and `index` builds channels from bundles. The others compare, edit, print or check single entries, or draw
/// the edges that they are given.
const READERS_OF_EDGES: &[(&str, &[&str])] = &[
    ("model", &["graph.rs", "index.rs", "resolver.rs"]),
    ("difference", &["difference/mod.rs"]),
    (
        "edited entries",
        &["accumulate.rs", "edit.rs", "placement.rs", "selection.rs"],
    ),
    ("templates", &["template/semver.rs", "template/substitutes.rs"]),
    (
        "reading and printing",
        &["blob.rs", "listing.rs", "path.rs", "write.rs"],
    ),
    (
        "drawings",
        &[
            "mermaid.rs",
            "picture/dot.rs",
            "picture/mod.rs",
            "picture/rows.rs",
            "picture/svg.rs",
        ],
    ),
    ("checks", &["validate/package.rs", "validate/upgrades.rs"]),
];

#[test]
fn one_module_follows_the_upgrade_edges_of_catalogs() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/catalog/src");
    let text = |name: &str| code(&std::fs::read_to_string(source.join(name)).unwrap());
    let found: BTreeSet<String> = files(&source)
        .iter()
        .map(|path| path.strip_prefix(&source).unwrap().to_str().unwrap().to_owned())
        .filter(|name| !name.ends_with("tests.rs") && text(name).contains(".skips"))
        .collect();
    let known = READERS_OF_EDGES.iter().flat_map(|(_, files)| *files);
    let known: BTreeSet<String> = known.map(|name| (*name).to_owned()).collect();
    assert_eq!(
        found, known,
        "files of crates/catalog/src that read `skips`; use `resolver` to follow upgrades"
    );
    // The commands `catalog path`, `graph` and `validate`.
    for user in ["path.rs", "picture/mod.rs", "validate/upgrades.rs"] {
        assert!(text(user).contains("Resolver::"), "{user} has its own model");
    }
    // `repo onboard` and `repo check`, also for the catalogs of `repo release`
    let submission = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/submission/src");
    let text = |name: &str| code(&std::fs::read_to_string(submission.join(name)).unwrap());
    assert!(text("publish/package.rs").contains("index::replaces_mode("));
    assert!(text("checks/release.rs").contains("graph::heads;"));
    let readers: BTreeSet<String> = files(&submission)
        .iter()
        .map(|path| path.strip_prefix(&submission).unwrap().to_str().unwrap().to_owned())
        .filter(|name| !name.ends_with("tests.rs"))
        .filter(|name| text(name).contains(".skips") || text(name).contains("NpmRange::parse("))
        .collect();
    let exception = (
        "graph.rs",
        "`repo check` passes and fails the same pull requests as the hosted pipeline, whose graph differs",
    );
    // One reports ranges that only OLM parses. The other hands the fields of bundles to `index`, and removes `skips` from its entries.
    let known = ["checks/update_graph.rs", "publish/package.rs", exception.0].map(str::to_owned);
    assert_eq!(readers, BTreeSet::from(known), "{}: {}", exception.0, exception.1);
    let comment = std::fs::read_to_string(submission.join(exception.0)).unwrap();
    assert!(
        comment.contains("//! This is no model of OLM's graph."),
        "{}",
        exception.1
    );
}

/// Checks that the tests that a page names exist: `file.rs`: `test`, `test`; `file.rs`: `test`. In tables, these are in the last column.
/// Returns their number.
fn named_tests(page: &str) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let naming = text.lines().map(|line| match line.strip_suffix('|') {
        Some(row) => row.rsplit('|').next().unwrap(),
        None => line,
    });
    let (mut source, mut named) = (String::new(), 0);
    for word in naming.flat_map(|part| part.split('`').skip(1).step_by(2)) {
        if word.ends_with(".rs") {
            source =
                std::fs::read_to_string(root.join(word)).unwrap_or_else(|error| panic!("{page} names {word}: {error}"));
        } else if word.contains('_') {
            named += 1;
            assert!(source.contains(&format!("fn {word}(")), "{page} names {word}");
        }
    }
    named
}

#[test]
fn the_tests_that_the_security_page_names_exist() {
    assert!(named_tests("docs/contributing/evidence/security.md") > 20);
}

/// Paragraphs and list entries of a description in Markdown, without headings, tables and code.
fn paragraphs(description: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for (index, part) in description.split("```").enumerate() {
        let (mut open, is_code) = (false, index % 2 == 1);
        for line in part.lines().map(str::trim).filter(|_| !is_code) {
            if line.is_empty() || line.starts_with(['#', '|']) {
                open = false;
            } else if let Some(entry) = line.strip_prefix("* ") {
                texts.push(entry.to_owned());
                open = true;
            } else if let Some(text) = texts.last_mut().filter(|_| open) {
                *text = format!("{text} {line}");
            } else {
                texts.push(line.to_owned());
                open = true;
            }
        }
    }
    texts
}

#[test]
fn each_claim_of_the_bundle_has_a_test() {
    let page = "docs/contributing/evidence/claims.md";
    assert!(named_tests(page) > 20);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join(page)).unwrap();
    let package = std::fs::read_to_string(root.join("config/package.yaml")).unwrap();
    let (_, description) = package.split_once("\ndescription: |\n").unwrap();
    let description: Vec<&str> = description
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(' '))
        .collect();
    let paragraphs = paragraphs(&description.join("\n"));
    assert!(paragraphs.len() > 15, "{paragraphs:?}");
    let missing: Vec<&String> = paragraphs
        .iter()
        .filter(|claim| !table.contains(&format!("\n| {claim} |")))
        .collect();
    assert!(missing.is_empty(), "{page} has no row for {missing:#?}");
}

#[test]
fn uses_are_found_in_every_form() {
    let text = "use crate::yaml::Node;\nuse crate::{\n    bundle::{self, Bundle},\n    image,\n};\n// crate::cli is prose\n\
                fn f() -> crate::rbac::Grant {}\n#[cfg(test)]\nmod tests { use crate::cli; }\n";
    let found: Vec<(usize, String)> = uses(text);
    let expected = [(1, "yaml"), (2, "bundle"), (2, "image"), (7, "rbac")];
    assert_eq!(found, expected.map(|(line, name)| (line, name.to_owned())));
}

#[test]
fn imports_are_found_in_code_but_not_in_strings_comments_and_tests() {
    let text = "use crate::a::{self, b::C, d};\nuse super::{e::F, g};\n// crate::h::I\nfn f() -> child::J { \"crate::k::L \\\" \";                 crate::m::N('\"', '\\'') }\n#[cfg(test)]\nmod tests { use crate::o; }\n";
    let found: Vec<String> = paths(&code(text)).iter().map(|path| path.join("::")).collect();
    let expected = [
        "crate::a::self",
        "crate::a::b::C",
        "crate::a::d",
        "super::e::F",
        "super::g",
        "child::J",
        "crate::m::N",
    ];
    assert_eq!(found, expected);
    let module = |path: &str| -> Module { path.split("::").map(str::to_owned).collect() };
    let known = ["a", "a::b", "x::y", "x::y::child"].map(module);
    let target = |path: &str| target(&module("x::y"), &module(path), |found| known.contains(found));
    assert_eq!(target("crate::a::b::C"), Some(module("a::b")));
    assert_eq!(target("crate::a::d"), Some(module("a")));
    assert_eq!(target("super::y::Item"), Some(module("x::y")));
    assert_eq!(target("child::J"), Some(module("x::y::child")));
    assert_eq!(target("serde::Serialize"), None);
}

#[test]
fn modules_before_and_after_a_cycle_are_not_part_of_it() {
    let module = |name: &str| -> Module { vec![name.to_owned()] };
    let graph: BTreeMap<Module, BTreeSet<Module>> = [("a", "b"), ("b", "c"), ("c", "b"), ("d", "")]
        .map(|(from, to)| (module(from), BTreeSet::from([module(to)])))
        .into();
    assert_eq!(cyclic(&graph), BTreeSet::from([module("b"), module("c")]));
}
