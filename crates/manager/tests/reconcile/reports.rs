//! Further situations from public reports about controller-runtime, Java Operator SDK, kopf and kube-rs.
use std::time::Duration;

use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, Secret},
    rbac::v1::RoleBinding,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_manager::{
    conditions,
    reconcile::{Context, Controller, Error, Outcome, Reconciler, object},
};
use kube_testbed::faults::{Fault, Rule, Verb};
use serde_json::{Value, json};

use crate::{
    behaviors::writes,
    shop::{Knobs, Shop, ShopSpec},
    world::{Log, World, eventually},
};

fn by(manager: &str) -> PatchParams {
    PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    }
}

async fn change_map(world: &World, name: &str, patch: Value) {
    let maps = world.api::<ConfigMap>();
    maps.patch(name, &by("kubectl-edit"), &Patch::Merge(patch))
        .await
        .unwrap();
}

/// A watch that selects by a label loses sight of a child without it.
#[tokio::test]
async fn a_child_that_lost_its_label_gets_it_back() {
    let world = World::new("unlabeled").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    running.is_quiet().await;
    let maps = world.api::<ConfigMap>();
    let uid = maps.get("web").await.unwrap().uid();
    change_map(
        &world,
        "web",
        json!({ "metadata": { "labels": null }, "data": { "size": "7" } }),
    )
    .await;
    let map = eventually("label and size", async || {
        let map = maps.get("web").await.unwrap();
        (map.labels().contains_key("app.kubernetes.io/managed-by") && map.data.as_ref()?["size"] == "1").then_some(map)
    })
    .await;
    assert_eq!(map.uid(), uid);
    running.is_quiet().await;
    assert_eq!(world.events("Created").await, ["ConfigMap web"], "it was created once");
    // It is watched again.
    change_map(&world, "web", json!({ "data": { "size": "8" } })).await;
    eventually("the size again", async || {
        (maps.get("web").await.unwrap().data?["size"] == "1").then_some(())
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn a_finalizer_that_a_user_removed_is_added_again() {
    let world = World::new("unfinalized").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    let shops = world.api::<Shop>();
    let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    shops.patch("web", &PatchParams::default(), &none).await.unwrap();
    eventually("the finalizer", async || {
        (shops.get("web").await.unwrap().finalizers() == ["example.com/shop"]).then_some(())
    })
    .await;
    running.stop().await;
}

/// Generation and spec of the new object are those of the old one. Its children still have the old owner.
#[tokio::test]
async fn an_object_that_was_made_again_during_an_outage_is_reconciled() {
    let world = World::new("reborn").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    running.is_quiet().await;
    let outage = || Rule::new(Fault::status(503)).resource("shops");
    running.proxy.add(outage().verb(Verb::Watch).verb(Verb::List));
    running.proxy.expire_watches();
    let shops = world.api::<Shop>();
    let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    shops.patch("web", &PatchParams::default(), &none).await.unwrap();
    shops.delete("web", &DeleteParams::default()).await.unwrap();
    world.create("web", ShopSpec::default()).await;
    let uid = shops.get("web").await.unwrap().uid();
    running.proxy.clear();
    world.is_available("web").await;
    let owners = world
        .api::<ConfigMap>()
        .get("web")
        .await
        .unwrap()
        .owner_references()
        .to_vec();
    assert_eq!(owners.len(), 1);
    assert_eq!(Some(&owners[0].uid), uid.as_ref());
    running.stop().await;
}

#[tokio::test]
async fn new_lists_of_settled_objects_write_nothing() {
    let world = World::new("relisted").await;
    let running = world.operator(1).await;
    world
        .create(
            "web",
            ShopSpec {
                extra: true,
                bytes: 10,
                ..ShopSpec::default()
            },
        )
        .await;
    world.is_available("web").await;
    running.is_quiet().await;
    let known = running.proxy.count();
    for _ in 0..3 {
        running.proxy.expire_watches();
        running.is_quiet().await;
    }
    assert_eq!(running.objects_after(known), Vec::<String>::new());
    running.stop().await;
}

#[tokio::test]
async fn a_failed_reconcile_deletes_no_child() {
    let world = World::new("failing").await;
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
    world.set("web", json!({ "extra": false, "secret": "missing" })).await;
    world.condition("web", "Degraded", "True").await;
    running.is_quiet().await;
    let extra = async || world.api::<ConfigMap>().get_opt("web-extra").await.unwrap();
    assert!(extra().await.is_some());
    let secret = json!({ "metadata": { "name": "missing" }, "stringData": { "password": "x" } });
    let secret: Secret = serde_json::from_value(secret).unwrap();
    world
        .api::<Secret>()
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    eventually("it is deleted", async || extra().await.is_none().then_some(())).await;
    // The user's Secret is lost again.
    world
        .api::<Secret>()
        .delete("missing", &DeleteParams::default())
        .await
        .unwrap();
    world.condition("web", "Degraded", "True").await;
    running.stop().await;
}

/// The child has another client's finalizer, so it stays after its deletion.
#[tokio::test]
async fn a_child_is_deleted_once() {
    let world = World::new("lingering").await;
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
    change_map(
        &world,
        "web-extra",
        json!({ "metadata": { "finalizers": ["example.com/hold"] } }),
    )
    .await;
    running.is_quiet().await;
    let known = running.proxy.count();
    world.set("web", json!({ "extra": false })).await;
    for round in 0..10 {
        world.set("web", json!({ "size": round + 2 })).await;
        eventually("the size", async || {
            (world.api::<ConfigMap>().get("web").await.unwrap().data?["size"] == (round + 2).to_string()).then_some(())
        })
        .await;
    }
    running.is_quiet().await;
    let deletes = writes(&running, known, "configmaps")
        .into_iter()
        .filter(|write| write.starts_with("Delete"));
    assert_eq!(deletes.count(), 1);
    // It is desired again, and created after the old one was deleted.
    world.set("web", json!({ "extra": true })).await;
    let shop = world.condition("web", "Progressing", "True").await;
    let found = conditions::get(&shop.status.unwrap().conditions, "Progressing")
        .unwrap()
        .clone();
    assert_eq!(found.reason, "DeletionPending");
    change_map(&world, "web-extra", json!({ "metadata": { "finalizers": null } })).await;
    eventually("another one", async || {
        let map = world.api::<ConfigMap>().get_opt("web-extra").await.unwrap()?;
        map.metadata.deletion_timestamp.is_none().then_some(())
    })
    .await;
    running.stop().await;
}

/// Objects cannot be created in it any more.
#[tokio::test]
async fn a_child_in_a_terminating_namespace_is_not_created_again_and_again() {
    let world = World::new("ending").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    running.is_quiet().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces.delete("ending", &DeleteParams::default()).await.unwrap();
    let known = running.proxy.count();
    world
        .api::<ConfigMap>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    world.condition("web", "Degraded", "True").await;
    running.is_quiet().await;
    let sent = writes(&running, known, "configmaps");
    assert_eq!(sent.len(), 1, "{sent:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_status_that_a_user_removed_or_changed_is_written_again() {
    let world = World::new("status").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    let before = world.is_available("web").await.status.unwrap();
    running.is_quiet().await;
    let shops = world.api::<Shop>();
    for status in [json!({ "size": 77, "observedGeneration": 9 }), Value::Null] {
        let patch = Patch::Merge(json!({ "status": status }));
        shops.patch_status("web", &by("kubectl-edit"), &patch).await.unwrap();
        let after = eventually("the status", async || {
            let status = shops.get("web").await.unwrap().status?;
            (status.size == before.size && status.observed_generation == before.observed_generation).then_some(status)
        })
        .await;
        assert_eq!(after.conditions.len(), before.conditions.len());
        running.is_quiet().await;
    }
    running.stop().await;
}

#[tokio::test]
async fn children_that_are_created_together_are_one_event() {
    let world = World::new("created").await;
    let running = world.operator(1).await;
    let spec = ShopSpec {
        bytes: 10,
        ..ShopSpec::default()
    };
    world.create("web", spec).await;
    world.is_available("web").await;
    running.is_quiet().await;
    assert_eq!(world.events("Created").await, ["Secret web-login, ConfigMap web"]);
    world.set("web", json!({ "extra": true })).await;
    let maps = world.api::<ConfigMap>();
    eventually("the second map", async || maps.get_opt("web-extra").await.unwrap()).await;
    running.is_quiet().await;
    let mut events = world.events("Created").await;
    events.sort();
    assert_eq!(events, ["ConfigMap web-extra", "Secret web-login, ConfigMap web"]);
    running.stop().await;
}

/// Conflicts and short failures of the API server are no news for users.
#[tokio::test]
async fn short_failures_are_tried_again_without_a_warning() {
    let world = World::new("short").await;
    let proxy = world.proxy().await;
    for (code, verb, resource) in [
        (409, Verb::Patch, "shops"),
        (500, Verb::Patch, "shops/status"),
        (409, Verb::Patch, "configmaps"),
        (504, Verb::Create, "secrets"),
    ] {
        proxy.add(Rule::new(Fault::status(code)).verb(verb).resource(resource).times(1));
    }
    proxy.add(
        Rule::new(Fault::busy(1))
            .verb(Verb::Create)
            .resource("secrets")
            .times(1),
    );
    let running = world.operator_through(1, "shops", proxy).await;
    world
        .create(
            "web",
            ShopSpec {
                bytes: 10,
                ..ShopSpec::default()
            },
        )
        .await;
    world.is_available("web").await;
    running.is_quiet().await;
    assert_eq!(world.events("Failed").await, Vec::<String>::new());
    assert_eq!(world.events("Created").await.len(), 2);
    running.stop().await;
}

/// Neither of both may delete the children of the other.
#[tokio::test]
async fn two_controllers_of_one_kind_keep_their_children_apart() {
    use kube_manager::{Manager, options::Options, shutdown::CancellationToken};
    struct Maps(&'static str);
    impl Reconciler for Maps {
        type Object = Shop;
        async fn reconcile(&self, shop: &Shop, context: &Context<Shop>) -> Result<Outcome, Error> {
            let name = format!("{}-{}", shop.name_any(), self.0);
            context
                .apply::<ConfigMap>(object(json!({ "metadata": { "name": name } }))?)
                .await?;
            Ok(Outcome::ready())
        }
    }
    let world = World::new("pair").await;
    let options = Options {
        health_probe_bind_address: None,
        metrics_bind_address: None,
        watch_namespace: "pair".parse().unwrap(),
        ..Options::default()
    };
    let stop = CancellationToken::new();
    let started = async |managers: [&'static str; 2]| {
        let builder = Manager::builder("pair").client(world.client.clone());
        let manager = builder
            .options(options.clone())
            .stop(stop.clone())
            .start()
            .await
            .unwrap();
        for (name, field_manager) in ["one", "two"].into_iter().zip(managers) {
            let controller = Controller::new(name, Maps(name))
                .owns::<ConfigMap>("files")
                .without_status();
            manager.add(controller.field_manager(field_manager));
        }
        manager
    };
    let error = started(["pair", "pair"]).await.run().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "controllers one and two reconcile Shop.example.com with the same field manager pair; give one of them another with `Controller::field_manager`"
    );
    let running = tokio::spawn(started(["pair-one", "pair-two"]).await.run());
    world.create("web", ShopSpec::default()).await;
    let maps = world.api::<ConfigMap>();
    let both = async || {
        let one = maps.get_opt("web-one").await.unwrap()?.uid();
        Some((one, maps.get_opt("web-two").await.unwrap()?.uid()))
    };
    let before = eventually("both", both).await;
    for size in 2..6 {
        world.set("web", json!({ "size": size })).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(both().await.as_ref(), Some(&before));
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// Neither the event nor the log contains the old or the new value of a field in a Secret.
#[tokio::test]
async fn a_reverted_secret_is_reported_without_its_values() {
    const OWN: [&str; 2] = ["correct horse", "Y29ycmVjdCBob3JzZQ=="];
    const OTHER: [&str; 2] = ["battery staple", "YmF0dGVyeSBzdGFwbGU="];
    struct Logins;
    impl Reconciler for Logins {
        type Object = Shop;
        async fn reconcile(&self, shop: &Shop, context: &Context<Shop>) -> Result<Outcome, Error> {
            let login = json!({ "metadata": { "name": shop.name_any() }, "data": { "password": OWN[1] } });
            context.apply::<Secret>(object(login)?).await?;
            Ok(Outcome::ready())
        }
    }
    let world = World::new("logins").await;
    let log = Log::start();
    let controller = Controller::new("logins", Logins).owns::<Secret>("contains the login");
    let running = world
        .run("logins", world.proxy().await, Knobs::default(), controller)
        .await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    running.is_quiet().await;
    let secrets = world.api::<Secret>();
    // The second reversal is a conflict.
    for _ in 0..2 {
        let change = Patch::Merge(json!({ "data": { "password": OTHER[1] } }));
        secrets.patch("web", &by("kubectl-edit"), &change).await.unwrap();
        eventually("the former password", async || {
            let password = secrets.get("web").await.unwrap().data?["password"].clone();
            (password.0 == OWN[0].as_bytes()).then_some(())
        })
        .await;
    }
    let reverted = world.event("Reverted").await;
    assert_eq!(reverted, "Secret web: .data.password; changed by kubectl-edit");
    let conflict = world.event("Conflict").await;
    assert_eq!(conflict, "Secret web: .data.password is also set by kubectl-edit");
    running.stop().await;
    let events = world.api::<k8s_openapi::api::events::v1::Event>();
    let events = events.list(&Default::default()).await.unwrap();
    let shops = world.api::<Shop>().list(&Default::default()).await.unwrap();
    let log = log.text();
    assert!(log.contains("Secret web"), "{log}");
    let published = [json!(events).to_string(), json!(shops.items).to_string(), log];
    for value in OWN.iter().chain(&OTHER) {
        assert!(!published.iter().any(|text| text.contains(value)), "{value}");
    }
}

/// The number of writes in a log line is that of the changes: an apply can leave an object as it was.
#[tokio::test]
async fn log_lines_count_changes() {
    struct Readers;
    impl Reconciler for Readers {
        type Object = Shop;
        async fn reconcile(&self, shop: &Shop, context: &Context<Shop>) -> Result<Outcome, Error> {
            let binding = object(json!({
                "metadata": { "name": shop.name_any() },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
                // The API server fills in the group, which its schema does not contain.
                "subjects": [{ "kind": "User", "name": "reader" }],
            }))?;
            context.apply::<RoleBinding>(binding).await?;
            Ok(Outcome::ready())
        }
    }
    let world = World::new("counted").await;
    let log = Log::start();
    let run = async |proxy| {
        let controller = Controller::new("readers", Readers).owns::<RoleBinding>("lets users read");
        world.run("readers", proxy, Knobs::default(), controller).await
    };
    let counts = || -> Vec<Value> {
        let lines = log.lines("reconciled");
        lines.iter().map(|line| line["writes"].clone()).collect()
    };
    world.create("web", ShopSpec::default()).await;
    let running = run(world.proxy().await).await;
    world.is_available("web").await;
    running.is_quiet().await;
    running.stop().await;
    let total: u64 = counts().iter().filter_map(Value::as_u64).sum();
    assert_eq!(total, 2, "the binding and the status: {:?}", counts());
    let known = counts().len();
    let proxy = world.proxy().await;
    // The dry run fails, so the operator cannot know if the apply would change something.
    let dry_run = Rule::new(Fault::status(400)).verb(Verb::Patch);
    proxy.add(dry_run.resource("rolebindings").times(1));
    let running = run(proxy).await;
    eventually("a reconcile", async || (counts().len() > known).then_some(())).await;
    running.is_quiet().await;
    let sent = writes(&running, 0, "rolebindings");
    assert_eq!(sent, ["Patch rolebindings web 400", "Patch rolebindings web 200"]);
    assert_eq!(counts()[known..], [json!(0)]);
    running.stop().await;
}
