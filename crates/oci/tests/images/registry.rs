//! Pushing to and pulling from a real registry: with and without TLS, with credentials, through faults.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use olmkit_oci::build::Recipe;
use olmkit_oci::layer::{Content, LayerBuilder};
use olmkit_oci::registry::{Cache, Client, Error, NoProgress, Options, Platforms, Progress, Transfer};
use olmkit_oci::source::{deliver_from, fetch_documents};
use olmkit_oci::spec::{Descriptor, Platform};
use olmkit_oci::{Layout, Location, Reference};
use tempfile::TempDir;
use test_support::registry::{Registry, Setup, free_port};

use crate::proxy::{self, Fault};
use crate::token;

/// An image with a layer that does not compress, of about this many bytes.
fn image(layout: &Layout, size: usize) -> Descriptor {
    let mut state = 1_u64;
    let noise = (0..size).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    });
    let mut layer = LayerBuilder::new();
    layer.file("/data", Content::Bytes(noise.collect()), false).unwrap();
    let mut recipe = Recipe::new(Platform::host(), 0);
    recipe.layers.push(("test".to_owned(), layer));
    recipe.build(layout).unwrap()
}

pub struct Bench {
    folder: TempDir,
    pub layout: Layout,
    pub image: Descriptor,
}

impl Bench {
    pub fn new(size: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(&folder.path().join("source")).unwrap();
        let image = image(&layout, size);
        Self { folder, layout, image }
    }

    /// Options that ignore the machine's settings.
    pub fn options(&self) -> Options {
        let file = |name: &str, text: &str| {
            let path = self.folder.path().join(name);
            if !path.exists() {
                fs::write(&path, text).unwrap();
            }
            Some(path)
        };
        Options {
            auth_file: file("auth.json", "{}"),
            registries_conf: file("registries.conf", ""),
            ..Options::default()
        }
    }

    pub fn client(&self) -> Client {
        client(self.options())
    }

    pub fn with_credentials(&self, host: &str, user: &str, password: &str) -> Client {
        let text = format!(
            r#"{{"auths":{{"{host}":{{"auth":"{}"}}}}}}"#,
            STANDARD.encode(format!("{user}:{password}"))
        );
        fs::write(self.folder.path().join("auth.json"), text).unwrap();
        self.client()
    }

    pub async fn push(&self, client: &Client, reference: &str) -> Result<(), Error> {
        client
            .push(&self.layout, &self.image, &reference.parse().unwrap(), &[])
            .await
    }

    /// Pulls into a fresh layout and checks that everything arrived.
    pub async fn pull(&self, client: &Client, reference: &str) -> Result<(), Error> {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let pulled = client
            .pull(&reference.parse().unwrap(), &layout, &Platforms::All)
            .await?;
        assert_eq!(pulled.requested.digest, self.image.digest);
        for blob in layout.reachable(&pulled.image).unwrap() {
            layout.open_blob(&blob).unwrap().verify().unwrap();
        }
        Ok(())
    }
}

fn client(options: Options) -> Client {
    Client::new(options, Arc::new(NoProgress)).unwrap()
}

macro_rules! registry {
    ($setup:expr) => {
        match Registry::start(&$setup) {
            Some(registry) => registry,
            None => return,
        }
    };
}

#[tokio::test]
async fn plain_http_on_this_machine_needs_no_flag() {
    let registry = registry!(Setup::default());
    let bench = Bench::new(3 << 20);
    let (client, name) = (bench.client(), format!("{}/team/plain:v1", registry.host()));
    bench.push(&client, &name).await.unwrap();
    bench.pull(&client, &name).await.unwrap();
    assert_eq!(
        client.resolve(&name.parse().unwrap()).await.unwrap().digest,
        bench.image.digest
    );
    // A second push finds everything there.
    bench.push(&client, &name).await.unwrap();
    let absent: Reference = format!("{}/team/absent:v1", registry.host()).parse().unwrap();
    let error = client.resolve(&absent).await.unwrap_err().to_string();
    assert!(
        error.contains("has no image") && error.contains("team/absent:v1"),
        "{error}"
    );
}

#[tokio::test]
async fn small_pieces_arrive_whole() {
    let registry = registry!(Setup::default());
    let bench = Bench::new(3 << 20);
    let client = client(Options {
        chunk_size: Some(700_000),
        ..bench.options()
    });
    let name = format!("{}/pieces:v1", registry.host());
    bench.push(&client, &name).await.unwrap();
    bench.pull(&client, &name).await.unwrap();
    let patches = registry.log().matches("http.request.method=PATCH").count();
    assert!(patches >= 5, "{patches} pieces");
}

#[tokio::test]
async fn an_own_authority_must_be_named() {
    let registry = registry!(Setup {
        tls: true,
        ..Setup::default()
    });
    let bench = Bench::new(1000);
    let name = format!("{}/tls:v1", registry.host());
    let error = bench.push(&bench.client(), &name).await.unwrap_err().to_string();
    assert!(
        error.contains("certificate that is not trusted") && error.contains("--ca-file"),
        "{error}"
    );
    let trusting = client(Options {
        ca_file: Some(registry.authority()),
        ..bench.options()
    });
    bench.push(&trusting, &name).await.unwrap();
    bench.pull(&trusting, &name).await.unwrap();
    bench
        .pull(
            &client(Options {
                skip_tls_verify: true,
                ..bench.options()
            }),
            &name,
        )
        .await
        .unwrap();
}

#[tokio::test]
async fn relocated_names_are_pushed_to_their_place() {
    let registry = registry!(Setup::default());
    let bench = Bench::new(1000);
    let conf = format!(
        "[[registry]]\nprefix = \"registry.test\"\nlocation = \"{}\"\n",
        registry.host()
    );
    fs::write(bench.folder.path().join("registries.conf"), conf).unwrap();
    bench.push(&bench.client(), "registry.test/moved:v1").await.unwrap();
    bench
        .pull(&bench.client(), &format!("{}/moved:v1", registry.host()))
        .await
        .unwrap();
}

#[tokio::test]
async fn basic_credentials_are_sent_and_refusals_name_their_source() {
    let registry = registry!(Setup {
        basic: true,
        ..Setup::default()
    });
    let bench = Bench::new(1000);
    let name = format!("{}/basic:v1", registry.host());
    let error = bench.push(&bench.client(), &name).await.unwrap_err().to_string();
    assert!(
        error.contains("no credential was sent") && error.contains("auth.json"),
        "{error}"
    );
    let client = bench.with_credentials(&registry.host(), "user", "wrong");
    let error = bench.push(&client, &name).await.unwrap_err().to_string();
    assert!(
        error.contains("user \"user\"") && error.contains(&format!("entry {}", registry.host())),
        "{error}"
    );
    assert!(!error.contains("wrong"), "{error}");
    let client = bench.with_credentials(&format!("{}/basic", registry.host()), "user", "secret");
    bench.push(&client, &name).await.unwrap();
    bench.pull(&client, &name).await.unwrap();
}

#[tokio::test]
async fn tokens_are_fetched_for_what_is_done() {
    let tokens = token::start();
    let registry = registry!(Setup {
        token: Some((tokens.realm.clone(), tokens.certificate.clone())),
        ..Setup::default()
    });
    let bench = Bench::new(3 << 20);
    let name = format!("{}/team/token:v1", registry.host());
    let client = bench.with_credentials(&registry.host(), "user", "secret");
    bench.push(&client, &name).await.unwrap();
    let asked = tokens.requests.lock().unwrap().join("\n");
    assert!(
        asked.contains("scope=repository%3Ateam%2Ftoken%3Apull%2Cpush"),
        "{asked}"
    );
    assert_eq!(asked.lines().count(), 1, "{asked}");
    // All clients may pull, only one may push.
    fs::write(bench.folder.path().join("auth.json"), "{}").unwrap();
    let anonymous = bench.client();
    bench.pull(&anonymous, &name).await.unwrap();
    let other = Bench::new(2000);
    let error = other.push(&other.client(), &name).await.unwrap_err().to_string();
    assert!(
        error.contains("refused to push") && error.contains("no credential was sent"),
        "{error}"
    );
    let client = bench.with_credentials(&registry.host(), "user", "wrong");
    let error = bench.pull(&client, &name).await.unwrap_err().to_string();
    assert!(
        error.contains("token server") && error.contains("incorrect username or password"),
        "{error}"
    );
}

#[tokio::test]
async fn blobs_are_lent_between_repositories() {
    let registry = registry!(Setup::default());
    let bench = Bench::new(3 << 20);
    let client = bench.client();
    let (first, second) = (
        format!("{}/first:v1", registry.host()),
        format!("{}/second:v1", registry.host()),
    );
    bench.push(&client, &first).await.unwrap();
    let uploads = registry.log().matches("http.request.method=PATCH").count();
    let related = [first.parse().unwrap()];
    client
        .push(&bench.layout, &bench.image, &second.parse().unwrap(), &related)
        .await
        .unwrap();
    assert_eq!(registry.log().matches("http.request.method=PATCH").count(), uploads);
    bench.pull(&client, &second).await.unwrap();
}

/// Copies an image between two registries and gives the bytes that passed each of them.
async fn copied(
    client: &Client,
    bench: &Bench,
    from: &proxy::Proxy,
    to: &proxy::Proxy,
    names: (&str, &str),
) -> [usize; 2] {
    let counts = || [from.bytes.load(Ordering::SeqCst), to.bytes.load(Ordering::SeqCst)];
    let before = counts();
    let source: Reference = format!("{}/{}", from.host(), names.0).parse().unwrap();
    let target = Location::Registry(format!("{}/{}", to.host(), names.1).parse().unwrap());
    let fetched = fetch_documents(client, &source, &Platforms::All).await.unwrap();
    assert_eq!(fetched.descriptor.digest, bench.image.digest);
    deliver_from(client, &source, &fetched, &target, "").await.unwrap();
    let after = counts();
    [after[0] - before[0], after[1] - before[1]]
}

#[tokio::test]
async fn a_copy_transfers_only_blobs_that_the_target_lacks() {
    const LAYER: usize = 3 << 20;
    /// Manifests, requests and answers.
    const REST: usize = 64 << 10;
    let (one, two) = (registry!(Setup::default()), registry!(Setup::default()));
    let bench = Bench::new(LAYER);
    let client = bench.client();
    bench
        .push(&client, &format!("{}/team/op:v1", one.host()))
        .await
        .unwrap();
    let (from, to) = (proxy::start(one.port, Fault::None), proxy::start(two.port, Fault::None));
    let first = copied(&client, &bench, &from, &to, ("team/op:v1", "mirror/op:v1")).await;
    assert!(
        first
            .iter()
            .all(|bytes| (LAYER..LAYER + LAYER / 10 + REST).contains(bytes)),
        "{first:?}"
    );
    // The same repository has all blobs already.
    let again = copied(&client, &bench, &from, &to, ("team/op:v1", "mirror/op:v2")).await;
    assert!(again.iter().all(|bytes| *bytes < REST), "{again:?}");
    bench
        .pull(&client, &format!("{}/mirror/op:v2", two.host()))
        .await
        .unwrap();
    // Another repository of the same registry mounts them.
    let before = one.log().matches("http.request.method=PATCH").count();
    let [mounted, _] = copied(&client, &bench, &from, &from, ("team/op:v1", "other/op:v1")).await;
    assert!(mounted < REST, "{mounted}");
    assert_eq!(one.log().matches("http.request.method=PATCH").count(), before);
    bench
        .pull(&client, &format!("{}/other/op:v1", one.host()))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_copy_to_a_layout_downloads_only_blobs_that_it_lacks() {
    const LAYER: usize = 1 << 20;
    let registry = registry!(Setup::default());
    let bench = Bench::new(LAYER);
    let client = bench.client();
    bench
        .push(&client, &format!("{}/op:v1", registry.host()))
        .await
        .unwrap();
    let proxy = proxy::start(registry.port, Fault::None);
    let source: Reference = format!("{}/op:v1", proxy.host()).parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layout");
    let copy = async |name: &str| {
        let before = proxy.bytes.load(Ordering::SeqCst);
        let target = Location::Oci(path.clone(), Some(name.to_owned()));
        let fetched = fetch_documents(&client, &source, &Platforms::All).await.unwrap();
        deliver_from(&client, &source, &fetched, &target, "").await.unwrap();
        proxy.bytes.load(Ordering::SeqCst) - before
    };
    assert!(copy("v1").await > LAYER);
    assert!(copy("v2").await < LAYER / 10);
    let layout = Layout::open(&path).unwrap();
    for name in ["v1", "v2"] {
        for blob in layout.reachable(&layout.find(Some(name)).unwrap()).unwrap() {
            layout.open_blob(&blob).unwrap().verify().unwrap();
        }
    }
}

/// Notes what was said.
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

async fn through_fault(fault: Fault, pushing: bool) -> Option<(usize, Vec<String>)> {
    let registry = Registry::start(&Setup::default())?;
    let bench = Bench::new(6 << 20);
    let proxy = proxy::start(registry.port, fault);
    let (direct, faulty) = (
        format!("{}/fault:v1", registry.host()),
        format!("{}/fault:v1", proxy.host()),
    );
    let notes = Arc::new(Notes::default());
    let client = Client::new(bench.options(), notes.clone()).unwrap();
    if pushing {
        bench.push(&client, &faulty).await.unwrap();
        bench.pull(&bench.client(), &direct).await.unwrap();
    } else {
        bench.push(&bench.client(), &direct).await.unwrap();
        bench.pull(&client, &faulty).await.unwrap();
    }
    let notes = notes.0.lock().unwrap().clone();
    Some((proxy.faults.load(Ordering::SeqCst), notes))
}

#[tokio::test]
async fn transient_answers_are_waited_out() {
    for head in [
        "429 Too Many Requests\r\nRetry-After: 1",
        "500 Internal Server Error",
        "503 Service Unavailable",
    ] {
        for pushing in [true, false] {
            let Some((faults, notes)) = through_fault(Fault::Answer { times: 4, head }, pushing).await else {
                return;
            };
            assert_eq!(faults, 4);
            assert!(notes.iter().any(|note| note.contains("trying again")), "{notes:?}");
        }
    }
}

#[tokio::test]
async fn cut_downloads_are_resumed() {
    let Some((faults, notes)) = through_fault(
        Fault::CutAnswer {
            times: 3,
            after: 1 << 20,
        },
        false,
    )
    .await
    else {
        return;
    };
    assert_eq!(faults, 3);
    // Each attempt continues where the previous one was interrupted.
    let positions: Vec<u64> = notes
        .iter()
        .filter_map(|note| note.split("broke off after ").nth(1)?.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(positions.len(), 3, "{notes:?}");
    assert!(positions.is_sorted_by(|one, two| one < two), "{positions:?}");
}

#[tokio::test]
async fn cut_uploads_are_resumed_or_begun_again() {
    let Some((faults, notes)) = through_fault(
        Fault::CutRequest {
            times: 3,
            after: 1 << 20,
        },
        true,
    )
    .await
    else {
        return;
    };
    assert_eq!(faults, 3);
    assert!(!notes.is_empty());
}

#[tokio::test]
async fn a_slow_registry_is_waited_for() {
    for pushing in [true, false] {
        let Some(_) = through_fault(Fault::Slow { milliseconds: 5 }, pushing).await else {
            return;
        };
    }
}

#[tokio::test]
async fn a_limit_on_requests_is_met_with_pieces() {
    let Some((faults, notes)) = through_fault(Fault::LimitRequest { bytes: 5 << 20 }, true).await else {
        return;
    };
    assert!(faults >= 1);
    assert!(
        notes.iter().any(|note| note.contains("sending it in chunks")),
        "{notes:?}"
    );
}

#[tokio::test]
async fn a_registry_that_never_recovers_is_given_up() {
    let registry = registry!(Setup::default());
    let bench = Bench::new(1000);
    let proxy = proxy::start(
        registry.port,
        Fault::Answer {
            times: usize::MAX,
            head: "502 Bad Gateway",
        },
    );
    let client = client(Options {
        attempts: 2,
        plain_http: true,
        ..bench.options()
    });
    let error = bench
        .push(&client, &format!("{}/gone:v1", proxy.host()))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("answered 502") && error.contains("2 times"), "{error}");
}

#[tokio::test]
async fn a_wrong_blob_is_refused_and_nothing_of_it_stays() {
    let registry = registry!(Setup::default());
    let bench = Bench::new(1 << 20);
    let name = format!("{}/corrupt:v1", registry.host());
    bench.push(&bench.client(), &name).await.unwrap();
    let layer = &bench.layout.read_manifest(&bench.image).unwrap().layers[0];
    let hex = layer.digest.hex();
    let stored = registry
        .folder
        .path()
        .join("data/docker/registry/v2/blobs/sha256")
        .join(&hex[..2])
        .join(hex)
        .join("data");
    let mut bytes = fs::read(&stored).unwrap();
    bytes[1000] ^= 1;
    fs::write(&stored, bytes).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let (layout_path, cache_path) = (folder.path().join("layout"), folder.path().join("cache"));
    let layout = Layout::create(&layout_path).unwrap();
    let client = client(Options {
        cache: Some(Cache::new(&cache_path, 1 << 30)),
        ..bench.options()
    });
    let error = client
        .pull(&name.parse().unwrap(), &layout, &Platforms::All)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    let left: Vec<PathBuf> = files(&layout_path.join("blobs"))
        .into_iter()
        .chain(files(&cache_path))
        .collect();
    let half_written = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name == hex || name.starts_with(".partial")
    };
    assert_eq!(left.iter().find(half_written), None);
}

#[tokio::test]
async fn the_cache_serves_what_was_pulled_before() {
    let registry = registry!(Setup::default());
    let bench = Bench::new(1 << 20);
    let name = format!("{}/cached:v1", registry.host());
    let cache = tempfile::tempdir().unwrap();
    let client = client(Options {
        cache: Some(Cache::new(cache.path(), 1 << 30)),
        ..bench.options()
    });
    bench.push(&client, &name).await.unwrap();
    bench.pull(&client, &name).await.unwrap();
    let fetched = registry.log().matches("http.request.method=GET").count();
    bench.pull(&client, &name).await.unwrap();
    // Only the manifest is asked for again.
    assert!(registry.log().matches("http.request.method=GET").count() <= fetched + 2);
    assert_eq!(files(cache.path()).len(), 2);
}

#[tokio::test]
async fn mirrors_are_asked_first_and_passed_over_when_they_fail() {
    let registry = registry!(Setup::default());
    let bench = Bench::new(1000);
    bench
        .push(&bench.client(), &format!("{}/copy/team/op:v1", registry.host()))
        .await
        .unwrap();
    let conf = format!(
        "[[registry]]\nprefix = \"registry.invalid/team\"\n[[registry.mirror]]\nlocation = \"localhost:{}/none\"\n\
         [[registry.mirror]]\nlocation = \"{}/copy/team\"\n",
        free_port(),
        registry.host()
    );
    fs::write(bench.folder.path().join("registries.conf"), conf).unwrap();
    bench
        .pull(&bench.client(), "registry.invalid/team/op:v1")
        .await
        .unwrap();
    let error = bench.pull(&bench.client(), "op:v1").await.unwrap_err().to_string();
    assert!(error.contains("docker.io/library/op:v1"), "{error}");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}
