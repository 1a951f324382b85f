//! Drills the alerts in `monitoring/`: causes the condition of each alert in an operator, and scrapes its `/metrics` during that time.
//! `dev/alerts.sh` runs it and has promtool apply the rules to the scrapes.
//!
//! Alerts wait up to a quarter of an hour, the drill does not: it scrapes every 20 s, and each scrape counts as a minute of the
//! rules. So rates are a third of what they were, which makes it harder for an alert to fire, and a fault that lasts seven
//! minutes counts as one of 21. `ALERTS_EVERY=60` drills in real time.
mod series;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use futures::future::join_all;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Pod, Service},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::PartialObjectMeta,
};
use kube_manager::{
    Manager,
    metrics::Metrics,
    options::Options,
    reconcile::{Context, Controller, Error, Outcome, Reconciler},
    shutdown::CancellationToken,
};
use kube_testbed::faults::{DeadWebhook, Death, Fault, FaultProxy, Rule, Verb};
use memcached_operator::{
    api::v1alpha1::Memcached,
    controller::{LEASE, MemcachedReconciler, NAME},
};
use serde_json::{Value, json};
use series::{Expected, Scrapes, minutes, promtool_test, rules};
use tokio::time::MissedTickBehavior;

use crate::{
    faults::block_deployments,
    lab::{IMAGE, Lab, Operator, UNAVAILABLE, eventually, value},
    monitoring::metrics,
};

/// Each alert, without the prefix, and the fault that it must report.
static DRILLS: [(&str, &str); 11] = [
    ("Degraded", "the image of a cache cannot be pulled"),
    ("ServersMissing", "the image of a cache cannot be pulled"),
    ("OutOfMemory", "the kernel kills a server for its memory"),
    ("Evictions", "a server with full memory evicts a fifth of the items"),
    ("OperatorWithoutLeader", "the API server refuses the Lease"),
    ("OperatorErrors", "the API server refuses Deployments"),
    ("OperatorPanics", "a reconcile panics"),
    ("OperatorSlow", "a webhook hangs, and 30 objects change"),
    (
        "OperatorTimeouts",
        "the API server does not answer writes of Deployments",
    ),
    (
        "OperatorCannotRead",
        "a newer version has written a number that this one has no room for",
    ),
    ("OperatorWatchesFail", "the API server refuses the watch of pods"),
];

/// Name prefix of all alerts. [`DRILLS`] has the rest.
const PREFIX: &str = "Memcached";

/// Scrapes before the fault begins.
const CALM: usize = 5;

/// Minutes after its `for` in which an alert may fire.
const GRACE: usize = 5;

/// An operator that is drilled.
enum Subject {
    /// A separate process.
    Process(Operator),
    /// In this process, so that a test can make a reconcile panic. No API server response causes that.
    Here(Box<Metrics>, CancellationToken),
}

/// The answer of a server's exporter, with the labels that Prometheus adds. Clients store 1,000 items between two scrapes.
#[derive(Default)]
struct Exporter {
    stored: u32,
    evicted: u32,
    is_full: bool,
}

impl Exporter {
    fn scrape(&mut self) -> String {
        self.stored += 1000;
        // A few evictions are usual.
        self.evicted += if self.is_full { 200 } else { 10 };
        let values = [("items", self.stored), ("items_evicted", self.evicted)];
        let lines = values.map(|(name, value)| {
            format!("memcached_{name}_total{{namespace=\"shop\",memcached_cr=\"sample\"}} {value}\n")
        });
        lines.concat()
    }
}

struct Drill {
    alert: &'static str,
    exporter: Exporter,
    lab: Lab,
    proxy: FaultProxy,
    subject: Subject,
    webhook: Option<DeadWebhook>,
}

impl Drill {
    async fn start(alert: &'static str) -> Self {
        let lab = Lab::new(&format!("alert-{}", alert.to_lowercase())).await;
        let proxy = lab.faults(1).await;
        let subject = match alert {
            "OperatorPanics" => here(&lab).await,
            _ => Subject::Process(lab.operator_through(&proxy, &["--leader-elect"], &[]).await),
        };
        let mut drill = Self {
            alert,
            exporter: Exporter::default(),
            lab,
            proxy,
            subject,
            webhook: None,
        };
        lab_at_work(&drill.lab, alert).await;
        eventually("it leads", async || {
            let text = drill.scrape().await?;
            let leads = format!("leader_election_master_status{{name=\"{LEASE}\"}} 1");
            text.contains(&leads).then_some(())
        })
        .await;
        drill
    }

    /// The response of `/metrics`. Starts a process again if it has ended, as the kubelet does.
    async fn scrape(&mut self) -> Option<String> {
        match &mut self.subject {
            Subject::Here(metrics, _) => Some(metrics.render()),
            Subject::Process(operator) => {
                if operator.ended().is_some() {
                    *operator = self.lab.start_through(&self.proxy, &["--leader-elect"], &[]).await;
                    return None;
                }
                let text = operator.try_get("metrics", "/metrics").await.ok()?.1;
                Some(text + &self.exporter.scrape())
            }
        }
    }

    /// Scrapes before and during the fault, with a change of an object before each.
    async fn run(mut self, every: Duration, count: usize) -> Scrapes {
        let mut scrapes = Scrapes::default();
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for place in 0..count {
            ticks.tick().await;
            scrapes.0.push(self.scrape().await);
            if place + 1 == CALM {
                self.begin().await;
            }
            self.lab.change("sample", json!({ "size": 1 + place % 2 })).await;
        }
        if let Subject::Here(_, stop) = &self.subject {
            stop.cancel();
        }
        scrapes
    }

    /// Lets the fault begin.
    async fn begin(&mut self) {
        let (lab, proxy) = (&self.lab, &self.proxy);
        match self.alert {
            "Degraded" | "ServersMissing" => drop(lab.change("sample", json!({ "image": UNAVAILABLE })).await),
            "Evictions" => self.exporter.is_full = true,
            "OutOfMemory" => run_out_of_memory(lab).await,
            "OperatorWithoutLeader" => proxy.add(Rule::new(Fault::status(500)).resource("leases")),
            "OperatorErrors" => proxy.add(Rule::new(Fault::status(500)).writes().resource("deployments")),
            "OperatorPanics" => drop(lab.memcached("panics", json!({})).await),
            "OperatorSlow" => {
                let webhook = DeadWebhook::start(Death::Hangs).await.unwrap();
                block_deployments(lab, &webhook).await;
                self.webhook = Some(webhook);
                join_all(others().map(async |name| lab.change(&name, json!({ "maxConnections": 512 })).await)).await;
            }
            "OperatorTimeouts" => {
                let silence = Fault::BlackHole(Duration::from_secs(60));
                proxy.add(Rule::new(silence).writes().resource("deployments"));
            }
            "OperatorCannotRead" => write_as_newer_version(lab, "newer").await,
            "OperatorWatchesFail" => {
                proxy.add(Rule::new(Fault::status(403)).verb(Verb::Watch).resource("pods"));
                proxy.expire_watches();
            }
            other => panic!("no drill for {other}"),
        }
    }
}

/// Names of all objects except the first.
fn others() -> impl Iterator<Item = String> {
    (0..29).map(|index| format!("m{index}"))
}

/// Objects that an operator has brought to what they should be.
async fn lab_at_work(lab: &Lab, alert: &str) {
    lab.memcached("sample", json!({})).await;
    let more: Vec<String> = match alert {
        "OperatorSlow" => others().collect(),
        "OperatorCannotRead" => vec!["newer".to_owned()],
        _ => Vec::new(),
    };
    for name in more {
        lab.memcached(&name, json!({ "size": 0 })).await;
    }
    lab.running("sample").await;
}

/// The operator's reconciler, except that the object `panics` makes it panic.
struct Panicking;

impl Reconciler for Panicking {
    type Object = Memcached;

    async fn reconcile(&self, memcached: &Memcached, context: &Context<Memcached>) -> Result<Outcome, Error> {
        assert_ne!(memcached.name_any(), "panics", "part of the drill");
        let mut memcached = memcached.clone();
        memcached.spec.image.get_or_insert(IMAGE.to_owned());
        MemcachedReconciler::default().reconcile(&memcached, context).await
    }

    fn report(
        &self,
        memcached: &Memcached,
        context: &Context<Memcached>,
        result: &Result<Outcome, Error>,
    ) -> Option<Outcome> {
        MemcachedReconciler::default().report(memcached, context, result)
    }
}

async fn here(lab: &Lab) -> Subject {
    let options = Options {
        leader_elect: true,
        leader_election_id: Some(LEASE.to_owned()),
        leader_election_namespace: Some(lab.namespace.clone()),
        health_probe_bind_address: None,
        metrics_bind_address: None,
        watch_namespace: lab.namespace.parse().unwrap(),
        ..Options::default()
    };
    let stop = CancellationToken::new();
    let manager = Manager::builder(NAME).client(lab.client.clone());
    let manager = manager.options(options).stop(stop.clone()).start().await.unwrap();
    let why = "part of the drill";
    manager.add(
        Controller::new("memcached", Panicking)
            .owns::<Deployment>(why)
            .owns::<Service>(why),
    );
    let metrics = manager.metrics().clone();
    tokio::spawn(manager.run());
    Subject::Here(Box::new(metrics), stop)
}

/// A server ends as it does when the kernel kills it for its memory.
async fn run_out_of_memory(lab: &Lab) {
    lab.change("sample", json!({ "image": UNAVAILABLE })).await;
    let pods = lab.api::<Pod>();
    let waiting = eventually("a pod that waits", async || {
        let found = pods.list(&ListParams::default()).await.unwrap().items;
        found.into_iter().find(|pod| {
            let is_new = value(pod)["spec"]["containers"][0]["image"] == UNAVAILABLE;
            is_new && !value(pod)["status"]["containerStatuses"].is_null()
        })
    })
    .await;
    let status = json!({ "name": "memcached", "image": UNAVAILABLE, "imageID": "", "ready": false, "restartCount": 1,
        "state": { "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container" } },
        "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } } });
    let killed = Patch::Merge(json!({ "status": { "containerStatuses": [status] } }));
    pods.patch_status(&waiting.name_any(), &PatchParams::default(), &killed)
        .await
        .unwrap();
}

/// Widens a field of the definition, as a newer version of it may, and gives `name` a value that this version has no room for.
async fn write_as_newer_version(lab: &Lab, name: &str) {
    let definitions: Api<CustomResourceDefinition> = Api::all(lab.client.clone());
    let definition = "memcacheds.cache.example.com";
    let mut changed = value(&definitions.get(definition).await.unwrap());
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/maxConnections";
    *changed.pointer_mut(field).unwrap() = json!({ "type": "integer", "format": "int64", "default": 1024 });
    let changed = serde_json::from_value(changed).unwrap();
    definitions
        .replace(definition, &PostParams::default(), &changed)
        .await
        .unwrap();
    let memcacheds = lab.api::<PartialObjectMeta<Memcached>>();
    let newer = Patch::Merge(json!({ "spec": { "maxConnections": i64::from(i32::MAX) + 1 } }));
    eventually("the definition has room for it", async || {
        memcacheds.patch(name, &PatchParams::default(), &newer).await.ok()
    })
    .await;
}

/// Writes `rules.yaml`, a test for each alert and the list of them to the directory `ALERTS_FOLDER`. `ALERTS` lists the alerts to drill,
/// separated by commas. The default is all.
#[tokio::test]
#[ignore = "ten minutes; dev/alerts.sh runs it"]
async fn drill_of_the_alerts() {
    let variable = |name: &str| std::env::var(name).ok();
    let folder = PathBuf::from(variable("ALERTS_FOLDER").expect("ALERTS_FOLDER names a directory"));
    let every = Duration::from_secs(variable("ALERTS_EVERY").map_or(20, |text| text.parse().unwrap()));
    let chosen: Option<Vec<String>> = variable("ALERTS").map(|text| text.split(',').map(str::to_owned).collect());

    let groups = rules();
    let alerts: Vec<&Value> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    let shipped: BTreeSet<String> = alerts
        .iter()
        .map(|alert| alert["alert"].as_str().unwrap().to_owned())
        .collect();
    let drilled: BTreeSet<String> = DRILLS.iter().map(|(alert, _)| format!("{PREFIX}{alert}")).collect();
    assert_eq!(shipped, drilled, "each alert has a drill");
    let asked: BTreeSet<String> = alerts
        .iter()
        .flat_map(|alert| metrics(alert["expr"].as_str().unwrap()))
        .collect();
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    write("rules.yaml", groups.to_string());

    let wanted = DRILLS.iter().filter(|(alert, _)| {
        chosen
            .as_ref()
            .is_none_or(|chosen| chosen.iter().any(|name| name == alert))
    });
    let tests = wanted.map(async |&(alert, fault)| {
        let name = format!("{PREFIX}{alert}");
        let rule = alerts.iter().find(|rule| rule["alert"] == name.as_str()).unwrap();
        let expected = Expected {
            alert: &name,
            calm: CALM - 1,
            fires: CALM - 1 + minutes(rule["for"].as_str()) + GRACE,
        };
        let scrapes = Drill::start(alert).await.run(every, expected.fires + 1).await;
        let within = expected.fires - expected.calm;
        write(
            &format!("{name}.yaml"),
            promtool_test(&scrapes, &asked, &expected).to_string(),
        );
        println!("{name}: {} scrapes", scrapes.0.len());
        format!("{name}\t{}\t{within}\t{fault}\n", expected.calm)
    });
    let list: String = join_all(tests).await.concat();
    write("list", list);
}
