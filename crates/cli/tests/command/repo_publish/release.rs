//! Releases into made-up repositories.

use std::path::PathBuf;
use std::process::Command;

use super::{Desk, Said, opm};

const CI: &str = "\
---
reviewers: [a]
fbc:
  enabled: true
  catalog_mapping:
  - template_name: basic.yaml
    catalog_names: [v4.16, v4.20]
    type: olm.template.basic
";
const RELEASE_CONFIG: &str = "\
---
catalog_templates:
- template_name: basic.yaml
  channels: [stable]
  replaces: hello.v0.0.1
";

/// An operator with file-based catalogs and one bundle in them.
fn published() -> Desk {
    let desk = Desk::new();
    desk.in_repository("0.0.1", "");
    desk.run(&["onboard", "hello"]).fine();
    let template = desk.text("operators/hello/catalog-templates/basic.yaml");
    std::fs::remove_dir_all(desk.root().join("catalogs")).unwrap();
    desk.write(
        "operators/hello/catalog-templates/basic.yaml",
        &(template + "# the end\n"),
    );
    desk.write("operators/hello/ci.yaml", CI);
    let release = "catalog_templates:\n- template_name: basic.yaml\n  channels: [stable]\n";
    desk.write("operators/hello/0.0.1/release-config.yaml", release);
    desk.commit_all();
    let said = desk.run(&[
        "release",
        "operators/hello/0.0.1",
        "--image",
        "quay.io/community/hello:0.0.1",
    ]);
    said.fine();
    desk
}

/// A bundle outside the repository.
fn fresh(desk: &Desk, spec: &str) -> String {
    let directory: PathBuf = desk.directory.path().join("fresh");
    desk.bundle(&directory, "0.0.2", spec);
    std::fs::write(directory.join("release-config.yaml"), RELEASE_CONFIG).unwrap();
    std::fs::write(directory.join("Dockerfile"), "FROM scratch\n").unwrap();
    directory.to_str().unwrap().to_owned()
}

fn release(desk: &Desk, bundle: &str, more: &[&str]) -> Said {
    desk.run(&[&["release", bundle], more].concat())
}

#[test]
fn the_push_command_quotes_the_remote() {
    let desk = published();
    let bundle = fresh(&desk, "");
    let branch = desk.git(&["branch", "--show-current"]);
    desk.git(&["config", &format!("branch.{}.remote", branch.trim()), "$(touch x) y"]);
    let said = release(&desk, &bundle, &[]);
    said.fine();
    let expected = "push with: git push --set-upstream '$(touch x) y' hello-0.0.2\n";
    assert!(said.out.ends_with(expected), "{}", said.out);
}

#[test]
fn a_bundle_is_placed_checked_and_committed() {
    let desk = published();
    let bundle = fresh(&desk, "");
    let (before, head) = (desk.files(), desk.git(&["rev-parse", "HEAD"]));
    let dry = release(&desk, &bundle, &["--dry-run"]);
    dry.fine();
    assert!(
        dry.out.contains("create operators/hello/0.0.2/release-config.yaml\n"),
        "{}",
        dry.out
    );
    assert_eq!(
        (desk.files(), desk.git(&["rev-parse", "HEAD"])),
        (before.clone(), head.clone()),
        "a dry run"
    );
    let said = release(&desk, &bundle, &[]);
    said.fine();
    assert!(
        said.out
            .ends_with("push with: git push --set-upstream origin hello-0.0.2\n"),
        "{}",
        said.out
    );
    assert!(dry.out.ends_with("branch: hello-0.0.2\n"), "{}", dry.out);
    assert_eq!(desk.git(&["branch", "--show-current"]), "hello-0.0.2\n");
    assert_eq!(desk.git(&["rev-parse", "HEAD~1"]), head, "one commit on top");
    assert!(
        said.err
            .contains("omitted, because it is not part of a bundle: Dockerfile"),
        "{}",
        said.err
    );
    assert_eq!(desk.git(&["log", "-1", "--format=%s"]), "operator hello (0.0.2)\n");
    assert!(
        desk.git(&["log", "-1", "--format=%b"])
            .starts_with("Signed-off-by: a <a@example.com>")
    );
    let files = desk.git(&["show", "--name-only", "--format="]);
    assert_eq!(
        files,
        "operators/hello/0.0.2/manifests/hello.clusterserviceversion.yaml\noperators/hello/0.0.2/metadata/annotations.yaml\n\
         operators/hello/0.0.2/release-config.yaml\n"
    );
    assert_eq!(desk.git(&["status", "--porcelain"]), "");
    release(&desk, &bundle, &[]).refused("operators/hello/0.0.2 already exists");
}

#[test]
fn a_bundle_is_added_to_templates_and_catalogs() {
    let desk = published();
    release(&desk, &fresh(&desk, ""), &[]).fine();
    let said = release(
        &desk,
        "operators/hello/0.0.2",
        &["--image", "quay.io/community/hello:0.0.2"],
    );
    said.fine();
    assert!(
        said.out
            .contains("~ hello\n    head of stable: hello.v0.0.1 -> hello.v0.0.2\n    1 new bundle: hello.v0.0.2\n"),
        "{}",
        said.out
    );
    assert_eq!(desk.git(&["log", "-1", "--format=%s"]), "Add hello 0.0.2 to FBC\n");
    let template = desk.text("operators/hello/catalog-templates/basic.yaml");
    assert!(
        template.contains("- name: hello.v0.0.2\n    replaces: hello.v0.0.1\n"),
        "{template}"
    );
    assert!(
        template.contains("- image: quay.io/community/hello:0.0.2\n") && template.ends_with("# the end\n"),
        "{template}"
    );
    let catalog = |name: &str| desk.text(&format!("catalogs/{name}/hello/catalog.yaml"));
    assert!(catalog("v4.16").contains("olm.bundle.object") && !catalog("v4.16").contains("olm.csv.metadata"));
    assert!(catalog("v4.20").contains("olm.csv.metadata") && !catalog("v4.20").contains("olm.bundle.object"));
    for name in ["v4.16", "v4.20"] {
        let Some(opm) = opm() else { break };
        let directory = desk.root().join("catalogs").join(name);
        let output = Command::new(opm).arg("validate").arg(directory).output().unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
    }
    let said = release(
        &desk,
        "operators/hello/0.0.2",
        &["--image", "quay.io/community/hello:0.0.2"],
    );
    said.refused("nothing to release");
}

#[test]
fn a_rejected_release_changes_no_file() {
    let desk = published();
    let bundle = fresh(&desk, "");
    let (before, head) = (desk.files(), desk.git(&["rev-parse", "HEAD"]));
    let same = |what: &str| {
        assert_eq!(desk.files(), before, "{what}");
        assert_eq!(desk.git(&["rev-parse", "HEAD"]), head, "{what}");
        assert_eq!(desk.git(&["status", "--porcelain"]), "", "{what}");
    };
    desk.write("operators/hello/0.0.1/new", "");
    release(&desk, &bundle, &[]).refused("has uncommitted changes");
    std::fs::remove_file(desk.root().join("operators/hello/0.0.1/new")).unwrap();
    let wrong = fresh(&desk, "  replaces: hello.v0.0.2\n  icon: []\n");
    release(&desk, &wrong, &[]).refused("check_required_fields");
    same("a check fails");
    release(&desk, "missing", &[]).refused("missing is not a bundle");
    release(&desk, "operators/hello/0.0.1", &[]).refused("pass its image as --image");
    release(&desk, &bundle, &["--image", "r.io/a:1"]).refused("requires a bundle of the repository");
    release(&desk, "operators/hello/0.0.1", &["--image", "r.io/other:1"]).refused("check_bundle_images_in_fbc");
    same("refused");
    let bundle = fresh(&desk, "");
    desk.git(&["branch", "hello-0.0.2"]);
    release(&desk, &bundle, &[]).refused("the branch hello-0.0.2 already exists");
    desk.git(&["branch", "--delete", "hello-0.0.2"]);
    release(&desk, &bundle, &["--branch=a..b"]).refused("cannot be the name of a branch");
    same("the branch");
    let branches = desk.git(&["branch"]);
    let hook = desk.root().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\necho no such luck >&2\nexit 1\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, executable).unwrap();
    release(&desk, &bundle, &[]).refused("no such luck");
    same("a hook refuses");
    assert_eq!(desk.git(&["branch"]), branches, "a hook refuses");
    std::fs::remove_file(hook).unwrap();
    release(&desk, &bundle, &["--no-commit"]).fine();
    assert_eq!(desk.git(&["rev-parse", "HEAD"]), head);
    assert!(
        desk.text("operators/hello/0.0.2/release-config.yaml")
            .contains("replaces: hello.v0.0.1")
    );
}

#[test]
fn a_release_goes_to_the_current_branch_if_it_has_the_name() {
    let desk = published();
    desk.git(&["switch", "--quiet", "--create", "mine"]);
    release(&desk, &fresh(&desk, ""), &["--branch", "mine"]).fine();
    assert_eq!(desk.git(&["branch", "--show-current"]), "mine\n");
    assert_eq!(desk.git(&["log", "-1", "--format=%s"]), "operator hello (0.0.2)\n");
}

#[test]
fn warnings_of_a_release_are_printed() {
    let desk = Desk::new();
    desk.in_repository("0.0.1", "");
    desk.write("operators/hello/ci.yaml", "reviewers: [a]\n");
    desk.commit_all();
    let directory = desk.directory.path().join("beside");
    desk.bundle(&directory, "0.0.2", "  replaces: hello.v0.0.1\n");
    let said = release(&desk, directory.to_str().unwrap(), &["--dry-run"]);
    said.fine();
    assert!(
        said.out.contains("warning[pipeline/check_ci_upgrade_graph]"),
        "{}",
        said.out
    );
}

#[test]
fn an_operator_with_catalogs_needs_a_release_config() {
    let desk = published();
    let directory = desk.directory.path().join("beside");
    desk.bundle(&directory, "0.0.2", "");
    let bundle = directory.to_str().unwrap();
    let said = release(&desk, bundle, &["--dry-run"]);
    said.fine();
    let wanted = [
        "the bundle has no release-config.yaml",
        "--release-config",
        "- template_name: basic.yaml",
    ];
    for wanted in wanted {
        assert!(said.err.contains(wanted), "{wanted}: {}", said.err);
    }
    desk.write("../release.yaml", RELEASE_CONFIG);
    let said = release(&desk, bundle, &["--release-config", "../release.yaml", "--dry-run"]);
    said.fine();
    assert!(!said.err.contains("release-config"), "{}", said.err);
}

#[test]
fn the_rules_are_those_of_the_repository() {
    let desk = Desk::new();
    desk.in_repository("0.0.1", "");
    // Without updateGraph operatorhub.io builds the graph from the versions, and rejects spec.replaces.
    desk.write("operators/hello/ci.yaml", "reviewers: [a]\n");
    desk.commit_all();
    let directory = desk.directory.path().join("beside");
    desk.bundle(&directory, "0.0.2", "  replaces: hello.v0.0.1\n");
    let bundle = directory.to_str().unwrap();
    release(&desk, bundle, &["--dry-run"]).fine();
    release(&desk, bundle, &["--dry-run", "--suite", "operatorhub"]).refused("operatorhub/update-graph");
    // A clone of that repository needs no flag.
    for config in ["organization: community-operators\ncluster: k8s\n", "{}\n"] {
        desk.write("config.yaml", config);
        desk.write("categories.json", "{\"categories\": [\"Database\"]}");
        desk.commit_all();
        release(&desk, bundle, &["--dry-run"]).refused("operatorhub/update-graph");
        release(&desk, bundle, &["--dry-run", "--suite", "community"]).fine();
    }
}

/// No registry answers here, so a pull would fail.
#[test]
fn a_new_catalog_takes_bundles_from_the_others() {
    let desk = published();
    release(&desk, &fresh(&desk, ""), &[]).fine();
    desk.write("operators/hello/ci.yaml", &CI.replace("v4.20]", "v4.20, v4.15, v4.21]"));
    desk.commit_all();
    let said = release(
        &desk,
        "operators/hello/0.0.2",
        &["--image", "quay.io/community/hello:0.0.2"],
    );
    said.fine();
    let catalog = |name: &str| desk.text(&format!("catalogs/{name}/hello/catalog.yaml"));
    assert_eq!(catalog("v4.21"), catalog("v4.20"));
    assert_eq!(catalog("v4.15"), catalog("v4.16"));
}
