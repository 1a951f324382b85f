//! Failures that need pods.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};

use super::registry::Guarded;
use crate::checks::Checks;
use crate::command::Invocation;
use crate::package::{copy, csv_file, publish, reach};
use crate::run::{Namespace, contains, fails_with};
use crate::world::World;

/// The name of a webhook that no pod serves.
const WEBHOOK: &str = "deployments.abandoned.example.com";

pub fn failures(world: &World, checks: &mut Checks, space: &Namespace) {
    world.run.title("failures");
    let broken = Broken { world, space };
    let drill = |code: &str, breakage: Breakage, flags: &str| {
        broken.write(breakage)?;
        fails_with(code, broken.install(flags))?;
        broken.corrected()
    };
    checks.check("the helper image is built", || world.push_helper());
    // The next drill must not find what a failed one installed.
    let mut check = |description: &str, drill: &dyn Fn() -> anyhow::Result<()>| {
        checks.check(description, || drill().inspect_err(|_| drop(space.cleaned_up())));
    };
    check("bundle image missing", &|| bundle_image_is_missing(world, space));
    check("registry refuses", &|| registry_refuses(world, space));
    check("helper image missing", &|| {
        helper_fails(world, space, "catalog-image-pull", "localhost:5000/none/helper:1")
    });
    check("helper pod crashes", &|| {
        helper_fails(world, space, "catalog-pod-crash", "docker.io/dev/busybox:1")
    });
    check("operator image missing", &|| {
        drill("operator-image-pull", Breakage::MissingImage, "")
    });
    check("operator crash loop", &|| {
        drill("operator-crash-loop", Breakage::CrashingOperator, "")
    });
    check("operator never ready", &|| {
        drill("operator-not-ready", Breakage::NeverReady, "--timeout 60s")
    });
    check("bundle too large to unpack", &|| {
        broken.write(Breakage::TooLarge)?;
        let image = reach(world.run, &broken.push()?);
        fails_with("unpack-too-large", space.kit(&format!("run bundle {image}")))?;
        broken.corrected()
    });
    check("webhook without endpoint", &|| {
        webhook_has_no_endpoint(world, space, &broken)
    });
    check("API server restarted midway", &|| {
        api_server_restarts(world, space, &broken)
    });
}

/// A fault of a bundle.
#[derive(Clone, Copy)]
pub enum Breakage {
    MissingImage,
    CrashingOperator,
    NeverReady,
    TooLarge,
}

/// A copy of the released bundle with a fault.
pub struct Broken<'a> {
    pub world: &'a World<'a>,
    pub space: &'a Namespace<'a>,
}

impl Broken<'_> {
    fn directory(&self) -> PathBuf {
        self.world.run.work.join("broken")
    }

    /// Copies the bundle.
    fn restore(&self) -> anyhow::Result<()> {
        if self.directory().exists() {
            fs::remove_dir_all(self.directory())?;
        }
        copy(
            self.world.run,
            &self.world.run.work.join("old-bundle"),
            &self.directory(),
        )
    }

    /// Copies the bundle with a fault.
    pub fn write(&self, breakage: Breakage) -> anyhow::Result<()> {
        self.restore()?;
        match breakage {
            Breakage::MissingImage => self.set_image("docker.io/dev/missing:1"),
            Breakage::CrashingOperator => self.set_image("docker.io/dev/busybox:1"),
            Breakage::NeverReady => self.change_lines("path: /readyz", "path: /nothing-here"),
            Breakage::TooLarge => self.add_large_objects(),
        }
    }

    fn set_image(&self, image: &str) -> anyhow::Result<()> {
        let csv = csv_file(&self.directory())?;
        let text = fs::read_to_string(&csv)?;
        let old = format!(" image: {}:", self.world.package.base);
        let line = text
            .lines()
            .find(|line| line.contains(&old))
            .context("the bundle has no operator image")?;
        let start = line.find("image: ").unwrap_or_default();
        let new = format!("{}image: {image}", line.get(..start).unwrap_or_default());
        Ok(fs::write(&csv, text.replace(line, &new))?)
    }

    fn change_lines(&self, from: &str, to: &str) -> anyhow::Result<()> {
        let csv = csv_file(&self.directory())?;
        let text = fs::read_to_string(&csv)?;
        ensure!(text.contains(from), "the bundle has no {from}");
        Ok(fs::write(&csv, text.replace(from, to))?)
    }

    /// Two ConfigMaps that the API server accepts, and that are too large together for the ConfigMap of the unpacked bundle.
    fn add_large_objects(&self) -> anyhow::Result<()> {
        for name in ["one", "two"] {
            let noise = self
                .world
                .run
                .program("sh")
                .args(["-c", "head -c 650000 /dev/urandom | base64 -w 0"])
                .run()?;
            let object =
                format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  noise: {noise}\n");
            fs::write(self.directory().join(format!("manifests/{name}.yaml")), object)?;
        }
        Ok(())
    }

    /// Pushes the bundle, and returns the image's name.
    pub fn push(&self) -> anyhow::Result<String> {
        let image = format!("{}-bundle:broken", self.world.package.base);
        publish(self.world.run, "bundle", &self.directory(), &image)?;
        Ok(image)
    }

    fn install(&self, flags: &str) -> Invocation {
        let bundle = self.directory();
        self.space
            .kit(&format!("run bundle {} --serve-from-host {flags}", bundle.display()))
    }

    /// The help of these failures: correct the bundle, and run the same command again.
    fn corrected(&self) -> anyhow::Result<()> {
        self.restore()?;
        self.install("").run()?;
        self.space.installed(self.world.old_version())?;
        self.space.cleaned_up()
    }
}

/// olmkit reads the image before it changes the cluster, and reports the registry's answer.
fn is_refused(command: Invocation, answer: &str) -> anyhow::Result<()> {
    let finished = command.finish()?;
    ensure!(finished.code == 1, "exit code {}", finished.code);
    contains(&finished.stderr, answer)
}

fn bundle_image_is_missing(world: &World, space: &Namespace) -> anyhow::Result<()> {
    // The registry keeps its images when the node stops, so each run uses another tag.
    let image = world.bundle_image(&format!("9.9.{}", std::process::id()));
    is_refused(space.kit(&format!("run bundle {image}")), "has no image")?;
    publish(world.run, "bundle", &world.run.work.join("old-bundle"), &image)?;
    space
        .kit(&format!("run bundle {image} --helper-image {}", World::HELPER))
        .run()?;
    space.cleaned_up()
}

fn helper_fails(world: &World, space: &Namespace, code: &str, image: &str) -> anyhow::Result<()> {
    let install = |helper: &str| space.kit(&format!("run bundle {} --helper-image {helper}", world.old_bundle()));
    fails_with(code, install(image))?;
    install(World::HELPER).run()?;
    space.cleaned_up()
}

fn registry_refuses(world: &World, space: &Namespace) -> anyhow::Result<()> {
    let guarded = Guarded::start(world)?;
    let install = || {
        space.kit(&format!(
            "run bundle {} --helper-image {}",
            Guarded::BUNDLE,
            World::HELPER
        ))
    };
    let with_password = || install().arg("--authfile").arg(guarded.authfile());
    // This machine has no credentials.
    is_refused(install(), "401")?;
    // This machine has credentials, the node has none.
    let cause = fails_with("bundle-image-pull", with_password())?;
    contains(&cause.help, "--pull-secret-name")?;
    // Follow the help.
    space
        .command("create secret generic guarded --type=kubernetes.io/dockerconfigjson")
        .arg(format!(
            "--from-file=.dockerconfigjson={}",
            guarded.authfile().display()
        ))
        .run()?;
    with_password().words("--pull-secret-name guarded").run()?;
    space.installed(world.old_version())?;
    space.cleaned_up()?;
    space.kubectl("delete secret guarded")?;
    Ok(())
}

/// Creates a webhook for Deployments of the namespace that no pod serves.
pub fn create_abandoned_webhook(space: &Namespace) -> anyhow::Result<()> {
    let name = &space.name;
    space.run.apply(&format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: abandoned}}
webhooks:
- name: {WEBHOOK}
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {{service: {{name: nobody, namespace: {name}, path: /}}}}
  rules: [{{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments], scope: Namespaced}}]
  namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {name}}}}}
"
    ))?;
    Ok(())
}

fn webhook_has_no_endpoint(world: &World, space: &Namespace, broken: &Broken) -> anyhow::Result<()> {
    create_abandoned_webhook(space)?;
    broken.restore()?;
    let cause = fails_with("webhook-unavailable", broken.install(""))?;
    // The help lists the configurations with their webhooks.
    let configurations = cause.carry_out(world.run)?;
    let line = configurations.lines().find(|line| line.contains(WEBHOOK));
    let name = line
        .and_then(|line| line.split_whitespace().nth(1))
        .context("the webhook is not listed")?;
    world
        .run
        .kubectl(&format!("delete validatingwebhookconfiguration {name}"))?;
    broken.install("").run()?;
    space.cleaned_up()
}

fn api_server_restarts(world: &World, space: &Namespace, broken: &Broken) -> anyhow::Result<()> {
    let run = world.run;
    broken.restore()?;
    let log = run.results.join("restart.log");
    let said = || fs::read_to_string(&log).map_err(anyhow::Error::from);
    let mut install = broken.install("").spawn(&log)?;
    run.until_contains(60, "Subscription", said)?;
    run.node_script("stop kube-apiserver\ndev/cluster/control_plane.sh")
        .run()?;
    let status = install.wait()?;
    run.log.write(&said()?);
    ensure!(status.success(), "run bundle: {status}");
    space.installed(world.old_version())?;
    space.cleaned_up()
}
