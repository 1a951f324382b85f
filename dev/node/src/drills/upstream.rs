//! The failures with upstream's operator-sdk. Prints its output, and checks nothing.

use std::time::Instant;

use super::failures::{Breakage, Broken, create_abandoned_webhook};
use super::registry::Guarded;
use crate::e2e::upstream::{OPM_IMAGE, TIMEOUT, operator_sdk, run_bundle, scaffold_project};
use crate::package::on_tls;
use crate::run::{Namespace, PACKAGE};
use crate::world::World;

/// Lines of the output that are printed.
const LINES: usize = 4;

pub fn upstream(world: &World, space: &Namespace) -> anyhow::Result<()> {
    let run = world.run;
    scaffold_project(run)?;
    run.kubectl(&format!(
        "label namespace {} pod-security.kubernetes.io/enforce-",
        space.name
    ))?;
    let package = &world.package;
    let bundle = on_tls(&package.bundle_image(world.old_version()));
    let broken = Broken { world, space };
    install(
        space,
        "bundle image missing",
        &on_tls(&package.bundle_image("0.0.9")),
        OPM_IMAGE,
    )?;
    {
        let _guarded = Guarded::start(world)?;
        install(space, "registry refuses", Guarded::BUNDLE, OPM_IMAGE)?;
    }
    install(space, "helper image missing", &bundle, "localhost:5443/none/opm:1")?;
    install(space, "helper pod crashes", &bundle, "localhost:5443/dev/busybox:1")?;
    for (title, breakage) in [
        ("operator image missing", Breakage::MissingImage),
        ("operator crash loop", Breakage::CrashingOperator),
        ("operator never ready", Breakage::NeverReady),
        ("bundle too large to unpack", Breakage::TooLarge),
    ] {
        broken.write(breakage)?;
        install(space, title, &on_tls(&broken.push()?), OPM_IMAGE)?;
    }
    create_abandoned_webhook(space)?;
    install(space, "webhook without endpoint", &bundle, OPM_IMAGE)?;
    run.kubectl("delete validatingwebhookconfiguration abandoned")?;
    for name in ["one", "two"] {
        space.create(&format!(
            r#"{{"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {{"name": "{name}"}}}}"#
        ))?;
    }
    install(space, "two OperatorGroups", &bundle, OPM_IMAGE)?;
    space.create(
        r#"{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": {"name": "dead"}, "spec": {"sourceType": "grpc", "address": "127.0.0.1:1"}}"#,
    )?;
    install(space, "broken catalog in the namespace", &bundle, OPM_IMAGE)
}

/// Prints the output of `operator-sdk run bundle` and its time, and removes its objects.
fn install(space: &Namespace, title: &str, image: &str, index: &str) -> anyhow::Result<()> {
    println!("\n== {title}");
    let start = Instant::now();
    let installed = run_bundle(space, "60s", image, index).finish()?.text();
    let lines: Vec<&str> = installed.lines().collect();
    println!(
        "{}",
        lines
            .get(lines.len().saturating_sub(LINES)..)
            .unwrap_or_default()
            .join("\n")
    );
    println!("(after {} s)", start.elapsed().as_secs());
    operator_sdk(space, TIMEOUT, "cleanup").arg(PACKAGE).finish()?;
    space
        .command("delete catalogsource,subscription.operators.coreos.com,csv,operatorgroup,pod --all --timeout=60s")
        .finish()?;
    Ok(())
}
