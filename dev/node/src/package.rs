//! The bundles and the catalog of the memcached operator, as the steps publish them.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::run::{Cluster, Namespace, PACKAGE, Run};

/// Permissions that today's operator needs and the released bundle lacks: API group, resources, verbs.
const ADDED_PERMISSIONS: [(&str, &str, &str); 5] = [
    ("discovery.k8s.io", "endpointslices", "list, watch"),
    ("apps", "statefulsets", "create, delete, get, list, patch, watch"),
    (
        "networking.k8s.io",
        "networkpolicies",
        "create, delete, get, list, patch, watch",
    ),
    ("\"\"", "configmaps, secrets", "create, delete, get, list, patch, watch"),
    ("\"\"", "pods/resize", "patch"),
];

/// Copies of the committed bundles and the catalog, below `Run::work`.
pub struct Package {
    /// The newest released version.
    pub old_version: String,
    /// The version of `bundle/`.
    pub new_version: String,
    /// The operator's image without a tag.
    pub base: String,
}

/// A catalog image: with the released bundle, or with both.
#[derive(Clone, Copy)]
pub enum Catalog {
    Old,
    Both,
}

impl Package {
    /// Copies the committed files. The local node reads each image from its own registry, whatever the image's name is. For another
    /// cluster, the images get the prefix in `REGISTRY`.
    pub fn stage(run: &Run) -> anyhow::Result<Package> {
        let _ = fs::remove_dir_all(&run.work);
        fs::create_dir_all(run.work.join("catalog"))?;
        let old_version = newest_release(&run.root.join("releases"))?;
        let new = run.root.join("bundle");
        let image = image_of(&new)?;
        let mut base = image
            .rsplit_once(':')
            .context("the operator image has no tag")?
            .0
            .to_owned();
        copy(
            run,
            &run.root.join("releases").join(&old_version).join("bundle"),
            &run.work.join("old-bundle"),
        )?;
        copy(run, &new, &run.work.join("new-bundle"))?;
        copy(run, &run.root.join("catalog"), &run.work.join("catalog/both"))?;
        // Its image is built from today's source.
        let csv = csv_file(&run.work.join("old-bundle"))?;
        fs::write(&csv, with_permissions(&fs::read_to_string(&csv)?))?;
        if run.cluster == Cluster::Current {
            let name = base.rsplit('/').next().unwrap_or_default();
            let target = format!("{}/{name}", run.registry);
            replace_in_files(&run.work, &base, &target)?;
            base = target;
        }
        Ok(Package {
            old_version,
            new_version: version_of(&new)?,
            base,
        })
    }

    /// The image of a version's bundle.
    pub fn bundle_image(&self, version: &str) -> String {
        format!("{}-bundle:v{version}", self.base)
    }

    /// The catalog image.
    pub fn catalog_image(&self) -> String {
        format!("{}-catalog:latest", self.base)
    }

    /// Builds and pushes the operator and bundle images of both versions.
    pub fn publish_images(&self, run: &Run) -> anyhow::Result<()> {
        for (directory, version) in [("old-bundle", &self.old_version), ("new-bundle", &self.new_version)] {
            let bundle = run.work.join(directory);
            publish(run, "operator", &run.operator, &image_of(&bundle)?)?;
            publish(run, "bundle", &bundle, &self.bundle_image(version))?;
        }
        Ok(())
    }

    /// Builds and pushes a catalog under the one tag that OLM polls.
    pub fn publish_catalog(&self, run: &Run, catalog: Catalog) -> anyhow::Result<()> {
        let directory = match catalog {
            Catalog::Both => run.work.join("catalog/both"),
            Catalog::Old => run.work.join("catalog/old"),
        };
        if !directory.is_dir() {
            let bundle = run.work.join("old-bundle");
            run.script("dev/catalog.sh")
                .arg(&directory)
                .arg(format!("{}-bundle:v{{{{.Version}}}}", self.base))
                .arg(bundle)
                .run()?;
        }
        publish(run, "catalog", &directory, &self.catalog_image())
    }
}

/// Builds an image with `olmkit image build KIND` and pushes it.
pub fn publish(run: &Run, kind: &str, from: &Path, image: &str) -> anyhow::Result<()> {
    let target = reach(run, image);
    run.olmkit("image build")
        .arg(kind)
        .arg(from)
        .args(["--tag", &target])
        .run()?;
    push(run, &target)?;
    Ok(())
}

/// Pushes an image that olmkit built.
pub fn push(run: &Run, image: &str) -> anyhow::Result<()> {
    let pushed = run.kit("image push").arg(image).run()?;
    run.log.write(&pushed);
    Ok(())
}

/// The name under which this machine pushes an image.
pub fn reach(run: &Run, image: &str) -> String {
    match (run.cluster, image.split_once('/')) {
        (Cluster::Local, Some((_, path))) => format!("{}/{path}", run.registry),
        _ => image.to_owned(),
    }
}

/// The name of an image in the local registry with TLS, for clients that insist on it.
pub fn on_tls(image: &str) -> String {
    let path = image.split_once('/').map_or(image, |(_, path)| path);
    format!("localhost:5443/{path}")
}

/// The operator's image in a bundle.
pub fn image_of(bundle: &Path) -> anyhow::Result<String> {
    field(&fs::read_to_string(csv_file(bundle)?)?, "containerImage:")
}

/// The default memcached image in a bundle.
pub fn operand_image_of(bundle: &Path) -> anyhow::Result<String> {
    let csv = fs::read_to_string(csv_file(bundle)?)?;
    let names = ["name: RELATED_IMAGE_MEMCACHED", "name: MEMCACHED_IMAGE"];
    let mut lines = csv
        .lines()
        .skip_while(|line| !names.iter().any(|name| line.trim_start_matches([' ', '-']) == *name));
    field(lines.nth(1).unwrap_or_default(), "value:")
}

/// The program in the messages of `cargo build --message-format=json`.
pub fn executable(messages: &str) -> anyhow::Result<PathBuf> {
    let path = |line: &str| {
        serde_json::from_str::<Value>(line)
            .ok()?
            .get("executable")?
            .as_str()
            .map(PathBuf::from)
    };
    messages.lines().find_map(path).context("cargo names no executable")
}

/// Copies a directory.
pub fn copy(run: &Run, from: &Path, to: &Path) -> anyhow::Result<()> {
    run.program("cp").arg("-r").arg(from).arg(to).run()?;
    Ok(())
}

/// The ClusterServiceVersion of a bundle.
pub fn csv_file(bundle: &Path) -> anyhow::Result<PathBuf> {
    let manifests = bundle.join("manifests");
    for entry in fs::read_dir(&manifests).with_context(|| manifests.display().to_string())? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".clusterserviceversion.yaml") {
            return Ok(path);
        }
    }
    bail!("{}: no ClusterServiceVersion", manifests.display())
}

/// Changes a text in all files below a directory.
pub fn replace_in_files(directory: &Path, from: &str, to: &str) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            replace_in_files(&path, from, to)?;
        } else if let Ok(text) = fs::read_to_string(&path)
            && text.contains(from)
        {
            fs::write(&path, text.replace(from, to))?;
        }
    }
    Ok(())
}

fn version_of(bundle: &Path) -> anyhow::Result<String> {
    let csv = fs::read_to_string(csv_file(bundle)?)?;
    // Deeper lines with this key belong to CRDs.
    let version = csv.lines().find_map(|line| line.strip_prefix("  version: "));
    Ok(version.context("the bundle has no version")?.trim().to_owned())
}

/// The value of the first line with this key.
fn field(text: &str, key: &str) -> anyhow::Result<String> {
    let value = text.lines().find_map(|line| line.trim_start().strip_prefix(key));
    Ok(value.with_context(|| format!("no {key}"))?.trim().to_owned())
}

fn newest_release(releases: &Path) -> anyhow::Result<String> {
    let numbers =
        |version: &str| -> Option<Vec<u64>> { version.split('.').map(|number| number.parse().ok()).collect() };
    let mut newest = None;
    for entry in fs::read_dir(releases)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        newest = newest.max(numbers(&name).map(|numbers| (numbers, name)));
    }
    Ok(newest.context("releases/ is empty")?.1)
}

/// Adds permissions at the end of each list below `permissions`.
fn with_permissions(csv: &str) -> String {
    let mut text = String::new();
    let mut within = false;
    for line in csv.lines() {
        if line == "      permissions:" {
            within = true;
        } else if !line.starts_with("      -") && !line.starts_with("       ") {
            within = false;
        }
        if within && line.starts_with("        serviceAccountName") {
            for (group, resources, verbs) in ADDED_PERMISSIONS {
                text += &format!(
                    "        - apiGroups: [{group}]\n          resources: [{resources}]\n          verbs: [{verbs}]\n"
                );
            }
        }
        text += line;
        text.push('\n');
    }
    text
}

/// Removes the demo: first the Memcacheds, while the operator can still finalize them, then the objects that OLM installed, in an
/// order in which none is created again, then the namespace.
pub fn unsubscribe(space: &Namespace) -> anyhow::Result<()> {
    let run = space.run;
    space.kubectl("delete memcacheds.cache.example.com --all --ignore-not-found --timeout=300s")?;
    space.kubectl(
        "delete subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com,catalogsources.operators.coreos.com \
         --all --timeout=300s",
    )?;
    space.delete()?;
    run.kubectl("delete crd memcacheds.cache.example.com --ignore-not-found --timeout=300s")?;
    // OLM leaves a bundle's ClusterRoles.
    for entry in fs::read_dir(run.root.join("bundle/manifests"))? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with("_clusterrole.yaml") {
            run.inside("kubectl")
                .words("delete --ignore-not-found -f")
                .arg(path)
                .run()?;
        }
    }
    let operator = format!("{}.{}", PACKAGE, space.name);
    run.kubectl(&format!(
        "delete operators.operators.coreos.com {operator} --ignore-not-found --timeout=300s"
    ))?;
    Ok(())
}

/// The namespace of the demo.
pub fn demo_namespace() -> String {
    env::var("NAMESPACE")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "memcached-demo".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_added_to_namespaced_roles_only() {
        let csv = "      clusterPermissions:\n      - rules: []\n        serviceAccountName: a\n      permissions:\n      - rules:\n        - apiGroups: [apps]\n        serviceAccountName: b\n    strategy: deployment\n";
        let text = with_permissions(csv);
        let added = ADDED_PERMISSIONS.len();
        assert_eq!(text.matches("- apiGroups:").count(), 1 + added, "{text}");
        let place = text.find("discovery.k8s.io").unwrap_or_default();
        assert!(
            place > text.find("permissions:\n      - rules:\n").unwrap_or(usize::MAX),
            "{text}"
        );
        assert!(
            text.ends_with("]\n        serviceAccountName: b\n    strategy: deployment\n"),
            "{text}"
        );
    }
}
