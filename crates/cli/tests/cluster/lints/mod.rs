//! Tests the lints' statements about the API server, OLM and opm on the real ones, both ways.
//!
//! A lint may warn only of effects that occur: with the defect they occur, without it they do not. A rule names its
//! test.

mod admission;
mod catalogs;
mod olm;
mod server;
mod tools;
mod webhooks;

use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use kube_testbed::Options;
use olmkit::bundle::load::{self, Limits, Reading, Tree};
use olmkit::validate::against::{Against, Earlier};
use olmkit::validate::{self, Options as Checks};
use serde_json::json;

use crate::bundle::Bundle;
use crate::harness::Cluster;

/// The ids of the lints that a written bundle breaks.
pub fn broken(directory: &Path) -> Vec<&'static str> {
    rules_of(directory, Checks::default())
}

/// The same for an upgrade from an earlier bundle.
fn broken_since(directory: &Path, earlier: Earlier) -> Vec<&'static str> {
    let against = Some(Arc::new(Against::Bundle(earlier)));
    rules_of(
        directory,
        Checks {
            against,
            ..Checks::default()
        },
    )
}

fn rules_of(directory: &Path, options: Checks) -> Vec<&'static str> {
    let options = Checks { lints: true, ..options };
    let outcome = validate::validate(&read(directory), &options);
    outcome.findings().map(|finding| finding.rule).collect()
}

fn read(directory: &Path) -> Reading {
    load::read(Tree::from_dir(directory, Limits::default()).unwrap(), "bundle")
}

/// A written bundle as one that users upgrade from.
fn earlier(directory: &Path) -> Earlier {
    Earlier::from_reading("earlier", read(directory)).unwrap()
}

/// Returns true if the API server would let a service account do something, everywhere. A resource is `NAME[.GROUP][/SUBRESOURCE]`.
async fn may(cluster: &Cluster, namespace: &str, account: &str, verb: &str, resource: &str) -> bool {
    may_in(cluster, (namespace, account), verb, resource, None).await
}

/// The same with one namespace, which is an object too: a request for it is also one in it.
async fn may_in(
    cluster: &Cluster,
    (namespace, account): (&str, &str),
    verb: &str,
    resource: &str,
    place: Option<&str>,
) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{namespace}:{account}")),
            groups: Some(vec!["system:serviceaccounts".into(), "system:authenticated".into()]),
            resource_attributes: Some(ResourceAttributes {
                verb: Some(verb.into()),
                resource: Some(resource.into()),
                group: Some(group.into()),
                namespace: place.map(str::to_owned),
                name: place.map(str::to_owned),
                subresource: Some(subresource.into()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = Api::<SubjectAccessReview>::all(cluster.client.clone())
        .create(&PostParams::default(), &review)
        .await
        .unwrap();
    answer.status.unwrap().allowed
}

#[tokio::test]
async fn permissions_reach_as_far_as_the_install_mode() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    for (name, modes, resource, verb, warned, granted) in [
        ("everywhere", vec!["AllNamespaces"], "nodes", "get", false, true),
        ("here", vec!["OwnNamespace"], "nodes", "get", true, false),
        ("listing", vec!["OwnNamespace"], "namespaces", "list", true, false),
        ("reading", vec!["OwnNamespace"], "namespaces", "get", false, false),
        (
            "using",
            vec!["OwnNamespace"],
            "securitycontextconstraints.security.openshift.io",
            "use",
            false,
            false,
        ),
        (
            "reviewing",
            vec!["OwnNamespace"],
            "selfsubjectaccessreviews.authorization.k8s.io",
            "create",
            false,
            true,
        ),
    ] {
        cluster.namespace(name).await;
        let mut bundle = Bundle::new(name, "1.0.0");
        bundle.modes = modes;
        bundle.cluster_rules = vec![json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]})];
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        bundle.rules = vec![json!({"apiGroups": [group], "resources": [plural], "verbs": [verb]})];
        let directory = bundle.write(cluster.folder.path());
        assert_eq!(broken(&directory).contains(&"RBAC-5"), warned, "{name}");
        cluster.run_bundle(&directory, name, &[]).await.fine();
        let account = format!("{name}-account");
        assert_eq!(may(&cluster, name, &account, verb, resource).await, granted, "{name}");
        // A Role is sufficient if the server asks for a namespace: for the namespace itself, and for the constraints of
        // a pod in it.
        let in_it = may_in(&cluster, (name, &account), verb, resource, Some(name)).await;
        assert!(in_it || warned, "{name}");
        assert!(may(&cluster, name, &account, "list", "pods").await, "{name}");
        cluster.cleanup(name, name, &[]).await.fine();
    }
}

#[tokio::test]
async fn accounts_with_permissions_are_made_whether_a_deployment_uses_them_or_not() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.namespace("workers").await;
    let mut bundle = Bundle::new("workers", "1.0.0");
    bundle.other_accounts = vec!["worker"];
    let directory = bundle.write(cluster.folder.path());
    let ids = broken(&directory);
    assert!(!ids.contains(&"RBAC-1") && !ids.contains(&"RBAC-2"), "{ids:?}");
    cluster.run_bundle(&directory, "workers", &[]).await.fine();
    let account = cluster
        .get("v1", "ServiceAccount", "serviceaccounts", Some("workers"), "worker")
        .await;
    assert!(account.is_some());
    cluster.cleanup("workers", "workers", &[]).await.fine();
}
