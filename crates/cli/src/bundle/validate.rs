//! `olmkit bundle validate`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::ValueEnum;
use olmkit::catalog::render::reference::{Options as RenderOptions, is_bundle, render_one};
use olmkit::diagnostics::{Report, Rule};
use olmkit::olmv1::{Release, UnknownRelease};
use olmkit::rules;
use olmkit::validate::against::{Against, Earlier};
use olmkit::validate::optional::{self, VALIDATORS};
use olmkit::validate::source::{Source, Validated, find_bundles};
use olmkit::validate::{CATEGORIES_FILE, Options, Profile, Selector};

use super::output::{self, FailOn, Format};
use super::text::{self, Row};
use crate::catalog::images::RegistryImages;
use crate::fixes::FixFlags;
use crate::in_order;
use crate::many::MANY;
use crate::policy::PolicyFlags;
use crate::progress::{Progress, Unit};
use crate::registry_flags::RegistryFlags;

/// Validate operator bundles
///
/// Passes and fails the same bundles as `operator-sdk bundle validate`. Each finding shows the source line and how to fix it.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit bundle validate bundle", "olmkit bundle validate bundle --select-optional suite=operatorframework --strict", "olmkit bundle validate --recursive operators -o sarif > findings.sarif", "olmkit bundle validate bundle --against quay.io/example/catalog:latest", "olmkit bundle validate bundle --fix"])]
pub struct Args {
    /// Bundle directories or images (`REGISTRY/NAME:TAG`, `oci:DIR`, `oci-archive:FILE`, `docker-archive:FILE`, `store:NAME`)
    #[arg(value_name = "BUNDLE")]
    bundles: Vec<String>,
    /// Search the directories for bundles and validate each one
    #[arg(long)]
    recursive: bool,
    /// Accept directories that contain no bundle
    #[arg(long, requires = "recursive")]
    allow_empty: bool,
    /// Ignored (operator-sdk compatibility)
    #[arg(short = 'b', long, default_value = "docker", value_parser = ["docker", "podman", "none"], hide_possible_values = true)]
    image_builder: String,
    /// Run the optional validators whose labels match, such as suite=operatorframework
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
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Colon-separated list of programs to run as validators
    #[arg(long, value_name = "PROGRAMS", default_value = "")]
    alpha_select_external: String,
    /// Rule set to apply: operator-sdk-1.42, api-0.45, olmv1, or olmv1=RELEASE from 1.5 to 1.12
    #[arg(long, value_name = "PROFILE", default_value = "operator-sdk-1.42")]
    profile: ProfileName,
    /// Check the upgrade from an earlier bundle, or from the bundles of a catalog (directories or images)
    #[arg(long, value_name = "BUNDLE|CATALOG")]
    against: Option<String>,
    /// Fail on warnings too, including those of lints
    #[arg(long)]
    strict: bool,
    /// Lowest severity that makes the command fail [default: error]
    #[arg(long, value_enum, env = "OLMKIT_FAIL_ON")]
    fail_on: Option<FailOn>,
    /// Skip lints
    #[arg(long)]
    no_lints: bool,
    /// Lints to run: `proven` (verified against a real API server, OLM or opm) or `all`
    #[arg(long, value_enum, default_value_t = Rules::Proven, conflicts_with = "no_lints")]
    rules: Rules,
    /// Omit source lines from text output
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    fixes: FixFlags,
    #[command(flatten)]
    policy: PolicyFlags,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProfileName {
    OperatorSdk142,
    Api045,
    OlmV1(Release),
}

impl std::str::FromStr for ProfileName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "operator-sdk-1.42" | "sdk-1.42" => Ok(Self::OperatorSdk142),
            "api-0.45" => Ok(Self::Api045),
            "olmv1" => Ok(Self::OlmV1(Release::default())),
            _ => match text.strip_prefix("olmv1=") {
                Some(release) => release
                    .parse()
                    .map(Self::OlmV1)
                    .map_err(|error: UnknownRelease| error.to_string()),
                None => Err("possible values: operator-sdk-1.42, api-0.45, olmv1, olmv1=RELEASE".to_owned()),
            },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rules {
    Proven,
    All,
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
    let chosen = match args.policy.choose(args.fail_on) {
        Ok(chosen) => chosen,
        Err(code) => return Ok(code),
    };
    let is_selected = |rule: &&&Rule| !rule.is_default() && chosen.policy.selects_by_name(rule.id);
    let mut options = Options {
        launcher: olmkit::process::Launcher::default(),
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
        lints: !args.no_lints && (args.output != Format::JsonAlpha1 || args.strict),
        unproven: args.rules == Rules::All || rules::all().iter().any(|rule| is_selected(&rule)),
        directory: PathBuf::new(),
        image_labels: None,
        olm_v1: match args.profile {
            ProfileName::OlmV1(release) => Some(release),
            _ => None,
        },
        against: None,
    };
    for pair in &args.optional_values {
        let Some((key, value)) = pair.split_once('=') else {
            return Ok(wrong_usage(&format!("{pair} must be formatted as key=value")));
        };
        if !optional::VALUES.contains(&key) {
            eprintln!(
                "warning: no validator reads --optional-values {key}; known are {}",
                optional::VALUES.join(", ")
            );
        }
        options.values.insert(key.to_string(), value.to_string());
    }
    if args.select_optional == "name=community" {
        eprintln!(
            "warning: the validator `community` is deprecated by operator-sdk; the external ocp-olm-catalog-validator has its checks"
        );
    }
    if let Some(reference) = &args.against {
        if !options.lints {
            return Ok(wrong_usage(
                "--against adds lints: drop --no-lints, and add --strict to json-alpha1",
            ));
        }
        options.against = Some(Arc::new(against(reference, args)?));
    }
    let (sources, _unpacked) = sources(args)?;
    if let Some(code) = args.fixes.run(&sources, crate::fixes::Command::Validate)? {
        return Ok(code);
    }
    let worst = chosen.fails_from(args.strict);
    // The drop-in for operator-sdk has its result, regardless of the project's settings.
    let is_original = args.output == Format::JsonAlpha1;
    let form = Form::new(args.output, sources.len(), chosen.writes_baseline() && !is_original);
    let mut judge = chosen.policy.judge();
    let (mut rows, mut whole, mut many) = (Vec::new(), Vec::new(), text::Bundles::default());
    validate_all(&sources, &options, |mut validated| {
        if !is_original {
            validated.judge(&mut judge);
        }
        let row = Row::new(&validated, worst);
        match form {
            Form::Each => text::print(&validated, args.short, args.output == Format::Full)?,
            Form::EachForMachines => output::machine(&[validated], args.output, args.strict)?,
            Form::Grouped => many.add(&validated, &row)?,
            Form::Whole => whole.push(validated),
        }
        rows.push(row);
        Ok(())
    })?;
    let failed = rows.iter().any(|row| row.fails);
    match form {
        Form::Each if rows.len() > 1 => text::summary(&rows)?,
        Form::Each | Form::EachForMachines => {}
        Form::Grouped => many.end(&rows)?,
        Form::Whole if chosen.writes_baseline() => {
            let reports: Vec<Report> = whole.iter().map(Validated::report).collect();
            chosen.write_baseline(&reports.iter().collect::<Vec<_>>())?;
            return Ok(ExitCode::SUCCESS);
        }
        Form::Whole => output::machine(&whole, args.output, args.strict)?,
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// When the findings of a bundle are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As soon as it and those before it are validated, for people.
    Each,
    /// The same for programs.
    EachForMachines,
    /// A failure immediately, and each broken rule once with the findings of the other bundles.
    Grouped,
    /// Together with the other bundles: the format is one document.
    Whole,
}

impl Form {
    fn new(format: Format, bundles: usize, writes_baseline: bool) -> Self {
        match format {
            _ if writes_baseline => Form::Whole,
            Format::Text if bundles > MANY => Form::Grouped,
            Format::Text | Format::Full => Form::Each,
            Format::Concise | Format::Github | Format::JsonAlpha1 => Form::EachForMachines,
            Format::Json | Format::Sarif | Format::Junit => Form::Whole,
        }
    }
}

fn wrong_usage(message: &str) -> ExitCode {
    eprintln!("error: invalid command args: {message}");
    ExitCode::from(2)
}

/// Reads the earlier bundle, or the catalog, of `--against`.
fn against(reference: &str, args: &Args) -> anyhow::Result<Against> {
    let path = Path::new(reference);
    let attempt = || format!("cannot compare with {reference}");
    if is_bundle(path) {
        let reading = Source::directory(path).read().with_context(attempt)?;
        return Ok(Against::Bundle(Earlier::from_reading(reference, reading)?));
    }
    let catalog = render_one(
        reference,
        &RenderOptions::default(),
        &RegistryImages::new(&args.registry),
    )
    .with_context(attempt)?;
    if catalog.bundles.is_empty() {
        anyhow::bail!("cannot compare with {reference}: no bundles found");
    }
    Against::catalog(reference, catalog).with_context(attempt)
}

/// The bundles to validate. Images are unpacked into temporary directories, which live as long as the second value.
fn sources(args: &Args) -> anyhow::Result<(Vec<Source>, Vec<olmkit::temporary::Directory>)> {
    let (mut sources, mut unpacked) = (Vec::new(), Vec::new());
    for bundle in &args.bundles {
        let path = Path::new(bundle);
        if args.recursive {
            let found = find_bundles(path).with_context(|| format!("cannot search {bundle} for bundles"))?;
            anyhow::ensure!(
                args.allow_empty || !found.is_empty(),
                "no bundles found in {bundle}: no directory has both `manifests` and `metadata`; pass --allow-empty to accept this"
            );
            sources.extend(found.iter().map(|path| Source::directory(path)));
        } else if path.exists() {
            sources.push(Source::directory(path));
        } else if bundle.starts_with(['.', '/']) {
            anyhow::bail!("no such directory: {bundle}");
        } else {
            let (directory, labels) = args
                .registry
                .unpack_bundle(bundle)
                .with_context(|| format!("\"{bundle}\" is neither a directory nor a pullable image"))?;
            sources.push(Source::image(bundle, directory.path(), labels));
            unpacked.push(directory);
        }
    }
    Ok((sources, unpacked))
}

/// Validates the bundles, several at a time, and hands them on in their order, each as soon as those before it are validated.
fn validate_all(
    sources: &[Source],
    options: &Options,
    mut print: impl FnMut(Validated) -> anyhow::Result<()> + Send,
) -> anyhow::Result<()> {
    if let [source] = sources {
        let (validated, reading) = source.validate(options)?;
        warn_of_nothing_to_compare(options, reading.bundle.package(), &validated.name);
        // The process exits soon, which frees all memory at once. Freeing node by node would take a tenth of the run. A
        // fuzz target continues with the next input.
        if cfg!(not(fuzzing)) {
            std::mem::forget(reading);
        }
        return print(validated);
    }
    let bundles = Unit::Things(sources.len() as u64, "bundles");
    let progress = Progress::begin("validating", bundles);
    let validate = |source: &Source| {
        let (validated, reading) = source.validate(options)?;
        progress.step();
        Ok((validated, reading.bundle.package().to_owned()))
    };
    in_order::each(sources, validate, |(validated, package)| {
        progress.suspend(|| {
            warn_of_nothing_to_compare(options, &package, &validated.name);
            print(validated)
        })
    })
}

/// Without earlier bundles `--against` finds nothing, which looks like success.
fn warn_of_nothing_to_compare(options: &Options, package: &str, bundle: &str) {
    if let Some(Against::Catalog { name, catalog }) = options.against.as_deref()
        && !catalog.bundles.iter().any(|bundle| bundle.package == package)
    {
        eprintln!("warning: {bundle} is not compared: {name} has no bundle of package {package}");
    }
}
