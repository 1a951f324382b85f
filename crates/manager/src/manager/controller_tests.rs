//! Objects that concern others.
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Node},
};
use serde_json::{Value, json};

use super::*;

fn object<K: DeserializeOwned>(value: Value) -> Option<Arc<K>> {
    Some(Arc::new(serde_json::from_value(value).unwrap()))
}

fn deployment(metadata: Value) -> Option<Arc<Deployment>> {
    object(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata }))
}

#[test]
fn a_change_of_the_status_is_not_relevant_and_all_others_are() {
    let relevant = |before, after| {
        is_relevant(&Change {
            before,
            after,
            listed: false,
        })
    };
    let base = || deployment(json!({ "generation": 1, "resourceVersion": "5" }));
    assert!(!relevant(
        base(),
        deployment(json!({ "generation": 1, "resourceVersion": "6" }))
    ));
    for changed in [
        json!({ "generation": 2 }),
        json!({ "generation": 1, "labels": { "a": "b" } }),
        json!({ "generation": 1, "annotations": { "a": "b" } }),
        json!({ "generation": 1, "finalizers": ["a/b"] }),
        json!({ "generation": 1, "deletionTimestamp": "2024-01-01T00:00:00Z" }),
        json!({ "generation": 1, "uid": "another" }),
    ] {
        assert!(relevant(base(), deployment(changed.clone())), "{changed}");
    }
    assert!(relevant(None, base()) && relevant(base(), None));
    let map = |version: &str| object::<ConfigMap>(json!({ "metadata": { "resourceVersion": version } }));
    let maps = |before, after| {
        is_relevant(&Change {
            before,
            after,
            listed: false,
        })
    };
    assert!(maps(map("5"), map("6")), "it has no generation");
    assert!(!maps(map("5"), map("5")));
}

#[test]
fn pages_are_small_unless_the_operator_has_another_size_in_mind() {
    let labelled = watcher::Config::default().labels("a=b");
    let config = paged(labelled.clone());
    assert_eq!(
        (config.page_size, config.label_selector),
        (Some(PAGE), labelled.label_selector)
    );
    assert_eq!(paged(watcher::Config::default().page_size(7)).page_size, Some(7));
    let whole = watcher::Config {
        page_size: None,
        ..watcher::Config::default()
    };
    assert_eq!(paged(whole).page_size, None);
}

#[test]
fn the_owner_is_the_controller_of_the_kind() {
    let metadata = |owner: Value| -> ObjectMeta {
        serde_json::from_value(json!({ "namespace": "ns", "name": "child", "ownerReferences": [owner] })).unwrap()
    };
    let deployment =
        json!({ "apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "web", "uid": "1", "controller": true });
    assert_eq!(
        owner::<Deployment>(&metadata(deployment)),
        Some(ObjectKey::new("ns", "web"))
    );
    let node = json!({ "apiVersion": "v1", "kind": "Node", "name": "one", "uid": "1", "controller": true });
    assert_eq!(owner::<Node>(&metadata(node.clone())), Some(ObjectKey::new("", "one")));
    assert_eq!(owner::<Deployment>(&metadata(node)), None);
    let other =
        json!({ "apiVersion": "example.com/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": true });
    assert_eq!(owner::<Deployment>(&metadata(other)), None, "of another group");
    let merely = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1" });
    assert_eq!(owner::<Deployment>(&metadata(merely)), None, "not its controller");
}

#[test]
fn owners_that_gain_or_lose_an_object_are_affected() {
    let related = |name: &str, version: &str| {
        let metadata = ObjectMeta {
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        Some(Arc::new(Related::new(vec![ObjectKey::new("ns", name)], metadata)))
    };
    let keys = |before, after| -> Vec<String> {
        let change = Change {
            before,
            after,
            listed: false,
        };
        affected(&change).into_iter().map(|key| key.name.to_string()).collect()
    };
    assert_eq!(keys(related("b", "1"), related("a", "2")), ["a", "b"]);
    assert_eq!(keys(related("a", "1"), related("a", "2")), ["a"]);
    assert_eq!(keys(related("a", "1"), related("a", "1")), Vec::<String>::new());
    assert_eq!(keys(None, related("a", "1")), ["a"]);
    assert_eq!(
        keys(related("a", "1"), None),
        ["a"],
        "deleted, or it has lost its owner"
    );
}

/// Each pass changes what it owns and fails. The event comes during the pass, or soon after it.
#[tokio::test(start_paused = true)]
async fn a_failing_pass_is_not_begun_anew_by_its_own_write() {
    for late in [false, true] {
        let queue = Arc::new(WorkQueue::new(Backoff::default(), None));
        let key = ObjectKey::new("ns", "a");
        queue.add(key.clone());
        let mut passes = 0;
        let fail = async {
            while let Some(key) = queue.next().await {
                passes += 1;
                if late {
                    queue.failed(&key);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                add_owner(&queue, key.clone(), false, "a test".into());
                if !late {
                    queue.failed(&key);
                }
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(600), fail).await;
        assert!((20..70).contains(&passes), "{passes} passes in ten minutes");
    }
}

/// Changes of another client are seen, whether the pass succeeds or not.
#[tokio::test(start_paused = true)]
async fn a_change_of_an_owned_object_is_not_lost_after_failures() {
    let queue = WorkQueue::new(Backoff::default(), None);
    let key = ObjectKey::new("ns", "a");
    queue.add(key.clone());
    for _ in 0..20 {
        queue.next().await.unwrap();
        queue.failed(&key);
    }
    queue.next().await.unwrap();
    add_owner(&queue, key.clone(), false, "a test".into());
    queue.succeeded(&key);
    let again = tokio::time::timeout(Duration::from_secs(30), queue.next()).await;
    assert_eq!(again, Ok(Some(key.clone())));
    queue.succeeded(&key);
    add_owner(&queue, key.clone(), false, "a test".into());
    assert_eq!(queue.len(), 1, "at once, after a success");
}
