//! Operators that set one field to different values.
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams};
use kube_testbed::faults::Verb;
use serde_json::json;

use crate::{
    shop::{Shop, ShopSpec},
    world::{Operator, World, eventually},
};

/// The events about conflicts over the child, and how often each was published. The operators also disagree about the status.
async fn conflicts(world: &World) -> Vec<(String, i32)> {
    let events = world.api::<Event>().list(&Default::default()).await.unwrap();
    let conflicts = events
        .items
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some("Conflict"));
    let mut found: Vec<(String, i32)> = conflicts
        .map(|event| (event.note.unwrap(), event.series.map_or(1, |series| series.count)))
        .filter(|(note, _)| note.starts_with("ConfigMap "))
        .collect();
    found.sort();
    found
}

/// Each operator writes twice, then after ever longer pauses. Both report the conflict once, however often they reconcile and write.
async fn fight(world: &World, one: Operator, two: Operator, notes: [&str; 2]) {
    let quiet = async || {
        one.is_quiet().await;
        two.is_quiet().await;
    };
    let writes = || {
        let requests = one.proxy.requests().into_iter().chain(two.proxy.requests());
        requests
            .filter(|request| request.verb == Verb::Patch && request.resource == "configmaps" && !request.dry_run)
            .count()
    };
    let reported = notes.map(|note| (note.to_owned(), 1));
    eventually("both reports", async || {
        (conflicts(world).await == reported).then_some(())
    })
    .await;
    quiet().await;
    let first = writes();
    assert!(first <= 6, "{first} writes");
    for round in 0..5 {
        let runs = (one.runs(), two.runs());
        let label = Patch::Merge(json!({ "metadata": { "labels": { "round": format!("{round}") } } }));
        let params = PatchParams::default();
        world.api::<Shop>().patch("web", &params, &label).await.unwrap();
        eventually("both reconcile", async || {
            (one.runs() > runs.0 && two.runs() > runs.1).then_some(())
        })
        .await;
    }
    eventually("the next round", async || (writes() > first).then_some(())).await;
    quiet().await;
    assert_eq!(conflicts(world).await, reported);
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn two_operators_that_fight_slow_down_and_report_it_once() {
    let world = World::new("fight").await;
    let one = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    let two = world.operator_as(2, "other").await;
    let notes = [
        "ConfigMap web: .data.size is also set by other",
        "ConfigMap web: .data.size is also set by shops",
    ];
    fight(&world, one, two, notes).await;
}

/// As when an operator runs twice without leader election, in two versions.
#[tokio::test]
async fn two_processes_with_one_field_manager_that_fight_slow_down_and_report_it_once() {
    let world = World::new("namesakes").await;
    let one = world.operator(1).await;
    world.create("web", ShopSpec::default()).await;
    world.is_available("web").await;
    let two = world.operator(2).await;
    let note = "ConfigMap web: .data.size is also set by shops (another process)";
    fight(&world, one, two, [note, note]).await;
}
