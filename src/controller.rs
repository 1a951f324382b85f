//! Reconciles `Memcached` objects.
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    authentication::v1::TokenReview,
    authorization::v1::SubjectAccessReview,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Pod, Secret, Service},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
};
use kube::{ResourceExt as _, runtime::watcher};
use kube_manager::{
    events::Severity,
    reconcile::{Context, Controller, Error, Grant, Outcome, Reconciler, Scope, State},
    rollout::RolloutBudget,
};
use serde_json::{Value, json};

use crate::{
    api::v1alpha1::{FINALIZER, Memcached, MemcachedSpec, Workload},
    observed::{Endpoints, Observation, Replicas, Server},
    operand,
    resize::{self, Limits},
    status,
};

/// Name of the operator.
pub const NAME: &str = "memcached-operator";

/// Name of the Lease, unless a flag sets another one. Then the Role must name that one.
pub const LEASE: &str = "memcached-operator.cache.example.com";

/// The variable that OLM and image mirroring tools know: the bundle's `relatedImages` are made from it.
pub const RELATED_IMAGE: &str = "RELATED_IMAGE_MEMCACHED";

/// The variable of the tutorials.
pub const IMAGE: &str = "MEMCACHED_IMAGE";

/// The variable with the namespace of the operator.
const NAMESPACE: &str = "POD_NAMESPACE";

/// A larger Memcached is not reconciled: any user can add annotations of 256 KiB. The names of 1,000 pods need up to 65 KiB.
const MAX_MEMCACHED: usize = 80 << 10;

/// The reconciler.
#[derive(Default)]
pub struct MemcachedReconciler(Limits);

/// Declares the controller. At most `max_rolling` objects replace their servers at the same time because of the operator. Objects get
/// the finalizer if `adds_finalizer` is true.
pub fn controller(max_rolling: usize, adds_finalizer: bool) -> Controller<MemcachedReconciler> {
    let servers = watcher::Config::default().labels(operand::SERVERS);
    Controller::new("memcached", MemcachedReconciler::default())
        .owns::<Deployment>("runs the servers")
        .owns::<StatefulSet>("runs servers with names that stay")
        .owns::<Service>("gives the servers their addresses")
        .owns::<PodDisruptionBudget>("keeps all but one of several servers running")
        .owns::<NetworkPolicy>("rejects clients of other namespaces")
        .owns::<ConfigMap>("lists the servers with names that stay")
        .owns::<Secret>("binds applications to these servers, by the Service Binding specification")
        .observes(
            servers.clone(),
            "status.nodes names the pods, the conditions their failures",
            Server::from_pod,
        )
        // The EndpointSlice controller copies the labels of the Service.
        .observes(
            servers,
            "only servers that clients find count as ready",
            Endpoints::from_slice,
        )
        .needs(Grant::of::<Pod>(Scope::Watched, ["patch"], "changes the memory of running servers").on("resize"))
        .gauge(
            "memcached_servers_wanted",
            "Servers that the spec asks for",
            |memcached| Some(f64::from(memcached.spec.size)),
        )
        .gauge("memcached_servers_ready", "Servers that clients can use", |memcached| {
            Some(f64::from(memcached.status.as_ref()?.ready_replicas?))
        })
        .state_gauge(
            "memcached_degraded",
            "Memcacheds whose condition Degraded is True, with its reason",
            "reason",
            status::problem,
        )
        .rollouts(RolloutBudget::new(max_rolling))
        .finalizer(FINALIZER)
        .adds_finalizer(adds_finalizer)
        .object_limit(MAX_MEMCACHED)
}

/// The permissions of the manager: leader election, and the check of clients that read the metrics.
pub fn manager_grants() -> Vec<Grant> {
    let why = "one of several replicas of the operator leads";
    vec![
        Grant::of::<Lease>(Scope::Own, ["create"], why),
        Grant::of::<Lease>(Scope::Own, ["get", "update"], why).named([LEASE]),
        Grant::of::<TokenReview>(
            Scope::Cluster,
            ["create"],
            "authenticates clients that read the metrics",
        ),
        Grant::of::<SubjectAccessReview>(Scope::Cluster, ["create"], "checks that they may read the metrics"),
    ]
}

/// All permissions of the operator.
pub fn grants() -> Vec<Grant> {
    [controller(1, true).grants(), manager_grants()].concat()
}

impl Reconciler for MemcachedReconciler {
    type Object = Memcached;

    async fn reconcile(&self, memcached: &Memcached, context: &Context<Memcached>) -> Result<Outcome, Error> {
        if status::is_paused(memcached) {
            return Ok(Outcome::paused(format!("the annotation {} is true", status::PAUSED)));
        }
        let (image, asked) = (image(memcached, context)?, asked(&memcached.spec));
        let is_set = memcached.spec.workload == Workload::StatefulSet;
        let name = memcached.name_any();
        let kept = resize::keep_memory(memcached, &json!([image, asked]), || match is_set {
            true => Some(context.get::<StatefulSet>(&name)?.spec?.template),
            false => Some(context.get::<Deployment>(&name)?.spec?.template),
        });
        if is_set {
            let set = operand::stateful_set(&kept, &image);
            context.apply_in_turn(set, &asked).await?;
        } else {
            let deployment = operand::deployment(&kept, &image);
            context.apply_in_turn(deployment, &asked).await?;
        }
        context.apply(operand::service(memcached)).await?;
        let warming = match memcached.spec.warm_cache {
            Some(_) => seen(memcached, context).warming(),
            None => 0,
        };
        context
            .apply_if(operand::has_budget(memcached), || operand::budget(memcached, warming))
            .await?;
        if let Some(namespaces) = &memcached.spec.allowed_namespaces {
            let operator = memcached.spec.resizes_in_place().then(|| context.env(NAMESPACE).ok());
            let policy = operand::network_policy(memcached, namespaces, operator.flatten().as_deref());
            context.apply(policy).await?;
        }
        let has_former = match is_set {
            true => context.get::<Deployment>(&name).is_some(),
            false => context.get::<StatefulSet>(&name).is_some(),
        };
        let is_migrating = has_former && seen(memcached, context).is_migrating(memcached);
        // Clients get the stable names when the StatefulSet serves, and lose them when it no longer does.
        let is_published = is_set && !is_migrating;
        context
            .apply_if(is_published, || operand::server_list(memcached))
            .await?;
        context.apply_if(is_published, || operand::binding(memcached)).await?;
        match (is_migrating, memcached.spec.workload) {
            (true, Workload::StatefulSet) => context.keep::<Deployment>(&name),
            (true, Workload::Deployment) => {
                context.keep::<StatefulSet>(&name);
                context.keep::<ConfigMap>(&operand::list_name(memcached));
                context.keep::<Secret>(&operand::binding_name(memcached));
            }
            (false, _) => {}
        }
        self.0.apply(memcached, context).await
    }

    /// Reports the deletion, as in the tutorials. Kubernetes deletes the managed objects by their owner references.
    async fn cleanup(&self, memcached: &Memcached, context: &Context<Memcached>) -> Result<Outcome, Error> {
        let (name, namespace) = (memcached.name_any(), memcached.namespace().unwrap_or_default());
        let report = |state, text: String| context.report(status::deleting(memcached, state, text));
        report(
            State::Unknown,
            format!("Performing finalizer operations for the custom resource: {name} "),
        )
        .await;
        let note = format!("Custom Resource {name} is being deleted from the namespace {namespace}");
        context.event(Severity::Warning, "Deleting", note);
        let done = format!("Finalizer operations for custom resource {name} name were successfully accomplished");
        report(State::True, done).await;
        Ok(Outcome::ready())
    }

    fn report(
        &self,
        memcached: &Memcached,
        context: &Context<Memcached>,
        result: &Result<Outcome, Error>,
    ) -> Option<Outcome> {
        let seen = seen(memcached, context);
        let outcome = status::report(memcached, &seen, result);
        if result.is_ok()
            && let Some((severity, reason, note)) = status::event(memcached, &seen, &outcome)
        {
            context.event(severity, reason, note);
        }
        Some(outcome)
    }
}

/// The children, servers and endpoints of a Memcached.
fn seen(memcached: &Memcached, context: &Context<Memcached>) -> Observation {
    let name = memcached.name_any();
    let deployment = context.get::<Deployment>(&name).map(Replicas::from);
    let set = context.get::<StatefulSet>(&name).map(Replicas::from);
    let (replicas, former) = match memcached.spec.workload {
        Workload::Deployment => (deployment, set),
        Workload::StatefulSet => (set, deployment),
    };
    let list = context.get::<ConfigMap>(&operand::list_name(memcached));
    let list = list.and_then(|list| list.data?.remove("servers")).unwrap_or_default();
    let addresses = list.split(',').filter(|address| !address.is_empty());
    Observation {
        replicas,
        former,
        servers: context.observed::<Server>(),
        endpoints: context.observed::<Endpoints>(),
        addresses: addresses.map(str::to_owned).collect(),
        is_bound: context.get::<Secret>(&operand::binding_name(memcached)).is_some(),
        now: k8s_openapi::jiff::Timestamp::now(),
    }
}

/// The operator's default image of the servers.
pub fn default_image() -> Option<String> {
    let images = [RELATED_IMAGE, IMAGE].map(|name| std::env::var(name).unwrap_or_default().trim().to_owned());
    images.into_iter().find(|image| !image.is_empty())
}

fn image(memcached: &Memcached, context: &Context<Memcached>) -> Result<String, Error> {
    let given = memcached.spec.image.clone().map(Ok);
    let image = given.unwrap_or_else(|| context.env(RELATED_IMAGE).or_else(|_| context.env(IMAGE)));
    let missing = || {
        let message = format!(
            "Unable to find {IMAGE} environment variable with the image, nor {RELATED_IMAGE}: set spec.image, or one of the \
             variables on the operator"
        );
        Error::new("ImageNotSet", message)
    };
    image.map_err(|_| missing())
}

/// The part of the spec that each server follows from. A value at its default counts as not given, so a field that a later version
/// of the operator adds is no change of the user's.
fn asked(spec: &MemcachedSpec) -> Value {
    let default = serde_json::to_value(MemcachedSpec::default()).unwrap_or_default();
    let mut asked = serde_json::to_value(spec).unwrap_or_default();
    if let Some(fields) = asked.as_object_mut() {
        let of_servers =
            |name: &str| !["size", "disruptionBudget", "warmUpSeconds", "allowedNamespaces"].contains(&name);
        fields.retain(|name, value| of_servers(name) && default.get(name) != Some(value));
        if spec.resizes_in_place() {
            fields.remove("memoryLimitMegabytes");
            let maps = spec
                .resources
                .iter()
                .flat_map(|given| [(0, &given.limits), (1, &given.requests)]);
            let entries = maps.flat_map(|(map, given)| given.iter().flatten().map(move |entry| (map, entry)));
            let others: Vec<_> = entries.filter(|(_, (name, _))| *name != "memory").collect();
            fields.insert("resources".to_owned(), json!(others));
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use kube_manager::reconcile::Object;

    use super::*;
    use crate::operand::fixtures::memcached;

    /// The images, and the numbers of Services and budgets, that a reconcile applies.
    async fn applied(spec: Value, variables: &[(&'static str, &str)]) -> Result<(Vec<String>, usize, usize), Error> {
        let object = memcached(&spec);
        let mut context = Context::recording(&object);
        for (name, text) in variables {
            context = context.with_env(name, *text);
        }
        MemcachedReconciler::default().reconcile(&object, &context).await?;
        let deployments = context.applied::<Deployment>().into_iter();
        let pods = deployments.filter_map(|deployment| deployment.spec?.template.spec);
        let images = pods
            .filter_map(|pod| pod.containers.into_iter().next()?.image)
            .collect();
        let (services, budgets) = (context.applied::<Service>(), context.applied::<PodDisruptionBudget>());
        Ok((images, services.len(), budgets.len()))
    }

    #[tokio::test]
    async fn a_memcached_gets_its_objects() {
        let (images, services, budgets) = applied(json!({ "size": 2, "image": "m:1" }), &[]).await.unwrap();
        assert_eq!((images, services, budgets), (vec!["m:1".to_owned()], 1, 1));
        let one = applied(json!({ "size": 1, "image": "m:1" }), &[]).await.unwrap();
        assert_eq!(one.2, 0, "a budget has no effect on one server");
    }

    #[tokio::test]
    async fn the_related_image_comes_first() {
        let image = async |variables: &[(&'static str, &str)]| applied(json!({}), variables).await.map(|found| found.0);
        assert_eq!(image(&[(IMAGE, "a"), (RELATED_IMAGE, "b")]).await.unwrap(), ["b"]);
        assert_eq!(image(&[(IMAGE, "a"), (RELATED_IMAGE, "")]).await.unwrap(), ["a"]);
        let error = image(&[]).await.unwrap_err();
        assert_eq!(error.reason(), "ImageNotSet");
        assert!(error.to_string().contains("RELATED_IMAGE_MEMCACHED"), "{error}");
    }

    #[tokio::test]
    async fn the_policy_admits_the_operator_if_it_changes_memory() {
        let peers = async |spec: Value| {
            let object = memcached(&spec);
            let context = Context::recording(&object)
                .with_env(IMAGE, "m:1")
                .with_env(NAMESPACE, "system");
            MemcachedReconciler::default()
                .reconcile(&object, &context)
                .await
                .unwrap();
            let policy = context.applied::<NetworkPolicy>().remove(0);
            serde_json::to_value(policy.spec.unwrap().ingress).unwrap()
        };
        let shop = peers(json!({ "allowedNamespaces": ["shop"] })).await;
        assert_eq!(shop.pointer("/0/from/1"), None);
        let resizing = peers(json!({ "allowedNamespaces": ["shop"], "warmCache": "ResizeInPlace" })).await;
        assert_eq!(resizing.pointer("/0/from/0"), shop.pointer("/0/from/0"));
        let operator = resizing.pointer("/0/from/1").unwrap();
        assert!(operator["podSelector"]["matchLabels"].is_object(), "{operator}");
    }

    #[tokio::test]
    async fn a_paused_memcached_is_left_alone() {
        let mut object = memcached(&json!({ "image": "m:1" }));
        object.metadata.annotations = Some([(status::PAUSED.to_owned(), "true".to_owned())].into());
        let context = Context::recording(&object);
        let outcome = MemcachedReconciler::default()
            .reconcile(&object, &context)
            .await
            .unwrap();
        assert!(!outcome.is_ready() && context.applied::<Deployment>().is_empty());
    }

    /// Kinds of workload, lists and bindings that a reconcile applies, and those that are deleted after it.
    async fn migrates(object: &Memcached, context: &Context<Memcached>) -> [usize; 6] {
        MemcachedReconciler::default().reconcile(object, context).await.unwrap();
        let applied = |deployments, sets| [deployments, sets].map(usize::from);
        let workloads = applied(
            !context.applied::<Deployment>().is_empty(),
            !context.applied::<StatefulSet>().is_empty(),
        );
        let lists = [context.applied::<ConfigMap>().len(), context.applied::<Secret>().len()];
        let pruned = [
            context.pruned::<Deployment>().len(),
            context.pruned::<StatefulSet>().len(),
        ];
        [workloads, lists, pruned].concat().try_into().unwrap()
    }

    /// A workload of two servers. `serving` of them are ready.
    fn serving<C: Object>(serving: i32) -> C {
        let status = json!({ "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": serving,
            "availableReplicas": serving, "currentRevision": "a", "updateRevision": "a" });
        let template = json!({ "spec": { "containers": [] } });
        let spec = json!({ "replicas": 2, "selector": {}, "serviceName": "sample", "template": template });
        let metadata = json!({ "name": "sample", "namespace": "cache", "generation": 1 });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": status })).unwrap()
    }

    #[tokio::test]
    async fn a_migration_ends_when_clients_find_all_new_servers() {
        let object = memcached(&json!({ "size": 2, "image": "m:1", "workload": "StatefulSet" }));
        let begin = |ready: i32| {
            let context = Context::recording(&object).with(&serving::<Deployment>(2));
            context.with(&serving::<StatefulSet>(ready))
        };
        let server = |name: &str| Server {
            name: name.to_owned(),
            workload: Workload::StatefulSet,
            failure: None,
            memory: None,
        };
        let with_servers = |context: Context<Memcached>, names: &[&str]| {
            let context = context
                .with_observed(server("sample-0"))
                .with_observed(server("sample-1"));
            context.with_observed(Endpoints(names.iter().map(|name| (*name).to_owned()).collect()))
        };
        let waiting = [0, 1, 0, 0, 0, 0];
        assert_eq!(migrates(&object, &begin(1)).await, waiting);
        assert_eq!(
            migrates(&object, &with_servers(begin(2), &["sample-0", "other"])).await,
            waiting
        );
        let done = [0, 1, 1, 1, 1, 0];
        assert_eq!(
            migrates(&object, &with_servers(begin(2), &["sample-0", "sample-1"])).await,
            done
        );
    }

    /// The lists stay as long as the StatefulSet does.
    #[tokio::test]
    async fn a_migration_back_keeps_the_names_until_its_end() {
        let object = memcached(&json!({ "size": 2, "image": "m:1" }));
        let (mut list, mut secret) = (operand::server_list(&object), operand::binding(&object));
        list.metadata.namespace = Some("cache".to_owned());
        secret.metadata.namespace = Some("cache".to_owned());
        let context = Context::recording(&object).with(&serving::<StatefulSet>(2));
        let context = context.with(&list).with(&secret);
        assert_eq!(migrates(&object, &context).await, [1, 0, 0, 0, 0, 0]);
        assert!(context.pruned::<ConfigMap>().is_empty() && context.pruned::<Secret>().is_empty());
        let none = memcached(&json!({ "size": 0, "image": "m:1" }));
        let mut empty = serving::<Deployment>(0);
        empty.spec.as_mut().unwrap().replicas = Some(0);
        empty.status = serde_json::from_value(json!({ "observedGeneration": 1 })).unwrap();
        let context = Context::recording(&none).with(&serving::<StatefulSet>(2)).with(&empty);
        let context = context.with(&list);
        assert_eq!(
            migrates(&none, &context).await,
            [1, 0, 0, 0, 0, 1],
            "no servers to wait for"
        );
        assert_eq!(context.pruned::<ConfigMap>().len(), 1);
    }

    #[test]
    fn the_size_and_defaults_are_no_change_of_the_servers() {
        assert_eq!(
            asked(&memcached(&json!({ "size": 7, "maxConnections": 1024, "disruptionBudget": {} })).spec),
            json!({})
        );
        assert_eq!(
            asked(&memcached(&json!({ "image": "m:1" })).spec),
            json!({ "image": "m:1" })
        );
    }

    #[test]
    fn memory_that_changes_in_place_is_no_change_of_the_servers() {
        let asked = |resources: Value, items: i32| {
            let spec = json!({ "warmCache": "ResizeInPlace", "memoryLimitMegabytes": items, "resources": resources });
            super::asked(&memcached(&spec).spec)
        };
        let memory = json!({ "limits": { "memory": "1Gi" }, "requests": { "memory": "1Gi" } });
        assert_eq!(asked(memory, 128), asked(json!({}), 64));
        let limit = json!({ "limits": { "cpu": "1", "memory": "1Gi" } });
        assert_eq!(asked(limit, 64), asked(json!({ "limits": { "cpu": "1" } }), 64));
        assert_ne!(
            asked(json!({ "requests": { "cpu": "1" } }), 64),
            asked(json!({ "limits": { "cpu": "1" } }), 64)
        );
    }
}
