//! Checks that need several fields, one function for each type, as `pkg/apis/*/validation` of Kubernetes 1.36 has them.

mod access;
mod amount;
mod container;
mod deployment;
mod network;
mod object;
mod pod;
mod scheduling;

use serde_json::{Map, Value};

pub(super) use self::amount::amount;
use super::walk::{Walk, whole};

type Fields = Map<String, Value>;

/// Checks an object of a type.
pub(super) fn check(walk: &mut Walk<'_>, name: &str, map: &Fields) {
    match name {
        "ClusterRole" => access::cluster_role(walk, map),
        "ClusterRoleBinding" => access::cluster_role_binding(walk, map),
        "ConfigMap" => object::config_map(walk, map),
        "DeploymentSpec" => deployment::deployment(walk, map),
        "DeploymentStrategy" => deployment::strategy(walk, map),
        "EnvVar" => container::variable(walk, map),
        "IPBlock" => network::block(walk, map),
        "LabelSelectorRequirement" => scheduling::label_requirement(walk, map),
        "ObjectMeta" => object::metadata(walk, map),
        "NetworkPolicyPeer" => network::peer(walk, map),
        "NetworkPolicyPort" => network::policy_port(walk, map),
        "NodeSelectorRequirement" => scheduling::node_requirement(walk, map),
        "ObjectFieldSelector" => container::field_selector(walk, map),
        "PodDisruptionBudgetSpec" => object::budget(walk, map),
        "PodSpec" => pod::pod(walk, map),
        "PolicyRule" => access::policy_rule(walk, map),
        "PriorityClass" => object::priority_class(walk, map),
        "ResourceFieldSelector" => container::resource_selector(walk, map),
        "ResourceRequirements" => container::resources(walk, map),
        "RollingUpdateDeployment" => deployment::rolling_update(walk, map),
        "SeccompProfile" | "AppArmorProfile" => container::profile(walk, map),
        "Secret" => object::secret(walk, map),
        "SecurityContext" => container::security(walk, map),
        "ServiceSpec" => network::service(walk, map),
        "Subject" => access::subject(walk, map),
        "Toleration" => scheduling::toleration(walk, map),
        "TopologySpreadConstraint" => scheduling::spread(walk, map),
        "Volume" => pod::volume(walk, map),
        "VolumeMount" => container::mount(walk, map),
        "VolumeProjection" => pod::projection(walk, map),
        _ => {}
    }
}

fn text<'v>(map: &'v Fields, key: &str) -> &'v str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(map: &'v Fields, key: &str) -> &'v [Value] {
    map.get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn maps<'v>(map: &'v Fields, key: &str) -> impl Iterator<Item = (usize, &'v Fields)> {
    let items = list(map, key).iter().enumerate();
    items.filter_map(|(index, item)| Some((index, item.as_object()?)))
}

fn object<'v>(map: &'v Fields, key: &str) -> Option<&'v Fields> {
    map.get(key).and_then(Value::as_object)
}

fn number(map: &Fields, key: &str) -> Option<i64> {
    map.get(key).and_then(Value::as_number).and_then(whole)
}

fn flag(map: &Fields, key: &str) -> Option<bool> {
    map.get(key).and_then(Value::as_bool)
}

fn is_set(map: &Fields, key: &str) -> bool {
    map.get(key).is_some_and(|value| !value.is_null())
}
