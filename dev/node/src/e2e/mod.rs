//! The flows of the end-to-end test. Each restores the cluster, so they run in any order.

mod caches;
mod images;
mod olm;
mod olmkit;
mod olmv1;
pub mod operator;
mod scaffold;
mod scorecard;
pub mod upstream;

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;

use crate::checks::{Checks, NodeUp, shuffled};
use crate::run::{Cluster, Run};
use crate::world::World;

type Flow = fn(&World, &mut Checks) -> anyhow::Result<()>;

/// The flows by name.
const FLOWS: [(&str, Flow); 10] = [
    ("operator", operator::operator),
    ("images", images::images),
    ("deploy", operator::deploy),
    ("caches", caches::caches),
    ("olmkit", olmkit::olmkit),
    ("scaffold", scaffold::scaffold),
    ("scorecard", scorecard::scorecard),
    ("upstream", upstream::upstream),
    ("olm", olm::olm),
    ("olmv1", olmv1::olmv1),
];

/// Runs the named flows in their order or, without names, all in an order that the seed decides. Returns true if all checks passed.
pub fn e2e(run: &Run, names: &[String], seed: Option<u64>) -> anyhow::Result<bool> {
    if run.cluster != Cluster::Local {
        bail!("the end-to-end test creates and removes its own cluster, so it does not run on another");
    }
    let known: Vec<&str> = FLOWS.iter().map(|(name, _)| *name).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no flow '{name}'. Flows: {}", known.join(", "));
    }
    run.build(&["node", "upstream", "catalogd"])?;
    let node = NodeUp::start(run)?;
    let world = World::new(run)?;
    let mut order: Vec<&str> = names.iter().map(String::as_str).collect();
    if order.is_empty() {
        let seed = seed.unwrap_or_else(random_seed);
        order = shuffled(seed, &known);
        println!("SEED={seed}: {}", order.join(" "));
    }
    let mut checks = Checks::new(run, "cargo node e2e ");
    for name in order {
        // The demo pushes the images itself.
        if name != "operator" {
            world.publish_once()?;
        }
        name.clone_into(&mut checks.flow);
        for (_, flow) in FLOWS.iter().filter(|(flow, _)| *flow == name) {
            flow(&world, &mut checks)?;
        }
    }
    drop(node);
    Ok(checks.summary("end-to-end test"))
}

fn random_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) % 32_768 + 1
}
