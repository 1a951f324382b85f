//! The operator on a real node, installed by OLM and without it.

use anyhow::ensure;

use crate::checks::Checks;
use crate::package::{demo_namespace, image_of, unsubscribe};
use crate::run::{Namespace, Run, contains, is};
use crate::world::World;

/// The demo, then the operator's guarantees.
pub fn operator(world: &World, checks: &mut Checks) -> anyhow::Result<()> {
    let run = world.run;
    let space = &run.namespace(&demo_namespace());
    run.title("the demo, step by step");
    checks.check("the demo runs to its end", || {
        let program = std::env::current_exe()?;
        run.program(&program.to_string_lossy()).arg("demo").run().map(drop)
    });
    run.title("the operator, installed by OLM");
    checks.check("a Memcached with a missing image is accepted", || {
        // The Deployment reports nothing before its deadline, which is longer than an hour.
        let spec = r#"{"size": 1, "image": "docker.io/dev/missing:1", "warmUpSeconds": 3600}"#;
        space.apply(&memcached("no-image", spec)).map(drop)
    });
    checks.check("a deleted Service is created again", || service_returns(space));
    checks.check("an edited image is restored", || image_is_restored(space));
    checks.check("edited replicas are restored", || replicas_are_restored(space));
    checks.check("size -1 is rejected with the field's name", || {
        refused(space, r#"{"size": -1}"#, "spec.size")
    });
    checks.check("port 0 is rejected with the field's name", || {
        refused(space, r#"{"containerPort": 0}"#, "spec.containerPort")
    });
    checks.check("a Deployment of another owner is never changed", || {
        unowned_deployment_stays(space)
    });
    checks.check("a broken Memcached does not block another one", || {
        others_continue(space)
    });
    checks.check("a change of the memory restarts no server", || {
        memory_changes_in_place(space)
    });
    checks.check("a missing image is reported in a condition", || {
        missing_image_is_reported(space)
    });
    checks.check("deletion removes all objects and publishes an event", || {
        deletion_removes_everything(space)
    });
    checks.check("the demo's objects can be removed", || unsubscribe(space));
    checks.check("nothing is left of it", || world.nothing_is_left());
    Ok(())
}

/// `make deploy` and `make undeploy`.
pub fn deploy(world: &World, checks: &mut Checks) -> anyhow::Result<()> {
    let run = world.run;
    run.title("without OLM");
    checks.check("make deploy runs the operator and a Memcached", || {
        make_deploy(run)?;
        run.namespace("default").sample_runs()
    });
    checks.check("make undeploy leaves nothing", || make_undeploy(world));
    Ok(())
}

/// Installs the operator without OLM.
pub fn make_deploy(run: &Run) -> anyhow::Result<()> {
    let image = image_of(&run.work.join("new-bundle"))?;
    run.inside("env")
        .words("CARGO_NET_OFFLINE=true make -s deploy")
        .arg(format!("IMG={image}"))
        .run()?;
    let system = run.namespace("memcached-operator-system");
    let deployment = "deployment/memcached-operator-controller-manager";
    system.kubectl(&format!("rollout status {deployment} --timeout=300s"))?;
    is(
        &system.get(deployment, "{.spec.template.spec.containers[0].image}")?,
        &image,
    )
}

/// Uninstalls it, and deletes all Memcacheds.
pub fn make_undeploy(world: &World) -> anyhow::Result<()> {
    let undeploy = world.run.inside("env");
    undeploy
        .words("CARGO_NET_OFFLINE=true make -s undeploy FORCE=1")
        .run()?;
    world.nothing_is_left()
}

/// A Memcached with this specification.
pub fn memcached(name: &str, spec: &str) -> String {
    format!(
        r#"{{"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {{"name": "{name}"}}, "spec": {spec}}}"#
    )
}

fn service_returns(space: &Namespace) -> anyhow::Result<()> {
    let uid = || space.get("service memcached-sample", "{.metadata.uid}");
    let old = uid()?;
    space.kubectl("delete service memcached-sample --wait=false")?;
    space.run.until_true(180, || {
        let now = uid()?;
        ensure!(!now.is_empty() && now != old, "the Service is the old one");
        Ok(())
    })
}

fn image_is_restored(space: &Namespace) -> anyhow::Result<()> {
    let image = space.operand_image()?;
    let container = space.get(
        "deployment memcached-sample",
        "{.spec.template.spec.containers[0].name}",
    )?;
    space.kubectl(&format!(
        "set image deployment/memcached-sample {container}=docker.io/dev/busybox:1"
    ))?;
    space.run.until(180, &image, || space.operand_image())?;
    space.run.until(180, "settled", || space.rollout())
}

fn replicas_are_restored(space: &Namespace) -> anyhow::Result<()> {
    let size = space.get("memcached memcached-sample", "{.spec.size}")?;
    space.kubectl("scale deployment/memcached-sample --replicas=7")?;
    space.run.until(180, &size, || {
        space.get("deployment memcached-sample", "{.spec.replicas}")
    })?;
    space
        .run
        .until(180, &format!("Running with {size} ready"), || space.sample_state())
}

fn refused(space: &Namespace, spec: &str, field: &str) -> anyhow::Result<()> {
    let answer = space.command("apply -f -").input(memcached("bad", spec)).finish()?;
    ensure!(answer.code != 0, "accepted: {}", answer.text());
    contains(&answer.text(), field)
}

fn missing_image_is_reported(space: &Namespace) -> anyhow::Result<()> {
    space.run.until_contains(300, "docker.io/dev/missing:1", || {
        space.condition("no-image", "Degraded", "message")
    })?;
    is(&space.condition("no-image", "Available", "status")?, "False")?;
    space.kubectl("delete memcached no-image --timeout=300s")?;
    Ok(())
}

fn memory_changes_in_place(space: &Namespace) -> anyhow::Result<()> {
    let pods = |fields: &str| {
        let path = format!("{{range .items[*]}}{fields}{{end}}");
        space.get("pods -l memcached_cr=sized --sort-by=.metadata.name", &path)
    };
    let containers = || pods("{.metadata.uid} {.status.containerStatuses[0].containerID} ");
    let ready = |generation: u8| {
        space.run.until(180, &format!("True for {generation}"), || {
            let path = "{.status.conditions[?(@.type=='Ready')].status} for {.status.observedGeneration}";
            space.get("memcached sized", path)
        })
    };
    space.apply(&memcached("sized", r#"{"size": 2, "warmCache": "ResizeInPlace"}"#))?;
    ready(1)?;
    let before = containers()?;
    space.kubectl("patch memcached sized --type=merge -p {\"spec\":{\"memoryLimitMegabytes\":128}}")?;
    ready(2)?;
    is(
        pods("{.status.containerStatuses[0].resources.limits.memory} ")?.trim(),
        "208Mi 208Mi",
    )?;
    is(&containers()?, &before)?;
    space.kubectl("delete memcached sized --timeout=300s")?;
    Ok(())
}

fn unowned_deployment_stays(space: &Namespace) -> anyhow::Result<()> {
    let field = |path: &str| space.get("deployment unowned", path);
    space.kubectl("create deployment unowned --image=docker.io/dev/pause:1")?;
    let uid = field("{.metadata.uid}")?;
    space.apply(&memcached("unowned", r#"{"size": 2}"#))?;
    space
        .run
        .until(180, "True", || space.condition("unowned", "Degraded", "status"))?;
    space.condition("unowned", "Degraded", "message")?;
    is(
        &field("{.spec.template.spec.containers[0].image}")?,
        "docker.io/dev/pause:1",
    )?;
    is(&field("{.metadata.ownerReferences}")?, "")?;
    space.kubectl("delete memcached unowned --timeout=300s")?;
    is(&field("{.metadata.uid}")?, &uid)?;
    space.kubectl("delete deployment unowned")?;
    Ok(())
}

fn others_continue(space: &Namespace) -> anyhow::Result<()> {
    space.apply(&memcached(
        "broken",
        r#"{"size": 1, "image": "docker.io/dev/missing:1"}"#,
    ))?;
    space.apply(&memcached("fine", r#"{"size": 1}"#))?;
    space.run.until(180, "Running with 1 ready", || {
        space.get("memcached fine", "{.status.phase} with {.status.readyReplicas} ready")
    })?;
    space.kubectl("delete memcached broken fine --timeout=300s")?;
    Ok(())
}

fn deletion_removes_everything(space: &Namespace) -> anyhow::Result<()> {
    space.kubectl("delete memcached memcached-sample --timeout=300s")?;
    let children = "get deployment,service,poddisruptionbudget,pod -l memcached_cr=memcached-sample -o name";
    space.run.until(180, "", || space.kubectl(children))?;
    let notes = space.get("events.events.k8s.io", "{.items[*].note}")?;
    let note = format!(
        "Custom Resource memcached-sample is being deleted from the namespace {}",
        space.name
    );
    contains(&notes, &note)
}
