//! Logs of pods as evidence of causes.

use serde_json::Value;

use super::client::Cluster;
use crate::base::cause::{Cause, Code};
use crate::base::json::text;
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;

/// Adds the last log lines of the pods that the causes name. A log that cannot be read is skipped.
pub async fn with_logs(cluster: &Cluster, causes: Vec<Cause>) -> Vec<Cause> {
    let mut complete = Vec::with_capacity(causes.len());
    for mut cause in causes {
        let pod = cause.object.clone().filter(|object| object.kind == kinds::pod());
        let wanted = matches!(
            cause.code,
            Code::OperatorCrashLoop | Code::CatalogPodCrash | Code::UnpackFailed | Code::OperatorNotReady
        );
        if let (Some(pod), true) = (pod, wanted) {
            cause = cause.evidence(log_lines(cluster, &pod).await);
            if cause.evidence.iter().any(|line| {
                line.contains("is larger than") || line.contains("exceeds the limit") || line.contains("max allowed")
            }) && cause.code == Code::UnpackFailed
            {
                cause.code = Code::UnpackTooLarge;
                cause.remedy = "make the bundle smaller: compressed, its manifests must fit into 1 MiB; shorten descriptions in CRD schemas".into();
            }
        }
        complete.push(cause);
    }
    complete
}

/// The last log lines of a pod's containers, of the previous instance if the container restarted.
async fn log_lines(cluster: &Cluster, pod: &ObjectRef) -> Vec<String> {
    let namespace = pod.namespace.as_deref().unwrap_or_default();
    let Ok(Some(value)) = cluster.get(pod).await else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for list in ["/status/initContainerStatuses", "/status/containerStatuses"] {
        for status in value.pointer(list).and_then(Value::as_array).into_iter().flatten() {
            let name = text(status, "/name");
            let restarted = status.get("restartCount").and_then(Value::as_i64).unwrap_or(0) > 0;
            let failed = status
                .pointer("/state/terminated/exitCode")
                .and_then(Value::as_i64)
                .is_some_and(|code| code != 0);
            if status.get("ready") == Some(&Value::Bool(true))
                || !(restarted || failed || status.pointer("/state/running").is_some())
            {
                continue;
            }
            let mut tail = cluster.log_tail(namespace, &pod.name, name, restarted, 10).await;
            if tail.is_err() && restarted {
                tail = cluster.log_tail(namespace, &pod.name, name, false, 10).await;
            }
            lines.extend(
                tail.unwrap_or_default()
                    .into_iter()
                    .map(|line| format!("log of {name}: {line}")),
            );
        }
    }
    lines
}
