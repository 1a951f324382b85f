//! The Deployment or StatefulSet that runs the servers, their pods, and the budget of their disruptions.
use k8s_openapi::{
    api::{
        apps::v1::{
            Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment, StatefulSet, StatefulSetSpec,
            StatefulSetUpdateStrategy,
        },
        core::v1::{
            Affinity, PodAffinityTerm, PodAntiAffinity, PodSecurityContext, PodSpec, PodTemplateSpec, SeccompProfile,
            TopologySpreadConstraint, WeightedPodAffinityTerm,
        },
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};
use kube::ResourceExt as _;

use super::{
    container::{container, volumes},
    label_selector, labels, metadata, selector,
};
use crate::api::v1alpha1::{Memcached, MemcachedSpec, PodTemplate};

/// A server has this time until it is ready. Pulling memcached's image takes seconds.
const READY_SECONDS: i32 = 110;

/// A rollout that replaces no server for this long is reported as stuck.
pub fn deadline_seconds(spec: &MemcachedSpec) -> i32 {
    READY_SECONDS + spec.warm_up_seconds
}

/// The Deployment of `memcached`, whose servers run `image`.
///
/// It removes an old server before it starts a new one, so there are never more than `size` servers: otherwise clients
/// that resolve the Service would spread their keys over too many.
pub fn deployment(memcached: &Memcached, image: &str) -> Deployment {
    Deployment {
        metadata: metadata(memcached),
        spec: Some(DeploymentSpec {
            replicas: Some(memcached.spec.size),
            min_ready_seconds: Some(memcached.spec.warm_up_seconds),
            progress_deadline_seconds: Some(deadline_seconds(&memcached.spec)),
            selector: label_selector(selector(memcached)),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::Int(0)),
                    max_unavailable: Some(IntOrString::Int(1)),
                }),
            }),
            template: template(memcached, image, "pod-template-hash"),
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

/// The StatefulSet of `memcached`, whose servers run `image`.
///
/// The Service gives each server a DNS name. Servers start and stop at the same time when the size changes, because no server waits for
/// another. A rollout replaces one server at a time.
pub fn stateful_set(memcached: &Memcached, image: &str) -> StatefulSet {
    StatefulSet {
        metadata: metadata(memcached),
        spec: Some(StatefulSetSpec {
            replicas: Some(memcached.spec.size),
            min_ready_seconds: Some(memcached.spec.warm_up_seconds),
            pod_management_policy: Some("Parallel".to_owned()),
            selector: label_selector(selector(memcached)),
            service_name: Some(memcached.name_any()),
            template: template(memcached, image, "controller-revision-hash"),
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                ..StatefulSetUpdateStrategy::default()
            }),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

/// The template of the servers' pods. `revision` is the label with which the workload's controller tells templates apart.
fn template(memcached: &Memcached, image: &str, revision: &str) -> PodTemplateSpec {
    let given = memcached.spec.pod_template.clone().unwrap_or_default();
    let mut pod_labels = given.labels.clone().unwrap_or_default();
    pod_labels.extend(labels(memcached));
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            annotations: given.annotations.clone(),
            labels: Some(pod_labels),
            ..ObjectMeta::default()
        }),
        spec: Some(pod(memcached, image, revision, given)),
    }
}

/// A pod without API access that satisfies the "restricted" Pod Security Standard.
fn pod(memcached: &Memcached, image: &str, revision: &str, given: PodTemplate) -> PodSpec {
    let mut containers = vec![container(&memcached.spec, image)];
    containers.extend(given.sidecars.into_iter().flatten());
    let spread = given.topology_spread_constraints;
    PodSpec {
        affinity: Some(given.affinity.unwrap_or_else(|| one_server_a_node(memcached))),
        automount_service_account_token: Some(false),
        containers,
        enable_service_links: Some(false),
        image_pull_secrets: given.image_pull_secrets,
        node_selector: given.node_selector,
        priority_class_name: given.priority_class_name,
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        service_account_name: given.service_account_name,
        tolerations: given.tolerations,
        topology_spread_constraints: Some(spread.unwrap_or_else(|| vec![over_zones(memcached, revision)])),
        volumes: volumes(&memcached.spec),
        ..PodSpec::default()
    }
}

/// The scheduler prefers nodes with fewer servers of the Memcached, so that a node that fails loses few of them.
fn one_server_a_node(memcached: &Memcached) -> Affinity {
    let term = PodAffinityTerm {
        label_selector: Some(label_selector(selector(memcached))),
        topology_key: "kubernetes.io/hostname".to_owned(),
        ..PodAffinityTerm::default()
    };
    Affinity {
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![WeightedPodAffinityTerm {
                pod_affinity_term: term,
                weight: 50,
            }]),
            ..PodAntiAffinity::default()
        }),
        ..Affinity::default()
    }
}

/// The scheduler prefers zones with fewer servers. It counts only those of the same template, or the servers that a rollout is about
/// to replace would decide where the new ones run.
fn over_zones(memcached: &Memcached, revision: &str) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        label_selector: Some(label_selector(selector(memcached))),
        match_label_keys: Some(vec![revision.to_owned()]),
        max_skew: 1,
        topology_key: "topology.kubernetes.io/zone".to_owned(),
        when_unsatisfiable: "ScheduleAnyway".to_owned(),
        ..TopologySpreadConstraint::default()
    }
}

/// Returns true if the Memcached has a budget. One has no effect on fewer than two servers.
pub fn has_budget(memcached: &Memcached) -> bool {
    let given = memcached.spec.disruption_budget.as_ref();
    memcached.spec.size > 1 && given.is_none_or(|given| given.enabled)
}

/// The budget, which lets voluntary disruptions remove one server at a time, unless the user sets another number.
///
/// Kubernetes counts each ready server as healthy. `warming` servers are ready, but clients still fill them, so the budget counts them as
/// disrupted.
pub fn budget(memcached: &Memcached, warming: i32) -> PodDisruptionBudget {
    let given = memcached.spec.disruption_budget.as_ref();
    let most = given.and_then(|given| given.max_unavailable.clone());
    let most = match most.unwrap_or(IntOrString::Int(1)) {
        IntOrString::Int(most) => IntOrString::Int((most - warming).max(0)),
        IntOrString::String(_) if warming > 0 => IntOrString::Int(0),
        percentage => percentage,
    };
    PodDisruptionBudget {
        metadata: metadata(memcached),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(most),
            // A server that is not ready holds no cache worth protecting, and must not block the drain of its node.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            selector: Some(label_selector(selector(memcached))),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::operand::{MEMCACHED, fixtures::memcached};

    #[test]
    fn deployment_with_defaults() {
        insta::assert_json_snapshot!(deployment(
            &memcached(&json!({ "size": 2 })),
            "docker.io/library/memcached:1.6.39"
        ));
    }

    /// The API server rejects a deadline that is not longer than the warm-up.
    #[test]
    fn the_deadline_follows_the_warm_up() {
        let spec = |seconds| {
            deployment(&memcached(&json!({ "warmUpSeconds": seconds })), "m:1")
                .spec
                .unwrap()
        };
        for seconds in [0, 10, 3600] {
            let spec = spec(seconds);
            assert_eq!(spec.min_ready_seconds, Some(seconds));
            assert!(spec.progress_deadline_seconds > spec.min_ready_seconds);
        }
    }

    #[test]
    fn stateful_set_with_defaults() {
        let mut set =
            serde_json::to_value(stateful_set(&memcached(&json!({ "size": 2 })), "memcached:1.6.39")).unwrap();
        let template = set["spec"]["template"].take();
        insta::assert_json_snapshot!(set);
        // The Deployment's pods differ only in the label of their template.
        let deployment =
            serde_json::to_value(deployment(&memcached(&json!({ "size": 2 })), "memcached:1.6.39")).unwrap();
        let keys = |template: &Value| template["spec"]["topologySpreadConstraints"][0]["matchLabelKeys"].clone();
        let mut other = deployment["spec"]["template"].clone();
        assert_eq!(keys(&template), json!(["controller-revision-hash"]));
        other["spec"]["topologySpreadConstraints"][0]["matchLabelKeys"] = keys(&template);
        assert_eq!(template, other);
    }

    /// Image names are not parsed: ports, digests and missing tags are left to the container runtime.
    #[test]
    fn any_image_name_is_passed_on() {
        for image in [
            "localhost:5000/memcached",
            "localhost:5000/memcached:1.6",
            "memcached",
            "r/m@sha256:0123",
            "r:1/m:2@sha256:0123",
        ] {
            let template = template(&memcached(&json!({})), image, "hash");
            assert_eq!(template.spec.unwrap().containers[0].image.as_deref(), Some(image));
            let labels = template.metadata.unwrap().labels.unwrap();
            assert!(labels.values().all(|value| !value.contains("sha256")));
        }
    }

    #[test]
    fn the_pod_template_adds_to_the_defaults() {
        let given = json!({ "labels": { "team": "shop", "memcached_cr": "other" }, "annotations": { "a": "b" },
            "nodeSelector": { "disk": "none" }, "tolerations": [{ "key": "cache", "operator": "Exists" }],
            "topologySpreadConstraints": [], "affinity": {}, "priorityClassName": "high",
            "imagePullSecrets": [{ "name": "registry" }], "serviceAccountName": "cache" });
        let found = template(&memcached(&json!({ "podTemplate": given })), "memcached:1.6", "hash");
        let found = serde_json::to_value(found).unwrap();
        assert_eq!(found["metadata"]["labels"]["team"], "shop");
        assert_eq!(
            found["metadata"]["labels"]["memcached_cr"], "sample",
            "the selector's labels stay"
        );
        assert_eq!(found["metadata"]["annotations"], given["annotations"]);
        for (name, value) in given.as_object().unwrap() {
            if !["labels", "annotations"].contains(&name.as_str()) {
                assert_eq!(&found["spec"][name], value, "{name}");
            }
        }
        assert_eq!(found["spec"]["automountServiceAccountToken"], false);
    }

    #[test]
    fn sidecars_run_beside_memcached() {
        let sidecar = json!({ "name": "exporter", "image": "exporter:1", "ports": [{ "containerPort": 9150 }] });
        let spec = json!({ "podTemplate": { "sidecars": [sidecar] } });
        let pod = template(&memcached(&spec), "memcached:1.6", "hash").spec.unwrap();
        assert_eq!((pod.containers.len(), pod.containers[0].name.as_str()), (2, MEMCACHED));
        assert_eq!(serde_json::to_value(&pod.containers[1]).unwrap(), sidecar);
    }

    #[test]
    fn one_server_at_a_time() {
        insta::assert_json_snapshot!(budget(&memcached(&json!({ "size": 2 })), 0));
    }

    #[test]
    fn another_number_or_none() {
        let with = |given| memcached(&json!({ "size": 9, "disruptionBudget": given }));
        let most = |given| budget(&with(given), 0).spec.unwrap().max_unavailable.unwrap();
        assert_eq!(
            most(json!({ "maxUnavailable": "25%" })),
            IntOrString::String("25%".to_owned())
        );
        assert_eq!(most(json!({ "maxUnavailable": 2 })), IntOrString::Int(2));
        assert_eq!(most(json!({})), IntOrString::Int(1));
        let warming = |given, warming| budget(&with(given), warming).spec.unwrap().max_unavailable.unwrap();
        assert_eq!(warming(json!({}), 2), IntOrString::Int(0));
        assert_eq!(warming(json!({ "maxUnavailable": 3 }), 2), IntOrString::Int(1));
        assert_eq!(warming(json!({ "maxUnavailable": "25%" }), 1), IntOrString::Int(0));
        assert!(has_budget(&with(json!({}))) && has_budget(&with(json!({ "enabled": true }))));
        assert!(!has_budget(&with(json!({ "enabled": false }))) && !has_budget(&memcached(&json!({ "size": 1 }))));
    }
}
