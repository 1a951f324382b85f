//! `olmkit catalog template`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use olmkit::catalog::render::reference::{ImageTemplate, Options, render_one};
use olmkit::catalog::selection::Selection;
use olmkit::catalog::template::{self, Kind};
use olmkit::catalog::{Catalog, mermaid, order, write};
use olmkit::limits;

use super::images::RegistryImages;
use super::{MigrateLevel, Output};
use crate::registry_flags::RegistryFlags;
use crate::terminal;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Render a catalog from a template
    ///
    /// Use it if you maintain a template instead of a catalog. Pulls the bundle images that the template names.
    Render(RenderArgs),
    /// Create a template from a catalog
    ///
    /// Use it to move a rendered catalog to a template, which is shorter and easier to edit.
    Convert(ConvertArgs),
}

/// A kind of template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TemplateKind {
    /// olm.template.basic
    Basic,
    /// olm.semver
    Semver,
    /// olm.template.substitutes
    Substitutes,
}

impl From<TemplateKind> for Kind {
    fn from(kind: TemplateKind) -> Self {
        match kind {
            TemplateKind::Basic => Kind::Basic,
            TemplateKind::Semver => Kind::Semver,
            TemplateKind::Substitutes => Kind::Substitutes,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum RenderOutput {
    /// JSON objects.
    #[default]
    Json,
    /// YAML documents.
    Yaml,
    /// The channels as Mermaid text.
    Mermaid,
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog template render semver.yaml -o yaml > catalog/cache-operator/catalog.yaml"])]
pub struct RenderArgs {
    /// [basic|semver|substitutes] [FILE|-]: the default kind is that of the file's schema, the default file is standard
    /// input.
    #[arg(num_args = 0..=2, value_name = "KIND|FILE")]
    arguments: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: RenderOutput,
    /// Migrate bundles to this level.
    #[arg(long, value_enum, value_name = "LEVEL")]
    migrate_level: Option<MigrateLevel>,
    /// Image reference for bundle directories, with {{.Package}}, {{.Name}} and {{.Version}}.
    #[arg(long, visible_alias = "image-ref-template", value_name = "TEMPLATE")]
    alpha_image_ref_template: Option<ImageTemplate>,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog template convert basic catalog/cache-operator/catalog.yaml -o yaml > template.yaml"])]
pub struct ConvertArgs {
    /// Template kind.
    kind: TemplateKind,
    /// Catalog file. Standard input if absent or `-`.
    file: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Render(args) => render(args),
        Command::Convert(args) => convert(args),
    }
}

fn read(file: Option<&str>) -> anyhow::Result<String> {
    match file {
        None | Some("-") => {
            let read = limits::read(std::io::stdin().lock(), &limits::TEMPLATE).and_then(limits::text);
            read.context("cannot read standard input")
        }
        Some(path) => {
            let read = limits::read_named(path.as_ref(), &limits::TEMPLATE).and_then(limits::text);
            read.with_context(|| format!("cannot read {path}"))
        }
    }
}

struct Bundles<'f> {
    options: Options,
    images: RegistryImages<'f>,
}

impl template::Bundles for Bundles<'_> {
    fn render(&self, reference: &str) -> Result<Catalog, String> {
        render_one(reference, &self.options, &self.images).map_err(|error| error.to_string())
    }
}

pub fn render(args: &RenderArgs) -> anyhow::Result<ExitCode> {
    let kind = args
        .arguments
        .first()
        .and_then(|first| TemplateKind::from_str(first, false).ok());
    let file = args.arguments.get(usize::from(kind.is_some())).map(String::as_str);
    let level = args.migrate_level.map(Into::into).unwrap_or_default();
    let bundles = Bundles {
        options: Options {
            migrate: olmkit::catalog::render::MigrateLevel::None,
            image_template: args.alpha_image_ref_template.clone(),
        },
        images: RegistryImages::new(&args.registry),
    };
    let catalog =
        template::render(&read(file)?, kind.map(Into::into), &bundles, level).context("rendering template")?;
    let mut out = terminal::document();
    match args.output {
        RenderOutput::Json => write::all(&order::blobs(catalog), write::Format::Json, &mut out)?,
        RenderOutput::Yaml => write::all(&order::blobs(catalog), write::Format::Yaml, &mut out)?,
        RenderOutput::Mermaid => {
            let selection = Selection {
                v0_semantics: true,
                ..Selection::default()
            };
            let drawing = mermaid::draw(&catalog, &selection).map_err(anyhow::Error::msg)?;
            out.write_all(drawing.text.as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub fn convert(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    let text = template::convert(&read(args.file.as_deref())?, args.kind.into(), args.output.into())?;
    terminal::document().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
