//! Real memcached servers, and a client that stores and reads keys.

use anyhow::ensure;

use super::operator::{make_deploy, make_undeploy, memcached};
use crate::cache::{Cache, IMAGE};
use crate::checks::Checks;
use crate::run::{Namespace, contains, is};
use crate::world::World;

/// Number of keys that the client stores.
const KEYS: usize = 3000;

/// Keys that survive a restart, names that survive a move, certificates that change, and a port that memcached cannot use.
pub fn caches(world: &World, checks: &mut Checks) -> anyhow::Result<()> {
    let run = world.run;
    let space = &run.namespace("caches");
    run.title("servers and their keys");
    checks.check("make deploy runs the operator", || {
        make_deploy(run)?;
        space.create_restricted()
    });
    let mut version = String::new();
    checks.check("a graceful container restart loses no key", || {
        graceful_restart(space, &mut version)
    });
    println!("        {version}");
    checks.check("a server that moves keeps its name, and the others their keys", || {
        server_moves(space)
    });
    checks.check("a change of the memory in place loses no key", || {
        memory_changes_in_place(space)
    });
    checks.check("a rollout never leaves more than one server without keys", || {
        servers_roll_out(space)
    });
    checks.check("a changed Secret replaces the certificate without a restart", || {
        certificate_changes(space)
    });
    checks.check("a port that memcached may not use is reported", || {
        port_is_reported(space)
    });
    checks.check("make undeploy leaves nothing", || {
        space.delete()?;
        make_undeploy(world)
    });
    Ok(())
}

fn graceful_restart(space: &Namespace, version: &mut String) -> anyhow::Result<()> {
    let cache = Cache::create(space, "sessions", KEYS, r#", "warmCache": "WarmRestart""#)?;
    *version = cache.execute(0, "memcached -V")?;
    cache.store()?;
    cache.restarted(0, || cache.execute(0, "kill 1").map(drop))?;
    is(&cache.pod(0, "{.status.containerStatuses[0].restartCount}")?, "1")?;
    let counts = cache.counts()?;
    ensure!(counts.found == counts.stored, "lost keys: {counts:?}");
    Ok(())
}

fn server_moves(space: &Namespace) -> anyhow::Result<()> {
    let cache = Cache::create(space, "stable", KEYS, "")?;
    cache.store()?;
    let before = cache.pod(1, "{.status.podIP}")?;
    cache.replaced(1, || space.kubectl("delete pod stable-1").map(drop))?;
    let now = cache.pod(1, "{.status.podIP}")?;
    ensure!(now != before, "the server has kept the address {now}");
    let mut pods = (0..3)
        .map(|ordinal| cache.pod(ordinal, "{.status.podIP}"))
        .collect::<anyhow::Result<Vec<String>>>()?;
    pods.sort();
    // CoreDNS follows the endpoints with a delay, and may answer from its cache.
    space.run.until_true(180, || {
        let resolved = cache.resolved()?;
        ensure!(
            resolved == pods,
            "the Service resolves to {resolved:?} instead of {pods:?}"
        );
        Ok(())
    })?;
    let counts = cache.counts()?;
    ensure!(
        counts.stored.iter().all(|stored| *stored > 0),
        "a server has no key: {counts:?}"
    );
    let mut expected = counts.stored.clone();
    if let Some(moved) = expected.get_mut(1) {
        *moved = 0;
    }
    ensure!(counts.found == expected, "lost keys of other servers: {counts:?}");
    cache.delete()
}

fn memory_changes_in_place(space: &Namespace) -> anyhow::Result<()> {
    let more = r#", "warmCache": "ResizeInPlace", "memoryLimitMegabytes": 64"#;
    let cache = Cache::create(space, "resized", KEYS, more)?;
    cache.store()?;
    let before = cache.containers()?;
    for memory in [128, 64] {
        cache.change(&format!("{{\"memoryLimitMegabytes\":{memory}}}"))?;
        cache.ready()?;
        let counts = cache.counts()?;
        ensure!(counts.found == counts.stored, "lost keys: {counts:?}");
    }
    is(&cache.containers()?, &before)?;
    cache.delete()
}

/// A client stores missing keys again while the servers warm up. A key also counts as missing while its server restarts.
fn servers_roll_out(space: &Namespace) -> anyhow::Result<()> {
    let cache = Cache::create(space, "rolling", KEYS, r#", "warmUpSeconds": 20"#)?;
    cache.store()?;
    let before = cache.containers()?;
    let watched = cache.watched(true, || {
        cache.change("{\"memoryLimitMegabytes\":128}")?;
        cache.ready()
    })?;
    ensure!(cache.containers()? != before, "no server was replaced");
    let counts = cache.counts()?;
    let most = counts.stored.iter().max().copied().unwrap_or_default();
    ensure!(
        (1..=most).contains(&watched.most_missing),
        "{} keys were missing at a moment: {counts:?}",
        watched.most_missing
    );
    cache.delete()
}

/// Writes a certificate for `name` into the Secret `cert`.
fn write_certificate(space: &Namespace, name: &str) -> anyhow::Result<()> {
    let script = format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name} -keyout tls.key -out tls.crt 2>&1"
    );
    let directory = tempfile::tempdir()?;
    let openssl = space.run.program("sh").directory(directory.path());
    openssl.arg("-c").arg(script).run()?;
    let files = ["crt", "key"].map(|end| {
        format!(
            "--{}={}/tls.{end}",
            if end == "crt" { "cert" } else { end },
            directory.path().display()
        )
    });
    let secret = space.kubectl(&format!(
        "create secret tls cert {} --dry-run=client -o json",
        files.join(" ")
    ))?;
    space.apply(&secret).map(drop)
}

/// The kubelet writes the changed Secret into the volume of the running pod.
fn certificate_changes(space: &Namespace) -> anyhow::Result<()> {
    write_certificate(space, "first")?;
    let spec = format!(r#"{{"size": 1, "image": "{IMAGE}", "tls": {{"secretName": "cert"}}}}"#);
    space.apply(&memcached("secure", &spec))?;
    let ready = || space.condition("secure", "Ready", "status");
    space.run.until(300, "True", ready)?;
    let pod = |path: &str| space.get("pods -l memcached_cr=secure", &format!("{{.items[0].status{path}}}"));
    let address = pod(".podIP")?;
    let subject = || {
        let script =
            format!("openssl s_client -connect {address}:11211 < /dev/null 2>&1 | openssl x509 -noout -subject");
        space.run.inside("sh").arg("-c").arg(script).run()
    };
    contains(&subject()?, "first")?;
    let container = || pod(".containerStatuses[0].containerID");
    let before = container()?;
    write_certificate(space, "second")?;
    space.run.until_contains(600, "second", subject)?;
    is(&container()?, &before)?;
    is(&pod(".podIP")?, &address)?;
    space.kubectl("delete memcached secure --timeout=300s")?;
    Ok(())
}

/// In a container, only root may listen on ports below 1024, unless the container runtime is configured otherwise.
fn port_is_reported(space: &Namespace) -> anyhow::Result<()> {
    let spec = format!(r#"{{"size": 1, "containerPort": 80, "image": "{IMAGE}"}}"#);
    space.apply(&memcached("low-port", &spec))?;
    space.run.until_contains(300, "failed to listen on TCP port 80", || {
        space.condition("low-port", "Degraded", "message")
    })?;
    contains(
        &space.condition("low-port", "Ready", "message")?,
        "failed to listen on TCP port 80",
    )?;
    space.kubectl("delete memcached low-port --timeout=300s")?;
    Ok(())
}
