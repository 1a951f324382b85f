//! Results of `operator-sdk bundle validate` with two selections of its optional validators.

use std::collections::BTreeMap;

use olmkit::diagnostics::{Finding, Rule, Severity};
use olmkit::validate::{Checked, Options, Outcome, Selector, validate_selections};

use super::{BundleContext, Check, Findings, Run, Suite, rule};
use crate::bundle::OPENSHIFT;
use crate::files::join;
use crate::platforms::LAST_KNOWN_TO_PIPELINE;
use crate::python::Raise;
use crate::python::text::shown;

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::Community, &FRAMEWORK, Run::Bundle(framework)),
    Check::new(Suite::Community, &HUB, Run::Bundle(hub)),
];

static FRAMEWORK: Rule = rule(
    "pipeline/check_osdk_bundle_validate_operator_framework",
    Severity::Error,
    "community",
    "operator-sdk bundle validate --select-optional suite=operatorframework must pass",
)
.because(
    "OLM or OperatorHub would reject or misrepresent the bundle. `olmkit bundle validate` explains each finding.",
    "0.1.0",
);

static HUB: Rule = rule(
    "pipeline/check_osdk_bundle_validate_operatorhub",
    Severity::Error,
    "community",
    "operator-sdk bundle validate --select-optional name=operatorhub must pass",
)
.because(
    "OLM or OperatorHub would reject or misrepresent the bundle. `olmkit bundle validate` explains each finding.",
    "0.1.0",
);

/// The selections of the two checks.
pub(super) const FRAMEWORK_SUITE: &str = "suite=operatorframework";
const HUB_NAME: &str = "name=operatorhub";

fn framework(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    run(context, &FRAMEWORK, FRAMEWORK_SUITE, found)
}

fn hub(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    run(context, &HUB, HUB_NAME, found)
}

/// The results for both selections, computed together: most rules apply to both. None without a version of OpenShift.
fn verdicts(context: &BundleContext<'_>) -> Result<Vec<(&'static str, Outcome)>, Raise> {
    let annotation = context.bundle.annotations()?.get(OPENSHIFT)?;
    let text = shown(annotation.node);
    let platforms = &context.options.platforms;
    let selected = platforms.selected(annotation.is_true().then_some(text.as_str()));
    let Some(newest) = selected.and_then(|versions| versions.into_iter().next()) else {
        return Ok(Vec::new());
    };
    let known = if context.options.strict_compat {
        newest.min(LAST_KNOWN_TO_PIPELINE)
    } else {
        newest
    };
    let table = platforms.kubernetes(false);
    let kubernetes = table.iter().rfind(|(openshift, _)| *openshift <= known);
    let kubernetes = kubernetes.map(|(_, kubernetes)| kubernetes.short()).unwrap_or_default();
    let options = Options {
        values: BTreeMap::from([("k8s-version".to_owned(), kubernetes)]),
        ..Options::default()
    };
    let selections = [FRAMEWORK_SUITE, HUB_NAME];
    let selectors = selections.map(|selection| Selector::parse(selection).unwrap_or_default());
    let outcomes = validate_selections(context.reading()?, &options, &selectors);
    Ok(selections.into_iter().zip(outcomes).collect())
}

fn run(context: &BundleContext<'_>, rule: &'static Rule, selection: &str, found: &mut Findings) -> Result<(), Raise> {
    let verdicts = context.operator_sdk.get_or_init(|| verdicts(context));
    let verdicts = verdicts.as_ref().map_err(Clone::clone)?;
    let Some((_, outcome)) = verdicts.iter().find(|(name, _)| *name == selection) else {
        return Ok(());
    };
    let root = context.bundle.root();
    if let Some(reason) = &outcome.fatal {
        let message = "operator-sdk returned non-JSON output when validating bundle";
        found.push(Finding::from_rule(rule, message).file(root).hint(reason.as_str()));
        return Ok(());
    }
    found.extend(
        outcome
            .checked
            .iter()
            .filter_map(|checked| carried(rule, checked, &root)),
    );
    Ok(())
}

/// A finding of our validator with operator-sdk's message, under a repository's rule. `None` for a lint.
pub(super) fn carried(rule: &'static Rule, checked: &Checked, root: &str) -> Option<Finding> {
    let message = checked.reference.as_ref()?;
    let inner = &checked.finding;
    let severity = if inner.severity == Severity::Error {
        Severity::Error
    } else {
        Severity::Warning
    };
    let mut finding = Finding::new(rule, severity, message.as_str());
    let file = inner.file.as_ref().map(|file| join(root, &file.to_string_lossy()));
    finding.file = Some(file.unwrap_or_else(|| root.to_owned()).into());
    finding.object = inner.object.clone();
    finding.path = inner.path.clone();
    finding.position = inner.position;
    finding.end = inner.end;
    finding.hint = Some(match &inner.hint {
        Some(hint) => format!("{hint} ({})", inner.rule),
        None => format!("see `olmkit explain {}`", inner.rule),
    });
    Some(finding)
}
