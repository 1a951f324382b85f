//! OLM itself: removed, installed from its chart and from a release's manifests.

use std::fs;

use anyhow::ensure;

use crate::checks::{Checks, inventory};
use crate::run::{Run, contains, fails_with};
use crate::world::World;

/// OLM's version and the images that the node has.
const CHART: &str = "--version 0.46.0 --olm-image quay.io/operator-framework/olm:v0.46.0 --opm-image quay.io/operator-framework/opm:latest";

pub fn olm(world: &World, checks: &mut Checks) -> anyhow::Result<()> {
    let run = world.run;
    run.title("olmkit: OLM itself");
    checks.check("olm uninstall refuses while operators are installed", || {
        let space = run.namespace("olm-flow");
        space.create_restricted()?;
        space.kit(&format!("run bundle {}", world.old_bundle())).run()?;
        fails_with("operators-installed", run.kit("olm uninstall"))?;
        run.kit("olm status").run()?;
        space.cleaned_up()?;
        space.delete()
    });
    checks.check("olm uninstall leaves nothing", || uninstalled(run));
    checks.check("olm install from OLM's chart", || {
        install_chart(run)?;
        contains(&run.kit("olm status").finish()?.text(), "OLM 0.46.0 is healthy")
    });
    checks.check("a partial OLM is reported and completed", || {
        run.kubectl("-n olm delete deployment catalog-operator")?;
        run.kubectl("delete crd operatorconditions.operators.coreos.com")?;
        fails_with("olm-incomplete", run.kit("olm status"))?;
        install_chart(run)?;
        run.kit("olm status").run().map(drop)
    });
    checks.check("olm uninstall again", || uninstalled(run));
    checks.check(
        "olm install from a release's manifests: as kubectl installs them",
        || installed_from_release(world),
    );
    Ok(())
}

fn uninstalled(run: &Run) -> anyhow::Result<()> {
    run.kit("olm uninstall").run()?;
    fails_with("olm-not-installed", run.kit("olm status"))?;
    let of_olm = |line: &&String| {
        let line = line.to_lowercase();
        let words = ["olm", "packageserver", "operators.coreos.com"];
        !line.contains("olmkit-node") && words.iter().any(|word| line.contains(word))
    };
    let objects = inventory(run)?;
    let left: Vec<&String> = objects.iter().filter(of_olm).collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    let again = run.kit("olm uninstall").finish()?;
    contains(&again.text(), "OLM is not installed: nothing to remove")
}

fn install_chart(run: &Run) -> anyhow::Result<()> {
    run.kit("olm install --from")
        .arg(run.cache.join("olm"))
        .words(CHART)
        .run()?;
    Ok(())
}

/// A release has the files `crds.yaml` and `olm.yaml`.
fn installed_from_release(world: &World) -> anyhow::Result<()> {
    let run = world.run;
    let release = run.work.join("olm-release");
    fs::create_dir_all(&release)?;
    let mut definitions = String::new();
    for entry in fs::read_dir(run.cache.join("olm/crds"))? {
        definitions += &format!("---\n{}\n", fs::read_to_string(entry?.path())?);
    }
    fs::write(release.join("crds.yaml"), definitions)?;
    fs::copy(run.root.join("dev/cluster/olm.yaml"), release.join("olm.yaml"))?;
    run.kit("olm install --from").arg(&release).run()?;
    run.kit("olm status").run()?;
    world.nothing_is_left()?;
    world.nothing_is_missing()
}
