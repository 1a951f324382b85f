//! Downloads, against a server on this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use flate2::{Compression, write::GzEncoder};
use kube_testbed::download::{Download, DownloadError};
use sha2::{Digest as _, Sha512};

/// An archive with these files.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn digest(content: &[u8]) -> String {
    Sha512::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Answers every request with `status` and `content`. Returns the server's address.
fn server(status: &'static str, content: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut request = [0; 4096];
            let _ = connection.read(&mut request);
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                content.len()
            );
            let _ = connection.write_all(head.as_bytes());
            let _ = connection.write_all(&content);
        }
    });
    address
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

const FILES: [(&str, &str); 4] = [
    ("controller-tools/envtest/etcd", "#!etcd"),
    ("controller-tools/envtest/kube-apiserver", "#!server"),
    ("controller-tools/envtest/kubectl", "#!kubectl"),
    ("controller-tools/envtest/evil", "#!evil"),
];

#[tokio::test]
async fn the_programs_are_unpacked_and_not_fetched_twice() {
    let (content, directory) = (archive(&FILES), tempfile::tempdir().unwrap());
    let download = |url: &str, digest: &str| {
        Download::default()
            .version("v9.8.7")
            .from(url)
            .sha512(digest)
            .into(directory.path())
    };
    let expected = digest(&content);
    let programs = download(&server("200 OK", content), &expected).run().await.unwrap();
    assert_eq!(names(&programs), ["etcd", "kube-apiserver", "kubectl"]);
    let etcd = programs.join("etcd");
    assert_eq!(std::fs::read_to_string(&etcd).unwrap(), "#!etcd");
    assert_eq!(etcd.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(names(directory.path()).len(), 1, "nothing else is left");

    let again = download("http://127.0.0.1:1", &expected).run().await.unwrap();
    assert_eq!(again, programs);
}

#[tokio::test]
async fn an_unexpected_download_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let content = archive(&FILES);
    let half = archive(FILES.get(..1).unwrap());
    let cases = [
        ("200 OK", content.clone(), "0".repeat(128), "expected 000"),
        ("404 Not Found", Vec::new(), digest(&[]), "404 Not Found"),
        (
            "200 OK",
            half.clone(),
            digest(&half),
            "the archive has no kube-apiserver",
        ),
        ("200 OK", b"no archive".to_vec(), digest(b"no archive"), "gzip"),
    ];
    for (status, content, digest, wanted) in cases {
        let download = Download::default().from(&server(status, content)).sha512(&digest);
        let error = download.into(directory.path()).run().await.unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        assert_eq!(names(directory.path()), [""; 0], "{error}");
    }
}

#[tokio::test]
async fn a_version_without_a_digest_is_refused() {
    let download = Download::default().version("1.2.3").into(Path::new("/nowhere"));
    let error = download.run().await.unwrap_err();
    assert!(matches!(error, DownloadError::UnknownVersion { .. }), "{error}");
    assert!(error.to_string().contains("known versions are 1.36.2, "), "{error}");
}
