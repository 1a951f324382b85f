//! Rollouts on the operator's account, against the API server in memory.
use std::sync::atomic::AtomicU16;

use kube_manager::packed::Packed;

use super::*;
use crate::{
    api::v1alpha1::PROGRESSING,
    controller::{applied::SERVERS, observed::DeploymentState, slots::DOUBT},
};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/cache/deployments/sample";

/// The server, a context with the settled Memcached `sample`, and the code with which applies of its Deployment are answered
/// if it is not 200.
async fn settled(spec: &Value) -> (Arc<Server>, Arc<Context>, Arc<AtomicU16>) {
    let code = Arc::new(AtomicU16::new(200));
    let answer = Arc::clone(&code);
    let server = Server::new(move |line, sent| {
        if line != "PATCH deployments/sample" {
            return None;
        }
        sent["status"] = status(1);
        Some(answer.load(SeqCst)).filter(|code| *code != 200)
    });
    let context = context(&server, &object(spec));
    pass(&context).await.unwrap();
    pass(&context).await.unwrap();
    let _ = context.slots.open();
    server.take();
    (server, context, code)
}

fn status(available: i32) -> Value {
    json!({ "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": available })
}

fn key() -> ObjectKey {
    ObjectKey::new("cache", "sample")
}

/// Another one that waits in line behind `sample`.
fn other() -> ObjectKey {
    ObjectKey::new("cache", "zeta")
}

fn other_waits(context: &Context) -> bool {
    !context.slots.take(&other(), &memcached(&json!({})))
}

/// As after a restart of the operator with another default image, when all objects are known.
fn restarted(context: Arc<Context>, image: &str) -> Arc<Context> {
    let mut context = Arc::into_inner(context).unwrap();
    context.settings.image = Some(image.to_owned());
    context.slots = Slots::new(1);
    context.resume();
    let _ = context.slots.open();
    Arc::new(context)
}

/// Changes the Memcached as its user does.
fn change(server: &Server, context: &Context, spec: &Value) {
    let mut objects = server.objects.lock().unwrap();
    let object = objects.get_mut(PATH).unwrap();
    object["spec"] = spec.clone();
    let generation = object["metadata"]["generation"].as_i64().unwrap();
    object["metadata"]["generation"] = json!(generation + 1);
    object["metadata"]["resourceVersion"] = json!(server.version.fetch_add(1, SeqCst).to_string());
    let guard: DeserializeGuard<Memcached> = serde_json::from_value(object.clone()).unwrap();
    let answer: PartialObjectMeta<Memcached> = serde_json::from_value(object.clone()).unwrap();
    context.caches.memcacheds.written(&answer, Subject::of(guard));
}

/// Changes the Deployment as another client, or its controller, does.
fn meddle(server: &Server, context: &Context, change: impl FnOnce(&mut Value)) {
    let mut objects = server.objects.lock().unwrap();
    let object = objects.get_mut(DEPLOYMENT).unwrap();
    change(object);
    object["metadata"]["resourceVersion"] = json!(server.version.fetch_add(1, SeqCst).to_string());
    let live: k8s_openapi::api::apps::v1::Deployment = serde_json::from_value(object.clone()).unwrap();
    let seen = DeploymentState::of(&live);
    context.caches.deployments.written(&live, Packed::of(&seen));
}

fn deployment(server: &Server) -> Value {
    server.objects.lock().unwrap()[DEPLOYMENT].clone()
}

fn image(server: &Server) -> String {
    let deployment = deployment(server);
    let container = deployment.pointer("/spec/template/spec/containers/0/image").unwrap();
    container.as_str().unwrap().to_owned()
}

fn condition(context: &Context, type_: &str) -> (String, String) {
    let subject = context.caches.memcacheds.get(&key()).unwrap();
    let memcached = subject.memcached().unwrap();
    let found = report::find(&memcached, type_).unwrap();
    (found.status.clone(), found.reason.clone())
}

#[tokio::test]
async fn a_settled_object_is_annotated_once() {
    let (server, context, _) = settled(&json!({})).await;
    pass(&context).await.unwrap();
    assert_eq!(server.take(), [""; 0]);
    meddle(&server, &context, |deployment| {
        let annotations = deployment["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.remove(SERVERS);
    });
    pass(&context).await.unwrap();
    assert_eq!(
        server.take(),
        ["PATCH deployments/sample"],
        "made by an earlier version"
    );
    pass(&context).await.unwrap();
    assert_eq!(server.take(), [""; 0]);
}

#[tokio::test]
async fn a_stuck_rollout_keeps_its_turn_after_a_restart() {
    let (server, context, _) = settled(&json!({})).await;
    let context = restarted(context, "memcached:broken");
    pass(&context).await.unwrap();
    assert!(context.slots.holds(&key()));
    let stuck = json!({ "replicas": 1, "updatedReplicas": 1, "conditions": [{ "type": "Progressing", "status": "False",
        "reason": "ProgressDeadlineExceeded", "message": "" }] });
    meddle(&server, &context, |deployment| deployment["status"] = stuck);
    pass(&context).await.unwrap();
    assert_eq!(condition(&context, PROGRESSING).1, "ProgressDeadlineExceeded");
    let context = restarted(context, "memcached:broken");
    assert!(other_waits(&context));
    pass(&context).await.unwrap();
    assert!(other_waits(&context) && context.slots.holds(&key()));

    let context = restarted(context, "memcached:repaired");
    pass(&context).await.unwrap();
    assert_eq!(image(&server), "memcached:repaired");
}

#[tokio::test]
async fn a_rollout_that_warms_up_keeps_its_turn_after_a_restart() {
    let (server, context, _) = settled(&json!({})).await;
    let context = restarted(context, "memcached:2");
    pass(&context).await.unwrap();
    meddle(&server, &context, |deployment| deployment["status"] = status(0));
    pass(&context).await.unwrap();
    assert_eq!(condition(&context, PROGRESSING).1, "Complete");
    let context = restarted(context, "memcached:2");
    assert!(other_waits(&context));
    meddle(&server, &context, |deployment| deployment["status"] = status(1));
    pass(&context).await.unwrap();
    assert!(!other_waits(&context));
}

#[tokio::test]
async fn what_is_no_rollout_takes_no_turn_after_a_restart() {
    let (server, context, _) = settled(&json!({})).await;
    let context = restarted(context, "memcached:2");
    pass(&context).await.unwrap();
    let lost = json!({ "replicas": 1, "updatedReplicas": 1, "conditions": [{ "type": "Progressing", "status": "True",
        "reason": "NewReplicaSetAvailable", "message": "" }] });
    meddle(&server, &context, |deployment| deployment["status"] = lost);
    let context = restarted(context, "memcached:2");
    assert!(
        !other_waits(&context),
        "its rollout was complete, then a server was lost"
    );

    change(&server, &context, &json!({ "image": "memcached:mine" }));
    pass(&context).await.unwrap();
    assert_eq!(image(&server), "memcached:mine");
    meddle(&server, &context, |deployment| {
        deployment["status"] = json!({ "replicas": 1 })
    });
    let context = restarted(context, "memcached:2");
    assert!(!other_waits(&context), "it is the user who has the servers replaced");
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_is_not_answered_does_not_block_the_others() {
    let (server, context, code) = settled(&json!({})).await;
    let context = restarted(context, "memcached:2");
    code.store(0, SeqCst);
    tokio::time::timeout(Duration::from_secs(30), pass(&context))
        .await
        .unwrap_err();
    assert!(other_waits(&context), "it may have begun");
    // It is looked at again.
    server.take();
    pass(&context).await.unwrap();
    let requests = server.take();
    assert!(requests.contains(&"GET deployments/sample".to_owned()), "{requests:?}");
    assert_eq!(deployments(&requests), 0, "whoever has not tried goes first");
    assert!(!other_waits(&context));
    let _ = context.slots.leave(&other());
    // It is not looked at again.
    tokio::time::timeout(Duration::from_secs(30), pass(&context))
        .await
        .unwrap_err();
    assert!(other_waits(&context));
    tokio::time::advance(DOUBT).await;
    context.end_doubts();
    assert!(!other_waits(&context));
    assert_eq!(image(&server), "memcached:1");
}

#[tokio::test]
async fn a_rollout_whose_answer_is_lost_keeps_its_turn() {
    let (server, context, code) = settled(&json!({})).await;
    let context = restarted(context, "memcached:2");
    code.store(LOST, SeqCst);
    pass(&context).await.unwrap_err();
    assert_eq!(image(&server), "memcached:2");
    assert!(other_waits(&context));
    code.store(200, SeqCst);
    server.objects.lock().unwrap().get_mut(DEPLOYMENT).unwrap()["status"] = status(0);
    server.take();
    pass(&context).await.unwrap();
    assert_eq!(deployments(&server.take()), 0);
    assert!(other_waits(&context) && !context.slots.is_in_doubt(&key()));
    meddle(&server, &context, |deployment| deployment["status"] = status(1));
    pass(&context).await.unwrap();
    assert!(!other_waits(&context));
}

/// The others began because it had been in doubt for too long, and then it showed that it had begun.
#[tokio::test(start_paused = true)]
async fn a_rollout_that_shows_late_takes_its_turn_back() {
    let (server, context, code) = settled(&json!({})).await;
    let context = restarted(context, "memcached:2");
    code.store(LOST, SeqCst);
    pass(&context).await.unwrap_err();
    tokio::time::advance(DOUBT).await;
    context.end_doubts();
    assert!(!context.slots.holds(&key()));
    code.store(200, SeqCst);
    meddle(&server, &context, |deployment| deployment["status"] = status(0));
    pass(&context).await.unwrap();
    assert!(context.slots.holds(&key()));
}

/// Of the spec it is said in the status that it was seen, not that it was applied.
#[tokio::test]
async fn what_users_change_does_not_wait_whatever_the_status_says() {
    let (server, context, code) = settled(&json!({})).await;
    let context = restarted(context, "memcached:2");
    assert!(!other_waits(&context));
    code.store(500, SeqCst);
    change(&server, &context, &json!({ "maxConnections": 7 }));
    pass(&context).await.unwrap_err();
    code.store(200, SeqCst);
    pass(&context).await.unwrap();
    assert_eq!(image(&server), "memcached:2");
}

#[tokio::test]
async fn an_image_that_users_take_back_does_not_wait() {
    let (server, context, _) = settled(&json!({ "image": "memcached:mine" })).await;
    assert!(!other_waits(&context));
    change(&server, &context, &json!({}));
    pass(&context).await.unwrap();
    assert_eq!(image(&server), "memcached:1");
    assert!(!context.slots.holds(&key()));
}

/// As with an autoscaler.
#[tokio::test]
async fn a_resize_does_not_take_the_turn_of_a_new_default_image() {
    let (server, context, _) = settled(&json!({})).await;
    let context = restarted(context, "memcached:2");
    assert!(!other_waits(&context));
    change(&server, &context, &json!({ "size": 3 }));
    pass(&context).await.unwrap();
    assert_eq!(image(&server), "memcached:1");
    assert_eq!(deployment(&server)["spec"]["replicas"], 3);
    assert_eq!(condition(&context, PROGRESSING).1, "RolloutPending");
}

#[tokio::test]
async fn a_resize_does_not_take_the_turn_of_a_new_version_of_the_operator() {
    let (server, context, _) = settled(&json!({})).await;
    assert!(!other_waits(&context));
    // What an earlier version applied.
    let args = json!(["-m", "64", "-v"]);
    meddle(&server, &context, |deployment| {
        deployment["spec"]["template"]["spec"]["containers"][0]["args"] = args.clone();
        let applied = deployment["metadata"]["annotations"][SERVERS].as_str().unwrap();
        let mut parts: Vec<&str> = applied.split(' ').collect();
        parts[1] = "0123456789abcdef";
        deployment["metadata"]["annotations"][SERVERS] = json!(parts.join(" "));
    });
    pass(&context).await.unwrap();
    assert_eq!(deployments(&server.take()), 0, "it waits");
    change(&server, &context, &json!({ "size": 3 }));
    pass(&context).await.unwrap();
    assert_eq!(deployments(&server.take()), 1);
    let resized = deployment(&server);
    assert_eq!(resized["spec"]["replicas"], 3);
    assert_eq!(resized["spec"]["template"]["spec"]["containers"][0]["args"], args);
    let _ = context.slots.leave(&other());
    pass(&context).await.unwrap();
    assert_ne!(
        deployment(&server)["spec"]["template"]["spec"]["containers"][0]["args"],
        args
    );
}

#[tokio::test]
async fn drift_is_reverted_while_an_object_waits() {
    let (server, context, _) = settled(&json!({})).await;
    let context = restarted(context, "memcached:2");
    assert!(!other_waits(&context));
    pass(&context).await.unwrap();
    meddle(&server, &context, |deployment| {
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!("memcached:theirs");
    });
    pass(&context).await.unwrap();
    assert_eq!(image(&server), "memcached:1");
}

/// A fight about the template is no rollout.
#[tokio::test]
async fn drift_of_a_settled_object_takes_no_turn() {
    let (server, context, _) = settled(&json!({})).await;
    let context = restarted(context, "memcached:2");
    for _ in 0..2 {
        pass(&context).await.unwrap();
    }
    assert!(!context.slots.holds(&key()));
    meddle(&server, &context, |deployment| {
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!("memcached:theirs");
        deployment["status"] = json!({});
    });
    pass(&context).await.unwrap();
    assert_eq!(image(&server), "memcached:2");
    assert!(!other_waits(&context));
    let context = restarted(context, "memcached:2");
    assert!(!other_waits(&context));
}

#[tokio::test]
async fn a_webhook_that_lowers_the_size_keeps_no_turn() {
    let (server, context, _) = settled(&json!({})).await;
    change(&server, &context, &json!({ "size": 5 }));
    pass(&context).await.unwrap();
    let context = restarted(context, "memcached:2");
    pass(&context).await.unwrap();
    assert!(context.slots.holds(&key()));
    meddle(&server, &context, |deployment| {
        deployment["spec"]["replicas"] = json!(1)
    });
    pass(&context).await.unwrap();
    assert!(!context.slots.holds(&key()));
}

#[tokio::test]
async fn who_cannot_go_on_leaves_the_line() {
    let (server, context, _) = settled(&json!({})).await;
    let context = restarted(context, "memcached:2");
    let _closed = context.readiness.gate_in("watch-pods-in-cache", "cache");
    assert!(context.slots.take(&key(), &memcached(&json!({}))) && other_waits(&context));
    pass(&context).await.unwrap();
    assert!(!other_waits(&context), "a right is missing");
    drop(server);

    let (_server, context, _) = settled(&json!({})).await;
    let mut context = Arc::into_inner(context).unwrap();
    context.settings.image = None;
    let context = Arc::new(context);
    assert!(context.slots.take(&key(), &memcached(&json!({}))) && other_waits(&context));
    pass(&context).await.unwrap();
    assert!(!other_waits(&context), "there is no image");
}

#[tokio::test]
async fn a_finalizer_that_is_refused_is_reported_and_leaves_the_line() {
    let server = Server::new(|line, _| (line == "PATCH memcacheds/sample").then_some(403));
    let mut new = object(&json!({}));
    new["metadata"]["finalizers"] = json!([]);
    let context = context(&server, &new);
    let _ = context.slots.open();
    assert!(context.slots.take(&key(), &memcached(&json!({}))) && other_waits(&context));
    pass(&context).await.unwrap_err();
    assert_eq!(
        condition(&context, DEGRADED),
        ("True".to_owned(), "Forbidden".to_owned())
    );
    assert!(!other_waits(&context));
}

/// The Deployment controller counts the revisions of a template in an annotation, and the client sets another value each time.
#[tokio::test(start_paused = true)]
async fn a_client_that_insists_on_the_template_is_reported() {
    let (server, context, _) = settled(&json!({})).await;
    for round in 0..6 {
        meddle(&server, &context, |deployment| {
            deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!(round.to_string());
            let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
            container["image"] = json!(format!("memcached:theirs-{round}"));
        });
        server.take();
        pass(&context).await.unwrap();
        assert_eq!(deployments(&server.take()), usize::from(round < 5), "{round}");
        tokio::time::advance(Duration::from_secs(15)).await;
    }
    assert_eq!(
        condition(&context, DEGRADED),
        ("True".to_owned(), "FieldOverridden".to_owned())
    );
}
