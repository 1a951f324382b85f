//! What the real OLM does with bundles: each is installed from a catalog, without images and nodes, and then the cluster is asked what
//! came of it.

mod ask;
mod installed;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, stream};
use kube_testbed::{ControlPlane, Options};
use olmkit::catalog::{Catalog, load};
use serde_json::{Value, json};

use crate::bundles::Subject;
use crate::server::Server;
use crate::tally::Tally;
use trial::Trial;

/// How long OLM may be silent before what it has not installed counts as not installed.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a wave may take in all.
const LIMIT: Duration = Duration::from_secs(300);

/// Bundles that are installed at the same time.
const TOGETHER: usize = 40;

const SUCCEEDED: &str = "Succeeded";

/// What came of an installation.
#[derive(Default, Clone)]
pub struct End {
    /// The phase of the ClusterServiceVersion; empty if there is none.
    pub phase: String,
    /// What OLM says about it.
    pub message: String,
}

impl End {
    /// Whether the operator is installed.
    pub fn succeeded(&self) -> bool {
        self.phase == SUCCEEDED
    }
}

/// Installs all bundles, some at a time, and counts how often the rules about OLM are right. Each wave has its own control plane: it
/// starts sooner than hundreds of CRDs are removed.
pub async fn run(subjects: &[Subject], everywhere: bool, tally: &mut Tally) -> anyhow::Result<()> {
    let mut waiting: Option<Vec<Trial<'_>>> = None;
    let mut done = 0;
    loop {
        // Webhooks are configured, but nobody serves them: they would stop everything else.
        let options = Options::default()
            .with_olm()
            .api_server_argument("--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook");
        let mut plane = ControlPlane::start(options).await?;
        let server = Server::new(plane.client().await?);
        let trials = match waiting.take() {
            Some(trials) => trials,
            None => {
                let served = served(&server).await?;
                let numbered = subjects.iter().enumerate();
                numbered
                    .filter_map(|(at, subject)| Trial::new(subject, at, everywhere, &served))
                    .collect()
            }
        };
        let (wave, later) = next_wave(trials);
        if wave.is_empty() {
            return Ok(());
        }
        let ends = install(&server, &wave)
            .await
            .inspect_err(|_| eprintln!("{}", plane.log_tails()))?;
        plane.check()?;
        let scoped = server.cluster_scoped().await?;
        for trial in &wave {
            let end = ends.get(&trial.name).cloned().unwrap_or_default();
            tally.installed += usize::from(end.succeeded());
            ask::judge(&server, &scoped, trial, &end, tally).await?;
        }
        done += wave.len();
        eprintln!(
            "{done} bundles asked, {} of them installed, {} left",
            tally.installed,
            later.len()
        );
        if later.is_empty() {
            return Ok(());
        }
        waiting = Some(later);
    }
}

/// Bundles of which no two own an API of the same group.
fn next_wave(waiting: Vec<Trial<'_>>) -> (Vec<Trial<'_>>, Vec<Trial<'_>>) {
    let (mut groups, mut count) = (BTreeSet::<String>::new(), 0);
    waiting.into_iter().partition(|trial| {
        let fits = count < TOGETHER && trial.groups().iter().all(|group| !groups.contains(*group));
        if fits {
            groups.extend(trial.groups().into_iter().map(str::to_owned));
            count += 1;
        }
        fits
    })
}

/// The kinds that the API server has.
async fn served(server: &Server) -> anyhow::Result<BTreeSet<(String, String)>> {
    let resources = server.resources().await?.into_iter();
    Ok(resources
        .filter_map(|(version, resource)| Some((version, resource["kind"].as_str()?.to_owned())))
        .collect())
}

/// Serves the wave as one catalog, subscribes to every package, and waits for the ends.
async fn install(server: &Server, wave: &[Trial<'_>]) -> anyhow::Result<BTreeMap<String, End>> {
    let mut catalog = Catalog::default();
    for trial in wave {
        for blob in load::text(&trial.blobs()).with_context(|| trial.subject.bundle.clone())? {
            catalog.push(blob);
        }
    }
    let listener = olmkit_serve::Server::bind("127.0.0.1:0".parse()?).await?;
    listener.current().set(olmkit_serve::index::in_memory(&catalog)?);
    let address = listener.address().to_string();
    let serving = tokio::spawn(listener.run(std::future::pending()));
    // Copies of every ClusterServiceVersion in every namespace change no answer.
    let config = "/apis/operators.coreos.com/v1/olmconfigs/cluster";
    let mut quiet = server.get(config).await?;
    quiet["spec"] = json!({"features": {"disableCopiedCSVs": true}});
    server.put(config, &quiet).await?;
    let source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": {"name": "bundles"},
        "spec": {"sourceType": "grpc", "address": address, "displayName": "bundles", "publisher": "tests"},
    });
    let sources = "/apis/operators.coreos.com/v1alpha1/namespaces/olm/catalogsources";
    server.post(sources, &source).await?;
    let mut subscribed = stream::iter(wave)
        .map(|trial| async move {
            for (path, object) in trial.requests("bundles") {
                server.post(&path, &object).await?;
            }
            anyhow::Ok(())
        })
        .buffered(6);
    while let Some(one) = subscribed.next().await {
        one?;
    }
    let ends = ends(server, wave).await;
    serving.abort();
    ends
}

/// Waits until every operator is installed, or nothing changes any more.
async fn ends(server: &Server, wave: &[Trial<'_>]) -> anyhow::Result<BTreeMap<String, End>> {
    let (start, mut changed) = (Instant::now(), Instant::now());
    let mut known: BTreeMap<String, End> = BTreeMap::new();
    loop {
        let now = phases(server).await?;
        let phase = |ends: &BTreeMap<String, End>| -> Vec<String> {
            ends.iter().map(|(name, end)| format!("{name} {}", end.phase)).collect()
        };
        if phase(&now) != phase(&known) {
            changed = Instant::now();
        }
        known = now;
        let all = wave
            .iter()
            .all(|trial| known.get(&trial.name).is_some_and(End::succeeded));
        if all || changed.elapsed() > PATIENCE || start.elapsed() > LIMIT {
            // OLM grants what AllNamespaces needs after that.
            tokio::time::sleep(Duration::from_secs(5)).await;
            return Ok(known);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What OLM says of each namespace: of the ClusterServiceVersion, or what kept it from being made.
async fn phases(server: &Server) -> anyhow::Result<BTreeMap<String, End>> {
    let mut ends = BTreeMap::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (plural, is_csv) in [
        ("subscriptions", false),
        ("installplans", false),
        ("clusterserviceversions", true),
    ] {
        let list = server
            .get(&format!("/apis/operators.coreos.com/v1alpha1/{plural}"))
            .await?;
        for object in list["items"].as_array().into_iter().flatten() {
            let status = &object["status"];
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let said: Vec<String> = conditions
                .filter(|condition| condition["message"].is_string())
                .map(|condition| text(&condition["message"]))
                .collect();
            let phase = if is_csv { text(&status["phase"]) } else { String::new() };
            let message = if is_csv {
                text(&status["message"])
            } else {
                said.join("; ")
            };
            if is_csv || !message.is_empty() {
                ends.insert(text(&object["metadata"]["namespace"]), End { phase, message });
            }
        }
    }
    Ok(ends)
}
