//! `catalog validate`: every rule of `opm validate` with its messages, and lints.
//!
//! opm builds a model of the catalog and stops at the first blob that does not fit into it ([`model`]); then it checks
//! packages, channels and bundles and prints all errors as a tree ([`package`], [`tree`]). Here all errors become
//! findings with a position, in a fixed order, and [`Verdict::opm_text`] is opm's output.

pub(crate) mod blobs;
pub(crate) mod bundle;
pub(crate) mod deprecation;
mod facts;
pub(crate) mod lints;
pub(crate) mod model;
pub(crate) mod package;
mod place;
mod tree;
pub(crate) mod upgrades;

use std::borrow::Cow;
use std::path::Path;

use super::blob;
use super::load;
use super::model::{Catalog, Origin};
use olmkit_base::limits;
use olmkit_diagnostics::{self as diagnostics, Finding, Report, Rule, Severity, define_rules};

pub use tree::Tree;

define_rules! {
    LOAD = {
        id: "catalog-load",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "Every catalog file must be readable and decodable.",
        why: "opm and OLM load the whole catalog or nothing.",
        bad: "schema: [olm.package]",
        good: "schema: olm.package",
        since: "0.1.0",
    }
}

/// A finding before its position in the file is computed.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Identifier of the rule.
    pub rule: &'static Rule,
    /// Its severity.
    pub severity: Severity,
    /// opm's message. Ours for lints.
    pub message: String,
    /// Package, channel or bundle.
    pub object: String,
    /// The blob.
    pub origin: Origin,
    /// JSON pointer to the value in the blob.
    pub pointer: String,
    /// The fix.
    pub hint: Option<Cow<'static, str>>,
}

impl Problem {
    fn error(rule: &'static Rule, message: impl Into<String>, origin: &Origin) -> Self {
        Problem {
            rule,
            severity: Severity::Error,
            message: limits::message(message),
            object: String::new(),
            origin: origin.clone(),
            pointer: String::new(),
            hint: None,
        }
    }

    fn warning(rule: &'static Rule, message: impl Into<String>, origin: &Origin) -> Self {
        Problem {
            severity: Severity::Warning,
            ..Problem::error(rule, message, origin)
        }
    }

    fn info(rule: &'static Rule, message: impl Into<String>, origin: &Origin) -> Self {
        Problem {
            severity: Severity::Info,
            ..Problem::error(rule, message, origin)
        }
    }

    fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = pointer.into();
        self
    }

    fn of(mut self, object: impl Into<String>) -> Self {
        self.object = limits::name(object);
        self
    }

    fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Result of validation.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// The error that `opm validate` prints, or `None` if it accepts the catalog. Siblings in a tree are sorted: opm's
    /// order is random.
    pub opm_text: Option<String>,
    /// Everything found, including lints.
    pub problems: Vec<Problem>,
}

impl Verdict {
    /// Returns true if opm accepts the catalog.
    pub fn passed(&self) -> bool {
        self.opm_text.is_none()
    }

    /// The findings of at least this severity, with their positions in the files, which are read again for this.
    pub fn report(&self, least: Severity) -> Report {
        let problems: Vec<&Problem> = self
            .problems
            .iter()
            .filter(|problem| problem.severity <= least)
            .collect();
        let mut report = Report::new();
        for (problem, position) in problems.iter().zip(place::find(&problems)) {
            let mut finding = Finding::new(problem.rule, problem.severity, &problem.message);
            if !problem.object.is_empty() {
                finding = finding.object(&problem.object);
            }
            if !problem.pointer.is_empty() {
                finding = finding.path(diagnostics::json_path(&problem.pointer));
            }
            if let Some(hint) = &problem.hint {
                finding = finding.hint(hint.as_ref());
            }
            if let Some(file) = &problem.origin.file {
                finding = finding.file(file.as_ref());
            }
            finding.position = position;
            report.push(finding);
        }
        report.sort();
        report
    }
}

/// Reads and checks a catalog directory. A directory that cannot be read is a result too.
pub fn directory(root: &Path) -> Verdict {
    loaded(load::directory(root).as_ref())
}

/// Validates a loaded catalog, or reports why it cannot be loaded.
pub fn loaded(catalog: Result<&Catalog, &load::Error>) -> Verdict {
    match catalog {
        Ok(catalog) => catalog_verdict(catalog),
        Err(error) => load_failure(error),
    }
}

fn load_failure(error: &load::Error) -> Verdict {
    let opm_text = error.opm_text();
    let mut problem = Problem::error(&LOAD, load::short(&opm_text), &Origin::default());
    if opm_text.ends_with(blob::MISSING_SCHEMA) {
        problem = problem.hint("add `schema`: olm.package, olm.channel, olm.bundle or olm.deprecations");
    }
    if let load::Error::Document { file, line, .. } = error {
        problem.origin = Origin {
            file: Some(file.as_path().into()),
            line: *line,
            ..Origin::default()
        };
    }
    Verdict {
        opm_text: Some(opm_text),
        problems: vec![problem],
    }
}

/// The error that `opm validate` reports, or `None` if the catalog is valid.
pub fn opm_text(catalog: &Catalog) -> Option<String> {
    opm_verdict(&model::build(catalog)).0
}

/// opm's output, and the problems that cause it.
fn opm_verdict(built: &facts::Model<'_>) -> (Option<String>, Vec<Problem>) {
    let (tree, found) = package::check(built);
    let text = match built.problems.first() {
        Some(first) => Some(first.message.clone()),
        None => tree.map(|tree| tree.to_string()),
    };
    (text, found)
}

/// Checks a catalog.
pub fn catalog_verdict(catalog: &Catalog) -> Verdict {
    let built = model::build(catalog);
    let (opm_text, found) = opm_verdict(&built);
    let (mut lints, upgrades) = (lints::check(&built), upgrades::check(&built));
    lints.extend(blobs::check(catalog));
    let mut problems = built.problems;
    problems.extend(found);
    problems.extend(lints);
    problems.extend(upgrades);
    Verdict { opm_text, problems }
}
