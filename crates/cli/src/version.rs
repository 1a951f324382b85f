//! `olmkit version`

use std::io::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::bundle::generate::OPERATOR_SDK_BUILDER;
use olmkit_oci::spec::Platform;

use crate::terminal;

// Print the version
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

/// The release of opm whose commands and results these are.
const OPM: &str = "v1.73.0";

/// The release of operator-sdk whose commands and results these are.
fn operator_sdk_release() -> &'static str {
    OPERATOR_SDK_BUILDER.trim_start_matches("operator-sdk-")
}

/// `operator-sdk version`, which Makefiles parse. The fields about Go's compiler and the commit identify olmkit.
pub fn operator_sdk() -> String {
    let platform = Platform::host();
    format!(
        "operator-sdk version: {:?}, commit: {COMMIT:?}, kubernetes version: \"v1.33.1\", go version: \"none\", GOOS: {:?}, GOARCH: {:?}",
        operator_sdk_release(),
        system(),
        platform.architecture
    )
}

/// `opm version`, which Makefiles parse.
pub fn opm() -> String {
    let platform = Platform::host();
    format!(
        "Version: version.Version{{OpmVersion:{OPM:?}, GitCommit:{COMMIT:?}, BuildDate:\"\", GoOs:{:?}, GoArch:{:?}}}",
        system(),
        platform.architecture
    )
}

/// This operating system in Go's spelling.
fn system() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}

const COMMIT: &str = concat!("olmkit-", env!("CARGO_PKG_VERSION"));

pub fn run(args: &Args, is_operator_sdk: bool) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let out = &mut terminal::output();
    match args.output {
        Format::Text if is_operator_sdk => writeln!(out, "{}", operator_sdk())?,
        Format::Text => writeln!(
            out,
            "olmkit {version} ({system}/{machine}), compatible with {OPERATOR_SDK_BUILDER} and opm-{OPM}"
        )?,
        Format::Json => {
            let object = serde_json::json!({
                "olmkit": version,
                "operatorSdk": OPERATOR_SDK_BUILDER,
                "opm": OPM,
                "os": system,
                "arch": machine,
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
