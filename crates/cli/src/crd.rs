//! `olmkit crd`

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use olmkit::diagnostics::{Finding, Report, TextOptions, write_text};
use olmkit::limits;
use olmkit::olmv1::{self, Object};
use olmkit::validate::olm_v1::upgrade_findings;

use crate::bundle::source;

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: CrdCommand,
}

#[derive(Subcommand)]
enum CrdCommand {
    /// Check whether OLM v1 lets a CRD take the place of an earlier one
    ///
    /// The verdict is that of operator-controller, which asks crdify: anything that it does not know to be safe blocks. The exit
    /// status is then 1.
    Diff(Diff),
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit crd diff old.yaml config/crd/widgets.yaml", "olmkit crd diff releases/0.1.0/manifests bundle/manifests"])]
struct Diff {
    /// The earlier definitions: a file, or a directory of them.
    #[arg(value_name = "OLD")]
    old: std::path::PathBuf,
    /// The later definitions: a file, or a directory of them.
    #[arg(value_name = "NEW")]
    new: std::path::PathBuf,
    /// Omit source lines.
    #[arg(long)]
    short: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let CrdCommand::Diff(diff) = &args.command;
    let (old, new) = (definitions(&diff.old)?, definitions(&diff.new)?);
    let mut findings = Vec::new();
    let mut compared = 0;
    for object in &new {
        if let Some(earlier) = old.iter().find(|earlier| earlier.name() == object.name()) {
            compared += 1;
            findings.extend(upgrade_findings(
                &earlier.value,
                Some(earlier),
                object,
                &diff.old.display().to_string(),
            ));
        }
    }
    anyhow::ensure!(
        compared > 0,
        "nothing to compare: {} and {} have no CRD of the same name",
        diff.old.display(),
        diff.new.display()
    );
    print(findings, diff.short, &mut crate::terminal::styled_output())
}

/// The definitions of a file, or of the files of a directory.
fn definitions(path: &Path) -> anyhow::Result<Vec<Object>> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
        files = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.extension()
                    .is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known))
            })
            .collect();
        files.sort();
    }
    let mut definitions = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let bytes = limits::read_file(&file, &limits::BUNDLE_BYTES).with_context(|| format!("cannot read {name}"))?;
        let found = olmv1::definitions(&name, &bytes).map_err(|error| source::unreadable(&name, &error))?;
        definitions.extend(found);
    }
    Ok(definitions)
}

/// Prints what blocks an upgrade. The exit status says whether anything does.
pub fn print(findings: Vec<Finding>, short: bool, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut report: Report = findings.into_iter().collect();
    report.sort();
    let options = TextOptions {
        short,
        color: true,
        width: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into()),
    };
    write_text(&report, options, out)?;
    out.flush()?;
    if report.findings.is_empty() {
        note!("OLM v1 lets the CRDs be upgraded");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("OLM v1 blocks the upgrade");
    Ok(ExitCode::FAILURE)
}
