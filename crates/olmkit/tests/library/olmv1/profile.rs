//! `bundle validate --profile olmv1`: the result, and the rule of each error.

use std::collections::BTreeSet;
use std::sync::Arc;

use olmkit::bundle::load::{self, Tree};
use olmkit::diagnostics::Severity;
use olmkit::olmv1::Release;
use olmkit::validate::against::Earlier;
use olmkit::validate::{Against, Options, Outcome, validate};
use serde_json::Value;
use test_support::corpus;
use test_support::demo_bundle::{ANNOTATIONS, CRD, CSV};

use super::{count, lines, made_up, real};
use crate::rules::changes::{bundle, changed};

fn outcome(tree: Tree, release: &str) -> Outcome {
    let options = Options {
        olm_v1: Some(release.parse::<Release>().unwrap()),
        lints: true,
        ..Options::default()
    };
    validate(&load::read(tree, "demo"), &options)
}

/// The rules of a severity.
fn rules(outcome: &Outcome, severity: Severity) -> BTreeSet<&'static str> {
    let of_severity = outcome.findings().filter(|finding| finding.severity == severity);
    of_severity.map(|finding| finding.rule).collect()
}

/// Returns true if the released OLM v1 rejects a bundle.
fn is_refused(check: &Value) -> bool {
    ["load", "validators", "standard", "resolve"]
        .iter()
        .any(|key| check.get(key).is_some())
}

#[test]
fn the_verdict_is_that_of_olm_v1() {
    let Some(root) = corpus("olmv1") else { return };
    let (mut asked, mut wrong) = (0, Vec::new());
    let mut ask = |name: &Value, check: &Value, tree: Tree| {
        // Bundles that opm cannot render have no properties there, so the resolver did not run.
        if check.get("catalog").is_some() && !is_refused(check) {
            return;
        }
        asked += 1;
        let outcome = outcome(tree, "1.11");
        let found = rules(&outcome, Severity::Error);
        if found.is_empty() == is_refused(check) || outcome.passed() == is_refused(check) {
            wrong.push(format!("{name}: {found:?}: {check}"));
        }
        let without_place = |finding: &&olmkit::diagnostics::Finding| {
            finding.rule.starts_with("V1-") && (finding.file.is_none() || finding.hint.is_none())
        };
        wrong.extend(
            outcome
                .findings()
                .find(without_place)
                .map(|finding| format!("{name}: {finding:?}")),
        );
    };
    for line in lines(&root.join("refusals.jsonl")) {
        let Some(tree) = real(&root, &line, "bundle", "input") else {
            continue;
        };
        ask(&line["bundle"], &line, tree);
    }
    for line in lines(&root.join("synthetic.jsonl")) {
        ask(&line["name"], &line["check"], made_up(&line["files"]));
    }
    count("verdicts of --profile olmv1", asked, &wrong);
    assert!(asked >= 140, "{asked}");
}

#[test]
fn each_refusal_has_its_rule() {
    let Some(root) = corpus("olmv1") else { return };
    let expected = [
        ("object-scalar", "V1-4"),
        ("crd-missing", "V1-6"),
        ("webhook-trailing-hyphen", "V1-9"),
        ("webhook-conversion-twice", "V1-8"),
        ("webhook-conversion-preserve", "V1-12"),
        ("webhook-olm-group", "V1-10"),
        ("object-unsupported", "V1-11"),
        ("crd-required", "V1-2"),
        ("modes-multi", "V1-3"),
    ];
    let lines = lines(&root.join("synthetic.jsonl"));
    for (name, rule) in expected {
        let line = lines.iter().find(|line| line["name"] == name).unwrap();
        let outcome = outcome(made_up(&line["files"]), "1.11");
        assert_eq!(rules(&outcome, Severity::Error), BTreeSet::from([rule]), "{name}");
    }
    for (name, rule) in [
        ("plain", "V1-14"),
        ("webhook-no-port", "V1-15"),
        ("object-account", "V1-15"),
    ] {
        let line = lines.iter().find(|line| line["name"] == name).unwrap();
        let outcome = outcome(made_up(&line["files"]), "1.11");
        assert!(rules(&outcome, Severity::Warning).contains(rule), "{name}");
        assert!(rules(&outcome, Severity::Error).is_empty(), "{name}");
    }
}

#[test]
fn names_packages_and_permissions_have_their_rules() {
    let found = |tree: Tree, severity| rules(&outcome(tree, "1.11"), severity);
    assert_eq!(found(bundle(), Severity::Error), BTreeSet::new());
    let upper = changed(
        CSV,
        "deployments:\n      - name: demo",
        "deployments:\n      - name: Demo",
    );
    assert!(found(upper, Severity::Error).contains("V1-5"));
    let nameless = changed(ANNOTATIONS, "package.v1: demo", "package.v1: ''");
    assert_eq!(found(nameless, Severity::Error), BTreeSet::from(["V1-7"]));
    let of_olm = "rules:\n        - {apiGroups: [operators.coreos.com], resources: [subscriptions], verbs: [get]}\n";
    let works_with_olm = changed(CSV, "rules:\n", of_olm);
    assert!(found(works_with_olm, Severity::Warning).contains("V1-16"));
}

#[test]
fn an_upgrade_that_olm_v1_blocks_is_an_error() {
    let old = load::read(bundle(), "earlier");
    let earlier = Earlier::from_reading("earlier", old).unwrap();
    let options = Options {
        olm_v1: Some(Release::default()),
        lints: true,
        against: Some(Arc::new(Against::Bundle(earlier))),
        ..Options::default()
    };
    let errors = |tree: Tree| rules(&validate(&load::read(tree, "demo"), &options), Severity::Error);
    assert_eq!(errors(bundle()), BTreeSet::new());
    let cluster = changed(CRD, "scope: Namespaced", "scope: Cluster");
    assert_eq!(errors(cluster), BTreeSet::from(["V1-13"]));
}

#[test]
fn api_services_need_a_release_after_1_11() {
    let api = "  apiservicedefinitions:\n    owned:\n    - {group: demo.example.com, version: v2, kind: Gadget, name: gadgets, \
               deploymentName: demo, containerPort: 443}\n";
    let text = changed(
        CSV,
        "  customresourcedefinitions:\n",
        &format!("{api}  customresourcedefinitions:\n"),
    );
    let errors = |release| rules(&outcome(text.clone(), release), Severity::Error);
    assert_eq!(errors("1.11"), BTreeSet::from(["V1-1"]));
    assert_eq!(errors("1.12"), BTreeSet::new());
}

#[test]
fn releases_differ() {
    let Some(root) = corpus("olmv1") else { return };
    let lines = lines(&root.join("synthetic.jsonl"));
    let errors = |name: &str, release: &str| {
        let line = lines.iter().find(|line| line["name"] == name).unwrap();
        rules(&outcome(made_up(&line["files"]), release), Severity::Error)
    };
    assert_eq!(errors("webhook-mutating", "1.5"), BTreeSet::from(["V1-12"]));
    assert_eq!(errors("webhook-mutating", "v1.6.0"), BTreeSet::new());
    assert_eq!(errors("modes-own", "1.8"), BTreeSet::new());
    assert_eq!(errors("modes-own", "1.9"), BTreeSet::from(["V1-3"]));
    assert!("1.4".parse::<Release>().is_err());
    assert!("2.0".parse::<Release>().is_err());
}
