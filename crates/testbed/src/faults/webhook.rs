//! Webhook servers that do not answer.
use std::{net::SocketAddr, path::Path, time::Duration};

use tokio::{net::TcpListener, task::JoinHandle};

use crate::Error;

/// How a webhook server fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// It accepts connections and says nothing.
    Hangs,
    /// It resets each connection. The API server's message has another port each time.
    Resets,
}

/// A webhook server that never answers; it ends when it is dropped.
pub struct DeadWebhook {
    address: SocketAddr,
    task: JoinHandle<()>,
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
        let task = tokio::spawn(async move {
            let mut kept = Vec::new();
            loop {
                match listener.accept().await {
                    Ok((stream, _)) if death == Death::Hangs => kept.push(stream),
                    Ok((stream, _)) => {
                        // Unread data makes the kernel reset the connection when it is closed.
                        let _ = tokio::time::timeout(Duration::from_secs(1), stream.readable()).await;
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        });
        Ok(Self { address, task })
    }

    /// The URL for a webhook configuration.
    pub fn url(&self) -> String {
        format!("https://{}/", self.address)
    }
}

impl Drop for DeadWebhook {
    fn drop(&mut self) {
        self.task.abort();
    }
}
