//! Passes against an API server in memory, for answers that a real one gives only with a webhook or another version.
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use kube::{
    Client,
    client::Body,
    core::{DeserializeGuard, PartialObjectMeta},
};
use kube_manager::{backoff::Backoff, events::Publisher, metrics::Metrics, probes::Readiness, queue::WorkQueue};

use serde_json::{Value, json};

use super::*;
use crate::{
    api::v1alpha1::{DEGRADED, PROGRESSING, READY},
    controller::{
        Caches,
        contests::{Contests, TRUCE},
        report,
        slots::Slots,
        upgradeable::Rollouts,
    },
    operand::fixtures::memcached,
    settings::Settings,
};

#[path = "rollout_tests.rs"]
mod rollout;

type Answer = Box<dyn Fn(&str, &mut Value) -> Option<u16> + Send + Sync>;

/// Objects by path. Server-side apply replaces what it applies; status and finalizers are merged.
struct Server {
    objects: Mutex<BTreeMap<String, Value>>,
    requests: Mutex<Vec<String>>,
    version: AtomicU64,
    /// Called with method and path before an object is stored, to change it, or to answer with an error.
    intercept: Answer,
}

impl Server {
    fn new(intercept: impl Fn(&str, &mut Value) -> Option<u16> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            objects: Mutex::default(),
            requests: Mutex::default(),
            version: AtomicU64::new(100),
            intercept: Box::new(intercept),
        })
    }

    fn client(self: &Arc<Self>) -> Client {
        let server = Arc::clone(self);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let server = Arc::clone(&server);
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let (code, value) = server.answer(parts.method.as_str(), parts.uri.path(), &body);
                // A request that is never answered.
                if code == 0 {
                    std::future::pending::<()>().await;
                }
                let answer = http::Response::builder().status(code);
                Ok::<_, kube::Error>(answer.body(Body::from(value.to_string().into_bytes())).unwrap())
            }
        });
        Client::new(service, "cache")
    }

    fn answer(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let line = format!("{method} {}", path.rsplit("/namespaces/cache/").next().unwrap());
        self.requests.lock().unwrap().push(line.clone());
        let mut objects = self.objects.lock().unwrap();
        let error = |code: u16| {
            let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": format!("answer {code}"), "code": code,
                "reason": if code == 404 { "NotFound" } else { "Other" } });
            (code, status)
        };
        if method == "GET" {
            return objects.get(path).cloned().map_or(error(404), |object| (200, object));
        }
        let mut sent: Value = serde_json::from_slice(body).unwrap();
        let intercepted = (self.intercept)(&line, &mut sent);
        if let Some(code) = intercepted.filter(|code| *code != LOST) {
            return error(code);
        }
        let version = self.version.fetch_add(1, SeqCst).to_string();
        let home = path.trim_end_matches("/status").to_owned();
        let mut object = objects.get(&home).cloned().unwrap_or_else(|| json!({}));
        for (key, value) in sent.as_object().unwrap() {
            match key.as_str() {
                "metadata" => {
                    let meta = object
                        .as_object_mut()
                        .unwrap()
                        .entry("metadata")
                        .or_insert_with(|| json!({}));
                    for (key, value) in value.as_object().unwrap() {
                        match (meta.get_mut(key), value) {
                            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
                            _ => meta[key] = value.clone(),
                        }
                    }
                }
                // A merge patch.
                "spec" if sent.get("apiVersion").is_none() => {
                    for (key, value) in value.as_object().unwrap() {
                        object["spec"][key] = value.clone();
                    }
                }
                key => object[key] = value.clone(),
            }
        }
        object["metadata"]["resourceVersion"] = Value::from(version);
        object["metadata"]["namespace"] = Value::from("cache");
        let meta = object["metadata"].as_object_mut().unwrap();
        meta.entry("uid")
            .or_insert_with(|| Value::from(format!("uid of {home}")));
        objects.insert(home, object.clone());
        if intercepted == Some(LOST) {
            return error(504);
        }
        (200, object)
    }

    /// Requests since the last call, without events.
    fn take(&self) -> Vec<String> {
        let mut requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.retain(|request| !request.contains("events"));
        requests
    }
}

/// The answer of a server that stores the object, and then does not say so.
const LOST: u16 = 599;

const PATH: &str = "/apis/cache.example.com/v1alpha1/namespaces/cache/memcacheds/sample";

/// A context whose caches hold `object`, which the server has too.
fn context(server: &Arc<Server>, object: &Value) -> Arc<Context> {
    let client = server.client();
    server.objects.lock().unwrap().insert(PATH.to_owned(), object.clone());
    let (events, _) = Publisher::new(client.clone(), "test", "test", Metrics::new().events_dropped());
    let context = Context {
        client,
        settings: Settings {
            image: Some("memcached:1".to_owned()),
        },
        caches: Caches::default(),
        queue: Arc::new(WorkQueue::new(Backoff::default(), None)),
        readiness: Readiness::default(),
        contests: Contests::default(),
        slots: Slots::new(1),
        events,
        rollouts: Rollouts::default(),
    };
    let guard: DeserializeGuard<Memcached> = serde_json::from_value(object.clone()).unwrap();
    let answer: PartialObjectMeta<Memcached> = serde_json::from_value(object.clone()).unwrap();
    context.caches.memcacheds.written(&answer, Subject::of(guard));
    Arc::new(context)
}

fn object(spec: &Value) -> Value {
    let mut object = serde_json::to_value(memcached(spec)).unwrap();
    object["metadata"]["resourceVersion"] = json!("1");
    object["metadata"]["finalizers"] = json!([FINALIZER]);
    object
}

fn deleted(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object
}

async fn pass(context: &Arc<Context>) -> Result<Done, Error> {
    reconcile(Arc::clone(context), ObjectKey::new("cache", "sample")).await
}

fn deployments(requests: &[String]) -> usize {
    requests
        .iter()
        .filter(|line| line.starts_with("PATCH deployments"))
        .count()
}

/// No watch delivers anything here: a pass that did not read its own writes would repeat them.
#[tokio::test]
async fn a_second_pass_without_any_event_writes_nothing() {
    let server = Server::new(|_, _| None);
    let mut new = object(&json!({ "size": 2 }));
    new["metadata"]["finalizers"] = json!([]);
    let context = context(&server, &new);
    pass(&context).await.unwrap();
    let first = server.take();
    assert_eq!(deployments(&first), 1, "{first:?}");
    assert!(first.contains(&"PATCH memcacheds/sample".to_owned()), "{first:?}");
    pass(&context).await.unwrap();
    assert_eq!(server.take(), [""; 0]);
}

#[tokio::test]
async fn the_status_comes_after_what_others_ask_for() {
    let server = Server::new(|_, _| None);
    let context = context(&server, &object(&json!({ "size": 2 })));
    let key = |name: &str| ObjectKey::new("cache", name);
    for name in ["sample", "other"] {
        context.queue.add(key(name));
    }
    assert_eq!(context.queue.next().await, Some(key("sample")));
    pass(&context).await.unwrap();
    let requests = server.take();
    assert_eq!(deployments(&requests), 1, "{requests:?}");
    assert!(!requests.iter().any(|line| line.ends_with("/status")), "{requests:?}");
    context.queue.succeeded(&key("sample"));
    for name in ["other", "sample"] {
        assert_eq!(context.queue.next().await, Some(key(name)));
    }
    pass(&context).await.unwrap();
    assert_eq!(server.take(), ["PATCH memcacheds/sample/status"]);
}

#[tokio::test]
async fn a_webhook_that_overrides_a_field_is_reported_and_left() {
    let server = Server::new(|line, sent| {
        if line == "PATCH deployments/sample" {
            sent["spec"]["replicas"] = json!(7);
        }
        None
    });
    let context = context(&server, &object(&json!({ "size": 2 })));
    for _ in 0..2 {
        pass(&context).await.unwrap();
    }
    let first = server.take();
    assert_eq!(deployments(&first), 3, "made once, then tried twice: {first:?}");
    for _ in 0..5 {
        let done = pass(&context).await.unwrap();
        assert_eq!(done.requeue_after, Some(TRUCE));
    }
    assert_eq!(deployments(&server.take()), 0);
    let key = ObjectKey::new("cache", "sample");
    let subject = context.caches.memcacheds.get(&key).unwrap();
    let degraded = report::find(&subject.memcached().unwrap(), DEGRADED).unwrap().clone();
    assert_eq!(
        (degraded.status.as_str(), degraded.reason.as_str()),
        ("True", "FieldOverridden")
    );
    assert!(
        degraded.message.starts_with(".spec.replicas of Deployment sample"),
        "{}",
        degraded.message
    );
}

/// Without an entry in the status for each attempt, and without a pass for each entry.
#[tokio::test]
async fn an_error_whose_text_changes_is_written_once() {
    let count = AtomicU64::new(40_000);
    let server = Server::new(move |line, _| {
        (line == "PATCH deployments/sample").then(|| {
            count.fetch_add(1, SeqCst);
            500
        })
    });
    let context = context(&server, &object(&json!({})));
    for _ in 0..5 {
        pass(&context).await.unwrap_err();
    }
    let statuses = server.take().iter().filter(|line| line.ends_with("/status")).count();
    assert_eq!(statuses, 1);
}

#[tokio::test]
async fn a_refused_status_does_not_block_the_deletion() {
    let server = Server::new(|line, _| line.ends_with("/status").then_some(422));
    let context = context(&server, &deleted(object(&json!({}))));
    assert_eq!(pass(&context).await.unwrap().outcome, "finalized");
    assert_eq!(
        server.objects.lock().unwrap()[PATH]["metadata"]["finalizers"],
        json!([])
    );
}

#[tokio::test(start_paused = true)]
async fn a_status_that_hangs_does_not_block_the_deletion() {
    let server = Server::new(|line, _| line.ends_with("/status").then_some(0));
    let context = context(&server, &deleted(object(&json!({}))));
    let start = tokio::time::Instant::now();
    assert_eq!(pass(&context).await.unwrap().outcome, "finalized");
    assert_eq!(start.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_hangs_does_not_block_the_deletion() {
    let server = Server::new(|line, _| line.contains("events").then_some(0));
    let context = context(&server, &deleted(object(&json!({}))));
    assert_eq!(pass(&context).await.unwrap().outcome, "finalized");
}

#[tokio::test]
async fn an_object_that_cannot_be_read_can_be_deleted() {
    let server = Server::new(|_, _| None);
    let mut strange = object(&json!({}));
    strange["spec"] = json!({ "size": "many" });
    let left = context(&server, &strange);
    assert_eq!(pass(&left).await.unwrap().outcome, "unreadable");
    assert_eq!(server.take(), [""; 0], "it is left alone");

    let mut finalizers = deleted(strange);
    finalizers["metadata"]["finalizers"] = json!(["example.com/other", FINALIZER]);
    let context = context(&server, &finalizers);
    assert_eq!(pass(&context).await.unwrap().outcome, "finalized without reading it");
    assert_eq!(
        server.objects.lock().unwrap()[PATH]["metadata"]["finalizers"],
        json!(["example.com/other"])
    );
}

#[tokio::test]
async fn a_paused_object_is_left_alone() {
    let server = Server::new(|_, _| None);
    let mut paused = object(&json!({ "size": 2 }));
    paused["metadata"]["annotations"] = json!({ "cache.example.com/paused": "true" });
    let context = context(&server, &paused);
    assert_eq!(pass(&context).await.unwrap().outcome, "paused");
    assert_eq!(server.take(), ["PATCH memcacheds/sample/status"]);
}

#[tokio::test]
async fn an_object_in_a_namespace_that_is_not_synced_waits() {
    let server = Server::new(|_, _| None);
    let context = context(&server, &object(&json!({})));
    let _closed = context.readiness.gate_in("watch-pods-in-cache", "cache");
    let done = pass(&context).await.unwrap();
    assert_eq!(
        (done.outcome.as_str(), done.requeue_after),
        ("namespace not synced", Some(UNSYNCED))
    );
    assert_eq!(server.take(), [""; 0]);
}

/// Removing the finalizer needs no right to other kinds.
#[tokio::test]
async fn an_object_in_a_namespace_that_is_not_synced_can_be_deleted() {
    let mut strange = object(&json!({}));
    strange["spec"] = json!({ "size": "many" });
    for object in [object(&json!({})), strange] {
        let server = Server::new(|_, _| None);
        let context = context(&server, &deleted(object));
        let _closed = context.readiness.gate_in("watch-pods-in-cache", "cache");
        pass(&context).await.unwrap();
        assert_eq!(
            server.objects.lock().unwrap()[PATH]["metadata"]["finalizers"],
            json!([])
        );
    }
}

/// What waits for a deletion is looked at every two seconds; what is refused meanwhile is not repeated as often.
#[tokio::test]
async fn a_refusal_counts_more_than_an_object_that_has_to_go_first() {
    let refuses = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let server = Server::new({
        let refuses = Arc::clone(&refuses);
        move |line, _| (line == "PATCH services/sample" && refuses.load(SeqCst)).then_some(403)
    });
    let old = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
        "name": "sample", "namespace": "cache", "uid": "old", "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["example.com/other"], "ownerReferences": [{ "apiVersion": "cache.example.com/v1alpha1",
            "kind": "Memcached", "name": "sample", "uid": "earlier", "controller": true }],
    } });
    let path = "/apis/apps/v1/namespaces/cache/deployments/sample";
    server.objects.lock().unwrap().insert(path.to_owned(), old);
    let context = context(&server, &object(&json!({})));
    let conditions = || {
        let object = context
            .caches
            .memcacheds
            .get(&ObjectKey::new("cache", "sample"))
            .unwrap();
        let object = object.memcached().unwrap();
        [PROGRESSING, DEGRADED].map(|type_| {
            let known = report::find(&object, type_).unwrap();
            format!("{} {}: {}", known.status, known.reason, known.message)
        })
    };
    let waits = "True AwaitingDeletion: waiting for Deployment sample of an earlier owner to be deleted";
    assert_eq!(pass(&context).await.unwrap().requeue_after, Some(DELETION));
    assert_eq!(conditions(), [waits, "False AsExpected: Nothing is wrong"]);
    refuses.store(true, SeqCst);
    server
        .objects
        .lock()
        .unwrap()
        .retain(|path, _| !path.contains("services"));
    context.caches.services.deleted(
        &ObjectKey::new("cache", "sample"),
        "uid of /api/v1/namespaces/cache/services/sample",
    );
    pass(&context).await.unwrap_err();
    let [progressing, degraded] = conditions();
    assert_eq!(progressing, waits);
    assert!(
        degraded.starts_with("True Forbidden: cannot apply Service sample"),
        "{degraded}"
    );
}

/// A change of the spec that is not applied must not look finished to Flux and Argo CD.
#[tokio::test]
async fn a_change_of_the_spec_that_waits_is_not_ready() {
    let code = Arc::new(AtomicU64::new(0));
    let server = Server::new({
        let code = Arc::clone(&code);
        move |line, sent| {
            if line != "PATCH deployments/sample" {
                return None;
            }
            sent["metadata"]["generation"] = json!(1);
            sent["status"] = json!({ "observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1,
                "availableReplicas": 1 });
            u16::try_from(code.load(SeqCst)).ok().filter(|code| *code != 0)
        }
    });
    let context = context(&server, &object(&json!({})));
    let key = ObjectKey::new("cache", "sample");
    let change = |generation: i64, connections: i32, paused: &str| {
        let subject = context.caches.memcacheds.get(&key).unwrap();
        let mut changed = serde_json::to_value(subject.memcached().unwrap()).unwrap();
        changed["apiVersion"] = json!("cache.example.com/v1alpha1");
        changed["kind"] = json!("Memcached");
        changed["metadata"]["generation"] = json!(generation);
        changed["metadata"]["annotations"] = json!({ "cache.example.com/paused": paused });
        changed["metadata"]["resourceVersion"] = json!(server.version.fetch_add(1, SeqCst).to_string());
        changed["spec"]["maxConnections"] = json!(connections);
        server.objects.lock().unwrap().insert(PATH.to_owned(), changed.clone());
        let guard: DeserializeGuard<Memcached> = serde_json::from_value(changed.clone()).unwrap();
        let answer: PartialObjectMeta<Memcached> = serde_json::from_value(changed).unwrap();
        context.caches.memcacheds.written(&answer, Subject::of(guard));
    };
    let ready = async |result: bool| {
        assert_eq!(pass(&context).await.is_ok(), result);
        let object = context.caches.memcacheds.get(&key).unwrap().memcached().unwrap();
        let known = report::find(&object, READY).unwrap();
        format!(
            "{} {} {}",
            known.status,
            known.reason,
            known.observed_generation.unwrap()
        )
    };
    assert!(context.slots.open().is_empty());
    change(1, 100, "false");
    assert_eq!(ready(true).await, "True ServersReady 1");
    change(1, 100, "true");
    assert_eq!(ready(true).await, "True ServersReady 1", "nothing waits");
    change(2, 200, "true");
    assert_eq!(ready(true).await, "False Paused 2");
    assert_eq!(ready(true).await, "False Paused 2", "nor the next time");
    change(2, 200, "false");
    assert_eq!(ready(true).await, "True ServersReady 2");
    // Too many requests: nothing that is reported as a problem.
    code.store(429, SeqCst);
    change(3, 300, "false");
    assert_eq!(ready(false).await, "False ApplyPending 3");
    assert_eq!(ready(false).await, "False ApplyPending 3", "nor the next time");
    code.store(0, SeqCst);
    assert_eq!(ready(true).await, "True ServersReady 3");
}

/// A webhook that refuses the rollout of one object must not keep the others waiting.
#[tokio::test]
async fn a_rollout_that_is_refused_gives_its_turn_away() {
    let refuses = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let server = Server::new({
        let refuses = Arc::clone(&refuses);
        move |line, sent| {
            if line == "PATCH deployments/sample" {
                sent["status"] =
                    json!({ "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1 });
            }
            (line == "PATCH deployments/sample" && refuses.load(SeqCst)).then_some(500)
        }
    });
    let key = ObjectKey::new("cache", "sample");
    let context = context(&server, &object(&json!({})));
    pass(&context).await.unwrap();
    let mut context = Arc::into_inner(context).unwrap();
    context.settings.image = Some("memcached:2".to_owned());
    let context = Arc::new(context);
    server.take();
    pass(&context).await.unwrap();
    assert_eq!(deployments(&server.take()), 0, "not before all objects are known");
    assert_eq!(context.slots.open(), std::slice::from_ref(&key));
    refuses.store(true, SeqCst);
    pass(&context).await.unwrap_err();
    assert!(!context.slots.holds(&key));
    refuses.store(false, SeqCst);
    pass(&context).await.unwrap();
    assert!(context.slots.holds(&key));
    pass(&context).await.unwrap();
    assert!(!context.slots.holds(&key), "complete");
}
