//! What the program does when it is asked to end.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

/// Whether the command ends by itself when it is asked to.
static EXPECTED: AtomicBool = AtomicBool::new(false);

/// Ends when the user interrupts the command (Ctrl-C) or something asks it to end (SIGTERM). From the first call on, the
/// command is expected to end by itself then.
pub async fn interrupted() {
    EXPECTED.store(true, Ordering::Release);
    next().await;
}

/// The number of the next signal that asks the program to end.
async fn next() -> i32 {
    let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
    let (Ok(mut interrupts), Ok(mut terminations)) = (signal(interrupt), signal(terminate)) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupts.recv() => interrupt.as_raw_value(),
        _ = terminations.recv() => terminate.as_raw_value(),
    }
}

/// Watches for signals in a thread: temporary files go before the program ends. A command that ends by itself is given
/// the time until the second signal.
pub fn clean_up() {
    let watch = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        let mut number = runtime.block_on(next());
        if EXPECTED.load(Ordering::Acquire) {
            number = runtime.block_on(next());
        }
        olmkit::temporary::remove_all();
        std::process::exit(128 + number);
    };
    // Without it, what stays is deleted at the next start.
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(watch);
}
