//! A network that enforces NetworkPolicies. The network of `dev/cluster` ignores them.

use anyhow::ensure;

use crate::cache::Cache;
use crate::checks::Checks;
use crate::e2e::operator::{make_deploy, make_undeploy};
use crate::run::{Namespace, Run, is};
use crate::world::World;

/// The program that enforces the policies.
pub const PROGRAM: &str = "kube-router";

/// Namespaces with a client each.
const CLIENTS: [&str; 2] = ["shop", "other"];

/// Starts the program on the node, for policies only.
const START: &str = r#"
command -v ipset > /dev/null || die "this drill needs ipset: install the Debian package"
start kube-router "$bin/kube-router" --run-firewall --run-router=false --run-service-proxy=false --hostname-override="$node" \
  --kubeconfig="$state/admin.kubeconfig" --service-cluster-ip-range=$service_range
log_tails=kube-router wait_for 60 "kube-router ready" "${inside[@]}" curl -fsS http://127.0.0.1:20244/healthz
"#;

/// Stops it, and no longer uses its rules. Its own `--cleanup-config` panics without the service proxy.
const STOP: &str = r#"
stop kube-router
"${inside[@]}" iptables-save -t filter | sed -nE 's/^-A ((INPUT|FORWARD|OUTPUT) .* -j KUBE-ROUTER-.*)/-D \1/p' |
  xargs -r -L 1 "${inside[@]}" iptables -t filter
"#;

pub fn network(world: &World, checks: &mut Checks, space: &Namespace) -> anyhow::Result<()> {
    let run = world.run;
    run.title("a network that enforces policies");
    policies(run, checks, space);
    checks.check("make undeploy leaves nothing", || {
        run.node_script(STOP).run()?;
        run.kubectl("delete namespace shop other --ignore-not-found --timeout=300s")?;
        space.delete()?;
        make_undeploy(world)
    });
    Ok(())
}

/// The checks of the policies. [`network`] cleans up after them, also if the first one fails.
fn policies(run: &Run, checks: &mut Checks, space: &Namespace) {
    checks.check("the operator and two clients run", || {
        make_deploy(run)?;
        CLIENTS.iter().try_for_each(|name| create_client(run, name))
    });
    let mut cache = None;
    checks.check("without enforcement, all clients reach the servers", || {
        let more = r#", "warmCache": "ResizeInPlace", "allowedNamespaces": ["shop"]"#;
        cache = Some(Cache::create(space, "guarded", 1, more)?);
        clients_reach(space, [true, true])
    });
    let Some(cache) = cache else { return };
    checks.check("kube-router enforces policies", || run.node_script(START).show());
    checks.check("only the allowed namespace reaches the servers", || {
        clients_reach(space, [true, false])
    });
    checks.check(
        "the operator still reaches the servers, and changes their memory",
        || {
            let before = cache.containers()?;
            cache.change(r#"{"memoryLimitMegabytes":128}"#)?;
            cache.ready()?;
            is(&cache.containers()?, &before)
        },
    );
    checks.check("the list can be changed", || {
        cache.change(r#"{"allowedNamespaces":["other"]}"#)?;
        clients_reach(space, [false, true])
    });
    checks.check("an empty list rejects all clients", || {
        cache.change(r#"{"allowedNamespaces":[]}"#)?;
        clients_reach(space, [false, false])
    });
    checks.check("without the list, all clients reach the servers", || {
        cache.change(r#"{"allowedNamespaces":null}"#)?;
        clients_reach(space, [true, true])
    });
}

/// A pod that runs until it is deleted.
fn create_client(run: &Run, namespace: &str) -> anyhow::Result<()> {
    run.kubectl(&format!("create namespace {namespace}"))?;
    let image = "--image=localhost:5000/dev/busybox:1";
    let space = run.namespace(namespace);
    space.kubectl(&format!("run client {image} --restart=Never --command -- sleep 3600"))?;
    space.kubectl("wait pod client --for=condition=Ready --timeout=120s")?;
    Ok(())
}

/// Waits until exactly these clients get an answer from the server. Each must get the same answer twice.
fn clients_reach(space: &Namespace, expected: [bool; 2]) -> anyhow::Result<()> {
    let run = space.run;
    let address = space.get("pod guarded-0", "{.status.podIP}")?;
    let script = format!("printf 'version\\r\\nquit\\r\\n' | nc -w 3 {address} 11211");
    run.until_true(120, || {
        for _ in 0..2 {
            for (name, expected) in CLIENTS.iter().zip(expected) {
                let client = run.namespace(name);
                let answer = client.command("exec client -- sh -c").arg(&script).finish()?;
                let is_reached = answer.stdout.contains("VERSION");
                ensure!(is_reached == expected, "a client in {name}: {}", answer.text());
            }
        }
        Ok(())
    })
}
