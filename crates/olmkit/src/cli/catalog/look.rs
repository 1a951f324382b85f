//! `olmkit catalog list`, `graph`, `init`, `dockerfile`, `migrate`

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use olmkit::catalog::render::reference::{Options, render};
use olmkit::catalog::write::Format;
use olmkit::catalog::{Blob, Catalog, init, listing, mermaid, order, picture, validate, write};

use super::images::RegistryImages;
use super::{MigrateLevel, Output};
use crate::cli::registry_flags::RegistryFlags;

#[derive(clap::Args)]
pub struct ListArgs {
    #[command(subcommand)]
    what: List,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(Subcommand)]
enum List {
    /// Packages and their default channels.
    #[command(visible_alias = "package")]
    Packages {
        /// Catalog directory or image.
        catalog: String,
    },
    /// Channels and their heads.
    #[command(visible_alias = "channel")]
    Channels {
        /// Catalog directory or image.
        catalog: String,
        /// Only this package.
        package: Option<String>,
    },
    /// Bundles with their edges and images.
    #[command(visible_alias = "bundle")]
    Bundles {
        /// Catalog directory or image.
        catalog: String,
        /// Only this package.
        package: Option<String>,
    },
}

pub fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let checked = |reference: &String| -> anyhow::Result<Catalog> {
        let catalog = render(
            std::slice::from_ref(reference),
            &Options::default(),
            &RegistryImages::new(&args.registry),
        )?;
        match validate::catalog_verdict(&catalog).opm_text {
            Some(error) => anyhow::bail!("{error}"),
            None => Ok(catalog),
        }
    };
    let table = match &args.what {
        List::Packages { catalog } => listing::packages(&checked(catalog)?),
        List::Channels { catalog, package } => listing::channels(&checked(catalog)?, package.as_deref()),
        List::Bundles { catalog, package } => listing::bundles(&checked(catalog)?, package.as_deref()),
    };
    write!(std::io::stdout(), "{table}")?;
    Ok(ExitCode::SUCCESS)
}

#[derive(clap::Args)]
pub struct GraphArgs {
    /// Catalog directories or images.
    #[arg(required = true)]
    catalogs: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: GraphOutput,
    /// Only this package.
    #[arg(short, long)]
    package_name: Option<String>,
    /// Only bundles of at least this one's version.
    #[arg(long, value_name = "BUNDLE")]
    minimum_edge: Option<String>,
    /// Mark edges that OLM v0 ignores.
    #[arg(long)]
    draw_v0_semantics: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum GraphOutput {
    /// Mermaid text.
    #[default]
    Mermaid,
    /// Graphviz text.
    Dot,
    /// A picture.
    Svg,
}

pub fn graph(args: &GraphArgs) -> anyhow::Result<ExitCode> {
    let catalog = render(
        &args.catalogs,
        &Options::default(),
        &RegistryImages::new(&args.registry),
    )?;
    let package = args.package_name.as_deref();
    let text = match args.output {
        GraphOutput::Mermaid => {
            let options = mermaid::Options {
                package: args.package_name.clone(),
                minimum_edge: args.minimum_edge.clone(),
                v0_semantics: args.draw_v0_semantics,
            };
            let drawing = mermaid::draw(&catalog, &options).map_err(anyhow::Error::msg)?;
            for warning in drawing.warnings {
                eprintln!("{warning}");
            }
            drawing.text
        }
        GraphOutput::Dot => picture::dot(&catalog, package),
        GraphOutput::Svg => picture::svg(&catalog, package).map_err(anyhow::Error::msg)?,
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

#[derive(clap::Args)]
pub struct InitArgs {
    /// Package name.
    package: String,
    /// The channel that subscriptions follow unless they say otherwise.
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

pub fn init(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let read = |path: &PathBuf| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let description = args.description.as_ref().map(read).transpose()?.unwrap_or_default();
    let description = String::from_utf8(description).context("the description is not UTF-8")?;
    let icon = args.icon.as_ref().map(read).transpose()?;
    let package = init::package(&args.package, &args.default_channel, description, icon.as_deref())?;
    write::all(
        &[Blob::Package(package)],
        args.output.into(),
        &mut std::io::stdout().lock(),
    )?;
    Ok(ExitCode::SUCCESS)
}

#[derive(clap::Args)]
pub struct DockerfileArgs {
    /// Catalog directory; the Dockerfile is written beside it.
    directory: PathBuf,
    /// Image of the final stage; scratch for the blobs alone.
    #[arg(short = 'i', long, default_value = OPM)]
    base_image: String,
    /// Image whose /bin/opm prepares the cache.
    #[arg(short, long, default_value = OPM)]
    builder_image: String,
    /// Labels, key=value.
    #[arg(short = 'l', long, value_delimiter = ',')]
    extra_labels: Vec<String>,
}

const OPM: &str = "quay.io/operator-framework/opm:latest";

pub fn dockerfile(args: &DockerfileArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.directory.is_dir(),
        "{} is not a directory",
        args.directory.display()
    );
    anyhow::ensure!(
        args.builder_image != "scratch",
        "the builder image cannot be scratch: it must hold /bin/opm"
    );
    let name = args
        .directory
        .file_name()
        .context("the directory needs a name")?
        .to_string_lossy();
    let mut labels = BTreeMap::new();
    for label in &args.extra_labels {
        let (key, value) = label
            .split_once('=')
            .with_context(|| format!("a label is written key=value, not {label:?}"))?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    let path = init::dockerfile_path(&args.directory);
    let text = init::Dockerfile {
        directory: &name,
        base_image: &args.base_image,
        builder_image: &args.builder_image,
        labels,
    };
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .with_context(|| format!("cannot make {}; it is never overwritten", path.display()))?;
    write!(file, "{text}")?;
    eprintln!("wrote {}", path.display());
    Ok(ExitCode::SUCCESS)
}

#[derive(clap::Args)]
pub struct MigrateArgs {
    /// Catalog directory or image.
    catalog: String,
    /// Directory to write to; must be empty or absent.
    output_directory: PathBuf,
    /// Output format [default: yaml; as opm json]
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// How far to bring bundles up to date.
    #[arg(long, value_enum, value_name = "LEVEL")]
    migrate_level: Option<MigrateLevel>,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// `default` is the format unless a flag names one.
pub fn migrate(args: &MigrateArgs, default: Output) -> anyhow::Result<ExitCode> {
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
    eprintln!("wrote {}", args.output_directory.display());
    Ok(ExitCode::SUCCESS)
}
