//! A catalog served by this process.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::base::error::Error;
use olmkit::catalog::{Catalog, load};
use olmkit_serve::Server;

/// A gRPC server in a separate task. It ends when this value is dropped.
pub struct HostCatalog {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), olmkit_serve::server::Error>>,
}

impl HostCatalog {
    /// Serves blobs of a file-based catalog.
    ///
    /// # Errors
    /// [`Error::Serve`]: the blobs are not a valid catalog, or listening on the address failed.
    pub async fn serve(blobs: &[Value], listen: SocketAddr) -> Result<Self, Error> {
        let text: String = blobs.iter().map(|blob| format!("{blob}\n")).collect();
        let mut catalog = Catalog::default();
        for blob in load::text(&text).map_err(|error| Error::Serve(error.to_string()))? {
            catalog.push(blob);
        }
        let index = olmkit_serve::index::in_memory(&catalog).map_err(|error| Error::Serve(error.to_string()))?;
        let server = Server::bind(listen)
            .await
            .map_err(|error| Error::Serve(error.to_string()))?;
        server.current().set(index);
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            // An error means that the sender was dropped, which also means stop.
            let _ = stopped.await;
        }));
        Ok(HostCatalog {
            address,
            stop: Some(stop),
            task,
        })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops without waiting: OLM's connection is idle and would delay a graceful end.
    pub async fn stop(mut self) {
        self.stop.take();
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for HostCatalog {
    fn drop(&mut self) {
        self.task.abort();
    }
}
