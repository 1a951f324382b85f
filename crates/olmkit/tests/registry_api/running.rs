//! A catalog server as a process of its own.

use std::net::SocketAddr;
use std::process::Child;
use std::time::Duration;

use olmkit::serve::probe;

/// A running server, ended when dropped.
pub struct Running {
    pub child: Child,
    pub address: SocketAddr,
}

impl Running {
    /// Waits until a server that was started answers that it serves.
    pub async fn until_serving(child: Child, address: SocketAddr) -> Self {
        let mut running = Running { child, address };
        let second = Duration::from_secs(1);
        for _ in 0..600 {
            if probe::check(&address.to_string(), "", second, second).await.is_ok() {
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
