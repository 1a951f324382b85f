//! Inputs that make no bundle, or not the one that is meant.

use super::support::{Folder, OPERATOR, said};

#[test]
fn empty_input_is_rejected_and_leaves_the_old_bundle() {
    let folder = Folder::new();
    assert!(folder.generate(&[], OPERATOR).status.success());
    let before = folder.files();
    for input in ["", "\n", "---\n", "# nothing\n---\n\n---\n", "null\n"] {
        let output = folder.generate(&[], input);
        assert_eq!(output.status.code(), Some(1), "{input:?}");
        assert!(
            said(&output).contains("the input contains no object"),
            "{}",
            said(&output)
        );
        assert_eq!(folder.files(), before, "{input:?}");
    }
    folder.write("empty/README.md", "");
    let output = folder.generate(&["--input-dir", "empty"], "");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_directory_of_kustomizations_is_reported_with_the_command_that_builds_it() {
    let folder = Folder::new();
    folder.write("config/manager/manager.yaml", OPERATOR);
    folder.write("config/manager/kustomization.yaml", "resources: [manager.yaml]\n");
    let output = folder.generate(&["--strict", "--input-dir", "config"], "");
    assert!(output.status.success(), "it changes nothing: {}", said(&output));

    folder.write(
        "config/default/kustomization.yaml",
        "namePrefix: example-\nresources: [../manager]\npatches: [{path: patch.yaml}]\n",
    );
    folder.write("config/manifests/kustomization.yaml", "resources: [../default]\n");
    let output = folder.generate(&["--input-dir", "config"], "");
    assert!(output.status.success());
    for expected in [
        "config/default/kustomization.yaml",
        "namePrefix, patches",
        "kustomize build config/manifests | olmkit generate bundle",
        "olmkit generate bundle --kustomize config/manifests",
    ] {
        assert!(said(&output).contains(expected), "{expected}: {}", said(&output));
    }
    let output = folder.generate(&["--strict", "--input-dir", "config"], "");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_dockerfile_has_a_place_and_a_directory_outside_of_its_context_is_reported() {
    let folder = Folder::new();
    let output = folder.generate(&["--dockerfile", "build/bundle.Dockerfile"], OPERATOR);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!folder.path("bundle.Dockerfile").exists());
    let text = folder.text("build/bundle.Dockerfile");
    assert!(text.contains("COPY bundle/manifests /manifests/"), "{text}");
    assert!(!said(&output).contains("build context"), "{}", said(&output));

    let absolute = folder.path("out").display().to_string();
    for directory in [absolute.as_str(), "../outside-of-the-context"] {
        let inner = folder.path("inner");
        std::fs::create_dir_all(&inner).unwrap();
        let output = assert_cmd::Command::cargo_bin("olmkit")
            .unwrap()
            .args([
                "generate",
                "bundle",
                "-q",
                "--package",
                "example-operator",
                "--version",
                "0.0.1",
            ])
            .args(["--output-dir", directory])
            .current_dir(&inner)
            .write_stdin(OPERATOR)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let said = said(&output);
        assert!(
            said.contains("bundle.Dockerfile: copies") && said.contains("build context"),
            "{said}"
        );
    }
}
