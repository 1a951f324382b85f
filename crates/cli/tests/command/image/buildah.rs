//! Compares the images that olmkit builds, file by file and label by label, with those that buildah builds from the
//! Dockerfiles.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use olmkit_oci::build::{Recipe, bundle_recipe, catalog_recipe, operator_recipe, with_index};
use olmkit_oci::diff::diff;
use olmkit_oci::spec::Platform;
use olmkit_oci::{Layout, archive};
use olmkit_serve::source;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A copy of the parts of the repository that images are built from, with small programs in place of the real ones.
fn context() -> tempfile::TempDir {
    let context = tempfile::tempdir().unwrap();
    let root = workspace();
    for name in [
        "bundle",
        "dev/image-context.sh",
        "bundle.Dockerfile",
        "Dockerfile",
        "catalog.Dockerfile",
        ".dockerignore",
    ] {
        let target = context.path().join(name);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let copied = Command::new("cp")
            .arg("-a")
            .arg(root.join(name))
            .arg(&target)
            .status()
            .unwrap();
        assert!(copied.success(), "{name}");
    }
    let catalog = context.path().join("catalog/memcached-operator");
    fs::create_dir_all(&catalog).unwrap();
    fs::write(
        catalog.join("catalog.yaml"),
        "---\nschema: olm.package\nname: memcached-operator\ndefaultChannel: alpha\n\
         ---\nschema: olm.channel\npackage: memcached-operator\nname: alpha\nentries: [{name: memcached-operator.v1.0.0}]\n\
         ---\nschema: olm.bundle\npackage: memcached-operator\nname: memcached-operator.v1.0.0\nimage: registry.test/a:v1\n\
         properties: [{type: olm.package, value: {packageName: memcached-operator, version: 1.0.0}}]\n",
    )
    .unwrap();
    for program in ["memcached-operator", "helper"] {
        fs::write(context.path().join(program), format!("program {program}")).unwrap();
        let status = Command::new("chmod")
            .arg("700")
            .arg(context.path().join(program))
            .status()
            .unwrap();
        assert!(status.success());
    }
    let laid_out = Command::new(context.path().join("dev/image-context.sh"))
        .args([context.path().join("memcached-operator"), context.path().join("helper")])
        .arg(assert_cmd::cargo::cargo_bin("olmkit"))
        .status()
        .unwrap();
    assert!(laid_out.success());
    context
}

/// Builds with buildah to an archive. Prints a line and returns `None` if buildah cannot run.
fn buildah(context: &Path, dockerfile: &str) -> Option<PathBuf> {
    let run = |arguments: &[&str]| {
        let mut command = Command::new("buildah");
        command
            .args(["--root", "storage/root", "--runroot", "storage/run"])
            .args(arguments)
            .current_dir(context);
        command
            .env("BUILDAH_ISOLATION", "chroot")
            .env("STORAGE_DRIVER", "vfs")
            .output()
    };
    if run(&["version"]).map_or(true, |output| !output.status.success()) {
        eprintln!("skipped: buildah does not run here");
        return None;
    }
    for arguments in [
        vec![
            "build",
            "--quiet",
            "--file",
            dockerfile,
            "--tag",
            "localhost/compared:v1",
            ".",
        ],
        vec!["push", "--quiet", "localhost/compared:v1", "oci-archive:image.tar"],
    ] {
        let output = run(&arguments).unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Some(context.join("image.tar"))
}

fn compare(dockerfile: &str, recipe: impl FnOnce(&Path) -> Recipe, expected: &[&str]) {
    let context = context();
    let Some(archive) = buildah(context.path(), dockerfile) else {
        return;
    };
    let platform = Platform::host();
    let theirs = archive::read_oci(&archive, &context.path().join("theirs")).unwrap();
    let their_image = theirs.image(&theirs.find(None).unwrap(), &platform).unwrap();
    let ours = Layout::create(&context.path().join("ours")).unwrap();
    let descriptor = recipe(context.path()).build(&ours).unwrap();
    let our_image = ours.image(&descriptor, &platform).unwrap();
    assert!(our_image.manifest.layers.iter().all(|layer| layer.size > 0));
    let differences: Vec<String> = diff((&ours, &our_image), (&theirs, &their_image))
        .unwrap()
        .into_iter()
        .map(|difference| format!("{}: {:?} {:?}", difference.what, difference.first, difference.second))
        .collect();
    assert_eq!(differences, expected, "{dockerfile}");
}

/// Engines write the search path that runtimes assume anyway into images that set none.
const SEARCH_PATH: &str = "env PATH: None Some(\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\")";

/// buildah adds its own label to its images.
fn signature() -> String {
    let output = Command::new("buildah").arg("version").output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("Version:"))
        .unwrap_or_default()
        .trim()
        .to_owned();
    format!("label io.buildah.version: None Some(\"{version}\")")
}

#[test]
fn bundle_images_are_equal() {
    compare(
        "bundle.Dockerfile",
        |context| bundle_recipe(&context.join("bundle"), Platform::host(), 0).unwrap(),
        &[SEARCH_PATH, &signature()],
    );
}

#[test]
fn catalog_images_are_equal() {
    let recipe = |context: &Path| {
        let (catalog, helper) = (context.join("catalog"), context.join("helper"));
        let recipe = catalog_recipe(&catalog, &helper, Platform::host(), 0).unwrap();
        with_index(recipe, source::INDEX_FILE, source::bytes(&catalog).unwrap()).unwrap()
    };
    compare("catalog.Dockerfile", recipe, &[&signature()]);
}

#[test]
fn operator_images_are_equal() {
    let recipe = |context: &Path| {
        let authorities = Some(Path::new("/etc/ssl/certs/ca-certificates.crt")).filter(|path| path.exists());
        operator_recipe(&context.join("memcached-operator"), authorities, Platform::host(), 0).unwrap()
    };
    compare("Dockerfile", recipe, &[SEARCH_PATH, &signature()]);
}

/// The Makefile of operator-sdk pushes the catalog with the container tool, so the tool must have it.
#[test]
fn index_add_hands_the_catalog_to_buildah() {
    let desk = tempfile::tempdir().unwrap();
    let path = |name: &str| desk.path().join(name);
    let (root, run) = (path("root"), path("run"));
    let storage = format!("[storage]\ndriver = \"vfs\"\ngraphroot = {root:?}\nrunroot = {run:?}\n");
    fs::write(path("storage.conf"), storage).unwrap();
    let buildah = |arguments: &[&str]| {
        let mut command = Command::new("buildah");
        command
            .args(arguments)
            .env("CONTAINERS_STORAGE_CONF", path("storage.conf"));
        command.env_remove("STORAGE_DRIVER").output()
    };
    if buildah(&["version"]).map_or(true, |output| !output.status.success()) {
        eprintln!("skipped: buildah does not run here");
        return;
    }
    // The head of a program without sections: to olmkit a static one.
    let mut server = fs::read(assert_cmd::cargo::cargo_bin("olmkit")).unwrap();
    server.truncate(64);
    server[56..58].fill(0);
    fs::write(path("server"), server).unwrap();
    let output = Command::new(assert_cmd::cargo::cargo_bin("olmkit"))
        .args(["index", "add", "--container-tool", "buildah", "--mode", "semver"])
        .args(["--tag", "registry.test/team/catalog:v1", "--bundles"])
        .arg(test_support::demo_bundle::path())
        .arg("--binary")
        .arg(path("server"))
        .env("CONTAINERS_STORAGE_CONF", path("storage.conf"))
        .env_remove("STORAGE_DRIVER")
        .env("OLMKIT_IMAGE_STORE", path("store"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let images = buildah(&["images", "--noheading", "--format", "{{.Name}}:{{.Tag}}"]).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&images.stdout).trim(),
        "registry.test/team/catalog:v1"
    );
}
