//! Claims about catalogs: where OLM goes along a graph, and what opm serves.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::api::ListParams;
use kube_testbed::Options;
use olmkit::catalog::model::Blob;
use olmkit::catalog::{Catalog, load, render, validate};
use olmkit_serve::api::GetBundleRequest;
use olmkit_serve::api::registry_client::RegistryClient;
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::harness::{Cluster, eventually};
use crate::offered;

const OLM: &str = "operators.coreos.com/v1alpha1";

/// A package with bundles of some versions, and its channels with their entries.
struct Package {
    name: &'static str,
    versions: &'static [&'static str],
    channels: Vec<(&'static str, Value)>,
}

impl Package {
    fn csv(&self, version: &str) -> String {
        format!("{}.v{version}", self.name)
    }

    fn catalog(&self, folder: &Path) -> Catalog {
        let mut blobs = vec![json!({"schema": "olm.package", "name": self.name, "defaultChannel": self.channels[0].0})];
        for (channel, entries) in &self.channels {
            blobs.push(json!({"schema": "olm.channel", "package": self.name, "name": channel, "entries": entries}));
        }
        let mut catalog = Catalog::default();
        for blob in blobs {
            load::text(&blob.to_string())
                .unwrap()
                .into_iter()
                .for_each(|blob| catalog.push(blob));
        }
        for version in self.versions {
            let folder = Bundle::new(self.name, version).write(folder);
            catalog.push(Blob::Bundle(render::bundle::directory(&folder, "").unwrap()));
        }
        let verdict = validate::catalog_verdict(&catalog);
        assert!(verdict.passed(), "{:?}", verdict.opm_text);
        catalog
    }
}

/// The catalog lints, and those about bundles without an image.
fn lints(catalog: &Catalog) -> BTreeSet<&'static str> {
    let found = validate::catalog_verdict(catalog).problems;
    let ids = found.iter().map(|problem| problem.rule.id);
    ids.filter(|id| *id != "catalog-inline").collect()
}

/// A package, the first installed version and its channel, the target channel, and the final version.
struct Journey {
    package: Package,
    start: &'static str,
    /// The channel that the user turns to.
    to: &'static str,
    end: &'static str,
    /// The versions that OLM installed.
    installed: &'static [&'static str],
    lints: &'static [&'static str],
}

fn journeys() -> Vec<Journey> {
    let journey = |name, entries: Value, start, end, installed, lints| Journey {
        package: Package {
            name,
            versions: if name.starts_with("edges") {
                &["1.0.0", "1.1.0", "1.2.0"]
            } else {
                &["1.0.0", "1.1.0"]
            },
            channels: vec![("stable", entries)],
        },
        start,
        to: "stable",
        end,
        installed,
        lints,
    };
    let ranges = |name, fast: Value, end, installed, lints| Journey {
        package: Package {
            name,
            versions: &["1.0.0", "1.1.0"],
            channels: vec![
                ("old", json!([{"name": format!("{name}.v1.0.0")}])),
                (
                    "stable",
                    json!([{"name": format!("{name}.v1.1.0"), "skipRange": "<1.1.0"}]),
                ),
                ("fast", json!([fast])),
            ],
        },
        start: "1.0.0",
        to: "fast",
        end,
        installed,
        lints,
    };
    vec![
        journey(
            "rising",
            json!([{"name": "rising.v1.0.0"}, {"name": "rising.v1.1.0", "replaces": "rising.v1.0.0"}]),
            "1.0.0",
            "1.1.0",
            &["1.0.0", "1.1.0"],
            &[],
        ),
        journey(
            "falling",
            json!([{"name": "falling.v1.1.0"}, {"name": "falling.v1.0.0", "replaces": "falling.v1.1.0"}]),
            "1.1.0",
            "1.0.0",
            &["1.0.0", "1.1.0"],
            &["catalog-version-falls"],
        ),
        journey(
            "edges",
            json!([
                {"name": "edges.v1.0.0"}, {"name": "edges.v1.1.0", "replaces": "edges.v1.0.0"},
                {"name": "edges.v1.2.0", "replaces": "edges.v1.1.0"},
            ]),
            "1.0.0",
            "1.2.0",
            &["1.0.0", "1.1.0", "1.2.0"],
            &[],
        ),
        journey(
            "edges-ignored",
            json!([
                {"name": "edges-ignored.v1.0.0"}, {"name": "edges-ignored.v1.1.0", "replaces": "edges-ignored.v1.0.0"},
                {"name": "edges-ignored.v1.2.0", "replaces": "edges-ignored.v1.1.0", "skips": ["edges-ignored.v1.0.0"]},
            ]),
            "1.0.0",
            "1.2.0",
            &["1.0.0", "1.2.0"],
            &["catalog-ignored-edge"],
        ),
        journey(
            "edges-dropped",
            json!([
                {"name": "edges-dropped.v1.0.0"}, {"name": "edges-dropped.v1.1.0", "skips": ["edges-dropped.v1.0.0"]},
                {"name": "edges-dropped.v1.2.0", "skips": ["edges-dropped.v1.1.0"]},
            ]),
            "1.0.0",
            "1.0.0",
            &["1.0.0"],
            &["catalog-no-upgrade"],
        ),
        journey(
            "edges-cycle",
            json!([
                {"name": "edges-cycle.v1.0.0", "replaces": "edges-cycle.v1.1.0"},
                {"name": "edges-cycle.v1.1.0", "replaces": "edges-cycle.v1.0.0"},
                {"name": "edges-cycle.v1.2.0", "replaces": "edges-cycle.v1.1.0", "skips": ["edges-cycle.v1.0.0", "edges-cycle.v1.1.0"]},
            ]),
            "1.0.0",
            "1.0.0",
            &["1.0.0"],
            &["catalog-upgrade-cycle", "catalog-version-falls"],
        ),
        journey(
            "itself",
            json!([
                {"name": "itself.v1.0.0"},
                {"name": "itself.v1.1.0", "replaces": "itself.v1.0.0", "skipRange": "<=1.1.0"},
            ]),
            "1.1.0",
            "1.1.0",
            &["1.1.0"],
            &["catalog-skip-range-reach"],
        ),
        ranges(
            "equal",
            json!({"name": "equal.v1.1.0", "skipRange": "<1.1.0"}),
            "1.1.0",
            &["1.0.0", "1.1.0"],
            &[],
        ),
        ranges(
            "differing",
            json!({"name": "differing.v1.1.0"}),
            "1.0.0",
            &["1.0.0"],
            &["catalog-entries-differ"],
        ),
    ]
}

#[tokio::test]
async fn olm_goes_where_rules_of_catalogs_say() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    let journeys = journeys();
    let mut served = Catalog::default();
    for journey in &journeys {
        let catalog = journey.package.catalog(cluster.folder.path());
        assert_eq!(
            lints(&catalog),
            journey.lints.iter().copied().collect(),
            "{}",
            journey.package.name
        );
        served.extend(catalog);
    }
    let (address, _) = offered::catalog(&served).await;
    cluster
        .apply(
            "catalogsources",
            json!({"apiVersion": OLM, "kind": "CatalogSource", "metadata": {"name": "graphs", "namespace": "olm"},
                "spec": {"sourceType": "grpc", "address": address, "displayName": "graphs", "publisher": "tests"}}),
        )
        .await;
    for journey in &journeys {
        let name = journey.package.name;
        cluster.namespace(name).await;
        cluster.operator_group(name, "group", &[name]).await;
        subscribe(&cluster, journey, journey.package.channels[0].0).await;
    }
    for journey in journeys
        .iter()
        .filter(|journey| journey.to != journey.package.channels[0].0)
    {
        arrived(&cluster, journey, journey.start).await;
        subscribe(&cluster, journey, journey.to).await;
    }
    for journey in &journeys {
        cluster.scene(journey.package.name);
        arrived(&cluster, journey, journey.end).await;
    }
    // A version that is not upgraded must still be installed.
    tokio::time::sleep(Duration::from_secs(5)).await;
    for journey in &journeys {
        arrived(&cluster, journey, journey.end).await;
        let plans = cluster
            .api(OLM, "InstallPlan", "installplans", Some(journey.package.name))
            .list(&ListParams::default())
            .await
            .unwrap();
        assert_eq!(plans.items.len(), journey.installed.len(), "{}", journey.package.name);
        let names = plans.items.iter().flat_map(|plan| {
            let names = plan.data["spec"]["clusterServiceVersionNames"].as_array().cloned();
            names.into_iter().flatten()
        });
        let names: BTreeSet<String> = names.map(|name| name.as_str().unwrap().to_owned()).collect();
        let expected = journey
            .installed
            .iter()
            .map(|version| journey.package.csv(version))
            .collect();
        assert_eq!(names, expected, "{}", journey.package.name);
    }
}

/// Subscribes to a channel, at first to the version that the journey starts with.
async fn subscribe(cluster: &Cluster, journey: &Journey, channel: &str) {
    let name = journey.package.name;
    cluster
        .apply(
            "subscriptions",
            json!({"apiVersion": OLM, "kind": "Subscription", "metadata": {"name": name, "namespace": name},
                "spec": {"name": name, "channel": channel, "source": "graphs", "sourceNamespace": "olm",
                    "startingCSV": journey.package.csv(journey.start)}}),
        )
        .await;
}

/// Waits until a version is installed, and no other one.
async fn arrived(cluster: &Cluster, journey: &Journey, version: &str) {
    let name = journey.package.name;
    let wanted = journey.package.csv(version);
    eventually(&format!("{wanted} is installed"), async || {
        let subscription = cluster
            .get(OLM, "Subscription", "subscriptions", Some(name), name)
            .await;
        let is_installed = subscription.is_some_and(|object| object["status"]["installedCSV"] == wanted.as_str());
        is_installed && cluster.phase(name, &wanted).await == "Succeeded"
    })
    .await;
}

/// A child that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The ClusterServiceVersion that opm serves for a bundle, which OLM's package server uses for consoles.
async fn served_by_opm(opm: &Path, catalog: &Path, bundle: &str) -> String {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let work = tempfile::tempdir().unwrap();
    let child = Command::new(opm)
        .args([
            "serve",
            "--port",
            &port.to_string(),
            "--pprof-addr",
            "127.0.0.1:0",
            "--termination-log",
        ])
        .arg(work.path().join("ended"))
        .arg(catalog)
        .env("TMPDIR", work.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _running = Running(child);
    let address = format!("http://127.0.0.1:{port}");
    let mut csv = None;
    eventually("opm serves the bundle", async || {
        let Ok(mut client) = RegistryClient::connect(address.clone()).await else {
            return false;
        };
        let request = GetBundleRequest {
            pkg_name: "shown".into(),
            channel_name: "stable".into(),
            csv_name: bundle.into(),
        };
        csv = client
            .get_bundle(request)
            .await
            .ok()
            .map(|answer| answer.into_inner().csv_json);
        csv.is_some()
    })
    .await;
    csv.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn opm_serves_what_rules_of_catalogs_say() {
    let opm = match kube_testbed::tools::program("opm") {
        Ok(opm) => opm,
        Err(error) => return println!("skipped: {error}"),
    };
    let image = format!("registry.example.com/shown@sha256:{}", "1".repeat(64));
    for (properties, shown) in [
        (json!([]), false),
        (
            json!([{"type": "olm.csv.metadata", "value": {"displayName": "Shown in consoles"}}]),
            true,
        ),
    ] {
        let mut all = vec![json!({"type": "olm.package", "value": {"packageName": "shown", "version": "1.0.0"}})];
        all.extend(properties.as_array().unwrap().iter().cloned());
        let text: Vec<String> = [
            json!({"schema": "olm.package", "name": "shown", "defaultChannel": "stable"}),
            json!({"schema": "olm.channel", "package": "shown", "name": "stable", "entries": [{"name": "shown.v1.0.0"}]}),
            json!({"schema": "olm.bundle", "package": "shown", "name": "shown.v1.0.0", "image": image, "properties": all}),
        ]
        .map(|blob| blob.to_string())
        .into();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("catalog.json"), text.join("\n")).unwrap();
        let found = validate::directory(folder.path());
        let speaks = found
            .problems
            .iter()
            .any(|problem| problem.rule.id == "catalog-no-metadata");
        assert_ne!(speaks, shown);
        let csv = served_by_opm(&opm, folder.path(), "shown.v1.0.0").await;
        assert_eq!(csv.contains("Shown in consoles"), shown, "{csv}");
    }
}
