//! The behaviors that public reports of other libraries ask for, by their numbers in the shared cases.
use std::time::Duration;

use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    rbac::v1::ClusterRole,
};
use kube::{
    Api, Resource as _, ResourceExt as _,
    api::{ApiResource, DeleteParams, Patch, PatchParams},
};
use kube_manager::{
    apply::{Applier, Change},
    conditions, finalizer, names,
};
use kube_testbed::faults::{Fault, Rule, Verb};
use serde_json::json;

use crate::{
    shop::{Shop, ShopSpec},
    world::{Operator, World, eventually},
};

fn config_maps() -> ApiResource {
    ApiResource::erase::<ConfigMap>(&())
}

/// Waits until the ConfigMap `web` has this size.
async fn has_size(world: &World, size: &str) {
    eventually(&format!("size {size}"), async || {
        (world.api::<ConfigMap>().get_opt("web").await.unwrap()?.data?["size"] == size).then_some(())
    })
    .await;
}

pub fn writes(running: &Operator, known: usize, resource: &str) -> Vec<String> {
    let sent = running.objects_after(known).into_iter();
    sent.filter(|request| !request.starts_with("Get") && request.contains(&format!(" {resource} ")))
        .collect()
}

/// 104: own write comes back late.
#[tokio::test]
async fn an_own_write_is_known_before_its_event() {
    let world = World::new("late").await;
    let proxy = world.proxy().await;
    proxy.add(
        Rule::new(Fault::EventsLate(Duration::from_secs(2)))
            .verb(Verb::Watch)
            .resource("configmaps"),
    );
    let running = world.operator_through(1, "shops", proxy).await;
    world.create("web", ShopSpec::default()).await;
    has_size(&world, "1").await;
    let known = running.proxy.count();
    // Reconciles while the event of the write is on its way.
    for round in 0..5 {
        let label = Patch::Merge(json!({ "metadata": { "labels": { "round": format!("{round}") } } }));
        world
            .api::<Shop>()
            .patch("web", &PatchParams::default(), &label)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    running.is_quiet().await;
    assert_eq!(writes(&running, known, "configmaps"), Vec::<String>::new());
    running.stop().await;
}

/// The event of a write is often faster than its answer.
#[tokio::test]
async fn the_event_of_an_own_write_starts_no_reconcile() {
    let world = World::new("early").await;
    let proxy = world.proxy().await;
    let late = Rule::new(Fault::Late(Duration::from_millis(300)));
    proxy.add(late.verb(Verb::Patch).resource("configmaps"));
    let running = world.operator_through(1, "shops", proxy).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    running.is_quiet().await;
    let runs = running.runs();
    world.set("web", json!({ "size": 2 })).await;
    has_size(&world, "2").await;
    running.is_quiet().await;
    assert_eq!(running.runs(), runs + 1);
    // That of another client does, even if it comes before the answer.
    world.set("web", json!({ "size": 3 })).await;
    has_size(&world, "3").await;
    let other = Patch::Merge(json!({ "data": { "size": "9" } }));
    let maps = world.api::<ConfigMap>();
    maps.patch("web", &PatchParams::default(), &other).await.unwrap();
    has_size(&world, "3").await;
    running.is_quiet().await;
    assert_eq!(running.runs(), runs + 3);
    running.stop().await;
}

/// A deletion with `--cascade=orphan` keeps the children, also if the operator sees their change before the deletion.
#[tokio::test]
async fn an_orphan_is_not_adopted_by_its_former_owner() {
    let world = World::new("orphan").await;
    let proxy = world.proxy().await;
    let running = world.operator_through(1, "shops", proxy).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    running.is_quiet().await;
    let late = Fault::EventsLate(Duration::from_secs(5));
    running.proxy.add(Rule::new(late).verb(Verb::Watch).resource("shops"));
    running.proxy.expire_watches();
    running.is_quiet().await;
    let runs = running.runs();
    let (shops, children) = (world.api::<Shop>(), world.api::<ConfigMap>());
    shops.delete("web", &DeleteParams::orphan()).await.unwrap();
    // As the garbage collector does.
    let params = PatchParams::default();
    let no_owner = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    children.patch("web", &params, &no_owner).await.unwrap();
    eventually("the operator sees the change of the child", async || {
        (running.runs() > runs).then_some(())
    })
    .await;
    let orphaned = Patch::Json::<()>(
        serde_json::from_value(json!([
            { "op": "test", "path": "/metadata/finalizers/1", "value": "orphan" },
            { "op": "remove", "path": "/metadata/finalizers/1" },
        ]))
        .unwrap(),
    );
    shops.patch("web", &params, &orphaned).await.unwrap();
    world.deleted::<Shop>("web").await;
    running.is_quiet().await;
    let child = children.get("web").await.unwrap();
    assert_eq!(child.metadata.owner_references, None);
    running.stop().await;
}

/// 106: two creators of a generated Secret; 128: no copy of a large Secret in an annotation.
#[tokio::test]
async fn two_replicas_agree_on_a_generated_secret() {
    let world = World::new("twice").await;
    let (one, two) = (world.operator(1).await, world.operator(1).await);
    world
        .create(
            "web",
            ShopSpec {
                bytes: 300_000,
                ..ShopSpec::default()
            },
        )
        .await;
    world.is_available("web").await;
    one.is_quiet().await;
    two.is_quiet().await;
    let secret = world.api::<Secret>().get("web-login").await.unwrap();
    assert_eq!(secret.metadata.generation, None);
    let owners = secret.metadata.managed_fields.as_ref().unwrap();
    assert_eq!(owners.len(), 1, "created once and never changed: {owners:?}");
    assert!(secret.annotations().is_empty(), "no annotation has data");
    let map = world.api::<ConfigMap>().get("web").await.unwrap();
    assert_eq!(map.data.unwrap()["login"], "300000 bytes, cached: false");
    let created = |running: &Operator| {
        writes(running, 0, "secrets")
            .iter()
            .filter(|write| write.ends_with("201"))
            .count()
    };
    assert_eq!(created(&one) + created(&two), 1);
    one.stop().await;
    two.stop().await;
}

/// 108: write on every reconcile; 110: fresh transition time in every status.
#[tokio::test]
async fn a_hundred_reconciles_of_a_settled_object_write_nothing() {
    let world = World::new("hundred").await;
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
    let before = world.is_available("web").await;
    running.is_quiet().await;
    let known = running.proxy.count();
    let runs = running.runs();
    for round in 0..100 {
        let label = Patch::Merge(json!({ "metadata": { "labels": { "round": format!("{round}") } } }));
        world
            .api::<Shop>()
            .patch("web", &PatchParams::default(), &label)
            .await
            .unwrap();
        let wanted = runs + round + 1;
        eventually("a reconcile", async || {
            (running.runs() >= wanted.min(runs + 50)).then_some(())
        })
        .await;
    }
    running.is_quiet().await;
    assert_eq!(running.objects_after(known), Vec::<String>::new());
    let after = world.api::<Shop>().get("web").await.unwrap();
    assert_eq!(after.status.unwrap().conditions, before.status.unwrap().conditions);
    running.stop().await;
}

/// 112: edit of a user between the read and the write.
#[tokio::test]
async fn an_edit_during_a_reconcile_survives() {
    let world = World::new("edit").await;
    let applier = Applier::new(world.client.clone(), "op");
    let desired = |size: &str| json!({ "metadata": { "name": "web", "namespace": "edit" }, "data": { "size": size } });
    let first = applier.apply(&config_maps(), desired("1"), None).await.unwrap();
    let note = Patch::Merge(json!({ "metadata": { "annotations": { "note": "mine" } } }));
    world
        .api::<ConfigMap>()
        .patch("web", &PatchParams::default(), &note)
        .await
        .unwrap();
    // With the object as it was before the edit.
    applier
        .apply(&config_maps(), desired("2"), Some(first.object))
        .await
        .unwrap();
    let map = world.api::<ConfigMap>().get("web").await.unwrap();
    assert_eq!(
        (
            map.annotations()["note"].as_str(),
            map.data.as_ref().unwrap()["size"].as_str()
        ),
        ("mine", "2")
    );
}

/// 114: prune forgotten after a failed delete, also after a restart.
#[tokio::test]
async fn a_failed_delete_is_tried_again() {
    let world = World::new("undeleted").await;
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
    running
        .proxy
        .add(Rule::new(Fault::status(403)).verb(Verb::Delete).resource("configmaps"));
    let known = running.proxy.count();
    world.set("web", json!({ "extra": false })).await;
    eventually("a failed delete", async || {
        writes(&running, known, "configmaps")
            .iter()
            .any(|write| write.ends_with("403"))
            .then_some(())
    })
    .await;
    world.condition("web", "Degraded", "True").await;
    running.stop().await;
    assert!(world.api::<ConfigMap>().get_opt("web-extra").await.unwrap().is_some());
    let running = world.operator(1).await;
    world.deleted::<ConfigMap>("web-extra").await;
    running.stop().await;
}

/// An answer 404 that does not name the object is about the kind. The object still exists, and nothing happens to it afterwards.
#[tokio::test]
async fn a_finalizer_is_removed_when_the_kind_is_served_again() {
    let world = World::new("unserved").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    running.is_quiet().await;
    running.proxy.add(
        Rule::new(Fault::status(404))
            .verb(Verb::Patch)
            .resource("shops")
            .times(1),
    );
    world
        .api::<Shop>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    world.deleted::<Shop>("web").await;
    running.stop().await;
}

/// The child still exists, and nothing happens to it afterwards. So no event starts another reconcile.
#[tokio::test]
async fn a_delete_that_conflicts_is_tried_again() {
    let world = World::new("delete-conflict").await;
    let running = world.operator(1).await;
    let with_extra = ShopSpec {
        extra: true,
        ..ShopSpec::default()
    };
    world.create("web", with_extra).await;
    world.is_available("web").await;
    running.is_quiet().await;
    running.proxy.add(
        Rule::new(Fault::status(409))
            .verb(Verb::Delete)
            .resource("configmaps")
            .times(1),
    );
    let known = running.proxy.count();
    world.set("web", json!({ "extra": false })).await;
    world.deleted::<ConfigMap>("web-extra").await;
    let deletes = writes(&running, known, "configmaps");
    assert_eq!(
        deletes,
        ["Delete configmaps web-extra 409", "Delete configmaps web-extra 200"]
    );
    world.condition("web", "Degraded", "False").await;
    running.stop().await;
}

/// The API server's own 404 names the child. The watch is late, so the operator deletes what another client has deleted.
#[tokio::test]
async fn a_child_that_another_client_deleted_is_deleted_once() {
    let world = World::new("deleted-twice").await;
    let proxy = world.proxy().await;
    let late = Fault::EventsLate(Duration::from_secs(60));
    proxy.add(Rule::new(late).verb(Verb::Watch).resource("configmaps"));
    let running = world.operator_through(1, "shops", proxy).await;
    let with_extra = ShopSpec {
        extra: true,
        ..ShopSpec::default()
    };
    world.create("web", with_extra).await;
    world.is_available("web").await;
    running.is_quiet().await;
    let known = running.proxy.count();
    let maps = world.api::<ConfigMap>();
    maps.delete("web-extra", &DeleteParams::default()).await.unwrap();
    world.set("web", json!({ "extra": false })).await;
    world.condition("web", "Degraded", "False").await;
    running.is_quiet().await;
    let deletes = writes(&running, known, "configmaps");
    assert_eq!(deletes, ["Delete configmaps web-extra 404"]);
    running.stop().await;
}

/// 118: a child without a namespace has no owner reference and is deleted by the cleanup.
#[tokio::test]
async fn a_child_without_a_namespace_is_deleted_by_the_cleanup() {
    use kube_manager::{
        Manager,
        options::Options,
        reconcile::{Context, Controller, Error, Outcome, Reconciler, object},
        shutdown::CancellationToken,
    };
    struct Roles;
    impl Reconciler for Roles {
        type Object = Shop;
        async fn reconcile(&self, shop: &Shop, context: &Context<Shop>) -> Result<Outcome, Error> {
            let role = json!({ "metadata": { "name": format!("shop-{}", shop.name_any()) }, "rules": [] });
            context.apply::<ClusterRole>(object(role)?).await?;
            Ok(Outcome::ready())
        }
    }
    let world = World::new("roles").await;
    let options = Options {
        health_probe_bind_address: None,
        metrics_bind_address: None,
        watch_namespace: "roles".parse().unwrap(),
        ..Options::default()
    };
    let stop = CancellationToken::new();
    let builder = Manager::builder("roles")
        .client(world.client.clone())
        .options(options)
        .stop(stop.clone());
    let manager = builder.start().await.unwrap();
    manager.add(
        Controller::new("role", Roles)
            .owns::<ClusterRole>("roles")
            .finalizer("example.com/roles"),
    );
    let running = tokio::spawn(manager.run());
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    let roles: Api<ClusterRole> = Api::all(world.client.clone());
    let role = roles.get("shop-web").await.unwrap();
    assert!(role.owner_references().is_empty());
    // Drift is seen although there is no owner reference.
    let change = Patch::Merge(json!({ "metadata": { "annotations": { "kube-manager/owner": null } } }));
    roles.patch("shop-web", &PatchParams::default(), &change).await.unwrap();
    eventually("the annotation", async || {
        roles
            .get("shop-web")
            .await
            .unwrap()
            .annotations()
            .contains_key("kube-manager/owner")
            .then_some(())
    })
    .await;
    world
        .api::<Shop>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    eventually("both are gone", async || {
        let shop = world.api::<Shop>().get_opt("web").await.unwrap();
        (shop.is_none() && roles.get_opt("shop-web").await.unwrap().is_none()).then_some(())
    })
    .await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// 120: a parent that is deleted with its children left behind.
#[tokio::test]
async fn nothing_is_written_for_an_object_that_is_being_deleted() {
    let world = World::new("orphans").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    running.is_quiet().await;
    // Another finalizer keeps the object after ours was removed.
    let hold = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/shop", "example.com/other"] } }));
    world
        .api::<Shop>()
        .patch("web", &PatchParams::default(), &hold)
        .await
        .unwrap();
    world
        .api::<Shop>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    eventually("only the other finalizer", async || {
        (world.api::<Shop>().get("web").await.unwrap().finalizers() == ["example.com/other"]).then_some(())
    })
    .await;
    let known = running.proxy.count();
    let orphan = Patch::Merge(json!({ "metadata": { "ownerReferences": null }, "data": { "size": "5" } }));
    world
        .api::<ConfigMap>()
        .patch("web", &PatchParams::default(), &orphan)
        .await
        .unwrap();
    let label = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    world
        .api::<Shop>()
        .patch("web", &PatchParams::default(), &label)
        .await
        .unwrap();
    running.is_quiet().await;
    assert_eq!(running.objects_after(known), Vec::<String>::new());
    assert!(
        world
            .api::<ConfigMap>()
            .get("web")
            .await
            .unwrap()
            .owner_references()
            .is_empty()
    );
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    world
        .api::<Shop>()
        .patch("web", &PatchParams::default(), &free)
        .await
        .unwrap();
    running.stop().await;
}

/// The watch shows the deletion before the answer to the write that added the finalizer.
#[tokio::test]
async fn an_object_that_is_deleted_while_it_gets_its_finalizer_gets_no_children() {
    let world = World::new("brief").await;
    let proxy = world.proxy().await;
    let late = Rule::new(Fault::Late(Duration::from_secs(5)));
    proxy.add(late.verb(Verb::Patch).resource("shops").times(1));
    let running = world.operator_through(1, "shops", proxy).await;
    world.create("web", ShopSpec::default()).await;
    let shops = world.api::<Shop>();
    eventually("the finalizer", async || {
        (!shops.get("web").await.unwrap().finalizers().is_empty()).then_some(())
    })
    .await;
    shops.delete("web", &DeleteParams::default()).await.unwrap();
    world.deleted::<Shop>("web").await;
    running.is_quiet().await;
    assert_eq!(writes(&running, 0, "configmaps"), Vec::<String>::new());
    running.stop().await;
}

/// 122: a finalizer is removed although another one was added in between.
#[tokio::test]
async fn a_finalizer_of_somebody_else_stays() {
    let world = World::new("finalizers").await;
    world.create("web", ShopSpec::default()).await;
    let shops = world.api::<Shop>();
    let shop = shops.get("web").await.unwrap();
    let shop = finalizer::add(&shops, &shop, "example.com/shop")
        .await
        .unwrap()
        .unwrap();
    let other = Patch::Json::<()>(
        serde_json::from_value(json!([
            { "op": "add", "path": "/metadata/finalizers/0", "value": "example.com/other" },
        ]))
        .unwrap(),
    );
    shops.patch("web", &PatchParams::default(), &other).await.unwrap();
    let stale = finalizer::remove(&shops, &shop, "example.com/shop").await.unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.code == 409));
    let shop = shops.get("web").await.unwrap();
    finalizer::remove(&shops, &shop, "example.com/shop").await.unwrap();
    assert_eq!(shops.get("web").await.unwrap().finalizers(), ["example.com/other"]);
}

/// 124: a child that waits for a finalizer is not written, and created right after its deletion.
#[tokio::test]
async fn a_child_that_is_being_deleted_is_awaited() {
    let world = World::new("awaited").await;
    let running = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    let maps = world.api::<ConfigMap>();
    let hold = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    maps.patch("web", &PatchParams::default(), &hold).await.unwrap();
    running.is_quiet().await;
    let known = running.proxy.count();
    let uid = maps.get("web").await.unwrap().uid();
    maps.delete("web", &DeleteParams::default()).await.unwrap();
    let shop = world.condition("web", "Progressing", "True").await;
    let status = shop.status.unwrap();
    assert_eq!(
        conditions::get(&status.conditions, "Progressing").unwrap().reason,
        "DeletionPending"
    );
    assert!(!conditions::is_true(&status.conditions, "Degraded"));
    running.is_quiet().await;
    assert_eq!(writes(&running, known, "configmaps"), Vec::<String>::new());
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("web", &PatchParams::default(), &free).await.unwrap();
    eventually("another ConfigMap", async || {
        maps.get_opt("web").await.unwrap().filter(|map| map.uid() != uid)
    })
    .await;
    running.stop().await;
}

/// 126: the event of a written child does not reset the back-off of the parent.
#[tokio::test]
async fn a_rejected_child_is_not_tried_again_because_of_its_sibling() {
    let world = World::new("rejected").await;
    let running = world.operator(1).await;
    let long = Some("x".repeat(70));
    world
        .create(
            "web",
            ShopSpec {
                extra: true,
                label: long,
                ..ShopSpec::default()
            },
        )
        .await;
    let shop = world.condition("web", "Degraded", "True").await;
    let degraded = conditions::get(&shop.status.unwrap().conditions, "Degraded")
        .unwrap()
        .clone();
    assert_eq!(degraded.reason, "Invalid");
    assert!(degraded.message.contains("metadata.labels"), "{}", degraded.message);
    running.is_quiet().await;
    let refused = |running: &Operator| {
        writes(running, 0, "configmaps")
            .iter()
            .filter(|write| write.ends_with("422"))
            .count()
    };
    assert_eq!(refused(&running), 1);
    // The user corrects it, and that is seen at once.
    world.set("web", json!({ "label": "short" })).await;
    world.condition("web", "Degraded", "False").await;
    assert_eq!(world.event("Recovered").await, "everything is ready");
    running.stop().await;
}

/// The event Available follows when the object is available.
#[tokio::test]
async fn a_corrected_object_that_is_not_available_has_no_recovery() {
    let world = World::new("closed").await;
    let running = world.operator(1).await;
    let rejected = ShopSpec {
        extra: true,
        closed: true,
        label: Some("x".repeat(70)),
        ..ShopSpec::default()
    };
    world.create("web", rejected).await;
    world.condition("web", "Degraded", "True").await;
    assert!(world.event("Failed").await.contains("metadata.labels"));
    world.set("web", json!({ "label": "short" })).await;
    let shop = world.condition("web", "Degraded", "False").await;
    assert!(!conditions::is_true(&shop.status.unwrap().conditions, "Available"));
    world.set("web", json!({ "closed": false })).await;
    world.is_available("web").await;
    assert_eq!(world.event("Available").await, "everything is ready");
    assert_eq!(world.events("Recovered").await, Vec::<String>::new());
    running.stop().await;
}

/// 130: the API server answers an apply without a change with a new version.
#[tokio::test]
async fn an_apply_that_changes_nothing_is_not_repeated() {
    let world = World::new("revision").await;
    let applier = Applier::new(world.client.clone(), "op");
    // The API server fills in the group of a subject, which its schema does not contain.
    let desired = json!({
        "metadata": { "name": "reader", "namespace": "revision" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
        "subjects": [{ "kind": "User", "name": "reader" }],
    });
    let bindings = ApiResource::erase::<k8s_openapi::api::rbac::v1::RoleBinding>(&());
    let first = applier.apply(&bindings, desired.clone(), None).await.unwrap();
    // Equal content under a new version, as if the API server had stored it again.
    let mut live = first.object.clone();
    live["metadata"]["resourceVersion"] = json!("999999");
    let second = applier.apply(&bindings, desired, Some(live)).await.unwrap();
    assert_eq!((second.change, second.writes), (Change::Unchanged, 0));
}

/// 132: long names that differ at the end.
#[tokio::test]
async fn parents_with_long_names_have_different_children() {
    let world = World::new("long").await;
    let applier = Applier::new(world.client.clone(), "op");
    let mut known = Vec::new();
    for end in ["one", "two"] {
        let parent = format!("{}{end}", "parent-".repeat(10));
        let (name, label) = (names::dns_label(&parent, "x"), names::label(&parent));
        let desired = json!({ "metadata": { "name": name, "namespace": "long", "labels": { "instance": label } } });
        applier.apply(&config_maps(), desired, None).await.unwrap();
        known.push((name, label));
    }
    assert!(known[0].0 != known[1].0 && known[0].1 != known[1].1);
}

/// 134: the answer to a write is lost.
#[tokio::test]
async fn a_write_whose_answer_is_lost_is_found() {
    let world = World::new("lost").await;
    let proxy = world.proxy().await;
    proxy.add(Rule::new(Fault::AnswerLost).writes().resource("configmaps").times(1));
    proxy.add(Rule::new(Fault::AnswerLost).writes().resource("secrets").times(1));
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
    assert_eq!(world.events("Failed").await, Vec::<String>::new(), "no warning");
    let maps = world.api::<ConfigMap>().list(&Default::default()).await.unwrap();
    let own = maps
        .items
        .iter()
        .filter(|map| !map.owner_references().is_empty())
        .count();
    assert_eq!(own, 1);
    let secrets = world.api::<Secret>().list(&Default::default()).await.unwrap();
    assert_eq!(secrets.items.len(), 1);
    assert_eq!(secrets.items[0].meta().managed_fields.as_ref().unwrap().len(), 1);
    running.stop().await;
}

/// The permissions follow from the declaration: nothing else is requested, and nothing is forbidden.
#[tokio::test]
async fn requests_are_covered_by_the_derived_permissions() {
    let world = World::new("grants").await;
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
    world.set("web", json!({ "extra": false })).await;
    running.is_quiet().await;
    let grants = crate::shop::controller(Default::default()).grants();
    // Permission checks and the documents of the API are open to every client.
    let own = ["", "api", "apis"];
    let is_review = |resource: &str| resource.starts_with("selfsubject");
    let requests = running.proxy.requests();
    let review = requests
        .iter()
        .rposition(|request| is_review(&request.resource))
        .unwrap();
    let write = requests.iter().position(|request| request.verb == Verb::Patch).unwrap();
    assert!(review < write, "the permissions are checked before the first reconcile");
    for request in requests {
        let resource = request.resource.as_str();
        if own.contains(&resource) || is_review(resource) || resource.starts_with("apis/") {
            continue;
        }
        let verb = format!("{:?}", request.verb).to_lowercase();
        let granted = grants
            .iter()
            .any(|grant| grant.resource == request.resource && grant.verbs.iter().any(|known| *known == verb));
        assert!(granted, "{verb} {}", request.resource);
    }
    running.stop().await;
}
