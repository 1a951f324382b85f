//! The registry API, as `olmkit catalog serve` answers it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

mod client;
mod generated;
mod hostile;
mod killed;
mod limits;
mod live;
mod recorded;
mod server;

use std::net::SocketAddr;

use olmkit_serve::{Index, Server};
use tokio::task::JoinHandle;
use tonic::transport::Channel;

/// Serves an index until the handle is aborted.
async fn serve(index: Index) -> (SocketAddr, JoinHandle<()>) {
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = server.address();
    server.current().set(index);
    let running = tokio::spawn(async move { server.run(std::future::pending()).await.unwrap() });
    (address, running)
}

async fn connect(address: SocketAddr) -> Channel {
    let endpoint = Channel::from_shared(format!("http://{address}")).unwrap();
    endpoint.connect().await.unwrap()
}
