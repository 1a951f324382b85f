//! Runs memcached on Kubernetes.
use std::{fmt::Display, io::Write as _, process::ExitCode};

use kube_manager::log;
use memcached_operator::{options::Options, run, settings::Settings};

/// One thread is enough: the operator waits for the network nearly all the time, and each thread costs memory.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::read();
    let level = match log::init(&options.manager) {
        Ok(level) => level,
        Err(error) => {
            report(&error);
            return ExitCode::FAILURE;
        }
    };
    let settings = Settings::read(|name| std::env::var(name));
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        image = settings.image.as_deref().unwrap_or("not set"),
        "memcached-operator"
    );
    match run::run(options, settings, level).await {
        Ok(()) => {
            tracing::info!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!("{error}");
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Prints why the operator ends. `eprintln!` would panic where standard error cannot be written, as on a full device.
fn report(error: &dyn Display) {
    let _ = writeln!(std::io::stderr(), "memcached-operator: {error}");
}
