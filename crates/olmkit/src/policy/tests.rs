use std::path::PathBuf;

use super::baseline::Baseline;
use super::*;
use crate::diagnostics::{Origin, Rule};
use crate::yaml::Position;

static CSV_17: Rule = Rule::of_tool("CSV-17", Severity::Error, Origin::Opm, "a version");
static RBAC_1: Rule = Rule::of_tool("RBAC-1", Severity::Warning, Origin::Lint, "a permission");
static RBAC_5: Rule = Rule::of_tool("RBAC-5", Severity::Warning, Origin::Lint, "another permission");
static RULES: &[&Rule] = &[&CSV_17, &RBAC_1, &RBAC_5];

fn rule(id: &str) -> &'static Rule {
    RULES.iter().find(|rule| rule.id == id).unwrap()
}

fn finding(id: &str, file: &str, message: &str) -> Finding {
    Finding::from_rule(rule(id), message).file(file)
}

fn report() -> Report {
    [
        finding("CSV-17", "bundle/manifests/a.yaml", "one"),
        finding("RBAC-1", "bundle/manifests/a.yaml", "two"),
        finding("RBAC-5", "old/manifests/b.yaml", "three"),
    ]
    .into_iter()
    .collect()
}

fn kept(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.rule).collect()
}

#[test]
fn rules_are_selected_by_id_and_family() {
    let builder = || Policy::builder(RULES);
    let judged = builder().select("rbac").unwrap().build().apply(report());
    assert_eq!(kept(&judged), ["RBAC-1", "RBAC-5"]);
    assert!(judged.suppressed.is_empty());
    let policy = builder().select("all").unwrap().ignore("RBAC-1").unwrap().build();
    let judged = policy.apply(report());
    assert_eq!(kept(&judged), ["CSV-17", "RBAC-5"]);
    assert_eq!(judged.suppressed[0].by, Suppression::Rule("RBAC-1".to_owned()));
}

#[test]
fn an_unknown_rule_is_an_error_with_the_nearest() {
    let error = Pattern::parse("RBCA", RULES).unwrap_err();
    assert_eq!(error.nearest.as_deref(), Some("RBAC"));
    assert!(Pattern::parse("zzzzz", RULES).unwrap_err().nearest.is_none());
}

#[test]
fn rules_are_ignored_by_path() {
    let policy = Policy::builder(RULES)
        .ignore_in("old/**", &["RBAC".to_owned()])
        .unwrap()
        .build();
    assert_eq!(kept(&policy.apply(report())), ["CSV-17", "RBAC-1"]);
}

#[test]
fn the_most_exact_severity_counts() {
    let policy = Policy::builder(RULES)
        .severity("RBAC-1", "error")
        .unwrap()
        .severity("RBAC", "info")
        .unwrap()
        .build();
    let severities: Vec<Severity> = policy.apply(report()).findings.iter().map(|f| f.severity).collect();
    assert_eq!(severities[1..], [Severity::Error, Severity::Info]);
    assert!(Policy::builder(RULES).severity("RBAC", "bad").is_err());
}

#[test]
fn a_baseline_knows_as_many_as_it_has_seen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baseline.json");
    std::fs::write(&file, Policy::default().new_baseline([&report()]).text().unwrap()).unwrap();
    let policy = Policy::builder(RULES).baseline(Baseline::read(&file).unwrap()).build();
    let mut later = report();
    // The same once more, and elsewhere in the file.
    later.push(finding("CSV-17", "./bundle/manifests/a.yaml", "one").at(Position { line: 9, column: 1 }));
    let judged = policy.apply(later);
    assert_eq!(kept(&judged), ["CSV-17"]);
    assert_eq!(judged.suppressed.len(), 3);
    // After renewal, it contains all four.
    assert_eq!(policy.new_baseline([&judged]).len(), 4);
}

#[test]
fn a_comment_ignores_the_finding_at_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    std::fs::write(&file, "a: 1\nb: 2 # olmkit: ignore CSV-17 the console copes\n").unwrap();
    let at = |line| {
        Finding::from_rule(rule("CSV-17"), "x")
            .file(&file)
            .at(Position { line, column: 1 })
    };
    let report: Report = [at(1), at(2)].into_iter().collect();
    let judged = Policy::builder(RULES).build().apply(report.clone());
    assert_eq!(judged.findings.len(), 1);
    let reason = Suppression::Comment("the console copes".to_owned());
    assert_eq!(judged.suppressed[0].by, reason);
    let without = Policy::builder(RULES).comments(false).build().apply(report);
    assert_eq!(without.findings.len(), 2);
}

#[test]
fn settings_are_found_above_but_not_in_a_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let bundle = root.join("project/bundle");
    for directory in ["manifests", "metadata"] {
        std::fs::create_dir_all(bundle.join(directory)).unwrap();
    }
    for place in [root.join("project"), bundle.clone(), bundle.join("manifests")] {
        std::fs::write(place.join(config::FILE), "ignore = []\n").unwrap();
    }
    let expected: PathBuf = root.join("project").join(config::FILE);
    assert_eq!(config::find(&bundle.join("manifests")).unwrap(), Some(expected.clone()));
    assert_eq!(config::find(&root.join("project")).unwrap(), Some(expected));
}

#[test]
fn settings_are_own_regular_files_of_the_project() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    let deep = project.join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::create_dir(project.join(".git")).unwrap();
    let above = folder.path().join(config::FILE);
    std::fs::write(&above, "ignore = []\n").unwrap();
    assert_eq!(config::find(&deep).unwrap(), None, "it is not of the project");
    let file = project.join(config::FILE);
    let refused = |reason: &str| {
        let error = config::find(&deep).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        std::fs::remove_file(&file).unwrap();
    };
    std::os::unix::fs::symlink("/proc/self/environ", &file).unwrap();
    refused("is a link");
    std::os::unix::fs::symlink(&above, &file).unwrap();
    refused("is a link");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&file)
            .status()
            .unwrap()
            .success()
    );
    refused("is not a regular file");
    std::fs::write(&file, "ignore = []\n").unwrap();
    assert_eq!(config::find(&deep).unwrap(), Some(file));
}

/// Only root can create a file of another user.
#[test]
fn settings_of_another_user_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    for place in [folder.path(), &inner] {
        let file = place.join(config::FILE);
        std::fs::write(&file, "ignore = []\n").unwrap();
        if std::os::unix::fs::chown(&file, Some(12345), None).is_err() {
            eprintln!("skipped: this user cannot give files away");
            return;
        }
    }
    let error = config::find(&inner).unwrap_err().to_string();
    assert!(error.contains("belongs to another user"), "{error}");
    std::fs::remove_file(inner.join(config::FILE)).unwrap();
    assert_eq!(config::find(&inner).unwrap(), None, "it is not of the project");
}

#[test]
fn no_line_of_a_file_that_is_not_toml_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("any");
    for text in [
        "ignore = []\nPASSWORD:hunter2\n",
        "PASSWORD=hunter2\0A=b",
        "hunter2",
        "a = \"hunter2",
    ] {
        std::fs::write(&file, text).unwrap();
        let error = config::Config::read(&file).unwrap_err().to_string();
        assert!(error.contains("not TOML") && !error.contains("hunter2"), "{error}");
    }
}

#[test]
fn wrong_settings_name_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(config::FILE);
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let config = config::Config::read(&file)?;
        config.apply(&file, Policy::builder(RULES), true).map(|_| ())
    };
    let text = |result: Result<(), config::Error>| result.unwrap_err().to_string();
    assert!(text(read("selct = []\n")).contains("unknown field `selct`"));
    assert!(text(read("ignore = [\"RBCA\"]\n")).contains("did you mean \"RBAC\""));
    assert!(text(read("[severity]\nRBAC = \"bad\"\n")).contains("severity: \"bad\""));
    read("select = [\"CSV\"]\n[per-path-ignores]\n\"old/**\" = [\"all\"]\n").unwrap();
}

/// Each of these took minutes or gigabytes.
#[test]
fn settings_of_strangers_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(config::FILE);
    let error = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let config = config::Config::read(&file).unwrap();
        let applied = config.apply(&file, Policy::builder(RULES), true);
        applied.map(|_| ()).unwrap_err().to_string()
    };
    let globs: String = (0..2000).map(|number| format!("\"{number}/**\" = []\n")).collect();
    assert!(error(&format!("[per-path-ignores]\n{globs}")).contains("more than 1000"));
    assert!(error(&format!("ignore = [{}]\n", "\"all\", ".repeat(2000))).contains("more than 1000"));
    let long = "x".repeat(8 << 20);
    assert!(error(&format!("ignore = [\"{long}\"]\n")).contains("no rule"));
    assert!(error(&format!("[per-path-ignores]\n\"{long}\" = []\n")).contains("a glob of more than"));
}

#[test]
fn thousands_of_comments_are_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    let text = "# olmkit: ignore-file CSV-1,CSV-2 known\n# olmkit: ignore-file CSV-17 later\n".repeat(20_000);
    std::fs::write(&file, text).unwrap();
    let finding = |_| Finding::from_rule(rule("CSV-17"), "x").file(&file);
    let report: Report = (0..20_000).map(finding).collect();
    let start = std::time::Instant::now();
    let judged = Policy::builder(RULES).build().apply(report);
    assert_eq!(judged.suppressed.len(), 20_000);
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}

#[test]
fn counts_of_a_baseline_do_not_overflow() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baseline.json");
    let entry = r#"{"file": "a", "rule": "CSV-1", "message": "m", "count": 18446744073709551615}"#;
    let other = entry.replace("CSV-1", "CSV-2");
    std::fs::write(
        &file,
        format!(r#"{{"version": 1, "findings": [{entry}, {entry}, {other}]}}"#),
    )
    .unwrap();
    assert_eq!(Baseline::read(&file).unwrap().len(), usize::MAX);
}

#[test]
fn the_schema_of_the_settings_is_current() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/olmkit.schema.json");
    let schema = config::schema().unwrap();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&file, &schema).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).is_ok_and(|text| text == schema),
        "docs/olmkit.schema.json is out of date: run UPDATE_GENERATED=1 cargo test -p olmkit --lib policy"
    );
}
