//! Webhook servers that admit nothing.
use std::{convert::Infallible, io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use hyper::{Response, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::{ByteString, api::admissionregistration::v1::WebhookClientConfig};
use rcgen::CertifiedKey;
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use crate::Error;

/// How a webhook server fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// It accepts connections and never answers.
    Hangs,
    /// It resets each connection. The API server's message has another port each time.
    Resets,
    /// It answers each request with plain text instead of an AdmissionReview. Clients must trust
    /// [`DeadWebhook::client_config`].
    Nonsense,
}

/// A webhook server that admits nothing. It ends when it is dropped.
pub struct DeadWebhook {
    address: SocketAddr,
    certificate: String,
    /// Ends its tasks when it is dropped.
    _tasks: JoinSet<()>,
}

impl DeadWebhook {
    /// Listens on loopback.
    ///
    /// # Errors
    /// When it cannot listen.
    pub async fn start(death: Death) -> Result<Self, Error> {
        let here = Path::new("127.0.0.1:0");
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(Error::io("start a webhook server", here))?;
        let address = listener
            .local_addr()
            .map_err(Error::io("start a webhook server", here))?;
        let (certificate, acceptor) = secured().map_err(|error| match error {
            Secured::Certificate(error) => Error::Certificates(error),
            Secured::Tls(error) => Error::io("start a webhook server", here)(io::Error::other(error)),
        })?;
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, death, acceptor));
        Ok(Self {
            address,
            certificate,
            _tasks: tasks,
        })
    }

    /// The URL for a webhook configuration.
    pub fn url(&self) -> String {
        format!("https://{}/", self.address)
    }

    /// The URL and the certificate for a webhook configuration.
    pub fn client_config(&self) -> WebhookClientConfig {
        WebhookClientConfig {
            ca_bundle: Some(ByteString(self.certificate.clone().into_bytes())),
            url: Some(self.url()),
            ..WebhookClientConfig::default()
        }
    }
}

/// The error of a certificate or of TLS that cannot be set up.
enum Secured {
    Certificate(rcgen::Error),
    Tls(rustls::Error),
}

/// A new certificate for loopback, and a TLS acceptor that uses it.
fn secured() -> Result<(String, TlsAcceptor), Secured> {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).map_err(Secured::Certificate)?;
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config
                .with_no_client_auth()
                .with_single_cert(vec![cert.der().clone()], key)
        })
        .map_err(Secured::Tls)?;
    Ok((cert.pem(), TlsAcceptor::from(Arc::new(config))))
}

async fn serve(listener: TcpListener, death: Death, acceptor: TlsAcceptor) {
    let mut kept = Vec::new();
    let mut answering = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => match death {
                Death::Hangs => kept.push(stream),
                // Unread data makes the kernel reset the connection on close.
                Death::Resets => drop(tokio::time::timeout(Duration::from_secs(1), stream.readable()).await),
                Death::Nonsense => drop(answering.spawn(babble(stream, acceptor.clone()))),
            },
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Answers each request of a connection with nonsense.
async fn babble(stream: TcpStream, acceptor: TlsAcceptor) {
    // A client that does not trust the certificate gets a TLS error, which is also a failure.
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let nonsense = service_fn(async |_| Ok::<_, Infallible>(Response::new("nonsense".to_owned())));
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), nonsense)
        .await;
}
