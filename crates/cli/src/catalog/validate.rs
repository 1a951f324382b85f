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
    Finding, Report, Severity, TextOptions, write_concise, write_github, write_json, write_junit, write_sarif,
    write_text,
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
    /// Lowest severity that fails the command [default: error].
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
    /// One line a finding: FILE:LINE:COLUMN: RULE message.
    Concise,
    /// JUnit XML.
    Junit,
    /// opm's JSON: the verdict and its first error.
    OpmJson,
    /// The same as YAML.
    #[value(alias = "yaml")]
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
    // A catalog that cannot be read has its finding in the verdict. One that nothing else needs is dropped.
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
    // The directory that an image was unpacked to is gone afterwards; its files have the names that they have in the image.
    let unpacked = match &located {
        Located::Image(_, root) => Some(root),
        Located::Directory(_) => None,
    };
    if let Some(root) = unpacked.filter(|_| output != Output::Text) {
        for finding in &mut report.findings {
            finding.file = inside(finding, root);
        }
    }
    let is_opms = matches!(output, Output::OpmJson | Output::OpmYaml);
    let mut failed = !verdict.passed();
    // The drop-in for opm has its verdict, whatever a project wants to hear.
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
        Output::Text => {
            let mut text = Vec::new();
            write_text(&report, TextOptions::default(), &mut text)?;
            let mut text = String::from_utf8_lossy(&text).into_owned();
            if let Some(root) = unpacked {
                text = text.replace(&*root.join("").to_string_lossy(), "");
            }
            terminal::output().write_all(text.as_bytes())?;
            if let Some(text) = summary_of_suppressed(&report) {
                writeln!(terminal::output(), "{text}")?;
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

/// What a policy leaves of a report. Comments in an image, which others may have made, do not count.
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

/// The bundles below the directories. One that OLM v1 cannot read is named and left out.
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
        Ok(Given { folder, bundle })
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

/// Names the upgrades that were not compared, by reason.
fn say_what_was_compared(safety: &Safety) {
    let all = safety.compared + safety.not_compared.len();
    eprintln!("CRDs compared along {} of {all} upgrades", safety.compared);
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (upgrade, reason) in &safety.not_compared {
        let upgrade = format!("{} -> {}", upgrade.from, upgrade.to);
        by_reason.entry(reason).or_default().push(upgrade);
    }
    for (reason, upgrades) in by_reason {
        let text = format!(
            "    not {}: {reason}; name its directory with --bundles",
            upgrades.join(", ")
        );
        eprintln!("{}", UntrustedText::new(&text));
    }
}
