//! `olmkit catalog graph`

use std::io::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::catalog::render::reference::{Options, render};
use olmkit::catalog::selection::Selection;
use olmkit::catalog::{mermaid, picture};

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
    let catalog = render(
        &args.catalogs,
        &Options::default(),
        &RegistryImages::new(&args.registry),
    )?;
    let selection = Selection {
        package: args.package_name.clone(),
        channel: args.channel.clone(),
        minimum_edge: args.minimum_edge.clone(),
        v0_semantics: args.draw_v0_semantics,
    };
    let text = match args.output {
        Output::Mermaid => {
            let drawing = mermaid::draw(&catalog, &selection).map_err(anyhow::Error::msg)?;
            for warning in drawing.warnings {
                eprintln!("{warning}");
            }
            drawing.text
        }
        Output::Dot => picture::dot(&catalog, &selection).map_err(anyhow::Error::msg)?,
        Output::Svg => picture::svg(&catalog, &selection).map_err(anyhow::Error::msg)?,
    };
    crate::terminal::document().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
