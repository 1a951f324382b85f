//! The ports of a pod that a Service can have as targets.

use serde_json::Value;

/// The TCP ports of a pod's containers. A Service ignores the ports of init containers that end before the others start, and
/// sidecars are the init containers that do not.
pub fn target_ports(pod: &Value) -> impl Iterator<Item = &Value> {
    let sidecars = items(pod, "initContainers").filter(|container| text(container, "restartPolicy") == "Always");
    items(pod, "containers")
        .chain(sidecars)
        .flat_map(|container| items(container, "ports"))
        .filter(|port| matches!(text(port, "protocol"), "" | "TCP"))
}

fn items<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_sidecars_are_targets_and_ports_of_other_init_containers_are_not() {
        let ports = |number: u16| serde_json::json!([{"containerPort": number}]);
        let pod = serde_json::json!({
            "initContainers": [
                {"name": "first", "ports": ports(1)},
                {"name": "sidecar", "restartPolicy": "Always", "ports": ports(2)},
            ],
            "containers": [{"name": "main", "ports": [
                {"containerPort": 3},
                {"containerPort": 4, "protocol": "UDP"},
                {"containerPort": 5, "protocol": "TCP"},
            ]}],
        });
        let found: Vec<_> = target_ports(&pod)
            .filter_map(|port| port["containerPort"].as_u64())
            .collect();
        assert_eq!(found, [3, 5, 2]);
    }
}
