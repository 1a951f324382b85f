//! The gRPC server.

use std::net::SocketAddr;

use futures::TryStreamExt as _;
use olmkit_front::{BindError, Connections, Handshake};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tonic_health::pb::health_server::HealthServer;

use super::api::experimental_registry_server::ExperimentalRegistryServer;
use super::api::registry_server::RegistryServer;
use super::calls::Counted;
use super::channel::Channel;
use super::current::Current;
use super::limits::{self, Limits};
use super::metered::Metered;
use super::metrics::Metrics;
use super::{DESCRIPTORS, health, service};

/// Why the server stopped or did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Listening on the address failed.
    #[error("cannot listen on {address}: {source}; choose another with --port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The listening socket cannot be used.
    #[error("the listening socket failed: {0}")]
    Socket(#[from] std::io::Error),
    /// The server broke off.
    #[error("the gRPC server failed: {0}")]
    Serve(#[from] tonic::transport::Error),
    /// The descriptors of the API are not readable. A fault of this program.
    #[error("server reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// A gRPC server that listens. It answers health checks with NOT_SERVING and all else with UNAVAILABLE until
/// [`Current::set`] is called on [`Server::current`].
///
/// ```no_run
/// # async fn example(catalog: olmkit::catalog::Catalog) -> Result<(), Box<dyn std::error::Error>> {
/// let server = olmkit_serve::Server::bind("127.0.0.1:0".parse()?).await?;
/// server.current().set(olmkit_serve::index::in_memory(&catalog)?);
/// println!("catalog at {}", server.address());
/// server.run(std::future::pending()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    current: Current,
    metrics: Metrics,
    connections: Connections,
}

impl From<BindError> for Error {
    fn from(BindError { address, source }: BindError) -> Self {
        Error::Listen { address, source }
    }
}

impl Server {
    /// Listens on an address, with the usual limits. Port 0 takes a free one.
    ///
    /// # Errors
    /// Listening on the address failed.
    pub async fn bind(address: SocketAddr) -> Result<Self, Error> {
        Self::bind_with(address, Limits::default()).await
    }

    /// Listens on an address, with limits for clients. Port 0 selects a free one. Its connections use at most half of
    /// the file descriptors that the process may open.
    ///
    /// # Errors
    /// Listening on the address failed.
    pub async fn bind_with(address: SocketAddr, limits: Limits) -> Result<Self, Error> {
        let listener = olmkit_front::listen(address, &limits)?;
        let address = listener
            .local_addr()
            .map_err(|source| Error::Listen { address, source })?;
        Ok(Server {
            listener,
            address,
            current: Current::default(),
            metrics: Metrics::default(),
            connections: Connections::new(limits.within_descriptors(2)),
        })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The index it answers from. May be set at any time.
    pub fn current(&self) -> Current {
        self.current.clone()
    }

    /// The server's metrics.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Serves until `stop` ends; then accepts no new calls, lets open ones finish for a while, and returns. When the
    /// index is replaced, connections are asked to reconnect, because clients read a catalog again only then. Calls
    /// that have begun finish on the old index.
    ///
    /// # Errors
    /// The server broke off.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let listener = self.listener.into_std()?;
        let mut changes = self.current.subscribe();
        let mut serving = changes.borrow_and_update().is_some();
        let mut generations = JoinSet::new();
        let mut watch = JoinSet::new();
        watch.spawn(self.connections.clone().watch(Handshake::Http2));
        tokio::pin!(stop);
        loop {
            let (end, ended) = oneshot::channel::<()>();
            generations.spawn(generation(
                TcpListener::from_std(listener.try_clone()?)?,
                self.connections.clone(),
                self.current.clone(),
                self.metrics.clone(),
                async move {
                    // Dropping the sender ends a generation just as well.
                    let _ = ended.await;
                },
            ));
            let stopped = loop {
                tokio::select! {
                    () = &mut stop => break true,
                    changed = changes.changed() => {
                        let replaced = std::mem::replace(&mut serving, changes.borrow_and_update().is_some());
                        // `self.current` keeps the sender alive.
                        if changed.is_ok() && replaced {
                            break false;
                        }
                    }
                    // A generation that was told to end may end. A failure ends the server.
                    Some(ended) = generations.join_next() => match ended {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => return Err(error),
                        Err(_) => break true,
                    },
                }
            };
            drop(end);
            if stopped {
                break;
            }
        }
        // The listener must go before the last calls have: new ones are for another server.
        drop(listener);
        let drained = async { while generations.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(limits::DRAIN, drained).await;
        Ok(())
    }
}

/// Serves connections until `end`, then sends GOAWAY and waits for their calls.
async fn generation(
    listener: TcpListener,
    connections: Connections,
    current: Current,
    metrics: Metrics,
    end: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let service = service::Service::new(current.clone());
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let registry = RegistryServer::new(service.clone()).max_decoding_message_size(limits::REQUEST_BYTES);
    let experimental = ExperimentalRegistryServer::new(service).max_decoding_message_size(limits::REQUEST_BYTES);
    let health = HealthServer::new(health::Service::new(current)).max_decoding_message_size(limits::REQUEST_BYTES);
    let routes = tonic::service::Routes::new(Counted::new(registry, metrics.clone()))
        .add_service(Counted::new(experimental, metrics))
        .add_service(health)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?)
        .prepare();
    tonic::transport::Server::builder()
        .max_concurrent_streams(limits::STREAMS)
        .initial_connection_window_size(limits::REQUEST_WINDOW)
        .initial_stream_window_size(limits::REQUEST_WINDOW)
        .http2_keepalive_interval(Some(limits::KEEP_ALIVE))
        .http2_keepalive_timeout(Some(limits::KEEP_ALIVE_TIMEOUT))
        .http2_max_header_list_size(limits::HEADER_BYTES)
        .http2_max_pending_accept_reset_streams(Some(limits::PENDING_RESET_STREAMS))
        .http2_max_local_error_reset_streams(Some(limits::LOCAL_RESET_STREAMS))
        .serve_with_incoming_shutdown(
            Metered::new(routes, connections.limits().request),
            connections.incoming(listener).map_ok(Channel),
            end,
        )
        .await?;
    Ok(())
}
