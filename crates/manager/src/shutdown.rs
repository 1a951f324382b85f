//! Graceful shutdown.
use tokio::signal::unix::{SignalKind, signal};
pub use tokio_util::sync::CancellationToken;

/// A token that is cancelled by SIGTERM or SIGINT. A second signal exits the process at once with status 1.
///
/// # Errors
/// When the signal handlers cannot be set up.
pub fn on_signal() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "shutting down");
        cancelled.cancel();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::warn!("second signal, exiting without waiting for running work");
        std::process::exit(1);
    });
    Ok(token)
}
