//! Progress of transfers. The library draws nothing. The command line draws bars or prints lines.

/// Receives the progress of transfers. Methods are called from several tasks.
pub trait Progress: Send + Sync {
    /// A transfer starts: what is transferred, its size in bytes.
    fn begin(&self, what: &str, size: u64) -> Box<dyn Transfer>;

    /// Something worth a line: a retry, a mirror that was skipped.
    fn note(&self, text: &str);
}

/// One running transfer. It ends when it is dropped.
pub trait Transfer: Send + Sync {
    /// The total number of bytes transferred.
    fn position(&self, bytes: u64);

    /// The transfer is complete. `how` names the outcome, such as `pushed` or `already there`.
    fn finish(&self, how: &str);
}

/// Reports nothing.
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _: &str, _: u64) -> Box<dyn Transfer> {
        Box::new(Self)
    }

    fn note(&self, _: &str) {}
}

impl Transfer for NoProgress {
    fn position(&self, _: u64) {}

    fn finish(&self, _: &str) {}
}
