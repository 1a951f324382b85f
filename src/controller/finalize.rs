//! The finalizer of a Memcached.
//!
//! The Deployment, the Service and the budget are deleted by Kubernetes, through their owner references. The finalizer
//! reports the deletion: two conditions and an event, as in the tutorials.
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube_manager::{
    events::{Event, Severity},
    explain,
};
use tokio::time::timeout;

use super::{Error, pass::Pass, report};
use crate::api::v1alpha1::FINALIZER;

/// Time for reporting the deletion. Whoever waits for the deletion must not wait for a report.
const ANNOUNCEMENT: Duration = Duration::from_secs(2);

/// Reports the deletion of the Memcached and removes the finalizer. Returns a description for the log.
///
/// # Errors
/// [`Error::Request`] if the API server refuses to remove the finalizer. What keeps the operator from reporting is only
/// logged: events cannot be created in a namespace that is being deleted, and a status may be refused.
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
        match timeout(ANNOUNCEMENT, announce(pass)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot report the deletion"),
            Err(_) => tracing::warn!("cannot report the deletion within {ANNOUNCEMENT:?}"),
        }
    }
    pass.remove_finalizer(FINALIZER).await?;
    Ok("finalized".to_owned())
}

async fn announce(pass: &mut Pass<'_>) -> Result<(), Error> {
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
        .await
}

fn event(name: &str, namespace: &str) -> Event {
    Event {
        severity: Severity::Warning,
        reason: "Deleting",
        action: "Finalize",
        note: format!("Custom Resource {name} is being deleted from the namespace {namespace}"),
    }
}
