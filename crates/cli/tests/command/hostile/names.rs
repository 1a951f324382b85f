//! Names that refer to paths or hosts that their authors may not write or read.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::json;

fn run(directory: &std::path::Path, arguments: &[&str], input: &str) -> Output {
    assert_cmd::Command::cargo_bin("olmkit")
        .unwrap()
        .args(arguments)
        .current_dir(directory)
        .env("HOME", directory)
        .write_stdin(input)
        .timeout(Duration::from_secs(60))
        .output()
        .unwrap()
}

#[track_caller]
fn refused(output: &Output) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

#[test]
fn objects_are_not_written_beside_the_bundle() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("project");
    std::fs::create_dir(&directory).unwrap();
    let absolute = root.path().join("abs").display().to_string();
    for name in [absolute.as_str(), "../x", "../../../x", "a/../../../x", "a\\b"] {
        for (kind, version) in [
            ("ConfigMap", "v1"),
            ("PriorityClass", "scheduling.k8s.io/v1"),
            ("Service", "v1"),
        ] {
            let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
            let arguments = ["generate", "bundle", "--package", "demo", "--version", "0.1.0"];
            let said = refused(&run(&directory, &arguments, &object.to_string()));
            assert!(
                said.contains(kind) && said.contains("cannot be the name of a file"),
                "{said}"
            );
        }
    }
    for package in [absolute.as_str(), "../x"] {
        let arguments = ["generate", "bundle", "--version", "0.1.0", "--package", package];
        refused(&run(&directory, &arguments, "kind: List\napiVersion: v1\nitems: []\n"));
        refused(&run(
            &directory,
            &["generate", "kustomize", "manifests", "--package", package],
            "",
        ));
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn a_picture_of_nothing_is_an_error_and_one_of_a_dense_channel_ends() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| {
        std::fs::create_dir(directory.path().join(name)).unwrap();
        std::fs::write(directory.path().join(name).join("catalog.json"), text).unwrap();
    };
    write("empty", String::new());
    let entries: Vec<_> = (0..30)
        .map(|number: usize| {
            let name = |number: usize| format!("p.v{number}");
            let skips: Vec<_> = (number.saturating_sub(11)..number.saturating_sub(1)).map(name).collect();
            json!({"name": name(number), "replaces": number.checked_sub(1).map(name).unwrap_or_default(), "skips": skips})
        })
        .collect();
    let channel = json!({"schema": "olm.channel", "package": "p", "name": "c", "entries": entries});
    write("dense", channel.to_string());
    let graph = |arguments: &[&str]| run(directory.path(), &[&["catalog", "graph"], arguments].concat(), "");
    assert!(refused(&graph(&["empty", "-o", "svg"])).contains("no channels"));
    assert!(refused(&graph(&["dense", "-o", "svg", "-p", "nosuch"])).contains("nosuch"));
    assert!(refused(&graph(&["dense", "-o", "svg", "-c", "nosuch"])).contains("nosuch"));
    for format in ["svg", "dot", "mermaid"] {
        let started = Instant::now();
        let output = graph(&["dense", "-o", format, "-p", "p"]);
        assert!(
            output.status.success() && started.elapsed() < Duration::from_secs(60),
            "{format}"
        );
    }
}

#[test]
fn limits_name_their_way_out_and_are_raised_by_it() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("catalog")).unwrap();
    let text = format!("schema: olm.package\nname: p\ndescription: {}\n", "x".repeat(2000));
    std::fs::write(directory.path().join("catalog/catalog.yaml"), text).unwrap();
    let render = |limit| {
        run(
            directory.path(),
            &["catalog", "render", "catalog", "--limit", limit],
            "",
        )
    };
    let said = refused(&render("catalog-file=1KiB"));
    assert!(
        said.contains("larger than 1 KiB") && said.contains("--limit catalog-file="),
        "{said}"
    );
    assert!(render("catalog-file=1MiB").status.success());
    let output = render("nosuch=1");
    assert_eq!(output.status.code(), Some(2));
    // A pipe in a catalog would be waited for without end.
    let made = std::process::Command::new("mkfifo")
        .arg(directory.path().join("catalog/pipe.yaml"))
        .status();
    assert!(made.unwrap().success());
    assert!(refused(&render("catalog-file=1MiB")).contains("not a regular file"));
}

/// A registry that answers a request for any digest with another one.
#[test]
fn a_pinned_reference_has_no_other_digest() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or_default();
            let body = r#"{"schemaVersion": 2}"#;
            let head = request[..length].starts_with(b"HEAD");
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.oci.image.manifest.v1+json\r\nConnection: close\r\n\
                 Docker-Content-Digest: sha256:{}\r\nContent-Length: {}\r\n\r\n{}",
                "a".repeat(64),
                body.len(),
                if head { "" } else { body }
            );
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let reference = format!("{address}/x@sha256:{}", "b".repeat(64));
    let output = run(directory.path(), &["image", "digest", &reference], "");
    let said = refused(&output);
    assert!(output.stdout.is_empty() && said.contains(&"b".repeat(64)), "{said}");
}
