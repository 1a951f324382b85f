//! `olmkit bundle diff`

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::diagnostics::Finding;
use olmkit::object::UntrustedText;
use olmkit::olmv1::{self, Object, Summary};
use olmkit::validate::olm_v1::{BlockedChange, blocked_changes_between};
use serde_json::json;

use super::source;
use crate::crd;
use crate::registry_flags::RegistryFlags;
use crate::terminal;

/// Compare two versions of a bundle
///
/// Lists added, removed and changed APIs, channels, objects, images and permissions, and whether OLM v1 would block the upgrade (exit code 1).
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit bundle diff releases/0.1.0 bundle", "olmkit bundle diff quay.io/example/cache-operator-bundle:v1 bundle", "olmkit bundle diff releases/0.1.0 bundle -o markdown"])]
pub struct Args {
    /// The earlier bundle: directory or image.
    #[arg(value_name = "OLD")]
    old: String,
    /// The later bundle: directory or image.
    #[arg(value_name = "NEW")]
    new: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    form: crd::Form,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Human-readable
    Text,
    /// JSON, with every change
    Json,
    /// Markdown, for a pull request or a job summary
    Markdown,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let old = source::for_olm_v1(&args.old, &args.registry)?;
    let new = source::for_olm_v1(&args.new, &args.registry)?;
    let summary = olmv1::summary(&old, &new)?;
    let changes = compare((&args.old, old.definitions), (&args.new, new.definitions))?;
    let code = ExitCode::from(u8::from(!changes.is_empty()));
    match args.output {
        Format::Text => text(&summary, &changes, args.form),
        Format::Json => {
            let findings: Vec<&Finding> = changes.iter().map(|change| &change.finding).collect();
            terminal::json(&json!({
                "upgradable": changes.is_empty(),
                "summary": summary,
                "findings": findings,
            }))?;
            Ok(code)
        }
        Format::Markdown => {
            markdown(&summary, &changes)?;
            Ok(code)
        }
    }
}

/// The parts of bundles that the summary compares.
const COMPARED: &str =
    "names, versions, channels, dependencies, CRDs, further objects, Deployments, webhooks, images and permissions";

fn text(summary: &Summary, changes: &[BlockedChange], form: crd::Form) -> anyhow::Result<ExitCode> {
    let mut out = terminal::styled_output();
    if summary.is_empty() {
        writeln!(out, "no differences in {COMPARED}")?;
    } else {
        // Names in a bundle are as its author wrote them.
        for line in summary.to_string().lines() {
            writeln!(out, "{}", UntrustedText::new(line))?;
        }
    }
    crd::print(changes, form, &mut out)
}

fn markdown(summary: &Summary, changes: &[BlockedChange]) -> anyhow::Result<()> {
    let mut out = terminal::output();
    // Names in a bundle must not format the page, nor link from it.
    let code = |line: &str| format!("`{}`", UntrustedText::new(&line.replace(['`', '\n'], " ")));
    if summary.is_empty() {
        writeln!(out, "No differences in {COMPARED}.\n")?;
    }
    for (title, lines) in summary.parts() {
        writeln!(out, "### {title}\n")?;
        for line in lines {
            writeln!(out, "- {}", code(line))?;
        }
        writeln!(out)?;
    }
    if changes.is_empty() {
        writeln!(out, "OLM v1 allows the CRD upgrades.")?;
        return Ok(());
    }
    writeln!(out, "### OLM v1 blocks the upgrade\n")?;
    for line in crd::grouped(changes) {
        let indent = line.len() - line.trim_start().len();
        writeln!(out, "{}- {}", " ".repeat(indent), code(line.trim_start()))?;
    }
    Ok(())
}

/// Changes that block the upgrade of CRDs with the same name. File names include their directories. Each CRD is dropped after its
/// comparison.
fn compare(old: (&str, Vec<Object>), new: (&str, Vec<Object>)) -> anyhow::Result<Vec<BlockedChange>> {
    let below = |directory: &str, mut object: Object| {
        object.path = format!("{}/{}", directory.trim_end_matches('/'), object.path);
        object
    };
    let mut by_name: BTreeMap<String, Object> = BTreeMap::new();
    for object in old.1 {
        by_name.insert(object.name().to_owned(), below(old.0, object));
    }
    let mut changes = Vec::new();
    for object in new.1 {
        if let Some(earlier) = by_name.remove(object.name()) {
            changes.extend(blocked_changes_between(earlier, below(new.0, object), old.0)?);
        }
    }
    Ok(changes)
}
