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
    /// Render catalogs and bundles as a file-based catalog
    ///
    /// Use it to merge catalogs, to read the catalog in an image, or to convert a bundle to catalog entries. The output
    /// is the same as opm's.
    Render(render::Args),
    /// Validate a catalog
    ///
    /// Use it before you publish a catalog. Passes and fails the same catalogs as `opm validate`. Reports all findings
    /// with source lines, and adds lints.
    Validate(validate::Args),
    /// Show packages, channels or bundles of a catalog.
    List(list::Args),
    /// Draw the upgrade graph of a catalog
    ///
    /// Use it to review channels before you publish them. Channel heads are green, skipped bundles gray and deprecated
    /// ones orange.
    Graph(graph::Args),
    /// Print the olm.package entry for a new package
    ///
    /// Use it to start a catalog: redirect the output to a file, then add bundles with `catalog add`.
    Init(init::Args),
    /// Write a Dockerfile for a catalog image
    ///
    /// Use it if a container engine builds your catalog image. `image build catalog` needs neither an engine nor a
    /// Dockerfile.
    Dockerfile(dockerfile::Args),
    /// Rewrite a catalog with one directory per package
    ///
    /// Use it to split a catalog that is one large file, or to write an image's catalog to a directory. `catalog add`
    /// needs a package's documents in one file.
    Migrate(migrate::Args),
    /// Render catalog templates, or create them from catalogs.
    Template(template::Args),
    /// Compare two catalogs
    ///
    /// Exits with 1 if they differ and with 2 if one cannot be read.
    Diff(change::DiffArgs),
    /// Show the upgrade path OLM will choose
    ///
    /// Use it before you publish a catalog, to check that users of an old version reach the newest one. Predicts the
    /// upgrades of OLM v0. Exits with 1 and the reason if OLM stops at an older bundle, upgrades in a cycle or reports
    /// an error. For OLM v1, use `catalog resolve`.
    Path(path::Args),
    /// Show which bundle OLM v1 would install
    ///
    /// Resolves like operator-controller 1.11 and prints why it rejects the other bundles. Exits with 1 if no bundle matches.
    /// For OLM v0, use `catalog path`.
    Resolve(resolve::Args),
    /// Add a bundle to a catalog
    ///
    /// Use it for each release. olmkit computes the upgrade edges from the bundle's version, inserts one channel entry
    /// and one bundle, and keeps the file's comments and order.
    Add(change::AddArgs),
    /// Deprecate a package, channel or bundle in a catalog
    ///
    /// Use it to warn users of old versions: OLM shows the message in the status of their Subscriptions. Installed
    /// operators keep running.
    Deprecate(change::DeprecateArgs),
    /// List the images of a catalog, for mirroring
    ///
    /// Prints bundle images and related images, one per line. Use it to copy a catalog's operators to a cluster without
    /// internet access.
    Images(change::ImagesArgs),
    /// Serve a catalog over gRPC
    ///
    /// Implements the API that OLM's catalog pods serve. Use it to test a catalog or as the entrypoint of a catalog
    /// image. Invalid packages are omitted and the others served. A changed directory is reloaded.
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
    /// Replace inline manifests of bundles with an image by olm.csv.metadata.
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
