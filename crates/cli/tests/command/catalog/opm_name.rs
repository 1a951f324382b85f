//! The binary under the name `opm`, as Makefiles and pods call it.

use std::fs;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

/// A directory with a program `opm` and a catalog.
fn desk() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin("olmkit"), directory.path().join("opm")).unwrap();
    let catalog = "---\nschema: olm.package\nname: demo\ndefaultChannel: stable\n\
                   ---\nschema: olm.channel\npackage: demo\nname: stable\nentries: [{name: demo.v1.0.0}]\n\
                   ---\nschema: olm.bundle\npackage: demo\nname: demo.v1.0.0\nimage: registry.test/demo:v1\n\
                   properties: [{type: olm.package, value: {packageName: demo, version: 1.0.0}}]\n";
    fs::create_dir(directory.path().join("catalog")).unwrap();
    fs::write(directory.path().join("catalog/catalog.yaml"), catalog).unwrap();
    directory
}

fn opm(directory: &Path, line: &str) -> Output {
    std::process::Command::new(directory.join("opm"))
        .args(line.split_whitespace())
        .env("OLMKIT_IMAGE_STORE", directory.join("store"))
        .env("HOME", directory)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn succeed(directory: &Path, line: &str) -> String {
    let output = opm(directory, line);
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_commands_of_makefiles_work() {
    let desk = desk();
    let directory = desk.path();
    assert_eq!(succeed(directory, "validate catalog"), "");
    // opm's own flags may precede or follow the subcommand.
    for line in [
        "render catalog -o yaml",
        "--use-http render catalog --output=yaml",
        "render --skip-tls-verify catalog -oyaml --migrate",
    ] {
        assert!(succeed(directory, line).contains("name: demo.v1.0.0"), "{line}");
    }
    assert!(succeed(directory, "alpha list bundles catalog demo").contains("demo.v1.0.0"));
    assert!(succeed(directory, "alpha list packages catalog").contains("stable"));
    assert!(succeed(directory, "alpha render-graph catalog").contains("demo"));
    assert!(succeed(directory, "init demo --default-channel=stable").contains(r#""defaultChannel": "stable""#));
    succeed(directory, "generate dockerfile catalog");
    assert!(
        fs::read_to_string(directory.join("catalog.Dockerfile"))
            .unwrap()
            .contains("/bin/opm")
    );
    succeed(directory, "migrate catalog migrated");
    assert!(directory.join("migrated/demo/catalog.json").is_file());
    succeed(directory, "serve catalog --cache-dir=cache --cache-only");
    assert!(succeed(directory, "version").starts_with("Version: version.Version{OpmVersion:"));
}

#[test]
fn bundles_are_unpacked_from_images() {
    let desk = desk();
    let bundle = test_support::demo_bundle::path();
    let built = assert_cmd::Command::cargo_bin("olmkit")
        .unwrap()
        .args(["image", "build", "bundle", "--tag", "demo:v1", "--output", "oci:image"])
        .arg(&bundle)
        .env("OLMKIT_IMAGE_STORE", desk.path().join("store"))
        .current_dir(desk.path())
        .output()
        .unwrap();
    assert!(built.status.success());
    succeed(desk.path(), "alpha bundle unpack --out unpacked oci:image");
    for name in ["manifests/demo.clusterserviceversion.yaml", "metadata/annotations.yaml"] {
        let unpacked = fs::read(desk.path().join("unpacked").join(name)).unwrap();
        assert_eq!(unpacked, fs::read(bundle.join(name)).unwrap(), "{name}");
    }
}

#[test]
fn removed_commands_of_opm_are_reported() {
    let desk = desk();
    let output = opm(desk.path(), "registry serve -d x.db");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("SQLite catalogs are not supported"), "{error}");
}

/// As a Makefile of operator-sdk calls it with `OPM=olmkit`.
#[test]
fn index_add_needs_no_other_name() {
    let said = |arguments: &[&str]| {
        let output = assert_cmd::Command::cargo_bin("olmkit")
            .unwrap()
            .args(arguments)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, help) = said(&["index", "add", "--help"]);
    assert_eq!(code, Some(0));
    for flag in ["--bundles", "--tag", "--mode", "--from-index", "--container-tool"] {
        assert!(help.contains(flag), "{flag}: {help}");
    }
}
