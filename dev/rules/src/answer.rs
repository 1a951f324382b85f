//! An answer of the API server, or of the cluster.

use serde_json::Value;

/// The server's answer.
pub struct Answer {
    pub status: u16,
    pub message: String,
    pub warnings: Vec<String>,
    pub body: Value,
}

impl Answer {
    /// An observation in the cluster.
    pub fn new(message: String) -> Self {
        Self {
            status: 200,
            message,
            warnings: Vec::new(),
            body: Value::Null,
        }
    }

    /// Returns true if the object, or the request, is fine.
    pub fn accepted(&self) -> bool {
        // An object of the name exists: everything was checked before.
        (200..300).contains(&self.status) || self.status == 409
    }

    /// Returns true if a field of the object was dropped.
    pub fn drops(&self) -> bool {
        self.warnings.iter().any(|warning| warning.contains("unknown field"))
    }
}
