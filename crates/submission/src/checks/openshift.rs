//! The versions of Kubernetes and OpenShift that a bundle requires.

use std::collections::BTreeSet;

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{BundleContext, Check, Findings, Run, Suite, at, rule};
use crate::bundle::OPENSHIFT;
use crate::platforms::same_release;
use crate::python::{EMPTY, Raise, View};
use crate::versions::Release;

pub(super) static CHECKS: &[Check] =
    &[Check::new(Suite::Community, &CONSTRAINTS, Run::Bundle(constraints)).without_catalogs()];

static CONSTRAINTS: Rule = rule(
    "pipeline/check_api_version_constraints",
    Severity::Error,
    "community",
    "The annotation com.redhat.openshift.versions must select only OpenShift versions whose Kubernetes is at least spec.minKubeVersion",
)
.because("OLM would not install the bundle on the others.", "0.1.0")
.example(
    "# spec.minKubeVersion is 1.27.0, which OpenShift 4.14 brings\nannotations:\n  com.redhat.openshift.versions: v4.12",
    "annotations:\n  com.redhat.openshift.versions: v4.14",
);

/// OpenShift and its Kubernetes, oldest first.
type Table = [(Release, Release)];

fn constraints(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let annotation = context.bundle.annotations()?.get(OPENSHIFT)?;
    let minimum = context.csv()?.get_or("spec", &EMPTY)?.get("minKubeVersion")?;
    if !minimum.is_true() {
        return Ok(());
    }
    let least = match Release::parse(minimum.text()?) {
        Ok(least) => least,
        Err(problem) => {
            found.push(at(
                Finding::from_rule(&CONSTRAINTS, format!("Invalid minKubeVersion: {problem}")),
                minimum,
            ));
            return Ok(());
        }
    };
    if !annotation.is_true() {
        let message = format!("minKubeVersion is set to {least} but com.redhat.openshift.versions is not set");
        let hint = match first_with(&context.options.platforms.kubernetes(false), least) {
            Some(openshift) => {
                format!(
                    "add the annotation {OPENSHIFT}: v{} to metadata/annotations.yaml",
                    openshift.short()
                )
            }
            None => format!("add the annotation {OPENSHIFT} to metadata/annotations.yaml"),
        };
        found.push(at(Finding::from_rule(&CONSTRAINTS, message), annotation).hint(hint));
        return Ok(());
    }
    let table = context.options.platforms.kubernetes(context.options.strict_compat);
    let selected = match select(annotation.text()?.trim(), &table) {
        Ok(selected) => selected,
        Err(problem) => {
            let message = format!("Invalid com.redhat.openshift.versions: {problem}");
            found.push(
                at(Finding::from_rule(&CONSTRAINTS, message), annotation).hint("write v4.12, =v4.12 or v4.12-v4.16"),
            );
            return Ok(());
        }
    };
    if selected.is_unusual_list {
        let message =
            "Comma separated list of versions in com.redhat.openshift.versions is only supported for v4.5 and v4.6";
        found.push(at(Finding::new(&CONSTRAINTS, Severity::Warning, message), annotation));
    }
    let conflicts = conflicts(&selected.versions, &table, least);
    if !conflicts.is_empty() {
        let known = context.options.platforms.kubernetes(true);
        let only_here = !context.options.strict_compat
            && select(annotation.text()?.trim(), &known)
                .is_ok_and(|selected| self::conflicts(&selected.versions, &known, least).is_empty());
        let mut hint = match first_with(&table, least) {
            Some(openshift) => format!("Kubernetes {least} comes with OpenShift {}", openshift.short()),
            None => format!("no known OpenShift version contains Kubernetes {least}"),
        };
        if only_here {
            hint.push_str("; differs from the hosted pipeline: its table ends with OpenShift 4.17");
        }
        found.push(conflict(&conflicts, least, annotation).hint(hint));
    } else if !context.options.strict_compat {
        false_alarm(context, annotation, least, found)?;
    }
    Ok(())
}

/// A false positive of the pipeline, whose table ends too early.
fn false_alarm(
    context: &BundleContext<'_>,
    annotation: View<'_>,
    least: Release,
    found: &mut Findings,
) -> Result<(), Raise> {
    let known = context.options.platforms.kubernetes(true);
    let Ok(selected) = select(annotation.text()?.trim(), &known) else {
        return Ok(());
    };
    let conflicts = conflicts(&selected.versions, &known, least);
    if conflicts.is_empty() {
        return Ok(());
    }
    let mut finding = conflict(&conflicts, least, annotation);
    finding.severity = Severity::Warning;
    finding
        .message
        .push_str(" (differs from the hosted pipeline, for which this is an error)");
    let hint = "its table ends with OpenShift 4.17, which it uses for any later version: request `/test skip check_api_version_constraints`";
    found.push(finding.hint(hint));
    Ok(())
}

fn conflict(conflicts: &[Release], least: Release, annotation: View<'_>) -> Finding {
    let versions: Vec<String> = conflicts.iter().map(Release::short).collect();
    let message = format!(
        "OCP version(s) {} conflict with minKubeVersion={least}",
        versions.join(",")
    );
    at(Finding::from_rule(&CONSTRAINTS, message), annotation)
}

fn first_with(table: &Table, least: Release) -> Option<Release> {
    table
        .iter()
        .find(|(_, kubernetes)| *kubernetes >= least)
        .map(|(openshift, _)| *openshift)
}

fn conflicts(versions: &[Release], table: &Table, least: Release) -> Vec<Release> {
    table
        .iter()
        .filter(|(openshift, kubernetes)| versions.contains(openshift) && *kubernetes < least)
        .map(|(openshift, _)| *openshift)
        .collect()
}

struct Selected {
    versions: Vec<Release>,
    /// A comma in other versions than v4.5,v4.6.
    is_unusual_list: bool,
}

/// The known versions that an annotation selects. The error is the pipeline's.
fn select(selector: &str, table: &Table) -> Result<Selected, String> {
    let parse = |text: &str| Release::parse_openshift(text).map(same_release);
    let known = table.iter().map(|(openshift, _)| *openshift);
    let mut is_unusual_list = false;
    let versions = if let Some((from, to)) = selector.split_once('-') {
        let (from, to) = (parse(from)?, parse(to)?);
        known.filter(|version| from <= *version && *version <= to).collect()
    } else if selector.contains(',') {
        let listed = selector.split(',').map(parse);
        let listed: BTreeSet<Release> = listed.collect::<Result<_, _>>()?;
        is_unusual_list = !listed.iter().copied().eq([Release::new(4, 5), Release::new(4, 6)]);
        let from = listed.first().copied().unwrap_or(Release::new(0, 0));
        known.filter(|version| from <= *version).collect()
    } else if let Some(only) = selector.strip_prefix('=') {
        let only = parse(only)?;
        let closest = known
            .clone()
            .rfind(|version| *version <= only)
            .or_else(|| known.clone().next());
        closest.into_iter().collect()
    } else {
        let from = parse(selector)?;
        known.filter(|version| from <= *version).collect()
    };
    Ok(Selected {
        versions,
        is_unusual_list,
    })
}
