//! Checks if the operator uses file-based catalogs.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{BundleContext, Check, Findings, Run, Suite, rule};
use crate::python::Raise;

pub(super) static CHECKS: &[Check] =
    &[Check::new(Suite::Community, &USING_FBC, Run::Bundle(using_fbc)).without_catalogs()];

static USING_FBC: Rule = rule(
    "pipeline/check_using_fbc",
    Severity::Warning,
    "community",
    "The operator should be published through file-based catalogs",
)
.because(
    "New operators will have to use them. Existing bundles can be moved between channels later.",
    "0.1.0",
)
.example(
    "updateGraph: replaces-mode",
    "fbc:\n  enabled: true\n  catalog_mapping: […]",
);

const FBC: &str = "[File Based Catalog (FBC)]\
                   (https://github.com/redhat-openshift-ecosystem/community-operators-prod/discussions/5031#discussion-7097441) is a \
                   new way to manage operator metadata. This operator does not use FBC";

fn using_fbc(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let message = if context.has_others() {
        format!(
            "{FBC}. Consider [migrating](https://redhat-openshift-ecosystem.github.io/operator-pipelines/users/fbc_onboarding/) \
             for better maintainability."
        )
    } else {
        format!(
            "{FBC} and it is recommended for new operators to [start directly with \
             FBC](https://redhat-openshift-ecosystem.github.io/operator-pipelines/users/fbc_workflow/)."
        )
    };
    let file = format!("operators/{}/ci.yaml", context.operator.name);
    found.push(Finding::from_rule(&USING_FBC, message).file(file));
    Ok(())
}
