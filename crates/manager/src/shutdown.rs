//! Orderly end of the process.
use tokio::signal::unix::{SignalKind, signal};
pub use tokio_util::sync::CancellationToken;

/// A token that is cancelled by SIGTERM or SIGINT. A second signal ends the process at once with status 1, for people
/// who press Ctrl-C twice.
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
        tracing::warn!("second signal: giving up running work");
        std::process::exit(1);
    });
    Ok(token)
}
