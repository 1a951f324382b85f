//! Runs OLM's unpack job once with the upstream binaries and once with ours, on a real API server: the copied files and
//! the ConfigMaps must be equal. Needs `make tools`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use kube_testbed::{ControlPlane, Options, tools};

/// The content of a ConfigMap for OLM: compression may differ, content may not.
#[derive(Debug, PartialEq, Eq)]
struct Meaning {
    annotations: BTreeMap<String, String>,
    data: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
}

fn meaning(config_map: ConfigMap) -> Meaning {
    let file = |stored: &[u8]| {
        let mut text = String::new();
        let gzip = STANDARD.decode(stored).unwrap();
        flate2::read::GzDecoder::new(gzip.as_slice())
            .read_to_string(&mut text)
            .unwrap();
        text
    };
    let binary = config_map.binary_data.unwrap_or_default();
    Meaning {
        annotations: config_map.metadata.annotations.unwrap_or_default(),
        data: config_map.data.unwrap_or_default(),
        files: binary
            .into_iter()
            .map(|(name, stored)| (name, file(&stored.0)))
            .collect(),
    }
}

/// The programs of one side: what to run for `cpb` and for `opm`.
struct Side {
    name: &'static str,
    cpb: Vec<PathBuf>,
    opm: Vec<PathBuf>,
}

impl Side {
    /// Copies a bundle as the second container of the job does and extracts it as the third does.
    fn alpha_bundle_extract(
        &self,
        bundle: &Path,
        config_map: &str,
        kubeconfig: &Path,
    ) -> (BTreeMap<PathBuf, Vec<u8>>, bool) {
        let image = tempfile::tempdir().unwrap();
        assert!(
            Command::new("cp")
                .arg("-r")
                .arg(bundle.join("."))
                .arg(image.path())
                .status()
                .unwrap()
                .success()
        );
        let copy = Command::new(&self.cpb[0])
            .args(&self.cpb[1..])
            .arg("/bundle")
            .current_dir(image.path())
            .output()
            .unwrap();
        assert!(
            copy.status.success(),
            "{}: {}",
            self.name,
            String::from_utf8_lossy(&copy.stderr)
        );
        let copied = image.path().join("bundle");
        let extract = Command::new(&self.opm[0])
            .args(&self.opm[1..])
            .args([
                "alpha", "bundle", "extract", "-n", "default", "-c", config_map, "-z", "-m",
            ])
            .arg(format!("{}/", copied.display()))
            .env("CONTAINER_IMAGE", "registry.example.com/bundle:v1")
            .env("KUBECONFIG", kubeconfig)
            .output()
            .unwrap();
        (files(&copied), extract.status.success())
    }
}

fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    walkdir::WalkDir::new(directory)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            (
                entry.path().strip_prefix(directory).unwrap().to_owned(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect()
}

/// Our own bundles and, where it is, some of the corpus.
fn bundles() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    let mut bundles = vec![root.join("bundle")];
    bundles.extend(
        fs::read_dir(root.join("releases"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path().join("bundle")),
    );
    if let Some(corpus) = test_support::corpus("bundles") {
        let mut more: Vec<PathBuf> = fs::read_dir(corpus)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        more.sort();
        bundles.extend(more.into_iter().step_by(40).take(25));
    }
    bundles.retain(|bundle| bundle.join("manifests").is_dir() && bundle.join("metadata/annotations.yaml").is_file());
    bundles
}

/// A bundle that is too large, one with a directory among its manifests, one whose file names are no keys.
fn odd_bundles(directory: &Path) -> Vec<PathBuf> {
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
        operators.operatorframework.io.bundle.package.v1: odd\n";
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..900 << 10)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'a' + ((state >> 33) % 26) as u8
        })
        .collect();
    let bundle = |name: &str, files: &[(&str, &[u8])]| {
        let root = directory.join(name);
        fs::create_dir_all(root.join("metadata")).unwrap();
        fs::write(root.join("metadata/annotations.yaml"), annotations).unwrap();
        for (path, bytes) in files {
            let path = root.join("manifests").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        root
    };
    vec![
        bundle("large", &[("a.yaml", &noise), ("b.yaml", &noise)]),
        bundle("nested", &[("a.yaml", b"a"), ("crds/b.yaml", b"b")]),
        bundle(
            "names",
            &[
                ("a b+c.yaml", b"1"),
                ("a-b-c.yaml", b"2"),
                (".hidden", b"3"),
                ("annotations.yaml", annotations.as_bytes()),
            ],
        ),
    ]
}

#[tokio::test]
async fn bundles_are_unpacked_as_upstream_does() {
    let (Ok(opm), Ok(cpb)) = (tools::program("opm"), tools::program("cpb")) else {
        eprintln!("skipped: upstream's opm and cpb are not built; `dev/tools/build.sh` builds them");
        return;
    };
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_olmkit"));
    let sides = [
        Side {
            name: "upstream",
            cpb: vec![cpb],
            opm: vec![opm],
        },
        Side {
            name: "ours",
            cpb: vec![binary.clone(), "cpb".into()],
            opm: vec![binary, "opm".into()],
        },
    ];
    let control_plane = ControlPlane::start(Options::default()).await.unwrap();
    let config_maps: Api<ConfigMap> = Api::namespaced(control_plane.client().await.unwrap(), "default");
    let directory = tempfile::tempdir().unwrap();
    let all = [bundles(), odd_bundles(directory.path())].concat();
    assert!(all.len() >= 4);
    for (number, bundle) in all.iter().enumerate() {
        let mut results = Vec::new();
        for side in &sides {
            let name = format!("bundle-{number}-{}", side.name);
            let mut empty = ConfigMap::default();
            empty.metadata.name = Some(name.clone());
            config_maps.create(&PostParams::default(), &empty).await.unwrap();
            let (copied, success) = side.alpha_bundle_extract(bundle, &name, control_plane.kubeconfig());
            results.push((copied, success, meaning(config_maps.get(&name).await.unwrap())));
        }
        assert_eq!(results[0], results[1], "{}", bundle.display());
    }
    eprintln!("{} bundles compared", all.len());
}

/// The supported credentials: certificates of a plugin, and the token of a service account with exactly OLM's
/// permissions.
#[tokio::test]
async fn credentials_come_from_plugins_and_tokens() {
    let control_plane = ControlPlane::start(Options::default()).await.unwrap();
    let config_maps: Api<ConfigMap> = Api::namespaced(control_plane.client().await.unwrap(), "default");
    let directory = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(control_plane.kubeconfig()).unwrap();
    let mut kubeconfig: serde_json::Value = serde_yaml::from_str(&text).unwrap();
    let pem = |key: &str| fs::read_to_string(kubeconfig["users"][0]["user"][key].as_str().unwrap()).unwrap();
    let credential = serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"clientCertificateData": pem("client-certificate"), "clientKeyData": pem("client-key")},
    });
    fs::write(directory.path().join("credential.json"), credential.to_string()).unwrap();
    kubeconfig["users"][0]["user"] = serde_json::json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", "case $KUBERNETES_EXEC_INFO in *ExecCredential*) cat \"$FILE\" ;; esac"],
        "env": [{"name": "FILE", "value": directory.path().join("credential.json")}],
        "interactiveMode": "Never",
    }});
    let path = directory.path().join("kubeconfig");
    fs::write(&path, kubeconfig.to_string()).unwrap();

    let mut empty = ConfigMap::default();
    empty.metadata.name = Some("bundle".into());
    config_maps.create(&PostParams::default(), &empty).await.unwrap();
    let bundle = test_support::demo_bundle::path();
    let extract = |kubeconfig: &Path, name: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_olmkit-helper"))
            .args([
                "opm", "alpha", "bundle", "extract", "-n", "default", "-z", "-c", name, "-m",
            ])
            .arg(&bundle)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env_remove("KUBECONFIG")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = extract(&path, "bundle");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        !meaning(config_maps.get("bundle").await.unwrap()).files.is_empty(),
        "the bundle is there"
    );
    let (code, said) = extract(&path, "absent");
    assert_eq!(code, Some(1));
    assert!(
        said.contains(r#"get ConfigMap default/absent: configmaps "absent" not found"#),
        "{said}"
    );

    let account = control_plane
        .service_account_kubeconfig("default", "default")
        .await
        .unwrap();
    let (code, said) = extract(&account, "bundle");
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot get resource"), "{said}");
}
