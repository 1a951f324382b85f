//! `olmkit repo onboard`

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use olmkit::catalog::Catalog;
use olmkit::catalog::load;
use olmkit::catalog::render::reference::{ImageTemplate, locate};
use olmkit::object::UntrustedText;
use olmkit_submission::Repository;
use olmkit_submission::publish::{Onboarded, Onboarding, Origin};

use super::pending::{self, Pending, Pulled};
use super::suite::{Kind, OpenShiftFlags};
use super::target::{Bundles, Target};
use crate::catalog::images::RegistryImages;
use crate::registry_flags::RegistryFlags;
use crate::terminal;

/// Migrate an operator to file-based catalogs
///
/// Writes templates that reproduce the upgrade graph of the operator, maps them to catalogs in ci.yaml, and renders the
/// catalogs. The graph is that of published catalogs, by default those of the repository, or that of the operator's
/// bundles if there are none. Nothing is written if the templates do not reproduce it, or if the pipeline would reject
/// the result.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit repo onboard hello-operator", "olmkit repo onboard hello-operator --catalogs v4.20=quay.io/example/catalog:v4.20", "olmkit repo onboard hello-operator --image-ref-template 'r.io/{{.Package}}:{{.Version}}'"])]
pub struct Args {
    /// The operator: a directory in `operators`
    operator: String,
    /// Root of the repository: the directory with `operators`
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// Published catalogs: NAME=DIRECTORY, NAME=IMAGE, or a directory with a directory for each. Repeatable
    #[arg(long, value_name = "CATALOG", value_delimiter = ',')]
    catalogs: Vec<String>,
    /// Image of each bundle of the directory, with {{.Package}}, {{.Name}} and {{.Version}} [default: the first registry that
    /// config.yaml allows, in the community's repository]
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "catalogs")]
    image_ref_template: Option<ImageTemplate>,
    /// Replace existing templates, mapping and catalogs
    #[arg(long)]
    replace: bool,
    /// Print the files that would be written without writing them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    versions: OpenShiftFlags,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let platforms = match args.versions.platforms(Some(&args.repo)) {
        Ok(platforms) => platforms,
        Err(problem) => {
            eprintln!("error: {problem}");
            return Ok(ExitCode::from(2));
        }
    };
    let (files, repository) = super::open(&args.repo)?;
    let catalogs = catalogs(args, &repository)?;
    let origin = if catalogs.is_empty() {
        Origin::Folder {
            images: args.image_ref_template.clone(),
            platforms: platforms.clone(),
        }
    } else {
        Origin::Catalogs(catalogs)
    };
    let onboarding = Onboarding {
        repository: &repository,
        root: &args.repo,
        operator: &args.operator,
        replace: args.replace,
    };
    let onboarded = onboarding.run(origin, &Pulled::new(&args.registry))?;
    if !onboarded.differences.is_empty() {
        return refuse(&onboarded);
    }
    let names = onboarded.mapping.iter().flat_map(|mapping| &mapping.catalog_names);
    let target = Target {
        operator: args.operator.clone(),
        bundles: Bundles::One(None),
        catalogs: names.map(|name| format!("{name}/{}", args.operator)).collect(),
    };
    let pending = Pending {
        root: &args.repo,
        files,
        changes: onboarded.changes.clone(),
        kind: Kind::new(&repository),
    };
    if !pending.is_accepted(&target, platforms)? {
        eprintln!("nothing is written: the pipeline would reject the change");
        return Ok(ExitCode::FAILURE);
    }
    pending::print(&pending.files()?)?;
    summary(args, &onboarded);
    if repository.has_update_graph(&args.operator) {
        note!(
            "operators/{}/ci.yaml: updateGraph is removed, because the pipeline rejects it for an operator with file-based catalogs",
            UntrustedText::new(&args.operator)
        );
    }
    if args.dry_run {
        note!("dry run: nothing is written");
    }
    if !args.dry_run {
        pending.write()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The published catalogs. None if the operator is in no catalog.
fn catalogs(args: &Args, repository: &Repository) -> anyhow::Result<BTreeMap<String, Catalog>> {
    let mut catalogs = BTreeMap::new();
    if args.catalogs.is_empty() && args.image_ref_template.is_none() {
        for path in repository.catalogs_of(&args.operator) {
            let name = path.split('/').next().unwrap_or_default().to_owned();
            let folder = args.repo.join("catalogs").join(&path);
            catalogs.insert(name, load::directory(&folder)?);
        }
        return Ok(catalogs);
    }
    for argument in &args.catalogs {
        match argument.split_once('=') {
            Some((name, reference)) => {
                let located = locate(reference, &RegistryImages::new(&args.registry))
                    .with_context(|| format!("cannot read the catalog {reference}"))?;
                catalogs.insert(name.to_owned(), read(located.path(), &args.operator)?);
            }
            None => {
                let entries = std::fs::read_dir(argument).with_context(|| {
                    format!("cannot read the catalogs in {argument}: pass NAME=IMAGE, or a directory with a directory for each")
                })?;
                for entry in entries {
                    let entry = entry?;
                    if entry.file_type()?.is_dir() {
                        let name = entry.file_name().to_string_lossy().into_owned();
                        catalogs.insert(name, read(&entry.path(), &args.operator)?);
                    }
                }
            }
        }
    }
    for name in catalogs.keys() {
        let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        anyhow::ensure!(
            !name.is_empty() && !name.starts_with(['.', '-']) && name.bytes().all(is_sound),
            "--catalogs: {name:?} cannot be the name of a catalog; write v4.20=REFERENCE"
        );
    }
    Ok(catalogs)
}

/// The catalog in a directory. Only the operator's part, if it has a separate directory.
fn read(folder: &Path, operator: &str) -> anyhow::Result<Catalog> {
    let own = folder.join(operator);
    Ok(load::directory(if own.is_dir() { &own } else { folder })?)
}

/// Reports the differences that the templates do not reproduce.
fn refuse(onboarded: &Onboarded) -> anyhow::Result<ExitCode> {
    let out = &mut terminal::output();
    for (catalog, change) in &onboarded.differences {
        writeln!(out, "{}: {change}", UntrustedText::new(catalog))?;
    }
    eprintln!(
        "error: the templates render to other catalogs than the published ones; nothing is written. Lines with - are only in the published catalogs, lines with + only in the rendered ones"
    );
    Ok(ExitCode::FAILURE)
}

/// Prints a summary to standard error.
fn summary(args: &Args, onboarded: &Onboarded) {
    for mapping in &onboarded.mapping {
        let catalogs = mapping.catalog_names.join(", ");
        note!(
            "{} ({}) renders to {}: same packages, channels, edges and bundles",
            UntrustedText::new(&mapping.template_name),
            mapping.kind,
            UntrustedText::new(&catalogs)
        );
    }
    for bundle in &onboarded.left_out {
        eprintln!("warning: left out: {}", UntrustedText::new(bundle));
    }
    for catalog in &onboarded.unmapped {
        eprintln!(
            "warning: catalogs/{}/{} is kept, but no template renders to it",
            UntrustedText::new(catalog),
            UntrustedText::new(&args.operator)
        );
    }
}
