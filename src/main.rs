//! Runs memcached on Kubernetes.
use std::{fmt::Display, io::Write as _, process::ExitCode};

use kube_manager::{Manager, log, manager::Error};
use memcached_operator::{controller, options::Options};

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
    match run(options, level).await {
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

async fn run(options: Options, level: log::Level) -> Result<(), Error> {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        image = controller::default_image().as_deref().unwrap_or("not set"),
        "memcached-operator"
    );
    let manager = Manager::builder(controller::NAME)
        .options(options.manager)
        .log_level(level)
        .requires(controller::manager_grants())
        .start()
        .await?;
    manager.add(controller::controller(
        usize::from(options.max_rolling),
        options.add_finalizer,
    ));
    manager.run().await
}

/// Prints why the operator ends. `eprintln!` would panic where standard error cannot be written, as on a full device.
fn report(error: &dyn Display) {
    let _ = writeln!(std::io::stderr(), "memcached-operator: {error}");
}
