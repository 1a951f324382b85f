//! Scorecard: the tests that a bundle configures, and operator-sdk's six built-in ones without a cluster.
//!
//! In a cluster scorecard starts a pod for each test. The built-in tests depend only on the bundle's files, so they are
//! called directly: [`Builtin::from_test`] identifies the test of an image and its command, [`Bundle::run`] returns its
//! result.

mod builtin;
mod config;
mod csv;
mod descriptors;
mod examples;
mod output;
mod resources;
pub(crate) mod rules;
mod schemas;
mod validation;

pub use builtin::{Builtin, Bundle};
pub use config::{CONFIG_DIRECTORY, CONFIG_FILE, ConfigError, config_path, default_configuration, parse};
pub use olmkit_scorecard::{
    Configuration, MountPath, Stage, State, Storage, StorageSpec, Test, TestConfiguration, TestList, TestResult,
    TestStatus,
};
pub use output::{json, text, xunit};
pub use rules::Answer;

use crate::diagnostics::Finding;
use crate::validate::Selector;

/// Message for a test that cannot run locally.
pub const NEEDS_CLUSTER: &str = "not run: without --cluster only the built-in tests run";

/// The tests of the configuration that a selector selects, stage by stage.
pub fn selected<'a>(
    configuration: &'a Configuration,
    selector: &'a Selector,
) -> impl Iterator<Item = TestConfiguration> + use<'a> {
    configuration
        .stages
        .iter()
        .flat_map(|stage| selected_of(stage, selector))
}

fn selected_of<'a>(stage: &'a Stage, selector: &'a Selector) -> impl Iterator<Item = TestConfiguration> + use<'a> {
    let is_selected = |test: &&TestConfiguration| {
        let labels = test.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        selector.is_empty() || selector.matches(&labels.collect())
    };
    stage.tests.iter().filter(is_selected).cloned()
}

/// The selected tests without results.
#[must_use]
pub fn list(configuration: &Configuration, selector: &Selector) -> TestList {
    selected(configuration, selector)
        .map(|test| Test::new(test, TestStatus::default()))
        .collect()
}

/// The stages with the selected tests, each with its effective storage.
#[must_use]
pub fn stages(configuration: &Configuration, selector: &Selector) -> Vec<Stage> {
    let default = &configuration.storage.spec.mount_path.path;
    let with_storage = |mut test: TestConfiguration| {
        let path = &mut test.storage.spec.mount_path.path;
        if path.is_empty() {
            path.clone_from(default);
        }
        test
    };
    let stage = |stage: &Stage| Stage {
        parallel: stage.parallel,
        tests: selected_of(stage, selector).map(with_storage).collect(),
    };
    configuration.stages.iter().map(stage).collect()
}

/// Runs the selected tests. A test that is not built in ends with the state `error`, so it does not pass unnoticed.
#[must_use]
pub fn run(bundle: &Bundle<'_>, configuration: &Configuration, selector: &Selector) -> TestList {
    let tests = stages(configuration, selector)
        .into_iter()
        .flat_map(|stage| stage.tests);
    tests
        .map(|test| {
            let result = match Builtin::from_test(&test) {
                Some(builtin) => bundle.run(&builtin),
                None => not_run(&test),
            };
            Test::new(test, result.into())
        })
        .collect()
}

/// The name of a test: its label `test`, else the last word of its command.
#[must_use]
pub fn test_name(test: &TestConfiguration) -> String {
    let name = test.labels.get("test").or(test.entrypoint.last());
    name.cloned().unwrap_or_default()
}

/// Findings of the selected built-in tests, with positions and names. A finding of several tests appears once.
#[must_use]
pub fn findings(bundle: &Bundle<'_>, configuration: &Configuration, selector: &Selector) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for builtin in selected(configuration, selector).filter_map(|test| Builtin::from_test(&test)) {
        for finding in bundle.answer(&builtin).findings {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    findings
}

fn not_run(test: &TestConfiguration) -> TestResult {
    let mut result = TestResult::new(test_name(test));
    result.error(format!("{NEEDS_CLUSTER}; image {}", test.image));
    result
}
