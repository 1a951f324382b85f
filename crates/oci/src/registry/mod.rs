//! A client for registries that speak the OCI distribution protocol (and Docker's, which it grew out of).
//!
//! It is written on reqwest directly. The oci-client crate was examined first: it binds one credential to a host (two
//! repositories of a host with a credential each cannot be served), hides response headers (`Retry-After`, upload
//! ranges), does not resume interrupted transfers, and keeps one mirror for each reference; what is left of it after
//! working around those is a thin layer over the same HTTP client.

mod answer;
mod auth;
mod blob;
mod cache;
mod certificates;
mod credentials;
mod download;
mod endpoint;
pub(crate) mod error;
mod loopback;
mod manifest;
mod peer;
mod progress;
mod proxies;
mod pull;
mod push;
mod referrers;
mod retry;
mod settings;
mod transport;

pub use cache::Cache;
pub use credentials::{Credential, Credentials, Secret};
pub use download::{DownloadError, download};
pub use error::Error;
pub use loopback::is_loopback;
pub use progress::{NoProgress, Progress, Transfer};
pub use pull::{Platforms, Pulled};
pub use settings::{Mirror, MirrorUse, Registries, RegistryRule};

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Reference, limits};
use endpoint::Endpoint;

/// Settings of a client.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Speak plain HTTP to every registry. Without it, plain HTTP is tried only for registries on this machine and for
    /// those that `registries.conf` calls insecure, after HTTPS failed.
    pub plain_http: bool,
    /// Accept any certificate.
    pub skip_tls_verify: bool,
    /// Certificate authorities (PEM) to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// The credential file to use instead of the usual places.
    pub auth_file: Option<PathBuf>,
    /// The `registries.conf` to use instead of the usual places.
    pub registries_conf: Option<PathBuf>,
    /// Where pulled blobs are kept for the next time. `None` keeps nothing.
    pub cache: Option<Cache>,
    /// Send blobs in pieces of at most this many bytes, for proxies that limit the size of a request.
    pub chunk_size: Option<u64>,
    /// How often a request is tried before giving up; 0 means the default, [`limits::ATTEMPTS`].
    pub attempts: u32,
    /// Maximum bytes per pull. `None` means [`limits::IMAGE_BYTES`].
    pub image_bytes: Option<u64>,
    /// Time until a request is answered, and in which a transfer must make some progress. `None` means
    /// [`limits::ANSWER`].
    pub answer: Option<Duration>,
}

impl Options {
    pub(crate) fn answer(&self) -> Duration {
        self.answer.unwrap_or(limits::ANSWER)
    }
}

/// A client. It remembers tokens and connections, so one client should serve one run of a program.
pub struct Client {
    options: Options,
    registries: Registries,
    credentials: Credentials,
    progress: Arc<dyn Progress>,
    endpoints: Mutex<HashMap<(String, bool), Endpoint>>,
    tokens: auth::Tokens,
    offers: auth::Offers,
    renewal: tokio::sync::Mutex<()>,
}

impl Client {
    /// Reads the settings files (`registries.conf`, credential files) and makes a client.
    pub fn new(options: Options, progress: Arc<dyn Progress>) -> Result<Self, Error> {
        // Several TLS providers may be linked in. Ring is ours. An error means that one was chosen before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let registries = Registries::load(options.registries_conf.as_deref())?;
        let credentials = Credentials::load(options.auth_file.as_deref())?.with_helpers(registries.helpers.clone());
        Ok(Self {
            options,
            registries,
            credentials,
            progress,
            endpoints: Mutex::default(),
            tokens: auth::Tokens::default(),
            offers: auth::Offers::default(),
            renewal: tokio::sync::Mutex::default(),
        })
    }

    /// The full name of a reference: short names go through the aliases and the one search registry of
    /// `registries.conf`, and are refused if these do not decide. Docker Hub has several names, and single-word names below
    /// `library/`.
    pub fn full_name(&self, reference: &Reference) -> Result<Reference, Error> {
        if let Ok(registry) = reference.registry() {
            let is_docker_hub = matches!(registry, "docker.io" | "index.docker.io");
            let registry = if is_docker_hub { "docker.io" } else { registry };
            return Ok(reference.with_registry(registry));
        }
        match self.registries.complete(reference) {
            Some(full) => Ok(full),
            None => Err(Error::from(super::Error::from(
                reference.registry().err().unwrap_or(super::InvalidReference::Empty),
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_docker_hub_mean_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let options = Options {
            auth_file: file("auth.json", "{}"),
            registries_conf: file("registries.conf", ""),
            ..Options::default()
        };
        let client = Client::new(options, Arc::new(NoProgress)).unwrap();
        for (name, full) in [
            ("docker.io/busybox:1", "docker.io/library/busybox:1"),
            ("docker.io/library/busybox", "docker.io/library/busybox"),
            ("index.docker.io/library/busybox", "docker.io/library/busybox"),
            ("index.docker.io/busybox", "docker.io/library/busybox"),
            ("docker.io/team/a", "docker.io/team/a"),
            ("quay.io/busybox", "quay.io/busybox"),
        ] {
            let name = Reference::parse(name).unwrap();
            assert_eq!(client.full_name(&name).unwrap().to_string(), full);
        }
    }
}
