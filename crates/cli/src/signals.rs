//! Handling of signals that end the process.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// True if the command handles the request to end.
static EXPECTED: AtomicBool = AtomicBool::new(false);

/// Ends when the user interrupts the command (Ctrl-C) or another process terminates it (SIGTERM). After the first call,
/// the command is expected to end by itself then.
pub async fn interrupted() {
    EXPECTED.store(true, Ordering::Release);
    match Requests::listen() {
        Ok(mut requests) => _ = requests.next().await,
        Err(_) => std::future::pending().await,
    }
}

/// The termination signals.
struct Requests {
    interrupts: Signal,
    terminations: Signal,
}

impl Requests {
    /// Starts listening: from now on a signal no longer ends the program by itself.
    fn listen() -> io::Result<Self> {
        Ok(Requests {
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
        })
    }

    /// The number of the next one.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupts.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminations.recv() => SignalKind::terminate().as_raw_value(),
        }
    }
}

/// Watches for signals in a thread, which deletes temporary files before the program ends. A command that ends by
/// itself has time until the second signal. Returns when the handlers are installed.
pub fn clean_up() {
    let (listening, listens) = std::sync::mpsc::channel::<()>();
    let watch = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async move {
            let Ok(mut requests) = Requests::listen() else { return };
            drop(listening);
            let mut number = requests.next().await;
            if EXPECTED.load(Ordering::Acquire) {
                number = requests.next().await;
            }
            let _ended = olmkit::temporary::remove_all();
            std::process::exit(128 + number);
        });
    };
    // Without the thread, remaining files are deleted at the next start.
    if std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)
        .is_ok()
    {
        // The other end is dropped, whether listening succeeded or failed.
        let _ = listens.recv();
    }
}
