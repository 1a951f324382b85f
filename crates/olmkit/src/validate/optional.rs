//! The optional validators with the labels that select them.

use std::collections::BTreeMap;

use super::checked::Checked;
use super::context::Context;
use super::selector::Selector;
use super::{community, good_practices, hub, multiarch, removed_apis, standard};

/// One optional validator.
#[derive(Debug, Clone, Copy)]
pub struct Validator {
    /// Its name, which is also its label `name`.
    pub name: &'static str,
    /// Its label `suite`.
    pub suite: Option<&'static str>,
    /// Description of the checks.
    pub description: &'static str,
    run: fn(&Context<'_>) -> Vec<Checked>,
}

const SUITE: Option<&str> = Some("operatorframework");

/// Optional values from the user for the optional validators.
pub const VALUES: [&str; 3] = ["k8s-version", "container-tools", "index-path"];

/// All optional validators in the order in which they run.
pub const VALIDATORS: [Validator; 8] = [
    Validator {
        name: "operatorhubv2",
        suite: SUITE,
        description: "OperatorHub.io metadata validation.",
        run: hub::check,
    },
    Validator {
        name: "capabilities",
        suite: SUITE,
        description: "OperatorHub.io capabilities metadata validation.",
        run: standard::capabilities,
    },
    Validator {
        name: "categories",
        suite: SUITE,
        description: "OperatorHub.io categories metadata validation.",
        run: standard::categories,
    },
    Validator {
        name: "operatorhub",
        suite: None,
        description: "Deprecated OperatorHub.io metadata validation.",
        run: hub::check_deprecated,
    },
    Validator {
        name: "community",
        suite: None,
        description: "(stage: alpha, deprecated) Community operators: OpenShift versions of bundles with removed APIs.",
        run: community::check,
    },
    Validator {
        name: "alpha-deprecated-apis",
        suite: SUITE,
        description: "(stage: alpha) APIs that Kubernetes 1.22, 1.25 and 1.26 removed. Optional value: k8s-version.",
        run: removed_apis::check,
    },
    Validator {
        name: "good-practices",
        suite: SUITE,
        description: "Resource requests, descriptions, names and permissions as recommended for operators.",
        run: good_practices::check,
    },
    Validator {
        name: "multiarch",
        suite: None,
        description: "(alpha) Architectures of the images against labels and node affinity. Optional value: container-tools.",
        run: multiarch::check,
    },
];

impl Validator {
    /// The labels.
    pub fn labels(&self) -> BTreeMap<&'static str, &'static str> {
        let mut labels = BTreeMap::from([("name", self.name)]);
        if let Some(suite) = self.suite {
            labels.insert("suite", suite);
        }
        labels
    }

    /// Runs the validator.
    pub fn run(&self, context: &Context<'_>) -> Vec<Checked> {
        (self.run)(context)
    }
}

/// The validators that a selector selects. An empty selector selects none.
pub fn selected(selector: &Selector) -> Vec<&'static Validator> {
    if selector.is_empty() {
        return Vec::new();
    }
    VALIDATORS
        .iter()
        .filter(|validator| selector.matches(&validator.labels()))
        .collect()
}
