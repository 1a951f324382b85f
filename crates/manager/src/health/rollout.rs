//! Rollouts of workloads.
use serde_json::Value;

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

/// The rollout of the workload `object`. Workloads whose pods the user deletes, and other kinds, have none.
pub(crate) fn rollout(object: &Value) -> Rollout {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let status = |name: &str| number(&format!("/status/{name}")).unwrap_or(0);
    let updated = status("updatedReplicas");
    let is_current = updated == status("replicas");
    let (ready, is_complete, was_complete) = match object.get("kind").and_then(Value::as_str) {
        Some("Deployment") => {
            let wanted = number("/spec/replicas").unwrap_or(1);
            let is_complete = is_current && updated >= wanted && status("availableReplicas") >= wanted;
            // That stays so when pods are lost after the rollout.
            let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
            let was_complete = conditions.into_iter().flatten().any(|condition| {
                let text = |name: &str| condition.get(name).and_then(Value::as_str);
                text("type") == Some("Progressing") && text("reason") == Some("NewReplicaSetAvailable")
            });
            (status("readyReplicas"), is_complete, is_current && was_complete)
        }
        Some("StatefulSet") => {
            let revision = |name: &str| object.pointer("/status").and_then(|status| status.get(name)?.as_str());
            let is_newest = revision("currentRevision") == revision("updateRevision");
            (status("readyReplicas"), is_newest, false)
        }
        Some("DaemonSet") => {
            let is_newest = status("updatedNumberScheduled") >= status("desiredNumberScheduled");
            (status("numberReady"), is_newest, false)
        }
        _ => return Rollout::Done,
    };
    let strategy = object.pointer("/spec/updateStrategy/type").and_then(Value::as_str);
    let is_observed = status("observedGeneration") >= number("/metadata/generation").unwrap_or(0);
    if strategy == Some("OnDelete") || is_observed && is_complete {
        Rollout::Done
    } else if is_observed && was_complete {
        Rollout::Missing
    } else if ready == 0 && status("replicas") <= updated {
        Rollout::Starting
    } else {
        Rollout::Underway
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_rolls_out_until_its_pods_are_available() {
        let deployment = |all: i32, updated: i32, ready: i32, available: i32, reason: &str| {
            rollout(
                &json!({ "kind": "Deployment", "metadata": { "generation": 2 }, "spec": { "replicas": 3 }, "status": {
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
        assert_eq!(rollout(&unseen), Rollout::Starting);
    }

    #[test]
    fn other_workloads_have_revisions() {
        let set = |strategy: &str| {
            rollout(
                &json!({ "kind": "StatefulSet", "spec": { "updateStrategy": { "type": strategy } }, "status": {
                "replicas": 2, "readyReplicas": 2, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b" } }),
            )
        };
        assert_eq!(set("RollingUpdate"), Rollout::Underway);
        assert_eq!(set("OnDelete"), Rollout::Done);
        let daemon = json!({ "kind": "DaemonSet", "status": { "desiredNumberScheduled": 2, "updatedNumberScheduled": 1, "numberReady": 2 } });
        assert_eq!(rollout(&daemon), Rollout::Underway);
        assert_eq!(rollout(&json!({ "kind": "ConfigMap" })), Rollout::Done);
    }
}
