//! The command line: one file for each command group. A file turns flags into one library call and its result into
//! output; no logic lives here.

mod bundle;
mod catalog;
mod completion;
mod created_at;
mod explain;
mod generate;
pub mod health_probe;
mod image;
pub mod in_pod;
pub mod opm;
mod registry_flags;
mod stdin;

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
enum Command {
    /// Check bundles.
    Bundle(bundle::Args),
    /// Make, check, look at and serve file-based catalogs.
    Catalog(catalog::Args),
    /// Print a completion script for a shell.
    Completion(completion::Args),
    /// Tell what a rule of `bundle validate` asks for.
    Explain(explain::Args),
    /// Make a bundle, or what one is made of.
    Generate(generate::Args),
    /// Build images and move them between registries, layouts and archives, without a daemon.
    Image(Box<image::Args>),
}

impl Cli {
    /// Runs the chosen command. `Ok` carries the exit code of a command that ran to its end: 0 fine, 1 findings.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Bundle(args) => bundle::run(&args),
            Command::Catalog(args) => catalog::run(&args),
            Command::Completion(args) => completion::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Generate(args) => generate::run(&args),
            Command::Image(args) => image::run(&args),
        }
    }
}

/// Runs a future to its end on a runtime of this thread.
pub fn block_on<F: Future>(future: F) -> anyhow::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}
