//! The annotations that the marketplace requires.

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{BundleContext, Check, Findings, Run, Suite, at, rule};
use crate::bundle::PACKAGE;
use crate::python::text::shown;
use crate::python::{EMPTY, Raise};

pub(super) static CHECKS: &[Check] = &[Check::new(Suite::Isv, &MARKETPLACE, Run::Bundle(marketplace))];

static MARKETPLACE: Rule = rule(
    "pipeline/check_marketplace_annotation",
    Severity::Error,
    "isv",
    "A marketplace bundle must link to its pages there",
)
.because(
    "The console opens these pages to buy the operator and to get support.",
    "0.1.0",
)
.example(
    "metadata:\n  annotations:\n    marketplace.openshift.io/remote-workflow: https://example.com",
    "metadata:\n  annotations:\n    marketplace.openshift.io/remote-workflow: \
     https://marketplace.redhat.com/en-us/operators/hello-operator/pricing?utm_source=openshift_console",
);

fn marketplace(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let organization = context.repository.config()?.view().get("organization")?;
    if organization.node.as_str() != Some("redhat-marketplace") {
        return Ok(());
    }
    let package = shown(context.bundle.annotations()?.get(PACKAGE)?.node);
    let annotations = context
        .csv()?
        .get_or("metadata", &EMPTY)?
        .get_or("annotations", &EMPTY)?;
    let pages = [("remote-workflow", "pricing"), ("support-workflow", "support")].map(|(name, page)| {
        let key = format!("marketplace.openshift.io/{name}");
        let url =
            format!("https://marketplace.redhat.com/en-us/operators/{package}/{page}?utm_source=openshift_console");
        (key, url)
    });
    for (key, wanted) in pages {
        let url = annotations.get(&key)?;
        if url.node.as_str() == Some(wanted.as_str()) {
            continue;
        }
        let message = format!(
            "CSV {key} annotation is set to '{}'. Expected value is {wanted}. To fix this issue define the annotation in \
             'manifests/*.clusterserviceversion.yaml' file.",
            shown(url.node)
        );
        found.push(at(Finding::from_rule(&MARKETPLACE, message), url));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use olmkit::diagnostics::Severity;

    use crate::Suite;
    use crate::checks::fixture::{CSV, checks, found};

    #[test]
    fn both_pages_are_asked_for_in_the_marketplace_only() {
        let page = |name: &str, page: &str| {
            format!(
                "    marketplace.openshift.io/{name}: \
                 https://marketplace.redhat.com/en-us/operators/hello/{page}?utm_source=openshift_console\n"
            )
        };
        let (remote, support) = (page("remote-workflow", "pricing"), page("support-workflow", "support"));
        let organization = |name: &str| format!("organization: {name}\n");
        for (name, pages, wanted) in [
            ("redhat-marketplace", format!("{remote}{support}"), 0),
            ("redhat-marketplace", remote.clone(), 1),
            (
                "redhat-marketplace",
                format!("{remote}{}", page("support-workflow", "pricing")),
                1,
            ),
            ("redhat-marketplace", String::new(), 2),
            ("certified-operators", String::new(), 0),
        ] {
            let annotations = format!("annotations:\n{pages}    alm-examples");
            let edits = [
                ("config.yaml", "", organization(name)),
                (CSV, "annotations:\n    alm-examples", annotations),
            ];
            let edits = edits.each_ref().map(|(path, from, to)| (*path, *from, to.as_str()));
            let mut all = found(Suite::Isv, &edits);
            all.retain(|one| one.check == "check_marketplace_annotation");
            assert_eq!(all.len(), wanted, "{pages}: {all:#?}");
            let errors = checks(&all, Severity::Error);
            assert_eq!(errors.len(), usize::from(wanted > 0));
        }
    }
}
