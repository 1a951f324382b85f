//! Servers that keep their items over a restart, and servers with TLS.
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command},
    sync::LazyLock,
    time::Duration,
};

use futures::TryStreamExt as _;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::{ResourceExt as _, runtime::watcher};
use memcached_operator::{api::v1alpha1::Memcached, operand};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    client::Resumption,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lab::{Lab, eventually, value};

/// The pod template of `sample`.
async fn template(lab: &Lab) -> Value {
    let deployment = lab.api::<Deployment>().get("sample").await.unwrap();
    value(&deployment)["spec"]["template"].take()
}

#[tokio::test]
async fn warm_caches_and_tls_change_the_pods_and_nothing_else() {
    let lab = Lab::new("warm").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let before = template(&lab).await;
    assert_eq!(before["spec"]["containers"][0]["command"], json!(["memcached"]));
    assert_eq!(before["spec"]["volumes"], Value::Null);

    let pods = lab.pods("sample").await;
    lab.change(
        "sample",
        json!({ "warmCache": "WarmRestart", "tls": { "secretName": "cert" } }),
    )
    .await;
    eventually("the servers are replaced", async || {
        lab.running("sample").await;
        let now = lab.pods("sample").await;
        (now.len() == 2 && now.iter().all(|name| !pods.contains(name))).then_some(())
    })
    .await;
    let warm = template(&lab).await;
    let container = &warm["spec"]["containers"][0];
    let file = json!([{ "name": "items", "emptyDir": { "medium": "Memory", "sizeLimit": "105Mi" } },
        { "name": "tls", "secret": { "secretName": "cert", "defaultMode": 420 } }]);
    assert_eq!(warm["spec"]["volumes"], file);
    assert_eq!(container["command"][0], "/bin/sh");
    assert_eq!(container["lifecycle"]["preStop"]["sleep"]["seconds"], 5);
    assert_eq!(container["resources"]["limits"]["memory"], "200Mi");
    let memcached = lab.running("sample").await;
    let written = memcached.metadata.generation;

    // No field is reverted or applied again and again.
    let deployment = lab.api::<Deployment>().get("sample").await.unwrap();
    lab.change("sample", json!({ "disruptionBudget": { "maxUnavailable": 1 } }))
        .await;
    eventually("the change is applied", async || {
        (lab.running("sample").await.metadata.generation > written).then_some(())
    })
    .await;
    let now = lab.api::<Deployment>().get("sample").await.unwrap();
    assert_eq!(now.metadata.generation, deployment.metadata.generation);

    lab.change("sample", json!({ "warmCache": null, "tls": null })).await;
    eventually("the template is the former one", async || {
        (template(&lab).await == before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn node_maintenance_waits_for_servers_that_clients_still_fill() {
    let lab = Lab::new("warm-up").await;
    let _operator = lab.operator().await;
    for (name, mode) in [("restart", "WarmRestart"), ("resize", "ResizeInPlace")] {
        lab.memcached(name, json!({ "size": 2, "warmCache": mode, "warmUpSeconds": 3600 }))
            .await;
        lab.running(name).await;
        let budget = async |wanted: i32| {
            eventually("the budget counts servers that warm up", async || {
                let budget = lab.api::<PodDisruptionBudget>().get(name).await.unwrap();
                (value(&budget)["spec"]["maxUnavailable"] == wanted).then_some(())
            })
            .await;
        };
        budget(0).await;
        lab.change(name, json!({ "warmUpSeconds": 0 })).await;
        budget(1).await;
    }
}

/// Times of the pods of a Memcached in a rollout, in seconds: the pods with the new image became ready, and the others were deleted.
#[derive(Debug, Default)]
struct Times {
    ready: BTreeMap<String, i64>,
    deleted: BTreeMap<String, i64>,
}

impl Times {
    fn record(&mut self, pod: &Pod, image: &str) {
        let name = pod.name_any();
        let is_new = pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some(image);
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let mut ready = conditions.filter(|found| found.type_ == "Ready" && found.status == "True");
        if let (true, Some(ready)) = (is_new, ready.next()) {
            let time = ready.last_transition_time.as_ref().unwrap().0.as_second();
            self.ready.entry(pod.uid().unwrap()).or_insert(time);
        }
        if let (false, Some(end)) = (is_new, &pod.metadata.deletion_timestamp) {
            // The timestamp is in the future.
            let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
            self.deleted.entry(name).or_insert(end.0.as_second() - grace);
        }
    }
}

#[tokio::test]
async fn a_rollout_waits_until_clients_have_filled_the_new_server() {
    const WARM_UP: i64 = 5;
    const NEW: &str = "memcached:1.6.40";
    let lab = Lab::new("fill").await;
    let _operator = lab.operator().await;
    for (name, workload, mode) in [
        ("plain", "Deployment", None),
        ("restart", "StatefulSet", Some("WarmRestart")),
        ("resize", "Deployment", Some("ResizeInPlace")),
    ] {
        let spec = json!({ "size": 2, "workload": workload, "warmCache": mode, "warmUpSeconds": WARM_UP });
        lab.memcached(name, spec).await;
        lab.running(name).await;
        let selector = format!("{}={name}", operand::OWNER);
        let mut changes = Box::pin(watcher(lab.api::<Pod>(), watcher::Config::default().labels(&selector)));
        lab.change(name, json!({ "image": NEW })).await;
        let mut times = Times::default();
        while times.ready.len() < 2 || times.deleted.len() < 2 {
            let next = tokio::time::timeout(Duration::from_secs(180), changes.try_next());
            match next.await.expect("a change of a pod").unwrap().unwrap() {
                watcher::Event::Apply(pod) | watcher::Event::InitApply(pod) | watcher::Event::Delete(pod) => {
                    times.record(&pod, NEW);
                }
                watcher::Event::Init | watcher::Event::InitDone => {}
            }
        }
        let (first, last) = (
            times.ready.values().min().unwrap(),
            times.deleted.values().max().unwrap(),
        );
        assert!(last - first >= WARM_UP, "{name}: {times:?}");
    }
}

#[tokio::test]
async fn a_graceful_restart_keeps_all_items_and_a_kill_keeps_none() {
    const KEYS: usize = 2000;
    let Some(program) = Program::find() else { return };
    let items = tempfile::tempdir().unwrap();
    let start = || Server::start(&program, json!({ "warmCache": "WarmRestart" }), items.path());
    let server = start();
    server.store(KEYS).await;
    let shell = server.process.id();
    server.stop("-TERM", shell).await;

    let server = start();
    assert_eq!(server.found(KEYS).await, KEYS);
    let memcached = server.memcached();
    server.stop("-KILL", memcached).await;

    let server = start();
    assert_eq!(server.found(KEYS).await, 0);
    let shell = server.process.id();
    server.stop("-TERM", shell).await;
}

/// An authority for the certificates of servers and clients.
struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    certificate: rcgen::Certificate,
}

impl Authority {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        // Otherwise issuer and subject of its certificates are equal, as those of a self-signed one.
        parameters
            .distinguished_name
            .push(rcgen::DnType::CommonName, "authority");
        let certificate = parameters.self_signed(&key).unwrap();
        Self {
            issuer: rcgen::Issuer::new(parameters, key),
            certificate,
        }
    }

    /// A certificate for `sample.cache.svc`, and its key.
    fn issue(&self) -> (rcgen::Certificate, rcgen::KeyPair) {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec!["sample.cache.svc".to_owned()]).unwrap();
        (parameters.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// Writes a certificate into `volume` as a kubelet writes the files of a Secret: into a new directory, to which the link `..data`
    /// changes at once.
    fn write(&self, volume: &Path, version: &str) -> CertificateDer<'static> {
        let (certificate, key) = self.issue();
        let directory = volume.join(version);
        fs::create_dir(&directory).unwrap();
        for (name, text) in [
            ("tls.crt", certificate.pem()),
            ("tls.key", key.serialize_pem()),
            ("ca.crt", self.certificate.pem()),
        ] {
            fs::write(directory.join(name), text).unwrap();
            if !volume.join(name).exists() {
                symlink(Path::new("..data").join(name), volume.join(name)).unwrap();
            }
        }
        symlink(version, volume.join("..new")).unwrap();
        fs::rename(volume.join("..new"), volume.join("..data")).unwrap();
        certificate.der().clone()
    }

    /// A client that accepts only the servers of this authority, with a certificate or without.
    fn client(&self, has_certificate: bool) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots);
        let mut config = match has_certificate {
            true => {
                let (certificate, key) = self.issue();
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                let chain = vec![certificate.der().clone()];
                config.with_client_auth_cert(chain, key).unwrap()
            }
            false => config.with_no_client_auth(),
        };
        // Memcached rejects resumed sessions if it verifies clients: it sets no session ID context.
        config.resumption = Resumption::disabled();
        config
    }
}

/// A TLS connection to a server.
struct Secure(StreamOwned<ClientConnection, TcpStream>);

impl Secure {
    fn connect(port: u16, config: &ClientConfig) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        let name = ServerName::try_from("sample.cache.svc").unwrap();
        let connection = ClientConnection::new(config.clone().into(), name).unwrap();
        let mut secure = Self(StreamOwned::new(connection, stream));
        secure.version()?;
        Ok(secure)
    }

    /// The server's answer to a request.
    fn version(&mut self) -> std::io::Result<String> {
        self.0.write_all(b"version\r\n")?;
        let mut answer = [0; 64];
        let length = self.0.read(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        answer
            .starts_with("VERSION ")
            .then_some(answer)
            .ok_or_else(|| std::io::ErrorKind::InvalidData.into())
    }

    fn certificate(&self) -> CertificateDer<'static> {
        self.0.conn.peer_certificates().unwrap()[0].clone()
    }
}

#[tokio::test]
async fn a_changed_certificate_is_used_without_a_restart() {
    let Some(program) = Program::find() else { return };
    let (authority, volume) = (Authority::new(), tempfile::tempdir().unwrap());
    let first = authority.write(volume.path(), "..first");
    let server = Server::start(&program, json!({ "tls": { "secretName": "cert" } }), volume.path());
    let client = authority.client(false);
    let connect = async |certificate: &CertificateDer<'static>| {
        eventually("a connection with the certificate", async || {
            let secure = Secure::connect(server.port, &client).ok()?;
            (secure.certificate() == *certificate).then_some(secure)
        })
        .await
    };
    let mut before = connect(&first).await;
    let memcached = server.memcached();
    // A connection without TLS gets no answer.
    let mut plain = server.connection().await;
    let _ = plain.get_mut().write_all(b"version\r\n");
    let mut answer = Vec::new();
    let _ = plain.read_until(b'\n', &mut answer);
    assert!(!answer.starts_with(b"VERSION"), "{answer:?}");

    let second = authority.write(volume.path(), "..second");
    assert_ne!(first, second);
    connect(&second).await;
    assert_eq!(server.memcached(), memcached, "the process");
    before.version().unwrap();
    assert_eq!(before.certificate(), first);
    let shell = server.process.id();
    server.stop("-TERM", shell).await;
}

#[tokio::test]
async fn clients_without_a_certificate_are_rejected_if_the_servers_verify_them() {
    let Some(program) = Program::find() else { return };
    let (authority, volume) = (Authority::new(), tempfile::tempdir().unwrap());
    authority.write(volume.path(), "..first");
    let spec = json!({ "tls": { "secretName": "cert", "verifyClients": true } });
    let server = Server::start(&program, spec, volume.path());
    let known = authority.client(true);
    eventually("a client with a certificate is accepted", async || {
        Secure::connect(server.port, &known).ok()
    })
    .await;
    assert!(Secure::connect(server.port, &authority.client(false)).is_err());
    // The servers' authority has not issued this certificate.
    let mut roots = authority.client(false);
    let other = Authority::new().client(true);
    roots.client_auth_cert_resolver = other.client_auth_cert_resolver;
    assert!(Secure::connect(server.port, &roots).is_err());
    Secure::connect(server.port, &known).unwrap();
    let shell = server.process.id();
    server.stop("-TERM", shell).await;
}

/// A directory with the program `memcached`.
pub struct Program(TempDir);

impl Program {
    /// Debian's, which `dev/memcached.sh` unpacks. `None` on other systems, with a line about it.
    pub fn find() -> Option<Self> {
        static VERSION: LazyLock<Option<String>> = LazyLock::new(|| {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/dev/memcached.sh");
            let answer = Command::new(script).output().unwrap();
            answer
                .status
                .success()
                .then(|| String::from_utf8(answer.stdout).unwrap())
        });
        let Some(version) = VERSION.as_deref() else {
            eprintln!("skipped: dev/memcached.sh finds no memcached");
            return None;
        };
        eprintln!("{version}");
        let directory = tempfile::tempdir().unwrap();
        let cache = kube_testbed::tools::cache().unwrap();
        symlink(cache.join("memcached/run"), directory.path().join("memcached")).unwrap();
        Some(Self(directory))
    }
}

/// A memcached process, started as the container runtime would start the container of a Memcached.
pub struct Server {
    process: Child,
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            // The shell ends memcached.
            let _ = Command::new("kill").arg(self.process.id().to_string()).status();
            let _ = self.process.wait();
        }
    }
}

impl Server {
    /// Starts the server of a Memcached with this spec. `volume` is the directory of its volume.
    pub fn start(program: &Program, mut spec: Value, volume: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        spec["containerPort"] = port.into();
        Self::start_on(program, spec, volume, "127.0.0.1")
    }

    /// As [`start`](Self::start), on another address. The spec contains the port.
    pub fn start_on(program: &Program, spec: Value, volume: &Path, address: &str) -> Self {
        let memcached: Memcached = serde_json::from_value(json!({ "apiVersion": "cache.example.com/v1alpha1",
            "kind": "Memcached", "metadata": { "name": "sample" }, "spec": spec }))
        .unwrap();
        let deployment = value(&operand::deployment(&memcached, "m:1"));
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let words = [&container["command"], &container["args"]].into_iter();
        let words = words.flat_map(|list| list.as_array().unwrap());
        let here = volume.display().to_string();
        let words: Vec<String> = words
            .map(|word| {
                word.as_str()
                    .unwrap()
                    .replace("/items", &here)
                    .replace("/tls/", &format!("{here}/"))
            })
            .collect();
        let path = format!("{}:{}", program.0.path().display(), std::env::var("PATH").unwrap());
        // A shell cannot trap signals that it ignores from its start, as under nohup.
        let mut command = Command::new("env");
        command
            .arg("--default-signal=HUP")
            .args(&words)
            .args(["-l", address])
            .env("PATH", path);
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap();
        Self {
            // Memcached does not run as root without this option.
            process: command.args(["-u", user.trim()]).spawn().unwrap(),
            port: u16::try_from(memcached.spec.container_port).unwrap(),
        }
    }

    /// The process of memcached, which the shell has started.
    fn memcached(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.process.id());
        let children = fs::read_to_string(children).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }

    async fn connection(&self) -> BufReader<TcpStream> {
        let address = ("127.0.0.1", self.port);
        BufReader::new(eventually("memcached listens", async || TcpStream::connect(address).ok()).await)
    }

    pub async fn store(&self, keys: usize) {
        let mut connection = self.connection().await;
        for key in 0..keys {
            let request = format!("set key{key} 0 0 5\r\nvalue\r\n");
            connection.get_mut().write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            connection.read_line(&mut answer).unwrap();
            assert_eq!(answer, "STORED\r\n");
        }
    }

    /// The number of keys that the server has.
    async fn found(&self, keys: usize) -> usize {
        let mut connection = self.connection().await;
        let mut found = 0;
        for key in 0..keys {
            connection
                .get_mut()
                .write_all(format!("get key{key}\r\n").as_bytes())
                .unwrap();
            let mut line = String::new();
            while line != "END\r\n" {
                line.clear();
                connection.read_line(&mut line).unwrap();
                found += usize::from(line == "value\r\n");
            }
        }
        found
    }

    /// Sends a signal to a process and waits until the server has stopped.
    async fn stop(mut self, signal: &str, process: u32) {
        Command::new("kill")
            .args([signal, &process.to_string()])
            .status()
            .unwrap();
        eventually("memcached stops", async || self.process.try_wait().unwrap()).await;
    }
}
