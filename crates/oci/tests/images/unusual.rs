//! Registries that other tools work with although they differ from the specification.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use olmkit_oci::registry::Platforms;
use olmkit_oci::source::deliver_saved;
use olmkit_oci::spec::{Platform, media_type};
use olmkit_oci::{Layout, Location, archive, deliver, fetch, sha256};
use serde_json::{Value, json};

use crate::fake::{INDEX, MANIFEST};
use crate::quirks::{Answer, Registry, Request, answer, client, copy, descriptor, pull};

const LARGE: usize = 2 << 20;

/// Pushes an image with a layer of this size to a registry. The requests to the registry.
async fn push(size: usize, target: &Registry, name: &str) -> Vec<String> {
    let source = Registry::plain();
    let (layer, manifest) = (vec![7; size], source.image(&json!({})).1);
    let mut manifest: Value = serde_json::from_slice(&manifest).unwrap();
    manifest["layers"] = json!([descriptor(media_type::OCI_LAYER, &layer)]);
    let manifest = manifest.to_string().into_bytes();
    source.add("a/b", &["v1"], MANIFEST, &manifest);
    let digest = sha256(&layer).to_string();
    source.add_blob(&layer);
    let (client, _folder) = client(&json!({}), |_| {});
    copy(&client, &format!("{}/a/b:v1", source.host), &format!("{name}/c/d:v1"))
        .await
        .unwrap();
    assert_eq!(target.manifest("c/d", "v1"), Some(manifest));
    assert_eq!(target.blob(&digest), Some(layer));
    let requests = target.requests(|_| true);
    let line = |request: Request| format!("{} {}", request.method, request.path);
    requests.into_iter().map(line).collect()
}

fn is_upload(request: &Request, method: &str) -> bool {
    request.method == method && request.path.contains("/uploads/")
}

#[tokio::test]
async fn blobs_go_in_the_kind_of_request_that_the_registry_accepts() {
    for status in [400, 405, 501] {
        for size in [1000, LARGE] {
            let target = Registry::start(move |request| {
                let is_rejected = is_upload(request, "PUT") && !request.body.is_empty();
                is_rejected.then(|| answer(status)).flatten()
            });
            push(size, &target, &target.host).await;
            let target = Registry::start(move |request| is_upload(request, "PATCH").then(|| answer(status)).flatten());
            push(size, &target, &target.host).await;
        }
    }
}

#[tokio::test]
async fn a_registry_that_accepts_neither_is_an_error() {
    let target = Registry::start(|request| {
        let is_rejected = matches!(request.method.as_str(), "PUT" | "PATCH") && request.path.contains("/uploads/");
        is_rejected.then(|| answer(405)).flatten()
    });
    let source = Registry::plain();
    source.add_image();
    let (client, _folder) = client(&json!({}), |_| {});
    let (from, to) = (format!("{}/a/b:v1", source.host), format!("{}/c/d:v1", target.host));
    let error = copy(&client, &from, &to).await.unwrap_err().to_string();
    assert!(error.contains("405"), "{error}");
    assert!(target.requests(|_| true).len() < 30);
}

#[tokio::test]
async fn an_upload_keeps_its_address_if_an_answer_has_none() {
    let target = Registry::changing(
        |_| None,
        |request, answer| {
            if request.method == "PATCH" {
                answer.1.retain(|(name, _)| *name != "Location");
            }
        },
    );
    push(LARGE, &target, &target.host).await;
}

#[tokio::test]
async fn uploads_follow_redirects_on_the_registry_itself() {
    let target = Registry::start(|request| {
        let is_content = matches!(request.method.as_str(), "PATCH" | "PUT") && request.path.contains("/uploads/");
        if !is_content || request.path.contains("moved") {
            return None;
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let location = format!("{path}?{query}{}moved", if query.is_empty() { "" } else { "&" });
        Some(Answer(307, vec![("Location", location)], Vec::new()))
    });
    let requests = push(LARGE, &target, &target.host).await;
    assert!(
        requests
            .iter()
            .any(|line| line.starts_with("PATCH") && line.ends_with("?moved")),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_registry_on_this_machine_may_use_another_name() {
    let target = Registry::changing(
        |_| None,
        |request, answer| {
            for (name, value) in &mut answer.1 {
                if *name == "Location" && value.contains("/uploads/") {
                    *value = format!("http://localhost:{}{value}", request.port);
                }
            }
        },
    );
    for size in [1000, LARGE] {
        push(size, &target, &target.host).await;
        push(size, &target, &target.host.replace("127.0.0.1", "LOCALHOST")).await;
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn answers_that_a_server_compresses_are_read() {
    let encode = |request: &Request, answer: &mut Answer| {
        if request.method == "GET" && answer.0 == 200 {
            answer.1.push(("Content-Encoding", "gzip".to_owned()));
            answer.2 = gzip(&answer.2);
        }
    };
    let registry = Registry::changing(|_| None, encode);
    let manifest = registry.add_image();
    let (client, _folder) = client(&json!({}), |_| {});
    let (_folder, layout) = pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap();
    assert!(layout.has_blob(&sha256(&manifest)));

    // An answer that breaks off is requested again, and wrong content is an error.
    let is_cut = AtomicBool::new(true);
    let registry = Registry::changing(
        |_| None,
        move |request, answer| {
            encode(request, answer);
            if request.path.contains("/blobs/") && is_cut.swap(false, Ordering::SeqCst) {
                answer.0 = 503;
            }
        },
    );
    registry.add_image();
    let (client, _folder) = crate::quirks::client(&json!({}), |options| options.attempts = 2);
    pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap();
    let registry = Registry::changing(
        |_| None,
        move |request, answer| {
            if request.path.contains("/blobs/") {
                answer.2.fill(1);
            }
            encode(request, answer);
        },
    );
    registry.add_image();
    let error = pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap_err();
    assert!(error.to_string().contains("sha256"), "{error}");
}

#[tokio::test]
async fn a_compressed_answer_is_limited_and_its_errors_name_the_blob() {
    // The first one becomes more than 100 times larger.
    for (content, wanted) in [
        (gzip(&vec![0; 1 << 18]), "another size"),
        (gzip(b"short"), "another size"),
        (b"\x1f\x8b damaged".to_vec(), "content is damaged"),
        (gzip(&[7; 500]).get(..20).unwrap().to_vec(), "content is damaged"),
    ] {
        let layer = vec![7; 500];
        let digest = sha256(&layer).to_string();
        let registry = Registry::changing(|_| None, {
            let digest = digest.clone();
            move |request, answer| {
                if request.path.ends_with(&digest) {
                    answer.1.push(("Content-Encoding", "gzip".to_owned()));
                    answer.2 = content.clone();
                }
            }
        });
        let more = json!({"layers": [descriptor(media_type::OCI_LAYER, &layer)]});
        let manifest = registry.image(&more).1;
        registry.add("a/b", &["v1"], MANIFEST, &manifest);
        registry.add_blob(&layer);
        let (client, _folder) = client(&json!({}), |_| {});
        let error = pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap_err();
        let error = error.to_string();
        for wanted in [wanted, &registry.host, "a/b", &digest] {
            assert!(error.contains(wanted), "{wanted:?}: {error}");
        }
    }
}

#[tokio::test]
async fn a_compressed_manifest_has_its_own_size() {
    let registry = Registry::changing(
        |_| None,
        |request, answer| {
            if request.path.contains("/manifests/") && answer.0 == 200 {
                answer.1.push(("Docker-Content-Digest", sha256(&answer.2).to_string()));
                answer.1.push(("Content-Encoding", "gzip".to_owned()));
                answer.2 = gzip(&answer.2);
            }
        },
    );
    let manifest = registry.add_image();
    let (client, _folder) = client(&json!({}), |_| {});
    let name = format!("{}/a/b:v1", registry.host).parse().unwrap();
    let resolved = client.resolve(&name).await.unwrap();
    assert_eq!(
        (resolved.size, resolved.digest),
        (manifest.len() as u64, sha256(&manifest))
    );
    registry.add("a/b", &["large"], MANIFEST, &[b' '; (8 << 20) + 2]);
    let name = format!("{}/a/b:large", registry.host).parse().unwrap();
    let error = client.resolve(&name).await.unwrap_err().to_string();
    assert!(error.contains("more than 8388608 bytes"), "{error}");
}

#[tokio::test]
async fn a_registry_that_rejects_pieces_and_large_requests_is_named() {
    let target = Registry::start(|request| {
        let status = match request.method.as_str() {
            "PATCH" => 405,
            "PUT" if request.body.len() >= LARGE => 413,
            _ => return None,
        };
        answer(status)
    });
    let source = Registry::plain();
    let layer = vec![7; LARGE];
    let manifest = source
        .image(&json!({"layers": [descriptor(media_type::OCI_LAYER, &layer)]}))
        .1;
    source.add("a/b", &["v1"], MANIFEST, &manifest);
    source.add_blob(&layer);
    let (client, _folder) = client(&json!({}), |_| {});
    let (from, to) = (format!("{}/a/b:v1", source.host), format!("{}/c/d:v1", target.host));
    let error = copy(&client, &from, &to).await.unwrap_err().to_string();
    assert!(error.contains("413: the blob is too large for one request"), "{error}");
}

#[tokio::test]
async fn a_gzip_layer_that_is_labeled_so_is_the_blob_itself() {
    let registry = Registry::changing(
        |_| None,
        |_, answer| {
            if answer.2.starts_with(&[0x1f, 0x8b]) {
                answer.1.push(("Content-Encoding", "gzip".to_owned()));
            }
        },
    );
    let layer = gzip(&[0; 1024]);
    let more = json!({"layers": [descriptor(media_type::OCI_LAYER_GZIP, &layer)]});
    let manifest = registry.image(&more).1;
    registry.add("a/b", &["v1"], MANIFEST, &manifest);
    registry.add_blob(&layer);
    let (client, _folder) = client(&json!({}), |_| {});
    let (_folder, layout) = pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap();
    assert!(layout.has_blob(&sha256(&layer)));
}

#[tokio::test]
async fn content_in_a_descriptor_needs_no_request() {
    for (data, is_right) in [
        (STANDARD.encode("{}"), true),
        (STANDARD.encode("[]"), false),
        ("%".to_owned(), false),
    ] {
        let registry = Registry::plain();
        let mut empty = descriptor("application/vnd.oci.empty.v1+json", b"{}");
        empty["data"] = data.into();
        let manifest = registry.image(&json!({"config": empty, "layers": [empty]})).1;
        registry.add("a/b", &["v1"], MANIFEST, &manifest);
        let (client, _folder) = client(&json!({}), |_| {});
        let pulled = pull(&client, &format!("{}/a/b:v1", registry.host)).await;
        assert_eq!(pulled.is_ok(), is_right);
        let Ok((_folder, layout)) = pulled else { continue };
        assert!(layout.has_blob(&sha256(b"{}")));
    }
}

#[tokio::test]
async fn entries_of_an_index_may_lack_a_media_type() {
    let registry = Registry::plain();
    let manifest = registry.add_image();
    let mut entry = descriptor("", &manifest);
    entry["platform"] = json!({"os": "linux", "architecture": "amd64"});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).to_string();
    registry.add("a/b", &["index"], INDEX, index.as_bytes());
    let (client, _folder) = client(&json!({}), |_| {});
    let name = format!("{}/a/b:index", registry.host);
    let (_folder, layout) = pull(&client, &name).await.unwrap();
    assert!(layout.has_blob(&sha256(&manifest)));
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let platform = Platforms::One("linux/amd64".parse().unwrap());
    let pulled = client.pull(&name.parse().unwrap(), &layout, &platform).await.unwrap();
    assert_eq!(pulled.image.digest, sha256(&manifest));
    let target = Registry::plain();
    copy(&client, &name, &format!("{}/c/d:v1", target.host)).await.unwrap();
    assert_eq!(target.manifest("c/d", "v1"), Some(index.into_bytes()));
    assert_eq!(target.manifest("c/d", &sha256(&manifest).to_string()), Some(manifest));
}

#[tokio::test]
async fn an_anonymous_token_is_tried_after_any_rejection() {
    for status in [400, 403, 404, 405] {
        let registry = Registry::changing(
            move |request| match (request.path.as_str(), &request.authorization) {
                ("/v2/", _) => Some(Answer(401, Vec::new(), Vec::new())),
                (path, _) if path.starts_with("/token") => {
                    Some(Answer(200, Vec::new(), br#"{"token":"secret"}"#.to_vec()))
                }
                (_, Some(header)) if header == "Bearer secret" => None,
                _ => answer(status),
            },
            |request, answer| {
                if request.path == "/v2/" {
                    let challenge = format!("Bearer realm=\"http://127.0.0.1:{}/token\"", request.port);
                    answer.1.push(("WWW-Authenticate", challenge));
                }
            },
        );
        registry.add_image();
        let (client, _folder) = client(&json!({}), |_| {});
        let pulled = pull(&client, &format!("{}/a/b:v1", registry.host)).await;
        assert!(pulled.is_ok(), "{status}: {:?}", pulled.err());
    }
}

#[tokio::test]
async fn passwords_need_not_be_utf_8() {
    let encoded = STANDARD.encode(b"u:p\xff");
    let expected = format!("Basic {encoded}");
    let registry = Registry::changing(
        {
            let expected = expected.clone();
            move |request| match &request.authorization {
                Some(header) if *header == expected => None,
                _ => answer(401),
            }
        },
        |_, answer| {
            if answer.0 == 401 {
                answer.1.push(("WWW-Authenticate", "Basic realm=\"x\"".to_owned()));
            }
        },
    );
    registry.add_image();
    let auth = json!({"auths": {&registry.host: {"auth": encoded}}});
    let (client, _folder) = client(&auth, |_| {});
    pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap();
}

#[tokio::test]
async fn referrers_are_listed_where_the_registry_does_not_do_it() {
    let source = Registry::plain();
    let subject = sha256(b"subject").to_string();
    let tag = subject.replace(':', "-");
    let mut digests = Vec::new();
    for (version, kind) in [("v1", Some("application/x")), ("v2", None)] {
        let mut more = json!({"subject": descriptor(MANIFEST, b"subject"), "annotations": {"a": version}});
        if let Some(kind) = kind {
            more["artifactType"] = kind.into();
        }
        let manifest = source.image(&more).1;
        source.add("a/b", &[version], MANIFEST, &manifest);
        digests.push(sha256(&manifest).to_string());
    }
    let (client, _folder) = client(&json!({}), |_| {});
    let target = Registry::plain();
    for version in ["v1", "v2", "v1"] {
        let (from, to) = (
            format!("{}/a/b:{version}", source.host),
            format!("{}/c/d:{version}", target.host),
        );
        copy(&client, &from, &to).await.unwrap();
    }
    let index: Value = serde_json::from_slice(&target.manifest("c/d", &tag).unwrap()).unwrap();
    let listed = |field: &str| -> Vec<Value> {
        let entries = index["manifests"].as_array().unwrap();
        entries.iter().map(|entry| entry[field].clone()).collect()
    };
    assert_eq!(index["mediaType"], INDEX);
    assert_eq!(listed("digest"), digests);
    assert_eq!(listed("artifactType"), ["application/x", media_type::OCI_CONFIG]);
    assert_eq!(listed("annotations"), [json!({"a": "v1"}), json!({"a": "v2"})]);
    // This registry lists them itself.
    let subject_header = subject.clone();
    let target = Registry::changing(
        |_| None,
        move |request, answer| {
            if request.method == "PUT" && request.path.contains("/manifests/") {
                answer.1.push(("OCI-Subject", subject_header.clone()));
            }
        },
    );
    let (from, to) = (format!("{}/a/b:v1", source.host), format!("{}/c/d:v1", target.host));
    copy(&client, &from, &to).await.unwrap();
    assert!(target.manifest("c/d", "v1").is_some() && target.manifest("c/d", &tag).is_none());
}

#[tokio::test]
async fn images_of_docker_archives_get_the_media_types_that_the_registry_accepts() {
    let source = Registry::plain();
    source.add_image();
    let (client, folder) = client(&json!({}), |_| {});
    let layout = Layout::create(&folder.path().join("layout")).unwrap();
    let name = format!("{}/a/b:v1", source.host).parse().unwrap();
    let pulled = client.pull(&name, &layout, &Platforms::All).await.unwrap();
    let image = layout.image(&pulled.image, &Platform::host());
    let path = folder.path().join("a.tar");
    archive::write_docker(&layout, &image.unwrap(), Some("a.io/b:v1"), &path).unwrap();
    let location = Location::DockerArchive(path, None);
    let fetched = fetch(&client, &location, &Platforms::All).await.unwrap();
    assert_eq!(fetched.descriptor.media_type, media_type::DOCKER_MANIFEST);
    for accepts_docker in [true, false] {
        let target = Registry::start(move |request| {
            let is_docker = String::from_utf8_lossy(&request.body).contains(media_type::DOCKER_MANIFEST);
            (is_docker && !accepts_docker).then(|| answer(415)).flatten()
        });
        let place: Location = format!("{}/c/d:v1", target.host).parse().unwrap();
        let saved = deliver_saved(&client, &fetched.layout, &fetched.descriptor, &place, "latest").await;
        let delivered = saved.unwrap();
        let kind = if accepts_docker {
            media_type::DOCKER_MANIFEST
        } else {
            media_type::OCI_MANIFEST
        };
        assert_eq!(delivered.media_type, kind);
        let manifest = target.manifest("c/d", "v1").unwrap();
        assert_eq!(sha256(&manifest), delivered.digest);
        let text = String::from_utf8(manifest).unwrap();
        assert_eq!(text.contains("docker"), accepts_docker, "{text}");
        // Without this conversion the error names the reason.
        let error = deliver(&client, &fetched.layout, &fetched.descriptor, &place, "latest", &[]).await;
        assert_eq!(error.is_ok(), accepts_docker);
        if let Err(error) = error {
            assert!(
                error.to_string().contains("does not accept Docker's media types"),
                "{error}"
            );
        }
    }
}
