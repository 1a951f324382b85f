//! `olmkit config`

use std::io::Write as _;
use std::process::ExitCode;

use olmkit::object::UntrustedText;
use olmkit::policy::{Policy, config};

use crate::policy::{SettingsFlags, rules};
use crate::terminal;

/// Show the effective configuration
///
/// Reads olmkit.toml from the working directory or a parent directory, but never from inside a bundle. Flags override
/// environment variables (OLMKIT_SELECT, OLMKIT_IGNORE, OLMKIT_SEVERITY, OLMKIT_BASELINE, OLMKIT_FAIL_ON), which override the
/// file.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit config", "olmkit config --schema > olmkit.schema.json"])]
pub struct Args {
    #[command(flatten)]
    settings: SettingsFlags,
    /// Print the JSON schema of olmkit.toml
    #[arg(long)]
    schema: bool,
}

/// The environment variables that settings can be in.
const VARIABLES: &[&str] = &[
    "OLMKIT_CONFIG",
    "OLMKIT_SELECT",
    "OLMKIT_IGNORE",
    "OLMKIT_SEVERITY",
    "OLMKIT_BASELINE",
    "OLMKIT_FAIL_ON",
    "OLMKIT_LIMIT",
];

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let out = &mut terminal::data();
    if args.schema {
        write!(out, "{}", config::schema()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    match args.settings.read()? {
        Some((path, config)) => {
            config.apply(&path, Policy::builder(&rules()), true)?;
            writeln!(out, "# {}", UntrustedText::new(&path.to_string_lossy()))?;
            write!(out, "{}", UntrustedText::lines(&toml::to_string_pretty(&config)?))?;
        }
        None => writeln!(out, "# no {} here or above", config::FILE)?,
    }
    for name in VARIABLES {
        if let Ok(value) = std::env::var(name) {
            writeln!(out, "# {name}={}", UntrustedText::new(&value))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
