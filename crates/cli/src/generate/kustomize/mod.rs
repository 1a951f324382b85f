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
    /// Generate the base ClusterServiceVersion for a bundle
    Manifests(manifests::Args),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Manifests(args) => manifests::run(args),
    }
}
