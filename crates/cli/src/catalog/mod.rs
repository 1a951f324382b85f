//! `olmkit catalog …`

pub mod change;
pub mod dockerfile;
pub mod graph;
pub mod images;
pub mod init;
pub mod list;
pub mod migrate;
pub mod path;
pub mod render;
pub mod resolve;
pub mod serve;
pub mod template;
pub mod validate;
pub mod validate_as_opm;

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use olmkit::catalog::write::Format;

/// Create, validate, inspect and serve file-based catalogs.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Print catalogs and bundles as blobs of a file-based catalog.
    Render(render::Args),
    /// Validate a catalog.
    Validate(validate::Args),
    /// Show packages, channels or bundles of a catalog.
    List(list::Args),
    /// Draw the channels of a catalog.
    Graph(graph::Args),
    /// Print a package blob.
    Init(init::Args),
    /// Write a Dockerfile for a catalog image.
    Dockerfile(dockerfile::Args),
    /// Rewrite a catalog with one directory per package.
    Migrate(migrate::Args),
    /// Render catalog templates, or create them from catalogs.
    Template(template::Args),
    /// Compare two catalogs; exit with 1 if they differ, with 2 if one cannot be read.
    Diff(change::DiffArgs),
    /// Show the upgrade path OLM will choose.
    Path(path::Args),
    /// Show which bundle OLM v1 chooses, and why none of the others
    ///
    /// The choice is that of operator-controller 1.11. Nothing chosen gives exit status 1. `catalog path` answers for OLM v0.
    Resolve(resolve::Args),
    /// Add a bundle to a catalog, in place.
    Add(change::AddArgs),
    /// Deprecate a package, channel or bundle of a catalog, in place.
    Deprecate(change::DeprecateArgs),
    /// List all images that a mirror of a catalog needs.
    Images(change::ImagesArgs),
    /// Serve a catalog to the Operator Lifecycle Manager.
    Serve(serve::Args),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Render(args) => render::run(args),
        Command::Validate(args) => validate::run(args),
        Command::List(args) => list::run(args),
        Command::Graph(args) => graph::run(args),
        Command::Init(args) => init::run(args),
        Command::Dockerfile(args) => dockerfile::run(args),
        Command::Migrate(args) => migrate::run(args, Output::Yaml),
        Command::Template(args) => template::run(args),
        Command::Diff(args) => change::diff(args),
        Command::Path(args) => path::run(args),
        Command::Resolve(args) => resolve::run(args),
        Command::Add(args) => change::add(args),
        Command::Deprecate(args) => change::deprecate(args),
        Command::Images(args) => change::images(args),
        Command::Serve(args) => serve::run(args),
    }
}

/// `-o json|yaml`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub enum Output {
    /// JSON objects, one after the other.
    #[default]
    Json,
    /// YAML documents.
    Yaml,
}

impl From<Output> for Format {
    fn from(output: Output) -> Self {
        match output {
            Output::Json => Format::Json,
            Output::Yaml => Format::Yaml,
        }
    }
}

/// `--migrate-level`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MigrateLevel {
    /// Change nothing.
    None,
    /// Replace the inline manifests of bundles that have an image by olm.csv.metadata.
    BundleObjectToCsvMetadata,
}

impl From<MigrateLevel> for olmkit::catalog::render::MigrateLevel {
    fn from(level: MigrateLevel) -> Self {
        match level {
            MigrateLevel::None => Self::None,
            MigrateLevel::BundleObjectToCsvMetadata => Self::BundleObjectToCsvMetadata,
        }
    }
}
