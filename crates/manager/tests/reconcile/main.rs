//! The reconcile layer with a small kind on a real API server.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod behaviors;
mod conflicts;
mod declaration;
mod reports;
mod rollouts;
mod shop;
mod world;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_manager::conditions;
use kube_testbed::faults::{FaultProxy, Verb};
use serde_json::json;
use shop::{Shop, ShopSpec};
use world::World;

#[tokio::test]
async fn a_settled_object_costs_no_request() {
    let world = World::new("settled").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    running.is_quiet().await;
    let before = running.proxy.count();
    // An irrelevant change of a child wakes the reconciler, a relabeled parent too.
    let note = Patch::Merge(json!({ "metadata": { "annotations": { "note": "a" } } }));
    for round in 0..10 {
        let note = Patch::Merge(json!({ "metadata": { "annotations": { "note": format!("{round}") } } }));
        world
            .api::<ConfigMap>()
            .patch("web", &PatchParams::default(), &note)
            .await
            .unwrap();
    }
    let runs = running.runs();
    world
        .api::<Shop>()
        .patch("web", &PatchParams::default(), &note)
        .await
        .unwrap();
    world::eventually("a reconcile", async || (running.runs() > runs).then_some(())).await;
    running.is_quiet().await;
    let sent: Vec<_> = running.objects_after(before);
    assert!(sent.is_empty(), "{sent:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_change_by_hand_is_reverted_and_reported() {
    let world = World::new("drift").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    running.is_quiet().await;
    let params = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    let change = Patch::Merge(json!({ "data": { "size": "9", "more": "stays" } }));
    world.api::<ConfigMap>().patch("web", &params, &change).await.unwrap();
    let map = world::eventually("the old value", async || {
        let map = world.api::<ConfigMap>().get("web").await.unwrap();
        (map.data.as_ref().unwrap()["size"] == "1").then_some(map)
    })
    .await;
    assert_eq!(map.data.unwrap()["more"], "stays");
    let event = world.event("Reverted").await;
    assert_eq!(
        event,
        "ConfigMap web: .data.size set to 1, was 9; changed by kubectl-edit"
    );
    running.stop().await;
    // After a restart too: the edit is not the operator's own.
    world
        .api::<ConfigMap>()
        .patch("web", &params, &Patch::Merge(json!({ "data": { "size": "7" } })))
        .await
        .unwrap();
    let running = world.operator(1).await;
    world::eventually("its event", async || {
        let events = world.events("Reverted").await;
        events
            .iter()
            .any(|note| note.contains("was 7; changed by kubectl-edit"))
            .then_some(())
    })
    .await;
    running.stop().await;
}

/// If a process has compared the child and found it as desired, only a new wish makes a difference. Otherwise the API server may
/// have another default.
#[tokio::test]
async fn a_dry_run_is_sent_only_for_a_child_that_was_never_as_desired() {
    let world = World::new("rehearsed").await;
    let first = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    first.is_quiet().await;
    first.stop().await;
    let size = async |wanted: &str| {
        world::eventually("the size", async || {
            let map = world.api::<ConfigMap>().get("web").await.unwrap();
            (map.data.unwrap()["size"] == wanted).then_some(())
        })
        .await;
    };
    let dry_runs = |proxy: &FaultProxy| {
        let requests = proxy.requests().into_iter();
        let patches = requests.filter(|request| request.verb == Verb::Patch && request.resource == "configmaps");
        patches.map(|request| request.dry_run).collect::<Vec<_>>()
    };
    let same = world.operator(1).await;
    world::eventually("a reconcile", async || (same.runs() > 0).then_some(())).await;
    same.is_quiet().await;
    assert!(dry_runs(&same.proxy).is_empty(), "it is as desired");
    world.set("web", json!({ "size": 2 })).await;
    size("2").await;
    same.is_quiet().await;
    assert_eq!(dry_runs(&same.proxy), [false]);
    same.stop().await;
    let other = world.operator(3).await;
    size("6").await;
    other.is_quiet().await;
    assert_eq!(dry_runs(&other.proxy), [true, false]);
    other.stop().await;
}

#[tokio::test]
async fn an_object_of_somebody_else_is_left_alone_and_named() {
    let world = World::new("foreign").await;
    let theirs: ConfigMap =
        serde_json::from_value(json!({ "metadata": { "name": "web" }, "data": { "a": "theirs" } })).unwrap();
    world
        .api::<ConfigMap>()
        .create(&PostParams::default(), &theirs)
        .await
        .unwrap();
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    let shop = world.condition("web", "Degraded", "True").await;
    let degraded = conditions::get(&shop.status.as_ref().unwrap().conditions, "Degraded")
        .unwrap()
        .clone();
    assert_eq!(degraded.reason, "NameTaken");
    assert!(
        degraded.message.contains("ConfigMap foreign/web exists"),
        "{}",
        degraded.message
    );
    let map = world.api::<ConfigMap>().get("web").await.unwrap();
    assert_eq!((map.data.clone(), map.owner_references().len()), (theirs.data, 0));
    // The user makes room.
    world
        .api::<ConfigMap>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    world.is_available("web").await;
    assert_eq!(world.event("Recovered").await, "everything is ready");
    running.stop().await;
}

#[tokio::test]
async fn children_that_are_no_longer_applied_are_deleted() {
    let world = World::new("prune").await;
    let running = world.operator(1).await;
    world
        .create(
            "web",
            ShopSpec {
                extra: true,
                ..ShopSpec::default()
            },
        )
        .await;
    world.is_available("web").await;
    let maps = world.api::<ConfigMap>();
    assert!(maps.get_opt("web-extra").await.unwrap().is_some());
    // With the same labels: one without an owner, and one of another owner.
    for (name, owner) in [
        ("loose", json!(null)),
        (
            "owned",
            json!([{ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1", "controller": true }]),
        ),
    ] {
        let labels = maps.get("web-extra").await.unwrap().labels().clone();
        let map =
            serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels, "ownerReferences": owner } }))
                .unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    world.set("web", json!({ "extra": false })).await;
    world.deleted::<ConfigMap>("web-extra").await;
    assert_eq!(world.event("Deleted").await, "ConfigMap web-extra");
    running.is_quiet().await;
    for name in ["web", "loose", "owned"] {
        assert!(maps.get_opt(name).await.unwrap().is_some(), "{name}");
    }
    // A paused object loses nothing.
    world.set("web", json!({ "extra": true })).await;
    world::eventually("it is back", async || maps.get_opt("web-extra").await.unwrap()).await;
    world.set("web", json!({ "extra": false, "paused": true })).await;
    world::eventually("the condition", async || {
        let shop = world.api::<Shop>().get("web").await.unwrap();
        let progressing = conditions::get(&shop.status?.conditions, "Progressing")?.reason.clone();
        (progressing == "Paused").then_some(())
    })
    .await;
    running.is_quiet().await;
    assert!(maps.get_opt("web-extra").await.unwrap().is_some());
    running.stop().await;
}

#[tokio::test]
async fn cleanup_runs_before_the_object_goes() {
    let world = World::new("cleanup").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    let shops = world.api::<Shop>();
    assert_eq!(shops.get("web").await.unwrap().finalizers(), ["example.com/shop"]);
    running.cleanup_waits(true);
    shops.delete("web", &DeleteParams::default()).await.unwrap();
    world::eventually("it waits", async || {
        let shop = shops.get("web").await.unwrap();
        let progressing = conditions::get(&shop.status?.conditions, "Progressing")?.reason.clone();
        (progressing == "Emptying").then_some(())
    })
    .await;
    running.cleanup_waits(false);
    world.deleted::<Shop>("web").await;
    running.stop().await;
}

#[tokio::test]
async fn a_secret_of_the_user_is_read_again_when_it_changes() {
    let world = World::new("secret").await;
    let running = world.operator(1).await;
    world
        .create(
            "web",
            ShopSpec {
                secret: Some("login".to_owned()),
                ..ShopSpec::default()
            },
        )
        .await;
    let shop = world.condition("web", "Degraded", "True").await;
    assert_eq!(
        conditions::get(&shop.status.unwrap().conditions, "Degraded")
            .unwrap()
            .reason,
        "SecretMissing"
    );
    let secret = json!({ "metadata": { "name": "login" }, "stringData": { "password": "one" } });
    let secret: Secret = serde_json::from_value(secret).unwrap();
    world
        .api::<Secret>()
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let length = async || Some(world.api::<ConfigMap>().get_opt("web").await.unwrap()?.data?["password"].clone());
    world::eventually("its length", async || (length().await? == "3").then_some(())).await;
    let longer = Patch::Merge(json!({ "stringData": { "password": "three" } }));
    world
        .api::<Secret>()
        .patch("login", &PatchParams::default(), &longer)
        .await
        .unwrap();
    world::eventually("its new length", async || (length().await? == "5").then_some(())).await;
    running.is_quiet().await;
    let before = running.proxy.count();
    world.set("web", json!({ "size": 2 })).await;
    world::eventually("a change", async || {
        (world.api::<ConfigMap>().get("web").await.unwrap().data?["size"] == "2").then_some(())
    })
    .await;
    let reads = running
        .objects_after(before)
        .into_iter()
        .filter(|request| request.starts_with("Get secrets"));
    assert_eq!(reads.count(), 0, "its content is kept");
    running.stop().await;
}
