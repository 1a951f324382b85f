//! `olmkit repo …`

mod check;
mod image;
mod output;

use std::process::ExitCode;

use clap::Subcommand;

/// Check a repository of operators as its hosted pipeline does.
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
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Check(args) => check::run(args),
    }
}
