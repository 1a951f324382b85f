//! Rollouts of several objects take turns.
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams},
};
use kube_manager::{
    Manager, conditions,
    manager::Error as Ended,
    metrics::Metrics,
    options::Options,
    reconcile::{Context, Controller, Error, Outcome, Reconciler, object},
    rollout::RolloutBudget,
    shutdown::CancellationToken,
};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{
    shop::{Shop, ShopSpec},
    world::{Log, World, eventually},
};

/// Runs a Deployment with this image.
struct Pods(&'static str);

impl Reconciler for Pods {
    type Object = Shop;

    async fn reconcile(&self, shop: &Shop, context: &Context<Shop>) -> Result<Outcome, Error> {
        let labels = json!({ "app": shop.name_any() });
        let deployment: Deployment = object(json!({
            "metadata": { "name": shop.name_any() },
            "spec": {
                "replicas": shop.spec.size,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{
                        "name": "shop", "image": self.0,
                        // The API server adds a version that its schema does not contain.
                        "env": [{ "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
                    }] },
                },
            },
        }))?;
        Ok(Outcome::from(&context.apply_in_turn(deployment, &()).await?))
    }
}

/// The images of the Deployments, sorted by name.
async fn images(world: &World) -> Vec<String> {
    let list = world.api::<Deployment>().list(&Default::default()).await.unwrap();
    let image = |deployment: Deployment| {
        deployment.spec.unwrap().template.spec.unwrap().containers[0]
            .image
            .clone()
            .unwrap()
    };
    list.items.into_iter().map(image).collect()
}

/// Simulates the Deployment controller: all pods run.
async fn pods_run(world: &World, name: &str) {
    let deployment = world.api::<Deployment>().get(name).await.unwrap();
    let replicas = deployment.spec.as_ref().unwrap().replicas;
    let status = json!({ "status": {
        "observedGeneration": deployment.metadata.generation, "replicas": replicas, "readyReplicas": replicas,
        "updatedReplicas": replicas, "availableReplicas": replicas, "conditions": [
            { "type": "Available", "status": "True" },
            { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
        ],
    } });
    world
        .api::<Deployment>()
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

/// Runs an operator with this image and a budget of one rollout.
async fn run(world: &World, image: &'static str) -> (JoinHandle<Result<(), Ended>>, CancellationToken, Metrics) {
    let options = Options {
        health_probe_bind_address: None,
        metrics_bind_address: None,
        watch_namespace: world.namespace.parse().unwrap(),
        ..Options::default()
    };
    let stop = CancellationToken::new();
    let builder = Manager::builder("pods")
        .client(world.client.clone())
        .options(options)
        .stop(stop.clone());
    let manager = builder.start().await.unwrap();
    let metrics = manager.metrics().clone();
    let budget = RolloutBudget::new(1).deadline(Duration::from_secs(3600));
    manager.add(
        Controller::new("pods", Pods(image))
            .owns::<Deployment>("runs the shop")
            .rollouts(budget),
    );
    (tokio::spawn(manager.run()), stop, metrics)
}

/// Makes the shops `a` and `b` with an operator that ends afterwards.
async fn two_shops_run(world: &World) {
    let (running, stop, _) = run(world, "shop:1").await;
    for name in ["a", "b"] {
        world.create(name, ShopSpec::default()).await;
        eventually("its Deployment", async || {
            world.api::<Deployment>().get_opt(name).await.unwrap()
        })
        .await;
        pods_run(world, name).await;
        world.is_available(name).await;
    }
    assert_eq!(images(world).await, ["shop:1", "shop:1"], "new objects do not wait");
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// The template that another client has changed spreads pod by pod, so its reversal waits for no slot. The new process cannot tell
/// if the version in the field reference is a default.
#[tokio::test]
async fn a_template_of_another_client_is_reverted_at_once_after_a_restart() {
    let world = World::new("spreading").await;
    two_shops_run(&world).await;
    let deployments = world.api::<Deployment>();
    let foreign =
        json!({ "spec": { "template": { "spec": { "containers": [{ "name": "shop", "image": "other:1" }] } } } });
    let params = PatchParams {
        field_manager: Some("kubectl".to_owned()),
        ..PatchParams::default()
    };
    deployments
        .patch("b", &params, &Patch::Strategic(foreign))
        .await
        .unwrap();
    // Both change their pods: `a` has the only slot.
    for name in ["a", "b"] {
        let generation = deployments.get(name).await.unwrap().metadata.generation;
        let status = json!({ "status": {
            "observedGeneration": generation, "replicas": 2, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
            "conditions": [{ "type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated" }],
        } });
        let params = PatchParams::default();
        deployments
            .patch_status(name, &params, &Patch::Merge(status))
            .await
            .unwrap();
    }
    let (running, stop, _) = run(&world, "shop:1").await;
    eventually("the reversal", async || {
        (images(&world).await == ["shop:1", "shop:1"]).then_some(())
    })
    .await;
    let note = world.event("Reverted").await;
    assert!(note.contains("was other:1; changed by kubectl"), "{note}");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_new_version_rolls_out_object_by_object() {
    let world = World::new("rollouts").await;
    let log = Log::start();
    two_shops_run(&world).await;
    let (running, stop, metrics) = run(&world, "shop:2").await;
    let first = eventually("the first", async || {
        images(&world).await.iter().position(|image| image == "shop:2")
    })
    .await;
    let (first, second) = if first == 0 { ("a", "b") } else { ("b", "a") };
    let queued = async || {
        let shop = world.api::<Shop>().get(second).await.unwrap();
        let found = conditions::get(&shop.status?.conditions, "Progressing")?.clone();
        (found.reason == "RolloutQueued").then_some(())
    };
    eventually("the other one waits", queued).await;
    assert!(
        metrics.render().contains("rollout_queue_length 1"),
        "{}",
        metrics.render()
    );
    let waiting = log.lines("the rollout waits for its turn");
    let is_second = |line: &serde_json::Value| line["span"]["object"] == format!("rollouts/{second}");
    assert!(waiting.iter().any(is_second), "{}", log.text());
    // Other fields need no turn.
    world.set(second, json!({ "size": 2 })).await;
    eventually("two replicas", async || {
        (world.api::<Deployment>().get(second).await.unwrap().spec?.replicas == Some(2)).then_some(())
    })
    .await;
    assert_eq!(
        images(&world).await.iter().filter(|image| *image == "shop:2").count(),
        1
    );
    pods_run(&world, first).await;
    eventually("the second", async || {
        (images(&world).await == ["shop:2", "shop:2"]).then_some(())
    })
    .await;
    pods_run(&world, second).await;
    world.is_available(second).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}
