//! `olmkit catalog init`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use olmkit::catalog::{Blob, init, write};
use olmkit::limits;

use super::Output;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog init cache-operator --default-channel stable -o yaml > catalog/cache.yaml"])]
pub struct Args {
    /// Package name.
    package: String,
    /// Default channel of the package.
    #[arg(short = 'c', long, default_value = "")]
    default_channel: String,
    /// A file with the package's icon.
    #[arg(short, long)]
    icon: Option<PathBuf>,
    /// A file with the package's description, Markdown.
    #[arg(short, long)]
    description: Option<PathBuf>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let read = |path: &PathBuf| {
        limits::read_named(path, &limits::SETTINGS_FILE).with_context(|| format!("cannot read {}", path.display()))
    };
    let description = args.description.as_ref().map(read).transpose()?.unwrap_or_default();
    let description = String::from_utf8(description).context("the description is not UTF-8")?;
    let icon = args.icon.as_ref().map(read).transpose()?;
    let package = init::package(&args.package, &args.default_channel, description, icon.as_deref())?;
    write::all(
        &[Blob::Package(package)],
        args.output.into(),
        &mut crate::terminal::document(),
    )?;
    Ok(ExitCode::SUCCESS)
}
