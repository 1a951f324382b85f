//! `olmkit catalog diff`, `path`, `add`, `deprecate`, `images`

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use olmkit::catalog::render::reference::{ImageTemplate, Options, render};
use olmkit::catalog::write::Format;
use olmkit::catalog::{Blob, Bundle, Catalog, difference, edit, load, mirror, path, walk, write};
use rayon::prelude::*;

use super::MigrateLevel;
use super::images::RegistryImages;
use crate::cli::registry_flags::RegistryFlags;

/// `--output text|json`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum Output {
    /// Lines for people.
    #[default]
    Text,
    /// For scripts.
    Json,
}

fn read(reference: &str, registry: &RegistryFlags) -> anyhow::Result<Catalog> {
    Ok(render(
        &[reference.to_owned()],
        &Options::default(),
        &RegistryImages::new(registry),
    )?)
}

#[derive(clap::Args)]
pub struct DiffArgs {
    /// The old catalog, a directory or image.
    old: String,
    /// The new catalog, a directory or image.
    new: String,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn diff(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let changes = difference::between(&read(&args.old, &args.registry)?, &read(&args.new, &args.registry)?);
    let mut out = std::io::stdout().lock();
    match args.output {
        Output::Json => writeln!(out, "{}", serde_json::to_string_pretty(&changes)?)?,
        Output::Text => changes.iter().try_for_each(|change| writeln!(out, "{change}"))?,
    }
    Ok(if changes.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[derive(clap::Args)]
pub struct PathArgs {
    /// Catalog directory or image.
    catalog: String,
    /// The package; may be left out where the catalog has only one.
    #[arg(short, long)]
    package: Option<String>,
    /// The channel; the package's default channel unless given.
    #[arg(short, long)]
    channel: Option<String>,
    /// What is installed: a bundle name, or a version.
    #[arg(long)]
    from: String,
    /// Where to go: a bundle name, or a version; the head of the channel unless given.
    #[arg(long)]
    to: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn path(args: &PathArgs) -> anyhow::Result<ExitCode> {
    let catalog = read(&args.catalog, &args.registry)?;
    let package = match (&args.package, catalog.packages.as_slice()) {
        (Some(name), packages) => packages.iter().find(|package| package.name == *name),
        (None, [only]) => Some(only),
        (None, _) => anyhow::bail!(
            "the catalog has {} packages: say which with --package",
            catalog.packages.len()
        ),
    };
    let package = package.with_context(|| {
        format!(
            "the catalog has no package {}",
            args.package.as_deref().unwrap_or_default()
        )
    })?;
    let channel = args.channel.as_deref().unwrap_or(&package.default_channel);
    let steps = path::find(&catalog, &package.name, channel, &args.from, args.to.as_deref())?;
    let mut out = std::io::stdout().lock();
    match args.output {
        Output::Json => writeln!(out, "{}", serde_json::to_string_pretty(&steps)?)?,
        Output::Text if steps.is_empty() => writeln!(out, "{} is where it is to be", args.from)?,
        Output::Text => {
            for step in steps {
                writeln!(out, "{} -> {} ({})", step.from, step.to, step.by)?;
                for other in step.passed_over {
                    writeln!(out, "    not {other}")?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(clap::Args)]
pub struct AddArgs {
    /// The bundle: a directory or an image.
    bundle: String,
    /// The catalog's source: a file, or a directory that holds one for the package.
    #[arg(long, default_value = "catalog", value_name = "PATH")]
    to: PathBuf,
    /// Channels to add it to.
    #[arg(long, required = true, value_delimiter = ',')]
    channel: Vec<String>,
    /// The bundle it replaces; the head of the channel unless given.
    #[arg(long, conflicts_with = "semver")]
    replaces: Option<String>,
    /// Bundles it skips.
    #[arg(long, value_delimiter = ',')]
    skips: Vec<String>,
    /// Versions it can be reached from.
    #[arg(long, default_value = "")]
    skip_range: String,
    /// Take the edges from the versions.
    #[arg(long)]
    semver: bool,
    /// How far to bring the bundle up to date.
    #[arg(long, value_enum, value_name = "LEVEL")]
    migrate_level: Option<MigrateLevel>,
    /// Image reference of a bundle directory, with {{.Package}}, {{.Name}} and {{.Version}}.
    #[arg(long, visible_alias = "image-ref-template", value_name = "TEMPLATE")]
    alpha_image_ref_template: Option<ImageTemplate>,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn add(args: &AddArgs) -> anyhow::Result<ExitCode> {
    let options = Options {
        migrate: args.migrate_level.map(Into::into).unwrap_or_default(),
        image_template: args.alpha_image_ref_template.clone(),
    };
    let rendered = render(
        std::slice::from_ref(&args.bundle),
        &options,
        &RegistryImages::new(&args.registry),
    )?;
    let [bundle] = rendered.bundles.as_slice() else {
        anyhow::bail!("{} holds {} bundles, not one", args.bundle, rendered.bundles.len());
    };
    let file = source_file(&args.to, &bundle.package)?;
    let mut text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut blob = String::new();
    write::blob(&Blob::Bundle(bundle.clone()), Format::Yaml, &mut blob)?;
    let known: Catalog = load::file(&file)?.into_iter().collect();
    for (number, channel) in args.channel.iter().enumerate() {
        let edges = if args.semver {
            by_version(&known, channel, bundle)
        } else {
            given(args)
        };
        // The blob goes in once; behind that the other channels get their entries.
        if number == 0 {
            text = edit::add(&text, bundle, &blob, channel, &edges)?;
        } else {
            let without = text.strip_suffix(&blob).unwrap_or(&text).to_owned();
            text = edit::add(&without, bundle, &blob, channel, &edges)?;
        }
    }
    replace(&file, &text)?;
    eprintln!("added {} to {}", bundle.name, file.display());
    Ok(ExitCode::SUCCESS)
}

fn given(args: &AddArgs) -> edit::Edges {
    edit::Edges {
        replaces: args.replaces.clone(),
        skips: args.skips.clone(),
        skip_range: args.skip_range.clone(),
    }
}

fn by_version(catalog: &Catalog, channel: &str, bundle: &Bundle) -> edit::Edges {
    let bundles: Vec<&Bundle> = catalog
        .bundles
        .iter()
        .filter(|other| other.package == bundle.package)
        .collect();
    let channel = catalog
        .channels
        .iter()
        .find(|other| other.package == bundle.package && other.name == channel);
    edit::semver_edges(
        &bundles,
        channel.map(|channel| channel.entries()).unwrap_or_default(),
        bundle,
    )
}

#[derive(clap::Args)]
pub struct DeprecateArgs {
    /// The package.
    package: String,
    /// What users are told.
    #[arg(short, long)]
    message: String,
    /// The channel to deprecate, instead of the package.
    #[arg(long, conflicts_with = "bundle")]
    channel: Option<String>,
    /// The bundle to deprecate, instead of the package.
    #[arg(long)]
    bundle: Option<String>,
    /// The catalog's source: a file, or a directory that holds one for the package.
    #[arg(long = "in", default_value = "catalog", value_name = "PATH")]
    source: PathBuf,
}

pub fn deprecate(args: &DeprecateArgs) -> anyhow::Result<ExitCode> {
    let file = source_file(&args.source, &args.package)?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let (schema, name) = match (&args.channel, &args.bundle) {
        (Some(channel), _) => ("olm.channel", channel.as_str()),
        (None, Some(bundle)) => ("olm.bundle", bundle.as_str()),
        (None, None) => ("olm.package", ""),
    };
    replace(
        &file,
        &edit::deprecate(&text, &args.package, schema, name, &args.message)?,
    )?;
    eprintln!("changed {}", file.display());
    Ok(ExitCode::SUCCESS)
}

/// The file of a catalog's source that holds a package.
fn source_file(path: &std::path::Path, package: &str) -> anyhow::Result<PathBuf> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    anyhow::ensure!(
        path.is_dir(),
        "there is no catalog at {}: make one with `olmkit catalog init {package} -o yaml > {}`",
        path.display(),
        path.join(package).join("catalog.yaml").display()
    );
    // Files that break off are not this package's business; `catalog validate` tells of them.
    let is_of_package =
        |file: &PathBuf| load::file(file).is_ok_and(|blobs| blobs.iter().any(|blob| blob.package() == package));
    let files: Vec<PathBuf> = walk::files(path)?.into_par_iter().filter(is_of_package).collect();
    match files.as_slice() {
        [file] => Ok(file.clone()),
        [] => anyhow::bail!(
            "{} holds no package {package}: begin with `olmkit catalog init {package} -o yaml`",
            path.display()
        ),
        several => {
            let names: Vec<String> = several.iter().map(|file| file.display().to_string()).collect();
            anyhow::bail!(
                "package {package} is spread over {}: only one that stands in one file can be changed in place; \
                 `olmkit catalog migrate` writes it so",
                names.join(", ")
            )
        }
    }
}

/// Replaces a file's content at once.
fn replace(file: &std::path::Path, text: &str) -> anyhow::Result<()> {
    let directory = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(std::path::Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    new.write_all(text.as_bytes())?;
    if let Ok(metadata) = file.metadata() {
        new.as_file().set_permissions(metadata.permissions())?;
    }
    new.persist(file)?;
    Ok(())
}

#[derive(clap::Args)]
pub struct ImagesArgs {
    /// Catalog directory or image.
    catalog: String,
    /// Only this package.
    #[arg(short, long)]
    package: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn images(args: &ImagesArgs) -> anyhow::Result<ExitCode> {
    let images = mirror::images(&read(&args.catalog, &args.registry)?, args.package.as_deref());
    let mut out = std::io::stdout().lock();
    match args.output {
        Output::Json => writeln!(out, "{}", serde_json::to_string_pretty(&images)?)?,
        Output::Text => images.keys().try_for_each(|image| writeln!(out, "{image}"))?,
    }
    Ok(ExitCode::SUCCESS)
}
