//! A real registry: Debian's docker-registry as a child process.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// bcrypt of "secret".
const HTPASSWD: &str = "user:$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";

/// A running registry, ended when dropped.
#[derive(Debug)]
pub struct Registry {
    child: Child,
    /// Its configuration, certificates, data and log.
    pub folder: TempDir,
    /// Its port on localhost.
    pub port: u16,
}

/// Options for the registry.
#[derive(Debug, Default)]
pub struct Setup {
    /// Serve TLS with a certificate of a private authority.
    pub tls: bool,
    /// Ask for the user "user" with the password "secret".
    pub basic: bool,
    /// With TLS: only clients with a certificate of the same authority get in.
    pub client_certificates: bool,
    /// Address of a token server and the certificate of its key.
    pub token: Option<(String, String)>,
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

impl Registry {
    /// Starts a registry. Prints a line and returns `None` if the program is not installed.
    pub fn start(setup: &Setup) -> Option<Self> {
        let Some(program) = find_program("docker-registry") else {
            eprintln!("skipped: no docker-registry on PATH");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let config = folder.path().join("config.yml");
        fs::write(&config, configuration(setup, folder.path(), port)).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(program)
            .arg("serve")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let registry = Self { child, folder, port };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                start.elapsed() < Duration::from_mins(3),
                "docker-registry did not start: {}",
                registry.log()
            );
            std::thread::sleep(Duration::from_millis(30));
        }
        Some(registry)
    }

    /// `localhost:PORT`, as image references begin.
    pub fn host(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The certificate authority of a registry with TLS.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

fn configuration(setup: &Setup, folder: &Path, port: u16) -> String {
    let here = folder.display();
    let mut text = format!(
        "version: 0.1\nlog: {{level: info}}\nstorage:\n  filesystem: {{rootdirectory: {here}/data}}\n  delete: {{enabled: true}}\n\
         http:\n  addr: 127.0.0.1:{port}\n  secret: test\n"
    );
    if setup.tls {
        make_certificates(folder);
        let clients = if setup.client_certificates {
            format!(", clientcas: [{here}/ca.crt]")
        } else {
            String::new()
        };
        text.push_str(&format!(
            "  tls: {{certificate: {here}/server.crt, key: {here}/server.key{clients}}}\n"
        ));
    }
    if setup.basic {
        fs::write(folder.join("htpasswd"), HTPASSWD).unwrap();
        text.push_str(&format!("auth:\n  htpasswd: {{realm: test, path: {here}/htpasswd}}\n"));
    }
    if let Some((realm, certificate)) = &setup.token {
        fs::write(folder.join("token.crt"), certificate).unwrap();
        text.push_str(&format!(
            "auth:\n  token: {{realm: \"{realm}\", service: test-registry, issuer: test-issuer, rootcertbundle: {here}/token.crt}}\n"
        ));
    }
    text
}

/// A private authority, a certificate for localhost and an invented host, and one for a client.
fn make_certificates(folder: &Path) {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority
        .distinguished_name
        .push(rcgen::DnType::CommonName, "test authority");
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    fs::write(folder.join("ca.crt"), authority_certificate.pem()).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let names = ["localhost", "127.0.0.1", "registry.test"].map(str::to_owned);
    let server = CertificateParams::new(names).unwrap();
    fs::write(
        folder.join("server.crt"),
        server.signed_by(&key, &issuer).unwrap().pem(),
    )
    .unwrap();
    fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut client = CertificateParams::new(vec!["client".to_owned()]).unwrap();
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    fs::write(
        folder.join("client.cert"),
        client.signed_by(&key, &issuer).unwrap().pem(),
    )
    .unwrap();
    fs::write(folder.join("client.key"), key.serialize_pem()).unwrap();
}
