//! How far the Deployment is, and how long it may take.
use k8s_openapi::jiff::SignedDuration;

use super::{Facts, Hold, SERVERS_NOT_READY, find, since};
use crate::{
    api::v1alpha1::{DEGRADED, Phase, READY},
    controller::observed::DeploymentState,
};

/// Servers that are lost (evicted, restarted, on a node that went away) usually come back within this time. Only after it
/// the object is Degraded.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// Servers that a resize adds are given as much time as a rollout has without progress. The Deployment's own deadline ends with
/// its rollout.
const START: SignedDuration = SignedDuration::from_secs(120);

/// Progress of the Deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All desired servers run with the current spec.
    Done,
    /// Servers are being created, removed or replaced.
    Underway,
    /// All servers have the current spec, but some are no longer ready.
    Lost,
}

/// The progress of the Deployment.
pub(super) fn progress(facts: &Facts) -> Progress {
    let size = facts.memcached.spec.size;
    let Some(deployment) = facts.deployment else {
        return Progress::Underway;
    };
    let is_apart = deployment.replicas != deployment.updated || deployment.replicas > size;
    if is_held(facts) || !is_current(deployment) || is_apart {
        return Progress::Underway;
    }
    // Not those that are available: they are so only after the time for warming up.
    if deployment.updated >= size && deployment.ready >= size {
        return Progress::Done;
    }
    // There may be fewer than `size` for a moment: the ReplicaSet counts a pod that is gone before its replacement.
    if was_complete(facts, deployment) {
        Progress::Lost
    } else {
        Progress::Underway
    }
}

/// Returns true if the Deployment's controller has seen its spec.
pub(super) fn is_current(deployment: &DeploymentState) -> bool {
    deployment.observed_generation >= deployment.generation
}

/// Returns true if something has to happen before the Deployment can be what the spec asks for.
pub(super) fn is_held(facts: &Facts) -> bool {
    facts.is_behind || matches!(facts.hold, Some(Hold::Deletion(_)))
}

/// Whether, by the last status, all servers that the spec asks for were ready before.
fn was_complete(facts: &Facts, deployment: &DeploymentState) -> bool {
    let memcached = facts.memcached;
    let Some(before) = &memcached.status else { return false };
    let was_ready = match before.phase {
        Some(Phase::Running) => true,
        // It may have been so from the start.
        Some(Phase::Degraded) => {
            deployment.rolled_out || find(memcached, DEGRADED).is_some_and(|known| known.reason == SERVERS_NOT_READY)
        }
        _ => false,
    };
    was_ready
        && before.observed_generation == memcached.metadata.generation
        && deployment.wanted() == memcached.spec.size
}

/// For how long servers may still stay away until the object is Degraded; `None` if none is missing, or others count the time.
pub(super) fn time_left(facts: &Facts, progress: Progress) -> Option<SignedDuration> {
    let size = facts.memcached.spec.size;
    let patience = match progress {
        Progress::Done => return None,
        Progress::Lost => GRACE,
        Progress::Underway => facts
            .deployment
            .filter(|deployment| facts.hold.is_none() && is_current(deployment))
            .filter(|deployment| deployment.rolled_out && deployment.replicas == size && deployment.updated == size)
            .map(|_| START)?,
    };
    let passed = match find(facts.memcached, READY) {
        Some(known) if known.status == "False" => facts.now.duration_since(since(facts, known)),
        // Written by a version without this condition, which gave no time.
        None if progress == Progress::Lost => patience,
        // About to be reported.
        _ => SignedDuration::ZERO,
    };
    Some(patience - passed)
}
