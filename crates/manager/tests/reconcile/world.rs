//! A namespace in a control plane, and operators in it.
use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{core::v1::Namespace, events::v1::Event},
};
use kube::{
    Api, Client, CustomResourceExt as _, Resource,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use kube_manager::{
    Manager,
    log::without_content,
    manager::Error,
    options::Options,
    reconcile::{Controller, Reconciler},
    shutdown::CancellationToken,
};
use kube_testbed::{
    ControlPlane,
    faults::{FaultProxy, Verb},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::{sync::OnceCell, task::JoinHandle};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt as _};

use crate::shop::{Knobs, Shop, ShopSpec, controller};

static CONTROL_PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

async fn control_plane() -> &'static ControlPlane {
    let start = async || {
        let options = kube_testbed::Options::default()
            .without_controllers()
            .pods_become_ready(false);
        let plane = ControlPlane::start(options).await.unwrap();
        plane.install([Shop::crd()]).await.unwrap();
        plane
    };
    CONTROL_PLANE.get_or_init(start).await
}

/// A namespace of the test's own.
pub struct World {
    pub client: Client,
    pub namespace: &'static str,
}

/// A running operator.
pub struct Operator {
    pub proxy: FaultProxy,
    pub knobs: Knobs,
    stop: CancellationToken,
    running: JoinHandle<Result<(), Error>>,
}

impl World {
    pub async fn new(namespace: &'static str) -> Self {
        let client = control_plane().await.client().await.unwrap();
        let object = serde_json::from_value(json!({ "metadata": { "name": namespace } })).unwrap();
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        Self { client, namespace }
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    pub async fn operator(&self, factor: u32) -> Operator {
        self.operator_as(factor, "shops").await
    }

    /// An operator that multiplies sizes, under this field manager.
    pub async fn operator_as(&self, factor: u32, manager: &'static str) -> Operator {
        let plane = control_plane().await;
        let proxy = plane.faults(1).await.unwrap();
        self.operator_through(factor, manager, proxy).await
    }

    pub async fn operator_through(&self, factor: u32, manager: &'static str, proxy: FaultProxy) -> Operator {
        let knobs = Knobs {
            factor,
            ..Knobs::default()
        };
        // Both operators see the same children.
        self.run(manager, proxy, knobs.clone(), controller(knobs)).await
    }

    /// The operator `manager` with this controller.
    pub async fn run<R: Reconciler>(
        &self,
        manager: &'static str,
        proxy: FaultProxy,
        knobs: Knobs,
        controller: Controller<R>,
    ) -> Operator {
        let plane = control_plane().await;
        let options = Options {
            health_probe_bind_address: None,
            metrics_bind_address: None,
            watch_namespace: self.namespace.parse().unwrap(),
            ..Options::default()
        };
        let client = proxy.client(plane.kubeconfig()).await.unwrap();
        let stop = CancellationToken::new();
        let builder = Manager::builder(manager)
            .client(client)
            .options(options)
            .stop(stop.clone());
        let manager = builder.start().await.unwrap();
        manager.add(controller);
        Operator {
            proxy,
            knobs,
            stop,
            running: tokio::spawn(manager.run()),
        }
    }

    pub async fn proxy(&self) -> FaultProxy {
        control_plane().await.faults(1).await.unwrap()
    }

    pub async fn create(&self, name: &str, spec: ShopSpec) {
        self.api()
            .create(&PostParams::default(), &Shop::new(name, spec))
            .await
            .unwrap();
    }

    pub async fn set(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.api::<Shop>()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Waits until the condition has this status for the newest generation.
    pub async fn condition(&self, name: &str, kind: &str, status: &str) -> Shop {
        eventually(&format!("{name} {kind}={status}"), async || {
            let shop = self.api::<Shop>().get(name).await.unwrap();
            let seen = shop.status.as_ref()?;
            let found = kube_manager::conditions::get(&seen.conditions, kind)?;
            (found.status == status && seen.observed_generation == shop.metadata.generation).then(|| shop.clone())
        })
        .await
    }

    pub async fn is_available(&self, name: &str) -> Shop {
        self.condition(name, "Available", "True").await
    }

    /// Waits until the object is deleted.
    pub async fn deleted<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + DeserializeOwned,
    {
        eventually(&format!("{name} is deleted"), async || {
            let found = self.api::<K>().get_opt(name).await.unwrap();
            found.is_none().then_some(())
        })
        .await;
    }

    /// The notes of the events with this reason.
    pub async fn events(&self, reason: &str) -> Vec<String> {
        let events = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        let of_reason = events
            .items
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some(reason));
        of_reason.filter_map(|event| event.note).collect()
    }

    pub async fn event(&self, reason: &str) -> String {
        eventually(reason, async || self.events(reason).await.pop()).await
    }
}

/// The log of the operators on the test's thread, at the level debug.
pub struct Log {
    file: NamedTempFile,
    _guard: DefaultGuard,
}

impl Log {
    pub fn start() -> Self {
        let file = NamedTempFile::new().unwrap();
        let lines = fmt::layer().json().flatten_event(true).with_span_list(false);
        let lines = tracing_subscriber::registry()
            .with(without_content("debug".parse::<Targets>().unwrap()))
            .with(lines.with_writer(Arc::new(file.reopen().unwrap())));
        let _guard = tracing::subscriber::set_default(lines);
        Self { file, _guard }
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(self.file.path()).unwrap()
    }

    /// The lines with this message.
    pub fn lines(&self, message: &str) -> Vec<Value> {
        let text = self.text();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["message"] == message).collect()
    }
}

impl Operator {
    pub fn runs(&self) -> usize {
        self.knobs.runs.load(SeqCst)
    }

    pub fn cleanup_waits(&self, yes: bool) {
        self.knobs.cleanup_waits.store(yes, SeqCst);
    }

    /// Waits until nothing was reconciled or requested for a while.
    pub async fn is_quiet(&self) {
        let mut last = (usize::MAX, usize::MAX);
        let mut same = 0;
        for _ in 0..600 {
            let now = (self.proxy.count(), self.runs());
            same = if now == last { same + 1 } else { 0 };
            if same == 20 {
                return;
            }
            last = now;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it works all the time");
    }

    /// Requests for objects, without watches, lists, leases and events, in the form "Patch configmaps web 200".
    pub fn objects_after(&self, known: usize) -> Vec<String> {
        let requests = self.proxy.requests_after(known).into_iter();
        let requests = requests.filter(|request| {
            let resource = request.resource.as_str();
            let is_review = resource.starts_with("selfsubject");
            !matches!(request.verb, Verb::Watch | Verb::List)
                && !matches!(resource, "" | "events" | "leases")
                && !is_review
        });
        requests
            .map(|request| {
                let code = request.answer.map_or(0, |(code, _)| code);
                format!("{:?} {} {} {code}", request.verb, request.resource, request.name)
            })
            .collect()
    }

    pub async fn stop(self) {
        self.stop.cancel();
        self.running.await.unwrap().unwrap();
    }
}

pub async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    // Operators that fight wait for 15 seconds, and a busy machine takes its time.
    for _ in 0..2400 {
        if let Some(found) = probe().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within two minutes: {what}");
}
