//! `opm validate`: only opm's result. The helper image has this, without the rules and settings of `olmkit catalog
//! validate`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::catalog::validate::{self, Verdict};

use crate::terminal;

#[derive(clap::Args)]
pub struct Args {
    /// Directory of the catalog
    directory: PathBuf,
    /// Output format [default: the first error, on standard error]
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Output {
    Json,
    Yaml,
}

/// Silent where all is well.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let directory = &args.directory;
    anyhow::ensure!(directory.is_dir(), "{} is not a directory", directory.display());
    let verdict = validate::directory(directory);
    if let Some(output) = args.output {
        write(&verdict, output)?;
    } else if let Some(text) = &verdict.opm_text {
        anyhow::bail!("{text}");
    }
    Ok(if verdict.passed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Writes the result and its first error as opm does.
pub fn write(verdict: &Verdict, output: Output) -> anyhow::Result<()> {
    let shown = Shown {
        passed: verdict.passed(),
        error: verdict.opm_text.as_deref().map(|message| Message { message }),
    };
    match output {
        Output::Json => writeln!(terminal::data(), "{}", serde_json::to_string_pretty(&shown)?)?,
        Output::Yaml => write!(terminal::document(), "{}", olmkit::yaml::to_string(&shown)?)?,
    }
    Ok(())
}

#[derive(serde::Serialize)]
struct Shown<'v> {
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Message<'v>>,
}

#[derive(serde::Serialize)]
struct Message<'v> {
    message: &'v str,
}
