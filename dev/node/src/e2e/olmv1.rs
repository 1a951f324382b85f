//! OLM v1. A service account with the computed permissions applies the objects that OLM v1's installer would apply, as that installer
//! cannot be built from the module proxy: one of its modules is missing there. catalogd, the catalog server of OLM v1, serves our
//! catalog image. Its answers must equal those of `olmkit catalog serve --http` for this image.

use std::fs;

use anyhow::{Context as _, ensure};

use crate::checks::Checks;
use crate::command::Invocation;
use crate::package::{Catalog, on_tls, publish, reach};
use crate::run::{Namespace, PACKAGE, Run, contains, is};
use crate::world::World;

const CATALOGD_IMAGE: &str = "quay.io/operator-framework/catalogd:e2e";
const CATALOGD: &str = "https://localhost:18443";

pub fn olmv1(world: &World, checks: &mut Checks) -> anyhow::Result<()> {
    let run = world.run;
    let space = &run.namespace("olmv1-system");
    run.title("the objects that OLM v1 would apply, by an account with the computed permissions");
    let own = Rendered {
        world,
        space,
        watched: run.namespace("olmv1-system"),
        flags: "",
    };
    checks.check("the operator serves a Memcached", || own.runs());
    checks.check("nothing is left of it", || own.is_removed());
    let other = Rendered {
        world,
        space,
        watched: run.namespace("olmv1-shop"),
        flags: "--watch-namespace olmv1-shop",
    };
    checks.check(
        "the operator serves a Memcached in the one namespace that it watches",
        || other.runs(),
    );
    checks.check("it ignores other namespaces", || others_are_not_watched(&other.watched));
    checks.check("nothing is left of it", || other.is_removed());
    run.title("OLM v1's catalogd with our catalog image");
    checks.check("catalogd runs", || catalogd_runs(space));
    checks.check("it serves our catalog image", || catalog_is_served(world, space));
    checks.check("its answers equal those of olmkit catalog serve --http", || {
        same_answers(world)
    });
    checks.check("nothing is left of it", || {
        run.kubectl(&format!("delete clustercatalog {PACKAGE} --timeout=300s"))?;
        space.delete()?;
        run.kubectl("delete clusterrolebinding catalogd")?;
        run.inside("kubectl")
            .words("delete --timeout=300s -f")
            .arg(definition(run))
            .run()?;
        world.nothing_is_left()
    });
    Ok(())
}

/// The objects of `bundle render --olmv1`.
struct Rendered<'a> {
    world: &'a World<'a>,
    space: &'a Namespace<'a>,
    watched: Namespace<'a>,
    flags: &'static str,
}

impl Rendered<'_> {
    /// The output of an olmkit command for the bundle, in a file.
    fn written(&self, command: &str, file: &str) -> anyhow::Result<String> {
        let run = self.world.run;
        let path = run.results.join(file);
        let words = format!(
            "{command} {} -n {} {}",
            self.world.new_bundle(),
            self.space.name,
            self.flags
        );
        fs::write(&path, run.olmkit(&words).run()?)?;
        Ok(path.display().to_string())
    }

    fn is_own(&self) -> bool {
        self.watched.name == self.space.name
    }

    /// The account may apply the objects only with the computed permissions. Then the operator serves a Memcached.
    fn runs(&self) -> anyhow::Result<()> {
        let run = self.world.run;
        run.kubectl(&format!("create namespace {}", self.space.name))?;
        if !self.is_own() {
            run.kubectl(&format!("create namespace {}", self.watched.name))?;
        }
        let objects = self.written("bundle render --olmv1", "rendered.yaml")?;
        let apply = || as_installer(self.space, &format!("apply --server-side -f {objects}"));
        let refused = apply().finish()?;
        ensure!(refused.code != 0, "applied without permissions");
        contains(&refused.text(), "cannot patch resource")?;
        let permissions = self.written("bundle rbac --for-installer", "permissions.yaml")?;
        run.kubectl(&format!("apply -f {permissions}"))?;
        run.until_true(180, || apply().run().map(drop))?;
        let deployment = format!("deployment/{PACKAGE}-controller-manager");
        self.space
            .kubectl(&format!("rollout status {deployment} --timeout=300s"))?;
        self.watched.sample_runs()?;
        contains(&self.watched.talk_to_memcached()?, "greeting")
    }

    fn is_removed(&self) -> anyhow::Result<()> {
        let run = self.world.run;
        self.watched.kubectl("delete memcached --all --timeout=300s")?;
        let file = |name: &str| run.results.join(name).display().to_string();
        as_installer(self.space, &format!("delete --wait=false -f {}", file("rendered.yaml"))).run()?;
        run.kubectl(&format!("delete -f {}", file("permissions.yaml")))?;
        self.space.delete()?;
        if !self.is_own() {
            self.watched.delete()?;
        }
        self.world.nothing_is_left()
    }
}

/// kubectl as the account for which the permissions are computed.
fn as_installer(space: &Namespace, words: &str) -> Invocation {
    let account = format!("system:serviceaccount:{}:{}-installer", space.name, PACKAGE);
    space
        .run
        .inside("kubectl")
        .arg(format!("--as={account}"))
        .words("--as-group=system:serviceaccounts --as-group=system:authenticated")
        .words(words)
}

fn others_are_not_watched(watched: &Namespace) -> anyhow::Result<()> {
    let run = watched.run;
    let other = run.namespace(&format!("{}-not", watched.name));
    run.kubectl(&format!("create namespace {}", other.name))?;
    other.create_sample()?;
    // When the operator has applied a later change to the watched one, it would have seen this one too.
    watched
        .command("patch memcached memcached-sample --type=merge -p")
        .arg(r#"{"spec": {"size": 1}}"#)
        .run()?;
    run.until(180, "Running with 1 ready", || watched.sample_state())?;
    is(
        &other.get("memcached memcached-sample", "{.status}{.metadata.finalizers}")?,
        "",
    )?;
    other.delete()
}

/// The file with the definition of ClusterCatalog.
fn definition(run: &Run) -> String {
    run.cache.join("catalogd-crd.yaml").display().to_string()
}

fn catalogd_runs(space: &Namespace) -> anyhow::Result<()> {
    let (run, name) = (space.run, &space.name);
    publish(run, "operator", &run.cache.join("bin/catalogd"), CATALOGD_IMAGE)?;
    run.kubectl(&format!("create -f {}", definition(run)))?;
    run.kubectl(&format!("create namespace {name}"))?;
    space.kubectl("create serviceaccount catalogd")?;
    run.kubectl(&format!(
        "create clusterrolebinding catalogd --clusterrole=cluster-admin --serviceaccount={name}:catalogd"
    ))?;
    run.node_script(&format!(
        r#""${{kubectl[@]}}" -n {name} create secret tls catalogd --cert="$pki/server.crt" --key="$pki/server.key"
"${{kubectl[@]}}" -n {name} create configmap registry-ca --from-file=ca.crt="$pki/ca.crt""#
    ))
    .run()?;
    // It pulls images itself, so it needs the node's network to reach the node's registry.
    space.apply(&format!(
        r#"apiVersion: v1
kind: Pod
metadata: {{name: catalogd}}
spec:
  serviceAccountName: catalogd
  hostNetwork: true
  containers:
  - name: catalogd
    image: {CATALOGD_IMAGE}
    args:
    - --system-namespace={name}
    - --external-address=localhost:18443
    - --catalogs-server-addr=:18443
    - --metrics-bind-address=:17443
    - --webhook-server-port=19443
    - --health-probe-bind-address=:18081
    - --cache-dir=/cache
    - --tls-cert=/certificates/tls.crt
    - --tls-key=/certificates/tls.key
    - --pull-cas-dir=/registry
    - --feature-gates=APIV1MetasHandler=true
    readinessProbe: {{httpGet: {{path: /readyz, port: 18081, host: 127.0.0.1}}, periodSeconds: 1}}
    volumeMounts:
    - {{name: cache, mountPath: /cache}}
    - {{name: temporary, mountPath: /tmp}}
    - {{name: certificates, mountPath: /certificates}}
    - {{name: certificates, mountPath: /tmp/k8s-webhook-server/serving-certs}}
    - {{name: registry, mountPath: /registry}}
  securityContext: {{fsGroup: 1001}}
  volumes:
  - {{name: cache, emptyDir: {{}}}}
  - {{name: temporary, emptyDir: {{}}}}
  - {{name: certificates, secret: {{secretName: catalogd}}}}
  - {{name: registry, configMap: {{name: registry-ca}}}}
"#
    ))?;
    let ready = space.kubectl("wait --for=condition=Ready pod/catalogd --timeout=300s");
    explained(space, ready)
}

/// Logs the state of catalogd after an error.
fn explained(space: &Namespace, result: anyhow::Result<String>) -> anyhow::Result<()> {
    if result.is_err() {
        let _ = space.kubectl("describe pod catalogd");
        let _ = space.kubectl("logs catalogd --tail=30");
    }
    result.map(drop)
}

fn catalog_is_served(world: &World, space: &Namespace) -> anyhow::Result<()> {
    let (run, package) = (world.run, PACKAGE);
    world.package.publish_catalog(run, Catalog::Both)?;
    let image = on_tls(&world.package.catalog_image());
    // catalogd's webhook would set this label.
    run.apply(&format!(
        r#"apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata:
  name: {package}
  labels: {{olm.operatorframework.io/metadata.name: {package}}}
spec: {{source: {{type: Image, image: {{ref: "{image}"}}}}}}
"#
    ))?;
    let served = run.kubectl(&format!(
        "wait --for=condition=Serving clustercatalog/{package} --timeout=300s"
    ));
    if served.is_err() {
        let _ = run.kubectl(&format!("get clustercatalog/{package} -o yaml"));
    }
    explained(space, served)
}

fn same_answers(world: &World) -> anyhow::Result<()> {
    let (run, package) = (world.run, PACKAGE);
    let ours = "http://127.0.0.1:18080";
    let image = reach(run, &world.package.catalog_image());
    let log = run.results.join("http.log");
    let serve = format!(
        "catalog serve {image} --port 18051 --http={}",
        ours.trim_start_matches("http://")
    );
    let mut server = run.kit(&serve).spawn(&log)?;
    let answered = run
        .until_true(180, || {
            run.inside("curl")
                .words("-fsS -o /dev/null")
                .arg(format!("{ours}/api/v1/all"))
                .run()
                .map(drop)
        })
        .and_then(|()| answers(run, &format!("{ours}/catalogs/{package}")));
    server.kill()?;
    server.wait()?;
    let answered = answered.with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
    let expected = answers(run, &format!("{CATALOGD}/catalogs/{package}"))?;
    let bundles = expected.matches("\"olm.bundle\"").count();
    ensure!(bundles >= 4, "catalogd answers with {bundles} bundles");
    ensure!(answered == expected, "the answers differ: {answered}\n{expected}");
    Ok(())
}

/// The answers to queries for everything, by schema, by package, by name, by both, and for a missing name.
fn answers(run: &Run, catalog: &str) -> anyhow::Result<String> {
    let package = PACKAGE;
    let queries = [
        "all".to_owned(),
        "metas".to_owned(),
        "metas?schema=olm.package".to_owned(),
        format!("metas?schema=olm.bundle&package={package}"),
        format!("metas?package={package}"),
        "metas?schema=olm.channel&name=alpha".to_owned(),
        "metas?name=nobody".to_owned(),
    ];
    let mut text = String::new();
    for query in queries {
        let answer = run
            .inside("curl")
            .arg("-fsSk")
            .arg(format!("{catalog}/api/v1/{query}"))
            .run()?;
        text += &format!("== {query}\n{answer}\n");
    }
    Ok(text)
}
