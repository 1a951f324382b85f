//! The update graph of an operator's channels.

use std::collections::BTreeSet;

use olmkit::diagnostics::{Finding, Rule, Severity};
use olmkit::object::VersionRange;

use super::{BundleContext, Check, Context, Findings, Run, Suite, at, rule};
use crate::graph::{back_edge, channel_bundles, same, set, set_of_texts, update_graph};
use crate::python::text::list;
use crate::python::{EMPTY, Raise, RaiseKind};
use crate::repository::Operator;
use crate::versions::NpmRange;

pub(super) static OPERATOR_CHECKS: &[Check] = &[
    Check::new(Suite::Community, &MODE, Run::Operator(mode)).without_catalogs(),
    Check::new(Suite::Community, &UNIQUE, Run::Operator(unique)).without_catalogs(),
    Check::new(Suite::Community, &LOOP, Run::Operator(no_loop)).without_catalogs(),
];

pub(super) static BUNDLE_CHECKS: &[Check] =
    &[Check::new(Suite::Community, &DANGLING, Run::Bundle(dangling)).without_catalogs()];

static MODE: Rule = rule(
    "pipeline/check_ci_upgrade_graph",
    Severity::Error,
    "community",
    "ci.yaml must set the upgrade graph mode",
)
.because(
    "Without updateGraph the pipeline uses replaces-mode. An unknown value stops it.",
    "0.1.0",
)
.example("updateGraph: legacy", "updateGraph: replaces-mode");

static UNIQUE: Rule = rule(
    "pipeline/check_operator_name_unique",
    Severity::Error,
    "community",
    "All bundles' ClusterServiceVersions must name the same operator",
)
.because("Bundles with two names have no common upgrade graph.", "0.1.0")
.example(
    "metadata:\n  name: hello.v0.0.3   # 0.0.2 is hello-operator.v0.0.2",
    "metadata:\n  name: hello-operator.v0.0.3",
);

static LOOP: Rule = rule(
    "pipeline/check_upgrade_graph_loop",
    Severity::Error,
    "community",
    "A bundle must not replace itself, directly or through others",
)
.because("With a loop, the channel has no head.", "0.1.0")
.example(
    "metadata:\n  name: hello-operator.v0.0.3\n  annotations:\n    olm.skipRange: '>=0.0.1 <=0.0.3'",
    "metadata:\n  name: hello-operator.v0.0.3\n  annotations:\n    olm.skipRange: '>=0.0.1 <0.0.3'",
);

static DANGLING: Rule = rule(
    "pipeline/check_dangling_bundles",
    Severity::Error,
    "community",
    "In each channel that contains the bundle, another bundle must replace or skip every bundle except the head",
)
.because("OLM never offers an upgrade from a dangling bundle.", "0.1.0")
.example(
    "spec:\n  version: 0.0.3\n  replaces: hello-operator.v0.0.1   # 0.0.2 is left behind",
    "spec:\n  version: 0.0.3\n  replaces: hello-operator.v0.0.2",
);

fn mode(_: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let config = operator.config()?.view();
    let mode = config.get("updateGraph")?;
    if !mode.is_true() {
        let message =
            "The 'updateGraph' option is missing in ci.yaml. The default upgrade graph 'replaces-mode' will be used.";
        let file = format!("operators/{}/ci.yaml", operator.name);
        let hint = "add `updateGraph: replaces-mode` or `updateGraph: semver-mode`";
        found.push(Finding::new(&MODE, Severity::Warning, message).file(file).hint(hint));
        return Ok(());
    }
    let allowed = ["replaces-mode", "semver-mode"];
    if !mode.node.as_str().is_some_and(|mode| allowed.contains(&mode)) {
        let message = format!("The 'updateGraph' option in ci.yaml must be one of {}", list(allowed));
        found.push(at(Finding::from_rule(&MODE, message), mode));
    }
    Ok(())
}

fn unique(_: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let mut names = BTreeSet::new();
    for bundle in &operator.bundles {
        names.insert(bundle.name()?.operator.clone());
    }
    if names.len() > 1 {
        let message = format!("Bundles use multiple operator names: {}", set_of_texts(&names));
        let file = format!("operators/{}", operator.name);
        found.push(Finding::from_rule(&UNIQUE, message).file(file));
    }
    Ok(())
}

fn no_loop(context: &Context<'_>, operator: &Operator, found: &mut Findings) -> Result<(), Raise> {
    let mut channels = BTreeSet::new();
    for bundle in &operator.bundles {
        channels.extend(bundle.channels()?.iter().cloned());
        channels.extend(bundle.default_channel()?);
    }
    for channel in channels {
        let graph = match update_graph(operator, &channel) {
            Err(raise) if is_caught(&raise) => {
                found.push(caught(&LOOP, raise, &operator.name));
                return Ok(());
            }
            result => result?,
        };
        let bundles = channel_bundles(operator, &channel)?;
        if let Some((from, to)) = back_edge(&graph, &bundles) {
            let message = format!("Upgrade graph loop detected: {from} -> {to}");
            let mut finding = Finding::from_rule(&LOOP, message).file(to.csv_file()?);
            if let Ok(document) = &to.facts().replaces {
                finding = finding.at(document.root.start);
            }
            let hint = format!(
                "channel {channel}: remove {} from spec.replaces, spec.skips and olm.skipRange of {}",
                from.version, to.version
            );
            found.push(finding.hint(hint));
        }
    }
    if !context.options.strict_compat {
        unread_ranges(operator, found);
    }
    Ok(())
}

/// OLM supports ranges that the pipeline's graph silently omits, so that bundles seem to be dangling.
fn unread_ranges(operator: &Operator, found: &mut Findings) {
    for bundle in &operator.bundles {
        let Ok(document) = &bundle.facts().skip_range else {
            continue;
        };
        let Some(range) = document.root.as_str().filter(|range| !range.is_empty()) else {
            continue;
        };
        if NpmRange::parse(range).is_err() && VersionRange::parse(range).is_ok() {
            let message = format!(
                "differs from the hosted pipeline: it cannot parse olm.skipRange {range:?}, which OLM can, and omits it from the upgrade graph"
            );
            let hint = "write each bound as one word, separated by spaces: >=1.0.0 <2.0.0";
            found.push(at(Finding::new(&LOOP, Severity::Warning, message), document.view()).hint(hint));
        }
    }
}

fn is_caught(raise: &Raise) -> bool {
    matches!(raise.kind, RaiseKind::Value | RaiseKind::NotImplemented)
}

/// The finding that replaces a graph in the pipeline.
fn caught(rule: &'static Rule, raise: Raise, operator: &str) -> Finding {
    let finding =
        Finding::from_rule(rule, raise.text).file(raise.file.unwrap_or_else(|| format!("operators/{operator}")));
    match raise.position {
        Some(position) => finding.at(position),
        None => finding,
    }
}

fn dangling(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let mut channels = context.bundle.channels()?.clone();
    channels.extend(context.bundle.default_channel()?);
    for channel in channels {
        let bundles = channel_bundles(context.operator, &channel)?;
        let graph = match update_graph(context.operator, &channel) {
            Err(raise) if is_caught(&raise) => {
                found.push(caught(&DANGLING, raise, &context.operator.name));
                return Ok(());
            }
            result => result?,
        };
        let mut left = Vec::new();
        for bundle in &bundles {
            let is_head = match bundles.last() {
                Some(head) => same(bundle, head)?,
                None => false,
            };
            if !graph.contains_key(bundle.version.as_str()) && !is_head {
                left.push(*bundle);
            }
        }
        if left.is_empty() {
            continue;
        }
        let message = format!("Channel {channel} has dangling bundles: {}", set(&left));
        let spec = context.csv()?.get_or("spec", &EMPTY)?;
        let replaces = spec.get("replaces").unwrap_or(spec);
        let versions: Vec<&str> = left.iter().map(|bundle| bundle.version.as_str()).collect();
        let hint = format!(
            "replace or skip {} in a newer bundle of the channel",
            versions.join(", ")
        );
        found.push(at(Finding::from_rule(&DANGLING, message), replaces).hint(hint));
    }
    Ok(())
}
