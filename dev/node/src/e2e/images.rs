//! OLM unpacks our bundle image and serves our catalog image twice: with upstream's util and opm images, and with our helper image.
//! OLM must store the same objects. Nothing is installed: OLM unpacks before it asks for approval, and the Subscriptions require it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::checks::Checks;
use crate::package::{Catalog, push, reach};
use crate::run::{Cluster, PACKAGE, Run, is};
use crate::world::World;

pub fn images(world: &World, checks: &mut Checks) -> anyhow::Result<()> {
    let run = world.run;
    run.title("the images that OLM runs in pods");
    world.package.publish_catalog(run, Catalog::Both)?;
    let (upstream, ours) = (RefCell::new(Value::Null), RefCell::new(Value::Null));
    checks.check(
        "OLM unpacks our bundle and serves our catalog with upstream's images",
        || {
            *upstream.borrow_mut() = unpack_with_olm(world, "upstream-images")?;
            Ok(())
        },
    );
    checks.check("and with our helper image as util and opm image", || {
        *ours.borrow_mut() = with_helper_image(world)?;
        Ok(())
    });
    checks.check("the ConfigMaps are equal", || {
        let stored = stored(run, &upstream.borrow())?;
        ensure!(!stored.is_empty(), "OLM stored no ConfigMap");
        let (expected, now) = (
            json!(stored).to_string(),
            json!(self::stored(run, &ours.borrow())?).to_string(),
        );
        run.log.write(&now);
        is(&now, &expected)
    });
    checks.check("nothing is left of the helper image's test", || world.nothing_is_left());
    if run.cluster == Cluster::Local {
        checks.check("containerd imports and unpacks our archives", || import(world));
    }
    Ok(())
}

/// containerd reads an archive of each format, checks the digests of its layers and unpacks them.
fn import(world: &World) -> anyhow::Result<()> {
    let run = world.run;
    let image = reach(run, &world.package.catalog_image());
    for kind in ["docker-archive", "oci-archive"] {
        let archive = run.work.join(kind).with_extension("tar");
        let (path, name) = (archive.display(), format!("registry.example.com/imported/{kind}:v1"));
        run.kit(&format!("image copy {image} {kind}:{path}:{name}")).run()?;
        run.node_script(
            r#"archive=$0 name=$1
            "${ctr[@]}" images import "$archive"
            "${ctr[@]}" images check "name==$name" | grep -E "^$name .* complete .* true *$"
            "${ctr[@]}" images rm "$name""#,
        )
        .arg(path.to_string())
        .arg(&name)
        .run()?;
    }
    Ok(())
}

/// The ConfigMaps in which OLM stores the unpacked bundle. OLM also reads a second catalog from its image (`extractContent`), which
/// runs `cp` and `copy-content` of the util image and `opm serve` of the opm image.
fn unpack_with_olm(world: &World, name: &str) -> anyhow::Result<Value> {
    let space = world.run.namespace(name);
    let (run, image, package) = (world.run, world.package.catalog_image(), PACKAGE);
    run.kubectl(&format!("create namespace {name}"))?;
    space.apply(&format!(
        r#"apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: served}}
spec: {{sourceType: grpc, image: "{image}", grpcPodConfig: {{securityContextConfig: restricted}}}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: extracted}}
spec: {{sourceType: grpc, image: "{image}", grpcPodConfig: {{securityContextConfig: restricted, extractContent: {{catalogDir: /configs}}}}}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {{name: own}}
spec: {{targetNamespaces: [{name}]}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {{name: {package}}}
spec: {{name: {package}, channel: alpha, source: served, sourceNamespace: {name}, installPlanApproval: Manual}}
"#
    ))?;
    run.until(180, "READY", || space.catalog_state("served"))?;
    run.until(180, "READY", || space.catalog_state("extracted"))?;
    run.until(180, "RequiresApproval", || {
        space.get("installplans.operators.coreos.com", "{.items[*].status.phase}")
    })?;
    let stored = space.kubectl("get configmap -l olm.managed=true -o json")?;
    space.kubectl("delete subscriptions.operators.coreos.com --all")?;
    run.kubectl(&format!("delete namespace {name} --wait=false"))?;
    run.kubectl(&format!(
        "delete operators.operators.coreos.com {package}.{name} --ignore-not-found"
    ))?;
    Ok(serde_json::from_str(&stored)?)
}

/// The same, while OLM's catalog operator runs with our helper image.
fn with_helper_image(world: &World) -> anyhow::Result<Value> {
    let run = world.run;
    let image = format!("{}/example/olmkit:e2e", run.registry);
    run.olmkit("image build helper --tag").arg(&image).run()?;
    push(run, &image)?;
    let olm = run.namespace("olm");
    let arguments = olm.get(
        "deployment catalog-operator",
        "{.spec.template.spec.containers[0].args}",
    )?;
    let old: Vec<String> = serde_json::from_str(&arguments)?;
    let flags = [format!("--util-image={image}"), format!("--opmImage={image}")];
    let new: Vec<String> = old.iter().cloned().chain(flags).collect();
    set_catalog_operator_arguments(run, &new)?;
    let unpacked = olm
        .kubectl("rollout status deployment/catalog-operator --timeout=300s")
        .and_then(|_| unpack_with_olm(world, "helper-image"));
    set_catalog_operator_arguments(run, &old)?;
    unpacked
}

fn set_catalog_operator_arguments(run: &Run, arguments: &[String]) -> anyhow::Result<()> {
    let patch = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": arguments}]);
    run.namespace("olm")
        .command("patch deployment catalog-operator --type=json -p")
        .arg(patch.to_string())
        .run()?;
    Ok(())
}

/// Names, labels, annotations and data of ConfigMaps. Of each compressed file the checksum of its content, as the compression level
/// does not matter to OLM.
fn stored(run: &Run, list: &Value) -> anyhow::Result<Vec<Value>> {
    let items = list.get("items").and_then(Value::as_array).context("no ConfigMaps")?;
    let mut stored = Vec::new();
    for item in items {
        let metadata = |field: &str| item.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_default();
        let mut files = BTreeMap::new();
        for (name, content) in item.get("binaryData").and_then(Value::as_object).into_iter().flatten() {
            // OLM stores base64 of gzip, and the API base64 of that.
            let sum = run
                .program("sh")
                .args(["-c", "base64 -d | base64 -d | gunzip | sha256sum"])
                .input(content.as_str().unwrap_or_default())
                .run()?;
            files.insert(name.clone(), sum);
        }
        stored.push(json!({
            "name": metadata("name"),
            "annotations": metadata("annotations"),
            "labels": metadata("labels"),
            "data": item.get("data"),
            "files": files,
        }));
    }
    Ok(stored)
}
