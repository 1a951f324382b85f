//! The memory of servers that change it while they run.
use std::borrow::Cow;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube_manager::drift::fingerprint;
use serde_json::Value;

use crate::api::v1alpha1::Memcached;

/// The annotation of pods that change their memory in place: a fingerprint of everything else that their template follows from, and the
/// memory with which they started.
pub const IN_PLACE: &str = "cache.example.com/resize-in-place";

/// The Memcached from which the pod template follows. While `rest` stays, it has the memory of the `live` template, because a change of the
/// template restarts the servers.
pub fn keep_memory<'m>(
    memcached: &'m Memcached,
    rest: &Value,
    live: impl FnOnce() -> Option<PodTemplateSpec>,
) -> Cow<'m, Memcached> {
    let mut kept = Cow::Borrowed(memcached);
    if memcached.spec.resizes_in_place() {
        let (rest, spec) = (fingerprint(rest), &mut kept.to_mut().spec);
        let recorded = live().and_then(|live| live.metadata?.annotations?.remove(IN_PLACE));
        let former = recorded.and_then(|recorded| serde_json::from_str(recorded.strip_prefix(&rest)?).ok());
        if let Some(former) = former {
            (spec.memory_limit_megabytes, spec.resources) = former;
        }
        let memory = serde_json::json!([spec.memory_limit_megabytes, spec.resources]);
        let pods = spec.pod_template.get_or_insert_default();
        let annotations = pods.annotations.get_or_insert_default();
        annotations.insert(IN_PLACE.to_owned(), format!("{rest}{memory}"));
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operand::{deployment, fixtures::memcached};

    /// The template of a Memcached with this spec and image, when `live` runs.
    fn template(spec: &Value, image: &str, live: Option<&PodTemplateSpec>) -> PodTemplateSpec {
        let mut spec = spec.clone();
        spec["warmCache"] = json!("ResizeInPlace");
        let memcached = memcached(&spec);
        let kept = keep_memory(&memcached, &json!([image]), || live.cloned());
        deployment(&kept, image).spec.unwrap().template
    }

    /// Memcached's option -m, and request and limit of the container.
    fn memory(template: &PodTemplateSpec) -> [String; 3] {
        let template = serde_json::to_value(template).unwrap();
        let container = &template["spec"]["containers"][0];
        let resources = &container["resources"];
        let memory = [
            &container["args"][1],
            &resources["requests"]["memory"],
            &resources["limits"]["memory"],
        ];
        memory.map(|text| text.as_str().unwrap().to_owned())
    }

    #[test]
    fn a_change_of_the_memory_alone_does_not_change_the_template() {
        let first = template(&json!({}), "m:1", None);
        assert_eq!(memory(&first), ["64", "128Mi", "128Mi"]);
        let grown = json!({ "memoryLimitMegabytes": 128, "resources": { "limits": { "memory": "1Gi" } } });
        assert_eq!(template(&grown, "m:1", Some(&first)), first);
        // An edit of the live template is reverted.
        let mut edited = first.clone();
        edited.spec.as_mut().unwrap().containers[0].args.as_mut().unwrap()[1] = "9".to_owned();
        assert_eq!(template(&grown, "m:1", Some(&edited)), first);
    }

    #[test]
    fn another_change_takes_the_memory_along() {
        let grown = json!({ "memoryLimitMegabytes": 1024 });
        let first = template(&json!({}), "m:1", None);
        assert_eq!(
            memory(&template(&grown, "m:2", Some(&first))),
            ["1024", "1328Mi", "1328Mi"]
        );
        let cold = deployment(&memcached(&json!({})), "m:1").spec.unwrap().template;
        assert_eq!(memory(&template(&grown, "m:1", Some(&cold)))[0], "1024");
    }

    #[test]
    fn the_mode_needs_no_shell_and_no_volume() {
        let pod = template(&json!({}), "m:1", None).spec.unwrap();
        let command = pod.containers[0].command.as_deref();
        assert_eq!((pod.volumes, command), (None, Some(&["memcached".to_owned()][..])));
        assert!(
            pod.containers[0].lifecycle.is_some(),
            "a deleted server runs for a moment"
        );
    }
}
