//! `olmkit completion`

use std::io::Write as _;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit completion bash > ~/.local/share/bash-completion/completions/olmkit", "olmkit completion zsh > \"${fpath[1]}/_olmkit\""])]
pub struct Args {
    /// The shell to print a script for.
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // The generator panics where it cannot write, as when the reader has seen enough.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "olmkit", &mut script);
    super::terminal::document().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
