//! `olmkit catalog graph`

use std::io::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::catalog::render::reference::{Options, render};
use olmkit::catalog::selection::Selection;
use olmkit::catalog::{Catalog, mermaid, picture};

use super::change::require_package;
use super::images::RegistryImages;
use crate::registry_flags::RegistryFlags;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog graph catalog -p cache-operator -o svg > graph.svg", "olmkit catalog graph catalog -p cache-operator -c stable --minimum-edge cache-operator.v0.2.0"])]
pub struct Args {
    /// Catalog directories or images.
    #[arg(required = true)]
    catalogs: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Only this package.
    #[arg(short, long)]
    package_name: Option<String>,
    /// Only channels of this name.
    #[arg(short, long)]
    channel: Option<String>,
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
enum Output {
    /// Mermaid text.
    #[default]
    Mermaid,
    /// Graphviz text.
    Dot,
    /// A picture.
    Svg,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let catalog = read(args)?;
    if let Some(package) = &args.package_name {
        require_package(&catalog, package)?;
    }
    if let Some(channel) = &args.channel {
        let of_package = |package: &str| args.package_name.as_deref().is_none_or(|wanted| wanted == package);
        let mut channels = catalog.channels.iter().filter(|channel| of_package(&channel.package));
        anyhow::ensure!(
            channels.any(|known| known.name == *channel),
            "{} has no channel {channel}",
            args.package_name
                .as_deref()
                .map_or("the catalog".to_owned(), |name| format!("package {name}"))
        );
    }
    draw(args, &catalog)
}

/// Draws an empty graph for an unknown package, as opm does.
pub fn run_as_opm(args: &Args) -> anyhow::Result<ExitCode> {
    draw(args, &read(args)?)
}

fn read(args: &Args) -> anyhow::Result<Catalog> {
    Ok(render(
        &args.catalogs,
        &Options::default(),
        &RegistryImages::new(&args.registry),
    )?)
}

fn draw(args: &Args, catalog: &Catalog) -> anyhow::Result<ExitCode> {
    let selection = Selection {
        package: args.package_name.clone(),
        channel: args.channel.clone(),
        minimum_edge: args.minimum_edge.clone(),
        v0_semantics: args.draw_v0_semantics,
    };
    let text = match args.output {
        Output::Mermaid => {
            let drawing = mermaid::draw(catalog, &selection).map_err(anyhow::Error::msg)?;
            for warning in drawing.warnings {
                eprintln!("{warning}");
            }
            drawing.text
        }
        Output::Dot => picture::dot(catalog, &selection).map_err(anyhow::Error::msg)?,
        Output::Svg => picture::svg(catalog, &selection).map_err(anyhow::Error::msg)?,
    };
    crate::terminal::document().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
