//! Counts the passes over one object whose status changes with each failure, under kube-runtime's `Controller`.
//!
//! `status_writes_manager` is the same operator with this crate's parts: compare passes and sizes of the programs.
use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{Controller, controller::Action, watcher},
};
use kube_manager::backoff::Backoff;
use serde_json::json;

#[derive(Debug, thiserror::Error)]
#[error("the webhook's connection was reset")]
struct Failed;

struct Context {
    pods: Api<Pod>,
    passes: AtomicU32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let pods: Api<Pod> = Api::default_namespaced(Client::try_default().await?);
    let config = watcher::Config::default().fields("metadata.name=pod-00000");
    let context = Arc::new(Context {
        pods: pods.clone(),
        passes: AtomicU32::new(0),
    });
    let controller = Controller::new(pods, config)
        .run(reconcile, retry, Arc::clone(&context))
        .for_each(|_| async {});
    let _ = tokio::time::timeout(Duration::from_secs(10), controller).await;
    println!("| Controller | {} |", context.passes.load(SeqCst));
    Ok(())
}

async fn reconcile(pod: Arc<Pod>, context: Arc<Context>) -> Result<Action, Failed> {
    let pass = context.passes.fetch_add(1, SeqCst);
    let condition = json!({ "type": "Degraded", "status": "True", "message": format!("read tcp: attempt {pass}") });
    let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
    let parameters = PatchParams::default();
    // The pass has failed in any case.
    let _ = context.pods.patch_status(&pod.name_any(), &parameters, &patch).await;
    Err(Failed)
}

/// There is one object, so the passes are its failures.
fn retry(_: Arc<Pod>, _: &Failed, context: Arc<Context>) -> Action {
    Action::requeue(Backoff::default().delay(context.passes.load(SeqCst)))
}
