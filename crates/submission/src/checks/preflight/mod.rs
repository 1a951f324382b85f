//! preflight's operator policy, except for the deployment on a cluster and the certification of images.
//!
//! The rules are those of preflight 1.21.0, the wording is ours. Rules that preflight does not enforce are warnings.

mod features;
mod images;
mod validate;

use olmkit::diagnostics::{Finding, Origin, Rule, Severity};

use super::{BundleContext, Check, Findings, Run, Suite, at};
use crate::images::list;
use crate::python::{Node, Raise};

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::Preflight, &validate::BUNDLE, Run::Bundle(validate::bundle)),
    Check::new(Suite::Preflight, &images::CERTIFIED, Run::Bundle(images::certified)),
    Check::new(Suite::Preflight, &CONSTRAINTS, Run::Bundle(constraints)),
    Check::new(Suite::Preflight, &images::RELATED, Run::Bundle(images::related)),
    Check::new(
        Suite::Preflight,
        &features::RESTRICTED,
        Run::Bundle(features::restricted),
    ),
    Check::new(Suite::Preflight, &features::REQUIRED, Run::Bundle(features::required)),
];

/// A rule. An error counts, a warning is not enforced.
pub(crate) const fn rule(id: &'static str, severity: Severity, summary: &'static str) -> Rule {
    Rule::of_tool(id, severity, Origin::Pipeline("preflight"), summary)
}

static CONSTRAINTS: Rule = rule(
    "preflight/SecurityContextConstraintsInCSV",
    Severity::Warning,
    "The cluster permissions should name at most one security context constraint",
)
.because(
    "preflight stops at several. With one, an administrator may need to apply it. Not enforced.",
    "0.1.0",
)
.example(
    "- apiGroups: [security.openshift.io]\n  resources: [securitycontextconstraints]\n  resourceNames: [a, b]\n  verbs: [use]",
    "- apiGroups: [security.openshift.io]\n  resources: [securitycontextconstraints]\n  resourceNames: [a]\n  verbs: [use]",
);

fn constraints(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let names = |node: &Node, key: &str, wanted: &str| {
        let items = node.get(key).map(Node::items).unwrap_or_default();
        items.iter().any(|item| item.as_str() == Some(wanted))
    };
    for permission in list(context.csv()?, &["spec", "install", "spec"], "clusterPermissions")? {
        for rule in list(permission, &[], "rules")? {
            let is_about_them = names(rule.node, "apiGroups", "security.openshift.io")
                && names(rule.node, "resources", "securitycontextconstraints");
            if !is_about_them {
                continue;
            }
            let requested = list(rule, &[], "resourceNames")?;
            match requested.as_slice() {
                [] => {}
                [one] => {
                    let message = format!("the operator requests the constraint {}", one.text()?);
                    let finding = at(Finding::new(&CONSTRAINTS, Severity::Info, message), *one);
                    found.push(finding.hint("document whether an administrator must apply it"));
                }
                [_, second, ..] => {
                    let message = format!("the operator requests {} constraints, one is allowed", requested.len());
                    found.push(at(Finding::from_rule(&CONSTRAINTS, message), *second).hint("keep the one it needs"));
                }
            }
            // preflight checks only the first such rule.
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
