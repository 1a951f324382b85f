//! `olmkit catalog migrate`

use std::path::PathBuf;
use std::process::ExitCode;

use olmkit::catalog::render::reference::{Options, render};
use olmkit::catalog::write::Format;
use olmkit::catalog::{order, write};

use super::images::RegistryImages;
use super::{MigrateLevel, Output};
use crate::registry_flags::RegistryFlags;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog migrate quay.io/example/catalog:v1 catalog"])]
pub struct Args {
    /// Catalog directory or image.
    catalog: String,
    /// Directory to write to. Must be empty or absent.
    output_directory: PathBuf,
    /// Output format [default: yaml, under the name opm: json]
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// Migrate bundles to this level.
    #[arg(long, value_enum, value_name = "LEVEL")]
    migrate_level: Option<MigrateLevel>,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// `default` is the format unless a flag names one.
pub fn run(args: &Args, default: Output) -> anyhow::Result<ExitCode> {
    let options = Options {
        migrate: args.migrate_level.map(Into::into).unwrap_or_default(),
        image_template: None,
    };
    let catalog = render(
        std::slice::from_ref(&args.catalog),
        &options,
        &RegistryImages::new(&args.registry),
    )?;
    let format = Format::from(args.output.unwrap_or(default));
    write::directory(order::blobs(catalog), format, &args.output_directory)?;
    note!("wrote {}", args.output_directory.display());
    Ok(ExitCode::SUCCESS)
}
