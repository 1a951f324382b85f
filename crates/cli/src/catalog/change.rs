//! `olmkit catalog diff`, `add`, `deprecate`, `images`

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::catalog::difference::{self, Kind, PackageChange};
use olmkit::catalog::edit::{Above, Edges};
use olmkit::catalog::placement::{NewEdges, csv_edges};
use olmkit::catalog::render::reference::{ImageTemplate, Options, is_bundle, render};
use olmkit::catalog::render::{migrate, touch_up};
use olmkit::catalog::source::{self, NewChannels};
use olmkit::catalog::{Catalog, mirror};
use olmkit::object::{UntrustedText, shell_word};

use super::MigrateLevel;
use super::images::RegistryImages;
use crate::registry_flags::RegistryFlags;
use crate::terminal;

/// `--output text|json`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum Output {
    /// Human-readable.
    #[default]
    Text,
    /// JSON, for scripts.
    Json,
}

fn read(reference: &str, registry: &RegistryFlags) -> anyhow::Result<Catalog> {
    Ok(render(
        &[reference.to_owned()],
        &Options::default(),
        &RegistryImages::new(registry),
    )?)
}

/// `catalog diff --output`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum DiffOutput {
    /// A summary of each package that differs.
    #[default]
    Text,
    /// One line per difference.
    Full,
    /// JSON, for scripts: the summaries and all differences.
    Json,
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog diff quay.io/example/catalog:v1 catalog", "olmkit catalog diff quay.io/example/catalog:v1 catalog -p cache-operator"])]
pub struct DiffArgs {
    /// The old catalog, a directory or image.
    old: String,
    /// The new catalog, a directory or image.
    new: String,
    /// Only this package, with all names of its bundles and images.
    #[arg(short, long)]
    package: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: DiffOutput,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn diff(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let read = |reference| read(reference, &args.registry);
    let (old, new) = match (read(&args.old), read(&args.new)) {
        (Ok(old), Ok(new)) => (old, new),
        // Exit code 1 means that the catalogs differ.
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("error: {}", crate::error_message(&error));
            return Ok(ExitCode::from(2));
        }
    };
    let wanted = args.package.as_deref();
    if let Some(wanted) = wanted
        && let (Err(error), Err(_)) = (require_package(&old, wanted), require_package(&new, wanted))
    {
        eprintln!("error: {}", crate::error_message(&error));
        return Ok(ExitCode::from(2));
    }
    let packages = difference::by_package(&old, &new, wanted);
    let mut out = terminal::output();
    match args.output {
        DiffOutput::Json => terminal::json(&packages)?,
        DiffOutput::Full => {
            let mut changes = packages.iter().flat_map(|package| &package.changes);
            changes.try_for_each(|change| writeln!(out, "{change}"))?;
        }
        DiffOutput::Text => {
            difference::write_summary(&packages, wanted.is_some(), &mut out)?;
            if packages.len() > 1 {
                writeln!(out, "{}", totals(&packages))?;
            }
        }
    }
    Ok(if packages.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The last line of a summary of several packages.
fn totals(packages: &[PackageChange]) -> String {
    let count = |kind| packages.iter().filter(|package| package.change == kind).count();
    format!(
        "{} packages differ: {} new, {} removed, {} changed",
        packages.len(),
        count(Kind::Added),
        count(Kind::Removed),
        count(Kind::Changed)
    )
}

/// Reports a package that no blob of the catalog belongs to, with the closest names that exist.
pub fn require_package(catalog: &Catalog, wanted: &str) -> anyhow::Result<()> {
    let known: BTreeSet<&str> = catalog
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .chain(catalog.channels.iter().map(|channel| channel.package.as_str()))
        .chain(catalog.bundles.iter().map(|bundle| bundle.package.as_str()))
        .collect();
    if known.contains(wanted) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().take(10).copied().collect();
    let more = if known.len() > names.len() { ", …" } else { "" };
    anyhow::bail!("the catalog has no package {wanted}; it has {}{more}", names.join(", "))
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog add quay.io/example/cache-operator-bundle:v0.2.0 --channel alpha", "olmkit catalog add bundle --channel stable --image-ref-template 'r.io/{{.Name}}:v{{.Version}}'"])]
pub struct AddArgs {
    /// The bundle: a directory or an image.
    bundle: String,
    /// Catalog to change: a file, or a directory with one file per package.
    #[arg(long, default_value = "catalog", value_name = "PATH")]
    to: PathBuf,
    /// Channels to add it to.
    #[arg(long, required = true, value_delimiter = ',')]
    channel: Vec<String>,
    /// Create missing channels. A new package needs no flag.
    #[arg(long)]
    create_channel: bool,
    /// Bundle it replaces [default: by version, the head or the next lower bundle].
    #[arg(long)]
    replaces: Option<String>,
    /// Bundles it skips.
    #[arg(long, value_delimiter = ',')]
    skips: Vec<String>,
    /// Range of versions that can upgrade to it directly (olm.skipRange).
    #[arg(long, default_value = "")]
    skip_range: String,
    /// Compute the upgrade edges from the versions.
    #[arg(long, conflicts_with_all = ["replaces", "skips", "skip_range"])]
    semver: bool,
    /// Migrate bundles to this level.
    #[arg(long, value_enum, value_name = "LEVEL")]
    migrate_level: Option<MigrateLevel>,
    /// Image reference for bundle directories, with {{.Package}}, {{.Name}} and {{.Version}}.
    #[arg(long, visible_alias = "image-ref-template", value_name = "TEMPLATE")]
    alpha_image_ref_template: Option<ImageTemplate>,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn add(args: &AddArgs) -> anyhow::Result<ExitCode> {
    let directory = Path::new(&args.bundle);
    anyhow::ensure!(
        !directory.is_dir() || is_bundle(directory),
        "{} is not a bundle: it has no manifests/ and metadata/",
        args.bundle
    );
    // The ClusterServiceVersion's edges are read before a migration removes them.
    let options = Options {
        image_template: args.alpha_image_ref_template.clone(),
        ..Options::default()
    };
    let mut rendered = render(
        std::slice::from_ref(&args.bundle),
        &options,
        &RegistryImages::new(&args.registry),
    )?;
    let count = rendered.bundles.len();
    let [bundle] = rendered.bundles.as_mut_slice() else {
        anyhow::bail!("{} is not a bundle: it has {count} bundles", args.bundle);
    };
    let csv = csv_edges(bundle);
    migrate(bundle, args.migrate_level.map(Into::into).unwrap_or_default())?;
    touch_up(bundle);
    let bundle = &*bundle;
    let edges = if args.semver {
        NewEdges::ByVersion
    } else {
        NewEdges::Given(Edges {
            replaces: args.replaces.clone(),
            skips: args.skips.clone(),
            skip_range: args.skip_range.clone(),
        })
    };
    let file = source::file_of(&args.to, &bundle.package)?;
    let new = if args.create_channel {
        NewChannels::Create
    } else {
        NewChannels::Refuse
    };
    let mut seen = BTreeSet::new();
    let channels = args.channel.iter().filter(|channel| seen.insert(channel.as_str()));
    let channels: Vec<String> = channels.cloned().collect();
    let placements = source::add(&file, bundle, &channels, &edges, new)?;
    let name = UntrustedText::new(&bundle.name);
    note!("added {name} to {}", file.display());
    for (channel, placement) in channels.iter().zip(&placements) {
        let channel = UntrustedText::new(channel);
        match &placement.above {
            Some(Above::Replaces(above)) => {
                note!("channel {channel}: {} now replaces {name}", UntrustedText::new(above));
            }
            Some(Above::Skips(above)) => note!("channel {channel}: {} now skips {name}", UntrustedText::new(above)),
            None => {}
        }
        if !args.semver {
            note_unused(args, &channel, &placement.without(&csv));
        }
        if let Some(newer) = &placement.lowers {
            eprintln!(
                "warning: {name} becomes the head of channel {channel} although {} is newer: OLM will lower the version",
                UntrustedText::new(newer)
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Notes the edges in the bundle's ClusterServiceVersion that the channel does not have. A catalog in files has its own.
fn note_unused(args: &AddArgs, channel: &UntrustedText, unused: &Edges) {
    let (mut named, mut flags) = (Vec::new(), Vec::new());
    let mut add = |field: &str, shown: &str, flag: &str, value: &str| {
        named.push(format!("{field} ({})", UntrustedText::new(shown)));
        flags.push(format!("{flag} {}", shell_word(&UntrustedText::new(value).to_string())));
    };
    if let Some(name) = unused.replaces.as_ref().filter(|_| args.replaces.is_none()) {
        add("replaces", name, "--replaces", name);
    }
    if !unused.skips.is_empty() && args.skips.is_empty() {
        add("skips", &unused.skips.join(", "), "--skips", &unused.skips.join(","));
    }
    if !unused.skip_range.is_empty() && args.skip_range.is_empty() {
        add("olm.skipRange", &unused.skip_range, "--skip-range", &unused.skip_range);
    }
    if !named.is_empty() {
        note!(
            "channel {channel}: not used from the ClusterServiceVersion, because a file-based catalog has its own edges: {}; \
             to use it, add the bundle with {}",
            named.join(", "),
            flags.join(" ")
        );
    }
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog deprecate cache-operator --bundle cache-operator.v0.1.0 -m 'Use 0.2.0'"])]
pub struct DeprecateArgs {
    /// The package.
    package: String,
    /// Message for users.
    #[arg(short, long)]
    message: String,
    /// The channel to deprecate, instead of the package.
    #[arg(long, conflicts_with = "bundle")]
    channel: Option<String>,
    /// The bundle to deprecate, instead of the package.
    #[arg(long)]
    bundle: Option<String>,
    /// Catalog to change: a file, or a directory with one file per package.
    #[arg(long = "in", default_value = "catalog", value_name = "PATH")]
    source: PathBuf,
}

pub fn deprecate(args: &DeprecateArgs) -> anyhow::Result<ExitCode> {
    let file = source::existing_file_of(&args.source, &args.package)?;
    let (schema, name) = match (&args.channel, &args.bundle) {
        (Some(channel), _) => ("olm.channel", channel.as_str()),
        (None, Some(bundle)) => ("olm.bundle", bundle.as_str()),
        (None, None) => ("olm.package", ""),
    };
    source::deprecate(&file, &args.package, schema, name, &args.message)?;
    note!("changed {}", file.display());
    Ok(ExitCode::SUCCESS)
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog images quay.io/example/catalog:v1 --package cache-operator"])]
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
    let catalog = read(&args.catalog, &args.registry)?;
    if let Some(package) = &args.package {
        require_package(&catalog, package)?;
    }
    let images = mirror::images(&catalog, args.package.as_deref());
    let mut out = terminal::data();
    match args.output {
        Output::Json => terminal::json(&images)?,
        Output::Text => images
            .keys()
            .try_for_each(|image| writeln!(out, "{}", UntrustedText::new(image)))?,
    }
    Ok(ExitCode::SUCCESS)
}
