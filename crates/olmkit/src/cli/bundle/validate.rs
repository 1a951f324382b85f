//! `olmkit bundle validate`

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use olmkit::bundle::load::Reading;
use olmkit::catalog::render::reference::{Options as RenderOptions, is_bundle, render_one};
use olmkit::diagnostics::Severity;
use olmkit::image::registry::Platforms;
use olmkit::image::source::{Location, fetch};
use olmkit::image::spec::Platform;
use olmkit::validate::against::{Against, Earlier};
use olmkit::validate::optional::{self, VALIDATORS};
use olmkit::validate::source::{Source, find_bundles};
use olmkit::validate::{CATEGORIES_FILE, Options, Outcome, Profile, Selector, validate};
use rayon::prelude::*;

use super::output;
use crate::cli::catalog::images::RegistryImages;
use crate::cli::registry_flags::RegistryFlags;

/// Flags of `bundle validate`; names and meaning as in operator-sdk where it has them.
#[derive(clap::Args)]
pub struct Args {
    /// Bundle directories or images (`REGISTRY/NAME:TAG`, `oci:DIR`, `oci-archive:FILE`, `docker-archive:FILE`, `store:NAME`)
    #[arg(value_name = "BUNDLE")]
    bundles: Vec<String>,
    /// Validate every bundle below the given directories
    #[arg(long)]
    recursive: bool,
    /// Taken for compatibility: images are always pulled without a container tool
    #[arg(short = 'b', long, default_value = "docker", value_parser = ["docker", "podman", "none"], hide_possible_values = true)]
    image_builder: String,
    /// Run the optional validators that this label selector selects, such as suite=operatorframework
    #[arg(
        long,
        value_name = "SELECTOR",
        default_value = "",
        overrides_with = "select_optional"
    )]
    select_optional: String,
    /// List the optional validators and exit
    #[arg(long)]
    list_optional: bool,
    /// Values for optional validators, such as k8s-version=1.30
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    optional_values: Vec<String>,
    /// Form of the result
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Colon-separated list of programs to run as validators
    #[arg(long, value_name = "PROGRAMS", default_value = "")]
    alpha_select_external: String,
    /// Which release of the reference tools to follow
    #[arg(long, value_enum, default_value_t = ProfileName::OperatorSdk142)]
    profile: ProfileName,
    /// Compare with what users upgrade from: a bundle, or a catalog that holds it (directories or images)
    #[arg(long, value_name = "BUNDLE|CATALOG")]
    against: Option<String>,
    /// Fail on warnings too, also on those of olmkit's own rules
    #[arg(long)]
    strict: bool,
    /// Fail from this severity on
    #[arg(long, value_enum, default_value_t = FailOn::Error)]
    fail_on: FailOn,
    /// Leave out the findings of olmkit's own rules
    #[arg(long)]
    no_extra: bool,
    /// Leave out source lines in text output
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Forms of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// operator-sdk's JSON with operator-sdk's findings
    #[value(name = "json-alpha1")]
    JsonAlpha1,
    /// All findings with their places
    Json,
    /// SARIF 2.1.0 for code scanning services
    Sarif,
    /// Workflow commands of GitHub Actions
    Github,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProfileName {
    #[value(name = "operator-sdk-1.42", alias = "sdk-1.42")]
    OperatorSdk142,
    #[value(name = "api-0.45")]
    Api045,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Error,
    Warning,
}

/// One bundle with what validating it gave.
pub struct Validated {
    /// The argument, or the directory found below it.
    pub name: String,
    /// Whether the directory is a temporary one that an image was unpacked to.
    pub is_image: bool,
    /// The directory in front of file names.
    pub directory: PathBuf,
    /// What was found.
    pub outcome: Outcome,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let selector = match Selector::parse(&args.select_optional) {
        Ok(selector) => selector,
        Err(reason) => return Ok(output::fatal(&format!("unable to parse requirement: {reason}"))),
    };
    if args.list_optional {
        output::optional_validators(&VALIDATORS)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.bundles.is_empty() {
        return Ok(wrong_usage("an image tag or directory is a required argument"));
    }
    if !selector.is_empty() && optional::selected(&selector).is_empty() {
        return Ok(wrong_usage(&format!(
            "selector {:?} does not match any validator labels",
            args.select_optional
        )));
    }
    let mut options = Options {
        profile: if args.profile == ProfileName::Api045 {
            Profile::Api045
        } else {
            Profile::OperatorSdk142
        },
        selector,
        values: BTreeMap::new(),
        categories_file: std::env::var(CATEGORIES_FILE).ok(),
        external: args
            .alpha_select_external
            .split(':')
            .filter(|path| !path.trim().is_empty())
            .map(PathBuf::from)
            .collect(),
        extra: !args.no_extra && (args.output != Format::JsonAlpha1 || args.strict),
        directory: PathBuf::new(),
        image_labels: None,
        against: None,
    };
    for pair in &args.optional_values {
        let Some((key, value)) = pair.split_once('=') else {
            return Ok(wrong_usage(&format!("{pair} must be formatted as key=value")));
        };
        options.values.insert(key.to_string(), value.to_string());
    }
    if args.select_optional == "name=community" {
        eprintln!(
            "warning: the validator `community` is deprecated by operator-sdk; the external ocp-olm-catalog-validator has its checks"
        );
    }
    if let Some(reference) = &args.against {
        if !options.extra {
            return Ok(wrong_usage(
                "--against adds findings of olmkit's own: leave out --no-extra, and use --strict with json-alpha1",
            ));
        }
        options.against = Some(Arc::new(against(reference, args)?));
    }
    let (sources, _unpacked) = sources(args)?;
    let validated = validate_all(&sources, &options)?;
    let worst = if args.strict || args.fail_on == FailOn::Warning {
        Severity::Warning
    } else {
        Severity::Error
    };
    output::print(&validated, args.output, args.short, args.strict)?;
    let failed = validated.iter().any(|validated| output::failed(validated, worst));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn wrong_usage(message: &str) -> ExitCode {
    eprintln!("Error: invalid command args: {message}");
    ExitCode::from(2)
}

/// Reads what is compared with: a bundle directory, or whatever a catalog can be rendered from.
fn against(reference: &str, args: &Args) -> anyhow::Result<Against> {
    let path = Path::new(reference);
    let attempt = || format!("cannot compare with {reference}");
    if is_bundle(path) {
        let reading = Source::directory(path).read().with_context(attempt)?;
        return Ok(Against::Bundle(Earlier::of_reading(reference, &reading)?));
    }
    let catalog = render_one(
        reference,
        &RenderOptions::default(),
        &RegistryImages::new(&args.registry),
    )
    .with_context(attempt)?;
    if catalog.bundles.is_empty() {
        anyhow::bail!("cannot compare with {reference}: there is no bundle in it");
    }
    Against::catalog(reference, catalog).with_context(attempt)
}

/// The bundle directories to look at. Images are unpacked into temporary directories, which live as long as the second value.
fn sources(args: &Args) -> anyhow::Result<(Vec<Source>, Vec<tempfile::TempDir>)> {
    let (mut sources, mut unpacked) = (Vec::new(), Vec::new());
    for bundle in &args.bundles {
        let path = Path::new(bundle);
        if args.recursive {
            let found = find_bundles(path).with_context(|| format!("cannot look for bundles below {bundle}"))?;
            if found.is_empty() {
                eprintln!("warning: no bundle below {bundle}: no directory has both `manifests` and `metadata`");
            }
            sources.extend(found.iter().map(|path| Source::directory(path)));
        } else if path.exists() {
            sources.push(Source::directory(path));
        } else if bundle.starts_with(['.', '/']) {
            anyhow::bail!("there is no directory {bundle}");
        } else {
            let (directory, labels) = unpack(bundle, args).with_context(|| {
                format!("{bundle} is no directory, and as an image it could not be had; a path must exist, an image name its registry")
            })?;
            sources.push(Source::image(bundle, directory.path(), labels));
            unpacked.push(directory);
        }
    }
    Ok((sources, unpacked))
}

/// Unpacks an image into a temporary directory, and gives its labels too.
fn unpack(image: &str, args: &Args) -> anyhow::Result<(tempfile::TempDir, BTreeMap<String, String>)> {
    let location: Location = image.parse()?;
    let client = args.registry.client()?;
    let platform = Platform::host();
    eprintln!("Unpacking {location}");
    let fetched = crate::cli::block_on(fetch(&client, &location, &Platforms::One(platform.clone())))??;
    let directory = tempfile::Builder::new().prefix("bundle-").tempdir()?;
    fetched.unpack(&platform, directory.path(), &[])?;
    Ok((directory, fetched.image(&platform)?.config.config.labels))
}

fn validate_all(sources: &[Source], options: &Options) -> anyhow::Result<Vec<Validated>> {
    let one = |source: &Source| -> anyhow::Result<(Validated, Reading)> {
        let reading = source.read()?;
        let options = Options {
            directory: source.directory.clone(),
            image_labels: source.image_labels.clone(),
            ..options.clone()
        };
        let validated = Validated {
            name: source
                .image
                .clone()
                .unwrap_or_else(|| source.directory.display().to_string()),
            is_image: source.image.is_some(),
            directory: source.directory.clone(),
            outcome: validate(&reading, &options),
        };
        Ok((validated, reading))
    };
    if let [source] = sources {
        let (validated, reading) = one(source)?;
        // The process ends soon and gives back all memory at once; node by node would take a tenth of the run.
        std::mem::forget(reading);
        return Ok(vec![validated]);
    }
    let bar = if std::io::stderr().is_terminal() {
        ProgressBar::new(sources.len() as u64)
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} bundles {elapsed}") {
        bar.set_style(style);
    }
    let validated: anyhow::Result<Vec<Validated>> = sources
        .par_iter()
        .map(|source| {
            let validated = one(source).map(|(validated, _)| validated);
            bar.inc(1);
            validated
        })
        .collect();
    bar.finish_and_clear();
    validated
}
