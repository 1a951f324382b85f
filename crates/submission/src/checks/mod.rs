//! The static checks: one function for each, named after the original, next to its rule.

mod annotations;
pub(crate) mod catalogs;
mod ci_config;
mod community;
mod fields;
mod files;
#[cfg(test)]
mod fixture;
mod marketplace;
mod names;
mod openshift;
pub(crate) mod operator_hub;
mod operator_sdk;
pub(crate) mod preflight;
mod pull_request;
mod release;
mod release_config;
mod replaces;
mod schema;
mod steps;
mod update_graph;

use std::sync::OnceLock;

use olmkit::bundle::load::{self, Reading};
use olmkit::diagnostics::{Finding, Origin, Rule, Severity};
use olmkit::validate::Outcome;

use crate::bundle::Bundle;
use crate::platforms::Platforms;
use crate::python::{Document, Raise, View};
use crate::repository::{Operator, Repository};

/// A group of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suite {
    /// For every repository.
    Common,
    /// For community operators.
    Community,
    /// For certified operators and the marketplace.
    Isv,
    /// For operatorhub.io.
    OperatorHub,
    /// preflight's operator policy.
    Preflight,
}

impl Suite {
    /// The name of the suite in the hosted pipeline, or of the tool.
    pub fn name(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Community => "community",
            Self::Isv => "isv",
            Self::OperatorHub => operator_hub::SUITE,
            Self::Preflight => "preflight",
        }
    }
}

/// Options for the checks.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// True if the result must equal the hosted pipeline's, including its bugs.
    pub strict_compat: bool,
    /// The versions of OpenShift.
    pub platforms: Platforms,
    /// Checks that do not run, by name.
    pub skip: Vec<String>,
    /// The suites, in this order.
    pub suites: Vec<Suite>,
    /// True to run the steps that check the files of one pull request, which are too slow for a whole repository.
    pub pull_request: bool,
}

/// Input of a check.
pub(crate) struct Context<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) options: &'a Options,
}

/// A bundle in its operator.
pub(crate) struct BundleContext<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) options: &'a Options,
    pub(crate) operator: &'a Operator,
    pub(crate) bundle: &'a Bundle,
    pub(crate) csv: &'a Result<Document, Raise>,
    /// The bundle as `bundle validate` reads it, once it is needed.
    pub(crate) reading: OnceLock<Result<Reading, Raise>>,
    /// operator-sdk's results for the selections of one repository's checks, computed on first use.
    pub(crate) operator_sdk: OnceLock<Result<Vec<(&'static str, Outcome)>, Raise>>,
}

impl<'a> BundleContext<'a> {
    /// The ClusterServiceVersion.
    pub(crate) fn csv(&self) -> Result<View<'a>, Raise> {
        self.csv.as_ref().map(Document::view).map_err(Clone::clone)
    }

    /// The bundle as `bundle validate` reads it.
    pub(crate) fn reading(&self) -> Result<&Reading, Raise> {
        let read = || {
            let root = self.bundle.root();
            match self.bundle.files().bundle(&root) {
                Ok(tree) => Ok(load::read(tree, &root)),
                Err(error) => Err(Raise::other(format!("{root} cannot be read: {error}")).in_file(&root)),
            }
        };
        self.reading.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// Returns true if the operator has other bundles.
    pub(crate) fn has_others(&self) -> bool {
        self.operator.bundles.len() > 1
    }
}

/// Receives the findings of one check.
pub(crate) type Findings = Vec<Finding>;

/// A catalog and an operator in it.
pub(crate) type Place = (String, String);

/// Scope of a check, and its function.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    Operator(fn(&Context<'_>, &Operator, &mut Findings) -> Result<(), Raise>),
    Bundle(fn(&BundleContext<'_>, &mut Findings) -> Result<(), Raise>),
    Catalogs(fn(&Context<'_>, &[Place], &mut Findings) -> Result<(), Raise>),
}

/// One check.
pub(crate) struct Check {
    pub(crate) suite: Suite,
    pub(crate) rule: &'static Rule,
    /// True if operators with file-based catalogs are skipped.
    pub(crate) without_catalogs: bool,
    /// True if it is a separate step of the pipeline, outside the static tests.
    pub(crate) is_step: bool,
    /// True if it runs for one pull request only.
    pub(crate) is_of_pull_request: bool,
    pub(crate) run: Run,
}

impl Check {
    const fn new(suite: Suite, rule: &'static Rule, run: Run) -> Self {
        Self {
            suite,
            rule,
            without_catalogs: false,
            is_step: false,
            is_of_pull_request: false,
            run,
        }
    }

    /// Leaves out operators with file-based catalogs.
    const fn without_catalogs(mut self) -> Self {
        self.without_catalogs = true;
        self
    }

    /// Marks a step outside of the static tests.
    const fn step(mut self) -> Self {
        self.is_step = true;
        self
    }

    /// Marks a step that runs for one pull request only.
    const fn of_pull_request(mut self) -> Self {
        self.is_of_pull_request = true;
        self.step()
    }

    /// The name of the original.
    pub(crate) fn name(&self) -> &'static str {
        name_of(self.rule.id)
    }
}

/// `check_x` of `pipeline/check_x`.
pub(crate) fn name_of(id: &'static str) -> &'static str {
    id.rsplit('/').next().unwrap_or(id)
}

/// All checks: within a suite of the hosted pipeline first those of the operator, then catalogs, then bundles, each
/// sorted by name.
pub(crate) static CHECKS: &[&[Check]] = &[
    ci_config::CHECKS,
    update_graph::OPERATOR_CHECKS,
    catalogs::CHECKS,
    names::CHECKS,
    release_config::CHECKS,
    files::CHECKS,
    replaces::CHECKS,
    operator_sdk::CHECKS,
    fields::CHECKS,
    update_graph::BUNDLE_CHECKS,
    openshift::CHECKS,
    community::CHECKS,
    annotations::CHECKS,
    marketplace::CHECKS,
    steps::CHECKS,
    release::CHECKS,
    pull_request::CHECKS,
    operator_hub::CHECKS,
    operator_hub::BUNDLE_CHECKS,
    operator_hub::IMAGE_CHECKS,
    preflight::CHECKS,
];

/// The suite of the rules of the pipeline on a change as a whole.
pub(crate) const CHANGE_SUITE: &str = "pull-request";

/// A rule of the pipeline.
pub(crate) const fn rule(id: &'static str, severity: Severity, suite: &'static str, summary: &'static str) -> Rule {
    Rule::of_tool(id, severity, Origin::Pipeline(suite), summary)
}

/// A finding at a value.
fn at(finding: Finding, view: View<'_>) -> Finding {
    finding.file(view.file).at(view.at)
}
