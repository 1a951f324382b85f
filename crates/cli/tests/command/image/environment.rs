//! Settings from the environment: proxies, credential helpers, client certificates. Each run is a process with a
//! separate home and environment.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use test_support::registry::{Registry, Setup, free_port};

/// A home with an image in its store.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let home = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::write(home.path("content"), "content").unwrap();
        let build = [
            "image",
            "build",
            "files",
            "--tag",
            "quay.io/team/a:v1",
            "--add",
            "content:/content",
        ];
        home.succeed(&build, &[]);
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        assert_cmd::Command::cargo_bin("olmkit")
            .unwrap()
            .args(arguments)
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", self.folder.path())
            .envs(environment.iter().copied())
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    fn succeed(&self, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        let output = self.run(arguments, environment);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn fail(&self, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        let output = self.run(arguments, environment);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn write_program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn credential_helpers_are_asked() {
    let Some(registry) = Registry::start(&Setup {
        basic: true,
        ..Setup::default()
    }) else {
        return;
    };
    let (home, host) = (Home::new(), registry.host());
    let push = ["image", "push", "quay.io/team/a:v1", &format!("{host}/team/a:v1")];
    let error = home.fail(&push, &[]);
    assert!(error.contains("no credential"), "{error}");

    let config = format!(r#"{{"credHelpers": {{"{host}": "test"}}}}"#);
    fs::write(home.path(".docker/config.json"), config).unwrap();
    let error = home.fail(&push, &[]);
    assert!(error.contains("docker-credential-test"), "{error}");

    let helper = home.path("docker-credential-test");
    write_program(
        &helper,
        &format!(
            "#!/bin/sh\nread -r server\n[ \"$1 $server\" = 'get {host}' ] || exit 1\n\
             echo '{{\"ServerURL\": \"{host}\", \"Username\": \"user\", \"Secret\": \"secret\"}}'\n"
        ),
    );
    assert!(home.succeed(&push, &[]).starts_with(&format!("{host}/team/a@sha256:")));

    write_program(&helper, "#!/bin/sh\necho 'the keyring is locked'\nexit 1\n");
    let error = home.fail(&push, &[]);
    assert!(
        error.contains("docker-credential-test") && error.contains("the keyring is locked"),
        "{error}"
    );
    // The store of all registries without their own helper.
    fs::write(home.path(".docker/config.json"), r#"{"credsStore": "test"}"#).unwrap();
    write_program(
        &helper,
        "#!/bin/sh\necho 'credentials not found in native keychain'\nexit 1\n",
    );
    let error = home.fail(&push, &[]);
    assert!(error.contains("no credential"), "{error}");
}

#[test]
fn client_certificates_are_shown() {
    let Some(registry) = Registry::start(&Setup {
        tls: true,
        client_certificates: true,
        ..Setup::default()
    }) else {
        return;
    };
    let (home, host) = (Home::new(), registry.host());
    let push = ["image", "push", "quay.io/team/a:v1", &format!("{host}/team/a:v1")];
    let folder = format!(".config/containers/certs.d/{host}");
    let file = |name: &str| {
        fs::copy(
            registry.folder.path().join(name),
            home.path(&format!("{folder}/{name}")),
        )
        .unwrap()
    };
    file("ca.crt");
    let error = home.fail(&push, &[]);
    assert!(error.contains("client certificate"), "{error}");
    file("client.cert");
    let error = home.fail(&push, &[]);
    assert!(error.contains("client.key"), "{error}");
    file("client.key");
    home.succeed(&push, &[]);
    assert!(
        home.succeed(&["image", "digest", &format!("{host}/team/a:v1")], &[])
            .starts_with("sha256:")
    );
}

/// A proxy for HTTP and, through CONNECT, for anything. The registry answers for any host.
struct ForwardProxy {
    port: u16,
    /// The first line of each connection.
    asked: Arc<Mutex<Vec<String>>>,
}

impl ForwardProxy {
    fn start(upstream: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let lines = asked.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let lines = lines.clone();
                std::thread::spawn(move || forward(client, upstream, &lines));
            }
        });
        Self { port, asked }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn forward(mut client: TcpStream, upstream: u16, asked: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|count| count == 1) {
        head.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&head)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    let mut registry = TcpStream::connect(("127.0.0.1", upstream)).unwrap();
    if line.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    } else {
        // The registry accepts absolute URLs in request lines.
        registry.write_all(&head).unwrap();
    }
    asked.lock().unwrap().push(line);
    let (mut from, mut to) = (registry.try_clone().unwrap(), client.try_clone().unwrap());
    let answers = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut client, &mut registry);
    let _ = registry.shutdown(Shutdown::Write);
    let _ = answers.join();
}

#[test]
fn proxies_are_used_and_passed_over() {
    let Some(registry) = Registry::start(&Setup::default()) else {
        return;
    };
    let (home, proxy) = (Home::new(), ForwardProxy::start(registry.port));
    let url = proxy.url();
    let push = [
        "image",
        "push",
        "--use-http",
        "quay.io/team/a:v1",
        "registry.test/team/a:v1",
    ];
    for variable in ["HTTP_PROXY", "http_proxy"] {
        home.succeed(&push, &[(variable, &url)]);
        let asked = proxy.take();
        assert!(
            !asked.is_empty() && asked.iter().all(|line| line.contains(" http://registry.test/v2/")),
            "{asked:?}"
        );
    }
    // A proxy only for HTTPS does not apply to HTTP, and hosts in NO_PROXY are reached without one.
    for environment in [
        vec![("HTTPS_PROXY", url.as_str())],
        vec![("HTTP_PROXY", &url), ("NO_PROXY", "registry.test")],
        vec![("http_proxy", &url), ("no_proxy", "other.example,.test")],
    ] {
        let error = home.fail(&push, &environment);
        assert!(error.contains("registry.test is an unknown host name"), "{error}");
        assert_eq!(proxy.take(), Vec::<String>::new(), "{environment:?}");
    }
    // This machine needs no proxy to itself.
    let local = format!("{}/team/a:v1", registry.host());
    home.succeed(
        &["image", "push", "quay.io/team/a:v1", &local],
        &[("HTTP_PROXY", &url), ("HTTPS_PROXY", &url)],
    );
    assert_eq!(proxy.take(), Vec::<String>::new());
}

#[test]
fn tls_goes_through_a_tunnel() {
    let Some(registry) = Registry::start(&Setup {
        tls: true,
        ..Setup::default()
    }) else {
        return;
    };
    let (home, proxy) = (Home::new(), ForwardProxy::start(registry.port));
    let authority = registry.authority();
    let push = [
        "image",
        "push",
        "--ca-file",
        authority.to_str().unwrap(),
        "quay.io/team/a:v1",
        "registry.test/team/a:v1",
    ];
    home.succeed(&push, &[("HTTPS_PROXY", &proxy.url())]);
    let asked = proxy.take();
    assert!(
        asked.iter().all(|line| line.starts_with("CONNECT registry.test:443 ")),
        "{asked:?}"
    );
    // The error names an unreachable proxy.
    let gone = format!("http://127.0.0.1:{}", free_port());
    let error = home.fail(&push, &[("HTTPS_PROXY", &gone)]);
    assert!(error.contains("the proxy of HTTPS_PROXY"), "{error}");
}
