//! The command line under the name `opm`: the operator-registry tool's own spelling of what olmkit does.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::catalog::{look, render, serve, template, validate};
use super::in_pod;

/// Operator package manager: the catalog and bundle commands of olmkit in the spelling of opm.
#[derive(Parser)]
#[command(name = "opm", version)]
pub struct Opm {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print a package blob
    Init(look::InitArgs),
    /// Print catalogs and bundles as blobs
    Render(render::Args),
    /// Check a catalog
    Validate(validate::Args),
    /// Serve a catalog
    Serve(serve::Args),
    /// Write a catalog anew
    Migrate(look::MigrateArgs),
    /// Write files around a catalog
    #[command(subcommand)]
    Generate(Generate),
    /// Print the version
    Version,
    /// Commands that opm calls alpha
    #[command(subcommand)]
    Alpha(Alpha),
}

#[derive(Subcommand)]
enum Generate {
    /// Write a Dockerfile for a catalog image
    Dockerfile(look::DockerfileArgs),
}

#[derive(Subcommand)]
enum Alpha {
    /// Show packages, channels or bundles
    List(look::ListArgs),
    /// Draw channels
    RenderGraph(look::GraphArgs),
    /// Make a catalog of a template
    RenderTemplate(template::RenderArgs),
    /// Make a template of a catalog
    ConvertTemplate(template::ConvertArgs),
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
            Command::Init(args) => look::init(&args),
            Command::Render(args) => render::run(&args),
            Command::Validate(args) => validate::run_as_opm(&args),
            Command::Serve(args) => serve::run(&args),
            Command::Migrate(args) => look::migrate(&args),
            Command::Generate(Generate::Dockerfile(args)) => look::dockerfile(&args),
            Command::Version => {
                println!(
                    "Version: version.Version{{OpmVersion:\"{}\", GitCommit:\"\", BuildDate:\"\", GoOs:\"linux\", GoArch:\"{}\"}}",
                    env!("CARGO_PKG_VERSION"),
                    std::env::consts::ARCH
                );
                Ok(ExitCode::SUCCESS)
            }
            Command::Alpha(Alpha::List(args)) => look::list(&args),
            Command::Alpha(Alpha::RenderGraph(args)) => look::graph(&args),
            Command::Alpha(Alpha::RenderTemplate(args)) => template::render(&args),
            Command::Alpha(Alpha::ConvertTemplate(args)) => template::convert(&args),
            Command::Alpha(Alpha::Bundle(Bundle::Extract(args))) => in_pod::run_extract(&args),
        }
    }
}
