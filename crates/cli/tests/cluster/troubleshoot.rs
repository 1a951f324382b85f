//! The outputs in `docs/guides/troubleshoot.md`. `UPDATE_GENERATED=1` writes them into the page.
//!
//! A block belongs to the comment `<!-- cause: CODE -->` before it. It shows the command and the part of its output with the cause.

use std::fmt::Write as _;

use kube::api::{ListParams, Patch, PatchParams};
use kube_testbed::Options;
use olmkit::catalog::{Catalog, load};
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::harness::{Cluster, eventually};
use crate::offered;

const OLM: &str = "operators.coreos.com/v1alpha1";
const UNAVAILABLE: &str = "registry.example.com/my-operator:missing";
const NAMESPACE: &str = "my-namespace";
const NAME: &str = "my-operator";
const RUN: &[&str] = &["run", "bundle", "bundle", "-n", NAMESPACE];
const DIAGNOSE: &[&str] = &["diagnose", NAME, "-n", NAMESPACE];

/// The page, as the commands show it.
struct Page {
    text: String,
    documented: usize,
}

impl Page {
    fn read() -> Self {
        let path = test_support::repository("docs/guides/troubleshoot.md");
        Page {
            text: std::fs::read_to_string(path).unwrap(),
            documented: 0,
        }
    }

    /// Replaces the block of a cause.
    #[track_caller]
    fn set(&mut self, code: &str, block: &str) {
        let marker = format!("<!-- cause: {code} -->\n");
        let (before, rest) = self
            .text
            .split_once(&marker)
            .unwrap_or_else(|| panic!("the page has no {marker}"));
        let (_, rest) = rest.split_once("```console\n").unwrap();
        let (shown, after) = rest.split_once("```\n").unwrap();
        let block = if parts(shown) == parts(block) { shown } else { block };
        self.text = format!("{before}{marker}```console\n{block}```\n{after}");
        self.documented += 1;
    }

    /// Compares the page, or writes it.
    fn check(&self) {
        let path = test_support::repository("docs/guides/troubleshoot.md");
        assert_eq!(
            self.text.matches("<!-- cause: ").count(),
            self.documented,
            "a block was not run"
        );
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            std::fs::write(&path, &self.text).unwrap();
        }
        let shown = std::fs::read_to_string(&path).unwrap();
        let difference = similar::TextDiff::from_lines(&shown, &self.text);
        assert!(
            shown == self.text,
            "docs/guides/troubleshoot.md shows other output: run UPDATE_GENERATED=1 cargo test -p olmkit-cli --test cluster troubleshoot\n{}",
            difference.unified_diff()
        );
    }
}

/// The lines of a block, without the order of the parts in OLM's messages, which differs between runs.
fn parts(block: &str) -> Vec<Vec<&str>> {
    let sorted = block.lines().map(|line| {
        let mut parts: Vec<&str> = line.split([',', ':']).map(str::trim).collect();
        parts.sort_unstable();
        parts
    });
    sorted.collect()
}

/// Runs a command in text form until it reports a cause, and puts the cause into the page. `names` replaces generated names.
async fn document(cluster: &Cluster, page: &mut Page, code: &str, arguments: &[&str], names: &[(&str, &str)]) {
    cluster.scene(code);
    let mut block = String::new();
    eventually(code, async || {
        let mut command = cluster.command(arguments);
        command.current_dir(cluster.folder.path());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let printed = [output.stdout, output.stderr].concat();
        block = shown(arguments, &String::from_utf8(printed).unwrap(), code);
        !block.is_empty()
    })
    .await;
    for (name, example) in names {
        block = block.replace(name, example);
    }
    page.set(code, &block);
}

/// The command, and the lines of the cause in its output. Empty if the output does not contain the cause.
fn shown(arguments: &[&str], printed: &str, code: &str) -> String {
    let is_cause = |line: &&str| line.contains(&format!("[{code}]: "));
    let mut lines = printed.lines().skip_while(|line| !is_cause(line));
    let Some(first) = lines.next() else {
        println!("{printed}");
        return String::new();
    };
    let mut block = format!("$ olmkit {}\n{first}\n", arguments.join(" "));
    for line in lines.take_while(|line| line.starts_with("  ")) {
        writeln!(block, "{line}").unwrap();
    }
    block
}

/// Writes a bundle to the directory `bundle`.
fn write(cluster: &Cluster, bundle: &Bundle) {
    let to = cluster.folder.path().join("bundle");
    if to.exists() {
        std::fs::remove_dir_all(&to).unwrap();
    }
    std::fs::rename(bundle.write(cluster.folder.path()), to).unwrap();
}

async fn run_bundle(cluster: &Cluster) {
    let directory = cluster.folder.path().join("bundle");
    cluster.run_bundle(&directory, NAMESPACE, &[]).await.fine();
}

/// Uninstalls the operator, and deletes what the scene created.
async fn leave(cluster: &Cluster, before: &[String]) {
    cluster.cleanup(NAME, NAMESPACE, &[]).await;
    cluster.delete("v1", "Namespace", "namespaces", None, NAMESPACE).await;
    cluster.nothing_left(before).await;
    cluster.namespace(NAMESPACE).await;
}

/// Makes a CatalogSource for a served catalog, and subscribes to its package.
async fn subscribe(cluster: &Cluster, catalog: &str, address: &str, approval: &str) {
    cluster.operator_group(NAMESPACE, "group", &[NAMESPACE]).await;
    cluster
        .apply(
            "catalogsources",
            json!({"apiVersion": OLM, "kind": "CatalogSource", "metadata": {"name": catalog, "namespace": NAMESPACE},
                "spec": {"sourceType": "grpc", "address": address, "displayName": catalog, "publisher": "test"}}),
        )
        .await;
    cluster
        .apply(
            "subscriptions",
            json!({"apiVersion": OLM, "kind": "Subscription", "metadata": {"name": NAME, "namespace": NAMESPACE},
                "spec": {"name": NAME, "channel": "alpha", "source": catalog, "sourceNamespace": NAMESPACE, "installPlanApproval": approval}}),
        )
        .await;
}

/// Waits for a pod whose name begins with `prefix`, and changes its status as a kubelet does. Returns its name.
async fn change_pod(cluster: &Cluster, prefix: &str, status: Value) -> String {
    let pods = cluster.api("v1", "Pod", "pods", Some(NAMESPACE));
    let mut name = String::new();
    eventually("the pod runs", async || {
        let list = pods.list(&ListParams::default()).await.unwrap();
        let found = list.items.iter().find(|pod| {
            let is_named = pod.metadata.name.as_ref().is_some_and(|name| name.starts_with(prefix));
            is_named && pod.data.pointer("/status/phase") == Some(&json!("Running"))
        });
        name = found.and_then(|pod| pod.metadata.name.clone()).unwrap_or_default();
        !name.is_empty()
    })
    .await;
    pods.patch_status(
        &name,
        &PatchParams::default(),
        &Patch::Merge(json!({ "status": status })),
    )
    .await
    .unwrap();
    name
}

#[tokio::test]
async fn the_page_shows_real_causes() {
    let mut page = Page::read();
    let bundle = Bundle::new(NAME, "1.0.0");
    {
        let cluster = Cluster::start(Options::default()).await;
        cluster.namespace(NAMESPACE).await;
        write(&cluster, &bundle);
        document(&cluster, &mut page, "olm-not-installed", RUN, &[]).await;
    }
    let cluster = Cluster::start(Options::default().with_olm().unavailable_image(UNAVAILABLE)).await;
    let before = cluster.inventory().await;
    cluster.namespace(NAMESPACE).await;
    before_the_installation(&cluster, &mut page, &before).await;
    during_the_installation(&cluster, &mut page, &before).await;
    from_a_catalog(&cluster, &mut page, &before).await;
    page.check();
}

async fn before_the_installation(cluster: &Cluster, page: &mut Page, before: &[String]) {
    let bundle = Bundle::new(NAME, "1.0.0");
    write(cluster, &bundle);
    cluster.operator_group(NAMESPACE, "one", &[]).await;
    cluster.operator_group(NAMESPACE, "two", &[]).await;
    document(cluster, page, "multiple-operator-groups", RUN, &[]).await;
    leave(cluster, before).await;

    cluster
        .apply(
            "catalogsources",
            json!({"apiVersion": OLM, "kind": "CatalogSource", "metadata": {"name": "other-catalog", "namespace": NAMESPACE},
                "spec": {"sourceType": "grpc", "address": "127.0.0.1:1", "displayName": "other", "publisher": "test"}}),
        )
        .await;
    eventually("OLM reports that the catalog fails", async || {
        let found = cluster
            .get(OLM, "CatalogSource", "catalogsources", Some(NAMESPACE), "other-catalog")
            .await
            .unwrap();
        found.pointer("/status/connectionState/lastObservedState") == Some(&json!("TRANSIENT_FAILURE"))
    })
    .await;
    document(cluster, page, "other-catalog-broken", RUN, &[]).await;
    leave(cluster, before).await;

    let mut own = bundle.clone();
    own.modes = vec!["OwnNamespace"];
    write(cluster, &own);
    cluster.operator_group(NAMESPACE, "all-namespaces", &[]).await;
    document(cluster, page, "operator-group-mismatch", RUN, &[]).await;
    leave(cluster, before).await;

    let mut needy = bundle.clone();
    needy.required = vec![
        json!({"name": "things.other.example.com", "version": "v1", "kind": "Thing", "displayName": "Thing", "description": "Needed."}),
    ];
    write(cluster, &needy);
    document(cluster, page, "requirement-api-missing", RUN, &[]).await;
    leave(cluster, before).await;
}

async fn during_the_installation(cluster: &Cluster, page: &mut Page, before: &[String]) {
    let bundle = Bundle::new(NAME, "1.0.0");
    let mut missing = bundle.clone();
    missing.image = UNAVAILABLE.into();
    write(cluster, &missing);
    let pods = cluster.api("v1", "Pod", "pods", Some(NAMESPACE));
    document(cluster, page, "operator-image-pull", RUN, &[]).await;
    let list = pods.list(&ListParams::default()).await.unwrap();
    for name in list.items.iter().filter_map(|pod| pod.metadata.name.as_deref()) {
        page.text = page.text.replace(name, "my-operator-6b5cf7d9c8-x2x7z");
    }
    leave(cluster, before).await;

    write(cluster, &bundle);
    run_bundle(cluster).await;
    // As a kubelet reports a container that ends at once.
    let crash = json!({
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
            {"type": "ContainersReady", "status": "False", "reason": "ContainersNotReady"},
        ],
        "containerStatuses": [{
            "name": "manager", "image": bundle.image, "imageID": "", "ready": false, "started": false, "restartCount": 4,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 1m20s restarting failed container"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}},
        }],
    });
    let pod = change_pod(cluster, NAME, crash).await;
    let names = [(pod.as_str(), "my-operator-6b5cf7d9c8-x2x7z")];
    document(cluster, page, "operator-crash-loop", DIAGNOSE, &names).await;
    leave(cluster, before).await;

    write(cluster, &bundle);
    run_bundle(cluster).await;
    cluster
        .apply(
            "things",
            json!({"apiVersion": "my-operator.example.com/v1", "kind": "Thing",
                "metadata": {"name": "example", "namespace": NAMESPACE, "finalizers": ["my-operator.example.com/finalizer"]}}),
        )
        .await;
    let cleanup = ["cleanup", NAME, "-n", NAMESPACE, "--timeout", "10s"];
    document(cluster, page, "custom-resource-deletion-blocked", &cleanup, &[]).await;
    let things = cluster.api("my-operator.example.com/v1", "Thing", "things", Some(NAMESPACE));
    let release = json!({"metadata": {"finalizers": null}});
    things
        .patch("example", &PatchParams::default(), &Patch::Merge(release))
        .await
        .unwrap();
    leave(cluster, before).await;
}

async fn from_a_catalog(cluster: &Cluster, page: &mut Page, before: &[String]) {
    let bundle = Bundle::new(NAME, "1.0.0");
    let (address, _) = offered::bundles(cluster, &[&bundle]).await;
    subscribe(cluster, "catalog", &address, "Manual").await;
    let plans = cluster.api(OLM, "InstallPlan", "installplans", Some(NAMESPACE));
    let mut plan = String::new();
    eventually("the plan exists", async || {
        let list = plans.list(&ListParams::default()).await.unwrap();
        plan = list
            .items
            .first()
            .and_then(|plan| plan.metadata.name.clone())
            .unwrap_or_default();
        !plan.is_empty()
    })
    .await;
    let names = [(plan.as_str(), "install-4xk9p")];
    document(cluster, page, "install-plan-unapproved", DIAGNOSE, &names).await;
    leave(cluster, before).await;

    // A bundle that the catalog names by image only, so OLM unpacks it in a Job.
    let image = "registry.example.com/my-operator-bundle:missing";
    let blobs = [
        json!({"schema": "olm.package", "name": NAME, "defaultChannel": "alpha"}),
        json!({"schema": "olm.channel", "package": NAME, "name": "alpha", "entries": [{"name": bundle.csv_name()}]}),
        json!({"schema": "olm.bundle", "package": NAME, "name": bundle.csv_name(), "image": image,
            "properties": [{"type": "olm.package", "value": {"packageName": NAME, "version": bundle.version}}]}),
    ];
    let mut catalog = Catalog::default();
    for blob in blobs {
        for blob in load::text(&blob.to_string()).unwrap() {
            catalog.push(blob);
        }
    }
    let (address, _) = offered::catalog(&catalog).await;
    // Another name, because OLM may still have the content of the former catalog.
    subscribe(cluster, "unpacked", &address, "Automatic").await;
    // As a kubelet reports an image that the registry does not have.
    let message = format!("Back-off pulling image \"{image}\": ErrImagePull: {image}: not found");
    let pull = json!({"initContainerStatuses": [{
        "name": "pull", "image": image, "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": message}},
    }]});
    let pod = change_pod(cluster, "", pull).await;
    let names = [(pod.as_str(), "1a79a4d60de6718e8e5b326e338ae533-pmf8s")];
    document(cluster, page, "bundle-image-pull", DIAGNOSE, &names).await;
    leave(cluster, before).await;
}
