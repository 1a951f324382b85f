//! What `operator-sdk bundle validate` says with two selections of its optional validators.

use std::collections::BTreeMap;

use olmkit::diagnostics::{Finding, Rule, Severity};
use olmkit::validate::{Options, Selector, validate};

use super::{BundleContext, Check, Found, Run, Suite, rule};
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
    "operator-sdk bundle validate --select-optional suite=operatorframework finds nothing",
)
.because(
    "OLM or OperatorHub would refuse or misrepresent the bundle; `olmkit bundle validate` explains each finding.",
    "0.2.0",
);

static HUB: Rule = rule(
    "pipeline/check_osdk_bundle_validate_operatorhub",
    Severity::Error,
    "community",
    "operator-sdk bundle validate --select-optional name=operatorhub finds nothing",
)
.because(
    "OLM or OperatorHub would refuse or misrepresent the bundle; `olmkit bundle validate` explains each finding.",
    "0.2.0",
);

fn framework(context: &BundleContext<'_>, found: &mut Found) -> Result<(), Raise> {
    run(context, &FRAMEWORK, "suite=operatorframework", found)
}

fn hub(context: &BundleContext<'_>, found: &mut Found) -> Result<(), Raise> {
    run(context, &HUB, "name=operatorhub", found)
}

fn run(context: &BundleContext<'_>, rule: &'static Rule, selection: &str, found: &mut Found) -> Result<(), Raise> {
    let annotation = context.bundle.annotations()?.get(OPENSHIFT)?;
    let text = shown(annotation.node);
    let platforms = &context.options.platforms;
    let selected = platforms.selected(annotation.is_true().then_some(text.as_str()));
    let Some(newest) = selected.and_then(|versions| versions.into_iter().next()) else {
        return Ok(());
    };
    let known = if context.options.strict_compat {
        newest.min(LAST_KNOWN_TO_PIPELINE)
    } else {
        newest
    };
    let table = platforms.kubernetes(false);
    let kubernetes = table.iter().rfind(|(openshift, _)| *openshift <= known);
    let kubernetes = kubernetes.map(|(_, kubernetes)| kubernetes.short()).unwrap_or_default();
    let root = context.bundle.root();
    let reading = context.reading()?;
    let options = Options {
        selector: Selector::parse(selection).unwrap_or_default(),
        values: BTreeMap::from([("k8s-version".to_owned(), kubernetes)]),
        ..Options::default()
    };
    let outcome = validate(reading, &options);
    if let Some(reason) = outcome.fatal {
        let message = "operator-sdk returned non-JSON output when validating bundle";
        found.push(Finding::of(rule, message).file(root).hint(reason));
        return Ok(());
    }
    for checked in outcome.checked {
        let Some(message) = checked.reference else { continue };
        let inner = checked.finding;
        let severity = if inner.severity == Severity::Error {
            Severity::Error
        } else {
            Severity::Warning
        };
        let mut finding = Finding::new(rule, severity, message);
        let file = inner.file.as_ref().map(|file| join(&root, &file.to_string_lossy()));
        finding.file = Some(file.unwrap_or_else(|| root.clone()).into());
        finding.object = inner.object;
        finding.path = inner.path;
        finding.position = inner.position;
        finding.end = inner.end;
        finding.hint = Some(match inner.hint {
            Some(hint) => format!("{hint} ({})", inner.rule),
            None => format!("see `olmkit explain {}`", inner.rule),
        });
        found.push(finding);
    }
    Ok(())
}
