//! Faults of the API server, of watches and of webhooks.
use std::time::{Duration, Instant};

use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration, apps::v1::Deployment, coordination::v1::Lease,
    events::v1::Event,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use kube_testbed::faults::{DeadWebhook, Death, Fault, ProxiedRequest, Rule, Verb};
use memcached_operator::api::v1alpha1::{Memcached, Phase};
use serde_json::json;

use crate::lab::{IMAGE, Lab, create, eventually, image, within};

/// A webhook that admits no Deployment in the lab's namespace. Removed with [`Lab::remove_webhook`].
pub async fn block_deployments(lab: &Lab, webhook: &DeadWebhook) {
    let hook = json!({ "name": "dead.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Fail", "timeoutSeconds": 10, "clientConfig": { "url": webhook.url() },
        "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": lab.namespace } },
        "rules": [{ "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
            "resources": ["deployments"] }] });
    let name = format!("dead-{}", lab.namespace);
    create::<ValidatingWebhookConfiguration>(
        &Api::all(lab.client.clone()),
        json!({ "metadata": { "name": name }, "webhooks": [hook] }),
    )
    .await;
    // The API server reads webhooks through a separate watch.
    eventually("the webhook blocks", async || {
        let probe = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "probe" }, "spec": {
            "selector": { "matchLabels": { "app": "probe" } },
            "template": { "metadata": { "labels": { "app": "probe" } },
                "spec": { "containers": [{ "name": "probe", "image": "probe:1" }] } } } });
        let dry = kube::api::PostParams {
            dry_run: true,
            ..Default::default()
        };
        let deployments = lab.api::<Deployment>();
        let asked = tokio::time::timeout(
            Duration::from_secs(1),
            deployments.create(&dry, &serde_json::from_value(probe).unwrap()),
        )
        .await;
        matches!(asked, Err(_) | Ok(Err(_))).then_some(())
    })
    .await;
}

async fn unblock_deployments(lab: &Lab) {
    let name = format!("dead-{}", lab.namespace);
    Api::<ValidatingWebhookConfiguration>::all(lab.client.clone())
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
}

/// The text of the error has another port each time. That must not make it news.
#[tokio::test]
async fn a_webhook_that_resets_connections_does_not_make_a_hot_loop() {
    let lab = Lab::new("reset-webhook").await;
    let webhook = DeadWebhook::start(Death::Resets).await.unwrap();
    block_deployments(&lab, &webhook).await;
    let operator = lab.operator().await;
    lab.memcached("sample", json!({})).await;
    lab.reaches("sample", Phase::Degraded).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    let writes: Vec<String> = lab
        .requests()
        .await
        .iter()
        .filter(|event| ["create", "patch"].contains(&event.verb.as_str()) && event.stage == "ResponseComplete")
        .filter_map(|event| event.object_ref.as_ref())
        .filter(|object| !object.resource.starts_with("selfsubject"))
        .map(|object| format!("{} {}", object.resource, object.subresource))
        .collect();
    let count = |what: &str| writes.iter().filter(|write| write.starts_with(what)).count();
    // 100 ms, doubled each time, in 15 s and a bit: at most ten passes, with jitter of a half.
    assert!((3..=12).contains(&count("deployments")), "{writes:#?}");
    // A connection that is reset shows as one of several errors, and each may be reported. The back-off bounds that too.
    let passes = count("deployments");
    assert!(count("memcacheds status") <= passes + 1, "{writes:#?}");
    assert!(count("events") <= count("memcacheds status"), "{writes:#?}");
    unblock_deployments(&lab).await;
    lab.running("sample").await;
    drop(operator);
}

/// Workers that wait for one tenant's webhook must not be all. Prints how long the changes of the other one waited for their
/// first write.
#[tokio::test]
async fn a_tenant_whose_webhook_hangs_does_not_delay_others() {
    let (hangs, other) = (Lab::new("hanging-webhook").await, Lab::new("unaffected").await);
    let webhook = DeadWebhook::start(Death::Hangs).await.unwrap();
    block_deployments(&hangs, &webhook).await;
    hangs.grant_everywhere().await;
    let proxy = hangs.faults(1).await;
    let _operator = hangs
        .operator_through(&proxy, &[], &[("WATCH_NAMESPACE", "hanging-webhook,unaffected")])
        .await;
    // More than there are workers.
    for index in 0..40 {
        hangs.memcached(&format!("hangs{index}"), json!({})).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut created = Vec::new();
    for index in 0..100 {
        let name = format!("m{index}");
        created.push((name.clone(), Instant::now()));
        other.memcached(&name, json!({})).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let deployments = || -> Vec<ProxiedRequest> {
        let mut seen = proxy.requests();
        seen.retain(|request| request.resource == "deployments" && request.verb.is_write());
        seen
    };
    let mut waited: Vec<Duration> = Vec::new();
    for (name, at) in created {
        let written = eventually("its Deployment", async || {
            let mut written = deployments().into_iter();
            written.find(|request| request.name == name)
        })
        .await;
        waited.push(written.at.duration_since(at));
    }
    waited.sort();
    println!(
        "next to a hanging webhook: median {:?}, p99 {:?}",
        waited[50], waited[98]
    );
    // Three quarters of the 32 workers may wait for one namespace. Whatever the machine's speed, the other namespace's objects are
    // written by the rest, while requests for the first one hang.
    let (hanging, others): (Vec<ProxiedRequest>, Vec<ProxiedRequest>) = deployments()
        .into_iter()
        .partition(|request| request.namespace == "hanging-webhook");
    let most = hanging.iter().map(|one| in_flight(&hanging, one.at)).max();
    assert!(most.is_some_and(|most| most > 0 && most <= 24), "{most:?}");
    assert!(
        others.iter().any(|request| in_flight(&hanging, request.at) > 0),
        "nothing was written while requests hung"
    );
    unblock_deployments(&hangs).await;
}

/// Requests that were not answered yet at that time.
fn in_flight(requests: &[ProxiedRequest], at: Instant) -> usize {
    let open = |request: &&ProxiedRequest| request.at <= at && request.answer.is_none_or(|(_, end)| end > at);
    requests.iter().filter(open).count()
}

/// Names of the writes that a scenario costs, without those of the status, whose number depends on what is seen together.
fn writes(requests: &[ProxiedRequest]) -> Vec<String> {
    let mut writes: Vec<String> = requests
        .iter()
        .filter(|request| request.verb.is_write() && !request.resource.contains("selfsubject"))
        .filter(|request| request.resource != "memcacheds/status")
        .map(|request| format!("{:?} {} {}", request.verb, request.resource, request.name))
        .collect();
    writes.sort();
    writes
}

/// Every action once. Returns the operator's requests, and its events.
async fn scenario(name: &str, delay: Option<Duration>) -> (Vec<ProxiedRequest>, Vec<String>) {
    let lab = Lab::new(name).await;
    let proxy = lab.faults(1).await;
    if let Some(delay) = delay {
        proxy.add(Rule::new(Fault::EventsLate(delay)).verb(Verb::Watch));
    }
    let _operator = lab.operator_through(&proxy, &[], &[]).await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    lab.change("sample", json!({ "size": 3 })).await;
    lab.running("sample").await;
    lab.change("sample", json!({ "size": 1 })).await;
    lab.running("sample").await;
    let grown = Patch::Merge(json!({ "spec": { "replicas": 2 } }));
    lab.api::<Deployment>()
        .patch("sample", &PatchParams::default(), &grown)
        .await
        .unwrap();
    lab.event("sample", "Reverted").await;
    lab.running("sample").await;
    lab.delete("sample").await;
    lab.gone("sample").await;
    tokio::time::sleep(delay.unwrap_or_default() + Duration::from_secs(1)).await;
    let events = lab.api::<Event>().list(&ListParams::default()).await.unwrap();
    let mut events: Vec<String> = events
        .iter()
        .filter(|event| event.regarding.clone().unwrap_or_default().kind.as_deref() == Some("Memcached"))
        // Its text tells the number of servers that were ready when it was seen.
        .filter(|event| event.reason.as_deref() != Some("Available"))
        .map(|event| {
            let count = event.series.as_ref().map_or(1, |series| series.count);
            format!(
                "{} × {count}",
                event.note.clone().unwrap_or_default().replace(name, "NAMESPACE")
            )
        })
        .collect();
    events.sort();
    (proxy.requests(), events)
}

/// The operator reads its own writes: what a late watch has not delivered yet is neither written nor reported again.
#[tokio::test]
async fn late_watches_cost_no_write_no_conflict_and_no_event() {
    let (prompt, late) = tokio::join!(
        scenario("prompt-watches", None),
        scenario("late-watches", Some(Duration::from_secs(1)))
    );
    assert_eq!(writes(&late.0), writes(&prompt.0));
    assert_eq!(late.1, prompt.1);
    let refused: Vec<&ProxiedRequest> = late
        .0
        .iter()
        .filter(|request| request.answer.is_some_and(|(code, _)| code == 409))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let statuses = |requests: &[ProxiedRequest]| {
        let of = requests
            .iter()
            .filter(|request| request.resource == "memcacheds/status");
        of.count()
    };
    let (late, prompt) = (statuses(&late.0), statuses(&prompt.0));
    println!("status writes: {late} with late watches, {prompt} without");
    // The status shows what is seen, and watches that are late one by one show more in between. It does not loop.
    assert!(late <= 3 * prompt, "{late} {prompt}");
}

#[tokio::test]
async fn a_status_that_is_refused_does_not_block_deletion() {
    let lab = Lab::new("refused-status").await;
    let proxy = lab.faults(1).await;
    let _operator = lab.operator_through(&proxy, &[], &[]).await;
    lab.memcached("sample", json!({})).await;
    lab.running("sample").await;
    proxy.add(Rule::new(Fault::status(422)).writes().resource("memcacheds/status"));
    proxy.add(
        Rule::new(Fault::BlackHole(Duration::from_secs(60)))
            .writes()
            .resource("events"),
    );
    lab.delete("sample").await;
    within(Duration::from_secs(50), "it is deleted", async || {
        lab.api::<Memcached>()
            .get_opt("sample")
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
}

const LEASE: &str = "memcached-operator.cache.example.com";

async fn holder(lab: &Lab) -> Option<String> {
    let lease = lab.api::<Lease>().get_opt(LEASE).await.unwrap()?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

/// A replica that cannot fill its caches must not keep a healthy one from leading.
#[tokio::test]
async fn a_replica_that_cannot_watch_does_not_lead() {
    let lab = Lab::new("blind-replica").await;
    let proxy = lab.faults(1).await;
    proxy.add(Rule::new(Fault::status(403)).resource("pods"));
    let blind = lab
        .start_through(&proxy, &["--leader-elect"], &[("POD_NAME", "blind")])
        .await;
    eventually("the blind one has tried", async || {
        blind.log().contains("cannot list").then_some(())
    })
    .await;
    assert_eq!(blind.get("probes", "/readyz").await.0, 500);
    let _healthy = lab.operator_with(&["--leader-elect"], &[("POD_NAME", "healthy")]).await;
    let leader = eventually("a leader", async || holder(&lab).await).await;
    assert!(leader.starts_with("healthy_"), "{leader}");
    lab.memcached("sample", json!({})).await;
    lab.running("sample").await;
}

/// Permissions in one of two namespaces are sufficient for that one.
#[tokio::test]
async fn a_forbidden_namespace_does_not_block_the_other() {
    let (lab, _forbidden) = (Lab::new("allowed").await, Lab::new("forbidden").await);
    let operator = lab
        .operator_with(&[], &[("WATCH_NAMESPACE", "allowed,forbidden")])
        .await;
    lab.memcached("sample", json!({})).await;
    lab.running("sample").await;
    let (_, report) = operator.get("probes", "/readyz?verbose").await;
    assert!(
        report.contains("[-]watch-pods-in-forbidden failed: cannot list"),
        "{report}"
    );
}

/// A new default image replaces the servers of one Memcached after the other, the oldest first.
#[tokio::test]
async fn a_new_default_image_rolls_out_one_by_one() {
    const NEW: &str = "registry.example.com:5000/library/memcached:1.6.40";
    let lab = Lab::new("one-by-one").await;
    let names = ["c", "a", "b"];
    {
        let _operator = lab.operator().await;
        for name in names {
            lab.memcached(name, json!({})).await;
            lab.running(name).await;
            // Creation times are in seconds.
            tokio::time::sleep(Duration::from_millis(1100)).await;
        }
    }
    let paused = Patch::Merge(json!({ "metadata": { "annotations": { "cache.example.com/paused": "true" } } }));
    lab.memcached("d", json!({})).await;
    let memcacheds = lab.api::<Memcached>();
    let _operator = lab
        .operator_with(&["--max-rolling=1"], &[("MEMCACHED_IMAGE", NEW)])
        .await;
    lab.running("d").await;
    memcacheds.patch("a", &PatchParams::default(), &paused).await.unwrap();
    let mut order = Vec::new();
    within(
        Duration::from_secs(120),
        "all but the paused one run the new image",
        async || {
            let deployments = lab.api::<Deployment>().list(&ListParams::default()).await.unwrap();
            let begun: Vec<&Deployment> = deployments
                .iter()
                .filter(|found| image(found) == NEW && found.name_any() != "d")
                .collect();
            for found in &begun {
                if !order.contains(&found.name_any()) {
                    order.push(found.name_any());
                }
            }
            let rolling = |found: &Deployment| {
                let status = found.status.clone().unwrap_or_default();
                status.observed_generation != found.metadata.generation || status.available_replicas != Some(1)
            };
            let rolling: Vec<String> = begun
                .iter()
                .filter(|found| rolling(found))
                .map(|found| found.name_any())
                .collect();
            assert!(rolling.len() <= 1, "{rolling:?} at the same time");
            (order.len() == 2 && rolling.is_empty()).then_some(())
        },
    )
    .await;
    assert_eq!(order, ["c", "b"]);
    assert_eq!(image(&lab.api::<Deployment>().get("a").await.unwrap()), IMAGE);
}

/// A watch on which nothing arrives any more, not even its end. An API server sends a bookmark each minute, and the operator
/// waits 95 seconds for one. Here less, so that the test need not.
#[tokio::test]
async fn half_open_watches_are_opened_again() {
    let lab = Lab::new("half-open").await;
    let proxy = lab.faults(1).await;
    proxy.add(Rule::new(Fault::Stalled(Duration::from_secs(5))).verb(Verb::Watch));
    let operator = lab.operator_through(&proxy, &["--watch-timeout=8"], &[]).await;
    lab.memcached("sample", json!({ "size": 1 })).await;
    lab.running("sample").await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    proxy.clear();
    lab.change("sample", json!({ "size": 2 })).await;
    // The watches from before deliver nothing any more.
    eventually("the change is seen", async || {
        let deployment = lab.api::<Deployment>().get("sample").await.unwrap();
        (deployment.spec?.replicas == Some(2)).then_some(())
    })
    .await;
    assert!(!operator.log().contains("watch failed"), "a quiet watch is no failure");
    lab.running("sample").await;
    assert_eq!(operator.get("probes", "/readyz").await.0, 200);
}
