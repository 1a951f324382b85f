//! Tests with mounted files.
use std::os::unix::fs::symlink;

use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

fn write(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let pair = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
    std::fs::write(&certificate, pair.cert.pem()).unwrap();
    std::fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
    (certificate, key)
}

#[test]
fn a_changed_file_is_a_new_certificate_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = write(folder.path(), "tls");
    let served = Certificates::from_files(&certificate, &key).unwrap();
    assert!(!served.reload().unwrap());
    let first = served.current.read().unwrap().cert.clone();
    write(folder.path(), "tls");
    assert!(served.reload().unwrap());
    let second = served.current.read().unwrap().cert.clone();
    assert_ne!(first, second);
    std::fs::write(&certificate, "nothing").unwrap();
    assert_eq!(
        served.reload().unwrap_err().to_string(),
        format!("{}: no certificate in PEM", certificate.display())
    );
    assert_eq!(served.current.read().unwrap().cert, second);
}

#[test]
fn a_key_must_be_that_of_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, _) = write(folder.path(), "one");
    let (_, key) = write(folder.path(), "other");
    let error = Certificates::from_files(&certificate, &key).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("{}: not the key of {}", key.display(), certificate.display())
    );
    let absent = folder.path().join("absent");
    let error = Certificates::from_files(&absent, &key).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot read {}: ", absent.display())),
        "{error}"
    );
}

#[test]
fn the_subject_of_a_certificate_is_its_user() {
    let user_of = |names: &[(DnType, DnValue)]| {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        for (kind, name) in names {
            parameters.distinguished_name.push(kind.clone(), name.clone());
        }
        let certificate = parameters.self_signed(&KeyPair::generate().unwrap()).unwrap();
        user(certificate.der())
    };
    let (name, group) = (DnType::CommonName, DnType::OrganizationName);
    let text = |text: &str| DnValue::Utf8String(text.to_owned());
    assert_eq!(
        user_of(&[(name.clone(), text("prometheus")), (group.clone(), text("monitoring"))]),
        Some(("prometheus".to_owned(), vec!["monitoring".to_owned()]))
    );
    let printable = DnValue::PrintableString("prometheus".try_into().unwrap());
    assert_eq!(
        user_of(&[(name.clone(), printable)]),
        Some(("prometheus".to_owned(), Vec::new()))
    );
    assert_eq!(user_of(&[(group, text("monitoring"))]), None, "no name");
    assert_eq!(user_of(&[(name, text(""))]), None);
    assert_eq!(user(b"no certificate"), None);
}

fn shown(certificates: &Certificates) -> Vec<CertificateDer<'static>> {
    certificates.current.read().unwrap().cert.clone()
}

/// Mounts a Secret as the kubelet does, and as it updates one: all files are links into a directory that is replaced at once.
fn mount(folder: &Path, version: &str, name: &str) -> Vec<CertificateDer<'static>> {
    let content = folder.join(format!("..{version}"));
    std::fs::create_dir_all(&content).unwrap();
    let (certificate, key) = write(&content, name);
    let link = folder.join("..data_tmp");
    symlink(content.file_name().unwrap(), &link).unwrap();
    std::fs::rename(link, folder.join("..data")).unwrap();
    for file in [&certificate, &key] {
        let file = Path::new(file.file_name().unwrap());
        symlink(Path::new("..data").join(file), folder.join(file)).ok();
    }
    shown(&Certificates::from_files(certificate, key).unwrap())
}

/// cert-manager's and OpenShift's Secrets are mounted where controller-runtime expects them, OLM's there and at a place of
/// its own.
#[test]
fn certificates_are_found_where_they_are_mounted() {
    let root = tempfile::tempdir().unwrap();
    let folders = PLACES.map(|(folder, ..)| format!("{}{folder}", root.path().display()));
    let places = [0, 1].map(|at| (folders[at].as_str(), PLACES[at].1, PLACES[at].2));
    let find = || Certificates::find_in(&places);
    assert_eq!(
        find().unwrap_err().to_string(),
        format!(
            "found no certificate in {} and {}: mount a Secret with one there",
            folders[0], folders[1]
        )
    );
    let of_olm = mount(Path::new(&folders[1]), "1", "apiserver");
    assert_eq!(shown(&find().unwrap()), of_olm);
    let expected = mount(Path::new(&folders[0]), "1", "tls");
    assert_eq!(shown(&find().unwrap()), expected);
    // One that is there and cannot be used is not passed over.
    std::fs::remove_file(Path::new(&folders[0]).join("tls.key")).unwrap();
    assert!(find().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_renewed_secret_is_served_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = mount(folder.path(), "1", "tls");
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let served = Certificates::from_files(certificate, key).unwrap();
    let following = tokio::spawn(served.clone().follow());
    let round = async || tokio::time::sleep(INTERVAL + Duration::from_secs(1)).await;
    round().await;
    assert_eq!(shown(&served), first);
    let second = mount(folder.path(), "2", "tls");
    assert_ne!(first, second);
    round().await;
    assert_eq!(shown(&served), second);
    // A broken one does not end it.
    std::fs::write(folder.path().join("..2/tls.crt"), "nothing").unwrap();
    round().await;
    assert_eq!(shown(&served), second);
    let third = mount(folder.path(), "3", "tls");
    round().await;
    assert_eq!(shown(&served), third);
    following.abort();
}

/// The protocol that a client agrees on with the server, of those that it offers.
async fn agreed(certificates: &Certificates, offered: &[&str]) -> Option<Vec<u8>> {
    let mut roots = RootCertStore::empty();
    roots.add(shown(certificates)[0].clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(certificates.server_config(None).unwrap()));
    let (near, far) = tokio::io::duplex(1 << 16);
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let (client, server) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
    server.ok()?;
    Some(client.unwrap().get_ref().1.alpn_protocol().unwrap_or_default().to_vec())
}

#[tokio::test]
async fn no_client_gets_http_2() {
    let certificates = Certificates::self_signed(&["localhost"]).unwrap();
    let agreed = async |offered: &[&str]| agreed(&certificates, offered).await;
    assert_eq!(agreed(&["h2", "http/1.1"]).await.unwrap(), b"http/1.1");
    assert_eq!(agreed(&[]).await.unwrap(), b"");
    assert_eq!(agreed(&["h2"]).await, None);
}
