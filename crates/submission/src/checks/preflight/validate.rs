//! The validators of operator-framework that preflight runs.

use std::collections::BTreeMap;

use olmkit::diagnostics::{Rule, Severity};
use olmkit::object::Version;
use olmkit::validate::{Options, Selector, validate};

use super::rule;
use crate::bundle::OPENSHIFT;
use crate::checks::operator_sdk::carried;
use crate::checks::{BundleContext, Findings};
use crate::python::Raise;
use crate::python::text::shown;

pub(super) static BUNDLE: Rule = rule(
    "preflight/ValidateOperatorBundle",
    Severity::Error,
    "operator-framework's validators must report no error",
)
.because(
    "OLM would reject or misrepresent the bundle. `olmkit bundle validate` explains each finding.",
    "0.1.0",
);

/// The optional validators that preflight adds to the usual ones.
const SELECTION: &str = "name in (operatorhubv2, capabilities, categories, alpha-deprecated-apis)";
/// The meaning of a bare OpenShift version for preflight 1.21.0.
const LATEST: (u64, u64) = (4, 22);

pub(super) fn bundle(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let annotation = context.bundle.annotations()?.get(OPENSHIFT)?;
    let mut values = BTreeMap::new();
    if annotation.is_true() {
        let text = shown(annotation.node);
        let target = target(&text).map_err(|problem| annotation.raise(problem))?;
        // preflight checks one release ahead: APIs that the Kubernetes of the next OpenShift removes count already.
        if let (4, minor @ 9..=23) = target {
            values.insert("k8s-version".to_owned(), format!("1.{}", minor + 13));
        }
    }
    let reading = context.reading()?;
    if let Some(reason) = &reading.fatal {
        let problem = format!("the bundle cannot be loaded: {reason}");
        return Err(Raise::other(problem).in_file(&context.bundle.root()));
    }
    let options = Options {
        selector: Selector::parse(SELECTION).unwrap_or_default(),
        values,
        ..Options::default()
    };
    let root = context.bundle.root();
    for checked in &validate(reading, &options).checked {
        // These validators ignore the layout of the bundle and the kinds of its objects.
        let is_foreign = ["FMT-", "OBJ-"]
            .iter()
            .any(|family| checked.finding.rule.starts_with(family));
        if !is_foreign && let Some(finding) = carried(&BUNDLE, checked, &root) {
            found.push(finding);
        }
    }
    Ok(())
}

/// The OpenShift that a range of versions is validated for.
fn target(range: &str) -> Result<(u64, u64), String> {
    let parse = |text: &str| {
        let version = Version::parse_tolerant(text);
        version
            .map(|version| (version.major, version.minor))
            .map_err(|error| format!("{OPENSHIFT} {range:?} is not a range of versions: {error}"))
    };
    let clean = |text: &str| text.replace(['\'', '"', 'v'], "");
    if let Some(only) = range.strip_prefix('=') {
        return parse(&clean(only.split('=').next().unwrap_or_default()));
    }
    let range = clean(range);
    match range.split('-').nth(1) {
        None => Ok(parse(&range)?.max(LATEST)),
        Some("") => Err(format!(
            "{OPENSHIFT} {range:?} is a range without an end; write v4.14-v4.20, or v4.14 for all later versions"
        )),
        Some(end) => parse(end),
    }
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn ranges_choose_the_openshift_that_counts() {
        for (range, wanted) in [
            ("=v4.14", Some((4, 14))),
            ("v4.12", Some((4, 22))),
            ("\"v4.30\"", Some((4, 30))),
            ("v4.8-v4.13", Some((4, 13))),
            // preflight 1.21.0 does not know that these are one release, and has no Kubernetes version for 5.0.
            ("=v4.23", Some((4, 23))),
            ("v5.0", Some((5, 0))),
            ("v4.14-v5.0", Some((5, 0))),
            ("v4.8-", None),
            ("latest", None),
            ("v4.5,v4.6", None),
        ] {
            assert_eq!(target(range).ok(), wanted, "{range}");
        }
    }
}
