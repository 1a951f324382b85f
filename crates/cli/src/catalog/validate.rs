//! `olmkit catalog validate`

use std::io::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::catalog::render::reference::{Located, locate};
use olmkit::catalog::validate;
use olmkit::diagnostics::{Severity, TextOptions, write_github, write_json, write_sarif, write_text};

use super::images::RegistryImages;
use crate::bundle::output::FailOn;
use crate::registry_flags::RegistryFlags;
use crate::terminal;

#[derive(clap::Args)]
#[command(after_help = examples![
    "olmkit catalog validate catalog",
    "olmkit catalog validate quay.io/example/catalog:v1 --fail-on warning"
])]
pub struct Args {
    /// Catalog: a directory, a layout (oci:DIRECTORY) or an image.
    catalog: String,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Lowest severity that fails the command.
    #[arg(long, value_enum, default_value_t = FailOn::Error)]
    fail_on: FailOn,
    /// The same as --fail-on warning.
    #[arg(long, hide = true)]
    fail_on_warning: bool,
    /// Leave out notes, which need no action.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum Output {
    /// Findings with their places.
    #[default]
    Text,
    /// All findings with their places.
    #[value(alias = "findings")]
    Json,
    /// SARIF 2.1.0 for code scanning services.
    Sarif,
    /// Workflow commands of GitHub Actions.
    Github,
    /// opm's JSON: the verdict and its first error.
    OpmJson,
    /// The same as YAML.
    #[value(alias = "yaml")]
    OpmYaml,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    validate_as(args, args.output)
}

fn validate_as(args: &Args, output: Output) -> anyhow::Result<ExitCode> {
    let located = locate(&args.catalog, &RegistryImages::new(&args.registry))?;
    anyhow::ensure!(located.path().is_dir(), "{} is not a directory", args.catalog);
    let verdict = validate::directory(located.path());
    let mut report = verdict.report(if args.quiet { Severity::Warning } else { Severity::Info });
    // The directory that an image was unpacked to is gone afterwards; its files have the names that they have in the image.
    let unpacked = match &located {
        Located::Image(_, root) => Some(root),
        Located::Directory(_) => None,
    };
    if let Some(root) = unpacked.filter(|_| output != Output::Text) {
        for finding in &mut report.findings {
            let inside = finding.file.as_deref().and_then(|file| file.strip_prefix(root).ok());
            finding.file = inside.map(ToOwned::to_owned).or(finding.file.take());
        }
    }
    let on_warning = args.fail_on_warning || args.fail_on == FailOn::Warning;
    let failed = !verdict.passed() || report.has_errors() || on_warning && report.count(Severity::Warning) > 0;
    let out = &mut terminal::output();
    match output {
        Output::Text => {
            let mut text = Vec::new();
            write_text(&report, TextOptions::default(), &mut text)?;
            let mut text = String::from_utf8_lossy(&text).into_owned();
            if let Some(root) = unpacked {
                text = text.replace(&*root.join("").to_string_lossy(), "");
            }
            out.write_all(text.as_bytes())?;
        }
        Output::Json => write_json(&report, out)?,
        Output::Sarif => write_sarif(&report, olmkit::rules::all(), out)?,
        Output::Github => write_github(&report, &mut terminal::workflow_commands())?,
        Output::OpmJson => writeln!(out, "{}", serde_json::to_string_pretty(&opm(&verdict))?)?,
        Output::OpmYaml => write!(terminal::document(), "{}", olmkit::yaml::to_string(&opm(&verdict))?)?,
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// As `opm validate`: silent where all is well, the first error otherwise.
pub fn run_as_opm(args: &Args) -> anyhow::Result<ExitCode> {
    match args.output {
        Output::Text => {}
        Output::Json => return validate_as(args, Output::OpmJson),
        output => return validate_as(args, output),
    }
    let directory = std::path::Path::new(&args.catalog);
    anyhow::ensure!(directory.is_dir(), "{} is not a directory", directory.display());
    match validate::directory(directory).opm_text {
        None => Ok(ExitCode::SUCCESS),
        Some(text) => anyhow::bail!("{text}"),
    }
}

/// What `opm validate -o json` prints.
fn opm(verdict: &validate::Verdict) -> Opm<'_> {
    Opm {
        passed: verdict.passed(),
        error: verdict.opm_text.as_deref().map(|message| Message { message }),
    }
}

#[derive(serde::Serialize)]
struct Opm<'v> {
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Message<'v>>,
}

#[derive(serde::Serialize)]
struct Message<'v> {
    message: &'v str,
}
