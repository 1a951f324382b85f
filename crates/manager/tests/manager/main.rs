//! Managers against a real API server.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

#[path = "../../examples/greeter.rs"]
#[allow(dead_code)]
mod example;
mod greeter;
mod refused;
mod unreadable;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use example::Greeting;
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace, Node},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt as _, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_manager::{
    Manager, ObjectKey,
    cache::Cache,
    manager::{Builder, Error},
    options::Options,
    shutdown::CancellationToken,
    transport,
    worker::Done,
};
use kube_testbed::{
    ControlPlane,
    faults::{Fault, Rule, Verb},
};
use serde_json::json;
use tokio::{sync::OnceCell, task::JoinHandle};

static CONTROL_PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

async fn control_plane() -> &'static ControlPlane {
    let start = async || {
        let plane = ControlPlane::start(kube_testbed::Options::default()).await.unwrap();
        let client = plane.client().await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        definitions
            .create(&PostParams::default(), &Greeting::crd())
            .await
            .unwrap();
        let greetings: Api<Greeting> = Api::all(client);
        eventually("the kind is served", async || {
            greetings.list(&Default::default()).await.ok()
        })
        .await;
        plane
    };
    CONTROL_PLANE.get_or_init(start).await
}

/// A client, and a namespace of the test's own.
async fn namespace(name: &str) -> Client {
    let client = control_plane().await.client().await.unwrap();
    let object = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    client
}

async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = probe().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within 30 seconds: {what}");
}

fn options(namespace: &str) -> Options {
    Options {
        health_probe_bind_address: None,
        watch_namespace: namespace.parse().unwrap(),
        leader_election_namespace: Some(namespace.to_owned()),
        ..Options::default()
    }
}

fn builder(client: &Client, options: Options) -> (Builder, CancellationToken) {
    let stop = CancellationToken::new();
    let builder = Manager::builder("greeter").client(client.clone()).options(options);
    (builder.stop(stop.clone()), stop)
}

/// The operator of the example, and what stops it.
async fn greeter(client: &Client, options: Options) -> (JoinHandle<Result<(), Error>>, CancellationToken) {
    let (builder, stop) = builder(client, options);
    let manager = builder.start().await.unwrap();
    greeter::set_up(&manager);
    (tokio::spawn(manager.run()), stop)
}

async fn greet(client: &Client, namespace: &str, name: &str) {
    let greeting = Greeting::new(name, example::GreetingSpec { name: name.to_owned() });
    Api::namespaced(client.clone(), namespace)
        .create(&PostParams::default(), &greeting)
        .await
        .unwrap();
}

/// The text of the ConfigMap `name`.
async fn text(client: &Client, namespace: &str, name: &str) -> Option<String> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    maps.get_opt(name).await.unwrap()?.data?.remove("text")
}

#[tokio::test]
async fn deleted_children_are_created_again() {
    let client = namespace("owned").await;
    let (running, stop) = greeter(&client, options("owned")).await;
    greet(&client, "owned", "moon").await;
    let found = eventually("the greeting", async || text(&client, "owned", "moon").await).await;
    assert_eq!(found, "Hello, moon!");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "owned");
    maps.delete("moon", &DeleteParams::default()).await.unwrap();
    eventually("the greeting again", async || text(&client, "owned", "moon").await).await;
    // Another client removes the owner.
    let other = json!({ "metadata": { "ownerReferences": null }, "data": { "text": "Go away!" } });
    maps.patch("moon", &PatchParams::default(), &Patch::Merge(other))
        .await
        .unwrap();
    eventually("the right words", async || {
        (text(&client, "owned", "moon").await? == "Hello, moon!").then_some(())
    })
    .await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

async fn holder(client: &Client, namespace: &str) -> Option<String> {
    let lease = Api::<Lease>::namespaced(client.clone(), namespace)
        .get_opt("greeter")
        .await
        .unwrap()?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

#[tokio::test]
async fn a_standby_takes_over_when_the_leader_stops() {
    let client = namespace("standby").await;
    let replica = |name: &str| Options {
        leader_elect: true,
        pod_name: Some(name.to_owned()),
        ..options("standby")
    };
    let (first, stop) = greeter(&client, replica("first")).await;
    eventually("a leader", async || holder(&client, "standby").await).await;
    let (second, stop_second) = greeter(&client, replica("second")).await;
    greet(&client, "standby", "moon").await;
    eventually("the greeting", async || text(&client, "standby", "moon").await).await;
    assert!(holder(&client, "standby").await.unwrap().starts_with("first_"));
    stop.cancel();
    first.await.unwrap().unwrap();
    assert_eq!(
        holder(&client, "standby")
            .await
            .filter(|holder| holder.starts_with("first_")),
        None,
        "released"
    );
    greet(&client, "standby", "sun").await;
    eventually("the second greets", async || text(&client, "standby", "sun").await).await;
    // Another client takes over the Lease: the leader must stop.
    let thief = Patch::Merge(json!({ "spec": { "holderIdentity": "thief" } }));
    let leases: Api<Lease> = Api::namespaced(client.clone(), "standby");
    leases.patch("greeter", &PatchParams::default(), &thief).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_mins(2), second)
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(ended, Err(Error::LeadershipLost)), "{ended:?}");
    drop(stop_second);
}

/// A reconcile blocks the only thread for longer than the lease. In that time no other code can renew the lease or stop the reconcile.
#[tokio::test]
async fn a_reconcile_that_blocked_its_thread_past_the_lease_writes_nothing() {
    let client = namespace("blocked").await;
    let options = Options {
        leader_elect: true,
        ..options("blocked")
    };
    let (builder, _stop) = builder(&client, options);
    let manager = builder.start().await.unwrap();
    let late = Arc::new(Mutex::new(None));
    let (writing, own) = (Arc::clone(&late), manager.client());
    manager.controller::<Greeting>("greeting").run(move |greeting| {
        let (writing, own) = (Arc::clone(&writing), own.clone());
        async move {
            // The deadline is 10 seconds after the last renewal.
            std::thread::sleep(Duration::from_secs(11));
            let api: Api<Greeting> = Api::namespaced(own, "blocked");
            let late = Patch::Merge(json!({ "metadata": { "annotations": { "late": "yes" } } }));
            // The end of the manager does not cancel this task.
            let write = async move { api.patch(&greeting.name_any(), &PatchParams::default(), &late).await };
            *writing.lock().unwrap() = Some(tokio::spawn(write));
            Ok::<_, kube::Error>(Done::nothing("late"))
        }
    });
    greet(&client, "blocked", "moon").await;
    let ended = manager.run().await;
    assert!(matches!(ended, Err(Error::LeadershipLost)), "{ended:?}");
    let late = late.lock().unwrap().take().expect("a reconcile");
    let error = late.await.unwrap().expect_err("it is not sent");
    assert!(format!("{error:?}").contains("Over"), "{error:?}");
}

/// One object whose reconcile panics is tried again, and delays no other. Each pass is in a span that names it.
#[tokio::test]
async fn a_panic_ends_one_pass_only() {
    let client = namespace("panics").await;
    let (builder, stop) = builder(&client, options("panics"));
    let manager = builder.start().await.unwrap();
    let metrics = manager.metrics().clone();
    let tries = Arc::new(AtomicU32::new(0));
    let (counted, spans) = (Arc::clone(&tries), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&spans);
    manager.controller::<Greeting>("greeting").run(move |greeting| {
        let name = greeting.name_any();
        let tries = Arc::clone(&counted);
        seen.lock().unwrap().push(name.clone());
        async move {
            assert!(name != "bad" || tries.fetch_add(1, SeqCst) > 1, "the first two times");
            Ok::<_, kube::Error>(Done::nothing("fine"))
        }
    });
    let running = tokio::spawn(manager.run());
    greet(&client, "panics", "bad").await;
    greet(&client, "panics", "good").await;
    eventually("the third try", async || (tries.load(SeqCst) == 3).then_some(())).await;
    assert!(spans.lock().unwrap().contains(&"good".to_owned()));
    eventually("it is counted", async || {
        let text = metrics.render();
        let line = "controller_runtime_reconcile_panics_total{controller=\"greeting\"} 2";
        text.contains(line).then_some(())
    })
    .await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// A kind without namespace is watched in the cluster, whatever namespaces are watched.
#[tokio::test]
async fn a_kind_without_namespace_and_one_that_depends_on_it() {
    let client = namespace("cluster").await;
    let (builder, stop) = builder(&client, options("cluster"));
    let manager = builder.start().await.unwrap();
    let (nodes, greetings) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU32::new(0)));
    let seen = Arc::clone(&nodes);
    let own = kube_manager::manager::Controller::selecting;
    let selected = kube::runtime::watcher::Config::default().labels("test=manager");
    own(manager.controller::<Node>("node"), selected.clone()).run(move |node| {
        seen.lock().unwrap().push(node.name_any());
        std::future::ready(Ok::<_, kube::Error>(Done::nothing("seen")))
    });
    let controller = manager.controller::<Greeting>("greeting");
    let known = controller.cache();
    // Another watch may use the controller's queue before the controller is complete.
    let (queue, maps) = (controller.queue(), Cache::<String>::default());
    let of_maps = kube::runtime::watcher::Config::default();
    manager.watch::<ConfigMap, _, _, _>(
        &maps,
        of_maps,
        |map| map.data?.get("wakes").cloned(),
        move |key, change| {
            if let Some(name) = change.after {
                queue.add_because(
                    ObjectKey::new(key.namespace.clone(), name.as_str()),
                    "a ConfigMap names it",
                );
            }
        },
    );
    let passes = Arc::clone(&greetings);
    controller
        .watches::<Node>(selected, move |_| {
            let mut keys = Vec::new();
            known.for_each(|key, _| keys.push(key.clone()));
            keys
        })
        .run(move |_| {
            passes.fetch_add(1, SeqCst);
            std::future::ready(Ok::<_, kube::Error>(Done::nothing("seen")))
        });
    let running = tokio::spawn(manager.run());
    greet(&client, "cluster", "moon").await;
    eventually("a pass", async || (greetings.load(SeqCst) > 0).then_some(())).await;
    let before = greetings.load(SeqCst);
    let node = json!({ "metadata": { "name": "one", "labels": { "test": "manager" } } });
    let node = serde_json::from_value(node).unwrap();
    let watching = client.clone();
    Api::<Node>::all(client)
        .create(&PostParams::default(), &node)
        .await
        .unwrap();
    eventually("the node", async || {
        nodes.lock().unwrap().contains(&"one".to_owned()).then_some(())
    })
    .await;
    eventually("its dependant", async || {
        (greetings.load(SeqCst) > before).then_some(())
    })
    .await;
    let before = greetings.load(SeqCst);
    let map = json!({ "metadata": { "name": "alarm" }, "data": { "wakes": "moon" } });
    Api::<ConfigMap>::namespaced(watching, "cluster")
        .create(&PostParams::default(), &serde_json::from_value(map).unwrap())
        .await
        .unwrap();
    eventually("the pass that the ConfigMap causes", async || {
        (greetings.load(SeqCst) > before).then_some(())
    })
    .await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// The definition of a kind is deleted, and with it all objects, and comes again.
#[tokio::test]
async fn a_kind_that_is_defined_again_is_followed_again() {
    let plane = ControlPlane::start(kube_testbed::Options::default()).await.unwrap();
    let client = plane.client().await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let greetings: Api<Greeting> = Api::namespaced(client.clone(), "default");
    let define = async || {
        definitions
            .create(&PostParams::default(), &Greeting::crd())
            .await
            .ok()?;
        let is_served = async || greetings.list(&Default::default()).await.ok();
        eventually("the kind is served", is_served).await;
        Some(())
    };
    define().await.unwrap();
    let (running, stop) = greeter(&client, options("default")).await;
    greet(&client, "default", "moon").await;
    eventually("the greeting", async || text(&client, "default", "moon").await).await;
    definitions
        .delete(&Greeting::crd().name_any(), &DeleteParams::default())
        .await
        .unwrap();
    eventually("the kind is not served", async || {
        greetings.list(&Default::default()).await.err()
    })
    .await;
    eventually("the definition can be created again", define).await;
    greet(&client, "default", "sun").await;
    eventually("the new greeting", async || text(&client, "default", "sun").await).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// A connection on which nothing arrives any more, not even its end, is given up, and what was missed is seen.
#[tokio::test]
async fn half_open_watches_are_opened_again() {
    let client = namespace("half-open").await;
    let plane = control_plane().await;
    let proxy = plane.faults(1).await.unwrap();
    proxy.add(Rule::new(Fault::Stalled(Duration::from_millis(500))).verb(Verb::Watch));
    let through = proxy.client(plane.kubeconfig()).await.unwrap();
    let limits = transport::Limits {
        event: Duration::from_secs(3),
        ..transport::Limits::default()
    };
    let through = transport::limited(through, limits, None);
    let (running, stop) = greeter(&through, options("half-open")).await;
    eventually("the watches begin", async || {
        let watches = proxy
            .requests()
            .iter()
            .filter(|request| request.verb == Verb::Watch)
            .count();
        (watches >= 2).then_some(())
    })
    .await;
    // The watches stall, and will not when they are opened again.
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.clear();
    let before = proxy.requests().len();
    greet(&client, "half-open", "moon").await;
    eventually("the greeting", async || text(&client, "half-open", "moon").await).await;
    let again = proxy.requests()[before..]
        .iter()
        .filter(|request| request.verb == Verb::Watch)
        .count();
    assert!(again >= 1, "a watch was opened again");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_operator_of_the_readme_works() {
    let client = namespace("readme").await;
    let (builder, stop) = builder(&client, options("readme"));
    let manager = builder.start().await.unwrap();
    manager.add(example::controller());
    let running = tokio::spawn(manager.run());
    greet(&client, "readme", "moon").await;
    let found = eventually("the greeting", async || text(&client, "readme", "moon").await).await;
    assert_eq!(found, "Hello, moon!");
    let greetings: Api<Greeting> = Api::namespaced(client, "readme");
    eventually("it is ready", async || {
        let conditions = greetings.get("moon").await.unwrap().status?.conditions;
        let is_ready = conditions
            .iter()
            .any(|one| one.type_ == "Ready" && one.status == "True");
        is_ready.then_some(())
    })
    .await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// The README shows the example.
#[test]
fn the_readme_shows_the_example() {
    let readme = include_str!("../../README.md");
    let example = include_str!("../../examples/greeter.rs");
    let dense = |text: &str| -> String { text.split_whitespace().collect() };
    let shown = readme
        .split("```rust,no_run\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    assert_eq!(dense(shown), dense(example));
}
