//! `config/` as the project's own `make manifests` renders it from the scaffolded sources.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use olmkit::project::{Files, Manager, Package, Project};
use olmkit::rbac::{Grant, Scope};

use crate::project_file::{ProjectFile, Resource};
use crate::{Error, Tree, names, twin};

/// The folder.
pub const FOLDER: &str = "config";

/// The image of a project without its tag.
pub fn image_base(file: &ProjectFile) -> String {
    format!("{}/{}", file.domain(), file.name())
}

/// What `make manifests` renders as long as nobody has changed the scaffolded sources.
///
/// # Errors
/// When a setting in `package.yaml` is wrong.
pub fn render(file: &ProjectFile, version: &str, package: Package) -> Result<Files, Error> {
    let watched = if file.namespaced() { Scope::Own } else { Scope::Watched };
    let manager = Manager::default()
        .arg("--leader-elect")
        .arg("--health-probe-bind-address=:8081")
        .env_from_field("POD_NAME", "metadata.name")
        .env_from_field("POD_NAMESPACE", "metadata.namespace");
    let manager = match file.namespaced() {
        true => manager.env_from_field("WATCH_NAMESPACE", "metadata.namespace"),
        false => manager.env("WATCH_NAMESPACE", ""),
    };
    let resources = file.resources();
    let manager = resources
        .iter()
        .filter(|resource| resource.controller)
        .fold(manager, |manager, resource| match &resource.image {
            Some(image) => manager.env(&names::image_variable(&resource.kind), &image.image),
            None => manager,
        });
    let image = format!("{}:v{version}", image_base(file));
    let mut project = Project::new(file.name(), version, &image, package)
        .grants([
            Grant::of::<Lease>(Scope::Own, ["create", "get", "update"], ""),
            Grant::of::<Event>(watched, ["create", "patch"], ""),
        ])
        .manager(manager)
        .scorecard();
    for resource in resources.iter().filter(|resource| resource.controller) {
        project = project.grants(grants(resource, watched));
    }
    for (at, first) in resources.iter().enumerate().filter(|(_, resource)| resource.api) {
        let earlier = resources.get(..at).unwrap_or_default();
        if earlier.iter().any(|other| other.api && other.is_kind_of(first)) {
            continue;
        }
        let mut api = twin::api(first)?;
        for later in resources
            .iter()
            .skip(at + 1)
            .filter(|later| later.api && later.is_kind_of(first))
        {
            api = api.version(twin::api(later)?, &first.version)?;
        }
        project = project.api(api);
    }
    Ok(project.render()?)
}

fn grants(resource: &Resource, watched: Scope) -> Vec<Grant> {
    let scope = if resource.namespaced { watched } else { Scope::Cluster };
    let grant = |plural: String, verbs: &[&'static str]| Grant {
        group: resource.group.clone().into(),
        resource: plural.into(),
        verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
        resource_names: Vec::new(),
        scope,
        why: "".into(),
    };
    let plural = &resource.plural;
    let mut grants = vec![
        grant(plural.clone(), &["list", "patch", "watch"]),
        grant(format!("{plural}/status"), &["patch"]),
        grant(format!("{plural}/finalizers"), &["update"]),
    ];
    const CHILD: [&str; 4] = ["create", "list", "patch", "watch"];
    grants.push(match resource.namespaced {
        true if resource.image.is_some() => Grant::of::<Deployment>(watched, CHILD, ""),
        true => Grant::of::<ConfigMap>(watched, CHILD, ""),
        false => Grant::of::<Event>(Scope::Cluster, ["create", "patch"], ""),
    });
    grants
}

/// Changes `config/` from what the project rendered before to what it renders now. Returns whether somebody has to run
/// `make manifests`, because some file was not what the scaffolded sources render.
///
/// # Errors
/// When a setting in `package.yaml` is wrong or a file cannot be read.
pub fn update(tree: &mut Tree, before: Option<&ProjectFile>, now: &ProjectFile) -> Result<bool, Error> {
    let version = version(tree)?;
    let package = package(tree)?;
    let after = render(now, &version, package.clone())?;
    let before = match before {
        Some(before) => render(before, &version, package)?,
        None => Files::default(),
    };
    let paths: BTreeSet<PathBuf> = before
        .iter()
        .chain(after.iter())
        .map(|(path, _)| path.to_owned())
        .collect();
    // Files hang together: a list of files must not name one that was left out.
    for path in &paths {
        let known = tree.read(Path::new(FOLDER).join(path))?;
        if known.as_deref() != before.text(path).map(str::as_bytes) {
            return Ok(true);
        }
    }
    for path in paths {
        let to = Path::new(FOLDER).join(&path);
        match after.text(&path) {
            Some(text) => tree.write(to, text),
            None => tree.remove(to),
        }
    }
    Ok(false)
}

/// The version in Cargo.toml.
fn version(tree: &Tree) -> Result<String, Error> {
    let text = tree.text("Cargo.toml")?;
    let value: toml::Table = text
        .parse()
        .map_err(|error| Error::Usage(format!("Cargo.toml: {error}")))?;
    let version = value
        .get("package")
        .and_then(|package| package.get("version"))
        .and_then(toml::Value::as_str);
    version
        .map(str::to_owned)
        .ok_or_else(|| Error::Usage("Cargo.toml: package.version is missing".to_owned()))
}

fn package(tree: &Tree) -> Result<Package, Error> {
    // A new project's settings are not on disk yet.
    let folder = tempfile::tempdir().map_err(|source| Error::Io {
        action: "create",
        path: std::env::temp_dir(),
        source,
    })?;
    let copy = |name: &str| -> Result<(), Error> {
        if let Some(content) = tree.read(Path::new(FOLDER).join(name))? {
            let path = folder.path().join(name);
            std::fs::write(&path, content).map_err(|source| Error::Io {
                action: "write",
                path,
                source,
            })?;
        }
        Ok(())
    };
    let on_disk = tree.root().join(FOLDER).join("package.yaml");
    if on_disk.exists() {
        return Ok(Package::load(&on_disk)?);
    }
    copy("package.yaml")?;
    copy("icon.svg")?;
    Ok(Package::load(&folder.path().join("package.yaml"))?)
}
