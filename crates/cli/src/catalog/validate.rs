//! `olmkit catalog validate`

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::catalog::validate;
use olmkit::diagnostics::{Severity, TextOptions, write_text};

use crate::terminal;

#[derive(clap::Args)]
pub struct Args {
    /// Catalog directory.
    directory: PathBuf,
    /// Output format. `json` and `yaml` are opm's: the verdict and its first error.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Fail on warnings too.
    #[arg(long)]
    fail_on_warning: bool,
    /// Leave out advice that needs no action.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum Output {
    /// Findings with their places.
    #[default]
    Text,
    /// opm's JSON.
    Json,
    /// opm's YAML.
    Yaml,
    /// All findings as JSON.
    Findings,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.directory.is_dir(),
        "{} is not a directory",
        args.directory.display()
    );
    let verdict = validate::directory(&args.directory);
    let least = match args.output {
        Output::Text if args.quiet => Severity::Warning,
        Output::Text | Output::Findings => Severity::Info,
        Output::Json | Output::Yaml if args.fail_on_warning => Severity::Warning,
        Output::Json | Output::Yaml => Severity::Error,
    };
    let report = verdict.report(least);
    let failed =
        !verdict.passed() || report.has_errors() || args.fail_on_warning && report.count(Severity::Warning) > 0;
    match args.output {
        Output::Text => write_text(&report, TextOptions::default(), &mut terminal::output())?,
        Output::Findings => writeln!(terminal::output(), "{}", serde_json::to_string_pretty(&report)?)?,
        Output::Json => writeln!(terminal::output(), "{}", serde_json::to_string_pretty(&opm(&verdict))?)?,
        Output::Yaml => write!(terminal::document(), "{}", olmkit::yaml::to_string(&opm(&verdict))?)?,
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// As `opm validate`: silent where all is well, the first error otherwise.
pub fn run_as_opm(args: &Args) -> anyhow::Result<ExitCode> {
    if args.output != Output::Text {
        return run(args);
    }
    anyhow::ensure!(
        args.directory.is_dir(),
        "{} is not a directory",
        args.directory.display()
    );
    match validate::directory(&args.directory).opm_text {
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
