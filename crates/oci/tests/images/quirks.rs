//! Registries, token servers and images of other tools, each with one quirk.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use olmkit_oci::registry::{Client, Error, NoProgress, Options, Platforms, Progress, Transfer};
use olmkit_oci::source::{deliver_from, fetch_documents};
use olmkit_oci::spec::{Descriptor, Platform, media_type};
use olmkit_oci::{Layout, Location, Reference, sha256};
use serde_json::{Value, json};
use sha2::Digest as _;
use tempfile::TempDir;

use crate::fake::{INDEX, MANIFEST};

/// A request as it came.
#[derive(Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub authorization: Option<String>,
    pub body: Vec<u8>,
    /// The port that the request came to.
    pub port: u16,
}

/// An answer by hand.
pub struct Answer(pub u16, pub Vec<(&'static str, String)>, pub Vec<u8>);

pub fn answer(status: u16) -> Option<Answer> {
    Some(Answer(status, Vec::new(), Vec::new()))
}

#[derive(Default)]
struct State {
    blobs: HashMap<String, Vec<u8>>,
    manifests: HashMap<(String, String), (String, Vec<u8>)>,
    uploads: Vec<Vec<u8>>,
    log: Vec<Request>,
}

/// A registry in memory. A quirk answers a request itself, or leaves it.
pub struct Registry {
    pub host: String,
    state: Arc<Mutex<State>>,
}

impl Registry {
    pub fn start(quirk: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) -> Self {
        Self::changing(quirk, |_, _| {})
    }

    /// As [`Registry::start`]. `change` changes the answers that the quirk leaves to the registry.
    pub fn changing(
        quirk: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
        change: impl Fn(&Request, &mut Answer) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let host = format!("127.0.0.1:{port}");
        let state: Arc<Mutex<State>> = Arc::default();
        let (shared, quirk, change) = (state.clone(), Arc::new(quirk), Arc::new(change));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, quirk, change) = (shared.clone(), quirk.clone(), change.clone());
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    let Some((mut request, kind)) = read(&mut reader) else {
                        return;
                    };
                    request.port = port;
                    state.lock().unwrap().log.push(request.clone());
                    let answer = quirk(&request);
                    let mut answer = answer.unwrap_or_else(|| serve(&request, kind, &mut state.lock().unwrap()));
                    change(&request, &mut answer);
                    let Answer(status, headers, body) = answer;
                    let mut head = format!(
                        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n",
                        body.len()
                    );
                    for (name, value) in headers {
                        head += &format!("{name}: {value}\r\n");
                    }
                    let out = reader.get_mut();
                    let _ = out.write_all((head + "\r\n").as_bytes());
                    if request.method != "HEAD" {
                        let _ = out.write_all(&body);
                    }
                });
            }
        });
        Self { host, state }
    }

    pub fn plain() -> Self {
        Self::start(|_| None)
    }

    pub fn add(&self, repository: &str, versions: &[&str], kind: &str, document: &[u8]) {
        let mut state = self.state.lock().unwrap();
        for version in versions
            .iter()
            .copied()
            .chain([sha256(document).to_string().as_str(), &sha512(document)])
        {
            let key = (repository.to_owned(), version.to_owned());
            state.manifests.insert(key, (kind.to_owned(), document.to_vec()));
        }
    }

    /// Adds an image with one layer as `a/b:v1`. Its manifest.
    pub fn add_image(&self) -> Vec<u8> {
        let (layer, manifest) = self.image(&json!({}));
        self.add("a/b", &["v1"], MANIFEST, &manifest);
        drop(layer);
        manifest
    }

    /// The layer and the manifest of an image whose blobs are there.
    pub fn image(&self, more: &Value) -> (Vec<u8>, Vec<u8>) {
        let layer = vec![0; 1024];
        let rootfs = json!({"type": "layers", "diff_ids": [sha256(&layer).to_string()]});
        let config = json!({"os": "linux", "architecture": "amd64", "rootfs": rootfs}).to_string();
        let mut manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST,
            "config": descriptor(media_type::OCI_CONFIG, config.as_bytes()),
            "layers": [descriptor(media_type::OCI_LAYER, &layer)]});
        for (key, value) in more.as_object().unwrap() {
            manifest[key] = value.clone();
        }
        let mut state = self.state.lock().unwrap();
        for blob in [&layer, config.as_bytes()] {
            state.blobs.insert(sha256(blob).to_string(), blob.to_vec());
        }
        (layer, manifest.to_string().into_bytes())
    }

    pub fn manifest(&self, repository: &str, version: &str) -> Option<Vec<u8>> {
        let state = self.state.lock().unwrap();
        let found = state.manifests.get(&(repository.to_owned(), version.to_owned()));
        found.map(|(_, document)| document.clone())
    }

    pub fn blob(&self, digest: &str) -> Option<Vec<u8>> {
        self.state.lock().unwrap().blobs.get(digest).cloned()
    }

    pub fn add_blob(&self, content: &[u8]) {
        let digest = sha256(content).to_string();
        self.state.lock().unwrap().blobs.insert(digest, content.to_vec());
    }

    pub fn requests(&self, wanted: impl Fn(&Request) -> bool) -> Vec<Request> {
        self.state
            .lock()
            .unwrap()
            .log
            .iter()
            .filter(|request| wanted(request))
            .cloned()
            .collect()
    }
}

pub fn descriptor(kind: &str, content: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": sha256(content).to_string(), "size": content.len()})
}

fn sha512(content: &[u8]) -> String {
    let hash = sha2::Sha512::digest(content);
    format!(
        "sha512:{}",
        hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    )
}

/// A request, and its media type.
fn read(reader: &mut impl BufRead) -> Option<(Request, String)> {
    let mut lines = Vec::new();
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        lines.push(std::mem::take(&mut line).trim_end().to_owned());
    }
    let mut words = lines.first()?.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let header = |wanted: &str| {
        lines.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
        })
    };
    let length = header("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (authorization, kind) = (header("authorization"), header("content-type").unwrap_or_default());
    let request = Request {
        method,
        path,
        authorization,
        body,
        port: 0,
    };
    Some((request, kind))
}

fn serve(request: &Request, kind: String, state: &mut State) -> Answer {
    let created = |location: String| Answer(201, vec![("Location", location)], Vec::new());
    let path = request.path.split('?').next().unwrap().trim_start_matches("/v2/");
    let method = request.method.as_str();
    if path.is_empty() {
        return Answer(200, Vec::new(), Vec::new());
    }
    if let Some((repository, upload)) = path.split_once("/blobs/uploads/") {
        let at = |number: usize| vec![("Location", format!("/v2/{repository}/blobs/uploads/{number}"))];
        if method == "POST" {
            state.uploads.push(Vec::new());
            return Answer(202, at(state.uploads.len() - 1), Vec::new());
        }
        let number: usize = upload.parse().unwrap();
        state.uploads[number].extend(&request.body);
        if method == "PUT" {
            let digest = request.path.split("digest=").nth(1).unwrap().replace("%3A", ":");
            let digest = digest.split('&').next().unwrap().to_owned();
            state.blobs.insert(digest, state.uploads[number].clone());
            return created("/".to_owned());
        }
        return Answer(202, at(number), Vec::new());
    }
    if let Some((repository, version)) = path.split_once("/manifests/") {
        let key = (repository.to_owned(), version.to_owned());
        if method == "PUT" {
            for version in [version.to_owned(), sha256(&request.body).to_string()] {
                state
                    .manifests
                    .insert((repository.to_owned(), version), (kind.clone(), request.body.clone()));
            }
            return created("/".to_owned());
        }
        if let Some((kind, document)) = state.manifests.get(&key) {
            return Answer(200, vec![("Content-Type", kind.clone())], document.clone());
        }
    }
    let blob = path.rsplit('/').next().and_then(|digest| state.blobs.get(digest));
    blob.map_or(Answer(404, Vec::new(), Vec::new()), |blob| {
        Answer(200, Vec::new(), blob.clone())
    })
}

/// A client with the credential file `auth`, and the directory of its files.
pub fn client(auth: &Value, change: impl FnOnce(&mut Options)) -> (Client, TempDir) {
    client_with(auth, Arc::new(NoProgress), change)
}

fn client_with(auth: &Value, progress: Arc<dyn Progress>, change: impl FnOnce(&mut Options)) -> (Client, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    let mut options = Options {
        auth_file: file("auth.json", &auth.to_string()),
        registries_conf: file("registries.conf", ""),
        attempts: 1,
        ..Options::default()
    };
    change(&mut options);
    (Client::new(options, progress).unwrap(), folder)
}

fn login(host: &str, entry: Value) -> Value {
    json!({"auths": {host: entry}})
}

/// The credential of user `u` with password `p`, in a file and in a request.
fn password() -> Value {
    json!({"auth": "dTpw"})
}
const PASSWORD: &str = "Basic dTpw";

pub async fn pull(client: &Client, name: &str) -> Result<(TempDir, Layout), Error> {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    client.pull(&name.parse().unwrap(), &layout, &Platforms::All).await?;
    Ok((folder, layout))
}

/// Copies an image as `olmkit image copy` does.
pub async fn copy(client: &Client, from: &str, to: &str) -> Result<(), olmkit_oci::Error> {
    let source: Reference = from.parse().unwrap();
    let fetched = fetch_documents(client, &source, &Platforms::All).await?;
    let target: Location = to.parse().unwrap();
    deliver_from(client, &source, &fetched, &target, from).await
}

#[tokio::test]
async fn repositories_that_hide_from_anonymous_requests_are_found() {
    for status in [404, 403, 401] {
        let registry = Registry::start(move |request| match request.authorization.as_deref() {
            Some(PASSWORD) => None,
            _ if request.path == "/v2/" => Some(Answer(
                401,
                vec![("WWW-Authenticate", "Basic realm=\"x\"".to_owned())],
                Vec::new(),
            )),
            _ => answer(status),
        });
        registry.add_image();
        let name = format!("{}/a/b:v1", registry.host);
        let (known, _folder) = client(&login(&registry.host, password()), |_| {});
        known.resolve(&name.parse().unwrap()).await.unwrap();
        pull(&known, &name).await.unwrap();
        copy(&known, &name, &format!("{}/c/d:v1", registry.host)).await.unwrap();
        let (anonymous, _folder) = client(&json!({}), |_| {});
        let error = pull(&anonymous, &name).await.unwrap_err().to_string();
        assert!(
            status == 404 || error.contains("no credential was sent, none was found"),
            "{error}"
        );
        let wrong = login(&registry.host, json!({"username": "me", "password": "wrong"}));
        let (wrong, _folder) = client(&wrong, |_| {});
        let error = pull(&wrong, &name).await.unwrap_err().to_string();
        assert!(status == 404 || error.contains("user \"me\" was sent"), "{error}");
    }
}

#[tokio::test]
async fn refusals_of_any_form_are_answered_with_the_credential() {
    // The status of a repository, of `/v2/`, and the one of the two that has the challenge.
    for (status, base, challenge_at_base) in [
        (400, 401, true),
        (405, 401, true),
        (451, 401, true),
        (404, 403, true),
        (403, 200, false),
        (404, 200, false),
    ] {
        let registry = Registry::start(move |request| {
            let is_base = request.path == "/v2/";
            let challenge = ("WWW-Authenticate", "Basic realm=\"x\"".to_owned());
            let headers = if is_base == challenge_at_base {
                vec![challenge]
            } else {
                Vec::new()
            };
            let is_known = request.authorization.as_deref() == Some(PASSWORD);
            (!is_known).then(|| Answer(if is_base { base } else { status }, headers, Vec::new()))
        });
        registry.add_image();
        let name = format!("{}/a/b:v1", registry.host);
        let (known, _folder) = client(&login(&registry.host, password()), |_| {});
        let pulled = pull(&known, &name).await;
        pulled.unwrap_or_else(|error| panic!("{status} {base}: {error}"));
        let (anonymous, _folder) = client(&json!({}), |_| {});
        assert!(pull(&anonymous, &name).await.is_err(), "{status} {base}");
    }
}

#[tokio::test]
async fn a_busy_registry_is_asked_again_for_its_challenge() {
    let count = AtomicUsize::new(0);
    let registry = Registry::start(move |request| match request.authorization.as_deref() {
        Some(PASSWORD) => None,
        _ if request.path != "/v2/" => answer(404),
        _ if count.fetch_add(1, Ordering::Relaxed) < 2 => {
            Some(Answer(429, vec![("Retry-After", "0".to_owned())], Vec::new()))
        }
        _ => Some(Answer(401, vec![("WWW-Authenticate", "Basic".to_owned())], Vec::new())),
    });
    registry.add_image();
    let (client, _folder) = client(&login(&registry.host, password()), |options| options.attempts = 4);
    pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap();
}

#[tokio::test]
async fn every_scope_of_a_challenge_is_requested() {
    let is_complete = |request: &Request| {
        let scopes = [
            "repository%3Aa%2Fb%3Apull",
            "repository%3Aa%2Fb%3Ametadata_read",
            "extra%3Ax%3Ay",
        ];
        scopes
            .iter()
            .all(|scope| request.path.contains(&format!("scope={scope}")))
    };
    let (registry, tokens) = with_tokens(
        "BEARER,scope=\"repository:a/b:pull repository:a/b:metadata_read  extra:x:y\",error=\"insufficient_scope\"",
        move |request| answer(400).filter(|_| !is_complete(request)),
    );
    let (client, _folder) = client(&json!({}), |_| {});
    pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap();
    assert_eq!(tokens.requests(|_| true).len(), 1);
}

#[tokio::test]
async fn a_token_server_without_post_is_asked_with_get() {
    for status in [404, 405] {
        let (registry, tokens) = with_tokens("BEARER", move |request| {
            answer(status).filter(|_| request.method == "POST")
        });
        let (client, _folder) = client(&login(&registry.host, json!({"identitytoken": "refresh"})), |_| {});
        pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap();
        let gets = tokens.requests(|request| request.method == "GET");
        assert!(
            !gets.is_empty()
                && gets
                    .iter()
                    .all(|get| get.authorization.is_none() && !get.path.contains("refresh"))
        );
    }
}

#[tokio::test]
async fn a_credential_that_was_not_sent_is_not_blamed() {
    let registry = Registry::start(|request| answer(403).filter(|_| request.path != "/v2/"));
    let (client, _folder) = client(&login(&registry.host, password()), |_| {});
    let error = pull(&client, &format!("{}/a/b:v1", registry.host))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no credential was sent") && error.contains("auth.json"),
        "{error}"
    );
}

/// A token server, and a registry that asks for its token `secret`.
fn with_tokens(
    challenge: &'static str,
    tokens: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static,
) -> (Registry, Registry) {
    let tokens = Registry::start(move |request| {
        tokens(request).or_else(|| Some(Answer(200, Vec::new(), br#"{"token":"secret"}"#.to_vec())))
    });
    let realm = format!("Bearer realm=\"http://{}/token\",service=\"s\"", tokens.host);
    let registry = Registry::start(move |request| {
        let headers = challenge
            .split('|')
            .map(|text| ("WWW-Authenticate", text.replace("BEARER", &realm)));
        let is_known = request.authorization.as_deref() == Some("Bearer secret");
        (!is_known).then(|| Answer(401, headers.collect(), Vec::new()))
    });
    registry.add_image();
    (registry, tokens)
}

#[tokio::test]
async fn any_order_and_number_of_challenges_is_met() {
    for challenge in [
        "BEARER",
        "Basic realm=\"x\"|BEARER",
        "Basic realm=\"x\", BEARER",
        "BEARER, Basic realm=\"x\"",
        "Negotiate|NTLM, BEARER",
    ] {
        let (registry, _tokens) = with_tokens(challenge, |_| None);
        let name = format!("{}/a/b:v1", registry.host);
        for auth in [json!({}), login(&registry.host, password())] {
            let (client, _folder) = client(&auth, |_| {});
            pull(&client, &name)
                .await
                .unwrap_or_else(|error| panic!("{challenge}: {error}"));
        }
    }
}

#[tokio::test]
async fn a_registry_token_is_sent_as_it_is() {
    let (registry, tokens) = with_tokens("BEARER", |_| answer(500));
    let (client, _folder) = client(&login(&registry.host, json!({"registrytoken": "secret"})), |_| {});
    pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap();
    assert!(tokens.requests(|_| true).is_empty());
}

#[tokio::test]
async fn token_servers_may_redirect_on_their_own_host() {
    for (status, entry) in [
        (307, password()),
        (302, password()),
        (308, json!({"identitytoken": "refresh"})),
    ] {
        let (registry, tokens) = with_tokens("BEARER", move |request| {
            let rest = request.path.strip_prefix("/token")?;
            Some(Answer(status, vec![("Location", format!("/auth{rest}"))], Vec::new()))
        });
        let (client, _folder) = client(&login(&registry.host, entry.clone()), |_| {});
        pull(&client, &format!("{}/a/b:v1", registry.host)).await.unwrap();
        let followed = tokens.requests(|request| request.path.starts_with("/auth"));
        let is_complete = |request: &Request| match entry.get("identitytoken") {
            Some(_) => {
                request.method == "POST" && String::from_utf8_lossy(&request.body).contains("refresh_token=refresh")
            }
            None => request.authorization.as_deref() == Some(PASSWORD),
        };
        assert!(!followed.is_empty() && followed.iter().all(is_complete));
    }
}

#[tokio::test]
async fn tokens_of_any_form_are_used() {
    for body in [
        r#"{"token":null,"access_token":"secret"}"#,
        r#"{"token":"","access_token":"secret","expires_in":"300"}"#,
        r#"{"token":"secret","expires_in":null,"issued_at":null}"#,
        r#"{"token":"secret","expires_in":-1.5,"issued_at":7}"#,
        r#"{"Token":"secret","Expires_In":300}"#,
    ] {
        let (registry, _tokens) = with_tokens("BEARER", move |_| Some(Answer(200, Vec::new(), body.into())));
        let (client, _folder) = client(&json!({}), |_| {});
        let pulled = pull(&client, &format!("{}/a/b:v1", registry.host)).await;
        pulled.unwrap_or_else(|error| panic!("{body}: {error}"));
    }
}

#[tokio::test]
async fn scopes_are_asked_for_alone_where_two_are_refused() {
    let refuse = |request: &Request| answer(400).filter(|_| request.path.matches("scope=").count() > 1);
    for challenge in ["BEARER", "BEARER,scope=\"registry:catalog:*\""] {
        let (registry, _tokens) = with_tokens(challenge, refuse);
        let (client, _folder) = client(&json!({}), |_| {});
        let host = &registry.host;
        copy(&client, &format!("{host}/a/b:v1"), &format!("{host}/c/d:v1"))
            .await
            .unwrap();
        assert!(registry.manifest("c/d", "v1").is_some());
    }
}

#[tokio::test]
async fn the_least_piece_of_a_registry_is_obeyed() {
    let registry = Registry::start(|request| {
        let is_start = request.method == "POST" && request.path.ends_with("/uploads/");
        is_start.then(|| {
            let headers = vec![
                ("Location", "/v2/c/d/blobs/uploads/0".to_owned()),
                ("OCI-Chunk-Min-Length", "2500000".to_owned()),
            ];
            Answer(202, headers, Vec::new())
        })
    });
    registry.state.lock().unwrap().uploads.push(Vec::new());
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let blob = layout
        .write_blob("application/octet-stream", &vec![7; 6_000_000])
        .unwrap();
    let (client, _folder) = client(&json!({}), |options| options.chunk_size = Some(1 << 20));
    // A manifest of a single blob would bring a second upload.
    let name: Reference = format!("{}/c/d:v1", registry.host).parse().unwrap();
    let _ = client.push(&layout, &blob, &name, &[]).await;
    let pieces = registry.requests(|request| request.method == "PATCH");
    let sizes: Vec<usize> = pieces.iter().map(|piece| piece.body.len()).collect();
    assert_eq!(sizes, [2_500_000, 2_500_000, 1_000_000]);
}

#[tokio::test]
async fn sha512_works_everywhere() {
    let registry = Registry::plain();
    let (_, manifest) = registry.image(&json!({}));
    registry.add("a/b", &["v1"], MANIFEST, &manifest);
    let mut entry = descriptor(MANIFEST, &manifest);
    entry["digest"] = sha512(&manifest).into();
    entry["platform"] = json!({"os": "linux", "architecture": "amd64"});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).to_string();
    registry.add("a/b", &["all"], INDEX, index.as_bytes());
    let (client, folder) = client(&json!({}), |_| {});
    let host = &registry.host;
    let pinned = format!("{host}/a/b@{}", sha512(&manifest));
    for (from, to) in [(pinned.clone(), "c/d"), (format!("{host}/a/b:all"), "e/f")] {
        let (_folder, layout) = pull(&client, &from).await.unwrap();
        drop(layout);
        copy(&client, &from, &format!("{host}/{to}:v1")).await.unwrap();
        let archive = folder.path().join("a.tar");
        copy(&client, &from, &format!("oci-archive:{}:v1", archive.display()))
            .await
            .unwrap();
        let layout = olmkit_oci::archive::read_oci(&archive, &folder.path().join(to.replace('/', "-"))).unwrap();
        let platform: Platform = "linux/amd64".parse().unwrap();
        assert_eq!(
            layout
                .image(&layout.find(None).unwrap(), &platform)
                .unwrap()
                .manifest
                .layers
                .len(),
            1
        );
    }
    assert_eq!(registry.manifest("e/f", &sha512(&manifest)).unwrap(), manifest);
    // A pinned target gets its tag, and the digest it names.
    let target = format!("{host}/g/h:v1@{}", sha512(&manifest));
    copy(&client, &pinned, &target).await.unwrap();
    assert!(registry.manifest("g/h", "v1").is_some() && registry.manifest("g/h", &sha512(&manifest)).is_some());
}

#[tokio::test]
async fn pinned_targets_get_their_tag_or_are_refused() {
    let registry = Registry::plain();
    let manifest = registry.add_image();
    let (client, _folder) = client(&json!({}), |_| {});
    let (host, digest) = (&registry.host, sha256(&manifest));
    let from = format!("{host}/a/b:v1");
    copy(&client, &from, &format!("{host}/c/d:v2@{digest}")).await.unwrap();
    assert!(registry.manifest("c/d", "v2").is_some());
    copy(&client, &from, &format!("{host}/e/f@{digest}")).await.unwrap();
    assert!(registry.manifest("e/f", &digest.to_string()).is_some());
    let wrong = format!("{host}/g/h:v1@{}", sha256(b"other"));
    let error = copy(&client, &from, &wrong).await.unwrap_err().to_string();
    assert!(error.contains(&format!("its digest is {digest}")), "{error}");
    assert!(
        registry
            .requests(|request| request.path.starts_with("/v2/g/h"))
            .is_empty()
    );
}

#[tokio::test]
async fn layers_that_differ_from_their_descriptor_are_not_uploaded() {
    let source = Registry::plain();
    let manifest = source.add_image();
    let image = Descriptor::new(MANIFEST, sha256(&manifest), manifest.len() as u64);
    let (client, _folder) = client(&json!({}), |_| {});
    let damages: [fn(&mut Vec<u8>); 3] = [
        |bytes| bytes[0] ^= 1,
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes.resize(bytes.len() + (4 << 20), 0),
    ];
    for damage in damages {
        let (_folder, layout) = pull(&client, &format!("{}/a/b:v1", source.host)).await.unwrap();
        let layer = layout.read_manifest(&image).unwrap().layers.remove(0);
        let path = layout.blob_path(&layer.digest);
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        // This registry does not check digests.
        let target = Registry::plain();
        let name: Reference = format!("{}/c/d:v1", target.host).parse().unwrap();
        let error = client.push(&layout, &image, &name, &[]).await.unwrap_err().to_string();
        assert!(error.contains(&layer.digest.to_string()), "{error}");
        let blobs = target
            .state
            .lock()
            .unwrap()
            .blobs
            .contains_key(&layer.digest.to_string());
        assert!(!blobs && target.manifest("c/d", "v1").is_none());
    }
}

/// Remembers notes.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Progress for Notes {
    fn begin(&self, what: &str, size: u64) -> Box<dyn Transfer> {
        NoProgress.begin(what, size)
    }

    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

#[tokio::test]
async fn nondistributable_layers_stay_where_they_are() {
    for kind in [
        media_type::DOCKER_FOREIGN_GZIP,
        media_type::OCI_FOREIGN_GZIP,
        media_type::OCI_FOREIGN,
    ] {
        let registry = Registry::plain();
        let mut foreign = descriptor(kind, b"not here");
        foreign["urls"] = json!(["https://mcr.test/blob"]);
        let own = descriptor(media_type::OCI_LAYER, &[0; 1024]);
        let (_, manifest) = registry.image(&json!({"layers": [foreign, own]}));
        registry.add("a/b", &["v1"], MANIFEST, &manifest);
        let notes = Arc::new(Notes::default());
        let (client, folder) = client_with(&json!({}), notes.clone(), |_| {});
        let (host, path) = (&registry.host, folder.path().display().to_string());
        for to in [
            format!("{host}/c/d:v1"),
            format!("oci:{path}/o"),
            format!("oci-archive:{path}/a.tar"),
        ] {
            notes.0.lock().unwrap().clear();
            copy(&client, &format!("{host}/a/b:v1"), &to).await.unwrap();
            let notes = notes.0.lock().unwrap();
            let expected = format!(
                "layer {} is nondistributable and stays at https://mcr.test/blob",
                sha256(b"not here")
            );
            assert_eq!(*notes, [expected], "{to}");
        }
        assert_eq!(registry.manifest("c/d", "v1").unwrap(), manifest);
    }
}

#[tokio::test]
async fn documents_of_two_kinds_are_refused_in_every_form() {
    let registry = Registry::plain();
    let manifest = registry.add_image();
    let entry = descriptor(MANIFEST, &manifest);
    let mut both: Value = serde_json::from_slice(&manifest).unwrap();
    both["manifests"] = json!([entry]);
    let mut without = both.clone();
    without.as_object_mut().unwrap().remove("mediaType");
    let mut other_case: Value = serde_json::from_slice(&manifest).unwrap();
    other_case["Manifests"] = json!([entry]);
    let plain: Value = serde_json::from_slice(&manifest).unwrap();
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
    let (client, _folder) = client(&json!({}), |_| {});
    for (document, header) in [
        (&both, MANIFEST),
        (&both, INDEX),
        (&without, MANIFEST),
        (&without, INDEX),
        (&without, "text/plain"),
        (&other_case, MANIFEST),
        (&plain, INDEX),
        (&index, MANIFEST),
    ] {
        registry.add("a/b", &["v2"], header, document.to_string().as_bytes());
        let error = pull(&client, &format!("{}/a/b:v2", registry.host))
            .await
            .map(|_| ())
            .unwrap_err();
        assert!(
            error.to_string().contains("is refused: it "),
            "{document} {header}: {error}"
        );
    }
    // An index that calls another index a manifest.
    registry.add("a/b", &["inner"], INDEX, index.to_string().as_bytes());
    let wrong = descriptor(MANIFEST, index.to_string().as_bytes());
    let outer = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [wrong]});
    registry.add("a/b", &["outer"], INDEX, outer.to_string().as_bytes());
    let error = pull(&client, &format!("{}/a/b:outer", registry.host))
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("is refused: it "), "{error}");
}

#[tokio::test]
async fn the_document_decides_if_the_header_does_not() {
    let registry = Registry::plain();
    let manifest = registry.add_image();
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor(MANIFEST, &manifest)]});
    let index = index.to_string().into_bytes();
    let (client, _folder) = client(&json!({}), |_| {});
    let name = format!("{}/a/b:v2", registry.host);
    for document in [&manifest, &index] {
        let mut without: Value = serde_json::from_slice(document).unwrap();
        let own = without.as_object_mut().unwrap().remove("mediaType").unwrap();
        for document in [document.clone(), without.to_string().into_bytes()] {
            for header in ["application/json", "application/json; charset=utf-8", "text/plain", ""] {
                registry.add("a/b", &["v2"], header, &document);
                let (_folder, layout) = pull(&client, &name).await.unwrap();
                assert!(layout.has_blob(&sha256(&document)), "{header}");
                let (found, _) = client.manifest(&name.parse().unwrap()).await.unwrap();
                assert_eq!(own, found.media_type, "{header}");
            }
        }
        // Media types are compared without case.
        let other = if own == INDEX { MANIFEST } else { INDEX };
        registry.add("a/b", &["v2"], &other.to_uppercase(), without.to_string().as_bytes());
        let error = pull(&client, &name).await.map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("is refused: it "), "{error}");
    }
}

#[tokio::test]
async fn the_header_decides_if_the_document_calls_itself_something_else() {
    let registry = Registry::plain();
    let manifest = registry.add_image();
    let (client, _folder) = client(&json!({}), |_| {});
    let name = format!("{}/a/b:v2", registry.host);
    for own in [
        json!("application/x"),
        json!(MANIFEST.to_uppercase()),
        json!(format!("{MANIFEST}; charset=utf-8")),
        json!(null),
    ] {
        let mut document: Value = serde_json::from_slice(&manifest).unwrap();
        document["mediaType"] = own;
        document.as_object_mut().unwrap().remove("schemaVersion");
        registry.add("a/b", &["v2"], MANIFEST, document.to_string().as_bytes());
        pull(&client, &name)
            .await
            .unwrap_or_else(|error| panic!("{document}: {error}"));
    }
}

#[tokio::test]
async fn repeated_fields_are_read_as_other_tools_read_them() {
    let registry = Registry::plain();
    let manifest = String::from_utf8(registry.add_image()).unwrap();
    let document: Value = serde_json::from_str(&manifest).unwrap();
    let rest = &manifest[..manifest.len() - 1];
    let (client, _folder) = client(&json!({}), |_| {});
    let name = format!("{}/a/b:v2", registry.host);
    // The last value counts.
    let annotations = r#","annotations":{"a":"1"},"annotations":{"a":"2"}}"#;
    let equal = format!(r#","layers":{}}}"#, document["layers"]);
    for more in [annotations, &equal] {
        let document = format!("{rest}{more}");
        registry.add("a/b", &["v2"], MANIFEST, document.as_bytes());
        let (_folder, layout) = pull(&client, &name).await.unwrap();
        let image = Descriptor::new(MANIFEST, sha256(document.as_bytes()), document.len() as u64);
        let read = layout.read_manifest(&image).unwrap();
        assert!(read.annotations.is_empty() || read.annotations["a"] == "2");
        assert_eq!(read.layers.len(), 1);
    }
    // Every reader must see the same content.
    for more in [r#","layers":[]}"#, r#","mediaType":"application/json"}"#] {
        registry.add("a/b", &["v2"], MANIFEST, format!("{rest}{more}").as_bytes());
        let error = pull(&client, &name).await.map(|_| ()).unwrap_err().to_string();
        assert!(
            error.contains("is refused: it has the field") && error.contains("twice"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn indexes_of_other_things_are_copied_as_they_are() {
    let registry = Registry::plain();
    let manifest = registry.add_image();
    let other = br#"{"mediaType":"application/vnd.test.manifest.v1+json"}"#;
    registry.add("a/b", &[], "application/vnd.test.manifest.v1+json", other);
    registry
        .state
        .lock()
        .unwrap()
        .blobs
        .insert(sha256(b"cache").to_string(), b"cache".to_vec());
    let mut image = descriptor(MANIFEST, &manifest);
    image["annotations"] = json!({"a": null});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "annotations": null, "manifests": [
        image,
        descriptor("application/vnd.test.manifest.v1+json", other),
        descriptor("application/vnd.buildkit.cacheconfig.v0", b"cache"),
    ]});
    let index = index.to_string();
    registry.add("a/b", &["all"], INDEX, index.as_bytes());
    let (client, folder) = client(&json!({}), |_| {});
    let (host, path) = (&registry.host, folder.path().display());
    copy(&client, &format!("{host}/a/b:all"), &format!("{host}/c/d:all"))
        .await
        .unwrap();
    assert_eq!(registry.manifest("c/d", "all").unwrap(), index.as_bytes());
    assert_eq!(registry.manifest("c/d", &sha256(other).to_string()).unwrap(), other);
    copy(&client, &format!("{host}/a/b:all"), &format!("oci:{path}/o:all"))
        .await
        .unwrap();
}
