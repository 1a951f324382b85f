//! `olmkit generate`

mod build;
mod bundle;
mod check;
mod digests;
mod kustomize;

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
    /// Generate a bundle from manifests
    Bundle(Box<bundle::Args>),
    /// Generate the kustomize files that a bundle is generated from.
    Kustomize(Box<kustomize::Args>),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Bundle(args) => bundle::run(args),
        Command::Kustomize(args) => kustomize::run(args),
    }
}
