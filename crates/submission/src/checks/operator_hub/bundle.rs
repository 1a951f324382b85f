//! operatorhub.io's requirements for a bundle's manifests.

use olmkit::diagnostics::{Finding, Rule, Severity};
use olmkit::object::Version;
use olmkit::validate::{Options, Outcome, Selector, validate_selections};

use super::{MAX_KUBERNETES, rule};
use crate::checks::operator_sdk::{FRAMEWORK_SUITE, carried};
use crate::checks::{BundleContext, Check, Findings, Run, Suite, at};
use crate::graph::{self, channel_bundles, same};
use crate::python::text::shown;
use crate::python::{EMPTY, EMPTY_LIST, NONE, Node, Raise, View, read_document};

pub(crate) static CHECKS: &[Check] = &[
    Check::new(Suite::OperatorHub, &BELOW_HEAD, Run::Bundle(below_head)),
    Check::new(Suite::OperatorHub, &CATEGORIES, Run::Bundle(categories)),
    Check::new(Suite::OperatorHub, &DEPLOYMENTS, Run::Bundle(deployments)),
    Check::new(Suite::OperatorHub, &MAX_VERSION, Run::Bundle(max_version)),
    Check::new(Suite::OperatorHub, &SDK, Run::Bundle(sdk)),
    Check::new(Suite::OperatorHub, &UPDATE_GRAPH, Run::Bundle(update_graph)),
    Check::new(Suite::OperatorHub, &VERSION, Run::Bundle(version)),
];

static BELOW_HEAD: Rule = rule(
    "operatorhub/below-head",
    Severity::Warning,
    "In replaces-mode, another bundle in the channel should replace or skip each bundle except the newest one",
)
.because(
    "Otherwise OLM offers this bundle's users no upgrade, or the index has two channel heads.",
    "0.1.0",
)
.example(
    "# 1.11.3 replaces 1.10.1, this is 1.10.2\nspec:\n  version: 1.10.2\n  replaces: hello.v1.10.1",
    "# 1.11.3 has the annotation olm.skipRange: '<1.11.3'\nspec:\n  version: 1.10.2\n  replaces: hello.v1.10.1",
);

static CATEGORIES: Rule = rule(
    "operatorhub/categories",
    Severity::Error,
    "The annotation categories must be present and not empty",
)
.because("operatorhub.io lists operators by category.", "0.1.0")
.example(
    "metadata:\n  annotations: {}",
    "metadata:\n  annotations:\n    categories: Database",
);

static DEPLOYMENTS: Rule = rule(
    "operatorhub/deployments",
    Severity::Error,
    "The install strategy must have a deployment",
)
.because("The pipeline deploys the operator and watches its pod.", "0.1.0")
.example(
    "spec:\n  install:\n    strategy: deployment\n    spec:\n      deployments: []",
    "spec:\n  install:\n    strategy: deployment\n    spec:\n      deployments:\n      - name: hello-operator",
);

static MAX_VERSION: Rule = rule(
    "operatorhub/max-k8s-version",
    Severity::Error,
    "The annotation operatorhub.io/ui-metadata-max-k8s-version must be a version, and below 1.22 for a bundle with APIs that 1.22 removed",
)
.because(
    "The pipeline selects its test cluster by this version. operatorhub.io shows it as the last version on which the bundle can be installed.",
    "0.1.0",
)
.example(
    "# the bundle has a CustomResourceDefinition of apiextensions.k8s.io/v1beta1\nmetadata:\n  annotations: {}",
    "metadata:\n  annotations:\n    operatorhub.io/ui-metadata-max-k8s-version: \"1.21\"",
);

static SDK: Rule = rule(
    "operatorhub/sdk",
    Severity::Error,
    "operator-sdk bundle validate --select-optional suite=operatorframework must report no error",
)
.because(
    "The pipeline runs it, with the categories of categories.json. `olmkit bundle validate` explains each finding.",
    "0.1.0",
);

static UPDATE_GRAPH: Rule = rule(
    "operatorhub/update-graph",
    Severity::Error,
    "A bundle in semver-mode must not have spec.replaces or spec.skips",
)
.because(
    "Without updateGraph in ci.yaml semver-mode applies. Only the versions determine the upgrade graph.",
    "0.1.0",
)
.example(
    "# no ci.yaml\nspec:\n  replaces: hello.v0.0.1",
    "# ci.yaml: updateGraph: replaces-mode\nspec:\n  replaces: hello.v0.0.1",
);

static VERSION: Rule = rule(
    "operatorhub/version",
    Severity::Error,
    "A bundle's directory must be named after its spec.version",
)
.because("The pipeline finds a bundle by its directory name.", "0.1.0")
.example(
    "# operators/hello/v0.0.3/manifests/hello.clusterserviceversion.yaml\nspec:\n  version: 0.0.3",
    "# operators/hello/0.0.3/manifests/hello.clusterserviceversion.yaml\nspec:\n  version: 0.0.3",
);

/// The APIs of this version and later ones have no v1beta1 of CustomResourceDefinitions and webhooks.
const REMOVED_IN: (u64, u64) = (1, 22);
/// The selection that finds them.
const REMOVED_APIS: &str = "name=alpha-deprecated-apis";
/// The oldest cluster that the pipeline tests on.
const OLDEST_CLUSTER: (u64, u64) = (1, 25);

/// An annotation of the ClusterServiceVersion.
pub(super) fn annotation<'a>(context: &BundleContext<'a>, name: &str) -> Result<View<'a>, Raise> {
    let metadata = context.csv()?.get_or("metadata", &EMPTY)?;
    let annotations = metadata.get_or("annotations", &EMPTY)?;
    if annotations.is_true() {
        return annotations.get(name);
    }
    Ok(View {
        node: &NONE,
        ..metadata
    })
}

fn categories(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let categories = annotation(context, "categories")?;
    if shown(categories.node).trim().is_empty() || categories.is_none() {
        let message = "metadata.annotations.categories is missing or empty";
        let hint = "use a category of https://operatorhub.io, such as Database";
        found.push(at(Finding::from_rule(&CATEGORIES, message), categories).hint(hint));
    }
    Ok(())
}

fn deployments(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let install = context.csv()?.get_or("spec", &EMPTY)?.get_or("install", &EMPTY)?;
    let deployments = install.get_or("spec", &EMPTY)?.get_or("deployments", &EMPTY_LIST)?;
    if !deployments.is_true() {
        let message = "spec.install.spec.deployments is empty";
        found.push(at(Finding::from_rule(&DEPLOYMENTS, message), deployments).hint("add the operator's deployment"));
    }
    Ok(())
}

/// Major and minor of a version, as lenient as the pipeline: `v1.21`, `1.21.3`.
fn kubernetes(text: &str) -> Option<(u64, u64)> {
    let version = Version::parse_tolerant(text).ok()?;
    Some((version.major, version.minor))
}

/// operator-sdk's result with one selection of its optional validators. Both selections are computed together, because
/// most rules apply to both.
fn verdict<'a>(context: &'a BundleContext<'_>, selection: &str) -> Result<&'a Outcome, Raise> {
    let validate = || {
        let selections = [REMOVED_APIS, FRAMEWORK_SUITE];
        let selectors = selections.map(|selection| Selector::parse(selection).unwrap_or_default());
        let outcomes = validate_selections(context.reading()?, &Options::default(), &selectors);
        Ok(selections.into_iter().zip(outcomes).collect())
    };
    let verdicts = context.operator_sdk.get_or_init(validate);
    let verdicts = verdicts.as_ref().map_err(Clone::clone)?;
    let found = verdicts.iter().find(|(name, _)| *name == selection);
    let (_, outcome) = found.ok_or_else(|| Raise::other(format!("no verdict for {selection}")))?;
    Ok(outcome)
}

fn max_version(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let most = annotation(context, MAX_KUBERNETES)?;
    let text = if most.is_none() {
        String::new()
    } else {
        shown(most.node)
    };
    let version = kubernetes(&text);
    if !text.is_empty() && version.is_none() {
        let message = format!("{MAX_KUBERNETES} is not a version: {text:?}");
        found.push(at(Finding::from_rule(&MAX_VERSION, message), most).hint("write it as \"1.30\""));
        return Ok(());
    }
    let outcome = verdict(context, REMOVED_APIS)?;
    let removed = outcome.findings().find(|finding| finding.rule == "API-22");
    if let Some(removed) = removed
        && version.is_none_or(|version| version >= REMOVED_IN)
    {
        let message = if text.is_empty() {
            format!("{MAX_KUBERNETES} is missing, but Kubernetes 1.22 removed APIs that the bundle has")
        } else {
            format!("{MAX_KUBERNETES} is {text}, but Kubernetes 1.22 removed APIs that the bundle has")
        };
        let hint = format!("migrate the bundle to the newer API versions ({})", removed.message);
        found.push(at(Finding::from_rule(&MAX_VERSION, message), most).hint(hint));
    } else if let Some(version) = version.filter(|version| *version < OLDEST_CLUSTER) {
        let message = format!(
            "{MAX_KUBERNETES} is {}.{}, the oldest cluster of the tests is {}.{}",
            version.0, version.1, OLDEST_CLUSTER.0, OLDEST_CLUSTER.1
        );
        found.push(at(Finding::from_rule(&MAX_VERSION, message), most).hint("support a later version of Kubernetes"));
    }
    Ok(())
}

fn sdk(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let own = own_categories(context)?;
    let root = context.bundle.root();
    let outcome = verdict(context, FRAMEWORK_SUITE)?;
    if let Some(reason) = &outcome.fatal {
        let message = "operator-sdk stops without a result";
        found.push(Finding::from_rule(&SDK, message).file(&root).hint(reason.as_str()));
    }
    for checked in &outcome.checked {
        // The pipeline's own list replaces the usual one.
        let is_replaced = own.is_some() && checked.finding.rule == "CAT-1";
        if let Some(finding) = carried(&SDK, checked, &root).filter(|_| !is_replaced) {
            found.push(finding);
        }
    }
    let Some(own) = own else { return Ok(()) };
    let value = annotation(context, "categories")?;
    let Some(text) = value.node.as_str() else { return Ok(()) };
    for category in text.split(',').map(str::trim) {
        if !own.iter().any(|known| known == category) {
            let message = format!("the category {category:?} is not in categories.json");
            let hint = format!("use one of: {}", own.join(", "));
            found.push(at(Finding::from_rule(&SDK, message), value).hint(hint));
        }
    }
    Ok(())
}

/// The categories of `categories.json` at the root of the repository.
fn own_categories(context: &BundleContext<'_>) -> Result<Option<Vec<String>>, Raise> {
    const FILE: &str = "categories.json";
    if !context.bundle.files().is_file(FILE) {
        return Ok(None);
    }
    let document = read_document(context.bundle.files(), FILE)?;
    let list = document.root.get("categories").map(Node::items).unwrap_or_default();
    Ok(Some(list.iter().filter_map(Node::as_str).map(str::to_owned).collect()))
}

fn update_graph(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let mode = context.operator.config()?.view().get("updateGraph")?;
    if mode.is_true() && mode.node.as_str() != Some("semver-mode") {
        return Ok(());
    }
    let spec = context.csv()?.get_or("spec", &EMPTY)?;
    for key in ["replaces", "skips"] {
        if spec.node.get(key).is_none() {
            continue;
        }
        let whence = if mode.is_true() {
            "ci.yaml says"
        } else {
            "without updateGraph in ci.yaml it is"
        };
        let message = format!("spec.{key} is set in semver-mode ({whence} semver-mode)");
        let hint = format!("remove spec.{key}, or set `updateGraph: replaces-mode` in ci.yaml");
        found.push(at(Finding::from_rule(&UPDATE_GRAPH, message), spec.get(key)?).hint(hint));
    }
    Ok(())
}

fn below_head(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let mode = context.operator.config()?.view().get("updateGraph")?;
    if mode.node.as_str() != Some("replaces-mode") {
        // The versions form the graph, and no bundle is stranded.
        return Ok(());
    }
    let mut channels = context.bundle.channels()?.clone();
    channels.extend(context.bundle.default_channel()?);
    for channel in channels {
        // Other checks report bundles that have no readable name or version.
        let Ok(Some((left, newest))) = left_behind(context, &channel) else {
            continue;
        };
        let message = format!("no bundle of channel {channel} replaces or skips {left}, and {newest} is newer");
        let hint = format!(
            "release a newer bundle with spec.skips or olm.skipRange for {left}, or publish {left} in another channel"
        );
        let spec = context.csv()?.get_or("spec", &EMPTY)?;
        let place = spec.get("replaces").unwrap_or(spec);
        found.push(at(Finding::from_rule(&BELOW_HEAD, message), place).hint(hint));
    }
    Ok(())
}

/// The version that the bundle strands in a channel, which may be its own, and the newest version.
fn left_behind(context: &BundleContext<'_>, channel: &str) -> Result<Option<(String, String)>, Raise> {
    let bundles = channel_bundles(context.operator, channel)?;
    let graph = graph::update_graph(context.operator, channel)?;
    let mut newest_first = bundles.iter().rev();
    let Some(newest) = newest_first.next() else {
        return Ok(None);
    };
    let candidate = if same(context.bundle, newest)? {
        // The release of a new head can strand the previous one.
        newest_first.next().filter(|_| context.options.pull_request)
    } else {
        bundles.iter().find(|one| one.version == context.bundle.version)
    };
    let left = candidate.filter(|one| !graph.contains_key(one.version.as_str()));
    Ok(left.map(|left| (left.version.clone(), newest.version.clone())))
}

fn version(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let bundle = context.bundle;
    let version = context.csv()?.get_or("spec", &EMPTY)?.get("version")?;
    if version.node.as_str() != Some(bundle.version.as_str()) {
        let message = format!(
            "spec.version is {}, the directory name is {}",
            shown(version.node),
            bundle.version
        );
        let hint = "rename the directory, or set spec.version as a string";
        found.push(at(Finding::from_rule(&VERSION, message), version).hint(hint));
    }
    Ok(())
}
