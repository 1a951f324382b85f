//! `olmkit catalog render`

use std::path::Path;
use std::process::ExitCode;

use olmkit::catalog::render::reference::{ImageTemplate, Options, render};
use olmkit::catalog::{order, write};

use super::images::RegistryImages;
use super::{MigrateLevel, Output};
use crate::progress::{Progress, Unit};

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog render quay.io/example/catalog:v1 -o yaml", "olmkit catalog render bundle --image-ref-template 'r.io/{{.Name}}:v{{.Version}}'"])]
pub struct Args {
    /// Catalog directories, bundle directories, catalog images or bundle images.
    #[arg(required = true, value_name = "REFERENCE")]
    references: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Migrate bundles to this level.
    #[arg(long, value_enum, value_name = "LEVEL")]
    migrate_level: Option<MigrateLevel>,
    /// Do all migrations.
    #[arg(long, conflicts_with = "migrate_level")]
    migrate: bool,
    /// Image reference for bundle directories, with {{.Package}}, {{.Name}} and {{.Version}}. Without it a bundle
    /// directory becomes a bundle with inline manifests.
    #[arg(long, visible_alias = "image-ref-template", value_name = "TEMPLATE")]
    alpha_image_ref_template: Option<ImageTemplate>,
    #[command(flatten)]
    registry: crate::registry_flags::RegistryFlags,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let level = if args.migrate {
        Some(MigrateLevel::BundleObjectToCsvMetadata)
    } else {
        args.migrate_level
    };
    let options = Options {
        migrate: level.map(Into::into).unwrap_or_default(),
        image_template: args.alpha_image_ref_template.clone(),
    };
    let images = RegistryImages::new(&args.registry);
    // Pulls have their own progress bars.
    let is_here = |reference: &String| Path::new(reference).exists();
    let progress = args.references.iter().all(is_here);
    let progress = progress.then(|| Progress::begin("rendering", Unit::Read));
    let catalog = render(&args.references, &options, &images)?;
    drop(progress);
    let mut out = crate::terminal::document();
    write::all(&order::blobs(catalog), args.output.into(), &mut out)?;
    Ok(ExitCode::SUCCESS)
}
