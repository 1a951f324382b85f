//! The permission table: no permission is missing, none is unused.
use std::collections::BTreeSet;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Service, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::api::{Patch, PatchParams};
use kube_manager::{conditions::DEGRADED, reconcile::Grant};
use memcached_operator::{
    api::v1alpha1::{Memcached, Phase},
    controller::grants,
};
use serde_json::{Value, json};

use crate::{
    lab::{ACCOUNT, Lab, condition, create, eventually, in_namespaces},
    scenario::{HIDDEN, asked, describe, live},
};

fn granted(grants: &[Grant]) -> BTreeSet<String> {
    let each = |grant: &Grant| {
        let (resource, subresource) = grant.resource.split_once('/').unwrap_or((&grant.resource, ""));
        let (group, resource, subresource) = (grant.group.to_string(), resource.to_owned(), subresource.to_owned());
        grant
            .verbs
            .iter()
            .map(move |verb| describe(verb, &group, &resource, &subresource))
            .collect::<Vec<_>>()
    };
    grants.iter().flat_map(each).collect()
}

#[tokio::test]
async fn nothing_is_forbidden_and_nothing_is_unused() {
    let lab = Lab::new("rights").await;
    let operator = lab.operator_with(&["--leader-elect", "--metrics-secure"], &[]).await;
    live(&lab).await;
    let token = lab.token(ACCOUNT).await;
    let (code, _) = operator.secure(http::Method::GET, "/metrics", &token, "").await;
    assert_eq!(code, 403, "its own account may review, but not read");
    eventually("two renewals", async || {
        let requests = lab.requests().await;
        (requests
            .iter()
            .filter(|event| asked(event).as_deref() == Some("update coordination.k8s.io/leases"))
            .count()
            > 1)
        .then_some(())
    })
    .await;
    drop(operator);

    let requests = lab.requests().await;
    let forbidden: BTreeSet<String> = requests
        .iter()
        .filter(|event| event.code() == 403)
        .filter_map(asked)
        .collect();
    assert_eq!(forbidden, BTreeSet::new(), "missing permissions");
    let mut used: BTreeSet<String> = requests
        .iter()
        .filter(|event| (200..300).contains(&event.code()) || event.code() == 404)
        .filter_map(asked)
        .collect();
    // Every authenticated user may review its own access.
    used.retain(|request| !request.starts_with("create authorization.k8s.io/selfsubject"));
    used.extend(HIDDEN.map(str::to_owned));
    assert_eq!(used, granted(&grants()), "left: used, right: granted");
}

/// Revokes a permission that shows in no request. An operation of the operator then fails, its status reports it, and
/// its log lists the missing permission at start.
#[tokio::test]
async fn without_a_right_the_operator_says_what_it_lacks() {
    for (name, resource, verb) in [
        ("no-deployment", "deployments", "create"),
        ("no-service", "services", "create"),
        ("no-budget", "poddisruptionbudgets", "create"),
        ("no-set", "statefulsets", "create"),
        ("no-policy", "networkpolicies", "create"),
        ("no-list", "configmaps", "create"),
        ("no-binding", "secrets", "create"),
        ("no-finalizers", "memcacheds/finalizers", "update"),
        ("no-deployment-owner", "deployments", "delete"),
        ("no-service-owner", "services", "delete"),
    ] {
        let mut rest = grants();
        for grant in &mut rest {
            if grant.resource == resource {
                grant.verbs.retain(|have| have != verb);
            }
        }
        rest.retain(|grant| !grant.verbs.is_empty());
        let lab = Lab::with_grants(name, &rest).await;
        let operator = lab.operator().await;
        let with_set = ["statefulsets", "configmaps", "secrets"].contains(&resource);
        let workload = if with_set { "StatefulSet" } else { "Deployment" };
        let spec = json!({ "size": 2, "workload": workload, "allowedNamespaces": ["shop"] });
        lab.memcached("sample", spec).await;
        if verb == "delete" {
            lab.running("sample").await;
            disown::<Deployment>(&lab).await;
            disown::<Service>(&lab).await;
        }
        let memcached = lab.reaches("sample", Phase::Degraded).await;
        let degraded = condition(&memcached, DEGRADED);
        assert_eq!(degraded.reason, "Forbidden", "{name}: {}", degraded.message);
        let missing = format!("{verb} {resource}");
        let reason = eventually("the self-check reports it", async || {
            let log = operator.log();
            let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let is_about = |line: &Value| line["missing"].as_str().is_some_and(|text| text.starts_with(&missing));
            lines.filter(is_about).map(|line| line["needed_because"].clone()).next()
        })
        .await;
        let is_needed = |grant: &Grant| grant.resource == resource && grant.verbs.iter().any(|have| have == verb);
        let all = grants();
        let mut reasons = all.iter().filter(|grant| is_needed(grant)).map(|grant| &grant.why);
        assert!(
            reasons.any(|why| !why.is_empty() && reason == **why),
            "{name}: {reason}"
        );
    }
}

/// Takes the owner from an object, as an administrator may.
async fn disown<K>(lab: &Lab)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + serde::de::DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let no_owner = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    lab.api::<K>()
        .patch("sample", &PatchParams::default(), &no_owner)
        .await
        .unwrap();
}

/// Without the permission to read, an operator is not ready, and reports the missing permission.
#[tokio::test]
async fn an_operator_that_may_not_watch_is_not_ready() {
    let rest: Vec<Grant> = grants().into_iter().filter(|grant| grant.resource != "pods").collect();
    let lab = Lab::with_grants("blind", &rest).await;
    let operator = lab.start(&[], &[]).await;
    eventually("the self-check speaks", async || {
        operator.log().contains("\"missing\":\"list pods").then_some(())
    })
    .await;
    let (code, body) = operator.get("probes", "/readyz").await;
    assert_eq!(code, 500);
    assert!(body.contains("[-]watch-pods-in-blind failed"), "{body}");
    assert_eq!(operator.get("probes", "/healthz").await.0, 200);
    lab.memcached("sample", json!({})).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let memcached = lab.api::<Memcached>().get("sample").await.unwrap();
    assert!(
        memcached.status.is_none(),
        "decisions on half of the objects would be wrong ones"
    );
}

#[tokio::test]
async fn metrics_over_tls_are_not_for_everybody() {
    let lab = Lab::with_grants("metrics", &in_namespaces(&grants())).await;
    let operator = lab.operator_with(&["--metrics-secure"], &[]).await;
    let address = operator.address("metrics").await;
    let client = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .no_proxy()
        .build()
        .unwrap();
    let path = format!("https://{address}/metrics");
    assert_eq!(client.get(&path).send().await.unwrap().status(), 401);
    // The API server does not let this account review tokens.
    let answer = client.get(&path).bearer_auth("token").send().await.unwrap();
    assert_eq!(answer.status(), 500);
    assert!(operator.log().contains("cannot review a request"));
}

/// Who may read the metrics gets them, and who may change the log level changes it while the operator runs.
#[tokio::test]
async fn metrics_and_log_level_are_for_accounts_with_the_right() {
    let lab = Lab::new("scraped").await;
    let operator = lab.operator_with(&["--metrics-secure"], &[]).await;
    create::<ServiceAccount>(&lab.api(), json!({ "metadata": { "name": "prometheus" } })).await;
    lab.grant_metrics("prometheus").await;
    let token = lab.token("prometheus").await;
    let (code, text) = operator.secure(http::Method::GET, "/metrics", &token, "").await;
    assert_eq!(code, 200, "{text}");
    assert!(
        text.contains("controller_runtime_max_concurrent_reconciles{controller=\"memcached\"} 32"),
        "{text}"
    );
    let level = async |body: &str, token: &str| {
        operator
            .secure(http::Method::PUT, kube_manager::log::PATH, token, body)
            .await
    };
    assert_eq!(level("debug", &token).await.0, 403, "it may read the metrics only");
    let administrator = json!({ "metadata": { "name": "log-level" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": "administrator", "namespace": lab.namespace }] });
    create::<ServiceAccount>(&lab.api(), json!({ "metadata": { "name": "administrator" } })).await;
    create::<ClusterRoleBinding>(&kube::Api::all(lab.client.clone()), administrator).await;
    let token = lab.token("administrator").await;
    let (code, text) = level("loud", &token).await;
    assert_eq!(code, 400, "{text}");
    let debug_lines = || operator.log().matches("\"level\":\"DEBUG\"").count();
    let (code, text) = level("info", &token).await;
    assert_eq!((code, text.as_str()), (200, "info\n"));
    let before = debug_lines();
    lab.memcached("quiet", json!({})).await;
    lab.running("quiet").await;
    assert_eq!(debug_lines(), before);
    assert_eq!(level("debug,hyper=info,rustls=info", &token).await.0, 200);
    lab.memcached("loud", json!({})).await;
    lab.running("loud").await;
    eventually("lines of this level", async || (debug_lines() > before).then_some(())).await;
}
