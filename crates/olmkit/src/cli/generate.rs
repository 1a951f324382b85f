//! `olmkit generate`

mod build;
mod bundle;
mod catalog;
mod check;
mod digests;
mod kustomize;
mod metadata;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Make a bundle of an operator's manifests.
    Bundle(Box<bundle::Args>),
    /// Make what kustomize builds a bundle's input from.
    Kustomize(Box<kustomize::Args>),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Bundle(args) => bundle::run(args),
        Command::Kustomize(args) => kustomize::run(args),
    }
}
