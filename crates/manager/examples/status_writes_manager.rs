//! Counts the passes over one object whose status changes with each failure, under this crate's cache, queue and worker.
//!
//! With the argument `spec`, only changes of what the cache keeps, which is not the status, add the object to the queue.
//! `status_writes_controller` is the same operator with kube-runtime's `Controller`.
use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::watcher,
};
use kube_manager::{
    ObjectKey,
    backoff::Backoff,
    cache::{Cache, Change},
    follow::{Follow, Source},
    metrics::Metrics,
    probes::Readiness,
    queue::WorkQueue,
    shutdown::CancellationToken,
    worker::{self, Done, Limits},
};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let spec_only = std::env::args().nth(1).as_deref() == Some("spec");
    let pods: Api<Pod> = Api::default_namespaced(Client::try_default().await?);
    let metrics = Metrics::new();
    let queue = Arc::new(WorkQueue::new(Backoff::default(), None));
    let follow = Follow {
        gate: Readiness::default().gate("pods"),
        source: Source {
            cache: Cache::default(),
            scope: None,
            project: |pod: Pod| Some(serde_json::to_string(&pod.spec).unwrap_or_default()),
            changed: |key: &ObjectKey, change: Change<String>| {
                if !spec_only || change.before != change.after {
                    queue.add(key.clone());
                }
            },
            errors: metrics.watch_errors("pods"),
        },
    };
    let passes = Arc::new(AtomicU32::new(0));
    let reconcile = |key: ObjectKey| {
        let (pods, passes) = (pods.clone(), Arc::clone(&passes));
        async move {
            let pass = passes.fetch_add(1, SeqCst);
            let message = format!("read tcp: attempt {pass}");
            let condition = json!({ "type": "Degraded", "status": "True", "message": message });
            let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
            // The pass has failed in any case.
            let _ = pods.patch_status(&key.name, &PatchParams::default(), &patch).await;
            Err::<Done, _>("the webhook's connection was reset")
        }
    };
    let limits = Limits {
        concurrency: 1,
        time: Duration::from_secs(30),
        owed: Duration::from_secs(1),
    };
    let config = watcher::Config::default().fields("metadata.name=pod-00000");
    let stop = CancellationToken::new();
    tokio::select! {
        () = follow.run(pods.clone(), config) => {}
        () = worker::run(Arc::clone(&queue), limits, metrics.workers("pods"), stop, reconcile) => {}
        () = tokio::time::sleep(Duration::from_secs(10)) => {}
    }
    let name = if spec_only {
        "WorkQueue, changes of the spec"
    } else {
        "WorkQueue, every event"
    };
    println!("| {name} | {} |", passes.load(SeqCst));
    Ok(())
}
