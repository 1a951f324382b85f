//! `olmkit version`

use std::io::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::bundle::generate::OPERATOR_SDK_BUILDER;

use crate::terminal;

/// Print the version
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit version", "olmkit version -o json"])]
pub struct Args {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// One line
    #[default]
    Text,
    /// An object with all versions
    Json,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let out = &mut terminal::output();
    match args.output {
        Format::Text => writeln!(
            out,
            "olmkit {version} ({system}/{machine}), stands for {OPERATOR_SDK_BUILDER} and opm v1.73"
        )?,
        Format::Json => {
            let object = serde_json::json!({
                "olmkit": version,
                "operatorSdk": OPERATOR_SDK_BUILDER,
                "opm": "v1.73",
                "os": system,
                "arch": machine,
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
