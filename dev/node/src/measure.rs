//! Measures the keys that clients lose when servers restart or change: the tables in `docs/memcached/operate.md`.

use anyhow::Context as _;

use crate::cache::Cache;
use crate::checks::NodeUp;
use crate::e2e::operator::{make_deploy, make_undeploy};
use crate::package::operand_image_of;
use crate::run::{Namespace, Run};
use crate::world::World;

/// Number of keys, with values of 1 kB.
const KEYS: usize = 30_000;
/// As many keys as servers with 1 GiB can store, and more than servers with 64 MiB can.
const MANY_KEYS: usize = 300_000;

/// An event that restarts or replaces servers.
struct Event {
    name: &'static str,
    /// The client stores missing keys again.
    fills: bool,
    happen: fn(&Cache, &Namespace) -> anyhow::Result<()>,
}

const EVENTS: [Event; 6] = [
    Event {
        name: "graceful container restart",
        fills: false,
        happen: |cache, _| cache.restarted(0, || cache.execute(0, "kill 1").map(drop)),
    },
    Event {
        name: "killed container",
        fills: false,
        happen: |cache, space| {
            let container = cache.pod(0, "{.status.containerStatuses[0].containerID}")?;
            let container = container.strip_prefix("containerd://").context("no container")?;
            let kill = format!("\"${{ctr[@]}}\" tasks kill --signal SIGKILL {container}");
            cache.restarted(0, || space.run.node_script(&kill).run().map(drop))
        },
    },
    Event {
        name: "deleted pod",
        fills: false,
        happen: |cache, space| {
            let delete = format!("delete pod {}-0", cache.name);
            cache.replaced(0, || space.kubectl(&delete).map(drop))
        },
    },
    Event {
        name: "`kubectl drain` and `kubectl uncordon`",
        fills: false,
        happen: |cache, space| {
            let pods = format!("--pod-selector=memcached_cr={}", cache.name);
            let drain = format!("drain olmkit-node --delete-emptydir-data --timeout=20s {pods}");
            // The budget keeps the other servers on the only node, so the command reaches its timeout.
            let drained = space.run.inside("kubectl").words(&drain).finish()?;
            space.run.kubectl("uncordon olmkit-node")?;
            anyhow::ensure!(
                drained.text().contains("evicted"),
                "no server was evicted: {}",
                drained.text()
            );
            cache.ready()
        },
    },
    Event {
        name: "new image, most at a moment",
        fills: true,
        happen: |cache, space| {
            let image = operand_image_of(&space.run.work.join("new-bundle"))?;
            cache.change(&format!("{{\"image\":\"{image}\"}}"))?;
            cache.ready()
        },
    },
    Event {
        name: "new `memoryLimitMegabytes`, most at a moment",
        fills: true,
        happen: |cache, _| {
            cache.change("{\"memoryLimitMegabytes\":128}")?;
            cache.ready()
        },
    },
];

/// Measures on the local node, and prints both tables.
pub fn measure(run: &Run) -> anyhow::Result<()> {
    run.build(&["node"])?;
    let _node = NodeUp::start(run)?;
    let world = World::new(run)?;
    world.publish_once()?;
    make_deploy(run)?;
    let space = &run.namespace("measure");
    space.create_restricted()?;
    let mut rows = vec![String::new(); EVENTS.len()];
    for more in ["", r#", "warmCache": "WarmRestart""#] {
        let cache = Cache::create(space, "sessions", KEYS, &format!(r#", "warmUpSeconds": 20{more}"#))?;
        if more.is_empty() {
            println!("{}, {KEYS} keys", cache.execute(0, "memcached -V")?);
        }
        for (event, row) in EVENTS.iter().zip(&mut rows) {
            row.push_str(&measured(&cache, event.fills, || (event.happen)(&cache, space))?);
        }
        cache.delete()?;
    }
    println!("\n| event | lost keys | failed reads | lost keys, `WarmRestart` | failed reads, `WarmRestart` |");
    println!("|---|---:|---:|---:|---:|");
    for (event, row) in EVENTS.iter().zip(rows) {
        println!("| {} |{row}", event.name);
    }
    println!("\n| change | items (1 kB) | lost keys | failed reads |\n|---|---:|---:|---:|");
    for (keys, sizes) in [(KEYS, &[64, 128, 64][..]), (MANY_KEYS, &[1024, 64][..])] {
        let first = sizes.first().context("no size")?;
        let more = format!(r#", "warmCache": "ResizeInPlace", "memoryLimitMegabytes": {first}"#);
        let cache = Cache::create(space, "resized", keys, &more)?;
        for pair in sizes.windows(2) {
            let [from, to] = *pair else { continue };
            let before = cache.containers()?;
            let row = measured(&cache, false, || {
                cache.change(&format!("{{\"memoryLimitMegabytes\":{to}}}"))?;
                cache.ready()
            })?;
            anyhow::ensure!(cache.containers()? == before, "a container has restarted");
            println!("| {from} to {to} | {keys} |{row}");
        }
        cache.delete()?;
    }
    space.delete()?;
    make_undeploy(&world)
}

/// Two columns: keys that are lost after the event, or the most at a moment during it, and failed reads.
fn measured(cache: &Cache, fills: bool, event: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<String> {
    cache.store()?;
    let watched = cache.watched(fills, event)?;
    let counts = cache.counts()?;
    let (stored, found): (u64, u64) = (counts.stored.iter().sum(), counts.found.iter().sum());
    let lost = if fills { watched.most_missing } else { stored - found };
    // In tenths of a percent.
    let share = lost * 1000 / stored.max(1);
    Ok(format!(
        " {}.{} % | {} / {} |",
        share / 10,
        share % 10,
        watched.failed,
        watched.reads
    ))
}
