//! Effects of each proxy fault, and each failing webhook, on a client. Needs `make tools`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    core::v1::{ConfigMap, Namespace, ServiceAccount},
};
use kube::{
    Api,
    api::{ListParams, PostParams, WatchEvent, WatchParams},
};
use kube_testbed::{
    ControlPlane, Options,
    faults::{DeadWebhook, Death, Fault, FaultProxy, Rule, Verb},
};
use serde_json::json;
use tokio::{
    sync::OnceCell,
    time::{sleep, timeout},
};

const MOMENT: Duration = Duration::from_millis(300);

/// One for all tests, each of which has a separate namespace. It ends with the process.
async fn plane() -> &'static ControlPlane {
    static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();
    let start = async || {
        let options = Options::default().without_controllers().pods_become_ready(false);
        ControlPlane::start(options).await.unwrap()
    };
    PLANE.get_or_init(start).await
}

/// The maps of a new namespace: without the proxy, and as the administrator through it.
async fn maps(namespace: &str) -> (Api<ConfigMap>, Api<ConfigMap>, FaultProxy) {
    let plane = plane().await;
    let client = plane.client().await.unwrap();
    let new: Namespace = serde_json::from_value(json!({ "metadata": { "name": namespace } })).unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &new).await.unwrap();
    let proxy = plane.faults(1).await.unwrap();
    let through = proxy.client(plane.kubeconfig()).await.unwrap();
    let [direct, through] = [client, through].map(|client| Api::namespaced(client, namespace));
    (direct, through, proxy)
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

/// The event of a watch through the proxy after a change, and its delay.
async fn watched(through: &Api<ConfigMap>, direct: &Api<ConfigMap>, name: &str, limit: Duration) -> (String, Duration) {
    let version = direct
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version;
    let parameters = WatchParams::default().disable_bookmarks();
    let mut events = std::pin::pin!(through.watch(&parameters, &version.unwrap()).await.unwrap());
    sleep(MOMENT + MOMENT / 2).await;
    direct.create(&PostParams::default(), &map(name)).await.unwrap();
    let begin = Instant::now();
    let outcome = match timeout(limit, events.next()).await {
        Err(_) => "silence".to_owned(),
        Ok(None | Some(Err(_))) => "end".to_owned(),
        Ok(Some(Ok(WatchEvent::Error(status)))) => status.code.to_string(),
        Ok(Some(Ok(_))) => "event".to_owned(),
    };
    (outcome, begin.elapsed())
}

#[tokio::test]
async fn watches_are_late_silent_and_ended() {
    let (direct, through, proxy) = maps("watches").await;
    let none = Duration::ZERO;
    for (name, fault, outcome, least) in [
        ("as-ever", None, "event", none),
        ("late", Some(Fault::EventsLate(2 * MOMENT)), "event", MOMENT),
        ("bookmarks", Some(Fault::BookmarksOnly), "silence", none),
        ("stalled", Some(Fault::Stalled(MOMENT)), "silence", none),
        ("dropped", Some(Fault::Dropped(MOMENT)), "end", none),
        ("expired", Some(Fault::Expired(MOMENT)), "410", none),
    ] {
        proxy.clear();
        if let Some(fault) = fault {
            proxy.add(Rule::new(fault).verb(Verb::Watch).resource("configmaps"));
        }
        // Silence is waited for, and anything else must come, however busy the machine is.
        let limit = if outcome == "silence" { 4 * MOMENT } else { 200 * MOMENT };
        let (found, after) = watched(&through, &direct, name, limit).await;
        assert_eq!(found, outcome, "{name}");
        assert!(after >= least, "{name}: after {after:?}");
    }
}

#[tokio::test]
async fn writes_are_refused_late_and_lost() {
    let (direct, through, proxy) = maps("writes").await;
    // The code that the client sees, if any; whether the server has the object; the least time it takes.
    for (name, fault, code, stored, least) in [
        ("refused", Fault::status(422), Some(422), false, Duration::ZERO),
        // kube's client obeys `Retry-After`.
        ("busy", Fault::busy(2), Some(201), true, Duration::from_secs(2)),
        ("late", Fault::Late(MOMENT), Some(201), true, MOMENT),
        ("lost", Fault::AnswerLost, None, true, Duration::ZERO),
        ("swallowed", Fault::BlackHole(MOMENT), None, false, MOMENT),
    ] {
        proxy.add(Rule::new(fault).writes().namespace("writes").times(1));
        let begin = Instant::now();
        let found = match through.create(&PostParams::default(), &map(name)).await {
            Ok(_) => Some(201),
            Err(kube::Error::Api(status)) => Some(status.code),
            Err(_) => None,
        };
        let after = begin.elapsed();
        assert_eq!(found, code, "{name}");
        assert!(after >= least, "{name}: after {after:?}");
        assert_eq!(direct.get_opt(name).await.unwrap().is_some(), stored, "{name}");
        // A rule for one time is used up.
        through
            .create(&PostParams::default(), &map(&format!("{name}-2")))
            .await
            .unwrap();
    }
}

/// A black hole delays requests in flight and new ones, and releases them afterwards.
#[tokio::test]
async fn a_black_hole_stops_all_requests() {
    let (direct, through, proxy) = maps("hole").await;
    let parameters = WatchParams::default().disable_bookmarks();
    let mut events = std::pin::pin!(through.watch(&parameters, "0").await.unwrap());
    direct.create(&PostParams::default(), &map("before")).await.unwrap();
    let added = |event: Option<kube::Result<WatchEvent<ConfigMap>>>| match event {
        Some(Ok(WatchEvent::Added(map))) => map.metadata.name.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(added(events.next().await), "before");

    let begin = Instant::now();
    proxy.black_hole(20 * MOMENT);
    direct.create(&PostParams::default(), &map("meanwhile")).await.unwrap();
    let abandoned = map("abandoned");
    let parameters = PostParams::default();
    let (silence, abandoned, read) = tokio::join!(
        timeout(3 * MOMENT, events.next()),
        timeout(MOMENT, through.create(&parameters, &abandoned)),
        async { (through.get("before").await, begin.elapsed()) },
    );
    assert!(silence.is_err() && abandoned.is_err());
    assert!(read.0.is_ok() && read.1 >= 20 * MOMENT, "{read:?}");
    assert_eq!(added(events.next().await), "meanwhile");
    assert!(
        direct.get_opt("abandoned").await.unwrap().is_none(),
        "no client waited for it"
    );
}

#[tokio::test]
async fn forgotten_requests_still_count() {
    let (_, through, proxy) = maps("forgotten").await;
    through.create(&PostParams::default(), &map("first")).await.unwrap();
    let known = proxy.count();
    through.create(&PostParams::default(), &map("second")).await.unwrap();
    for _ in 0..2 {
        proxy.forget(known);
        assert_eq!(proxy.count(), known + 1);
        let left = proxy.requests();
        assert_eq!(left.len(), 1);
        assert!(String::from_utf8_lossy(&left[0].body).contains("second"));
        assert_eq!(left[0].answer.unwrap().0, 201);
        assert_eq!(proxy.requests_after(known).len(), 1);
        assert!(proxy.requests_after(known + 1).is_empty());
    }
    proxy.forget(usize::MAX);
    assert_eq!((proxy.count(), proxy.requests().len()), (known + 1, 0));
    through.get("second").await.unwrap();
    assert_eq!(proxy.requests_after(known + 1)[0].answer.unwrap().0, 200);
}

/// The certificates of two users are not mixed up, and a token is passed unchanged.
#[tokio::test]
async fn each_client_keeps_its_user() {
    let (_, administrator, proxy) = maps("users").await;
    let plane = plane().await;
    let account: ServiceAccount = serde_json::from_value(json!({ "metadata": { "name": "nobody" } })).unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(plane.client().await.unwrap(), "users");
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let kubeconfig = plane.service_account_kubeconfig("users", "nobody").await.unwrap();
    let nobody: Api<ConfigMap> = Api::namespaced(proxy.client(&kubeconfig).await.unwrap(), "users");
    let refused = nobody.list(&ListParams::default()).await.unwrap_err().to_string();
    assert!(refused.contains("system:serviceaccount:users:nobody"), "{refused}");
    administrator.list(&ListParams::default()).await.unwrap();
}

#[tokio::test]
async fn dead_webhooks_admit_nothing() {
    let (direct, ..) = maps("admission").await;
    let client = direct.clone().into_client();
    let hooks: Api<ValidatingWebhookConfiguration> = Api::all(client);
    for (death, reason) in [
        (Death::Hangs, "context deadline exceeded"),
        (Death::Resets, "connection reset by peer"),
        (Death::Nonsense, "couldn't get version/kind"),
    ] {
        let webhook = DeadWebhook::start(death).await.unwrap();
        let name = format!("{death:?}").to_lowercase();
        let hook = json!({ "name": format!("{name}.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "timeoutSeconds": 1, "clientConfig": webhook.client_config(),
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "admission" } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] }] });
        let configuration = json!({ "metadata": { "name": name }, "webhooks": [hook] });
        let configuration = serde_json::from_value(configuration).unwrap();
        hooks.create(&PostParams::default(), &configuration).await.unwrap();
        let end = Instant::now() + Duration::from_mins(3);
        // The API server learns of webhooks through a watch.
        let mut error = String::new();
        while !error.contains(reason) {
            assert!(Instant::now() < end, "{death:?}: {error}");
            let new = serde_json::from_value(json!({ "metadata": { "generateName": "map-" } })).unwrap();
            match direct.create(&PostParams::default(), &new).await {
                Ok(_) => sleep(MOMENT / 3).await,
                Err(refused) => error = refused.to_string(),
            }
        }
        hooks.delete(&name, &Default::default()).await.unwrap();
    }
}
