//! Drills: each breaks something on the node, checks the cause that olmkit reports, follows its help, and checks that this repairs the
//! installation. Drills without pods are in `crates/cli/tests/cluster/drills.rs` and need only a control plane.

mod catalogs;
mod failures;
mod network;
mod registry;
mod upstream;

use anyhow::bail;

use crate::checks::{Checks, NodeUp};
use crate::run::{Cluster, Run};
use crate::world::World;

/// The drills by name. `upstream` causes the failures with upstream's operator-sdk and prints its output. It checks nothing. `network`
/// needs one more program.
const DRILLS: [&str; 4] = ["failures", "catalogs", "network", "upstream"];

/// Runs the named drills or, without names, `failures` and `catalogs`. Returns true if all checks passed.
pub fn drills(run: &Run, names: &[String]) -> anyhow::Result<bool> {
    if run.cluster != Cluster::Local {
        bail!("drills break things, so they run on the local cluster only");
    }
    if let Some(name) = names.iter().find(|name| !DRILLS.contains(&name.as_str())) {
        bail!("no drills '{name}'. Drills: {}", DRILLS.join(", "));
    }
    let mut programs = vec!["node", "upstream"];
    if names.iter().any(|name| name == "network") {
        programs.push(network::PROGRAM);
    }
    run.build(&programs)?;
    let node = NodeUp::start(run)?;
    let world = World::new(run)?;
    world.publish_once()?;
    let mut checks = Checks::new(run, "cargo node drills ");
    let default = ["failures".to_owned(), "catalogs".to_owned()];
    for name in if names.is_empty() { &default } else { names } {
        name.clone_into(&mut checks.flow);
        let space = run.namespace("drills");
        space.create_restricted()?;
        match name.as_str() {
            "failures" => failures::failures(&world, &mut checks, &space),
            "catalogs" => catalogs::catalogs(&world, &mut checks, &space),
            "network" => network::network(&world, &mut checks, &space)?,
            _ => {
                upstream::upstream(&world, &space)?;
                space.delete()?;
                continue;
            }
        }
        space.delete()?;
        checks.check(&format!("nothing is left of the {name}"), || world.nothing_is_left());
    }
    drop(node);
    Ok(checks.summary("drills"))
}
