//! Handling of signals that end the process.

use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// True if the command handles the request to end.
static EXPECTED: AtomicBool = AtomicBool::new(false);
/// Installs the handlers once.
static WATCH: Once = Once::new();

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
    /// None if they are ignored, as under `nohup`.
    hangups: Option<Signal>,
}

impl Requests {
    /// Starts listening: from now on a signal no longer ends the program by itself.
    fn listen() -> io::Result<Self> {
        Ok(Requests {
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
            hangups: None,
        })
    }

    /// Adds the hangup of the terminal. Started programs have their own process groups, which it does not reach.
    fn with_hangups(mut self) -> io::Result<Self> {
        if !ignores_hangups() {
            self.hangups = Some(signal(SignalKind::hangup())?);
        }
        Ok(self)
    }

    /// The number of the next one.
    async fn next(&mut self) -> i32 {
        let hangup = async {
            match &mut self.hangups {
                Some(hangups) => _ = hangups.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hangup => SignalKind::hangup().as_raw_value(),
            _ = self.interrupts.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminations.recv() => SignalKind::terminate().as_raw_value(),
        }
    }
}

/// True if the process was started with hangups ignored.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is signal 1.
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

/// Watches for signals in a thread, which ends started programs and deletes temporary files before the process ends. A
/// command that ends by itself has time until the second signal. Returns when the handlers are installed.
pub fn clean_up() {
    WATCH.call_once(watch);
}

fn watch() {
    let (listening, listens) = std::sync::mpsc::channel::<()>();
    let watch = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async move {
            let Ok(mut requests) = Requests::listen().and_then(Requests::with_hangups) else {
                return;
            };
            drop(listening);
            let mut number = requests.next().await;
            if EXPECTED.load(Ordering::Acquire) {
                olmkit::process::forward(number);
                number = requests.next().await;
            }
            let _programs = olmkit::process::end_all();
            let _files = olmkit::temporary::remove_all();
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
