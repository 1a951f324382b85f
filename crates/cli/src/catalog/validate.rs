//! `olmkit catalog validate`

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use olmkit::bundle::load::{Limits, Tree};
use olmkit::catalog::render::reference::{Located, locate};
use olmkit::catalog::{load, validate};
use olmkit::diagnostics::{
    Finding, Grouped, Report, Severity, TextOptions, counted, write_concise, write_github, write_json, write_junit,
    write_sarif, write_text,
};
use olmkit::object::UntrustedText;
use olmkit::olmv1;
use olmkit::policy::{Judged, Policy};
use olmkit::validate::crd_safety::{self, Given, Safety};
use olmkit::validate::source::find_bundles;
use rayon::prelude::*;

use super::images::RegistryImages;
use super::validate_as_opm as as_opm;
use crate::bundle::output::FailOn;
use crate::policy::{PolicyFlags, summary_of_suppressed};
use crate::progress::{Progress, Unit};
use crate::registry_flags::RegistryFlags;
use crate::terminal;

#[derive(clap::Args)]
#[command(after_help = examples![
    "olmkit catalog validate catalog",
    "olmkit catalog validate quay.io/example/catalog:v1 --fail-on warning",
    "olmkit catalog validate catalog --crd-safety --bundles operators/cache-operator"
])]
pub struct Args {
    /// Catalog: a directory, a layout (oci:DIRECTORY) or an image.
    catalog: String,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Lowest severity that makes the command fail [default: error].
    #[arg(long, value_enum, env = "OLMKIT_FAIL_ON")]
    fail_on: Option<FailOn>,
    /// The same as --fail-on warning.
    #[arg(long, hide = true)]
    fail_on_warning: bool,
    /// Also compare the CRDs at both ends of each upgrade edge, as OLM v1 does before an upgrade (V1-13).
    ///
    /// They are taken from the catalog, as far as it has inline manifests (olm.bundle.object), and from --bundles.
    #[arg(long)]
    crd_safety: bool,
    /// Directory with bundles, at any depth, whose CRDs the catalog lacks.
    #[arg(long, value_name = "DIRECTORY", requires = "crd_safety")]
    bundles: Vec<PathBuf>,
    #[command(flatten)]
    policy: PolicyFlags,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum Output {
    /// Findings with their locations. Many findings of one rule are grouped.
    #[default]
    Text,
    /// Every finding with its location.
    Full,
    /// All findings with their locations.
    Json,
    /// SARIF 2.1.0 for code scanning services.
    Sarif,
    /// Workflow commands of GitHub Actions.
    Github,
    /// One line per finding: FILE:LINE:COLUMN: SEVERITY[RULE] message.
    Concise,
    /// JUnit XML.
    Junit,
    /// opm's JSON: the result and its first error.
    OpmJson,
    /// The same as YAML.
    OpmYaml,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let output = args.output;
    let chosen = match args.policy.choose(args.fail_on) {
        Ok(chosen) => chosen,
        Err(code) => return Ok(code),
    };
    let located = locate(&args.catalog, &RegistryImages::new(&args.registry))?;
    anyhow::ensure!(located.path().is_dir(), "{} is not a directory", args.catalog);
    let progress = Progress::begin("validating the catalog", Unit::Read);
    let catalog = load::directory(located.path());
    let verdict = validate::loaded(catalog.as_ref());
    drop(progress);
    // A catalog that cannot be read has its finding in the result. One that no later step needs is dropped.
    let catalog = catalog.ok().filter(|_| args.crd_safety);
    let mut report = verdict.report(if terminal::is_quiet() {
        Severity::Warning
    } else {
        Severity::Info
    });
    if args.crd_safety {
        anyhow::ensure!(
            !matches!(output, Output::OpmJson | Output::OpmYaml),
            "opm has no --crd-safety; choose another --output"
        );
        if let Some(catalog) = &catalog {
            let safety = crd_safety::check(catalog, &given(&args.bundles)?);
            say_what_was_compared(&safety);
            for finding in safety.findings {
                report.push(finding);
            }
            report.sort();
        }
    }
    // The unpacked image is deleted afterwards, so findings use file names inside the image.
    let unpacked = match &located {
        Located::Image(_, root) => Some(root),
        Located::Directory(_) => None,
    };
    if let Some(root) = unpacked.filter(|_| !matches!(output, Output::Text | Output::Full)) {
        for finding in &mut report.findings {
            finding.file = inside(finding, root);
        }
    }
    let is_opms = matches!(output, Output::OpmJson | Output::OpmYaml);
    let mut failed = !verdict.passed();
    // The drop-in for opm has its result, regardless of the project's settings.
    if !is_opms {
        let explained = report.has_errors();
        report = judged(&chosen.policy, report, unpacked.map(|root| &**root));
        if chosen.writes_baseline() {
            chosen.write_baseline(&[&report])?;
            return Ok(ExitCode::SUCCESS);
        }
        failed = report.has_errors() || failed && !explained;
    }
    let worst = chosen.fails_from(args.fail_on_warning);
    failed |= worst == Severity::Warning && report.count(Severity::Warning) > 0;
    let out = &mut terminal::data();
    match output {
        Output::Text | Output::Full => {
            let mut text = Vec::new();
            let grouped = if output == Output::Text {
                let (shown, grouped) = split(&report);
                write_text(&shown, TextOptions::default(), &mut text)?;
                grouped.write(&mut text)?;
                !grouped.is_empty()
            } else {
                write_text(&report, TextOptions::default(), &mut text)?;
                false
            };
            let mut text = String::from_utf8_lossy(&text).into_owned();
            if let Some(root) = unpacked {
                text = text.replace(&*root.join("").to_string_lossy(), "");
            }
            // The groups have styles of ours.
            let out = &mut terminal::styled_output();
            out.write_all(text.as_bytes())?;
            let suppressed = summary_of_suppressed(&report);
            if let Some(text) = &suppressed {
                writeln!(out, "{text}")?;
            }
            if report.findings.is_empty() && suppressed.is_none() {
                note!("{}: no findings", UntrustedText::new(&args.catalog));
            } else {
                let more = if grouped {
                    "; -o full or concise prints each finding"
                } else {
                    ""
                };
                writeln!(out, "{}: {}{more}", UntrustedText::new(&args.catalog), totals(&report))?;
            }
        }
        Output::Json => write_json(&report, out)?,
        Output::Sarif => write_sarif(&report, olmkit::rules::all(), out)?,
        Output::Github => write_github(&report, &mut terminal::workflow_commands())?,
        Output::Concise => write_concise(&report, out)?,
        Output::Junit => write_junit(&report, "olmkit catalog validate", out)?,
        Output::OpmJson => as_opm::write(&verdict, as_opm::Output::Json)?,
        Output::OpmYaml => as_opm::write(&verdict, as_opm::Output::Yaml)?,
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// More findings of one rule are grouped.
const FEW: usize = 3;

/// The findings that are shown as groups.
#[derive(Default)]
struct Groups {
    /// CRD changes, one line each: they have no two equal ones.
    changes: Report,
    /// The findings of other rules, each rule once.
    rules: Grouped,
    has_rules: bool,
}

impl Groups {
    fn is_empty(&self) -> bool {
        !self.has_rules
    }

    fn write(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        write_concise(&self.changes, out)?;
        if !self.changes.findings.is_empty() {
            writeln!(out)?;
        }
        self.rules.write("file", olmkit::rules::all(), out)?;
        if self.has_rules {
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Separates rules with few findings, which are shown with source lines, from the others.
fn split(report: &Report) -> (Report, Groups) {
    let mut counts: BTreeMap<(Severity, &str), usize> = BTreeMap::new();
    for finding in &report.findings {
        *counts.entry((finding.severity, finding.rule)).or_default() += 1;
    }
    let is_few = |finding: &Finding| {
        counts
            .get(&(finding.severity, finding.rule))
            .is_some_and(|count| *count <= FEW)
    };
    let (few, many): (Vec<Finding>, Vec<Finding>) = report.findings.iter().cloned().partition(is_few);
    let mut groups = Groups::default();
    let mut files: BTreeMap<PathBuf, Vec<Finding>> = BTreeMap::new();
    for finding in many {
        if finding.rule == crd_safety::RULE {
            groups.changes.push(finding);
        } else {
            let file = finding.file.clone().unwrap_or_default();
            files.entry(file).or_default().push(finding);
        }
    }
    groups.has_rules = !files.is_empty();
    for findings in files.values() {
        groups.rules.add(findings);
    }
    (few.into_iter().collect(), groups)
}

/// The numbers of a report's findings.
fn totals(report: &Report) -> String {
    let count = |severity: Severity, noun| counted(report.count(severity), noun);
    let text = format!(
        "{}, {}",
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning")
    );
    if terminal::is_quiet() {
        return text;
    }
    format!("{text}, {}", counted(report.count(Severity::Info), "info"))
}

/// The findings of a report after applying a policy. Comments in an image are ignored, because they are untrusted.
fn judged(policy: &Policy, report: Report, unpacked: Option<&Path>) -> Report {
    let mut judge = policy.judge();
    let Some(root) = unpacked else {
        return judge.apply(report);
    };
    let mut kept = Report::new();
    for finding in report.findings {
        match judge.one_in(inside(&finding, root), finding, false) {
            Judged::Kept(finding) => kept.push(finding),
            Judged::Suppressed(suppressed) => kept.suppressed.push(suppressed),
            Judged::Dropped => {}
        }
    }
    kept
}

/// The name of a finding's file inside the directory that an image was unpacked to.
fn inside(finding: &Finding, root: &Path) -> Option<PathBuf> {
    let file = finding.file.as_deref()?;
    Some(file.strip_prefix(root).unwrap_or(file).to_owned())
}

/// The bundles below the directories. One that OLM v1 cannot read is reported and omitted.
fn given(directories: &[PathBuf]) -> anyhow::Result<Vec<Given>> {
    let mut folders = Vec::new();
    for directory in directories {
        let found = find_bundles(directory).with_context(|| format!("cannot list {}", directory.display()))?;
        anyhow::ensure!(
            !found.is_empty(),
            "no bundle below {}: a bundle is a directory with manifests/ and metadata/",
            directory.display()
        );
        folders.extend(found);
    }
    let read = |folder: &PathBuf| -> anyhow::Result<Given> {
        let tree = Tree::from_dir(folder, Limits::default())?;
        let folder = folder.display().to_string();
        let bundle = olmv1::Bundle::read(&tree).map_err(|error| crate::bundle::source::unreadable(&folder, &error))?;
        Ok(Given {
            package: bundle.package.clone(),
            name: bundle.csv.name().to_owned(),
            folder,
        })
    };
    let all: Vec<anyhow::Result<Given>> = folders.par_iter().map(read).collect();
    let mut given = Vec::new();
    for one in all {
        match one {
            Ok(one) => given.push(one),
            Err(error) => eprintln!("note: {}", UntrustedText::new(&format!("{error:#}"))),
        }
    }
    Ok(given)
}

/// Counts the compared upgrades, and names packages with upgrades that were not compared.
fn say_what_was_compared(safety: &Safety) {
    /// Packages that are named.
    const NAMED: usize = 5;
    let missing: usize = safety.not_compared.iter().map(|package| package.edges).sum();
    eprintln!(
        "CRDs compared along {} of {} upgrades",
        safety.compared,
        safety.compared + missing
    );
    if missing == 0 {
        return;
    }
    eprintln!(
        "not compared: {} of {}; name the directories of their bundles with --bundles",
        counted(missing, "upgrade"),
        counted(safety.not_compared.len(), "package")
    );
    for package in safety.not_compared.iter().take(NAMED) {
        let reason = package.reasons.iter().max_by_key(|(_, edges)| **edges);
        let reason = reason.map(|(reason, _)| reason.as_str()).unwrap_or_default();
        let more = match package.reasons.len() {
            0 | 1 => String::new(),
            all => format!(", and {} more", counted(all - 1, "reason")),
        };
        let text = format!(
            "    {}: {}: {reason}{more}",
            package.package,
            counted(package.edges, "upgrade")
        );
        eprintln!("{}", UntrustedText::new(&text));
    }
    if let Some(rest) = safety.not_compared.len().checked_sub(NAMED).filter(|rest| *rest > 0) {
        eprintln!("    and {}", counted(rest, "more package"));
    }
}
