//! An upgrade of the operator from version 0.1.0.
//!
//! `OPERATOR_0_1_0` names a program of that version, as commit bca2ff0 builds it; without it the test prints that it is skipped.
use std::{
    ffi::OsStr,
    process::{Child, Command, Stdio},
};

use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{Service, ServiceAccount},
    policy::v1::PodDisruptionBudget,
    rbac::v1::RoleBinding,
};
use kube::{Resource, ResourceExt};
use memcached_operator::{api::v1alpha1::FINALIZER, controller::NAME};
use serde_json::json;

use crate::lab::{IMAGE, Lab, create, eventually};

const LEASE: &str = "memcached-operator.cache.example.com";

/// Killed on drop.
struct Old(Child);

impl Drop for Old {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the old operator, which needed other permissions.
async fn old(lab: &Lab, program: &OsStr) -> Old {
    let binding = json!({ "metadata": { "name": "old" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": "old", "namespace": lab.namespace }] });
    create::<RoleBinding>(&lab.api(), binding).await;
    create::<ServiceAccount>(&lab.api(), json!({ "metadata": { "name": "old" } })).await;
    let kubeconfig = eventually("a token of the old operator", async || {
        let path = lab.plane().service_account_kubeconfig(&lab.namespace, "old").await;
        path.ok()
    })
    .await;
    let mut command = Command::new(program);
    command
        .args([
            "--leader-elect",
            "--health-probe-bind-address=0",
            "--metrics-bind-address=0",
        ])
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .env("WATCH_NAMESPACE", &lab.namespace)
        .env("POD_NAMESPACE", &lab.namespace)
        .env("POD_NAME", "old")
        .env("MEMCACHED_IMAGE", IMAGE)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::null());
    Old(command.spawn().unwrap())
}

/// The field managers of `object` that applied anything, and whether each has done so to the status.
fn appliers<K: Resource>(object: &K) -> Vec<(String, bool)> {
    let entries = object.managed_fields().iter();
    let applied = entries.filter(|entry| entry.operation.as_deref() == Some("Apply"));
    applied
        .map(|entry| (entry.manager.clone().unwrap(), entry.subresource.is_some()))
        .collect()
}

async fn holder(lab: &Lab) -> Option<(String, Option<i32>)> {
    let spec = lab.api::<Lease>().get_opt(LEASE).await.unwrap()?.spec?;
    Some((spec.holder_identity?, spec.lease_transitions))
}

#[tokio::test]
async fn objects_of_0_1_0_are_adopted() {
    let Some(program) = std::env::var_os("OPERATOR_0_1_0") else {
        println!("skipped: OPERATOR_0_1_0 names no memcached-operator of version 0.1.0 (commit bca2ff0)");
        return;
    };
    let lab = Lab::new("upgrade").await;
    let before = old(&lab, &program).await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.memcached("leaving", json!({ "size": 1 })).await;
    let left = lab.running("sample").await;
    lab.running("leaving").await;
    assert_eq!(left.finalizers(), [FINALIZER]);
    let deployment = lab.api::<Deployment>().get("sample").await.unwrap();
    let (first, transitions) = eventually("a leader", async || holder(&lab).await).await;
    assert!(first.starts_with("old"), "{first}");
    // Killed: its lease runs out, and what is deleted now keeps the finalizer.
    drop(before);
    lab.delete("leaving").await;

    let operator = lab.operator_with(&["--leader-elect"], &[("POD_NAME", "new")]).await;
    let (_, now) = eventually("the new leader", async || {
        holder(&lab).await.filter(|(holder, _)| holder.starts_with("new_"))
    })
    .await;
    assert_eq!(now, Some(transitions.unwrap_or(0) + 1), "the same lease");
    lab.gone("leaving").await;

    lab.change("sample", json!({ "size": 3 })).await;
    let after = lab.running("sample").await;
    assert_eq!(after.finalizers(), [FINALIZER]);
    let status_only = [(NAME.to_owned(), true)];
    assert_eq!(appliers(&after), status_only);
    let ours = [(NAME.to_owned(), false)];
    let live = lab.api::<Deployment>().get("sample").await.unwrap();
    assert_eq!(live.uid(), deployment.uid(), "not re-created");
    assert_eq!(appliers(&live), ours, "one owner of the applied fields");
    assert_eq!(appliers(&lab.api::<Service>().get("sample").await.unwrap()), ours);
    assert_eq!(
        appliers(&lab.api::<PodDisruptionBudget>().get("sample").await.unwrap()),
        ours
    );
    let log = operator.log();
    assert!(!log.contains("\"level\":\"ERROR\""), "{log}");
    let requests = lab.requests().await;
    let mut codes = requests.iter().filter_map(|event| event.response_status.as_ref());
    assert!(codes.all(|status| status.code != 409), "{log}");
    lab.delete("sample").await;
    lab.gone("sample").await;
}
