//! The objects of a run: ConfigMaps with the bundle's files, and a pod for each test.
//!
//! The files are mounted uncompressed, so no image is needed to unpack them, and there may be as many ConfigMaps as the
//! bundle needs. Only a file that is larger than a ConfigMap requires an archive, which an init container unpacks.

use std::collections::BTreeSet;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use olmkit::scorecard::TestConfiguration;
use serde_json::{Map, Value, json};

use super::options::{GRACE, Options, PodSecurity};
use crate::base::json::text;

/// The container with the test.
pub const TEST: &str = "scorecard-test";
/// The init container that unpacks the bundle.
pub const UNTAR: &str = "scorecard-untar";
/// The container that provides the test's files.
pub const GATHER: &str = "scorecard-gather";

/// The label of all objects of scorecard.
const APP: (&str, &str) = ("app", "scorecard-test");
/// The label with the name of the run.
pub const RUN: &str = "testrun";

/// Maximum data of one ConfigMap. The API server rejects more than 1 MiB of values. Names and metadata come on top.
const CONFIG_MAP_BYTES: usize = 900_000;
/// Maximum ConfigMaps of a bundle, which bounds the data that a run stores in the cluster.
const CONFIG_MAPS: usize = 100;

/// Transfer of the bundle into the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// The ConfigMaps.
    pub config_maps: Vec<Value>,
    way: Way,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// Each file is a value of a ConfigMap. These are the volume's sources and the names at the bundle's root.
    Files {
        sources: Vec<Value>,
        roots: BTreeSet<String>,
    },
    /// The values together are an archive.
    Archive { sources: Vec<Value> },
}

/// Packs a bundle's files, given by their paths relative to its root.
///
/// # Errors
/// If the bundle is too large for either way. The message contains its size.
pub fn pack(run: &str, namespace: &str, files: &[(String, &[u8])], untar: bool) -> Result<Parcel, String> {
    let fits = files.iter().all(|(_, bytes)| bytes.len() <= CONFIG_MAP_BYTES);
    let mut boxes = Boxes::default();
    let way = if fits && !untar {
        for (number, (path, bytes)) in files.iter().enumerate() {
            boxes.add(format!("file-{number}"), bytes, path);
        }
        let root = |path: &String| path.split('/').next().unwrap_or_default().to_owned();
        Way::Files {
            sources: boxes.sources(run),
            roots: files.iter().map(|(path, _)| root(path)).collect(),
        }
    } else {
        let archive = archive(files).map_err(|error| format!("the bundle cannot be archived: {error}"))?;
        for (number, part) in archive.chunks(CONFIG_MAP_BYTES).enumerate() {
            // Zero-padded, so that a shell lists the parts in order.
            let name = format!("part-{number:04}");
            boxes.add(name.clone(), part, &name);
        }
        Way::Archive {
            sources: boxes.sources(run),
        }
    };
    if boxes.full.len() > CONFIG_MAPS {
        let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        let limit = CONFIG_MAPS * CONFIG_MAP_BYTES;
        return Err(format!("the bundle has {bytes} bytes; a pod accepts at most {limit}"));
    }
    Ok(Parcel {
        config_maps: boxes.config_maps(run, namespace),
        way,
    })
}

/// Values, distributed over ConfigMaps in their order.
#[derive(Default)]
struct Boxes {
    full: Vec<Vec<(String, String, String)>>,
    room: usize,
}

impl Boxes {
    fn add(&mut self, key: String, bytes: &[u8], path: &str) {
        if self.full.is_empty() || bytes.len() > self.room {
            self.full.push(Vec::new());
            self.room = CONFIG_MAP_BYTES;
        }
        self.room -= bytes.len().min(self.room);
        if let Some(last) = self.full.last_mut() {
            last.push((key, BASE64.encode(bytes), path.to_owned()));
        }
    }

    fn config_maps(self, run: &str, namespace: &str) -> Vec<Value> {
        let object = |(number, values): (usize, Vec<(String, String, String)>)| {
            let values: Map<String, Value> = values.into_iter().map(|(key, value, _)| (key, value.into())).collect();
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name(run, number), "namespace": namespace, "labels": labels(run)},
                "binaryData": values,
            })
        };
        self.full.into_iter().enumerate().map(object).collect()
    }

    /// The sources of a projected volume.
    fn sources(&self, run: &str) -> Vec<Value> {
        let source = |(number, values): (usize, &Vec<(String, String, String)>)| {
            let items: Vec<Value> = values
                .iter()
                .map(|(key, _, path)| json!({"key": key, "path": path}))
                .collect();
            json!({"configMap": {"name": name(run, number), "items": items}})
        };
        self.full.iter().enumerate().map(source).collect()
    }
}

/// The name of a run's ConfigMap. The first has the run's own.
fn name(run: &str, number: usize) -> String {
    match number {
        0 => run.to_owned(),
        number => format!("{run}-{number}"),
    }
}

fn labels(run: &str) -> Value {
    json!({APP.0: APP.1, RUN: run})
}

fn archive(files: &[(String, &[u8])]) -> std::io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::default(),
    ));
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, *bytes)?;
    }
    let mut gzip = builder.into_inner()?;
    gzip.flush()?;
    gzip.finish()
}

/// The pod of a test. `owner` is the run's first ConfigMap as the API server returned it, so that leftovers of a run
/// are deleted with it.
pub fn pod(
    (run, number, namespace): (&str, usize, &str),
    test: &TestConfiguration,
    account: &str,
    parcel: &Parcel,
    owner: &Value,
    options: &Options,
) -> Value {
    let context = match options.security {
        PodSecurity::Restricted => json!({
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        }),
        PodSecurity::Legacy => json!({}),
    };
    let (mounts, mut volumes, init) = bundle_in_pod(parcel, &context, options);
    let mut container = json!({
        "name": TEST,
        "image": test.image,
        "env": [{"name": "SCORECARD_NAMESPACE", "value": namespace}],
        "volumeMounts": mounts,
        "securityContext": context,
    });
    if let (false, Some(container)) = (test.entrypoint.is_empty(), container.as_object_mut()) {
        container.insert("command".to_owned(), json!(test.entrypoint));
    }
    let mut containers = Vec::new();
    let storage = &test.storage.spec.mount_path.path;
    if !storage.is_empty() {
        let mount = json!({"name": "storage", "mountPath": storage});
        push(&mut container, "volumeMounts", mount.clone());
        push(
            &mut container,
            "env",
            json!({"name": "SCORECARD_STORAGE", "value": storage}),
        );
        volumes.push(json!({"name": "storage", "emptyDir": {}}));
        containers.push(json!({
            "name": GATHER,
            "image": options.storage_image,
            "command": ["sleep", (options.limit.as_secs() + GRACE.as_secs()).to_string()],
            "volumeMounts": [mount],
            "securityContext": context,
        }));
    }
    containers.insert(0, container);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{run}-test-{number}"),
            "namespace": namespace,
            "labels": labels(run),
            "ownerReferences": [{
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": text(owner, "/metadata/name"),
                "uid": text(owner, "/metadata/uid"),
            }],
        },
        "spec": {
            "serviceAccountName": account,
            "restartPolicy": "Never",
            // The node ends it, also when this program was killed.
            "activeDeadlineSeconds": options.limit.as_secs() + GRACE.as_secs(),
            "terminationGracePeriodSeconds": 1,
            "initContainers": init,
            "containers": containers,
            "volumes": volumes,
        },
    })
}

/// The mounts of the bundle at `/bundle`, the volumes, and the init containers that they need.
fn bundle_in_pod(parcel: &Parcel, context: &Value, options: &Options) -> (Vec<Value>, Vec<Value>, Vec<Value>) {
    match &parcel.way {
        // One mount for each name at the root, which is then a real directory: the root of such a volume contains only
        // links, and programs that walk a bundle do not follow them.
        Way::Files { sources, roots } => {
            let mount = |root: &String| json!({"name": "bundle", "mountPath": format!("/bundle/{root}"), "subPath": root, "readOnly": true});
            let volume = json!({"name": "bundle", "projected": {"sources": sources}});
            (roots.iter().map(mount).collect(), vec![volume], Vec::new())
        }
        Way::Archive { sources } => {
            let unpack = json!({
                "name": UNTAR,
                "image": options.untar_image,
                "command": ["sh", "-c", "cat /scorecard/part-* | tar xzf - -C /scorecard-bundle"],
                "volumeMounts": [
                    {"name": "archive", "mountPath": "/scorecard", "readOnly": true},
                    {"name": "bundle", "mountPath": "/scorecard-bundle"},
                ],
                "securityContext": context,
            });
            (
                vec![json!({"name": "bundle", "mountPath": "/bundle", "readOnly": true})],
                vec![
                    json!({"name": "archive", "projected": {"sources": sources}}),
                    json!({"name": "bundle", "emptyDir": {}}),
                ],
                vec![unpack],
            )
        }
    }
}

fn push(object: &mut Value, list: &str, item: Value) {
    if let Some(Value::Array(items)) = object.get_mut(list) {
        items.push(item);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use olmkit::scorecard::{MountPath, Storage, StorageSpec};

    use super::*;

    fn options() -> Options {
        Options {
            limit: Duration::from_secs(20),
            ..Options::default()
        }
    }

    fn made(files: &[(String, &[u8])], test: &TestConfiguration, options: &Options) -> (Parcel, Value) {
        let parcel = pack("run", "ns", files, false).unwrap();
        let owner = json!({"metadata": {"name": "run", "uid": "u"}});
        let pod = pod(("run", 0, "ns"), test, "default", &parcel, &owner, options);
        (parcel, pod)
    }

    #[test]
    fn files_of_a_bundle_are_mounted_without_an_image_that_unpacks_them() {
        let files = [
            ("manifests/a.yaml".to_owned(), b"a".as_slice()),
            ("metadata/annotations.yaml".to_owned(), b"b".as_slice()),
        ];
        let test = TestConfiguration {
            image: "example.com/test:1".to_owned(),
            entrypoint: vec!["/test".to_owned()],
            ..TestConfiguration::default()
        };
        let (parcel, pod) = made(&files, &test, &options());
        assert_eq!(parcel.config_maps.len(), 1);
        assert_eq!(parcel.config_maps[0]["binaryData"]["file-0"], BASE64.encode("a"));
        assert_eq!(pod["spec"]["initContainers"], json!([]));
        let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array().unwrap();
        let places: Vec<_> = mounts
            .iter()
            .map(|mount| mount["mountPath"].as_str().unwrap())
            .collect();
        assert_eq!(places, ["/bundle/manifests", "/bundle/metadata"]);
        assert_eq!(pod["spec"]["containers"][0]["command"], json!(["/test"]));
        assert_eq!(pod["spec"]["containers"][0]["securityContext"]["runAsNonRoot"], true);
    }

    #[test]
    fn a_bundle_may_need_several_config_maps() {
        let half = vec![b'x'; CONFIG_MAP_BYTES / 2 + 1];
        let files: Vec<_> = (0..3)
            .map(|number| (format!("manifests/{number}"), half.as_slice()))
            .collect();
        let parcel = pack("run", "ns", &files, false).unwrap();
        let names: Vec<_> = parcel
            .config_maps
            .iter()
            .map(|map| map["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["run", "run-1", "run-2"]);
    }

    #[test]
    fn a_file_larger_than_a_config_map_travels_in_an_archive() {
        let large: Vec<u8> = (0..3 * CONFIG_MAP_BYTES as u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let files = [("manifests/large".to_owned(), large.as_slice())];
        let (parcel, pod) = made(&files, &TestConfiguration::default(), &options());
        assert_eq!(pod["spec"]["initContainers"][0]["name"], UNTAR);
        let mut archive = Vec::new();
        for map in &parcel.config_maps {
            for value in map["binaryData"].as_object().unwrap().values() {
                archive.extend(BASE64.decode(value.as_str().unwrap()).unwrap());
            }
        }
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()));
        let mut entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.path().unwrap().to_str(), Some("manifests/large"));
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
        assert!(bytes == large);
        assert_eq!(entry.size(), large.len() as u64);
    }

    #[test]
    fn a_bundle_that_no_cluster_would_hold_is_refused() {
        let large = vec![b'x'; CONFIG_MAP_BYTES];
        let files: Vec<_> = (0..=CONFIG_MAPS)
            .map(|number| (format!("manifests/{number}"), large.as_slice()))
            .collect();
        let error = pack("run", "ns", &files, false).unwrap_err();
        assert!(error.contains("a pod accepts at most 90000000"), "{error}");
    }

    #[test]
    fn storage_brings_a_second_container() {
        let test = TestConfiguration {
            storage: Storage {
                spec: StorageSpec {
                    mount_path: MountPath {
                        path: "/out".to_owned(),
                    },
                },
            },
            ..TestConfiguration::default()
        };
        let (_, pod) = made(&[], &test, &options());
        assert_eq!(pod["spec"]["containers"][1]["name"], GATHER);
        assert_eq!(
            pod["spec"]["containers"][0]["env"][1],
            json!({"name": "SCORECARD_STORAGE", "value": "/out"})
        );
        let legacy = Options {
            security: PodSecurity::Legacy,
            ..options()
        };
        let (_, pod) = made(&[], &test, &legacy);
        assert_eq!(pod["spec"]["containers"][1]["securityContext"], json!({}));
    }
}
