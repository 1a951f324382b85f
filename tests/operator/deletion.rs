//! Deletion of a Memcached.
use futures::StreamExt;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace, Service},
    policy::v1::PodDisruptionBudget,
    rbac::v1::RoleBinding,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, WatchEvent, WatchParams},
};
use kube_manager::conditions::DEGRADED;
use memcached_operator::{
    api::v1alpha1::{FINALIZER, Memcached, Phase},
    controller::grants,
};
use serde_json::json;

use crate::lab::{ACCOUNT, Lab, create, eventually};

#[tokio::test]
async fn a_deleted_memcached_says_so_and_takes_its_objects_with_it() {
    let lab = Lab::new("deletion").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    let memcached = lab.running("sample").await;
    let memcacheds = lab.api::<Memcached>();

    let version = memcached.metadata.resource_version.unwrap();
    let mut changes = Box::pin(memcacheds.watch(&WatchParams::default(), &version).await.unwrap());
    memcacheds.delete("sample", &DeleteParams::default()).await.unwrap();
    let mut said = Vec::new();
    loop {
        match changes.next().await.unwrap().unwrap() {
            WatchEvent::Modified(object) => {
                let status = object.status.unwrap();
                let degraded = status
                    .conditions
                    .into_iter()
                    .find(|known| known.type_ == DEGRADED)
                    .unwrap();
                said.push((
                    status.phase.unwrap(),
                    degraded.status,
                    degraded.reason,
                    degraded.message,
                ));
            }
            WatchEvent::Deleted(_) => break,
            other => panic!("{other:?}"),
        }
    }
    said.dedup();
    let step = |phase, status: &str, reason: &str, message: &str| {
        (phase, status.to_owned(), reason.to_owned(), message.to_owned())
    };
    assert_eq!(
        said,
        [
            step(Phase::Running, "False", "AsExpected", "nothing failed"),
            step(
                Phase::Deleting,
                "Unknown",
                "Finalizing",
                "Performing finalizer operations for the custom resource: sample "
            ),
            step(
                Phase::Deleting,
                "True",
                "Finalizing",
                "Finalizer operations for custom resource sample name were successfully accomplished"
            ),
        ]
    );

    let event = lab.event("sample", "Deleting").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(
        event.note.as_deref(),
        Some("Custom Resource sample is being deleted from the namespace deletion")
    );
    eventually("everything is deleted", async || {
        let deployment = lab.api::<Deployment>().get_opt("sample").await.unwrap().is_none();
        let service = lab.api::<Service>().get_opt("sample").await.unwrap().is_none();
        let budget = lab
            .api::<PodDisruptionBudget>()
            .get_opt("sample")
            .await
            .unwrap()
            .is_none();
        (deployment && service && budget && lab.pods("sample").await.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_memcached_made_anew_under_the_same_name_gets_objects_of_its_own() {
    let lab = Lab::new("rebirth").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 1 })).await;
    let first = lab.running("sample").await;
    lab.delete("sample").await;
    lab.gone("sample").await;
    let second = lab.memcached("sample", json!({ "size": 2 })).await;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    lab.running("sample").await;
    eventually("the Deployment is the second's", async || {
        let deployment = lab.api::<Deployment>().get_opt("sample").await.unwrap()?;
        (deployment.metadata.owner_references?[0].uid == *second.metadata.uid.as_ref()?).then_some(())
    })
    .await;
    assert_eq!(lab.running("sample").await.status.unwrap().nodes.len(), 2);
}

#[tokio::test]
async fn without_the_finalizer_objects_can_be_deleted_when_the_operator_is_uninstalled() {
    let lab = Lab::new("no-finalizer").await;
    {
        let _operator = lab.operator().await;
        lab.memcached("older", json!({})).await;
        lab.running("older").await;
    }
    {
        let _operator = lab.operator_with(&["--add-finalizer=false"], &[]).await;
        lab.memcached("sample", json!({})).await;
        assert_eq!(lab.running("sample").await.metadata.finalizers, None);
        // Existing finalizers are honored.
        assert_eq!(lab.running("older").await.finalizers(), [FINALIZER]);
        lab.delete("older").await;
        lab.gone("older").await;
        lab.event("older", "Deleting").await;
    }
    lab.delete("sample").await;
    lab.gone("sample").await;
    eventually("the servers are deleted", async || {
        lab.pods("sample").await.is_empty().then_some(())
    })
    .await;
}

/// After a deletion with `--cascade=orphan` the Deployment stays without an owner. The operator may adopt it.
#[tokio::test]
async fn an_orphaned_deployment_is_adopted_by_its_next_memcached() {
    let lab = Lab::new("orphans").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let before = lab.api::<Deployment>().get("sample").await.unwrap();
    let orphan = DeleteParams::orphan();
    lab.api::<Memcached>().delete("sample", &orphan).await.unwrap();
    lab.gone("sample").await;
    let next = lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let after = lab.api::<Deployment>().get("sample").await.unwrap();
    assert_eq!(before.metadata.uid, after.metadata.uid);
    assert_eq!(
        after.metadata.owner_references.unwrap()[0].uid,
        next.metadata.uid.unwrap()
    );
}

/// Events cannot be created in a namespace that is being deleted. The finalizer must not wait for one.
#[tokio::test]
async fn a_deleted_namespace_goes() {
    let (lab, elsewhere) = (Lab::new("doomed").await, Lab::new("undertaker").await);
    elsewhere.grant_everywhere().await;
    let _operator = elsewhere.operator_with(&[], &[("WATCH_NAMESPACE", "doomed")]).await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let namespaces: Api<Namespace> = Api::all(lab.client.clone());
    namespaces.delete("doomed", &DeleteParams::default()).await.unwrap();
    eventually("the namespace is deleted", async || {
        namespaces.get_opt("doomed").await.unwrap().is_none().then_some(())
    })
    .await;
}

/// Removing the finalizer needs no right but those to Memcacheds.
#[tokio::test]
async fn a_missing_right_to_another_kind_does_not_block_a_deletion() {
    let lab = Lab::new("sighted").await;
    let mut rest = grants();
    rest.retain(|grant| grant.resource != "pods");
    let blind = Lab::with_grants("blinded", &rest).await;
    let binding = json!({ "metadata": { "name": "sighted" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": "sighted" }] });
    create::<RoleBinding>(&blind.api(), binding).await;
    let object = json!({ "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
        "metadata": { "name": "sample", "finalizers": [FINALIZER] }, "spec": {} });
    create::<Memcached>(&blind.api(), object).await;
    let _operator = lab.start(&[], &[("WATCH_NAMESPACE", "sighted,blinded")]).await;
    lab.memcached("other", json!({})).await;
    lab.running("other").await;
    assert!(
        blind.api::<Memcached>().get("sample").await.unwrap().status.is_none(),
        "decisions on half of the objects would be wrong ones"
    );
    blind.delete("sample").await;
    blind.gone("sample").await;
}
