//! Certificates of servers: mounted ones, read again when they change, or one that the process signs itself.
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use rcgen::{CertifiedKey as Generated, generate_simple_self_signed};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{
        ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier, danger::ClientCertVerifier,
    },
    sign::CertifiedKey,
};
use x509_cert::{
    der::{Decode as _, oid::db::rfc4519},
    ext::pkix::name::DirectoryString,
};

/// Where Secrets with certificates are mounted, in the order in which [`Certificates::find`] looks. The first is where
/// controller-runtime expects them: scaffolded projects mount cert-manager's and OpenShift's Secrets there, and OLM
/// mounts its own. The second is OLM's older place.
pub const PLACES: [(&str, &str, &str); 2] = [
    ("/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"),
    ("/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"),
];

/// How often mounted files are compared with what is served. The kubelet itself takes about a minute to update them.
const INTERVAL: Duration = Duration::from_secs(10);

/// Larger files are not certificates.
const SIZE_LIMIT: u64 = 1 << 20;

/// A certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {problem}", path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The cause.
        problem: String,
    },
    /// No certificate was found.
    #[error("found no certificate in {0}: mount a Secret with one there")]
    Absent(String),
    /// The process cannot make one.
    #[error("cannot make a certificate: {0}")]
    Generate(String),
}

/// The certificate that a server presents. Clones share the current certificate.
#[derive(Clone)]
pub struct Certificates {
    current: Arc<RwLock<Arc<CertifiedKey>>>,
    files: Option<Files>,
}

#[derive(Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificates {
    /// Reads a certificate chain and its private key, both in PEM.
    ///
    /// # Errors
    /// When a file cannot be read, or the key is not the certificate's.
    pub fn from_files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Result<Self, Error> {
        let files = Files {
            certificate: certificate.into(),
            key: key.into(),
        };
        let current = Arc::new(files.read()?);
        Ok(Self {
            current: Arc::new(RwLock::new(current)),
            files: Some(files),
        })
    }

    /// Reads the certificate that is mounted at one of [`PLACES`].
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub fn find() -> Result<Self, Error> {
        Self::find_in(&PLACES)
    }

    fn find_in(places: &[(&str, &str, &str)]) -> Result<Self, Error> {
        for (folder, certificate, key) in places {
            let folder = Path::new(folder);
            if folder.join(certificate).exists() {
                return Self::from_files(folder.join(certificate), folder.join(key));
            }
        }
        let folders: Vec<&str> = places.iter().map(|(folder, ..)| *folder).collect();
        Err(Error::Absent(folders.join(" and ")))
    }

    /// Makes a self-signed certificate for these host names. It is valid as long as the process runs, and no client can
    /// verify it.
    ///
    /// # Errors
    /// When a name is not a host name.
    pub fn self_signed(names: &[&str]) -> Result<Self, Error> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let Generated { cert, signing_key } =
            generate_simple_self_signed(names).map_err(|error| Error::Generate(error.to_string()))?;
        let key =
            PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(|error| Error::Generate(error.to_owned()))?;
        let key = ring::default_provider()
            .key_provider
            .load_private_key(key)
            .map_err(|error| Error::Generate(error.to_string()))?;
        let current = Arc::new(CertifiedKey::new(vec![cert.der().clone()], key));
        Ok(Self {
            current: Arc::new(RwLock::new(current)),
            files: None,
        })
    }

    /// Reads the files again. Returns whether there is a new certificate. One that cannot be used leaves the old one.
    ///
    /// # Errors
    /// As [`Certificates::from_files`].
    pub fn reload(&self) -> Result<bool, Error> {
        let Some(files) = &self.files else { return Ok(false) };
        let new = files.read()?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = new.cert != current.cert;
        if is_new {
            *current = Arc::new(new);
        }
        Ok(is_new)
    }

    /// Follows changes of the files. Never returns.
    pub async fn follow(self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.reload() {
                Ok(false) => {}
                Ok(true) => tracing::info!("serving a new certificate"),
                Err(error) => tracing::warn!(%error, "cannot read the new certificate; serving the old one"),
            }
        }
    }

    /// Wraps the connections of a server. A client may present a certificate that one of `authorities` has signed.
    pub(crate) fn acceptor(&self, authorities: Option<&Authorities>) -> Result<tokio_rustls::TlsAcceptor, Error> {
        Ok(Arc::new(self.server_config(authorities)?).into())
    }

    /// The configuration of a server: TLS 1.2 and 1.3, HTTP/1.1 only, since HTTP/2 lets a client make a server work for
    /// streams that it resets at once.
    pub(crate) fn server_config(&self, authorities: Option<&Authorities>) -> Result<ServerConfig, Error> {
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Generate(error.to_string()))?;
        let builder = match authorities {
            Some(authorities) => builder.with_client_cert_verifier(Arc::clone(&authorities.0)),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(self.clone()));
        // A session is not resumed: the tickets of hundreds of connections would take memory.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Authorities that sign the certificates of clients.
#[derive(Clone)]
pub struct Authorities(Arc<dyn ClientCertVerifier>);

impl Authorities {
    /// Reads the certificates of authorities, in PEM.
    ///
    /// # Errors
    /// When the file cannot be read, or has no certificate of an authority.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let invalid = |problem: String| Error::Invalid {
            path: path.to_owned(),
            problem,
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&read(path)?) {
            let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
            roots.add(certificate).map_err(|error| invalid(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(invalid("no certificate in PEM".to_owned()));
        }
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        // A client without a certificate may have a token.
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).allow_unauthenticated();
        Ok(Self(verifier.build().map_err(|error| invalid(error.to_string()))?))
    }
}

/// The user that a certificate of a client belongs to, as the API server reads it: the common name of the subject, and the
/// organizations as groups. `None` without a name.
pub(crate) fn user(certificate: &[u8]) -> Option<(String, Vec<String>)> {
    let certificate = x509_cert::Certificate::from_der(certificate).ok()?;
    let all = |kind| {
        let of_kind = certificate.tbs_certificate().subject().iter();
        let of_kind = of_kind.filter(move |attribute| attribute.oid == kind);
        let texts = of_kind.map(|attribute| DirectoryString::try_from(&attribute.value));
        texts
            .map(|text| Some(text.ok()?.value().into_owned()))
            .collect::<Option<Vec<String>>>()
    };
    let (names, groups) = (all(rfc4519::COMMON_NAME)?, all(rfc4519::ORGANIZATION_NAME)?);
    let name = names.into_iter().next_back().filter(|name| !name.is_empty())?;
    Some((name, groups))
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("file", &self.files.as_ref().map(|files| &files.certificate))
            .finish_non_exhaustive()
    }
}

impl Files {
    fn read(&self) -> Result<CertifiedKey, Error> {
        let invalid = |path: &Path, problem: String| Error::Invalid {
            path: path.to_owned(),
            problem,
        };
        let certificates = read(&self.certificate)?;
        let chain = CertificateDer::pem_slice_iter(&certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| invalid(&self.certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(invalid(&self.certificate, "no certificate in PEM".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?)
            .map_err(|error| invalid(&self.key, format!("no private key in PEM: {error}")))?;
        let key = ring::default_provider()
            .key_provider
            .load_private_key(key)
            .map_err(|error| invalid(&self.key, error.to_string()))?;
        let pair = CertifiedKey::new(chain, key);
        // While the kubelet exchanges the files, they can be of two pairs for a moment.
        pair.keys_match()
            .map_err(|_| invalid(&self.key, format!("not the key of {}", self.certificate.display())))?;
        Ok(pair)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > SIZE_LIMIT {
        return Err(Error::Invalid {
            path: path.to_owned(),
            problem: format!("larger than {SIZE_LIMIT} bytes"),
        });
    }
    std::fs::read(path).map_err(failed)
}

#[cfg(test)]
#[path = "certificates_tests.rs"]
mod tests;
