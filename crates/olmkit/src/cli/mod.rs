//! The command line: one file for each command group. A file turns flags into one library call and its result into
//! output; no logic lives here.

mod bundle;
mod catalog;
mod cleanup;
mod cluster_args;
mod completion;
mod console;
mod created_at;
mod diagnose;
mod explain;
mod generate;
pub mod health_probe;
mod image;
pub mod in_pod;
pub mod index_add;
mod olm;
pub mod opm;
pub mod program;
mod registry_flags;
mod run;
mod stdin;
mod subscribe;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Packages Kubernetes operators for the Operator Lifecycle Manager.
#[derive(Parser)]
#[command(name = "olmkit", version, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// One variant for each command group; the variant's type lives in the group's file.
#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Check bundles.
    Bundle(bundle::Args),
    /// Make, check, look at and serve file-based catalogs.
    Catalog(catalog::Args),
    /// Remove an operator that was installed through OLM, custom resources first.
    Cleanup(cleanup::Args),
    /// Print a completion script for a shell.
    Completion(completion::Args),
    /// Tell what a rule of `bundle validate` asks for.
    Explain(explain::Args),
    /// Make a bundle, or what one is made of.
    Generate(generate::Args),
    /// Tell why an operator is not installed, not upgrading or not running.
    Diagnose(diagnose::Args),
    /// Build images and move them between registries, layouts and archives, without a daemon.
    Image(Box<image::Args>),
    /// Install, check and remove the Operator Lifecycle Manager itself.
    Olm(olm::Args),
    /// Install or upgrade an operator from a bundle.
    Run(run::Args),
    /// Install a package from a catalog of the cluster.
    Subscribe(subscribe::Args),
}

impl Cli {
    /// Runs the chosen command. `Ok` carries the exit code of a command that ran to its end: 0 fine, 1 findings.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Bundle(args) => bundle::run(&args),
            Command::Catalog(args) => catalog::run(&args),
            Command::Cleanup(args) => cleanup::run(&args),
            Command::Completion(args) => completion::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Generate(args) => generate::run(&args),
            Command::Diagnose(args) => diagnose::run(&args),
            Command::Image(args) => image::run(&args),
            Command::Olm(args) => olm::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Subscribe(args) => subscribe::run(&args),
        }
    }
}

/// Runs a future to its end on a runtime of this thread.
pub fn block_on<F: Future>(future: F) -> anyhow::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}

/// Ends when the user interrupts the command (Ctrl-C) or something asks it to end (SIGTERM).
async fn interrupted() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
