//! The index that is served now.

use std::sync::Arc;

use tokio::sync::watch;

use super::Index;

/// The index that calls are answered from. None until the first is ready.
#[derive(Debug, Clone)]
pub struct Current(Arc<watch::Sender<Option<Arc<Index>>>>);

impl Default for Current {
    fn default() -> Self {
        Current(Arc::new(watch::Sender::new(None)))
    }
}

impl Current {
    /// The index, if there is one yet.
    pub fn get(&self) -> Option<Arc<Index>> {
        self.0.borrow().clone()
    }

    /// Activates an index. Calls in progress continue with the index with which they began.
    pub fn set(&self, index: Index) {
        self.0.send_replace(Some(Arc::new(index)));
    }

    /// Follows changes.
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<Index>>> {
        self.0.subscribe()
    }
}
