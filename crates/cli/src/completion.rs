//! `olmkit completion`

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

#[derive(clap::Args)]
pub struct Args {
    /// The shell to print a script for.
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    clap_complete::generate(
        args.shell,
        &mut super::Cli::command(),
        "olmkit",
        &mut super::terminal::document(),
    );
    Ok(ExitCode::SUCCESS)
}
