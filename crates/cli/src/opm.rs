//! The command line under the name `opm`: the operator-registry tool's own spelling of what olmkit does.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use olmkit_oci::registry::Platforms;
use olmkit_oci::spec::Platform;
use olmkit_oci::{Location, fetch};

use super::catalog::{Output, dockerfile, graph, init, list, migrate, render, serve, template, validate_as_opm};
use super::registry_flags::RegistryFlags;
use super::{completion, in_pod, index_add};
use crate::runtime::block_on;

/// Operator package manager: the catalog and bundle commands of olmkit in the spelling of opm.
#[derive(Parser)]
#[command(name = "opm", version)]
pub struct Opm {
    #[command(subcommand)]
    command: Command,
    /// They may precede the subcommand, which then parses them.
    #[command(flatten)]
    _registry: RegistryFlags,
}

// No command is built lazily (`defer`): clap would first propagate the flags that may precede a subcommand, and then
// fail on duplicates when it builds the subcommand.
#[derive(Subcommand)]
enum Command {
    /// Print the olm.package entry for a new package
    Init(init::Args),
    /// Print catalogs and bundles as blobs
    Render(render::Args),
    /// Validate a catalog
    Validate(validate_as_opm::Args),
    /// Serve a catalog
    Serve(serve::Args),
    /// Rewrite a catalog with one directory per package
    Migrate(migrate::Args),
    /// Add bundles to a catalog image
    #[command(subcommand)]
    Index(Index),
    /// Write files around a catalog
    #[command(subcommand)]
    Generate(Generate),
    /// Print a completion script for a shell
    Completion(completion::Args),
    /// Print the version
    Version,
    /// Commands that opm calls alpha
    #[command(subcommand)]
    Alpha(Alpha),
    /// Not supported. Prints the replacement
    #[command(hide = true)]
    Registry {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<OsString>,
    },
}

#[derive(Subcommand)]
enum Index {
    /// Add bundles to a file-based catalog image
    Add(Box<index_add::Args>),
}

#[derive(Subcommand)]
enum Generate {
    /// Write a Dockerfile for a catalog image
    Dockerfile(dockerfile::Args),
}

#[derive(Subcommand)]
enum Alpha {
    /// Show packages, channels or bundles
    List(list::Args),
    /// Draw channels
    RenderGraph(graph::Args),
    /// Render a catalog from a template
    RenderTemplate(template::RenderArgs),
    /// Create a template from a catalog
    ConvertTemplate(template::ConvertArgs),
    /// Bundle commands
    #[command(subcommand)]
    Bundle(Bundle),
}

#[derive(Subcommand)]
enum Bundle {
    /// Write the content of a bundle directory into a ConfigMap
    Extract(in_pod::command::ExtractArgs),
    /// Write the files of a bundle image to a directory
    Unpack(UnpackArgs),
}

#[derive(clap::Args)]
struct UnpackArgs {
    /// The bundle image
    image: Location,
    /// The directory. Empty or absent
    #[arg(short, long, value_name = "DIRECTORY", default_value = "./")]
    out: PathBuf,
    /// Trust the certificate authorities of this PEM file in addition to the system's
    #[arg(short = 'c', long, value_name = "FILE")]
    root_ca: Option<PathBuf>,
    /// Ignored (opm compatibility): use `olmkit bundle validate` to check bundles
    #[arg(short = 'v', long, hide = true)]
    skip_validation: bool,
    /// Ignored (opm compatibility)
    #[arg(short, long, hide = true)]
    debug: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Returns true if the first word is a command of opm that olmkit does not have under the same name.
pub fn only_opm_has(arguments: &[OsString]) -> bool {
    let has =
        |program: &clap::Command, name: &str| program.find_subcommand(name).is_some_and(|found| !found.is_hide_set());
    let mut words = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    let Some(word) = words.find(|word| !word.starts_with('-')) else {
        return false;
    };
    match word {
        // operator-sdk has commands of this name too.
        "alpha" => {
            let opm = Opm::command();
            let below = words.find(|word| !word.starts_with('-'));
            below.is_none_or(|name| opm.find_subcommand("alpha").is_some_and(|alpha| has(alpha, name)))
        }
        _ => has(&Opm::command(), word) && !has(&super::Cli::command(), word),
    }
}

impl Opm {
    /// Runs the chosen command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Init(args) => init::run(&args),
            Command::Render(args) => render::run(&args),
            Command::Validate(args) => validate_as_opm::run(&args),
            Command::Serve(args) => serve::run(&args),
            Command::Migrate(args) => migrate::run(&args, Output::Json),
            Command::Index(Index::Add(args)) => index_add::run(&args),
            Command::Generate(Generate::Dockerfile(args)) => dockerfile::run(&args),
            Command::Completion(args) => completion::print(&args, Opm::command(), "opm"),
            Command::Version => {
                println!("{}", super::version::opm());
                Ok(ExitCode::SUCCESS)
            }
            Command::Alpha(Alpha::List(args)) => list::run(&args),
            Command::Alpha(Alpha::RenderGraph(args)) => graph::run_as_opm(&args),
            Command::Alpha(Alpha::RenderTemplate(args)) => template::render(&args),
            Command::Alpha(Alpha::ConvertTemplate(args)) => template::convert(&args),
            Command::Alpha(Alpha::Bundle(Bundle::Extract(args))) => in_pod::command::run_extract(&args),
            Command::Alpha(Alpha::Bundle(Bundle::Unpack(args))) => unpack(args),
            Command::Registry { .. } => anyhow::bail!(
                "SQLite catalogs are not supported; `opm migrate` of operator-registry turns one into a file-based \
                 catalog, which `opm render` and `olmkit catalog` read"
            ),
        }
    }
}

fn unpack(args: UnpackArgs) -> anyhow::Result<ExitCode> {
    let mut flags = args.registry;
    flags.ca_file = flags.ca_file.or(args.root_ca);
    let (client, platform) = (flags.client()?, Platform::host());
    let fetched = block_on(fetch(&client, &args.image, &Platforms::One(platform.clone())))??;
    fetched.unpack(&platform, &args.out, &[])?;
    Ok(ExitCode::SUCCESS)
}
