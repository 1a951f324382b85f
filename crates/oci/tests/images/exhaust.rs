//! Registries, archives and images that would fill the disk or never end.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use olmkit_oci::registry::{Client, Error, NoProgress, Options, Platforms};
use olmkit_oci::store::Store;
use olmkit_oci::{Layout, archive, sha256};
use test_support::registry::{Registry, Setup};

use crate::fake::{self, Connection, INDEX, MANIFEST, drip, manifest, respond};
use crate::registry::Bench;

fn client(change: impl FnOnce(&mut Options)) -> Client {
    let mut options = Options {
        plain_http: true,
        ..Bench::new(1).options()
    };
    options.auth_file = None;
    options.registries_conf = None;
    change(&mut options);
    Client::new(options, Arc::new(NoProgress)).unwrap()
}

/// Pulls everything of `a:v1` into a fresh layout.
async fn pull(client: &Client, host: &str) -> Result<(), Error> {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let reference = format!("{host}/a:v1").parse().unwrap();
    client.pull(&reference, &layout, &Platforms::All).await.map(|_| ())
}

#[tokio::test]
async fn sizes_in_a_manifest_are_checked_before_a_download() {
    let layer = sha256(b"layer").to_string();
    for (sizes, limit, wanted) in [
        (
            vec![1_u64 << 50],
            None,
            "with it the pull has 1125899906842626 bytes, at most 17179869184 are pulled",
        ),
        (vec![1 << 50], Some(u64::MAX), "has room for"),
        (vec![u64::MAX, u64::MAX], Some(u64::MAX), "has room for"),
        (vec![600, 600], Some(1000), "--max-image-size"),
    ] {
        let layers: Vec<_> = sizes
            .iter()
            .enumerate()
            .map(|(at, size)| {
                (
                    if at == 0 {
                        layer.clone()
                    } else {
                        sha256(b"other").to_string()
                    },
                    *size,
                )
            })
            .collect();
        let bytes = manifest(&layers);
        let server = fake::start(move |path, out| match path {
            path if path.contains("/manifests/") => respond(out, "200 OK", MANIFEST, &bytes),
            // A layer without an end.
            _ => drip(out, &[b'x'; 10_000]),
        });
        let client = client(|options| options.image_bytes = limit);
        let error = pull(&client, &server.host).await.unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        let requests = server.requests.lock().unwrap().join("\n");
        assert!(!requests.contains("/blobs/"), "{requests}");
    }
}

#[tokio::test]
async fn an_index_that_names_the_same_again_and_again_is_pulled_once() {
    let image = manifest(&[]);
    let mut documents = HashMap::from([(sha256(&image).to_string(), (MANIFEST, image.clone()))]);
    let mut inner = (sha256(&image).to_string(), MANIFEST, image.len());
    for _ in 0..3 {
        let entry = serde_json::json!({"mediaType": inner.1, "digest": inner.0, "size": inner.2});
        let index = serde_json::json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": vec![entry; 900]});
        let bytes = serde_json::to_vec(&index).unwrap();
        inner = (sha256(&bytes).to_string(), INDEX, bytes.len());
        documents.insert(inner.0.clone(), (INDEX, bytes));
    }
    let top = inner.0.clone();
    let server = fake::start(move |path, out| {
        let name = path.rsplit('/').next().unwrap();
        match documents.get(if name == "v1" { top.as_str() } else { name }) {
            Some((kind, bytes)) => respond(out, "200 OK", kind, bytes),
            None => respond(out, "200 OK", "application/octet-stream", b"{}"),
        }
    });
    pull(&client(|_| {}), &server.host).await.unwrap();
    assert_eq!(
        server.requests.lock().unwrap().len(),
        5,
        "three indexes, a manifest, a configuration"
    );
}

#[tokio::test]
async fn an_index_of_too_many_images_is_refused() {
    let server = fake::start(|path, out| {
        let name = path.rsplit('/').next().unwrap();
        if name == "v1" {
            let entry = |at: u32| serde_json::json!({"mediaType": MANIFEST, "digest": sha256(&image(at)).to_string(), "size": 9});
            let entries: Vec<_> = (0..3000).map(entry).collect();
            let index = serde_json::json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
            return respond(out, "200 OK", INDEX, &serde_json::to_vec(&index).unwrap());
        }
        match (0..3000).map(image).find(|bytes| sha256(bytes).to_string() == name) {
            Some(bytes) => respond(out, "200 OK", MANIFEST, &bytes),
            None => respond(out, "200 OK", "application/octet-stream", b"{}"),
        }
    });
    fn image(at: u32) -> Vec<u8> {
        let mut bytes = manifest(&[]);
        bytes.extend(
            format!("{at:5}")
                .replace(|letter: char| letter.is_ascii_digit(), " ")
                .bytes(),
        );
        bytes.extend(vec![b' '; at as usize]);
        bytes
    }
    let error = pull(&client(|_| {}), &server.host).await.unwrap_err().to_string();
    assert!(error.contains("the limit is 1000"), "{error}");
}

#[tokio::test]
async fn a_registry_that_drips_is_given_up() {
    type Answer = fn(&str, &mut dyn Connection);
    let headers: Answer = |_, out| drip(out, "HTTP/1.1 200 OK\r\nX: ".repeat(100).as_bytes());
    let document: Answer = |_, out| {
        let _ = out.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n");
        drip(out, &[b' '; 10_000]);
    };
    let refusal: Answer = |_, out| {
        let _ = out.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 10000\r\n\r\n");
        drip(out, &[b' '; 10_000]);
    };
    let silent: Answer = |_, _| std::thread::sleep(Duration::from_secs(60));
    let blob: Answer = |path, out| {
        if path.contains("/manifests/") {
            return respond(
                out,
                "200 OK",
                MANIFEST,
                &manifest(&[(sha256(b"layer").to_string(), 10_000)]),
            );
        }
        let _ = out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n");
        drip(out, &[b' '; 10_000]);
    };
    for (name, answer) in [
        ("headers", headers),
        ("document", document),
        ("refusal", refusal),
        ("silent", silent),
        ("blob", blob),
    ] {
        let server = fake::start(answer);
        let client = client(|options| options.answer = Some(Duration::from_secs(1)));
        let begin = Instant::now();
        let error = pull(&client, &server.host).await.unwrap_err();
        assert!(
            begin.elapsed() < Duration::from_secs(50),
            "{name}: {:?}: {error}",
            begin.elapsed()
        );
    }
}

/// An archive as `docker save` writes it, with one image of these names and layers.
fn docker_archive(path: &Path, names: usize, layers: usize) {
    let names: Vec<String> = (0..names).map(|at| format!("r.io/a:v{at}")).collect();
    let saved = serde_json::json!([{"Config": "c.json", "RepoTags": names, "Layers": vec!["l.tar"; layers]}]);
    let mut archive = tar::Builder::new(fs::File::create(path).unwrap());
    let diff_ids = vec![sha256(&[0; 1024]).to_string(); layers];
    let rootfs = serde_json::json!({"type": "layers", "diff_ids": diff_ids});
    let config = serde_json::json!({"architecture": "amd64", "os": "linux", "rootfs": rootfs}).to_string();
    let manifest = saved.to_string();
    for (name, bytes) in [
        ("c.json", config.as_bytes()),
        ("l.tar", &[0; 1024]),
        ("manifest.json", manifest.as_bytes()),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes).unwrap();
    }
    archive.finish().unwrap();
}

#[test]
fn archives_of_countless_names_or_layers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tar");
    let read = |names, layers, to: &str| {
        docker_archive(&file, names, layers);
        let begin = Instant::now();
        let result = archive::read_docker(&file, &folder.path().join(to));
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
        result
    };
    let error = read(30_000, 1, "names").unwrap_err().to_string();
    assert!(error.contains("it has 30000 names, the limit is 1000"), "{error}");
    let error = read(1, 40_000, "layers").unwrap_err().to_string();
    assert!(
        error.contains("it has 40000 layers in one image, the limit is 1000"),
        "{error}"
    );
    let layout = read(1000, 1000, "most").unwrap();
    assert_eq!(layout.index().unwrap().manifests.len(), 1000);
    // The same layer a thousand times is read twice.
    let platform = "linux/amd64".parse().unwrap();
    let image = layout.image(&layout.find(Some("v7")).unwrap(), &platform).unwrap();
    let target = folder.path().join("target");
    olmkit_oci::unpack(&layout, &image, &target, &[], &olmkit_oci::unpack::Limits::default()).unwrap();
}

#[test]
fn a_damaged_image_of_the_store_keeps_nobody_from_building() {
    let bench = Bench::new(1000);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::write(folder.path()).unwrap();
    let names = ["r.io/damaged:v1", "r.io/a:v1"];
    let put = |name: &str| {
        for blob in bench.layout.reachable(&bench.image).unwrap() {
            let bytes = fs::read(bench.layout.blob_path(&blob.digest)).unwrap();
            store.layout().write_blob(&blob.media_type, &bytes).unwrap();
        }
        store.set(&name.parse().unwrap(), &bench.image).unwrap()
    };
    assert!(put(names[0]).damaged.is_empty());
    let other = store.layout().write_blob(MANIFEST, &manifest(&[])).unwrap();
    fs::write(store.layout().blob_path(&bench.image.digest), "{").unwrap();
    let pruned = store.set(&names[1].parse().unwrap(), &other).unwrap();
    assert_eq!(pruned.damaged.len(), 1, "{pruned:?}");
    assert_eq!(pruned.damaged[0].0, names[0]);
    assert_eq!(store.find(&names[1].parse().unwrap()).unwrap().digest, other.digest);
    // Building it again heals it.
    assert!(put(names[0]).damaged.is_empty());
}

#[tokio::test]
async fn an_insecure_repository_does_not_make_its_neighbours_so() {
    let setup = Setup {
        tls: true,
        ..Setup::default()
    };
    let Some(registry) = Registry::start(&setup) else {
        return;
    };
    let bench = Bench::new(1000);
    let host = registry.host();
    let mut options = bench.options();
    fs::write(
        options.registries_conf.as_ref().unwrap(),
        format!("[[registry]]\nlocation = \"{host}/lax\"\ninsecure = true\n"),
    )
    .unwrap();
    options.attempts = 1;
    let client = Client::new(options, Arc::new(NoProgress)).unwrap();
    // In both orders: what was found out about the one must not hold for the other.
    for _ in 0..2 {
        bench.push(&client, &format!("{host}/lax/image:v1")).await.unwrap();
        let error = bench
            .push(&client, &format!("{host}/strict/image:v1"))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("certificate that is not trusted"), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_from_https_to_http_is_refused() {
    let plain = fake::start(|_, out| respond(out, "200 OK", MANIFEST, &manifest(&[])));
    let target = format!("http://{}/v2/a/manifests/v1", plain.host);
    let (server, _folder, authority) = fake::start_tls(move |_, out| {
        let head =
            format!("HTTP/1.1 307 Moved\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let _ = out.write_all(head.as_bytes());
    });
    let client = client(|options| {
        options.plain_http = false;
        options.ca_file = Some(authority);
    });
    let error = pull(&client, &server.host).await.unwrap_err().to_string();
    assert!(error.contains("HTTPS to HTTP"), "{error}");
    assert_eq!(plain.requests.lock().unwrap().len(), 0);
    assert!(!server.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_hangs_up_over_tls_may_want_a_client_certificate() {
    let (with_tls, _folder, authority) = fake::start_tls(|_, _| ());
    let plain = fake::start(|_, _| ());
    let answer = async |server: &fake::Fake, plain_http| {
        let client = client(|options| {
            options.plain_http = plain_http;
            options.attempts = 1;
            options.ca_file = Some(authority.clone());
        });
        pull(&client, &server.host).await.unwrap_err().to_string()
    };
    let error = answer(&with_tls, false).await;
    assert!(
        error.contains("closes connections") && error.contains("client certificate"),
        "{error}"
    );
    let error = answer(&plain, true).await;
    assert!(!error.contains("client certificate"), "{error}");
}
