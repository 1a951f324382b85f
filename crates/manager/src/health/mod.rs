//! Readiness of workloads, by the rules of [kstatus](https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus).
mod memory;
mod pods;
mod rollout;

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, StatefulSet},
    batch::v1::Job,
    core::v1::PersistentVolumeClaim,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use memory::{ContainerMemory, container_memory, memory};
pub use pods::{PodFailure, pod_failure};
pub(crate) use rollout::{Rollout, Workload, rollout};

/// True if an object is as its spec asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It is.
    Yes,
    /// It will be.
    Waiting {
        /// In CamelCase, such as `RollingOut`.
        reason: String,
        /// For users, such as `1 of 3 pods are ready`.
        message: String,
    },
    /// It failed and does not get there by itself.
    Failed {
        /// In CamelCase, such as `ProgressDeadlineExceeded`.
        reason: String,
        /// For users.
        message: String,
    },
}

impl Ready {
    /// Not yet.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Waiting {
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// It failed.
    pub fn failed(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed {
            reason: reason.into(),
            message: message.into(),
        }
    }
}

/// Kinds whose status tells whether they are ready.
pub trait Health {
    /// Returns true if the object is as its spec asks for.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use kube_manager::health::{Health as _, Ready};
    ///
    /// let new = Deployment::default();
    /// assert!(matches!(new.ready(), Ready::Waiting { .. }));
    /// ```
    fn ready(&self) -> Ready;
}

/// `None` if the status is about the last change of the object and the object is not being deleted.
fn outdated(kind: &str, metadata: &ObjectMeta, observed: Option<i64>) -> Option<Ready> {
    if metadata.deletion_timestamp.is_some() {
        return Some(Ready::waiting("Terminating", format!("the {kind} is being deleted")));
    }
    let is_old = observed.is_some() && metadata.generation.is_some() && observed != metadata.generation;
    is_old.then(|| unobserved(kind))
}

fn unobserved(kind: &str) -> Ready {
    Ready::waiting("Pending", format!("the {kind} controller has not seen the last change"))
}

impl Health for Deployment {
    fn ready(&self) -> Ready {
        let (spec, status) = (
            self.spec.clone().unwrap_or_default(),
            self.status.clone().unwrap_or_default(),
        );
        if let Some(outdated) = outdated("Deployment", &self.metadata, status.observed_generation) {
            return outdated;
        }
        let condition = |kind: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.find(|condition| condition.type_ == kind)
        };
        let progressing = condition("Progressing");
        let reason = progressing.and_then(|progressing| progressing.reason.as_deref());
        if reason == Some("ProgressDeadlineExceeded") {
            let message = progressing.and_then(|progressing| progressing.message.clone());
            return Ready::failed("ProgressDeadlineExceeded", message.unwrap_or_default());
        }
        let wanted = spec.replicas.unwrap_or(1);
        let updated = status.updated_replicas.unwrap_or(0);
        let counts = Counts {
            wanted,
            all: status.replicas.unwrap_or(0),
            updated,
            available: status.available_replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
        };
        if counts.all > wanted && updated >= wanted {
            return Ready::waiting(
                "RollingOut",
                format!("{} old pods are being deleted", counts.all - wanted),
            );
        }
        // Without a deadline the controller does not set the condition.
        let has_deadline = spec
            .progress_deadline_seconds
            .is_some_and(|seconds| seconds != i32::MAX);
        let is_rolled_out = progressing.is_some_and(|progressing| progressing.status == "True")
            && reason == Some("NewReplicaSetAvailable");
        let is_available = condition("Available").is_some_and(|available| available.status == "True");
        match counts.ready() {
            Ready::Yes if counts.available < updated => Ready::waiting(
                "Scaling",
                format!("{} of {updated} pods are available", counts.available),
            ),
            Ready::Yes if has_deadline && !is_rolled_out => {
                let message = progressing.and_then(|progressing| progressing.message.clone());
                Ready::waiting(
                    "RollingOut",
                    message.unwrap_or_else(|| "the rollout is not complete".to_owned()),
                )
            }
            Ready::Yes if !is_available => Ready::waiting("Scaling", "the Deployment is not available"),
            ready => ready,
        }
    }
}

/// Pods of a workload.
struct Counts {
    wanted: i32,
    all: i32,
    updated: i32,
    available: i32,
    ready: i32,
}

impl Counts {
    fn ready(&self) -> Ready {
        let Self {
            wanted,
            all,
            updated,
            available,
            ready,
        } = self;
        if ready < wanted && updated >= wanted {
            Ready::waiting("Scaling", format!("{ready} of {wanted} pods are ready"))
        } else if all < wanted {
            Ready::waiting("Scaling", format!("{all} of {wanted} pods exist"))
        } else if updated < wanted {
            Ready::waiting("RollingOut", format!("{updated} of {wanted} pods are updated"))
        } else if available < wanted {
            Ready::waiting("Scaling", format!("{available} of {wanted} pods are available"))
        } else {
            Ready::Yes
        }
    }
}

impl Health for StatefulSet {
    fn ready(&self) -> Ready {
        let (spec, status) = (
            self.spec.clone().unwrap_or_default(),
            self.status.clone().unwrap_or_default(),
        );
        if let Some(outdated) = outdated("StatefulSet", &self.metadata, status.observed_generation) {
            return outdated;
        }
        let strategy = spec.update_strategy.unwrap_or_default();
        // The user deletes pods to update them.
        if strategy.type_.as_deref() == Some("OnDelete") {
            return Ready::Yes;
        }
        let wanted = spec.replicas.unwrap_or(1);
        let ready = status.ready_replicas.unwrap_or(0);
        let (all, updated) = (status.replicas, status.updated_replicas.unwrap_or(0));
        if all < wanted || ready < wanted {
            return Ready::waiting("Scaling", format!("{ready} of {wanted} pods are ready"));
        }
        if all > wanted {
            return Ready::waiting("Scaling", format!("{} pods are being deleted", all - wanted));
        }
        if let Some(partition) = strategy.rolling_update.and_then(|update| update.partition) {
            return match wanted - partition {
                due if updated < due => Ready::waiting("RollingOut", format!("{updated} of {due} pods are updated")),
                _ => Ready::Yes,
            };
        }
        if status.current_replicas.unwrap_or(0) < wanted || status.current_revision != status.update_revision {
            return Ready::waiting("RollingOut", format!("{updated} of {wanted} pods are updated"));
        }
        Ready::Yes
    }
}

impl Health for DaemonSet {
    fn ready(&self) -> Ready {
        let status = self.status.clone().unwrap_or_default();
        if let Some(outdated) = outdated("DaemonSet", &self.metadata, status.observed_generation) {
            return outdated;
        }
        if status.observed_generation.is_none() || self.metadata.generation.is_none() {
            return unobserved("DaemonSet");
        }
        let counts = Counts {
            wanted: status.desired_number_scheduled,
            all: status.current_number_scheduled,
            updated: status.updated_number_scheduled.unwrap_or(0),
            available: status.number_available.unwrap_or(0),
            ready: status.number_ready,
        };
        counts.ready()
    }
}

impl Health for Job {
    /// A running Job is ready, as kstatus has it. Its condition `Complete` tells whether it has finished.
    fn ready(&self) -> Ready {
        if let Some(deleted) = outdated("Job", &self.metadata, None) {
            return deleted;
        }
        let status = self.status.clone().unwrap_or_default();
        let is_true = |kind: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions
                .find(|condition| condition.type_ == kind && condition.status == "True")
                .cloned()
        };
        if let Some(failed) = is_true("Failed") {
            let reason = failed.reason.unwrap_or_else(|| "JobFailed".to_owned());
            return Ready::failed(reason, failed.message.unwrap_or_default());
        }
        if is_true("Complete").is_some() || status.start_time.is_some() {
            return Ready::Yes;
        }
        match is_true("Suspended") {
            Some(_) => Ready::waiting("Suspended", "the Job is suspended"),
            None => Ready::waiting("Pending", "the Job has not started"),
        }
    }
}

impl Health for PersistentVolumeClaim {
    fn ready(&self) -> Ready {
        if let Some(deleted) = outdated("PersistentVolumeClaim", &self.metadata, None) {
            return deleted;
        }
        let phase = self
            .status
            .as_ref()
            .and_then(|status| status.phase.clone())
            .unwrap_or_default();
        match phase.as_str() {
            "Bound" => Ready::Yes,
            "Lost" => Ready::waiting("VolumeLost", "the claim has lost its volume"),
            _ => Ready::waiting("Pending", "the claim is not bound"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// `dev/go-vectors` prints random workloads with the status that kstatus computes.
    #[test]
    fn workloads_are_ready_as_kstatus_computes_it() {
        for line in include_str!("../../tests/readiness.txt").lines() {
            let (status, object) = line.split_once(' ').unwrap();
            let object: Value = serde_json::from_str(object).unwrap();
            fn ready<K: Health + serde::de::DeserializeOwned>(object: &Value) -> Ready {
                serde_json::from_value::<K>(object.clone()).unwrap().ready()
            }
            let ready = match object["kind"].as_str().unwrap() {
                "Deployment" => ready::<Deployment>(&object),
                "StatefulSet" => ready::<StatefulSet>(&object),
                "DaemonSet" => ready::<DaemonSet>(&object),
                "Job" => ready::<Job>(&object),
                _ => ready::<PersistentVolumeClaim>(&object),
            };
            let computed = match ready {
                Ready::Yes => "Current",
                Ready::Failed { .. } => "Failed",
                Ready::Waiting { ref reason, .. } if reason == "Terminating" => "Terminating",
                Ready::Waiting { .. } => "InProgress",
            };
            assert_eq!(computed, status, "{ready:?} {object}");
        }
    }

    fn deployment(status: Value) -> Ready {
        let object = json!({ "metadata": { "generation": 2 }, "spec": { "replicas": 3, "selector": {}, "template": {} }, "status": status });
        serde_json::from_value::<Deployment>(object).unwrap().ready()
    }

    #[test]
    fn a_deployment_is_ready_when_all_pods_are_updated_and_available() {
        let all = json!({ "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "readyReplicas": 3, "conditions": [{ "type": "Available", "status": "True" }] });
        assert_eq!(deployment(all.clone()), Ready::Yes);
        let with = |name: &str, value: i64| {
            let mut status = all.clone();
            status[name] = value.into();
            deployment(status)
        };
        for (name, value) in [
            ("observedGeneration", 1),
            ("replicas", 4),
            ("updatedReplicas", 2),
            ("availableReplicas", 2),
        ] {
            assert!(matches!(with(name, value), Ready::Waiting { .. }), "{name}");
        }
        assert_eq!(
            with("readyReplicas", 1),
            Ready::waiting("Scaling", "1 of 3 pods are ready")
        );
        let mut late = all.clone();
        late["conditions"] =
            json!([{ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded" }]);
        assert!(matches!(deployment(late), Ready::Failed { .. }));
    }

    #[test]
    fn a_stateful_set_is_ready_when_its_revision_is_rolled_out() {
        let set = |strategy: Value, status: Value| {
            let spec = json!({ "replicas": 2, "selector": {}, "serviceName": "a", "template": {}, "updateStrategy": strategy });
            let object = json!({ "metadata": { "generation": 1 }, "spec": spec, "status": status });
            serde_json::from_value::<StatefulSet>(object).unwrap().ready()
        };
        let status = json!({
            "observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 1,
            "currentRevision": "a", "updateRevision": "b",
        });
        assert!(matches!(set(json!({}), status.clone()), Ready::Waiting { .. }));
        assert_eq!(
            set(json!({ "rollingUpdate": { "partition": 1 } }), status.clone()),
            Ready::Yes
        );
        assert_eq!(set(json!({ "type": "OnDelete" }), json!({ "replicas": 0 })), Ready::Yes);
    }

    #[test]
    fn other_kinds_follow_their_status() {
        let daemon: DaemonSet = serde_json::from_value(json!({
            "metadata": { "generation": 1 },
            "status": {
                "observedGeneration": 1, "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberMisscheduled": 0,
                "numberReady": 1, "numberAvailable": 1, "updatedNumberScheduled": 2,
            },
        }))
        .unwrap();
        assert_eq!(daemon.ready(), Ready::waiting("Scaling", "1 of 2 pods are ready"));
        let job = |status: Value| {
            serde_json::from_value::<Job>(json!({ "status": status }))
                .unwrap()
                .ready()
        };
        assert!(matches!(job(json!({})), Ready::Waiting { .. }));
        assert_eq!(job(json!({ "startTime": "2026-01-01T00:00:00Z" })), Ready::Yes);
        let failed =
            json!({ "conditions": [{ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded" }] });
        assert!(matches!(job(failed), Ready::Failed { reason, .. } if reason == "BackoffLimitExceeded"));
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({ "status": { "phase": "Bound" } })).unwrap();
        assert_eq!(claim.ready(), Ready::Yes);
    }
}
