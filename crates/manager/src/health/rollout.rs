//! Rollouts of workloads.
use serde::Deserialize;

/// The pods of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rollout {
    /// No pod is ready, and no pod of an earlier template exists: another change of the template loses nothing.
    Starting,
    /// Pods are replaced.
    Underway,
    /// All pods are of the newest template, but some are not available: they were lost after the rollout, or the rollout to an earlier
    /// template has just begun. A Deployment with one pod does not show the difference.
    Missing,
    /// All pods are of the newest template and available.
    Done,
}

/// The fields of a workload that its controller counts pods with.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Workload {
    kind: String,
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    generation: i64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    replicas: Option<i64>,
    update_strategy: Strategy,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Strategy {
    r#type: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    observed_generation: i64,
    replicas: i64,
    updated_replicas: i64,
    ready_replicas: i64,
    available_replicas: i64,
    conditions: Vec<Condition>,
    current_revision: Option<String>,
    update_revision: Option<String>,
    desired_number_scheduled: i64,
    updated_number_scheduled: i64,
    number_ready: i64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    reason: String,
}

/// The rollout of a workload. Workloads whose pods the user deletes, and other kinds, have none.
pub(crate) fn rollout(workload: &Workload) -> Rollout {
    let status = &workload.status;
    let updated = status.updated_replicas;
    let is_current = updated == status.replicas;
    let (ready, is_complete, was_complete) = match workload.kind.as_str() {
        "Deployment" => {
            let wanted = workload.spec.replicas.unwrap_or(1);
            let is_complete = is_current && updated >= wanted && status.available_replicas >= wanted;
            // That stays so when pods are lost after the rollout.
            let was_complete = status
                .conditions
                .iter()
                .any(|condition| condition.r#type == "Progressing" && condition.reason == "NewReplicaSetAvailable");
            (status.ready_replicas, is_complete, is_current && was_complete)
        }
        "StatefulSet" => {
            let is_newest = status.current_revision == status.update_revision;
            (status.ready_replicas, is_newest, false)
        }
        "DaemonSet" => {
            let is_newest = status.updated_number_scheduled >= status.desired_number_scheduled;
            (status.number_ready, is_newest, false)
        }
        _ => return Rollout::Done,
    };
    let is_observed = status.observed_generation >= workload.metadata.generation;
    if workload.spec.update_strategy.r#type == "OnDelete" || is_observed && is_complete {
        Rollout::Done
    } else if is_observed && was_complete {
        Rollout::Missing
    } else if ready == 0 && status.replicas <= updated {
        Rollout::Starting
    } else {
        Rollout::Underway
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(object: Value) -> Rollout {
        rollout(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_deployment_rolls_out_until_its_pods_are_available() {
        let deployment = |all: i32, updated: i32, ready: i32, available: i32, reason: &str| {
            of(
                json!({ "kind": "Deployment", "metadata": { "generation": 2 }, "spec": { "replicas": 3 }, "status": {
                "observedGeneration": 2, "replicas": all, "updatedReplicas": updated, "readyReplicas": ready,
                "availableReplicas": available, "conditions": [{ "type": "Progressing", "reason": reason }] } }),
            )
        };
        assert_eq!(deployment(3, 3, 0, 0, "ReplicaSetUpdated"), Rollout::Starting);
        assert_eq!(deployment(3, 1, 2, 2, "ReplicaSetUpdated"), Rollout::Underway);
        assert_eq!(
            deployment(3, 3, 3, 2, "ReplicaSetUpdated"),
            Rollout::Underway,
            "warming up"
        );
        assert_eq!(deployment(3, 3, 3, 3, "ReplicaSetUpdated"), Rollout::Done);
        assert_eq!(
            deployment(3, 3, 1, 1, "NewReplicaSetAvailable"),
            Rollout::Missing,
            "lost pods"
        );
        assert_eq!(deployment(3, 3, 3, 3, "NewReplicaSetAvailable"), Rollout::Done);
        let unseen =
            json!({ "kind": "Deployment", "metadata": { "generation": 2 }, "status": { "observedGeneration": 1 } });
        assert_eq!(of(unseen), Rollout::Starting);
    }

    #[test]
    fn other_workloads_have_revisions() {
        let set = |strategy: &str| {
            of(
                json!({ "kind": "StatefulSet", "spec": { "updateStrategy": { "type": strategy } }, "status": {
                "replicas": 2, "readyReplicas": 2, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b" } }),
            )
        };
        assert_eq!(set("RollingUpdate"), Rollout::Underway);
        assert_eq!(set("OnDelete"), Rollout::Done);
        let daemon = json!({ "kind": "DaemonSet", "status": { "desiredNumberScheduled": 2, "updatedNumberScheduled": 1, "numberReady": 2 } });
        assert_eq!(of(daemon), Rollout::Underway);
        assert_eq!(of(json!({ "kind": "ConfigMap" })), Rollout::Done);
    }
}
