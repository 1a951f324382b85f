//! The reconciler without an API server.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::CronJob,
    core::v1::{Secret, Service},
    policy::v1::PodDisruptionBudget,
};
use kube_manager::reconcile::{Context, Error, Outcome, Reconciler as _, object};
use serde_json::{Value, json};
use valkey_operator::{
    api::Valkey,
    controller::{ValkeyReconciler, controller},
};

fn valkey(spec: Value) -> Valkey {
    let mut all = json!({ "storage": "1Gi" });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object(json!({ "metadata": { "name": "web", "namespace": "shop", "uid": "1", "generation": 1 }, "spec": all }))
        .unwrap()
}

fn context(valkey: &Valkey) -> Context<Valkey> {
    Context::recording(valkey).with_env("RELATED_IMAGE_VALKEY", "valkey:8")
}

async fn reconcile(valkey: &Valkey, context: &Context<Valkey>) -> Result<Outcome, Error> {
    ValkeyReconciler.reconcile(valkey, context).await
}

#[tokio::test]
async fn one_server_has_no_budget_and_no_backup() {
    let valkey = valkey(json!({}));
    let context = context(&valkey);
    let outcome = reconcile(&valkey, &context).await.unwrap();
    assert!(!outcome.is_ready(), "no pod runs yet");
    let set = &context.applied::<StatefulSet>()[0];
    assert_eq!(set.spec.as_ref().unwrap().replicas, Some(1));
    assert_eq!(set.metadata.owner_references.as_ref().unwrap()[0].kind, "Valkey");
    assert_eq!(context.applied::<Service>().len(), 2);
    assert_eq!(context.applied::<PodDisruptionBudget>().len(), 0);
    assert_eq!(context.applied::<CronJob>().len(), 0);
}

#[tokio::test]
async fn more_is_applied_when_it_is_asked_for() {
    let valkey = valkey(json!({ "replicas": 3, "backupSchedule": "0 1 * * *", "image": "mine:1" }));
    let ready: StatefulSet = object(json!({
        "metadata": { "name": "web", "namespace": "shop" },
        "status": { "replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3, "observedGeneration": 1 },
    }))
    .unwrap();
    let context = context(&valkey).with(&ready);
    let outcome = reconcile(&valkey, &context).await.unwrap();
    assert!(outcome.is_ready(), "{outcome:?}");
    assert_eq!(context.applied::<PodDisruptionBudget>().len(), 1);
    assert_eq!(
        context.applied::<CronJob>()[0].spec.as_ref().unwrap().schedule,
        "0 1 * * *"
    );
    let set = context.applied::<StatefulSet>().remove(0).spec.unwrap();
    assert_eq!(
        set.template.spec.unwrap().containers[0].image.as_deref(),
        Some("mine:1")
    );
}

#[tokio::test]
async fn the_password_is_the_users_or_generated_once() {
    let generated = valkey(json!({}));
    let context_one = context(&generated);
    reconcile(&generated, &context_one).await.unwrap();
    reconcile(&generated, &context_one).await.unwrap();
    assert_eq!(context_one.applied::<Secret>().len(), 1, "once");
    let given = valkey(json!({ "passwordSecret": "login" }));
    let error = reconcile(&given, &context(&given)).await.unwrap_err();
    assert_eq!(
        (error.reason(), error.to_string().as_str()),
        ("PasswordMissing", "create Secret login with the key password")
    );
    let secret: Secret =
        object(json!({ "metadata": { "name": "login", "namespace": "shop" }, "data": { "password": "b25l" } }))
            .unwrap();
    let context_two = context(&given).with(&secret);
    reconcile(&given, &context_two).await.unwrap();
    assert_eq!(context_two.applied::<Secret>().len(), 0);
}

#[tokio::test]
async fn a_paused_object_and_a_missing_image_change_nothing() {
    let paused = valkey(json!({ "paused": true }));
    let context = context(&paused);
    reconcile(&paused, &context).await.unwrap();
    assert_eq!(context.applied::<Service>().len(), 0);
    let valkey = valkey(json!({}));
    let error = reconcile(&valkey, &Context::recording(&valkey)).await.unwrap_err();
    assert_eq!(error.reason(), "EnvironmentNotSet");
}

#[test]
fn permissions_follow_from_the_declaration() {
    let grants = controller().grants();
    let has = |resource: &str, verb: &str| {
        grants
            .iter()
            .any(|grant| grant.resource == resource && grant.verbs.iter().any(|known| known == verb))
    };
    assert!(
        has("statefulsets", "patch")
            && has("valkeys/status", "patch")
            && has("persistentvolumeclaims", "deletecollection")
    );
    assert!(!has("pods", "list"));
    assert!(grants.iter().all(|grant| !grant.why.is_empty()));
}
