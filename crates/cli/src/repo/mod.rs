//! `olmkit repo …`

mod check;
mod image;
mod onboard;
mod output;
mod pending;
mod release;
mod suite;

use std::process::ExitCode;

use clap::Subcommand;

/// Check a repository of operators as its hosted pipeline does, and publish in it.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Run the checks of a hosted operator repository.
    Check(Box<check::Args>),
    /// Bring an operator to file-based catalogs.
    Onboard(Box<onboard::Args>),
    /// Place a bundle in the repository, or add it to its catalogs.
    Release(Box<release::Args>),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Check(args) => check::run(args),
        Command::Onboard(args) => onboard::run(args),
        Command::Release(args) => release::run(args),
    }
}
