//! The operator against a real control plane.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::time::Duration;

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::StatefulSet,
        batch::v1::CronJob,
        core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Secret, Service},
        networking::v1::NetworkPolicy,
        policy::v1::PodDisruptionBudget,
    },
};
use kube::{
    Api, Client, CustomResourceExt as _, Resource,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use kube_manager::{
    Manager, conditions, manager::Error, options::Options, reconcile::object, shutdown::CancellationToken,
};
use kube_testbed::{
    ControlPlane,
    faults::{FaultProxy, Verb},
};
use serde_json::{Value, json};
use tokio::{sync::OnceCell, task::JoinHandle};
use valkey_operator::{NAME, api::Valkey, controller::controller};

static CONTROL_PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

async fn control_plane() -> &'static ControlPlane {
    let start = async || {
        let plane = ControlPlane::start(kube_testbed::Options::default()).await.unwrap();
        plane.install([Valkey::crd()]).await.unwrap();
        plane
    };
    CONTROL_PLANE.get_or_init(start).await
}

/// A namespace with a running operator.
struct World {
    client: Client,
    namespace: &'static str,
    proxy: FaultProxy,
    stop: CancellationToken,
    running: JoinHandle<Result<(), Error>>,
}

impl World {
    async fn new(namespace: &'static str) -> Self {
        let plane = control_plane().await;
        let client = plane.client().await.unwrap();
        let object = serde_json::from_value(json!({ "metadata": { "name": namespace } })).unwrap();
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        let proxy = plane.faults(1).await.unwrap();
        let options = Options {
            health_probe_bind_address: None,
            metrics_bind_address: None,
            watch_namespace: namespace.parse().unwrap(),
            ..Options::default()
        };
        let stop = CancellationToken::new();
        let operator = proxy.client(plane.kubeconfig()).await.unwrap();
        let manager = Manager::builder(NAME)
            .client(operator)
            .options(options)
            .stop(stop.clone())
            .start()
            .await
            .unwrap();
        manager.add(controller());
        Self {
            client,
            namespace,
            proxy,
            stop,
            running: tokio::spawn(manager.run()),
        }
    }

    fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    async fn create(&self, spec: Value) {
        let mut all = json!({ "storage": "1Gi", "image": "valkey:8" });
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let valkey: Valkey = object(json!({ "metadata": { "name": "web" }, "spec": all })).unwrap();
        self.api().create(&PostParams::default(), &valkey).await.unwrap();
    }

    async fn set(&self, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.api::<Valkey>()
            .patch("web", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Waits until a condition has this status and reason for the newest generation.
    async fn condition(&self, kind: &str, status: &str, reason: &str) {
        eventually(&format!("{kind}={status} {reason}"), async || {
            let valkey = self.api::<Valkey>().get("web").await.unwrap();
            let seen = valkey.status?;
            let found = conditions::get(&seen.conditions, kind)?;
            let current = seen.observed_generation == valkey.metadata.generation;
            (current && found.status == status && found.reason == reason).then_some(())
        })
        .await;
    }

    async fn is_settled(&self) {
        self.condition("Progressing", "False", "Settled").await;
        let mut last = usize::MAX;
        let mut same = 0;
        for _ in 0..600 {
            let now = self.proxy.count();
            same = if now == last { same + 1 } else { 0 };
            if same == 20 {
                return;
            }
            last = now;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it sends requests all the time");
    }

    /// Writes of the operator since the request number `known`, events excluded.
    fn writes_after(&self, known: usize) -> Vec<String> {
        let requests = self.proxy.requests_after(known).into_iter();
        let writes = requests.filter(|request| request.verb.is_write() && request.resource != "events");
        let writes = writes.filter(|request| !request.resource.starts_with("selfsubject"));
        writes
            .map(|request| format!("{:?} {} {}", request.verb, request.resource, request.name))
            .collect()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.running.await.unwrap().unwrap();
    }
}

async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..1200 {
        if let Some(found) = probe().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within a minute: {what}");
}

#[tokio::test]
async fn servers_are_created_scaled_backed_up_and_paused() {
    let world = World::new("life").await;
    world.create(json!({})).await;
    world.condition("Available", "True", "Available").await;
    world.is_settled().await;
    let valkey = world.api::<Valkey>().get("web").await.unwrap();
    let status = valkey.status.unwrap();
    assert_eq!(
        (status.ready_replicas, status.endpoints[0].as_str()),
        (1, "web.life.svc:6379")
    );
    assert!(world.api::<Secret>().get_opt("web-password").await.unwrap().is_some());
    assert!(
        world
            .api::<PodDisruptionBudget>()
            .get_opt("web")
            .await
            .unwrap()
            .is_none()
    );

    world.set(json!({ "replicas": 3, "backupSchedule": "0 1 * * *" })).await;
    eventually("three pods", async || {
        (world.api::<Valkey>().get("web").await.unwrap().status?.ready_replicas == 3).then_some(())
    })
    .await;
    world.is_settled().await;
    assert!(
        world
            .api::<PodDisruptionBudget>()
            .get_opt("web")
            .await
            .unwrap()
            .is_some()
    );
    assert!(world.api::<CronJob>().get_opt("web-backup").await.unwrap().is_some());

    // A settled object costs nothing, whatever irrelevant happens to its children.
    let known = world.proxy.count();
    for round in 0..10 {
        let note = Patch::Merge(json!({ "metadata": { "annotations": { "note": format!("{round}") } } }));
        world
            .api::<StatefulSet>()
            .patch("web", &PatchParams::default(), &note)
            .await
            .unwrap();
    }
    world.is_settled().await;
    let sent = world.proxy.requests_after(known);
    let sent: Vec<_> = sent
        .iter()
        .filter(|request| !matches!(request.verb, Verb::Watch | Verb::List))
        .collect();
    assert!(sent.is_empty(), "{sent:?}");

    world.set(json!({ "replicas": 1, "backupSchedule": null })).await;
    eventually("budget and backup are deleted", async || {
        let budget = world.api::<PodDisruptionBudget>().get_opt("web").await.unwrap();
        let backup = world.api::<CronJob>().get_opt("web-backup").await.unwrap();
        (budget.is_none() && backup.is_none()).then_some(())
    })
    .await;
    world.set(json!({ "paused": true })).await;
    world.condition("Progressing", "False", "Paused").await;
    let known = world.proxy.count();
    world.set(json!({ "replicas": 2 })).await;
    world.condition("Progressing", "False", "Paused").await;
    let writes = world.writes_after(known);
    assert!(
        writes.iter().all(|write| write.starts_with("Patch valkeys/status")),
        "{writes:?}"
    );
    world.stop().await;
}

#[tokio::test]
async fn drift_of_each_kind_is_reverted_with_one_write() {
    let world = World::new("drift").await;
    world
        .create(json!({ "replicas": 2, "backupSchedule": "0 1 * * *" }))
        .await;
    world.condition("Available", "True", "Available").await;
    world.is_settled().await;
    let edits = [
        (
            "configmaps",
            "v1",
            "ConfigMap",
            "web-config",
            json!({ "data": { "valkey.conf": "port 1" } }),
        ),
        (
            "services",
            "v1",
            "Service",
            "web",
            json!({ "spec": { "selector": { "app": "other" } } }),
        ),
        (
            "statefulsets",
            "apps/v1",
            "StatefulSet",
            "web",
            json!({ "spec": { "replicas": 5 } }),
        ),
        (
            "poddisruptionbudgets",
            "policy/v1",
            "PodDisruptionBudget",
            "web",
            json!({ "spec": { "maxUnavailable": 2 } }),
        ),
        (
            "networkpolicies",
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "web",
            json!({ "spec": { "ingress": [] } }),
        ),
        (
            "cronjobs",
            "batch/v1",
            "CronJob",
            "web-backup",
            json!({ "spec": { "schedule": "0 2 * * *" } }),
        ),
    ];
    for (plural, version, kind, name, edit) in edits {
        let (group, short) = version.split_once('/').unwrap_or(("", version));
        let resource = kube::api::ApiResource {
            group: group.to_owned(),
            version: short.to_owned(),
            api_version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), world.namespace, &resource);
        let spec = |object: &DynamicObject| json!([object.data["spec"], object.data["data"]]);
        let before = spec(&api.get(name).await.unwrap());
        let known = world.proxy.count();
        let edited = api
            .patch(name, &PatchParams::default(), &Patch::Merge(edit))
            .await
            .unwrap();
        assert_ne!(spec(&edited), before, "{kind}");
        eventually(&format!("{kind} is as before"), async || {
            (spec(&api.get(name).await.unwrap()) == before).then_some(())
        })
        .await;
        world.is_settled().await;
        let writes = world.writes_after(known);
        let of_child = writes.iter().filter(|write| write.contains(plural)).count();
        assert_eq!(of_child, 1, "{writes:?}");
    }
    // The operator does not revert the generated password, and creates a deleted child again.
    let password = world.api::<Secret>().get("web-password").await.unwrap().data;
    world
        .api::<Service>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the Service", async || {
        world.api::<Service>().get_opt("web").await.unwrap()
    })
    .await;
    assert_eq!(world.api::<Secret>().get("web-password").await.unwrap().data, password);
    world.stop().await;
}

#[tokio::test]
async fn a_given_password_is_used_and_its_change_restarts_the_pods() {
    let world = World::new("password").await;
    world.create(json!({ "passwordSecret": "login" })).await;
    world.condition("Degraded", "True", "PasswordMissing").await;
    let secret: Secret =
        object(json!({ "metadata": { "name": "login" }, "stringData": { "password": "one" } })).unwrap();
    world.api().create(&PostParams::default(), &secret).await.unwrap();
    world.condition("Available", "True", "Available").await;
    world.condition("Degraded", "False", "AsExpected").await;
    assert!(world.api::<Secret>().get_opt("web-password").await.unwrap().is_none());
    let content = async || {
        let set = world.api::<StatefulSet>().get("web").await.unwrap();
        set.spec.unwrap().template.metadata.unwrap().annotations.unwrap()["cache.example.com/content"].clone()
    };
    let before = content().await;
    let change = Patch::Merge(json!({ "stringData": { "password": "two" } }));
    world
        .api::<Secret>()
        .patch("login", &PatchParams::default(), &change)
        .await
        .unwrap();
    eventually("another content", async || (content().await != before).then_some(())).await;
    world.stop().await;
}

#[tokio::test]
async fn a_name_that_is_taken_is_reported_and_left() {
    let world = World::new("taken").await;
    let theirs: NetworkPolicy =
        object(json!({ "metadata": { "name": "web" }, "spec": { "podSelector": {} } })).unwrap();
    let theirs = world.api().create(&PostParams::default(), &theirs).await.unwrap();
    world.create(json!({})).await;
    world.condition("Degraded", "True", "NameTaken").await;
    let policy = world.api::<NetworkPolicy>().get("web").await.unwrap();
    assert_eq!(policy.spec, theirs.spec);
    world.stop().await;
}

#[tokio::test]
async fn volumes_are_deleted_with_the_object() {
    let world = World::new("gone").await;
    world.create(json!({})).await;
    world.condition("Available", "True", "Available").await;
    let claims = world.api::<PersistentVolumeClaim>();
    assert!(claims.get_opt("data-web-0").await.unwrap().is_some());
    world
        .api::<Valkey>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    eventually("all objects are deleted", async || {
        let claim = claims.get_opt("data-web-0").await.unwrap();
        // The claim of a running pod waits for it, with a time of deletion.
        let claim_goes = claim.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some());
        let valkey = world.api::<Valkey>().get_opt("web").await.unwrap();
        let map = world.api::<ConfigMap>().get_opt("web-config").await.unwrap();
        (claim_goes && valkey.is_none() && map.is_none()).then_some(())
    })
    .await;
    world.stop().await;
}
