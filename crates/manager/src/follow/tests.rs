//! The cache after events and own writes.
use std::{
    convert::Infallible,
    future::ready,
    sync::{Arc, Mutex},
};

use hyper::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Client,
    client::Body,
    core::{ObjectMeta, PartialObjectMeta},
    runtime::watcher::Event,
};
use prometheus_client::metrics::counter::Counter;

use super::*;
use crate::probes::Readiness;

fn map(name: &str, version: &str) -> String {
    text(&ConfigMap {
        metadata: ObjectMeta {
            namespace: Some("ns".to_owned()),
            name: Some(name.to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
}

fn text(object: &ConfigMap) -> String {
    serde_json::to_string(object).unwrap()
}

/// A projection of ConfigMaps to their resource versions.
fn versions(cache: &Cache<String>) -> impl Fn(&[u8]) -> serde_json::Result<Option<String>> + use<> {
    let cache = cache.clone();
    move |text| {
        let map: Option<ConfigMap> = cache.readable(guarded(text)?);
        Ok(map.and_then(|map| map.metadata.resource_version))
    }
}

impl Feeder<'_> {
    /// Takes an event that has the JSON of an object.
    fn event_of_test(&mut self, event: Event<String>) {
        match event {
            Event::Init => self.begin(),
            Event::InitApply(object) => self.list(object.as_bytes()).unwrap(),
            Event::InitDone => self.complete(0),
            Event::Apply(object) => self.take(RawObject::new(object.as_bytes()).unwrap(), false).unwrap(),
            Event::Delete(object) => self.take(RawObject::new(object.as_bytes()).unwrap(), true).unwrap(),
        }
    }
}

/// Feeds `events` to a cache of resource versions and returns the cache, and the changes as `name:before>after`.
async fn feed(cache: &Cache<String>, events: Vec<Event<String>>) -> (bool, Vec<String>) {
    let readiness = Readiness::default();
    let changes = Mutex::new(Vec::new());
    let source = Source {
        cache: cache.clone(),
        scope: Some("ns".to_owned()),
        project: versions(cache),
        changed: |key: &ObjectKey, change: Change<String>| {
            let side = |side: Option<Arc<String>>| side.map(|version| version.to_string()).unwrap_or_default();
            changes
                .lock()
                .unwrap()
                .push(format!("{}:{}>{}", key.name, side(change.before), side(change.after)));
        },
        errors: Counter::default(),
    };
    let follow = Follow {
        gate: readiness.gate("maps"),
        source,
    };
    let mut feeder = Feeder::new(follow, "configmaps".to_owned(), Turns::default());
    events.into_iter().for_each(|event| feeder.event_of_test(event));
    drop(feeder);
    (readiness.is_ready(), changes.into_inner().unwrap())
}

#[tokio::test]
async fn a_new_list_removes_deleted_objects() {
    let cache = Cache::default();
    let (ready, changes) = feed(
        &cache,
        vec![
            Event::Init,
            Event::InitApply(map("a", "1")),
            Event::InitApply(map("b", "2")),
            Event::InitDone,
            Event::Apply(map("a", "3")),
        ],
    )
    .await;
    assert!(ready);
    assert_eq!(changes, ["a:>1", "b:>2", "a:1>3"]);
    let (_, changes) = feed(
        &cache,
        vec![Event::Init, Event::InitApply(map("a", "3")), Event::InitDone],
    )
    .await;
    assert_eq!(changes, ["a:3>3", "b:2>"]);
    assert_eq!(cache.len(), 1);
}

#[tokio::test]
async fn not_ready_before_the_list_is_complete() {
    let (ready, _) = feed(&Cache::default(), vec![Event::Init, Event::InitApply(map("a", "1"))]).await;
    assert!(!ready);
}

#[tokio::test]
async fn other_namespaces_of_the_same_cache_are_left_alone() {
    let cache = Cache::default();
    cache.written(&object("other", "x", 1), "1".to_owned());
    feed(&cache, vec![Event::Init, Event::InitDone]).await;
    assert_eq!(cache.len(), 1);
}

#[tokio::test]
async fn an_unreadable_object_is_absent_and_does_not_stop_the_watch() {
    let cache = Cache::default();
    let unreadable =
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": "bad"}, "data": 7}"#;
    let events = vec![
        Event::Init,
        Event::InitApply(map("bad", "1")),
        Event::InitDone,
        Event::Apply(unreadable.to_owned()),
        Event::Apply(map("good", "2")),
    ];
    let (_, changes) = feed(&cache, events).await;
    assert_eq!(changes, ["bad:>1", "bad:1>", "good:>2"]);
}

#[tokio::test]
async fn unreadable_objects_are_counted_until_they_are_readable_or_gone() {
    let cache = Cache::default();
    let unreadable =
        |name: &str| serde_json::json!({ "metadata": { "namespace": "ns", "name": name }, "data": 7 }).to_string();
    let list = |names: &[&str]| {
        let listed = names.iter().map(|name| Event::InitApply(unreadable(name)));
        std::iter::once(Event::Init)
            .chain(listed)
            .chain([Event::InitDone])
            .collect()
    };
    feed(&cache, list(&["a", "b", "c", "d"])).await;
    let gauge = prometheus_client::metrics::gauge::Gauge::default();
    cache.count_unreadable(gauge.clone());
    assert_eq!(gauge.get(), 4);
    let events = vec![
        Event::Apply(unreadable("a")),
        Event::Apply(map("b", "2")),
        Event::Delete(unreadable("c")),
    ];
    let (_, changes) = feed(&cache, events).await;
    assert_eq!((changes, gauge.get()), (vec!["b:>2".to_owned()], 2));
    feed(&cache, list(&["a"])).await;
    assert_eq!(gauge.get(), 1, "the list lacks d");
}

fn object(namespace: &str, name: &str, version: u64) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            uid: Some(format!("uid-of-{name}")),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn in_version(version: u64) -> String {
    text(&object("ns", "a", version))
}

fn now(cache: &Cache<String>) -> Option<String> {
    cache.get(&ObjectKey::new("ns", "a")).map(|value| value.to_string())
}

/// A late watch delivers states that the operator has already replaced.
#[tokio::test]
async fn own_writes_are_read_before_their_events_arrive() {
    let cache = Cache::default();
    feed(
        &cache,
        vec![Event::Init, Event::InitApply(in_version(3)), Event::InitDone],
    )
    .await;
    cache.written(&object("ns", "a", 7), "7".to_owned());
    assert_eq!(now(&cache).as_deref(), Some("7"));
    let (_, changes) = feed(
        &cache,
        vec![
            Event::Apply(in_version(5)),
            Event::Delete(in_version(6)),
            Event::Apply(in_version(7)),
            Event::Apply(in_version(9)),
        ],
    )
    .await;
    assert_eq!(changes, ["a:3>7", "a:7>9"], "5 and 6 are older than what was written");
    cache.written(&object("ns", "a", 8), "8".to_owned());
    assert_eq!(
        now(&cache).as_deref(),
        Some("9"),
        "an answer that is later than its event"
    );
}

/// The answer to a write shows what others changed just before it, and the events of that come later.
#[tokio::test]
async fn changes_of_others_before_a_write_are_kept() {
    let cache = Cache::default();
    feed(
        &cache,
        vec![Event::Init, Event::InitApply(in_version(3)), Event::InitDone],
    )
    .await;
    cache.written(&object("ns", "a", 5), "5".to_owned());
    let (_, changes) = feed(&cache, vec![Event::Apply(in_version(5))]).await;
    assert_eq!(changes, ["a:5>5"], "no other client wrote");
    // 7 is of another client, 8 and 9 are own.
    cache.written(&object("ns", "a", 8), "8".to_owned());
    cache.written(&object("ns", "a", 9), "9".to_owned());
    let (_, changes) = feed(
        &cache,
        vec![7, 8, 9]
            .into_iter()
            .map(|version| Event::Apply(in_version(version)))
            .collect(),
    )
    .await;
    assert_eq!(changes, ["a:5>9"]);
    // 10 is of another client, and the watch breaks: a list comes instead of its event.
    cache.written(&object("ns", "a", 11), "11".to_owned());
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    let (_, changes) = feed(
        &cache,
        vec![Event::Init, Event::InitApply(in_version(11)), Event::InitDone],
    )
    .await;
    assert_eq!(changes, ["a:9>11"]);
}

#[tokio::test]
async fn an_answer_after_the_deletion_brings_nothing_back() {
    let cache = Cache::default();
    feed(&cache, vec![Event::Init, Event::InitDone]).await;
    feed(&cache, vec![Event::Apply(in_version(5)), Event::Delete(in_version(6))]).await;
    cache.written(&object("ns", "a", 5), "5".to_owned());
    assert_eq!(now(&cache), None);
}

/// A feeder of `cache`, for all namespaces.
fn feeder(cache: &Cache<String>) -> Feeder<'static> {
    let source = Source {
        cache: cache.clone(),
        scope: None,
        project: versions(cache),
        changed: |_: &ObjectKey, _: Change<String>| {},
        errors: Counter::default(),
    };
    let gate = Readiness::default().gate("maps");
    Feeder::new(Follow { gate, source }, "configmaps".to_owned(), Turns::default())
}

/// Another client deletes the object after the write, while a list is made. No event follows a list that was made after the deletion.
#[tokio::test]
async fn a_list_that_is_newer_than_the_write_undoes_it() {
    for (version, left) in [(6, Some("7")), (7, None), (9, None)] {
        let cache = Cache::default();
        let mut feeder = feeder(&cache);
        feeder.begin();
        cache.written(&object("ns", "a", 7), "7".to_owned());
        feeder.complete(version);
        assert_eq!(now(&cache).as_deref(), left, "list in version {version}");
    }
}

#[tokio::test]
async fn an_answer_that_is_older_than_the_list_or_a_bookmark_brings_nothing_back() {
    let cache = Cache::default();
    let mut feeder = feeder(&cache);
    feeder.begin();
    feeder.complete(7);
    cache.written(&object("ns", "a", 7), "7".to_owned());
    assert_eq!(now(&cache), None, "the list lacks it");
    let bookmark = r#"{ "type": "BOOKMARK", "object": { "metadata": { "resourceVersion": "9" } } }"#;
    let mut version = "7".to_owned();
    let failure = feeder.event(&serde_json::from_str(bookmark).unwrap(), &mut version);
    assert!(failure.unwrap().is_none());
    cache.written(&object("ns", "a", 8), "8".to_owned());
    assert_eq!((version.as_str(), now(&cache)), ("9", None));
    cache.written(&object("ns", "a", 10), "10".to_owned());
    assert_eq!(now(&cache).as_deref(), Some("10"));
}

#[tokio::test]
async fn a_list_that_began_before_the_write_does_not_undo_it() {
    let cache = Cache::default();
    let mut feeder = feeder(&cache);
    let mut send = |event| feeder.event_of_test(event);
    send(Event::Init);
    cache.written(&object("ns", "a", 7), "7".to_owned());
    send(Event::InitDone);
    assert_eq!(now(&cache).as_deref(), Some("7"), "written while the list was made");
    // A list that begins later is right, even if its versions are lower: a backup was restored.
    for events in [vec![Event::InitApply(in_version(2))], vec![]] {
        send(Event::Init);
        events.into_iter().for_each(&mut send);
        send(Event::InitDone);
    }
    assert_eq!(now(&cache), None);
}

#[tokio::test]
async fn deleted_objects_stay_deleted_until_their_successor_comes() {
    let cache = Cache::default();
    feed(
        &cache,
        vec![Event::Init, Event::InitApply(in_version(3)), Event::InitDone],
    )
    .await;
    cache.deleted(&ObjectKey::new("ns", "a"), "uid-of-a");
    let (_, changes) = feed(&cache, vec![Event::Apply(in_version(4))]).await;
    assert_eq!((changes, now(&cache)), (vec![], None));
    let mut successor = object("ns", "a", 6);
    successor.metadata.uid = Some("another".to_owned());
    let events = vec![Event::Delete(in_version(5)), Event::Apply(text(&successor))];
    let (_, changes) = feed(&cache, events).await;
    assert_eq!(changes, ["a:>6"]);
}

/// A finalizer keeps it.
#[tokio::test]
async fn a_list_that_began_after_a_deletion_shows_what_is_still_there() {
    let cache = Cache::default();
    let list = || vec![Event::Init, Event::InitApply(in_version(3)), Event::InitDone];
    feed(&cache, list()).await;
    cache.deleted(&ObjectKey::new("ns", "a"), "uid-of-a");
    tokio::time::sleep(Duration::from_millis(2)).await;
    let (_, changes) = feed(&cache, list()).await;
    assert_eq!(changes, ["a:>3"]);
}

/// The answer to the deletion is late. Its event has already arrived, and so has the event of a newer object.
#[tokio::test]
async fn a_deletion_does_not_remove_a_younger_object_of_the_same_name() {
    let cache = Cache::default();
    let mut successor = object("ns", "a", 6);
    successor.metadata.uid = Some("another".to_owned());
    let events = vec![
        Event::Init,
        Event::InitApply(in_version(3)),
        Event::InitDone,
        Event::Delete(in_version(5)),
        Event::Apply(text(&successor)),
    ];
    feed(&cache, events).await;
    cache.deleted(&ObjectKey::new("ns", "a"), "uid-of-a");
    assert_eq!(now(&cache).as_deref(), Some("6"));
}

#[tokio::test]
async fn a_refused_watch_is_not_synced() {
    let readiness = Readiness::default();
    let cache = Cache::<String>::default();
    let source = Source {
        cache: cache.clone(),
        scope: Some("ns".to_owned()),
        project: versions(&cache),
        changed: |_: &ObjectKey, _: Change<String>| {},
        errors: Counter::default(),
    };
    let gate = readiness.gate_in("maps-in-ns", "ns");
    readiness.gate_in("maps-in-other", "other").open();
    let status = kube::core::Status::failure("maps is forbidden", "Forbidden").with_code(403);
    let forbidden = Error::InitialListFailed(kube::Error::Api(status.boxed()));
    assert!(!readiness.is_synced(), "not known yet");
    let mut feeder = Feeder::new(Follow { gate, source }, "configmaps".to_owned(), Turns::default());
    feeder.failed(forbidden).await;
    assert!(readiness.is_synced(), "the other namespace is there");
    assert!(readiness.is_synced_in("other") && !readiness.is_synced_in("ns"));
}

#[tokio::test]
async fn a_new_list_projects_only_what_changed() {
    let cache = Cache::default();
    let projected = Mutex::new(Vec::new());
    let source = || Source {
        cache: cache.clone(),
        scope: None,
        project: |text: &[u8]| {
            let version = metadata(text)?.resource_version.unwrap();
            projected.lock().unwrap().push(version.clone());
            Ok(Some(version))
        },
        changed: |_: &ObjectKey, _: Change<String>| {},
        errors: Counter::default(),
    };
    let mut replaced = object("ns", "c", 3);
    replaced.metadata.uid = Some("another".to_owned());
    for (third, second) in [(object("ns", "c", 3), 2), (replaced, 4)] {
        let follow = Follow {
            gate: Readiness::default().gate("maps"),
            source: source(),
        };
        let mut feeder = Feeder::new(follow, "configmaps".to_owned(), Turns::default());
        feeder.begin();
        for object in [object("ns", "a", 1), object("ns", "b", second), third] {
            feeder.list(text(&object).as_bytes()).unwrap();
        }
        feeder.complete(0);
    }
    assert_eq!(*projected.lock().unwrap(), ["1", "2", "3", "4", "3"]);
    assert_eq!(now(&cache).as_deref(), Some("1"));
}

/// A load balancer cuts connections that are quiet for a minute, or a test has a short limit: nothing is wrong with the watch.
#[tokio::test(start_paused = true)]
async fn pauses_are_shorter_than_watches_that_end_without_an_event() {
    for open in [8, 60] {
        let open = Duration::from_secs(open);
        let mut failures = Failures::default();
        let mut paused = Duration::ZERO;
        for _ in 0..20 {
            failures.opened();
            sleep(open).await;
            let pause = failures.next();
            assert!(pause <= open, "{pause:?} after a watch of {open:?}");
            sleep(pause).await;
            paused += pause;
        }
        assert!(paused < open * 20, "{paused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_while_watches_are_refused_or_cut_at_once() {
    for is_granted in [false, true] {
        let mut failures = Failures::default();
        let mut longest = Duration::ZERO;
        for _ in 0..20 {
            if is_granted {
                failures.opened();
                sleep(Duration::from_millis(200)).await;
            }
            let pause = failures.next();
            longest = longest.max(pause);
            sleep(pause).await;
        }
        assert!(longest >= BACKOFF.cap.mul_f64(0.5), "{longest:?}");
    }
}

/// The definition of the kind is not there, or was deleted and comes again.
#[tokio::test(start_paused = true)]
async fn pauses_stay_short_while_the_kind_is_not_served() {
    let cache = Cache::<String>::default();
    let source = Source {
        cache: cache.clone(),
        scope: None,
        project: versions(&cache),
        changed: |_: &ObjectKey, _: Change<String>| {},
        errors: Counter::default(),
    };
    let gate = Readiness::default().gate("maps");
    let mut feeder = Feeder::new(Follow { gate, source }, "configmaps".to_owned(), Turns::default());
    let failure = |code| {
        let status = kube::core::Status::failure("the server gives no reason", "Reason").with_code(code);
        Error::InitialListFailed(kube::Error::Api(status.boxed()))
    };
    for _ in 0..50 {
        let begin = Instant::now();
        feeder.failed(failure(404)).await;
        assert!(begin.elapsed() <= UNSERVED, "{:?}", begin.elapsed());
    }
    let begin = Instant::now();
    feeder.failed(failure(500)).await;
    assert!(begin.elapsed() > UNSERVED, "{:?}", begin.elapsed());
}

/// The time in which [`until_deleted`] notices the deletion, from a server that gives these answers.
async fn deletion_is_noticed(answers: &'static [&'static str]) -> Duration {
    let mut answers = answers.iter();
    let server = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        assert!(query.contains("fieldSelector=metadata.name%3Dweb"), "{query}");
        let answer = answers.next().expect("a request less");
        ready(Ok::<_, Infallible>(Response::new((*answer).to_owned())))
    });
    let objects: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(Client::new(server, "ns"), "ns");
    let start = Instant::now();
    until_deleted(objects, "web").await.unwrap();
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_noticed_by_list_or_watch() {
    const NONE: &str = r#"{"metadata":{"resourceVersion":"9"},"items":[]}"#;
    const ONE: &str = r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"web"}}]}"#;
    const CHANGED: &str = r#"{"type":"MODIFIED","object":{"metadata":{"name":"web"}}}"#;
    const DELETED: &str = concat!(
        r#"{"type":"MODIFIED","object":{"metadata":{"name":"web"}}}"#,
        "\n",
        r#"{"type":"DELETED","object":{"metadata":{"name":"web"}}}"#,
    );
    assert_eq!(deletion_is_noticed(&[NONE]).await, Duration::ZERO);
    assert_eq!(deletion_is_noticed(&[ONE, DELETED]).await, Duration::ZERO);
    // The watch is cut, or too old. Requests do not follow each other at once.
    for cut in [CHANGED, r#"{"type":"ERROR","object":{"code":410}}"#, ""] {
        let answers: &'static [&'static str] = Box::leak(Box::new([ONE, cut, ONE, cut, NONE]));
        assert_eq!(deletion_is_noticed(answers).await, BACKOFF.base * 2);
    }
}
