//! The last words before a Memcached goes.
//!
//! The Deployment, the Service and the budget are deleted by Kubernetes, through their owner references. The finalizer
//! is there to announce the deletion: two conditions and an event, as the tutorials show.
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use olmkit_manager::{
    events::{Event, Severity},
    explain,
};

use super::{Error, reconcile::Pass, report};
use crate::api::v1alpha1::FINALIZER;

/// Announces the end of the Memcached and removes the finalizer. Returns what was done, for the log.
///
/// # Errors
/// [`Error::Request`] if the API server refuses a write. An event that it refuses holds nothing up: a namespace that is
/// being deleted takes no events, and must not wait for one.
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
            Err(error) => tracing::warn!(error = %explain::request(&error), "cannot publish the event of the deletion"),
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
