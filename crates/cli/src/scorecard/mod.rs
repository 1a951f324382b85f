//! `olmkit scorecard`

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use olmkit::diagnostics::{Finding, Report, TextOptions, write_github, write_sarif, write_text};
use olmkit::object::UntrustedText;
use olmkit::scorecard::{self, Builtin, Bundle, Configuration};
use olmkit::validate::Selector;
use olmkit::validate::source::Source;

use crate::bundle::output;
use crate::registry_flags::RegistryFlags;
use crate::terminal;

mod in_pods;

/// Run the scorecard tests of a bundle
///
/// Runs operator-sdk's six built-in tests without a cluster, with the same results. Tests with other images need
/// --cluster, which runs them in pods. Without --cluster, their state is `error`. Use --selector to omit them.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit scorecard bundle", "olmkit scorecard bundle --selector suite=olm -o xunit > scorecard.xml", "olmkit scorecard quay.io/example/cache-operator-bundle:v1 --built-in", "olmkit scorecard bundle --cluster -n scorecard -s scorecard --wait-time 5m"])]
pub struct Args {
    /// Bundle directory or image (`REGISTRY/NAME:TAG`, `oci:DIR`, `oci-archive:FILE`, `docker-archive:FILE`, `store:NAME`)
    bundle: String,
    /// Configuration file [default: tests/scorecard/config.yaml in the bundle, or the path in the bundle's annotations]
    #[arg(short, long, value_name = "FILE", conflicts_with = "built_in")]
    config: Option<PathBuf>,
    /// Run the six built-in tests and ignore the bundle's configuration
    #[arg(long)]
    built_in: bool,
    /// Run the tests whose labels match, such as suite=basic
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "")]
    selector: String,
    /// List the selected tests without running them
    #[arg(short = 'L', long)]
    list: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    fixes: crate::fixes::FixFlags,
    #[command(flatten)]
    pods: in_pods::PodFlags,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// operator-sdk's message
    Text,
    /// operator-sdk's JSON
    Json,
    /// JUnit-style XML for test reports
    Xunit,
    /// Findings of the built-in tests, with source lines
    Findings,
    /// The same as SARIF 2.1.0 for code scanning services
    Sarif,
    /// The same as workflow commands of GitHub Actions
    Github,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.pods.note_without_effect();
    let (source, _unpacked) = source(args)?;
    if let Some(code) = args
        .fixes
        .run(std::slice::from_ref(&source), crate::fixes::Command::Scorecard)?
    {
        return Ok(code);
    }
    let reading = source.read()?;
    if reading.bundle.metadata.annotations.is_empty() {
        let missing = format!("metadata not found in {}", source.shown);
        return Ok(output::fatal(&reading.fatal.unwrap_or(missing)));
    }
    let configuration = configuration(args, &source, &reading.bundle)?;
    let selector = match Selector::parse(&args.selector) {
        Ok(selector) => selector,
        Err(reason) => anyhow::bail!("could not parse selector unable to parse requirement: {reason}"),
    };
    let origin = match args.config {
        Some(_) => in_pods::Origin::User,
        None => in_pods::Origin::Bundle,
    };
    let tests = if args.list {
        scorecard::list(&configuration, &selector)
    } else if args.pods.cluster {
        match in_pods::run(&args.pods, &Bundle::new(&reading), (&configuration, origin), &selector)? {
            Ok(tests) => tests,
            Err(code) => return Ok(code),
        }
    } else {
        scorecard::run(&Bundle::new(&reading), &configuration, &selector)
    };
    match args.output {
        Format::Text => write!(terminal::output(), "{}", scorecard::text(&tests))?,
        Format::Json => terminal::data().write_all(scorecard::json(&tests)?.as_bytes())?,
        Format::Xunit => terminal::data().write_all(scorecard::xunit(&tests).as_bytes())?,
        format => {
            let found = scorecard::findings(&Bundle::new(&reading), &configuration, &selector);
            findings(&source, found, format)?;
            for test in tests
                .items
                .iter()
                .filter(|test| Builtin::from_test(&test.spec).is_none())
            {
                let errors = test.status.results.iter().flat_map(|result| &result.errors);
                errors.for_each(|error| eprintln!("error: {}", UntrustedText::new(error)));
            }
        }
    }
    Ok(if tests.passed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints findings with file names relative to the working directory. Those of an image are relative to its root.
fn findings(source: &Source, found: Vec<Finding>, format: Format) -> anyhow::Result<()> {
    let mut report = Report::from_iter(found);
    for finding in report.findings.iter_mut().filter(|_| source.image.is_none()) {
        let file = finding.file.take().unwrap_or_default();
        finding.file = Some(source.directory.join(file));
    }
    report.sort();
    match format {
        Format::Sarif => write_sarif(&report, olmkit::rules::all(), &mut terminal::data())?,
        Format::Github => write_github(&report, &mut terminal::workflow_commands())?,
        _ => {
            let options = TextOptions {
                short: source.image.is_some(),
                color: true,
                width: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into()),
            };
            write_text(&report, options, &mut terminal::styled_output())?;
        }
    }
    Ok(())
}

/// The bundle. An image is unpacked into a temporary directory, which lives as long as the second value.
fn source(args: &Args) -> anyhow::Result<(Source, Option<olmkit::temporary::Directory>)> {
    let bundle = &args.bundle;
    let path = Path::new(bundle);
    if path.exists() {
        return Ok((Source::directory(path), None));
    }
    anyhow::ensure!(!bundle.starts_with(['.', '/']), "no such directory: {bundle}");
    let (directory, labels) = args
        .registry
        .unpack_bundle(bundle)
        .with_context(|| format!("\"{bundle}\" is neither a directory nor a pullable image"))?;
    Ok((Source::image(bundle, directory.path(), labels), Some(directory)))
}

/// Reads the configuration that the flags or the bundle name.
fn configuration(args: &Args, source: &Source, bundle: &olmkit::bundle::Bundle) -> anyhow::Result<Configuration> {
    if args.built_in {
        return Ok(scorecard::default_configuration());
    }
    let way_out = "pass another file with --config, or --built-in to run the built-in tests without one";
    let inside = scorecard::config_path(&bundle.metadata);
    let (path, bytes) = match &args.config {
        Some(path) => {
            let bytes = olmkit::limits::read_named(path, &olmkit::limits::SETTINGS_FILE)
                .with_context(|| format!("could not find config file {}; {way_out}", path.display()))?;
            (path.clone(), bytes)
        }
        // Paths outside the bundle, in a link or an annotation, are not read.
        None => match bundle.tree.file(&inside) {
            Some(bytes) => (source.directory.join(&inside), bytes.to_vec()),
            None => anyhow::bail!(
                "could not find config file {}; {way_out}",
                source.directory.join(&inside).display()
            ),
        },
    };
    scorecard::parse(&bytes).map_err(|error| {
        let place = error.position.map(|(line, column)| format!(":{line}:{column}"));
        let field = error.path.as_ref().map(|path| format!(": {path}"));
        anyhow::anyhow!(
            "reading the configuration {}{}{} failed: {error}",
            path.display(),
            place.unwrap_or_default(),
            field.unwrap_or_default()
        )
    })
}
