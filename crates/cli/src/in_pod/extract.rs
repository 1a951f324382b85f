//! `opm alpha bundle extract`: from a bundle directory to the ConfigMap that OLM reads.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;

use super::api_server::{ApiServer, RequestError};
use super::{Error, kubeconfig};
use olmkit::object::{dns1123_label_problems, dns1123_subdomain_problems};
use olmkit::yaml;

/// The annotations that OLM reads back, in the order of the file.
const ANNOTATIONS: [&str; 6] = [
    "operators.operatorframework.io.bundle.manifests.v1",
    "operators.operatorframework.io.bundle.mediatype.v1",
    "operators.operatorframework.io.bundle.metadata.v1",
    "operators.operatorframework.io.bundle.package.v1",
    "operators.operatorframework.io.bundle.channels.v1",
    "operators.operatorframework.io.bundle.channel.default.v1",
];
const ANNOTATIONS_FILE: &str = "annotations.yaml";
const SOURCE_IMAGE: &str = "olm.sourceImage";
const CONTENT_ENCODING: &str = "olm.contentEncoding";
/// No file is read that could not fit the limit even if it were compressed a thousandfold.
const READ_LIMIT_FACTOR: u64 = 1024;
/// A ConfigMap that changed between reading and writing is read again this often.
const CONFLICTS: u32 = 5;

/// Source and target of the extraction.
#[derive(Debug, Clone)]
pub struct Extraction {
    /// Directory with `manifests/` and `metadata/`.
    pub directory: PathBuf,
    /// Name of the ConfigMap, which must exist.
    pub config_map: String,
    /// Its namespace.
    pub namespace: String,
    /// Limit in bytes for the sum of the stored files.
    pub limit: u64,
    /// True if files are stored as base64 of gzip.
    pub gzip: bool,
    /// The bundle image, recorded in an annotation.
    pub source_image: Option<String>,
}

/// Reads the bundle and updates the ConfigMap. Only get and update on that one object are needed: that is all OLM
/// grants.
pub async fn extract(extraction: &Extraction, kubeconfig: Option<&Path>) -> Result<(), Error> {
    check_names(extraction)?;
    // Errors of the bundle are reported before the first request.
    bundle_config_map(extraction, ConfigMap::default())?;
    let server = ApiServer::new(&kubeconfig::config(kubeconfig).await?).await?;
    let (namespace, name) = (&extraction.namespace, &extraction.config_map);
    let failed = |action: &'static str| {
        move |error: RequestError| Error::Cluster {
            action,
            namespace: namespace.clone(),
            name: name.clone(),
            reason: error.reason,
        }
    };
    let mut conflicts = 0;
    loop {
        let current = server.get(namespace, name).await.map_err(failed("get"))?;
        let filled = bundle_config_map(extraction, current)?;
        match server.replace(namespace, name, &filled).await {
            Ok(_) => return Ok(()),
            Err(refusal) if refusal.status == 409 && conflicts < CONFLICTS => conflicts += 1,
            Err(refusal) => return Err(failed("update")(refusal)),
        }
    }
}

/// The names become parts of a path of the API server.
fn check_names(extraction: &Extraction) -> Result<(), Error> {
    let (name, namespace) = (&extraction.config_map, &extraction.namespace);
    for (flag, text, problems) in [
        ("--configmapname", name, dns1123_subdomain_problems(name)),
        ("--namespace", namespace, dns1123_label_problems(namespace)),
    ] {
        if let Some(problem) = problems.first() {
            return Err(Error::Usage(format!("{flag} {text:?} is not a name: {problem}")));
        }
    }
    Ok(())
}

/// Fills a ConfigMap with a bundle. Data and the annotations of earlier contents are replaced.
pub fn bundle_config_map(extraction: &Extraction, mut config_map: ConfigMap) -> Result<ConfigMap, Error> {
    let mut data = BTreeMap::new();
    let mut binary_data = BTreeMap::new();
    let mut size = 0;
    for path in files(&extraction.directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let content = read(&path, extraction.limit)?;
        if name == ANNOTATIONS_FILE {
            config_map.metadata.annotations = Some(annotations(&path, &content)?);
            continue;
        }
        let stored = if extraction.gzip { encode(&content) } else { content };
        size += stored.len() as u64;
        if size > extraction.limit {
            return Err(Error::TooLarge {
                limit: extraction.limit,
                size,
                path,
            });
        }
        let key = key(&name);
        if extraction.gzip {
            binary_data.insert(key, ByteString(stored));
        } else {
            let text = String::from_utf8(stored).map_err(|error| Error::File {
                action: "read",
                path,
                source: std::io::Error::new(std::io::ErrorKind::InvalidData, error),
            })?;
            data.insert(key, text);
        }
    }
    let annotations = config_map.metadata.annotations.get_or_insert_default();
    if let Some(image) = extraction.source_image.as_ref().filter(|image| !image.is_empty()) {
        annotations.insert(SOURCE_IMAGE.to_owned(), image.clone());
    }
    if extraction.gzip {
        annotations.insert(CONTENT_ENCODING.to_owned(), "gzip+base64".to_owned());
    }
    config_map.data = (!data.is_empty()).then_some(data);
    config_map.binary_data = (!binary_data.is_empty()).then_some(binary_data);
    Ok(config_map)
}

/// The files of `manifests/`, then those of `metadata/`, each in the order of names. Files of the same name in both are
/// allowed. The later one wins.
fn files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut all = Vec::new();
    for folder in ["manifests", "metadata"] {
        let folder = directory.join(folder);
        let entries = fs::read_dir(&folder).map_err(Error::file("read", &folder))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(Error::file("read", &folder))?.path());
        }
        paths.sort();
        all.extend(paths);
    }
    Ok(all)
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    if path.is_dir() && !path.is_symlink() {
        let source = std::io::Error::new(
            std::io::ErrorKind::IsADirectory,
            "a bundle must not contain directories below manifests/ and metadata/",
        );
        return Err(Error::File {
            action: "read",
            path: path.to_owned(),
            source,
        });
    }
    let metadata = super::regular(path)?;
    let read_limit = limit.saturating_mul(READ_LIMIT_FACTOR);
    if metadata.len() > read_limit {
        return Err(Error::TooLarge {
            limit,
            size: metadata.len(),
            path: path.to_owned(),
        });
    }
    fs::read(path).map_err(Error::file("read", path))
}

/// base64 of gzip, which the API server's own encoding of binary data wraps once more.
fn encode(content: &[u8]) -> Vec<u8> {
    let mut gzip = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let _ = gzip.write_all(content);
    STANDARD.encode(gzip.finish().unwrap_or_default()).into_bytes()
}

/// Replaces characters that are not allowed in ConfigMap keys by `-`.
fn key(name: &str) -> String {
    name.chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || "-_.".contains(letter) {
                letter
            } else {
                '-'
            }
        })
        .collect()
}

/// The six values of the annotations file, empty where it has none.
fn annotations(path: &Path, content: &[u8]) -> Result<BTreeMap<String, String>, Error> {
    let invalid = |reason: String| Error::Annotations {
        path: path.to_owned(),
        reason,
    };
    let document = yaml::parse(content)
        .and_then(|node| node.to_json())
        .map_err(|error| invalid(error.to_string()))?;
    let map = document.get("annotations").and_then(serde_json::Value::as_object);
    let mut found = BTreeMap::new();
    for name in ANNOTATIONS {
        let value = match map.and_then(|map| map.get(name)) {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(_) => return Err(invalid(format!("the value of {name} must be a string; quote it"))),
        };
        found.insert(name.to_owned(), value);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn extraction(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Extraction) {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let extraction = Extraction {
            directory: folder.path().to_owned(),
            config_map: "c".to_owned(),
            namespace: "n".to_owned(),
            limit: 1 << 20,
            gzip: true,
            source_image: Some("r.io/bundle:v1".to_owned()),
        };
        (folder, extraction)
    }

    const ANNOTATIONS_TEXT: &[u8] = b"annotations:\n  operators.operatorframework.io.bundle.package.v1: p\n  \
        operators.operatorframework.io.bundle.channels.v1: alpha,beta\n  com.example: other\n";

    #[test]
    fn the_config_map_holds_what_olm_expects() {
        let (_folder, extraction) = extraction(&[
            ("manifests/my operator.yaml", b"kind: A\n"),
            ("metadata/annotations.yaml", ANNOTATIONS_TEXT),
            ("metadata/properties.yaml", b"properties: []\n"),
        ]);
        let mut before = ConfigMap::default();
        before.metadata.annotations = Some([("old".to_owned(), "gone".to_owned())].into());
        before.metadata.resource_version = Some("7".to_owned());
        let filled = bundle_config_map(&extraction, before).unwrap();
        let annotations = filled.metadata.annotations.unwrap();
        let prefix = "operators.operatorframework.io.bundle.";
        let mut expected: BTreeMap<String, String> = ANNOTATIONS
            .into_iter()
            .map(|name| (name.to_owned(), String::new()))
            .collect();
        expected.insert(format!("{prefix}package.v1"), "p".to_owned());
        expected.insert(format!("{prefix}channels.v1"), "alpha,beta".to_owned());
        expected.insert("olm.contentEncoding".to_owned(), "gzip+base64".to_owned());
        expected.insert("olm.sourceImage".to_owned(), "r.io/bundle:v1".to_owned());
        assert_eq!(annotations, expected);
        assert_eq!(filled.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(filled.data, None);
        let binary = filled.binary_data.unwrap();
        assert_eq!(
            binary.keys().collect::<Vec<_>>(),
            ["my-operator.yaml", "properties.yaml"]
        );
        let gzip = STANDARD.decode(&binary["my-operator.yaml"].0).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(gzip.as_slice())
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "kind: A\n");
    }

    #[test]
    fn without_gzip_the_text_itself_is_stored() {
        let (_folder, mut extraction) = extraction(&[
            ("manifests/a.yaml", b"a"),
            ("metadata/annotations.yaml", ANNOTATIONS_TEXT),
        ]);
        extraction.gzip = false;
        extraction.source_image = None;
        let filled = bundle_config_map(&extraction, ConfigMap::default()).unwrap();
        assert_eq!(filled.data.unwrap()["a.yaml"], "a");
        assert_eq!(filled.binary_data, None);
        assert_eq!(filled.metadata.annotations.unwrap().len(), ANNOTATIONS.len());
    }

    #[test]
    fn the_limit_counts_stored_bytes() {
        // Bytes without repetition cannot be compressed: gzip adds 18 bytes and more, base64 a third.
        let noise: Vec<u8> = (0..3000_u32)
            .flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        let (_folder, mut extraction) = extraction(&[
            ("manifests/a", noise.as_slice()),
            ("metadata/annotations.yaml", ANNOTATIONS_TEXT),
        ]);
        let stored = encode(&noise).len() as u64;
        extraction.limit = stored;
        assert!(bundle_config_map(&extraction, ConfigMap::default()).is_ok());
        extraction.limit = stored - 1;
        let error = bundle_config_map(&extraction, ConfigMap::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("bundle files exceeded {} bytes limit", stored - 1)),
            "{error}"
        );
    }

    #[test]
    fn links_and_devices_are_refused() {
        for target in ["/proc/self/environ", "/dev/zero", "other.yaml"] {
            let (folder, extraction) = extraction(&[
                ("manifests/other.yaml", b"kind: Service"),
                ("metadata/annotations.yaml", ANNOTATIONS_TEXT),
            ]);
            std::os::unix::fs::symlink(target, folder.path().join("manifests/link.yaml")).unwrap();
            let error = bundle_config_map(&extraction, ConfigMap::default())
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("link.yaml") && error.contains("only regular files"),
                "{error}"
            );
        }
    }

    #[test]
    fn names_lead_to_no_other_path_of_the_api_server() {
        let (_folder, fine) = extraction(&[]);
        assert!(check_names(&fine).is_ok());
        for name in ["../secrets/x", "a/b", "a?b", "a%2fb", "", "..", "A", "a#b"] {
            let other = Extraction {
                config_map: name.to_owned(),
                ..fine.clone()
            };
            assert!(check_names(&other).is_err(), "{name}");
            let other = Extraction {
                namespace: name.to_owned(),
                ..fine.clone()
            };
            assert!(check_names(&other).is_err(), "{name}");
        }
    }

    #[test]
    fn directories_below_the_manifests_fail() {
        let (_folder, extraction) = extraction(&[
            ("manifests/crds/a.yaml", b"a"),
            ("metadata/annotations.yaml", ANNOTATIONS_TEXT),
        ]);
        let error = bundle_config_map(&extraction, ConfigMap::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("crds"), "{error}");
    }
}
