//! Servers as child processes.

use std::net::SocketAddr;
use std::process::Child;
use std::time::Duration;

/// A running server, ended when dropped.
#[derive(Debug)]
pub struct Running {
    /// The process.
    pub child: Child,
    /// Its address.
    pub address: SocketAddr,
}

impl Running {
    /// Waits until a server that was started answers that it serves, for at most about half a minute.
    pub async fn until_serving(child: Child, address: SocketAddr, serves: impl AsyncFn(&str) -> bool) -> Self {
        let mut running = Running { child, address };
        for _ in 0..600 {
            if serves(&address.to_string()).await {
                return running;
            }
            assert!(
                running.child.try_wait().unwrap().is_none(),
                "the server at {address} ended"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the server at {address} does not answer");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
