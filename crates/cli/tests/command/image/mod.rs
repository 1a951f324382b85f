//! `olmkit image` as a user types it, without a registry: build, look, save, load, copy, compare.

mod buildah;
mod cases;
mod environment;
mod forms;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

/// A directory with a separate image store.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command line that is split at spaces.
    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    fn command(&self, line: &str) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::cargo_bin("olmkit").unwrap();
        command
            .args(line.split_whitespace())
            .env_remove("SOURCE_DATE_EPOCH")
            .env("OLMKIT_IMAGE_STORE", self.path("store"))
            .env("HOME", self.0.path())
            .current_dir(self.0.path());
        command
    }

    fn succeed(&self, line: &str) -> String {
        let output = self.run(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn fail(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(1), "{line}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn inspect(&self, line: &str) -> Value {
        serde_json::from_str(&self.succeed(&format!("image inspect -o json {line}"))).unwrap()
    }
}

fn bundle() -> String {
    let path = test_support::demo_bundle::path();
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_image_goes_round_all_places_and_stays_the_same() {
    let desk = Desk::new();
    let name = "registry.test/team/demo-bundle:v1";
    let built = desk.succeed(&format!("image build bundle {} -t {name}", bundle()));
    let (repository, digest) = built.split_once('@').unwrap();
    assert_eq!(repository, "registry.test/team/demo-bundle");
    assert_eq!(desk.succeed(&format!("image digest store:{name}")), digest);

    assert_eq!(desk.succeed(&format!("image copy store:{name} oci:layout")), digest);
    assert_eq!(desk.succeed("image copy oci:layout oci-archive:copied.tar"), digest);
    assert_eq!(desk.succeed("image digest oci-archive:copied.tar"), digest);
    desk.succeed(&format!("image save store:{name} -o saved.tar"));
    assert_eq!(
        desk.succeed("image load saved.tar -t registry.test/other:v2"),
        format!("registry.test/other@{digest}")
    );
    assert_eq!(desk.succeed("image digest store:registry.test/other:v2"), digest);
    // Docker's format keeps layers unpacked: another digest, but nothing that a user of the image would see.
    desk.succeed(&format!("image save store:{name} --docker -o docker.tar"));
    let loaded = desk.succeed("image load docker.tar");
    assert!(
        loaded.starts_with("registry.test/team/demo-bundle@") && !loaded.ends_with(digest),
        "{loaded}"
    );
    assert_eq!(desk.succeed("image diff oci:layout docker-archive:docker.tar"), "");
    // The name is also written into archives that are only loaded by name.
    desk.succeed("image copy store:registry.test/other:v2 docker-archive:named.tar");
    assert!(desk.succeed("image load named.tar").starts_with("registry.test/other@"));
}

#[test]
fn differences_are_printed_and_exit_with_one() {
    let desk = Desk::new();
    let build = format!("image build bundle {}", bundle());
    desk.succeed(&format!("{build} -t a:v1"));
    desk.succeed(&format!("{build} -t b:v1 --label channel=stable"));
    let output = desk.run("image diff store:a:v1 store:b:v1");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "label channel\n  - (absent)\n  + stable\n"
    );
}

#[test]
fn images_are_compared_without_writing_files() {
    let desk = Desk::new();
    fs::write(desk.path("one"), "1").unwrap();
    fs::write(desk.path("two"), "2").unwrap();
    for name in ["one", "two"] {
        desk.succeed(&format!(
            "image build files -t {name}:v1 --add {name}:/content/file -o oci:layout-{name}"
        ));
    }
    let output = desk
        .command("image diff oci:layout-one oci:layout-two")
        .env("TMPDIR", desk.path("absent"))
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let differences = String::from_utf8(output.stdout).unwrap();
    assert!(
        differences.starts_with("file /content/file\n  - 1 bytes, sha256:"),
        "{differences}"
    );
}

#[test]
fn every_output_and_platform_at_once() {
    let desk = Desk::new();
    fs::create_dir(desk.path("programs")).unwrap();
    for architecture in ["amd64", "arm64"] {
        fs::write(desk.path(&format!("programs/{architecture}")), architecture).unwrap();
    }
    let line = "image build files -t registry.test/tool:v1 --add programs/{arch}:/tool --entrypoint /tool \
                --user 1000 --workdir /work --env A=b --cmd serve \
                --platform linux/amd64,linux/arm64 -o store -o oci:layout -o oci-archive:image.tar";
    let built = desk.succeed(line);
    let digest = built.split_once('@').unwrap().1;
    for place in ["store:registry.test/tool:v1", "oci:layout", "oci-archive:image.tar"] {
        assert_eq!(desk.succeed(&format!("image digest {place}")), digest, "{place}");
    }
    let arm = desk.inspect("oci:layout --platform linux/arm64");
    assert_eq!(arm["digest"], digest);
    assert_eq!(arm["config"]["architecture"], "arm64");
    assert_eq!(arm["config"]["config"]["Entrypoint"], serde_json::json!(["/tool"]));
    assert_eq!(arm["config"]["config"]["User"], "1000");
    assert_eq!(arm["config"]["config"]["WorkingDir"], "/work");
    let output = desk.run("image diff oci:layout oci-archive:image.tar --platform linux/arm64");
    assert!(output.status.success());
    let error = desk.fail("image inspect oci:layout --platform linux/s390x");
    assert!(
        error.contains("linux/s390x") && error.contains("linux/arm64"),
        "{error}"
    );
    // On top of it, another image of both platforms.
    desk.succeed(
        "image build files -t registry.test/site:v1 --base oci:layout --add programs:/srv --platform linux/amd64,linux/arm64 \
         -o oci:site",
    );
    let site = desk.inspect("oci:site --platform linux/arm64");
    assert_eq!(site["config"]["config"]["Entrypoint"], serde_json::json!(["/tool"]));
    assert_eq!(site["manifest"]["layers"].as_array().unwrap().len(), 2);
}

#[test]
fn an_image_has_a_bill_of_materials_and_names_its_source() {
    let desk = Desk::new();
    let lock = "version = 4\n[[package]]\nname = \"tool\"\nversion = \"1.2.3\"\n";
    fs::write(desk.path("Cargo.lock"), lock).unwrap();
    desk.succeed(
        "image build files -t tool:v1 --add Cargo.lock:/content --sbom Cargo.lock:tool \
         --source https://example.com/tool --revision abc --annotation team=a",
    );
    desk.succeed("image build files -t plain:v1 --add Cargo.lock:/content");
    let output = desk.run("image diff store:plain:v1 store:tool:v1");
    let differences = String::from_utf8(output.stdout).unwrap();
    assert!(differences.contains("usr/share/sbom/tool"), "{differences}");
    let annotations = &desk.inspect("store:tool:v1")["manifest"]["annotations"];
    assert_eq!(
        annotations["org.opencontainers.image.source"],
        "https://example.com/tool"
    );
    assert_eq!(annotations["org.opencontainers.image.revision"], "abc");
    assert_eq!(annotations["team"], "a");
    let error = desk.fail("image build files -t tool:v1 --add Cargo.lock:/content --sbom Cargo.lock:absent");
    assert!(error.contains("no package \"absent\""), "{error}");
}

#[test]
fn errors_name_the_way_out() {
    let desk = Desk::new();
    let cases = [
        ("image build bundle . -t a:v1", "give a bundle directory"),
        ("image build operator absent -t a:v1", "absent: No such file"),
        ("image push absent:v1", "build it first"),
        ("image load Cargo.lock", "is not a tar archive"),
        ("image load absent.tar", "absent.tar: No such file"),
        ("image inspect oci:absent", "absent is not an OCI image layout"),
        (
            "image build files --add Cargo.lock:/a -t a:v1 --platform linux/amd64,linux/arm64 -o docker-archive:a.tar",
            "contains the image of one platform",
        ),
    ];
    fs::write(desk.path("Cargo.lock"), "version = 4\n".repeat(100)).unwrap();
    for (line, expected) in cases {
        let error = desk.fail(line);
        assert!(error.contains(expected), "{line}: {error}");
        assert_eq!(error.lines().count(), 1, "{line}: {error}");
        assert_eq!(error.matches("No such file").count() / 2, 0, "{line}: {error}");
    }
    assert!(!desk.path("a.tar").exists());
    // Docker's manifests have no annotations. They would be lost silently.
    let output = desk.run("image build files --add Cargo.lock:/a -t a:v1 --docker --source https://example.com");
    assert_eq!(output.status.code(), Some(2));
    desk.succeed("image build files --add Cargo.lock:/a -t a:v1");
    let error = desk.fail("image copy store:a:v1 oci-archive:absent/a.tar");
    assert!(
        error.contains("create absent/a.tar: No such file") && !error.contains(".tmp"),
        "{error}"
    );
    // A script in place of a program, and a program that needs more than itself.
    fs::write(desk.path("script"), "#!/bin/sh\n").unwrap();
    let error = desk.fail("image build operator script -t a:v1");
    assert!(
        error.contains("script is refused: it is not a Linux program"),
        "{error}"
    );
    if let Ok(shell) = fs::canonicalize("/bin/sh")
        && Path::new("/lib64/ld-linux-x86-64.so.2").exists()
    {
        let error = desk.fail(&format!("image build operator {} -t a:v1", shell.display()));
        assert!(error.contains("needs shared libraries"), "{error}");
        let error = desk.fail(&format!(
            "image build helper --binary {} --platform linux/arm64 -t a:v1",
            shell.display()
        ));
        assert!(
            error.contains("built for linux/amd64, the image is for linux/arm64"),
            "{error}"
        );
    } else {
        eprintln!("skipped: this machine has no dynamically linked shell for amd64");
    }
    // The registry of that name cannot be reached, and the image is at hand.
    desk.succeed(&format!("image build bundle {} -t registry.invalid/a:v1", bundle()));
    let error = desk.fail("image inspect registry.invalid/a:v1");
    assert!(error.contains("write store:registry.invalid/a:v1"), "{error}");
}

/// Each of these needs the store's lock for reading and for writing.
#[test]
fn the_store_is_source_and_target_at_once() {
    let desk = Desk::new();
    std::fs::write(desk.path("file"), "x").unwrap();
    let digest = |text: String| {
        text.trim()
            .rsplit_once('@')
            .map(|(_, digest)| digest.to_owned())
            .unwrap_or(text)
    };
    let base = digest(desk.succeed("image build files --add file:/file --tag base:v1"));
    desk.succeed("image build files --base store:base:v1 --add file:/other --tag derived:v1");
    assert_eq!(digest(desk.succeed("image copy store:base:v1 store:copy:v1")), base);
    let listed = desk.succeed("image list");
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let names: Vec<&str> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(names, ["base:v1", "copy:v1", "derived:v1"]);
    assert_eq!(rows[1][1], base);
    // A misspelt name removes nothing.
    assert!(desk.fail("image rm base:v1 nosuch:v1").contains("nosuch"));
    assert!(desk.succeed("image list").contains("base:v1"));
    desk.succeed("image rm base:v1 copy:v1");
    assert_eq!(desk.succeed("image list").lines().count(), 2);
    desk.succeed("image prune --all");
    assert_eq!(desk.succeed("image list").lines().count(), 1);
    assert_eq!(std::fs::read_dir(desk.path("store/blobs/sha256")).unwrap().count(), 0);
}

/// Changes the configuration of the only image of a layout.
fn change_config(layout: &Path, change: impl FnOnce(&mut Value)) {
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap();
        layout.join("blobs").join(digest.replace(':', "/"))
    };
    let write = |document: &Value, descriptor: &mut Value| {
        let bytes = serde_json::to_vec(document).unwrap();
        descriptor["digest"] = olmkit_oci::sha256(&bytes).to_string().into();
        descriptor["size"] = bytes.len().into();
        fs::write(blob(descriptor), bytes).unwrap();
    };
    let mut index = read(&layout.join("index.json"));
    let mut manifest = read(&blob(&index["manifests"][0]));
    let mut config = read(&blob(&manifest["config"]));
    change(&mut config);
    write(&config, &mut manifest["config"]);
    write(&manifest, &mut index["manifests"][0]);
    fs::write(layout.join("index.json"), index.to_string()).unwrap();
}

#[test]
fn images_on_a_base_keep_the_fields_that_are_not_set() {
    let desk = Desk::new();
    fs::write(desk.path("file"), "x").unwrap();
    desk.succeed("image build files --add file:/etc/base --cmd old --env A=1 -t base:v1 -o oci:base");
    let kept = serde_json::json!({"Volumes": {"/data": {}}, "StopSignal": "SIGINT", "Healthcheck": {"Test": ["CMD", "/probe"]},
        "Shell": ["/bin/bash", "-c"], "StopTimeout": 7, "OnBuild": ["RUN x"], "User": "7", "New": [null]});
    change_config(&desk.path("base"), |config| {
        config["os.version"] = "10.0".into();
        config["config"]
            .as_object_mut()
            .unwrap()
            .extend(kept.as_object().unwrap().clone());
    });
    // On a base a program may need shared libraries, as this one does.
    fs::copy(std::env::current_exe().unwrap(), desk.path("program")).unwrap();
    desk.succeed("image build operator program --base oci:base -t operator:v1");
    desk.succeed("image build files --add file:/etc/more --base oci:base -t files:v1");
    for (image, cmd, entrypoint) in [
        ("operator", Value::Null, serde_json::json!(["/program"])),
        ("files", serde_json::json!(["old"]), Value::Null),
    ] {
        let config = &desk.inspect(&format!("store:{image}:v1"))["config"];
        assert_eq!(config["os.version"], "10.0", "{image}");
        for (name, value) in kept.as_object().unwrap() {
            assert_eq!(&config["config"][name], value, "{image}: {name}");
        }
        assert_eq!(
            (&config["config"]["Cmd"], &config["config"]["Entrypoint"]),
            (&cmd, &entrypoint)
        );
    }
    // Without a user in the base the operator gets one.
    change_config(&desk.path("base"), |config| config["config"]["User"] = "".into());
    desk.succeed("image build operator program --base oci:base -t operator:v2");
    assert_eq!(
        desk.inspect("store:operator:v2")["config"]["config"]["User"],
        "65532:65532"
    );
}

#[test]
fn docker_archives_have_a_name_with_a_tag_or_none() {
    let desk = Desk::new();
    let name = "registry.test/demo:v1";
    desk.succeed(&format!(
        "image build bundle {} -t {name} -o oci:layout -o store",
        bundle()
    ));
    for (target, expected) in [
        ("named.tar", Some("registry.test/demo:v1")),
        ("named.tar:a.test/b", Some("a.test/b:latest")),
        ("named.tar:a.test/b:v2", Some("a.test/b:v2")),
    ] {
        desk.succeed(&format!("image copy oci:layout docker-archive:{target}"));
        let loaded = desk.succeed("image load named.tar");
        let expected: olmkit_oci::Reference = expected.unwrap().parse().unwrap();
        assert!(loaded.starts_with(&format!("{}@", expected.name())), "{loaded}");
        assert!(desk.succeed("image list").contains(&expected.to_string()));
    }
    // A bare tag, and a digest, are no names.
    desk.succeed("image copy oci:layout oci:tagged:v1");
    desk.succeed("image copy oci:tagged docker-archive:unnamed.tar");
    assert!(desk.fail("image load unnamed.tar").contains("has no name"));
    desk.succeed("image load unnamed.tar --tag c.test/d:v1");
    // Another configuration than the layers' is not written.
    change_config(&desk.path("layout"), |config| {
        config["rootfs"]["diff_ids"] = serde_json::json!([])
    });
    let error = desk.fail("image copy oci:layout docker-archive:wrong.tar");
    assert!(
        error.contains("its manifest has 1 layers, its configuration 0"),
        "{error}"
    );
    assert!(!desk.path("wrong.tar").exists());
}

#[test]
fn only_the_platforms_of_a_build_are_pulled_from_its_base() {
    let document = |value: Value| value.to_string().into_bytes();
    let digest = |bytes: &[u8]| olmkit_oci::sha256(bytes).to_string();
    let described = |kind: &str, bytes: &[u8]| serde_json::json!({"mediaType": format!("application/vnd.oci.image.{kind}.v1+json"), "digest": digest(bytes), "size": bytes.len()});
    let rootfs = serde_json::json!({"type": "layers", "diff_ids": []});
    let config = document(
        serde_json::json!({"os": "linux", "architecture": "amd64", "config": {"User": "7"}, "rootfs": rootfs}),
    );
    let manifest = document(
        serde_json::json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("config", &config), "layers": []}),
    );
    // The other image is not in the registry.
    let entry = |content: &[u8], architecture: &str| {
        let mut entry = described("manifest", content);
        entry["platform"] = serde_json::json!({"os": "linux", "architecture": architecture});
        entry
    };
    let index = document(
        serde_json::json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry(b"gone", "arm64"), entry(&manifest, "amd64")]}),
    );
    let files = vec![
        ("/v2/a/b/manifests/v1".to_owned(), index),
        (format!("/v2/a/b/manifests/{}", digest(&manifest)), manifest),
        (format!("/v2/a/b/blobs/{}", digest(&config)), config),
    ];
    let host = test_support::files::serve(files).replace("http://", "");
    let desk = Desk::new();
    fs::write(desk.path("f"), "x").unwrap();
    let build = format!("image build files -t a:v1 --add f:/f --base {host}/a/b:v1 -o oci:out --no-cache");
    desk.succeed(&format!("{build} --platform linux/amd64"));
    assert_eq!(desk.inspect("oci:out")["config"]["config"]["User"], "7");
    let error = desk.fail(&format!("{build} --platform linux/arm64"));
    assert!(
        error.contains("manifests/sha256") || error.contains("no image"),
        "{error}"
    );
}
