//! The pages of the repository: every link works, pictures are current, and commands print the documented output.

mod chart;
mod console;
mod facts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::demo_bundle::{CSV, SERVICE, folder};

/// The Markdown files that people read, those of crates too.
fn pages() -> Vec<PathBuf> {
    let root = test_support::repository("");
    let mut found = Vec::new();
    for folder in ["", "dev", "config", "examples"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        found.extend(entries.map(|entry| entry.unwrap().path()));
    }
    let below_docs = walkdir::WalkDir::new(root.join("docs"));
    found.extend(below_docs.into_iter().map(|entry| entry.unwrap().into_path()));
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        found.push(entry.unwrap().path().join("README.md"));
    }
    found.retain(|path| path.is_file());
    found.sort();
    found
}

/// The text without blocks of code.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The names of headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for heading in prose(text).lines().filter(|line| line.starts_with('#')) {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = counts.entry(name.clone()).or_default();
        found.insert(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    found
}

/// The targets of inline links that are not in code.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    // Code spans may contain text that looks like a link.
    let outside: String = text.split('`').step_by(2).collect::<Vec<_>>().join("");
    let mut found = Vec::new();
    for part in outside.split("](").skip(1) {
        if let Some((target, _)) = part.split_once(')') {
            found.push(target.split_whitespace().next().unwrap_or_default().to_owned());
        }
    }
    found
}

#[test]
fn every_link_leads_somewhere() {
    let (mut broken, mut checked) = (Vec::new(), 0);
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                _ => page.parent().unwrap_or(Path::new("")).join(file),
            };
            let leads = match (target.exists(), anchor) {
                (false, _) => false,
                (true, "") => true,
                (true, anchor) => std::fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor)),
            };
            if !leads {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(checked > 20, "only {checked} links found");
}

/// Compares a picture with the current output, or rewrites it.
#[track_caller]
fn check(picture: &str, wanted: &str) {
    let file = test_support::repository("docs/pictures").join(picture);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, wanted).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).is_ok_and(|text| text == wanted),
        "docs/pictures/{picture} is out of date: run UPDATE_GENERATED=1 cargo test -p olmkit-cli --test command documentation"
    );
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .current_dir(folder)
        .env("CLICOLOR_FORCE", "1")
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_picture_of_findings_is_what_the_program_prints() {
    let folder = folder(&[
        (CSV, "minKubeVersion: 1.25.0", "minKubeVersion: v1.25"),
        (SERVICE, "metadata:", "metadata:\n  namespace: default"),
    ]);
    let text = printed(folder.path(), &["bundle", "validate", "demo"]);
    assert!(text.contains("CSV-17") && text.contains('\u{1b}'), "{text}");
    check("finding.svg", &anstyle_svg::Term::new().render_svg(&text));
}

#[test]
fn the_picture_of_a_graph_is_what_the_program_draws() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = "\
schema: olm.package
name: demo
defaultChannel: stable
---
schema: olm.channel
package: demo
name: stable
entries:
  - {name: demo.v1.0.0}
  - {name: demo.v1.1.0, replaces: demo.v1.0.0}
  - {name: demo.v1.1.1, replaces: demo.v1.0.0, skips: [demo.v1.1.0]}
  - {name: demo.v1.2.0, replaces: demo.v1.1.1}
---
schema: olm.channel
package: demo
name: candidate
entries:
  - {name: demo.v1.2.0}
  - {name: demo.v2.0.0-rc.1, replaces: demo.v1.2.0}
";
    std::fs::create_dir(folder.path().join("catalog")).unwrap();
    std::fs::write(folder.path().join("catalog/demo.yaml"), catalog).unwrap();
    let drawn = printed(folder.path(), &["catalog", "graph", "catalog", "-o", "svg"]);
    assert!(drawn.starts_with("<svg") || drawn.starts_with("<?xml"), "{drawn}");
    check("graph.svg", &drawn);
}
