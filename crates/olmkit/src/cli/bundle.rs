//! `olmkit bundle`

mod output;
mod unpack;
mod validate;

use std::process::ExitCode;

/// Check bundles, take them apart.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
#[command(defer = true)]
enum Command {
    /// Turn a bundle into plain manifests that kubectl installs without OLM
    Unpack(Box<unpack::Args>),
    /// Validate bundles: the verdict of operator-sdk, with the place of each finding and the way out
    Validate(Box<validate::Args>),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Unpack(args) => unpack::run(args),
        Command::Validate(args) => validate::run(args),
    }
}
