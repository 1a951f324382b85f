//! The pod template that the Deployment and the StatefulSet share.
use k8s_openapi::{
    api::core::v1::{
        Affinity, Capabilities, Container, ContainerPort, PodAffinityTerm, PodAntiAffinity, PodSecurityContext,
        PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile, SecurityContext, TCPSocketAction,
        TopologySpreadConstraint, WeightedPodAffinityTerm,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

use super::{MEMCACHED, label_selector, labels, process, selector};
use crate::api::v1alpha1::{Memcached, MemcachedSpec, PodTemplate};

/// The user of the servers: any but root works.
const USER: i64 = 1001;

/// A server has this time until it is ready. Pulling memcached's image takes seconds.
const READY_SECONDS: i32 = 110;

/// A server that does not listen this long after its start is restarted.
const START_SECONDS: i32 = 60;

/// Memory besides the items, in MiB: the program, its threads' buffers, the hash table.
const BASE_MEMORY_MEBIBYTES: i64 = 32;
/// Memory for each connection, in KiB: memcached's read and write buffers.
const CONNECTION_MEMORY_KIBIBYTES: i64 = 16;
/// More of it with TLS.
const TLS_MEMORY_KIBIBYTES: i64 = 32;

/// A rollout that replaces no server for this long is reported as stuck.
pub fn deadline_seconds(spec: &MemcachedSpec) -> i32 {
    READY_SECONDS + spec.warm_up_seconds
}

/// The template of the servers' pods. `revision` is the label with which the workload's controller tells templates apart.
pub(super) fn template(memcached: &Memcached, image: &str, revision: &str) -> PodTemplateSpec {
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
        volumes: process::volumes(&memcached.spec),
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

fn container(spec: &MemcachedSpec, image: &str) -> Container {
    Container {
        name: MEMCACHED.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(process::command(spec)),
        args: Some(arguments(spec)),
        ports: Some(vec![ContainerPort {
            name: Some(MEMCACHED.to_owned()),
            container_port: spec.container_port,
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        lifecycle: process::lifecycle(spec),
        liveness_probe: Some(probe(10)),
        readiness_probe: Some(probe(5)),
        // The other probes begin when this one has succeeded, so a new server is ready within a second of its start.
        startup_probe: Some(Probe {
            failure_threshold: Some(START_SECONDS),
            ..probe(1)
        }),
        // Memcached prints why it ends. The status repeats it.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        resources: Some(resources(spec)),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            read_only_root_filesystem: Some(true),
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            ..SecurityContext::default()
        }),
        volume_mounts: process::mounts(spec),
        ..Container::default()
    }
}

/// Options and values are separate arguments: memcached reads `-m=64` for the value "=64".
fn arguments(spec: &MemcachedSpec) -> Vec<String> {
    let item = spec.max_item_size_megabytes.map(|size| format!("{size}m"));
    let options = [
        ("-m", Some(process::memory_mebibytes(spec).to_string())),
        ("-c", Some(spec.max_connections.to_string())),
        ("-p", Some(spec.container_port.to_string())),
        ("-t", spec.threads.map(|threads| threads.to_string())),
        ("-I", item),
    ];
    let given = options
        .into_iter()
        .filter_map(|(option, value)| Some([option.to_owned(), value?]));
    given
        .flatten()
        .chain(process::arguments(spec))
        .chain(spec.extra_args.iter().flatten().cloned())
        .collect()
}

fn probe(period_seconds: i32) -> Probe {
    Probe {
        tcp_socket: Some(TCPSocketAction {
            port: IntOrString::String(MEMCACHED.to_owned()),
            ..TCPSocketAction::default()
        }),
        period_seconds: Some(period_seconds),
        ..Probe::default()
    }
}

/// The container's requests and limits: what the user says, and memory from `memoryLimitMegabytes` where the user says
/// nothing about memory. Request and limit are equal then: a cache uses all of its memory sooner or later.
pub fn resources(spec: &MemcachedSpec) -> ResourceRequirements {
    let given = spec.resources.clone().unwrap_or_default();
    let mut limits = given.limits.unwrap_or_default();
    let mut requests = given.requests.unwrap_or_default();
    let memory = limits
        .entry("memory".to_owned())
        .or_insert_with(|| container_memory(spec))
        .clone();
    requests.entry("memory".to_owned()).or_insert(memory);
    ResourceRequirements {
        limits: Some(limits),
        requests: Some(requests),
        ..ResourceRequirements::default()
    }
}

/// Memory of the container: the items, a quarter of that for the hash table and what slabs waste, the buffers of all
/// connections, and the program.
fn container_memory(spec: &MemcachedSpec) -> Quantity {
    let items = i64::from(spec.memory_limit_megabytes);
    let tls = spec.tls.as_ref().map_or(0, |_| TLS_MEMORY_KIBIBYTES);
    let connections = (i64::from(spec.max_connections) * (CONNECTION_MEMORY_KIBIBYTES + tls) + 1023) / 1024;
    let besides = i64::from(process::memory_mebibytes(spec)) + connections + BASE_MEMORY_MEBIBYTES;
    Quantity(format!("{}Mi", besides + items / 4))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::operand::fixtures::memcached;

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
    fn arguments_follow_the_spec() {
        let given = |spec| arguments(&memcached(&spec).spec).join(" ");
        assert_eq!(given(json!({})), "-m 64 -c 1024 -p 11211");
        let spec = json!({ "threads": 8, "maxItemSizeMegabytes": 2, "extraArgs": ["-o", "modern"] });
        assert_eq!(given(spec), "-m 64 -c 1024 -p 11211 -t 8 -I 2m -o modern");
    }

    #[test]
    fn memory_follows_the_cache_size() {
        let memory = |spec| {
            let resources = resources(&memcached(&spec).spec);
            let text = |map: Option<BTreeMap<String, Quantity>>| map.unwrap()["memory"].0.clone();
            (text(resources.requests), text(resources.limits))
        };
        assert_eq!(memory(json!({})), ("128Mi".into(), "128Mi".into()));
        assert_eq!(
            memory(json!({ "memoryLimitMegabytes": 1024 })),
            ("1328Mi".into(), "1328Mi".into())
        );
        assert_eq!(memory(json!({ "maxConnections": 1 })), ("113Mi".into(), "113Mi".into()));
        assert_eq!(
            memory(json!({ "resources": { "limits": { "memory": "1Gi" } } })),
            ("1Gi".into(), "1Gi".into())
        );
        let tls = json!({ "tls": { "secretName": "cert" } });
        assert_eq!(memory(tls), ("160Mi".into(), "160Mi".into()));
        let both = json!({ "resources": { "limits": { "memory": "1Gi" }, "requests": { "memory": "512Mi" } } });
        assert_eq!(memory(both), ("512Mi".into(), "1Gi".into()));
    }

    #[test]
    fn other_resources_are_the_users() {
        let spec = json!({ "resources": { "limits": { "cpu": "2" }, "requests": { "cpu": "500m" } } });
        let resources = resources(&memcached(&spec).spec);
        assert_eq!(resources.limits.unwrap()["cpu"].0, "2");
        assert_eq!(resources.requests.unwrap()["cpu"].0, "500m");
    }
}
