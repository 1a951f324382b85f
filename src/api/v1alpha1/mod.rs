//! `cache.example.com/v1alpha1`: the kind `Memcached`.
mod rules;
mod settings;
mod status;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use settings::{DisruptionBudget, PodTemplate, Resources, Tls, WarmCache, Workload};
pub use status::{Binding, MemcachedStatus, Phase};

use crate::api::{
    ADVANCED, NUMBER, POD_COUNT, RESOURCE_REQUIREMENTS, SELECT_DEPLOYMENT, SELECT_RESIZE_IN_PLACE, SELECT_STATEFUL_SET,
    SELECT_WARM_RESTART, TEXT, descriptor,
};

/// The finalizer: the operator reports the deletion before the object is removed.
pub const FINALIZER: &str = "cache.example.com/finalizer";

/// `spec.size` when it is not given.
pub const DEFAULT_SIZE: i32 = 1;
/// `spec.containerPort` when it is not given: the port registered for memcached.
pub const DEFAULT_CONTAINER_PORT: i32 = 11211;
/// `spec.memoryLimitMegabytes` when it is not given: memcached's own default.
pub const DEFAULT_MEMORY_LIMIT_MEGABYTES: i32 = 64;
/// `spec.maxConnections` when it is not given: memcached's own default.
pub const DEFAULT_MAX_CONNECTIONS: i32 = 1024;

/// `spec.warmUpSeconds` when it is not given: clients find the new server, and load the keys that they use most.
pub const DEFAULT_WARM_UP_SECONDS: i32 = 10;

/// Desired state of the servers.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cache.example.com",
    version = "v1alpha1",
    kind = "Memcached",
    plural = "memcacheds",
    singular = "memcached",
    shortname = "mc",
    namespaced,
    status = "MemcachedStatus",
    derive = "PartialEq",
    doc = "A set of memcached servers behind one headless Service.",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Size",
        type_ = "integer",
        json_path = ".spec.size",
        description = "Desired number of servers"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Number of ready servers"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "High-level summary of the state"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Reason of the condition Ready"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1,
        description = "Message of the condition Ready"
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".status.image",
        priority = 1,
        description = "Container image that the servers run"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // The name becomes the Service's name and the value of a label, which are narrower than an object's name.
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')")
        .message("metadata.name must be a DNS label that starts with a letter, at most 63 characters: the Service takes the same name"),
    validation = rules::stateful_name()
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-olm-owned" = owned()))]
#[x_kube(validation = rules::memory(), validation = rules::threads(), validation = rules::max_item_size(), validation = rules::warm_cache())]
pub struct MemcachedSpec {
    /// Desired number of memcached servers. 0 stops all servers and keeps the object.
    #[serde(default = "constant::<DEFAULT_SIZE>")]
    #[schemars(range(min = 0), extend("x-olm-descriptor" = descriptor("Size", &[POD_COUNT])))]
    #[x_kube(validation = rules::size())]
    pub size: i32,

    /// TCP port that each server listens on.
    #[serde(default = "constant::<DEFAULT_CONTAINER_PORT>")]
    #[schemars(range(min = 1, max = 65535), extend("x-olm-descriptor" = descriptor("Container Port", &[NUMBER])))]
    pub container_port: i32,

    /// Container image for memcached. Defaults to the image shipped with the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^\S+$"),
        extend("x-olm-descriptor" = descriptor("Image", &[TEXT, ADVANCED]))
    )]
    pub image: Option<String>,

    /// Memory for cached items per server, in MiB (memcached's option -m). The container's memory limit is higher, because memcached also
    /// needs memory for connections and its hash table.
    #[serde(default = "constant::<DEFAULT_MEMORY_LIMIT_MEGABYTES>")]
    #[schemars(range(min = 1), extend("x-olm-descriptor" = descriptor("Memory Limit (MiB)", &[NUMBER])))]
    pub memory_limit_megabytes: i32,

    /// Maximum number of simultaneous connections per server (memcached's option -c).
    #[serde(default = "constant::<DEFAULT_MAX_CONNECTIONS>")]
    #[schemars(range(min = 1), extend("x-olm-descriptor" = descriptor("Maximum Connections", &[NUMBER, ADVANCED])))]
    #[x_kube(validation = rules::max_connections())]
    pub max_connections: i32,

    /// Number of worker threads per server (memcached's option -t). Defaults to memcached's own default, 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64), extend("x-olm-descriptor" = descriptor("Threads", &[NUMBER, ADVANCED])))]
    pub threads: Option<i32>,

    /// Maximum item size, in MiB (memcached's option -I). Defaults to memcached's own default, 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024), extend("x-olm-descriptor" = descriptor("Maximum Item Size (MiB)", &[NUMBER, ADVANCED])))]
    pub max_item_size_megabytes: Option<i32>,

    /// Additional command-line arguments for memcached, such as `-o` and `modern`. Flags that the operator sets are rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 32),
        inner(length(min = 1, max = 256)),
        extend("x-olm-descriptor" = descriptor("Extra Arguments", &[ADVANCED]))
    )]
    #[x_kube(validation = rules::extra_args(), merge_strategy = ListMerge::Atomic)]
    pub extra_args: Option<Vec<String>>,

    /// Compute resources required by each server's container. A memory limit set here overrides the limit that the operator computes from
    /// memoryLimitMegabytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Resources", &[RESOURCE_REQUIREMENTS, ADVANCED])))]
    pub resources: Option<Resources>,

    /// Labels, annotations, scheduling rules and sidecars for the servers' pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Pod Template", &[ADVANCED])))]
    pub pod_template: Option<PodTemplate>,

    /// Kind of workload that runs the servers: Deployment or StatefulSet. With StatefulSet, servers have stable DNS names, which are
    /// published in a ConfigMap, a Secret and status.servers. Changing this field replaces all servers. The old servers stop when all
    /// new servers are ready.
    #[serde(default)]
    #[schemars(extend("x-olm-descriptor" = descriptor("Workload", &[SELECT_DEPLOYMENT, SELECT_STATEFUL_SET])))]
    pub workload: Workload,

    /// Limits the number of servers that voluntary disruptions, such as node drains, stop at the same time. Defaults to one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Disruption Budget", &[ADVANCED])))]
    pub disruption_budget: Option<DisruptionBudget>,

    /// Minimum number of seconds for which a new server must be ready before the operator replaces the next server. Clients fill the new
    /// server during this time, so at most one server's keys are missing.
    #[serde(default = "constant::<DEFAULT_WARM_UP_SECONDS>")]
    #[schemars(range(min = 0, max = 3600), extend("x-olm-descriptor" = descriptor("Warm-up (Seconds)", &[NUMBER, ADVANCED])))]
    pub warm_up_seconds: i32,

    /// Namespaces whose pods can connect to the servers. A NetworkPolicy rejects all other pods. To allow pods in the Memcached's own
    /// namespace, add this namespace to the list. If this field is not set, the operator creates no NetworkPolicy. The cluster's network
    /// plugin must support NetworkPolicy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 256),
        inner(length(max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")),
        extend("x-olm-descriptor" = descriptor("Allowed Namespaces", &[ADVANCED]))
    )]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allowed_namespaces: Option<Vec<String>>,

    /// Kind of change that does not empty the servers: WarmRestart or ResizeInPlace. With WarmRestart, memcached stores its items in a
    /// memory-backed volume, and a graceful container restart keeps them. The image must contain a shell. With ResizeInPlace, changing
    /// memoryLimitMegabytes or the memory in resources restarts no server. ResizeInPlace requires Kubernetes 1.33. If this field is not
    /// set, both changes empty a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Warm Cache", &[SELECT_WARM_RESTART, SELECT_RESIZE_IN_PLACE, ADVANCED])))]
    pub warm_cache: Option<WarmCache>,

    /// TLS settings for all client connections. The image must contain a shell and memcached 1.6.40 or later with TLS support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("TLS", &[ADVANCED])))]
    pub tls: Option<Tls>,
}

impl MemcachedSpec {
    /// Returns true if a change of the memory restarts no server.
    pub fn resizes_in_place(&self) -> bool {
        self.warm_cache == Some(WarmCache::ResizeInPlace)
    }
}

impl Default for MemcachedSpec {
    fn default() -> Self {
        Self {
            size: DEFAULT_SIZE,
            container_port: DEFAULT_CONTAINER_PORT,
            image: None,
            memory_limit_megabytes: DEFAULT_MEMORY_LIMIT_MEGABYTES,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            threads: None,
            max_item_size_megabytes: None,
            extra_args: None,
            resources: None,
            pod_template: None,
            workload: Workload::default(),
            disruption_budget: None,
            warm_up_seconds: DEFAULT_WARM_UP_SECONDS,
            allowed_namespaces: None,
            warm_cache: None,
            tls: None,
        }
    }
}

/// A default, as serde calls it.
fn constant<const VALUE: i32>() -> i32 {
    VALUE
}

/// How the ClusterServiceVersion presents the kind, and which kinds of objects a Memcached consists of.
fn owned() -> Value {
    json!({
        "displayName": "Memcached",
        "description": "A set of memcached servers behind one headless Service.",
        "resources": [
            { "kind": "ConfigMap", "name": "", "version": "v1" },
            { "kind": "Deployment", "name": "", "version": "v1" },
            { "kind": "NetworkPolicy", "name": "", "version": "v1" },
            { "kind": "Pod", "name": "", "version": "v1" },
            { "kind": "PodDisruptionBudget", "name": "", "version": "v1" },
            { "kind": "ReplicaSet", "name": "", "version": "v1" },
            { "kind": "Secret", "name": "", "version": "v1" },
            { "kind": "Service", "name": "", "version": "v1" },
            { "kind": "StatefulSet", "name": "", "version": "v1" },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api;

    #[test]
    fn an_empty_spec_takes_the_defaults() {
        let spec: MemcachedSpec = serde_json::from_value(json!({})).unwrap();
        assert_eq!(spec, MemcachedSpec::default());
    }

    /// Users and other controllers write quantities as numbers too: `cpu: 1`.
    #[test]
    fn quantities_may_be_numbers() {
        let spec: MemcachedSpec = serde_json::from_value(json!({ "resources": { "limits": { "cpu": 1 } } })).unwrap();
        let limits = spec.resources.unwrap().limits.unwrap();
        assert_eq!(limits["cpu"].0, "1");
    }

    /// The derive panics on schemas it cannot make structural and on rules it cannot parse.
    #[test]
    fn the_definition_renders() {
        use kube::CustomResourceExt;
        let definition = Memcached::crd();
        assert_eq!(
            definition.metadata.name.as_deref(),
            Some("memcacheds.cache.example.com")
        );
    }

    #[test]
    fn every_field_carries_a_descriptor() {
        let schema = api::schema::<Memcached>().to_value();
        for part in ["spec", "status"] {
            let fields = schema["properties"][part]["properties"].as_object().unwrap();
            assert!(!fields.is_empty());
            for (name, field) in fields {
                let descriptor = &field[api::DESCRIPTOR];
                assert!(
                    descriptor["displayName"].is_string(),
                    "{part}.{name} has no display name: {field}"
                );
                assert!(
                    field["description"].is_string(),
                    "{part}.{name} has no description: {field}"
                );
            }
        }
        assert_eq!(schema["properties"]["spec"][api::OWNED]["displayName"], "Memcached");
    }
}
