//! olmkit's cluster commands: a bundle from an image, from a directory and from this host, and a Subscription to a catalog image.

use std::fs;

use anyhow::ensure;
use serde_json::json;

use crate::checks::Checks;
use crate::command::Invocation;
use crate::package::Catalog;
use crate::run::{Namespace, PACKAGE, contains, fails_with, is};
use crate::world::World;

pub fn olmkit(world: &World, checks: &mut Checks) -> anyhow::Result<()> {
    let space = &world.run.namespace("flows");
    image(world, checks, space);
    directory(world, checks, space);
    limited_account(world, checks, space);
    catalog(world, checks, space);
    Ok(())
}

fn image(world: &World, checks: &mut Checks, space: &Namespace) {
    world.run.title("olmkit: a bundle image");
    let helper = World::HELPER;
    let run_image = || {
        space.kit(&format!(
            "run bundle {} --helper-image {helper}",
            world.bundle_image(world.old_version())
        ))
    };
    checks.check("the helper image is built", || world.push_helper());
    checks.check("run bundle IMAGE", || {
        space.create_restricted()?;
        run_image().run()?;
        space.installed(world.old_version())?;
        let again = run_image().finish()?;
        ensure!(again.code == 0, "exit code {}", again.code);
        contains(
            &again.text(),
            &format!("is already installed in namespace {}", space.name),
        )
    });
    checks.check("the catalog survives the loss of its pod", || catalog_survives(space));
    checks.check("a Memcached runs", || space.sample_runs());
    checks.check("run bundle-upgrade IMAGE", || {
        let image = world.bundle_image(world.new_version());
        space
            .kit(&format!("run bundle-upgrade {image} --helper-image {helper}"))
            .run()?;
        space.installed(world.new_version())
    });
    checks.check("cleanup removes the package, Memcached first", || space.cleaned_up());
    checks.check("nothing is left of it", || world.namespace_is_removed(space));
}

fn directory(world: &World, checks: &mut Checks, space: &Namespace) {
    world.run.title("olmkit: a bundle directory");
    let install = |flags: &str| {
        space.create_restricted()?;
        space.kit(&format!("run bundle {} {flags}", world.old_bundle())).run()?;
        space.installed(world.old_version())
    };
    let upgrade = |flags: &str| {
        space
            .kit(&format!("run bundle-upgrade {} {flags}", world.new_bundle()))
            .run()?;
        space.installed(world.new_version())
    };
    checks.check("run bundle DIR, served by the image that OLM unpacks with", || {
        install("")
    });
    checks.check("run bundle-upgrade DIR", || upgrade(""));
    world.check_cleanup(checks, space);
    checks.check("run bundle DIR, served from this host", || install("--serve-from-host"));
    checks.check("no catalog without a server is left behind", || {
        is(
            &space.kubectl("get catalogsources,subscriptions.operators.coreos.com -o name")?,
            "",
        )?;
        is(&catalog_pod(space)?, "")
    });
    checks.check("run bundle-upgrade DIR, served from this host", || {
        upgrade("--serve-from-host")
    });
    world.check_cleanup(checks, space);
    checks.check("Ctrl-C ends run bundle", || {
        space.create_restricted()?;
        let words = format!("run bundle {} --helper-image {}", world.old_bundle(), World::HELPER);
        is_interrupted(space, 2, &words)
    });
    checks.check("cleanup removes what it left", || space.cleaned_up());
    checks.check("nothing is left of it", || world.namespace_is_removed(space));
}

/// olmkit ends with the exit code 130 if it gets the signal of Ctrl-C after some seconds.
pub fn is_interrupted(space: &Namespace, seconds: u32, words: &str) -> anyhow::Result<()> {
    let run = space.run;
    let interrupted = run
        .inside("timeout")
        .words(&format!("--preserve-status -s INT {seconds}"))
        .arg(&run.olmkit)
        .words(words)
        .arg("-n")
        .arg(&space.name)
        .finish()?;
    ensure!(interrupted.code == 130, "exit code {}", interrupted.code);
    Ok(())
}

/// The running pod of the catalog that `run bundle` created.
fn catalog_pod(space: &Namespace) -> anyhow::Result<String> {
    let pods = format!(
        "pod -l olmkit.dev/catalog-source={}-catalog --field-selector=status.phase=Running",
        PACKAGE
    );
    space.get(&pods, "{.items[*].metadata.name}")
}

fn catalog_survives(space: &Namespace) -> anyhow::Result<()> {
    let (run, name) = (space.run, format!("{PACKAGE}-catalog"));
    let lost = catalog_pod(space)?;
    space.kubectl(&format!("delete pod {lost}"))?;
    run.until_true(180, || {
        let now = catalog_pod(space)?;
        ensure!(!now.is_empty() && now != lost, "no other pod runs");
        Ok(())
    })?;
    space.kubectl(&format!("rollout status deployment/{name} --timeout=300s"))?;
    run.until(180, "READY", || space.catalog_state(&name))
}

fn limited_account(world: &World, checks: &mut Checks, space: &Namespace) {
    world
        .run
        .title("olmkit: an OperatorGroup with a restricted service account");
    let install = || {
        space.kit(&format!(
            "run bundle {} --serve-from-host --install-mode OwnNamespace",
            world.new_bundle()
        ))
    };
    checks.check("missing permissions are reported", || {
        permissions_are_missing(space, install)
    });
    checks.check("the permissions that the docs list suffice", || {
        world.run.apply(&documented_permissions(space)?)?;
        install().run()?;
        space.installed(world.new_version())
    });
    checks.check("a Memcached runs", || space.sample_runs());
    checks.check("cleanup", || space.cleaned_up());
    checks.check("nothing is left of it", || {
        let permissions = documented_permissions(space)?;
        world
            .run
            .inside("kubectl")
            .words("delete -f -")
            .input(permissions)
            .run()?;
        world.namespace_is_removed(space)
    });
}

fn permissions_are_missing(space: &Namespace, install: impl Fn() -> Invocation) -> anyhow::Result<()> {
    space.create_restricted()?;
    space.kubectl("create serviceaccount installer")?;
    let group = json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": "restricted"},
        "spec": {"targetNamespaces": [space.name], "serviceAccountName": "installer"},
    });
    space.create(&group.to_string())?;
    fails_with("forbidden", install())?;
    // With the first permission, the InstallPlan proceeds to the next step and leaves an incomplete version.
    space
        .kubectl("create role first --verb=get,create,update --resource=clusterserviceversions.operators.coreos.com")?;
    space.kubectl(&format!(
        "create rolebinding first --role=first --serviceaccount={}:installer",
        space.name
    ))?;
    let cause = fails_with("forbidden", install())?;
    let names_one = cause.message.contains("clusterroles") || cause.message.contains("serviceaccounts");
    ensure!(
        names_one,
        "the message names neither clusterroles nor serviceaccounts: {}",
        cause.message
    );
    Ok(())
}

/// The objects in the section "Install with limited permissions" of the guide, for this namespace.
fn documented_permissions(space: &Namespace) -> anyhow::Result<String> {
    let page = fs::read_to_string(space.run.root.join("docs/guides/cluster.md"))?;
    let section = page
        .lines()
        .skip_while(|line| !line.starts_with("## Install with limited permissions"));
    let section = section.skip(1).take_while(|line| !line.starts_with("## "));
    let mut objects = String::new();
    let mut within = false;
    for line in section {
        match line {
            "```yaml" => within = true,
            "```" => within = false,
            _ if within => {
                objects += &line.replace("shop", &space.name);
                objects.push('\n');
            }
            _ => (),
        }
    }
    ensure!(!objects.is_empty(), "the guide has no permissions");
    Ok(objects)
}

fn catalog(world: &World, checks: &mut Checks, space: &Namespace) {
    let run = world.run;
    run.title("olmkit: a catalog image");
    checks.check("subscribe with manual approval", || {
        offer_catalog(world, space)?;
        space
            .kit(&format!(
                "subscribe {package} --catalog {name}/offered --starting-csv {package}.v{old} --approval Manual --install-mode OwnNamespace",
                package = PACKAGE,
                name = space.name,
                old = world.old_version()
            ))
            .run()?;
        space.installed(world.old_version())
    });
    checks.check("an upgrade waits until it is approved", || {
        let diagnose = || space.kit(&format!("diagnose {PACKAGE}"));
        run.until_true(180, || fails_with("install-plan-unapproved", diagnose()).map(drop))?;
        fails_with("install-plan-unapproved", diagnose())?.carry_out(run)?;
        space.installed(world.new_version())
    });
    checks.check("cleanup", || space.cleaned_up());
    checks.check("subscribe with automatic approval", || {
        space.kit(&format!("subscribe {PACKAGE} --catalog offered")).run()?;
        space.installed(world.new_version())
    });
    checks.check("cleanup", || space.cleaned_up());
    // `cleanup` removes only catalogs that olmkit created.
    checks.check("the catalog is left to its owner", || {
        space.kubectl("get catalogsource offered")?;
        space.kubectl("delete catalogsource offered").map(drop)
    });
    checks.check("nothing is left of it", || world.namespace_is_removed(space));
}

/// The CatalogSource that a catalog's user applies.
fn offer_catalog(world: &World, space: &Namespace) -> anyhow::Result<()> {
    space.create_restricted()?;
    world.package.publish_catalog(world.run, Catalog::Both)?;
    space.apply(&format!(
        r#"apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: offered}}
spec: {{sourceType: grpc, image: "{}", grpcPodConfig: {{securityContextConfig: restricted}}}}
"#,
        world.package.catalog_image()
    ))?;
    world.run.until(180, "READY", || space.catalog_state("offered"))
}
