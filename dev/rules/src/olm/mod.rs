//! Installs bundles with the real OLM: each from a catalog, without images and nodes; then checks the results in the
//! cluster.

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

/// How long OLM may be idle, after it has reported on every operator, before an operator counts as not installed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Total time limit of a wave.
const LIMIT: Duration = Duration::from_secs(900);

/// Bundles that are installed at the same time.
const TOGETHER: usize = 40;

const SUCCEEDED: &str = "Succeeded";

/// Result of an installation.
#[derive(Default, Clone, PartialEq, Eq)]
pub struct End {
    /// The phase of the ClusterServiceVersion. Empty if there is none.
    pub phase: String,
    /// OLM's message.
    pub message: String,
}

impl End {
    /// Returns true if the operator is installed.
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
        // Webhooks are configured, but have no server: they would block all other requests.
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

/// Bundles without a common API group.
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
    let names: Vec<&str> = wave.iter().map(|trial| trial.name.as_str()).collect();
    let mut quiet = Quiet::default();
    let start = Instant::now();
    loop {
        let known = phases(server).await?;
        let all = names.iter().all(|name| known.get(*name).is_some_and(End::succeeded));
        if all || quiet.is_over(&names, &known, Instant::now()) || start.elapsed() > LIMIT {
            // OLM grants what AllNamespaces needs after that.
            tokio::time::sleep(Duration::from_secs(5)).await;
            return Ok(known);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Since when OLM has been silent. An operator that it has not spoken of yet is one that it has not come to: on a busy machine that takes
/// longer than it is silent about one that it has given up.
#[derive(Default)]
struct Quiet {
    known: BTreeMap<String, End>,
    changed: Option<Instant>,
}

impl Quiet {
    /// Returns true if OLM's reports have not changed for the time limit.
    fn is_over(&mut self, names: &[&str], now: &BTreeMap<String, End>, at: Instant) -> bool {
        if *now != self.known {
            self.known = now.clone();
            self.changed = Some(at);
        }
        let spoken_of = names.iter().all(|name| now.contains_key(*name));
        let long = |changed: Instant| at.duration_since(changed) > PATIENCE;
        spoken_of && self.changed.is_some_and(long)
    }
}

/// OLM's report for each namespace: for the ClusterServiceVersion, or the reason why there is none.
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
                // OLM reports healthy catalogs before it processes the operator.
                .filter(|condition| condition["message"].is_string() && condition["type"] != "CatalogSourcesUnhealthy")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(phases: &[(&str, &str)]) -> BTreeMap<String, End> {
        let end = |phase: &str| End {
            phase: phase.to_owned(),
            message: String::new(),
        };
        phases
            .iter()
            .map(|(name, phase)| ((*name).to_owned(), end(phase)))
            .collect()
    }

    #[test]
    fn patience_starts_when_every_operator_was_spoken_of() {
        let (names, start) = (["a", "b"], Instant::now());
        let mut quiet = Quiet::default();
        let mut is_over = |phases: &[(&str, &str)], patiences: u32| {
            quiet.is_over(&names, &said(phases), start + PATIENCE * patiences)
        };
        assert!(!is_over(&[], 0));
        assert!(!is_over(&[], 9), "OLM has not begun");
        assert!(!is_over(&[("a", "Pending")], 10));
        assert!(!is_over(&[("a", "Pending")], 19), "OLM has not come to b");
        assert!(!is_over(&[("a", "Pending"), ("b", "")], 20));
        assert!(
            !is_over(&[("a", "Pending"), ("b", "Installing")], 22),
            "something has changed"
        );
        assert!(is_over(&[("a", "Pending"), ("b", "Installing")], 24));
    }
}
