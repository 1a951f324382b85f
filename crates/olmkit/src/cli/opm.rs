//! The command line under the name `opm`: the operator-registry tool's own spelling of what olmkit does.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::{catalog, in_pod};

/// Operator package manager: the catalog and bundle commands of olmkit in the spelling of opm.
#[derive(Parser)]
#[command(name = "opm", version)]
pub struct Opm {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a catalog to the Operator Lifecycle Manager
    Serve(catalog::serve::Args),
    /// Print catalogs and bundles as blobs of a file-based catalog
    Render(catalog::render::Args),
    /// Commands that opm calls alpha
    #[command(subcommand)]
    Alpha(Alpha),
}

#[derive(Subcommand)]
enum Alpha {
    /// Bundle commands
    #[command(subcommand)]
    Bundle(Bundle),
}

#[derive(Subcommand)]
enum Bundle {
    /// Write the content of a bundle directory into a ConfigMap
    Extract(in_pod::ExtractArgs),
}

impl Opm {
    /// Runs the chosen command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Serve(args) => catalog::serve::run(&args),
            Command::Render(args) => catalog::render::run(&args),
            Command::Alpha(Alpha::Bundle(Bundle::Extract(args))) => in_pod::run_extract(&args),
        }
    }
}
