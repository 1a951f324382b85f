//! Measures the memory that cached objects take: in kube-runtime's `Store`, and in this crate's `Cache`.
//!
//! `caches seed NUMBER` creates pods until there are that many. `caches VARIANT` lists all pods twice into one cache, as
//! a watch does when it starts and when it has to start over, and prints resident memory in KiB after each list and at
//! its peak. Each variant runs in a separate process: see `dev/bench/manager.sh`.
use std::{error::Error, fmt::Debug, time::Duration};

use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, PostParams},
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt, reflector,
        watcher::{self, Config, Event, watcher},
    },
};
use kube_manager::{
    cache::Cache,
    follow::{Follow, Source},
    metrics::Metrics,
    probes::Readiness,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let variant = arguments.next().unwrap_or_default();
    let client = Client::try_default().await?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    if variant == "seed" {
        let number = arguments.next().unwrap_or_default().parse()?;
        return seed(&pods, number).await;
    }
    // A connection and its TLS session belong to the baseline.
    pods.list_metadata(&ListParams::default().limit(1)).await?;
    let before = memory("VmRSS")?;
    let all = Config::default();
    let (objects, first, second) = match variant.as_str() {
        "store-full" => store(|| watcher(pods.clone(), all.clone())).await?,
        "store-trimmed" => store(|| watcher(pods.clone(), all.clone()).modify(trim)).await?,
        "store-metadata" => {
            let metadata: Api<PartialObjectMeta<Pod>> = Api::default_namespaced(client);
            store(|| {
                watcher(metadata.clone(), all.clone()).modify(|pod| {
                    pod.managed_fields_mut().clear();
                })
            })
            .await?
        }
        "cache-projected" => cache(&pods, |pod: Pod| Some(Applied::new(&pod))).await?,
        "cache-metadata" => {
            let metadata: Api<PartialObjectMeta<Pod>> = Api::default_namespaced(client);
            cache(&metadata, |pod: PartialObjectMeta<Pod>| Some(pod.metadata.uid)).await?
        }
        _ => return Err(format!("unknown variant {variant:?}").into()),
    };
    let peak = memory("VmHWM")?;
    let above = |memory: u64| memory.saturating_sub(before);
    println!(
        "| {variant} | {objects} | {} | {} | {} |",
        above(first),
        above(second),
        above(peak)
    );
    Ok(())
}

/// Drops the fields that most operators do not read.
fn trim(pod: &mut Pod) {
    pod.managed_fields_mut().clear();
    pod.status = None;
}

/// The owner and the applied fields of an object, as text.
struct Applied {
    _uid: Option<String>,
    _owner: Option<OwnerReference>,
    _content: Box<str>,
}

impl Applied {
    fn new(pod: &Pod) -> Self {
        let content = json!({
            "metadata": { "annotations": pod.metadata.annotations, "labels": pod.metadata.labels },
            "spec": pod.spec,
        });
        Self {
            _uid: pod.uid(),
            _owner: pod.owner_references().first().cloned(),
            _content: content.to_string().into_boxed_str(),
        }
    }
}

/// Lists twice into a `Store`. Returns the number of objects and the memory after each list.
async fn store<K, S>(list: impl Fn() -> S) -> Result<(usize, u64, u64)>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + 'static,
    S: Stream<Item = watcher::Result<Event<K>>>,
{
    let (reader, mut writer) = reflector::store::<K>();
    let mut after = Vec::new();
    for _ in 0..2 {
        let mut events = std::pin::pin!(list());
        while let Some(event) = events.try_next().await? {
            writer.apply_watcher_event(&event);
            if matches!(event, Event::InitDone) {
                break;
            }
        }
        after.push(memory("VmRSS")?);
    }
    Ok((
        reader.len(),
        after.first().copied().unwrap_or(0),
        after.last().copied().unwrap_or(0),
    ))
}

/// Lists twice into a `Cache`. Returns the number of objects and the memory after each list.
async fn cache<K, T, P>(api: &Api<K>, project: P) -> Result<(usize, u64, u64)>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
    T: Send + Sync,
    P: Fn(K) -> Option<T> + Clone + Send,
{
    let cache = Cache::default();
    let errors = Metrics::new().watch_errors("pods");
    let mut after = Vec::new();
    for _ in 0..2 {
        let readiness = Readiness::default();
        let follow = Follow {
            gate: readiness.gate("pods"),
            source: Source {
                cache: cache.clone(),
                scope: None,
                project: project.clone(),
                changed: |_: &_, _| {},
                errors: errors.clone(),
            },
        };
        let ready = async {
            while !readiness.is_ready() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = follow.run(api.clone(), Config::default()) => {}
            () = ready => {}
        }
        after.push(memory("VmRSS")?);
    }
    Ok((
        cache.len(),
        after.first().copied().unwrap_or(0),
        after.last().copied().unwrap_or(0),
    ))
}

/// A line of this process's `/proc/self/status`, in KiB.
fn memory(field: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no such field in /proc/self/status")?.parse()?)
}

/// Creates pods of one memcached server each, which no scheduler takes, until there are `number`.
async fn seed(pods: &Api<Pod>, number: usize) -> Result<()> {
    let existing = pods.list_metadata(&ListParams::default()).await?.items.len();
    stream::iter(existing..number)
        .map(|index| async move {
            pods.create(&PostParams::default(), &pod(index)?)
                .await
                .map_err(Into::into)
        })
        .buffer_unordered(16)
        .try_for_each(|pod: Pod| async move {
            if pod.name_any() == "pod-00000" {
                eprintln!("bytes of one object as JSON: {}", serde_json::to_string(&pod)?.len());
            }
            Ok::<_, Box<dyn Error>>(())
        })
        .await
}

fn pod(index: usize) -> Result<Pod> {
    let probe = |period: u32| json!({ "tcpSocket": { "port": "memcached" }, "periodSeconds": period });
    let value: Value = json!({
        "metadata": {
            "name": format!("pod-{index:05}"),
            "labels": {
                "app.kubernetes.io/name": "memcached",
                "app.kubernetes.io/instance": format!("sample-{index}"),
                "app.kubernetes.io/managed-by": "memcached-operator",
            },
            "annotations": { "cache.example.com/applied-configuration": format!("{index:016x}") },
        },
        "spec": {
            "schedulerName": "none",
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "memcached",
                "image": "docker.io/library/memcached:1.6.45-alpine",
                "command": ["memcached"],
                "args": ["-m", "64", "-c", "1024", "-p", "11211"],
                "ports": [{ "name": "memcached", "containerPort": 11211 }],
                "livenessProbe": probe(10),
                "readinessProbe": probe(5),
                "resources": { "limits": { "memory": "128Mi" }, "requests": { "memory": "128Mi" } },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"] },
                    "readOnlyRootFilesystem": true,
                    "runAsNonRoot": true,
                    "runAsUser": 1001,
                },
            }],
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
        },
    });
    Ok(serde_json::from_value(value)?)
}
