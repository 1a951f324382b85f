//! `olmkit bundle`

mod output;
mod validate;

use std::process::ExitCode;

/// Check bundles.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Validate bundles: the verdict of operator-sdk, with the place of each finding and the way out
    Validate(Box<validate::Args>),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Validate(args) => validate::run(args),
    }
}
