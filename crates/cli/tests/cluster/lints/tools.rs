//! Claims about opm, which makes catalogs of bundles.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::broken;
use crate::bundle::Bundle;
use olmkit::validate::Options as Checks;

/// The output of `opm render` for a bundle. `None` if it fails.
fn render(opm: &Path, folder: &Path) -> Option<String> {
    let output = Command::new(opm)
        .args(["render", "--output", "json"])
        .arg(folder)
        .output()
        .unwrap();
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn opm_cannot_render_what_the_lint_reports() {
    let opm = match kube_testbed::tools::program("opm") {
        Ok(opm) => opm,
        Err(error) => return println!("skipped: {error}"),
    };
    let folder = tempfile::tempdir().unwrap();
    for (annotations, is_readable) in [
        (json!({"certified": "true"}), true),
        (json!({"certified": true}), false),
    ] {
        let mut bundle = Bundle::new("rendered", "1.0.0");
        bundle.changes = vec![("/metadata/annotations", annotations)];
        let root = bundle.write(folder.path());
        let options = Checks {
            directory: root.clone(),
            ..Checks::default()
        };
        let ids = super::rules_of(&root, options);
        assert_eq!(!ids.contains(&"OPM-1"), is_readable, "{ids:?}");
        assert_eq!(render(&opm, &root).is_some(), is_readable);
    }
}

#[test]
fn opm_does_what_rules_say() {
    let opm = match kube_testbed::tools::program("opm") {
        Ok(opm) => opm,
        Err(error) => return println!("skipped: {error}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let mut bundle = Bundle::new("rendered", "1.0.0");
    bundle.extra =
        vec![json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}, "data": {"a": "b"}})];
    let root = bundle.write(folder.path());
    let extra = root.join("manifests/extra-0.yaml");
    let text = std::fs::read_to_string(&extra).unwrap();
    let objects = |text: &str| text.matches("\"olm.bundle.object\"").count();
    let ids = broken(&root);
    assert!(
        !["FILE-1", "FILE-2", "META-2"].iter().any(|rule| ids.contains(rule)),
        "{ids:?}"
    );
    let one = render(&opm, &root).unwrap();

    let second = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n";
    std::fs::write(&extra, format!("{text}{second}")).unwrap();
    assert!(broken(&root).contains(&"FILE-1"));
    assert_eq!(
        objects(&render(&opm, &root).unwrap()),
        objects(&one),
        "opm takes the second document too"
    );
    std::fs::remove_file(&extra).unwrap();
    std::fs::write(root.join("manifests/extra-1.yaml"), second.trim_start_matches("---\n")).unwrap();
    assert_eq!(objects(&render(&opm, &root).unwrap()), objects(&one));

    // The rendered CRD's property shows which of two equal keys counts.
    let crd = root.join(format!("manifests/{}.crd.yaml", bundle.crd_name()));
    let text = std::fs::read_to_string(&crd).unwrap();
    std::fs::write(&crd, format!("kind: Other\n{text}")).unwrap();
    assert!(broken(&root).contains(&"FILE-2"));
    assert!(render(&opm, &root).is_some(), "the first of two equal keys counts");
    std::fs::write(&crd, text).unwrap();

    let properties = root.join("metadata/properties.yaml");
    for (text, is_wrong) in [
        ("properties:\n- type: example\n  value: 1\n", false),
        ("properties:\n- value: 1\n", true),
        ("properties: {a: b}\n", true),
    ] {
        std::fs::write(&properties, text).unwrap();
        assert_eq!(broken(&root).contains(&"META-2"), is_wrong, "{text}");
        let has = render(&opm, &root).is_some_and(|text| text.contains("\"type\": \"example\""));
        assert_eq!(has, !is_wrong, "{text}");
    }
}
