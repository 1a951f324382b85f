//! Causes in the unpacking of a bundle image.

use k8s_openapi::api::batch::v1::Job;

use crate::base::cause::{Cause, Code, MOST_LISTED};
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::kube::conditions::Conditions as _;
use crate::observe::observation::Observation;
use crate::observe::pods::{Trouble, trouble, warnings};
use olmkit::types::Subscription;

/// The init container that runs in the bundle image. The other containers use OLM's images.
const PULL: &str = "pull";

/// Causes that keep the bundle of a Subscription from being unpacked.
pub fn of_subscription(subscription: &Subscription, seen: &Observation) -> Vec<Cause> {
    let failed = subscription.condition("BundleUnpackFailed");
    if failed.is_none() && subscription.condition("BundleUnpacking").is_none() {
        return Vec::new();
    }
    let jobs = seen.jobs.iter().filter(|job| {
        job.metadata.namespace.as_deref() == Some(&subscription.spec.source_namespace) && !succeeded(job)
    });
    let mut causes: Vec<Cause> = jobs.filter_map(|job| of_job(job, seen)).take(MOST_LISTED).collect();
    if let (Some(condition), true) = (failed, causes.is_empty()) {
        causes.push(
            Cause::lasting(
                Code::UnpackFailed,
                format!("{}: {}", condition.reason, condition.message),
                "correct the bundle image; OLM retries some minutes after the Job is deleted (OLM deletes it after 5 minutes)",
            )
            .on(seen.reference(subscription)),
        );
    }
    causes
}

/// The Jobs of the namespace that failed to unpack a bundle image. OLM does not retry them, even if the CatalogSource
/// now has a Secret for the image.
pub fn unfinished(image: &str, seen: &Observation) -> Vec<ObjectRef> {
    let pulls = |job: &Job| {
        let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        let mut containers = pod.into_iter().flat_map(|pod| pod.init_containers.iter().flatten());
        containers.any(|container| container.name == PULL && container.image.as_deref() == Some(image))
    };
    let jobs = seen
        .jobs
        .iter()
        .filter(|job| job.metadata.namespace.as_deref() == Some(&seen.namespace) && !succeeded(job) && pulls(job));
    jobs.filter_map(|job| job.metadata.name.as_deref())
        .map(|name| ObjectRef::namespaced(kinds::job(), &seen.namespace, name))
        .collect()
}

fn succeeded(job: &Job) -> bool {
    job.is_true("Complete")
}

fn of_job(job: &Job, seen: &Observation) -> Option<Cause> {
    let name = job.metadata.name.as_deref()?;
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    let label = |labels: &Option<std::collections::BTreeMap<String, String>>| {
        labels.as_ref().and_then(|labels| {
            labels
                .get("job-name")
                .or_else(|| labels.get("batch.kubernetes.io/job-name"))
                .cloned()
        })
    };
    let pods: Vec<_> = seen
        .pods
        .iter()
        .filter(|pod| {
            pod.metadata.namespace.as_deref() == Some(namespace) && label(&pod.metadata.labels).as_deref() == Some(name)
        })
        .collect();
    for pod in &pods {
        if let Some(found) = trouble(pod, &seen.events) {
            return Some(of_pod(found));
        }
    }
    // A pod of a Job never restarts: its end shows as the phase.
    let ended = pods.iter().find(|pod| {
        pod.status
            .as_ref()
            .is_some_and(|status| status.phase.as_deref() == Some("Failed"))
    })?;
    let statuses = ended.status.as_ref()?;
    let last = statuses
        .init_container_statuses
        .iter()
        .flatten()
        .chain(statuses.container_statuses.iter().flatten())
        .find(|container| {
            container
                .state
                .as_ref()
                .and_then(|state| state.terminated.as_ref())
                .is_some_and(|end| end.exit_code != 0)
        })?;
    let end = last.state.as_ref()?.terminated.as_ref()?;
    let pod_name = ended.metadata.name.as_deref().unwrap_or_default();
    Some(
        Cause::lasting(
            Code::UnpackFailed,
            format!("container {} of the unpack Job ended with exit code {}: {}", last.name, end.exit_code, end.message.clone().unwrap_or_default()),
            "check the bundle image: olmkit bundle validate IMAGE; manifests/ must be flat, metadata/annotations.yaml present, the image's working directory /",
        )
        .on(ObjectRef::namespaced(kinds::pod(), namespace, pod_name))
        .evidence(warnings(&seen.events, "Pod", pod_name)),
    )
}

fn of_pod(found: crate::observe::pods::PodTrouble) -> Cause {
    let cause = match found.kind {
        Trouble::ImagePull if found.container == PULL => Cause::lasting(
            Code::BundleImagePull,
            format!(
                "the node cannot pull the bundle image {}: {}",
                found.image, found.message
            ),
            "push the bundle image, or correct the reference; nodes use their own registry settings, and the pull secret must be named in the CatalogSource's spec.secrets (--pull-secret-name)",
        ),
        Trouble::ImagePull => Cause::lasting(
            Code::UnpackFailed,
            format!(
                "the node cannot pull {}, which OLM uses to unpack bundles: {}",
                found.image, found.message
            ),
            "give catalog-operator images that the nodes can pull (--opmImage, --util-image)",
        ),
        Trouble::Unschedulable => Cause::passing(
            Code::PodUnschedulable,
            found.message.clone(),
            "free resources on a node, or add a node",
        ),
        _ => Cause::lasting(
            Code::UnpackFailed,
            format!("container {}: {}", found.container, found.message),
            "check the bundle image: olmkit bundle validate IMAGE",
        ),
    };
    cause.on(found.pod).evidence(found.evidence)
}
