//! Times to install, upgrade and remove an operator on the local node.

use std::env;
use std::time::{Duration, Instant};

use crate::checks::NodeUp;
use crate::command::Invocation;
use crate::e2e::upstream::{OPM_IMAGE, TIMEOUT, operator_sdk, remove_residue, run_bundle, scaffold_project};
use crate::package::on_tls;
use crate::run::{PACKAGE, Run};
use crate::world::World;

/// Steps of each tool.
const STEPS: [&str; 3] = ["install", "upgrade", "cleanup"];
/// Tools, as columns.
const TOOLS: [&str; 3] = ["olmkit, directory", "olmkit, image", "operator-sdk, image"];

/// Measures olmkit with a bundle directory and an image, and operator-sdk with the same image. A time ends when the
/// ClusterServiceVersion has Succeeded, or when the command has removed its objects. Prints a table of the medians.
pub fn bench(run: &Run, rounds: usize) -> anyhow::Result<()> {
    if !run.given && env::var_os("PROFILE").is_none() {
        eprintln!("warning: these are development builds. PROFILE=dist measures what ships");
    }
    run.build(&["node", "upstream"])?;
    let _node = NodeUp::start(run)?;
    let world = World::new(run)?;
    world.publish_once()?;
    world.push_helper()?;
    scaffold_project(run)?;
    let space = run.namespace("bench");
    run.kubectl("create namespace bench")?;
    let (old, new) = (world.old_bundle(), world.new_bundle());
    let image = |version: &str| world.bundle_image(version);
    let tls = |version: &str| on_tls(&world.package.bundle_image(version));
    let helper = World::HELPER;
    let mut times = vec![Vec::new(); STEPS.len() * TOOLS.len()];
    for _ in 0..rounds {
        let cleanup = format!("cleanup {PACKAGE}");
        let commands: [Invocation; 9] = [
            space.kit(&format!("run bundle {old} --serve-from-host")),
            space.kit(&format!("run bundle-upgrade {new} --serve-from-host")),
            space.kit(&cleanup),
            space.kit(&format!(
                "run bundle {} --helper-image {helper}",
                image(world.old_version())
            )),
            space.kit(&format!(
                "run bundle-upgrade {} --helper-image {helper}",
                image(world.new_version())
            )),
            space.kit(&cleanup),
            run_bundle(&space, TIMEOUT, &tls(world.old_version()), OPM_IMAGE),
            operator_sdk(&space, TIMEOUT, "run bundle-upgrade").arg(tls(world.new_version())),
            operator_sdk(&space, TIMEOUT, &cleanup),
        ];
        for (command, times) in commands.into_iter().zip(&mut times) {
            let start = Instant::now();
            command.run()?;
            times.push(start.elapsed());
        }
        remove_residue(run)?;
    }
    println!("| | {} |\n|---|---|---|---|", TOOLS.join(" | "));
    for (number, step) in STEPS.iter().enumerate() {
        let of_step = times.iter_mut().skip(number).step_by(STEPS.len());
        let medians: Vec<String> = of_step
            .map(|times| format!("{:.1} s", median(times).as_secs_f64()))
            .collect();
        println!("| {step} | {} |", medians.join(" | "));
    }
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
