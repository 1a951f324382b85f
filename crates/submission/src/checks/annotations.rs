//! The check of certified operators on `olm.skipRange`.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{BundleContext, Check, Findings, Run, Suite, at, rule};
use crate::graph::channel_bundles;
use crate::python::{EMPTY, Raise};

pub(super) static CHECKS: &[Check] = &[Check::new(Suite::Isv, &PRUNED, Run::Bundle(pruned)).without_catalogs()];

static PRUNED: Rule = rule(
    "pipeline/check_pruned_graph",
    Severity::Warning,
    "isv",
    "A bundle with olm.skipRange should also have spec.replaces",
)
.because(
    "Without spec.replaces the index forgets the bundles before this one.",
    "0.1.0",
)
.example(
    "metadata:\n  annotations:\n    olm.skipRange: '>=0.0.1 <0.0.3'\nspec:\n  version: 0.0.3",
    "metadata:\n  annotations:\n    olm.skipRange: '>=0.0.1 <0.0.3'\nspec:\n  version: 0.0.3\n  replaces: hello-operator.v0.0.2",
);

fn pruned(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let csv = context.csv()?;
    let replaces = csv.get_or("spec", &EMPTY)?.get("replaces")?;
    let range = csv
        .get_or("metadata", &EMPTY)?
        .get_or("annotations", &EMPTY)?
        .get("olm.skipRange")?;
    if !range.is_true() || replaces.is_true() {
        return Ok(());
    }
    for channel in context.bundle.channels()? {
        if channel_bundles(context.operator, channel)?.len() == 1 {
            continue;
        }
        let message = "olm.skipRange annotation is set but replaces field is not set in the CSV. The definition may lead to \
                       unintentional pruning of the update graph. https://olm.operatorframework.io/docs/concepts/\
                       olm-architecture/operator-catalog/creating-an-update-graph/#skiprange. If this is intentional, you can \
                       skip the check by adding `/test skip check_pruned_graph` comment to a pull request.";
        found.push(
            at(Finding::from_rule(&PRUNED, message), range).hint(format!("channel {channel}: set spec.replaces")),
        );
    }
    Ok(())
}
