//! Storms: random changes while the API server fails at random and replicas are killed.
use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, Namespace, Secret},
    },
};
use kube::{
    Api, Error, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kube_manager::drift::differs;
use kube_testbed::faults::{Fault, FaultProxy, ProxiedRequest, Rule, Verb};
use memcached_operator::{
    api::v1alpha1::{Memcached, Workload},
    operand,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::lab::{IMAGE, LIMIT, Lab, Operator, eventually, value};

/// Compares every object with what its spec asks for, after all faults.
async fn all_is_as_desired(lab: &Lab) {
    let memcacheds = lab.api::<Memcached>().list(&ListParams::default()).await.unwrap();
    let mut wanted = Vec::new();
    for memcached in &memcacheds {
        let name = memcached.name_any();
        eventually("the status names the pods", async || {
            let nodes = lab.running(&name).await.status.unwrap().nodes;
            (nodes == lab.pods(&name).await).then_some(())
        })
        .await;
        wanted.push(lab.running(&name).await);
    }
    let image = |memcached: &Memcached| memcached.spec.image.clone().unwrap_or_else(|| IMAGE.to_owned());
    let is_set = |memcached: &Memcached| memcached.spec.workload == Workload::StatefulSet;
    are(lab, &wanted, |memcached| {
        (!is_set(memcached)).then(|| operand::deployment(memcached, &image(memcached)))
    })
    .await;
    are(lab, &wanted, |memcached| {
        is_set(memcached).then(|| operand::stateful_set(memcached, &image(memcached)))
    })
    .await;
    are(lab, &wanted, |memcached| {
        is_set(memcached).then(|| operand::server_list(memcached))
    })
    .await;
    are(lab, &wanted, |memcached| {
        is_set(memcached).then(|| operand::binding(memcached))
    })
    .await;
    are(lab, &wanted, |memcached| Some(operand::service(memcached))).await;
    are(lab, &wanted, |memcached| {
        (memcached.spec.size > 1).then(|| operand::budget(memcached, 0))
    })
    .await;
}

/// Waits until the objects of kind `K` in the lab are the `desired` ones, and no others. The last change of one may be younger
/// than the status.
async fn are<K>(lab: &Lab, memcacheds: &[Memcached], desired: impl Fn(&Memcached) -> Option<K>)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let desired: Vec<K> = memcacheds.iter().filter_map(desired).collect();
    let end = Instant::now() + LIMIT;
    loop {
        let mut found = lab.api::<K>().list(&ListParams::default()).await.unwrap().items;
        // Kubernetes' own, such as the ConfigMap kube-root-ca.crt.
        found.retain(|found| found.labels().contains_key(operand::OWNER));
        let wrong = faults(&desired, &found);
        if wrong.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "{} after {LIMIT:?}: {wrong:?}", K::kind(&()));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The differences between the `desired` and the `found` objects.
fn faults<K: Resource<DynamicType = ()> + Serialize>(desired: &[K], found: &[K]) -> Vec<String> {
    let content = |object: &K| {
        let object = value(object);
        json!([object["spec"], object["data"]])
    };
    let missing = desired.iter().filter_map(|desired| {
        let name = desired.name_any();
        match found.iter().find(|found| found.name_any() == name) {
            Some(found) => differs(&content(desired), &content(found)).map(|field| format!("{name}: {field:?}")),
            None => Some(format!("{name} is missing")),
        }
    });
    let is_surplus = |found: &&K| !desired.iter().any(|desired| desired.name_any() == found.name_any());
    let surplus = found.iter().filter(is_surplus);
    missing
        .chain(surplus.map(|found| format!("{} should not exist", found.name_any())))
        .collect()
}

/// Faults of an API server under stress. Each affects a share of the requests.
fn stress(proxy: &FaultProxy) {
    for code in [409, 422, 500, 503] {
        proxy.add(Rule::new(Fault::status(code)).writes().share(0.04));
    }
    proxy.add(Rule::new(Fault::busy(1)).share(0.04));
    proxy.add(Rule::new(Fault::AnswerLost).writes().share(0.05));
    proxy.add(Rule::new(Fault::Late(Duration::from_millis(400))).share(0.1));
    proxy.add(Rule::new(Fault::BlackHole(Duration::from_secs(2))).share(0.02));
    proxy.add(Rule::new(Fault::status(410)).verb(Verb::Watch).share(0.1));
    proxy.add(
        Rule::new(Fault::Dropped(Duration::from_secs(1)))
            .verb(Verb::Watch)
            .share(0.2),
    );
    proxy.add(
        Rule::new(Fault::Expired(Duration::from_secs(1)))
            .verb(Verb::Watch)
            .share(0.2),
    );
    proxy.add(
        Rule::new(Fault::Stalled(Duration::from_secs(1)))
            .verb(Verb::Watch)
            .share(0.05),
    );
    proxy.add(
        Rule::new(Fault::EventsLate(Duration::from_millis(300)))
            .verb(Verb::List)
            .share(0.2),
    );
    proxy.add(
        Rule::new(Fault::EventsLate(Duration::from_secs(1)))
            .verb(Verb::Watch)
            .share(0.3),
    );
}

/// Random changes under stress, with two replicas that are killed.
pub struct Storm {
    seed: u64,
    random: fastrand::Rng,
    /// Separate, so that the other changes of a seed stay the same.
    workloads: fastrand::Rng,
    lab: Lab,
    proxies: [FaultProxy; 2],
    replicas: Vec<Replica>,
}

/// A replica: a process and those before it, one after the other.
struct Replica {
    process: Operator,
    /// When each process was started.
    started: Vec<Instant>,
}

/// Seconds that the clocks of the two replicas are ahead: up to three hours, or behind. In every fourth storm they are right.
fn clocks(seed: u64) -> [i64; 2] {
    // A separate generator, so that each seed keeps its changes.
    let mut random = fastrand::Rng::with_seed(!seed);
    match random.u8(0..4) {
        0 => [0, 0],
        _ => [random.i64(-10_800..10_800), random.i64(-10_800..10_800)],
    }
}

impl Storm {
    /// Starts proxies and replicas in `lab`.
    pub async fn begin(lab: Lab, seed: u64) -> Self {
        let proxies = [lab.faults(seed).await, lab.faults(seed + 1).await];
        for (proxy, ahead) in proxies.iter().zip(clocks(seed)) {
            stress(proxy);
            proxy.clock_ahead(ahead);
        }
        let mut replicas = Vec::new();
        for index in 0..proxies.len() {
            let started = vec![Instant::now()];
            let process = replica(&lab, &proxies, index).await;
            replicas.push(Replica { process, started });
        }
        Self {
            seed,
            random: fastrand::Rng::with_seed(seed),
            workloads: fastrand::Rng::with_seed(seed.rotate_left(32)),
            lab,
            proxies,
            replicas,
        }
    }

    /// Makes `steps` random changes.
    pub async fn rage(&mut self, steps: usize) {
        let memcacheds = self.lab.api::<Memcached>();
        for step in 0..steps {
            let random = &mut self.random;
            let name = format!("m{}", random.u8(0..4));
            let size = random.u8(0..4);
            let exists = eventually("an answer", async || memcacheds.get_opt(&name).await.ok()).await;
            match (random.u8(0..10), exists) {
                (_, None) => self.create(&name, size).await,
                // One that is being deleted may be gone by now, and the API server too.
                (0..5, Some(_)) => {
                    let workload = ["Deployment", "StatefulSet"][self.workloads.usize(0..2)];
                    let change = Patch::Merge(json!({ "spec": { "size": size, "workload": workload } }));
                    let _ = memcacheds.patch(&name, &PatchParams::default(), &change).await;
                }
                (5..7, Some(_)) => {
                    let _ = memcacheds.delete(&name, &DeleteParams::default()).await;
                }
                (7..9, Some(_)) => {
                    let other = Patch::Merge(json!({ "spec": { "replicas": 5 } }));
                    let parameters = PatchParams::default();
                    // Not all of these exist.
                    let _ = self.lab.api::<Deployment>().patch(&name, &parameters, &other).await;
                    let _ = self.lab.api::<StatefulSet>().patch(&name, &parameters, &other).await;
                    let list = Patch::Merge(json!({ "data": { "servers": "other" } }));
                    let list_name = format!("{name}-servers");
                    let _ = self.lab.api::<ConfigMap>().patch(&list_name, &parameters, &list).await;
                    let binding = format!("{name}-binding");
                    let _ = self
                        .lab
                        .api::<Secret>()
                        .delete(&binding, &DeleteParams::default())
                        .await;
                }
                _ => {
                    let index = random.usize(0..2);
                    self.replicas[index].process.kill();
                    self.begin_process(index).await;
                }
            }
            self.restart().await;
            println!("seed {}, step {step}: {name} {size}", self.seed);
            tokio::time::sleep(Duration::from_millis(self.random.u64(50..1500))).await;
        }
    }

    /// Repeats the request, because an API server that ends may or may not have executed it.
    async fn create(&self, name: &str, size: u8) {
        let object = Memcached::new(name, serde_json::from_value(json!({ "size": size })).unwrap());
        eventually("it is created", async || {
            match self.lab.api().create(&PostParams::default(), &object).await {
                Err(Error::Api(status)) if status.code == 409 => Some(()),
                other => other.ok().map(drop),
            }
        })
        .await;
    }

    /// Ends the faults. Fails if the final state is not what was asked for, or if a replica that did not hold the lease wrote.
    /// Returns how many writes were checked.
    pub async fn settle(mut self) -> usize {
        self.proxies.iter().for_each(FaultProxy::clear);
        let memcacheds = self.lab.api::<Memcached>();
        eventually("objects that were deleted are gone", async || {
            self.restart().await;
            let found = memcacheds.list(&ListParams::default()).await.unwrap();
            let deleting = found.iter().any(|found| found.metadata.deletion_timestamp.is_some());
            (!deleting).then_some(())
        })
        .await;
        // On a slow machine, a leader can lose its lease at any time.
        let lab = self.lab.clone();
        let mut settled = std::pin::pin!(all_is_as_desired(&lab));
        while tokio::time::timeout(Duration::from_millis(200), &mut settled)
            .await
            .is_err()
        {
            self.restart().await;
        }
        let started: Vec<Vec<Instant>> = self.replicas.iter().map(|replica| replica.started.clone()).collect();
        one_writes_at_a_time(&self.proxies, &started)
    }

    /// Starts replicas that have ended again, as the kubelet does: one that loses the lease ends.
    async fn restart(&mut self) {
        for index in 0..self.replicas.len() {
            let current = &mut self.replicas[index].process;
            if let Some(status) = current.ended() {
                assert_eq!(status.code(), Some(1), "{}", current.log());
                self.begin_process(index).await;
            }
        }
    }

    /// Starts a process in the place of one that has ended.
    async fn begin_process(&mut self, index: usize) {
        // Requests of the previous process may still arrive at the proxy, and must not count for this one.
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.replicas[index].started.push(Instant::now());
        self.replicas[index].process = replica(&self.lab, &self.proxies, index).await;
    }
}

async fn storm(seed: u64, steps: usize) -> usize {
    let mut storm = Storm::begin(Lab::new(&format!("storm-{seed}")).await, seed).await;
    storm.rage(steps).await;
    storm.settle().await
}

async fn replica(lab: &Lab, proxies: &[FaultProxy; 2], index: usize) -> Operator {
    let pod = format!("replica-{index}");
    // Stalled watches are noticed after eight seconds, not 95: a storm is short.
    let arguments = ["--leader-elect", "--watch-timeout=8"];
    lab.start_through(&proxies[index], &arguments, &[("POD_NAME", &pod)])
        .await
}

/// Checks on the record of both proxies that only the process that held the lease wrote. `started` has the times at which the
/// processes of each replica were started. One ends before the next begins.
fn one_writes_at_a_time(proxies: &[FaultProxy; 2], started: &[Vec<Instant>]) -> usize {
    let mut record = Vec::new();
    for (replica, proxy) in proxies.iter().enumerate() {
        for request in proxy.requests() {
            let process = started[replica].partition_point(|start| *start <= request.at);
            record.push(((replica, process), request));
        }
    }
    let written = |request: &ProxiedRequest| request.answer.filter(|(code, _)| (200..300).contains(code));
    // The stored leases: the time, and the process that had the lease from then on.
    let mut leases: Vec<(Instant, Option<(usize, usize)>)> = record
        .iter()
        .filter(|(_, request)| request.resource == "leases" && request.verb.is_write())
        .filter_map(|(process, request)| {
            let (_, at) = written(request)?;
            let lease: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
            let holds = lease["spec"]["holderIdentity"].as_str() != Some("");
            Some((at, holds.then_some(*process)))
        })
        .collect();
    leases.sort_by_key(|(at, _)| *at);
    let mut checked = 0;
    for (process, request) in &record {
        if !request.verb.is_write() || request.resource == "leases" || request.resource.starts_with("selfsubject") {
            continue;
        }
        let holder = leases
            .iter()
            .rev()
            .find(|(at, _)| *at <= request.at)
            .and_then(|(_, holder)| *holder);
        // Events that were queued while it led may follow the release.
        if request.resource != "events" {
            assert_eq!(holder, Some(*process), "{request:?}");
        }
        checked += 1;
    }
    println!("{checked} writes checked, {} of the lease", leases.len());
    assert!(checked > 0);
    checked
}

#[tokio::test]
async fn a_storm() {
    storm(1, 12).await;
}

/// The fast form: many short storms side by side on one control plane. Prints the seeds that failed.
///
/// `STORMS=2000 cargo test --test operator many_storms -- --ignored --nocapture`. `STORMS_FROM` is the first seed,
/// `STORMS_AT_ONCE` limits parallel storms.
#[tokio::test]
#[ignore = "two seconds for each storm on two idle cores"]
async fn many_storms() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (count, first) = (number("STORMS", 20), number("STORMS_FROM", 1000));
    let at_once = usize::try_from(number("STORMS_AT_ONCE", 12)).unwrap();
    let started = Instant::now();
    let storms = futures::stream::iter((0..count).map(|index| first + 2 * index)).map(async |seed| {
        let ended = AssertUnwindSafe(storm(seed, 12)).catch_unwind().await;
        let namespace = format!("storm-{seed}");
        let client = Lab::existing(&namespace).await.client;
        let _ = Api::<Namespace>::all(client)
            .delete(&namespace, &DeleteParams::default())
            .await;
        (seed, ended.ok())
    });
    let mut storms = std::pin::pin!(storms.buffer_unordered(at_once));
    let (mut failed, mut passed, mut checked) = (Vec::new(), 0, 0);
    while let Some((seed, ended)) = storms.next().await {
        match ended {
            Some(writes) => (passed, checked) = (passed + 1, checked + writes),
            None => failed.push(seed),
        }
        let seconds = started.elapsed().as_secs();
        println!(
            "{passed} of {} storms passed, {checked} writes checked, {seconds} s",
            passed + failed.len()
        );
    }
    assert!(failed.is_empty(), "seeds that failed: {failed:?}");
}
