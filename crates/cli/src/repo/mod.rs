//! `olmkit repo …`

mod check;
mod format;
mod image;
mod onboard;
mod outcome;
mod output;
mod pending;
mod release;
mod results;
mod suite;
mod target;
mod text;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Subcommand;
use olmkit_submission::{Folder, Repository};

/// Check an operator repository and publish bundles to it.
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
    /// Migrate an operator to file-based catalogs.
    Onboard(Box<onboard::Args>),
    /// Add a bundle to the repository or publish it to its catalogs.
    Release(Box<release::Args>),
}

/// The repository in a directory, with its files.
fn open(root: &Path) -> anyhow::Result<(Arc<Folder>, Repository)> {
    let directory = Folder::open(root).with_context(|| format!("cannot open {}", root.display()))?;
    let files = Arc::new(directory);
    let repository = Repository::new(files.clone());
    anyhow::ensure!(
        repository.is_repository(),
        "{} is not an operator repository: it has no directory `operators`; pass its root as --repo",
        root.display()
    );
    Ok((files, repository))
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Check(args) => check::run(args),
        Command::Onboard(args) => onboard::run(args),
        Command::Release(args) => release::run(args),
    }
}
