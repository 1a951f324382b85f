//! Trusted certificates of registries, and the messages for untrusted ones.
//!
//! In addition to the system's authorities and `--ca-file`, the directories of podman, buildah, skopeo and Docker are read:
//! `certs.d/<host>/*.crt` contains authorities, `<name>.cert` with `<name>.key` a client certificate.

use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};

use reqwest::{Certificate, ClientBuilder, Identity};

use super::error::Error;
use crate::read::read_limited;

const FILE_LIMIT: u64 = 8 << 20;

/// Adds certificate authorities and client certificates for a host.
pub(super) fn configure(
    mut builder: ClientBuilder,
    host: &str,
    ca_file: Option<&Path>,
) -> Result<ClientBuilder, Error> {
    let mut authorities = Vec::new();
    if let Some(path) = ca_file {
        authorities.extend(read_authorities(path)?);
    }
    for folder in folders(host) {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("crt") => authorities.extend(read_authorities(&path)?),
                Some("cert") => builder = builder.identity(read_identity(&path)?),
                _ => {}
            }
        }
    }
    Ok(if authorities.is_empty() {
        builder
    } else {
        builder.tls_certs_merge(authorities)
    })
}

fn folders(host: &str) -> Vec<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".config")));
    let mut folders: Vec<PathBuf> = config
        .into_iter()
        .map(|path| path.join("containers/certs.d").join(host))
        .collect();
    folders.push(Path::new("/etc/containers/certs.d").join(host));
    folders.push(Path::new("/etc/docker/certs.d").join(host));
    folders
}

fn read_authorities(path: &Path) -> Result<Vec<Certificate>, Error> {
    let settings = |reason: String| Error::Settings {
        path: path.to_owned(),
        reason,
    };
    let bytes = read_limited(path, FILE_LIMIT)?;
    let found = Certificate::from_pem_bundle(&bytes).map_err(|error| settings(describe(&error)))?;
    if found.is_empty() {
        return Err(settings("it contains no certificate in PEM form".to_owned()));
    }
    Ok(found)
}

fn read_identity(certificate: &Path) -> Result<Identity, Error> {
    let key = certificate.with_extension("key");
    let mut bytes = read_limited(&key, FILE_LIMIT)?;
    bytes.extend(read_limited(certificate, FILE_LIMIT)?);
    Identity::from_pem(&bytes).map_err(|error| Error::Settings {
        path: certificate.to_owned(),
        reason: describe(&error),
    })
}

/// The innermost cause of a failure, which describes the problem.
pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}

/// Returns true if a certificate was the problem, the peer's or ours. Speaking plain HTTP instead would hide that from the user.
pub(super) fn is_certificate_problem(error: &reqwest::Error) -> bool {
    let text = describe(error).to_lowercase();
    ["certificate", "unknownissuer", "fatal alert"]
        .iter()
        .any(|sign| text.contains(sign))
}

/// Returns true if the peer did not answer with TLS.
pub(super) fn is_plain_answer(error: &reqwest::Error) -> bool {
    let text = describe(error).to_lowercase();
    text.contains("corrupt message") || text.contains("invalidcontenttype")
}

/// The registry ended the TLS handshake: it rejected the client's certificate or wanted one.
fn wants_client_certificate(cause: &str) -> bool {
    cause.contains("fatal alert") && cause.contains("certificate")
}

/// True if the peer closed the connection instead of answering. The wording is the system's, rustls' or hyper's.
fn hung_up(cause: &str) -> bool {
    [
        "connection reset",
        "broken pipe",
        "peer closed connection",
        "connection closed",
    ]
    .iter()
    .any(|sign| cause.contains(sign))
}

/// The cause of a request without an answer, and its fix.
pub(super) fn explain(error: &reqwest::Error, host: &str) -> (String, String) {
    let cause = describe(error);
    let lower = cause.to_lowercase();
    let (problem, hint) = if wants_client_certificate(&lower) {
        (
            format!("requires a trusted client certificate ({cause})"),
            format!(
                "; put it into ~/.config/containers/certs.d/{host} or /etc/containers/certs.d/{host} as client.cert, \
                 with its key as client.key"
            ),
        )
    } else if is_certificate_problem(error) {
        (
            format!("presents a certificate that is not trusted ({cause})"),
            format!(
                "; pass its authority with --ca-file or put it into /etc/containers/certs.d/{host}/ca.crt, \
                 or pass --skip-tls-verify"
            ),
        )
    } else if is_plain_answer(error) {
        (
            "does not speak TLS".to_owned(),
            "; pass --use-http if it speaks plain HTTP".to_owned(),
        )
    } else if lower.contains("failed to lookup address") || lower.contains("name or service not known") {
        (
            "is an unknown host name".to_owned(),
            "; check the spelling, or the proxy variables HTTPS_PROXY and NO_PROXY".to_owned(),
        )
    } else if error.is_timeout() {
        (
            "did not answer in time".to_owned(),
            "; check the network and the proxy variables HTTPS_PROXY and NO_PROXY".to_owned(),
        )
    } else if lower.contains("refused") {
        (
            "refuses connections".to_owned(),
            format!(
                "; check that it is running and that host and port are right{}",
                proxy_in_between(host)
            ),
        )
    } else if hung_up(&lower) && error.url().is_some_and(|url| url.scheme() == "https") {
        // Its alert is lost when the server hangs up while the request is still under way.
        let cause = cause.split(": https://").next().unwrap_or_default();
        (
            format!("closes connections ({cause})"),
            format!("; if it requires a client certificate, put one into /etc/containers/certs.d/{host}"),
        )
    } else {
        (format!("cannot be reached ({cause})"), String::new())
    };
    (problem, hint)
}

/// An unreachable proxy looks like an unreachable registry, so the hint mentions the proxy if one is set.
fn proxy_in_between(host: &str) -> String {
    let set = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"]
        .into_iter()
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let names: Vec<&str> = set.collect();
    if names.is_empty() || super::loopback::is_loopback(host) {
        String::new()
    } else {
        format!(", or whether it is the proxy of {} that refuses", names.join(" and "))
    }
}
