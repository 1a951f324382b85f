//! The finalizer of a Memcached.
//!
//! The Deployment, the Service and the budget are deleted by Kubernetes, through their owner references. The finalizer
//! reports the deletion: two conditions and an event, as in the tutorials.
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use olmkit_manager::{
    events::{Event, Severity},
    explain,
};

use super::{Error, reconcile::Pass, report};
use crate::api::v1alpha1::FINALIZER;

/// Reports the deletion of the Memcached and removes the finalizer. Returns a description for the log.
///
/// # Errors
/// [`Error::Request`] if the API server rejects a write. A rejected event is only logged: events cannot be created in a
/// namespace that is being deleted.
pub async fn finalize(pass: &mut Pass<'_>) -> Result<String, Error> {
    if !pass
        .memcached
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == FINALIZER)
    {
        return Ok("being deleted".to_owned());
    }
    if !report::is_finalized(&pass.memcached) {
        pass.write_status(report::finalizing(&pass.memcached, false, Timestamp::now()))
            .await?;
        let event = event(
            &pass.memcached.name_any(),
            &pass.memcached.namespace().unwrap_or_default(),
        );
        match pass.context.events.publish(pass.memcached.as_ref(), &event).await {
            Ok(()) => pass.writes += 1,
            Err(error) => tracing::warn!(error = %explain::request(&error), "cannot publish the deletion event"),
        }
        pass.write_status(report::finalizing(&pass.memcached, true, Timestamp::now()))
            .await?;
    }
    pass.set_finalizers(|finalizers| finalizers.retain(|finalizer| finalizer != FINALIZER))
        .await?;
    Ok("finalized".to_owned())
}

fn event(name: &str, namespace: &str) -> Event {
    Event {
        severity: Severity::Warning,
        reason: "Deleting",
        action: "Finalize",
        note: format!("Custom Resource {name} is being deleted from the namespace {namespace}"),
    }
}
