//! The demo: from source to a running memcached that OLM installed and upgraded.
//!
//! Each line is checked: the demo succeeds only if all of it happened.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::package::{Catalog, Package, demo_namespace, operand_image_of, unsubscribe};
use crate::run::{Cluster, Namespace, PACKAGE, Run, colored};

/// Seconds until a step fails.
const LIMIT: u64 = 300;

/// Runs the demo. On an error it prints the state of the cluster.
pub fn demo(run: &Run) -> anyhow::Result<()> {
    let space = run.namespace(&demo_namespace());
    let result = steps(run, &space);
    if result.is_err() {
        explain(&space);
    }
    result
}

/// Removes the local node and its state or, from another cluster, the demo's objects.
pub fn down(run: &Run) -> anyhow::Result<()> {
    match run.cluster {
        Cluster::Local => run.script("dev/cluster/cluster").words("down --purge").show()?,
        Cluster::Current => unsubscribe(&run.namespace(&demo_namespace()))?,
    }
    if run.work.exists() {
        fs::remove_dir_all(&run.work)?;
    }
    Ok(())
}

fn steps(run: &Run, space: &Namespace) -> anyhow::Result<()> {
    step(
        run,
        "1. Build the operator and olmkit, render what they package, check it",
    );
    match run.cluster {
        Cluster::Local => run.build(&["node"])?,
        Cluster::Current if run.given => {}
        Cluster::Current => run.program("make").words("-s build").show()?,
    }
    let rendered = render(run)?;
    let package = Package::stage(run)?;
    let (old, new) = (&package.old_version, &package.new_version);
    note(&format!("{rendered} (in dev/.state/render.log)"));
    note(&format!(
        "the package contains {} {old} (released, never rendered again) and {new} (rendered from the sources just now)",
        PACKAGE
    ));

    step(run, "2. Start the cluster");
    match run.cluster {
        Cluster::Local => run.script("dev/cluster/cluster").arg("up").show()?,
        Cluster::Current => print(&run.kubectl("version")?, ""),
    }
    run.kubectl("get crd clusterserviceversions.operators.coreos.com")
        .context("OLM is not installed in this cluster. Install it with `olmkit olm install`")?;

    step(
        run,
        &format!(
            "3. Build the images, without a container engine, and push them to {}",
            run.registry
        ),
    );
    package.publish_images(run)?;
    package.publish_catalog(run, Catalog::Old)?;
    note("pushed: operator and bundle of both versions, catalog");

    step(run, &format!("4. Offer version {old} in a catalog, and subscribe"));
    subscribe(space, &package)?;
    let catalog = format!("{PACKAGE}-catalog");
    wait(run, "catalog", "READY", || space.catalog_state(&catalog))?;
    let (old_csv, new_csv) = (format!("{}.v{old}", PACKAGE), format!("{}.v{new}", PACKAGE));
    let csv = |name: &str| format!("ClusterServiceVersion {name}");
    wait(run, &csv(&old_csv), "Succeeded", || space.csv_phase(&old_csv))?;
    show(space, "get csv,deployment")?;

    step(run, "5. Ask for a memcached of two pods");
    let sample = fs::read_to_string(run.root.join("config/samples/cache_v1alpha1_memcached.yaml"))?;
    print(&sample, "| ");
    print(&space.create_sample()?, "");
    let running = |pods: u8| format!("Running with {pods} ready");
    wait(run, "memcached-sample", &running(2), || space.sample_state())?;
    show(space, "get memcached,pods")?;
    let old_image = space.operand_image()?;

    step(run, "6. Store and read a value through the Service");
    let answer = space.talk_to_memcached()?;
    print(&answer, "");
    ensure!(answer.contains("VALUE greeting"), "memcached did not return the value");

    step(
        run,
        &format!("7. Publish version {new} in the same channel. OLM finds it and upgrades"),
    );
    package.publish_catalog(run, Catalog::Both)?;
    wait(run, &csv(&new_csv), "Succeeded", || space.csv_phase(&new_csv))?;
    wait(run, &csv(&old_csv), "", || space.csv_phase(&old_csv))?;
    wait(run, "memcached-sample", &running(2), || space.sample_state())?;
    let new_image = operand_image_of(&run.work.join("new-bundle"))?;
    wait(run, "operand image", &new_image, || space.operand_image())?;
    wait(run, "rollout", "settled", || space.rollout())?;
    note(&format!("memcached went from {old_image} to {new_image}"));

    step(run, "8. Scale to three. The two running pods do not change");
    let before = space.operand_pods()?;
    print(&before, "before: ");
    scale(space)?;
    wait(run, "memcached-sample", &running(3), || space.sample_state())?;
    let after = space.operand_pods()?;
    print(&after, "after:  ");
    for pod in before.lines() {
        ensure!(
            after.lines().any(|line| line == pod),
            "pod {pod} was replaced or restarted by the scaling"
        );
    }

    step(run, &format!("Done in {} s. These objects exist:", run.since()));
    show(space, "get csv,memcached,pods")?;
    commands(run, space, &new_csv);
    Ok(())
}

/// Renders config/, bundle/ and catalog/, and returns the validation's result.
fn render(run: &Run) -> anyhow::Result<String> {
    let log = run.root.join("dev/.state/render.log");
    let rendered = run.program("make").words("-s manifests bundle catalog").finish()?;
    let text = rendered.text();
    fs::write(&log, &text)?;
    if rendered.code != 0 {
        bail!("config/, bundle/ or catalog/ cannot be rendered:\n{text}");
    }
    let line = text.lines().find(|line| line.starts_with("bundle: "));
    Ok(line.context("`make bundle` prints no result")?.to_owned())
}

fn subscribe(space: &Namespace, package: &Package) -> anyhow::Result<()> {
    let (name, run) = (&space.name, space.run);
    let objects = run.kubectl(&format!("create namespace {name} --dry-run=client -o yaml"))?;
    print(&run.apply(&objects)?, "");
    let operator = PACKAGE;
    let objects = format!(
        "apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: {operator}-catalog, namespace: {name}}}
spec:
  sourceType: grpc
  image: {image}
  displayName: Memcached demo
  grpcPodConfig: {{securityContextConfig: restricted}}
  updateStrategy: {{registryPoll: {{interval: 15s}}}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {{name: {operator}, namespace: {name}}}
spec: {{targetNamespaces: [{name}]}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {{name: {operator}, namespace: {name}}}
spec:
  name: {operator}
  channel: alpha
  source: {operator}-catalog
  sourceNamespace: {name}
  installPlanApproval: Automatic
",
        image = package.catalog_image()
    );
    print(&run.apply(&objects)?, "");
    Ok(())
}

fn scale(space: &Namespace) -> anyhow::Result<()> {
    let patch = r#"{"spec": {"size": 3}}"#;
    note(&format!(
        "$ kubectl -n {} patch memcached memcached-sample --type=merge -p '{patch}'",
        space.name
    ));
    let scaled = space
        .command("patch memcached memcached-sample --type=merge -p")
        .arg(patch)
        .run()?;
    print(&scaled, "");
    Ok(())
}

fn step(run: &Run, title: &str) {
    println!("\n{}  ({}s)", colored("1", &format!("== {title}")), run.since());
}

fn note(text: &str) {
    println!("   {text}");
}

fn print(text: &str, prefix: &str) {
    for line in text.lines() {
        println!("   {prefix}{line}");
    }
}

/// Prints a kubectl command as a reader would type it, and its output.
fn show(space: &Namespace, words: &str) -> anyhow::Result<()> {
    note(&format!("$ kubectl -n {} {words}", space.name));
    print(&space.kubectl(words)?, "");
    Ok(())
}

/// Polls until the value is as wanted, and prints each change.
fn wait(run: &Run, name: &str, wanted: &str, mut value: impl FnMut() -> anyhow::Result<String>) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(LIMIT);
    let mut seen = None;
    loop {
        // A request fails while the object is missing or the API server is busy.
        let now = value().unwrap_or_default();
        let shown = if now.is_empty() { "nothing yet" } else { &now };
        if seen.as_deref() != Some(shown) {
            note(&format!("[{:>3}s] {name}: {shown}", run.since()));
            seen = Some(shown.to_owned());
        }
        if now == wanted {
            return Ok(());
        }
        ensure!(
            Instant::now() < end,
            "{name} is '{shown}' and not '{wanted}' after {LIMIT} s"
        );
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Prints the state of the cluster after a failed step.
fn explain(space: &Namespace) {
    // Without a cluster there is nothing to show.
    let Ok(objects) = space.kubectl("get catalogsource,subscription,installplan,csv,memcached,deployment,pod -o wide")
    else {
        return;
    };
    eprintln!("--- state of the cluster\n{objects}");
    let part = |words: &str| match space.kubectl(words) {
        Ok(text) => eprintln!("{text}"),
        Err(error) => eprintln!("{error:#}"),
    };
    part("get events --sort-by=.lastTimestamp");
    let conditions = "{range .items[*].status.conditions[?(@.status==\"True\")]}{.type}: {.message}{\"\\n\"}{end}";
    if let Ok(text) = space.get("subscriptions.operators.coreos.com", conditions) {
        eprintln!("{text}");
    }
    part("logs deployment/memcached-operator-controller-manager --tail=15");
}

fn commands(run: &Run, space: &Namespace, csv: &str) {
    let name = &space.name;
    let (look, end) = match run.cluster {
        Cluster::Local => ("dev/cluster/cluster run ", String::new()),
        Cluster::Current => ("", format!(" CLUSTER=current REGISTRY={}", run.registry)),
    };
    println!(
        "
   Look at it:     {look}kubectl -n {name} get memcached,pods,service
                   {look}kubectl -n {name} describe csv {csv}
                   {look}kubectl -n {name} logs deployment/memcached-operator-controller-manager
   Change it:      {look}kubectl -n {name} patch memcached memcached-sample --type=merge -p '{{\"spec\": {{\"size\": 1}}}}'
   Remove it all:  make demo-down{end}"
    );
}
