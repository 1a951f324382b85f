//! Objects that a controller watches and selects by its declaration.
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::watcher,
};
use kube_manager::{
    ObjectKey,
    reconcile::{Context, Controller, Error, Outcome, Reconciler},
};
use serde_json::{Value, json};

use crate::{
    shop::{Knobs, Shop, ShopSpec},
    world::{Operator, World, eventually},
};

/// Notes the names of the shops that are reconciled.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<String>>>);

impl Names {
    /// The names since the last call, sorted.
    fn take(&self) -> Vec<String> {
        let mut names = std::mem::take(&mut *self.0.lock().unwrap());
        names.sort();
        names.dedup();
        names
    }
}

impl Reconciler for Names {
    type Object = Shop;

    async fn reconcile(&self, shop: &Shop, _: &Context<Shop>) -> Result<Outcome, Error> {
        self.0.lock().unwrap().push(shop.name_any());
        Ok(Outcome::ready())
    }
}

/// Runs a controller that notes names.
async fn run(world: &World, declare: impl FnOnce(Controller<Names>) -> Controller<Names>) -> (Operator, Names) {
    let names = Names::default();
    let controller = declare(Controller::new("names", names.clone()).without_status());
    let proxy = world.proxy().await;
    let running = world.run("names", proxy, Knobs::default(), controller).await;
    (running, names)
}

/// Waits until these shops have been reconciled, and no others.
async fn reconciled(running: &Operator, names: &Names, expected: &[&str]) {
    let mut seen = Vec::new();
    eventually(&format!("reconciles of {expected:?}"), async || {
        seen.extend(names.take());
        expected
            .iter()
            .all(|name| seen.iter().any(|known| known == name))
            .then_some(())
    })
    .await;
    running.is_quiet().await;
    seen.extend(names.take());
    seen.sort();
    seen.dedup();
    assert_eq!(seen, expected);
}

/// The shops that a ConfigMap names.
fn named(map: &ConfigMap) -> Vec<ObjectKey> {
    let data = map.data.iter().flatten();
    let key = |(_, name): (&String, &String)| ObjectKey::new(map.namespace().unwrap(), name.clone());
    data.map(key).collect()
}

async fn create_map(world: &World, name: &str, labels: Value, data: Value) {
    let map = json!({ "metadata": { "name": name, "labels": labels }, "data": data });
    let map = serde_json::from_value(map).unwrap();
    let maps = world.api::<ConfigMap>();
    maps.create(&PostParams::default(), &map).await.unwrap();
}

async fn patch<K>(world: &World, name: &str, patch: Value)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + serde::de::DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let params = PatchParams::default();
    world
        .api::<K>()
        .patch(name, &params, &Patch::Merge(patch))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_watched_object_wakes_the_objects_that_it_names_and_named() {
    let world = World::new("watches").await;
    let (running, names) = run(&world, |controller| controller.watches("names shops", named)).await;
    for name in ["a", "b", "c"] {
        world.create(name, ShopSpec::default()).await;
    }
    reconciled(&running, &names, &["a", "b", "c"]).await;
    create_map(&world, "map", json!({}), json!({ "shop": "a" })).await;
    reconciled(&running, &names, &["a"]).await;
    patch::<ConfigMap>(&world, "map", json!({ "data": { "shop": "b" } })).await;
    reconciled(&running, &names, &["a", "b"]).await;
    let maps = world.api::<ConfigMap>();
    maps.delete("map", &DeleteParams::default()).await.unwrap();
    reconciled(&running, &names, &["b"]).await;
    running.stop().await;
}

/// An object that loses the label counts as deleted.
#[tokio::test]
async fn of_watched_objects_only_the_selected_ones_wake() {
    let world = World::new("watches-selecting").await;
    let seen = Names::default();
    let sees = seen.clone();
    let note_and_map = move |map: &ConfigMap| {
        sees.0.lock().unwrap().push(map.name_any());
        named(map)
    };
    let (running, names) = run(&world, |controller| {
        let labeled = watcher::Config::default().labels("shops=yes");
        controller.watches_selecting(labeled, "names shops", note_and_map)
    })
    .await;
    world.create("a", ShopSpec::default()).await;
    world.create("b", ShopSpec::default()).await;
    reconciled(&running, &names, &["a", "b"]).await;
    create_map(&world, "other", json!({ "shops": "no" }), json!({ "shop": "a" })).await;
    create_map(&world, "labeled", json!({ "shops": "yes" }), json!({ "shop": "b" })).await;
    reconciled(&running, &names, &["b"]).await;
    assert_eq!(seen.take(), ["labeled"], "the API server selects");
    patch::<ConfigMap>(&world, "other", json!({ "metadata": { "labels": { "shops": "yes" } } })).await;
    reconciled(&running, &names, &["a"]).await;
    patch::<ConfigMap>(&world, "labeled", json!({ "metadata": { "labels": null } })).await;
    reconciled(&running, &names, &["b"]).await;
    running.stop().await;
}

#[tokio::test]
async fn only_relevant_changes_wake() {
    let world = World::new("when").await;
    let (running, names) = run(&world, |controller| {
        controller.when(|change| {
            let size = |shop: &Option<Arc<Shop>>| shop.as_ref().map(|shop| shop.spec.size);
            size(&change.before) != size(&change.after)
        })
    })
    .await;
    world.create("a", ShopSpec::default()).await;
    reconciled(&running, &names, &["a"]).await;
    // By default these would wake.
    world.set("a", json!({ "label": "new" })).await;
    patch::<Shop>(&world, "a", json!({ "metadata": { "labels": { "a": "b" } } })).await;
    reconciled(&running, &names, &[]).await;
    world.set("a", json!({ "size": 2 })).await;
    reconciled(&running, &names, &["a"]).await;
    running.stop().await;
}

#[tokio::test]
async fn only_selected_objects_are_reconciled() {
    let world = World::new("selecting").await;
    let (running, names) = run(&world, |controller| {
        controller.selecting(watcher::Config::default().labels("tier=gold"))
    })
    .await;
    world.create("plain", ShopSpec::default()).await;
    let gold = json!({ "metadata": { "labels": { "tier": "gold" } } });
    world.create("other", ShopSpec::default()).await;
    patch::<Shop>(&world, "other", gold.clone()).await;
    reconciled(&running, &names, &["other"]).await;
    world.set("plain", json!({ "size": 2 })).await;
    reconciled(&running, &names, &[]).await;
    patch::<Shop>(&world, "plain", gold).await;
    reconciled(&running, &names, &["plain"]).await;
    patch::<Shop>(&world, "plain", json!({ "metadata": { "labels": null } })).await;
    world.set("plain", json!({ "size": 3 })).await;
    reconciled(&running, &names, &[]).await;
    running.stop().await;
}
