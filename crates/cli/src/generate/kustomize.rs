//! `olmkit generate kustomize`

mod answers;
mod manifests;
mod owned;

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
    /// Create or update the base CSV and its kustomization.
    Manifests(manifests::Args),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Manifests(args) => manifests::run(args),
    }
}
