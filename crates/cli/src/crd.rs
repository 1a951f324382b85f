//! `olmkit crd`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use olmkit::diagnostics::{Finding, Report, TextOptions, counted, write_text};
use olmkit::limits;
use olmkit::object::UntrustedText;
use olmkit::olmv1::{self, ComparedValues, Object};
use olmkit::validate::olm_v1::{BlockedChange, blocked_changes_between};

use crate::bundle::source;

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: CrdCommand,
}

#[derive(Subcommand)]
enum CrdCommand {
    /// Check whether OLM v1 would allow a CRD upgrade
    ///
    /// Uses the rules of operator-controller, which blocks every change that is not known to be safe. Exits with 1 if the
    /// upgrade is blocked.
    Diff(Diff),
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit crd diff old.yaml config/crd/widgets.yaml", "olmkit crd diff releases/0.1.0/manifests bundle/manifests"])]
struct Diff {
    /// Earlier CRDs: a file or a directory.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// Later CRDs: a file or a directory.
    #[arg(value_name = "NEW")]
    new: PathBuf,
    #[command(flatten)]
    form: Form,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let CrdCommand::Diff(diff) = &args.command;
    let mut by_name: BTreeMap<String, Object> = BTreeMap::new();
    let values = ComparedValues::default();
    for file in files(&diff.old)? {
        for object in definitions(&file, &values)? {
            by_name.entry(object.name().to_owned()).or_insert(object);
        }
    }
    let mut changes = Vec::new();
    let mut compared = 0;
    let values = ComparedValues::default();
    for file in files(&diff.new)? {
        for object in definitions(&file, &values)? {
            if let Some(earlier) = by_name.remove(object.name()) {
                compared += 1;
                changes.extend(blocked_changes_between(
                    earlier,
                    object,
                    &diff.old.display().to_string(),
                )?);
            }
        }
    }
    anyhow::ensure!(
        compared > 0,
        "nothing to compare: {} and {} have no CRD of the same name",
        diff.old.display(),
        diff.new.display()
    );
    print(&changes, diff.form, &mut crate::terminal::styled_output())
}

/// A file, or the YAML and JSON files of a directory.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known))
        })
        .collect();
    files.sort();
    Ok(files)
}

/// The CRDs of a file.
fn definitions(file: &Path, values: &ComparedValues) -> anyhow::Result<Vec<Object>> {
    let name = file.display().to_string();
    let bytes = limits::read_file(file, &limits::BUNDLE_BYTES).with_context(|| format!("cannot read {name}"))?;
    olmv1::definitions(&name, &bytes, values).map_err(|error| source::unreadable(&name, &error))
}

/// Changes up to this number are shown with their source lines.
const SHOWN_IN_FULL: usize = 20;
/// Properties that are named of each validation of a CRD.
const SHOWN_OF_EACH: usize = 3;

// Output options for CRD changes. No doc comment: the commands that flatten this would show it as their own help.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Form {
    /// Omit source lines from text output
    #[arg(long)]
    pub short: bool,
    /// Print every CRD change with its source lines, without grouping
    #[arg(long, conflicts_with = "short")]
    pub full: bool,
}

/// Prints the changes that block an upgrade. The exit code is 1 if there are any.
pub fn print(changes: &[BlockedChange], form: Form, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    if changes.len() > SHOWN_IN_FULL && !form.full {
        for line in grouped(changes) {
            writeln!(out, "{}", UntrustedText::new(&line))?;
        }
        let rest = "--full prints each change with its source lines";
        writeln!(out, "{rest}")?;
    } else {
        let mut report: Report = changes.iter().map(|change| change.finding.clone()).collect();
        report.sort();
        let options = TextOptions {
            short: form.short,
            color: true,
            width: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into()),
        };
        write_text(&report, options, out)?;
    }
    out.flush()?;
    if changes.is_empty() {
        note!("OLM v1 allows the CRD upgrades");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("OLM v1 blocks the upgrade");
    Ok(ExitCode::FAILURE)
}

/// A line for each CRD, and below it one for each validation, with the number of changes and a few places.
pub fn grouped(changes: &[BlockedChange]) -> Vec<String> {
    let mut by_definition: BTreeMap<&str, BTreeMap<&str, Vec<&Finding>>> = BTreeMap::new();
    for change in changes {
        let validations = by_definition.entry(&change.definition).or_default();
        validations.entry(change.validation).or_default().push(&change.finding);
    }
    let mut lines = Vec::new();
    for (definition, validations) in by_definition {
        let findings: Vec<&&Finding> = validations.values().flatten().collect();
        let rule = findings.first().map(|finding| finding.rule).unwrap_or_default();
        lines.push(format!(
            "error[{rule}]: {definition}: OLM v1 blocks {}",
            counted(findings.len(), "change")
        ));
        for (validation, findings) in validations {
            let places: Vec<String> = findings
                .iter()
                .filter_map(|finding| finding.path.as_deref())
                .take(SHOWN_OF_EACH)
                .map(|path| property(path, validation))
                .collect();
            let more = findings.len().saturating_sub(places.len());
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            lines.push(format!("  {validation}: {}{more}", places.join(", ")));
        }
    }
    lines
}

/// The property that a path in a CRD leads to: `.spec.size` for that of its `maxLength`. Other paths are unchanged.
fn property(path: &str, validation: &str) -> String {
    let Some((_, inside)) = path.split_once(".schema.openAPIV3Schema") else {
        return path.to_owned();
    };
    let inside = inside.strip_suffix(validation).unwrap_or(inside);
    inside.trim_end_matches('.').replace(".properties.", ".")
}
