//! `olmkit catalog …`

pub mod change;
pub mod images;
pub mod look;
pub mod render;
pub mod serve;
pub mod template;
pub mod validate;

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use olmkit::catalog::write::Format;

/// Make, check, look at and serve file-based catalogs.
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
    /// Check a catalog.
    Validate(validate::Args),
    /// Show packages, channels or bundles of a catalog.
    List(look::ListArgs),
    /// Draw the channels of a catalog.
    Graph(look::GraphArgs),
    /// Print a package blob.
    Init(look::InitArgs),
    /// Write a Dockerfile for a catalog image.
    Dockerfile(look::DockerfileArgs),
    /// Write a catalog anew, one directory for each package.
    Migrate(look::MigrateArgs),
    /// Render and make catalog templates.
    Template(template::Args),
    /// Tell what differs between two catalogs; exit code 1 if something does.
    Diff(change::DiffArgs),
    /// Tell which upgrades the Operator Lifecycle Manager will take.
    Path(change::PathArgs),
    /// Add a bundle to a catalog's source.
    Add(change::AddArgs),
    /// Deprecate a package, channel or bundle in a catalog's source.
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
        Command::List(args) => look::list(args),
        Command::Graph(args) => look::graph(args),
        Command::Init(args) => look::init(args),
        Command::Dockerfile(args) => look::dockerfile(args),
        Command::Migrate(args) => look::migrate(args, Output::Yaml),
        Command::Template(args) => template::run(args),
        Command::Diff(args) => change::diff(args),
        Command::Path(args) => change::path(args),
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
