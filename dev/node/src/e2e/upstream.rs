//! Upstream's operator-sdk with our bundle images.

use crate::checks::Checks;
use crate::command::Invocation;
use crate::package::{on_tls, operand_image_of};
use crate::run::{Namespace, PACKAGE, Run};
use crate::world::World;

/// Upstream's opm image, in the registry with TLS.
pub const OPM_IMAGE: &str = "localhost:5443/operator-framework/opm:latest";
/// Image with which operator-sdk decompresses bundles.
const DECOMPRESSION_IMAGE: &str = "localhost:5000/dev/busybox:1";
/// Time limit of installations that must succeed.
pub const TIMEOUT: &str = "3m";

pub fn upstream(world: &World, checks: &mut Checks) -> anyhow::Result<()> {
    let run = world.run;
    let space = &run.namespace("upstream");
    run.title("upstream's operator-sdk with our bundle images");
    scaffold_project(run)?;
    let package = &world.package;
    let phase = |version: &str| space.csv_phase(&format!("{}.v{version}", PACKAGE));
    checks.check("operator-sdk run bundle", || {
        run.kubectl(&format!("create namespace {}", space.name))?;
        run_bundle(
            space,
            TIMEOUT,
            &on_tls(&package.bundle_image(world.old_version())),
            OPM_IMAGE,
        )
        .run()?;
        run.until(180, "Succeeded", || phase(world.old_version()))
    });
    checks.check("a Memcached runs", || space.sample_runs());
    checks.check("operator-sdk run bundle-upgrade", || {
        operator_sdk(space, TIMEOUT, "run bundle-upgrade")
            .arg(on_tls(&package.bundle_image(world.new_version())))
            .run()?;
        run.until(180, "Succeeded", || phase(world.new_version()))?;
        let image = operand_image_of(&run.work.join("new-bundle"))?;
        run.until(180, &image, || space.operand_image())
    });
    checks.check("operator-sdk cleanup", || {
        space.kubectl("delete memcached --all --timeout=300s")?;
        operator_sdk(space, TIMEOUT, "cleanup").arg(PACKAGE).run()?;
        space.delete()
    });
    checks.check(
        "the objects that operator-sdk leaves behind are known and can be removed",
        || remove_residue(run),
    );
    checks.check("nothing else is left", || world.nothing_is_left());
    Ok(())
}

/// operator-sdk reads the PROJECT file for every command, so it runs in a scaffolded project.
pub fn scaffold_project(run: &Run) -> anyhow::Result<()> {
    let project = run.work.join("sdk-project");
    std::fs::create_dir_all(&project)?;
    run.olmkit("init --project-name sdk-project --directory")
        .arg(project)
        .run()?;
    Ok(())
}

/// operator-sdk with these arguments and time limit, for a namespace.
pub fn operator_sdk(space: &Namespace, timeout: &str, words: &str) -> Invocation {
    let run = space.run;
    run.inside("operator-sdk")
        .directory(&run.work.join("sdk-project"))
        .words(words)
        .args(["--timeout", timeout, "-n", &space.name])
}

/// `operator-sdk run bundle` for an image, with an image of opm.
pub fn run_bundle(space: &Namespace, timeout: &str, image: &str, opm: &str) -> Invocation {
    operator_sdk(space, timeout, "run bundle")
        .args(["--index-image", opm, "--decompression-image", DECOMPRESSION_IMAGE])
        .arg(image)
}

/// Removes the objects that upstream's `cleanup` leaves behind. It leaves them for bundles of operator-sdk too.
pub fn remove_residue(run: &Run) -> anyhow::Result<()> {
    run.kubectl("delete clusterrole -l olm.owner,olm.owner.kind!=OperatorGroup --ignore-not-found")?;
    // Objects that only the upgrade has have no owner label: OLM sets it only on existing objects.
    run.kubectl(&format!(
        "delete clusterrole {}-metrics-reader --ignore-not-found",
        PACKAGE
    ))?;
    run.kubectl("delete operators.operators.coreos.com --all")?;
    Ok(())
}
