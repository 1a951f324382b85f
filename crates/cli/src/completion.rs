//! `olmkit completion`

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

#[derive(clap::Args)]
#[command(arg_required_else_help = true, after_help = examples!["olmkit completion bash > ~/.local/share/bash-completion/completions/olmkit", "olmkit completion zsh > \"${fpath[1]}/_olmkit\""])]
pub struct Args {
    /// The shell to print a script for.
    shell: Shell,
    /// Ignored (opm compatibility): the scripts have descriptions where the shell shows them
    #[arg(long, hide = true)]
    no_descriptions: bool,
}

/// Prints the script for olmkit, or for operator-sdk if the program was called by this name.
pub fn run(args: &Args, is_operator_sdk: bool) -> anyhow::Result<ExitCode> {
    let name = if is_operator_sdk { "operator-sdk" } else { "olmkit" };
    print(args, super::Cli::command(), name)
}

/// Prints the script for a command line.
pub fn print(args: &Args, mut command: Command, name: &str) -> anyhow::Result<ExitCode> {
    // The generator panics where it cannot write, as when the reader has seen enough.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    super::terminal::document().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
