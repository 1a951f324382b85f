//! Crashes and restarts of servers.

use std::time::Duration;

use crate::{ControlPlane, Error};

/// A server of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// The storage. The API server continues, and answers with errors.
    Etcd,
    /// The API server: connections are rejected, and watches end.
    ApiServer,
}

impl Server {
    fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
        }
    }
}

impl ControlPlane {
    /// Kills a server, as a crash does, restarts it after `down`, and waits until the API server is ready. Stored data
    /// is kept. Only requests in flight are lost.
    ///
    /// # Errors
    /// When the server cannot be started, or is not ready in time.
    pub async fn crash(&self, server: Server, down: Duration) -> Result<(), Error> {
        let client = self.client().await?;
        let mut processes = self.processes.lock().await;
        let Some(process) = processes.iter_mut().find(|process| process.name() == server.name()) else {
            return Ok(());
        };
        process.kill();
        tokio::time::sleep(down).await;
        process.revive()?;
        process
            .wait_until("/readyz", crate::api_server::START_LIMIT, async || {
                let request = http::Request::get("/readyz").body(Vec::new());
                let answer = client.request_text(request.map_err(|error| error.to_string())?).await;
                answer.map(drop).map_err(|error| error.to_string())
            })
            .await
    }
}
