//! The bundles that a bundle replaces.

use std::collections::{BTreeMap, BTreeSet};

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{BundleContext, Check, Findings, Run, Suite, at, rule};
use crate::bundle::{Bundle, OPENSHIFT};
use crate::python::text::{list, shown};
use crate::python::{EMPTY, Raise};
use crate::versions::Release;

pub(super) static CHECKS: &[Check] = &[Check::new(Suite::Common, &REPLACES, Run::Bundle(replaces)).without_catalogs()];

static REPLACES: Rule = rule(
    "pipeline/check_replaces_availability",
    Severity::Error,
    "common",
    "The bundle in spec.replaces must exist and support every OpenShift that the new one supports",
)
.because(
    "Otherwise the new bundle cannot be added to every OpenShift index.",
    "0.1.0",
)
.example(
    "spec:\n  version: 0.0.3\n  replaces: hello-operator.v0.0.1   # operators/hello-operator/0.0.1 does not exist",
    "spec:\n  version: 0.0.3\n  replaces: hello-operator.v0.0.2",
);

fn replaces(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let bundle = context.bundle;
    let replaces = context.csv()?.get_or("spec", &EMPTY)?.get("replaces")?;
    if !replaces.is_true() {
        return Ok(());
    }
    let name = replaces.text()?;
    let delimiter = if name.contains(".v") { ".v" } else { "." };
    let Some((_, version)) = name.split_once(delimiter) else {
        return Err(replaces.raise(format!(
            "spec.replaces {name:?} has no dot between operator and version"
        )));
    };
    if version == bundle.name()?.version {
        let message = format!(
            "{bundle} attempts to replace itself. Please set 'spec.replaces' field to a different version in the CSV."
        );
        found.push(at(Finding::from_rule(&REPLACES, message), replaces));
        return Ok(());
    }
    let mut folders: BTreeMap<&str, &Bundle> = BTreeMap::new();
    for other in &context.operator.bundles {
        folders.insert(&other.name()?.version, other);
    }
    let Some(replaced) = folders.get(version) else {
        let message = format!(
            "{bundle} attempts to replace version '{version}' which does not exist in the submitted PR branch. Available \
             versions: {}. If you are submitting multiple versions in sequence, make sure your fork is up to date with origin \
             (rebased) before each submission to include all previously merged versions.",
            list(folders.keys())
        );
        found.push(at(Finding::from_rule(&REPLACES, message), replaces));
        return Ok(());
    };
    let own = bundle.annotations()?.get(OPENSHIFT)?;
    let others = replaced.annotations()?.get(OPENSHIFT)?;
    if own.node.equals(others.node) {
        return Ok(());
    }
    context.repository.config()?.view().get("organization")?;
    let supported = |annotation: crate::python::View<'_>| -> Result<BTreeSet<Release>, Raise> {
        let text = shown(annotation.node);
        let selected = context
            .options
            .platforms
            .selected(annotation.is_true().then_some(text.as_str()));
        let selected =
            selected.ok_or_else(|| annotation.raise(format!("{OPENSHIFT} {text:?} is not a range of versions")))?;
        Ok(selected.into_iter().collect())
    };
    let (new, old) = (supported(own)?, supported(others)?);
    if new.is_subset(&old) {
        return Ok(());
    }
    let message = format!(
        "Replaces bundle {replaced} {} does not support the same OCP versions as bundle {bundle} {}. In order to fix this issue, \
         align the OCP version range to match the range of the replaced bundle. This can be done by setting the \
         `com.redhat.openshift.versions` annotation in the `metadata/annotations.yaml` file.\n`{bundle}` - `{}`\n`{replaced}` - \
         `{}`",
        versions(&old),
        versions(&new),
        shown(own.node),
        shown(others.node)
    );
    found.push(at(Finding::from_rule(&REPLACES, message), own));
    Ok(())
}

/// The versions as the pipeline prints them: sorted as strings.
fn versions(versions: &BTreeSet<Release>) -> String {
    let texts: BTreeSet<String> = versions.iter().map(Release::short).collect();
    list(texts)
}
