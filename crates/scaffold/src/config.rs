//! `config/` as the project's own `make manifests` renders it from the scaffolded sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::core::{ApiResource, GroupVersionKind};
use olmkit::files::Directory;
use olmkit::project::{Files, Manager, Package, Project, WEBHOOK_PORT, Webhook};
use olmkit::rbac::{Grant, Scope};

use crate::project_file::{ProjectFile, Resource};
use crate::{Error, Tree, layout, names, twin};

/// The directory.
pub const FOLDER: &str = "config";

/// The image of a project without its tag.
pub fn image_base(file: &ProjectFile) -> String {
    format!("{}/{}", file.domain(), file.name())
}

/// The output of `make manifests` if the scaffolded sources are unchanged.
///
/// # Errors
/// When a setting in `package.yaml` is wrong.
pub fn render(file: &ProjectFile, version: &str, package: Package) -> Result<Files, Error> {
    let manager = Manager::default()
        .arg("--leader-elect")
        .arg("--health-probe-bind-address=:8081")
        .env_from_field("POD_NAME", "metadata.name")
        .env_from_field("POD_NAMESPACE", "metadata.namespace");
    let resources = file.resources();
    let manager = resources
        .iter()
        .filter(|resource| resource.controller)
        .fold(manager, |manager, resource| match &resource.image {
            Some(image) => manager.env(&names::image_variable(&resource.kind), &image.image),
            None => manager,
        });
    let manager = match file.namespaced() {
        true => manager.env_from_field("WATCH_NAMESPACE", "metadata.namespace"),
        false => manager.env("WATCH_NAMESPACE", ""),
    };
    let image = format!("{}:v{version}", image_base(file));
    let mut project = Project::new(file.name(), version, &image, package)
        .namespaced(file.namespaced())
        .grants([Grant::of::<Lease>(Scope::Own, ["create", "get", "update"], "")])
        .scorecard();
    for resource in resources.iter().filter(|resource| resource.controller) {
        project = project.grants(grants(resource));
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
        let versions = resources.iter().filter(|other| other.is_kind_of(first));
        for path in versions.filter_map(|version| {
            let [_, _, conversion] = layout::webhook_paths(file, version);
            conversion
        }) {
            api = api.converted_at(&path);
        }
        project = project.api(api);
    }
    for resource in resources.iter().filter(|resource| resource.api) {
        let [defaulting, validation, _] = layout::webhook_paths(file, resource);
        let kind = api_resource(resource);
        if let Some(path) = defaulting {
            project = project.webhook(Webhook::mutating_resource(kind.clone(), &path));
        }
        if let Some(path) = validation {
            project = project.webhook(Webhook::validating_resource(kind, &path));
        }
    }
    let manager = match project.serves_webhooks() {
        true => manager.arg(format!("--webhook-bind-address=:{WEBHOOK_PORT}")),
        false => manager,
    };
    Ok(project.manager(manager).render()?)
}

/// The permissions that a controller declares.
fn grants(resource: &Resource) -> Vec<Grant> {
    let scope = if resource.namespaced {
        Scope::Watched
    } else {
        Scope::Cluster
    };
    let grant = |plural: String, verbs: &[&'static str]| Grant {
        group: resource.group.clone().into(),
        resource: plural.into(),
        verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
        resource_names: Vec::new(),
        scope,
        why: "".into(),
    };
    let plural = &resource.plural;
    let events = Grant::of::<Event>(scope, ["create", "patch"], "");
    if resource.foreign.is_some() {
        return vec![grant(plural.clone(), &["list", "watch"]), events];
    }
    let mut grants = vec![
        grant(plural.clone(), &["list", "patch", "watch"]),
        grant(format!("{plural}/status"), &["patch"]),
        events,
    ];
    if resource.namespaced {
        const CHILD: [&str; 6] = ["create", "delete", "get", "list", "patch", "watch"];
        grants.push(grant(format!("{plural}/finalizers"), &["update"]));
        grants.push(match resource.image {
            Some(_) => Grant::of::<Deployment>(scope, CHILD, ""),
            None => Grant::of::<ConfigMap>(scope, CHILD, ""),
        });
    }
    grants
}

fn api_resource(resource: &Resource) -> ApiResource {
    let kind = GroupVersionKind::gvk(&resource.group, &resource.version, &resource.kind);
    ApiResource::from_gvk_with_plural(&kind, &resource.plural)
}

/// Changes `config/` from the project's previous output to its new output. Returns true if the user has to run
/// `make manifests`, because a file differed from the output of the scaffolded sources.
///
/// # Errors
/// When a setting in `package.yaml` is wrong or a file cannot be read.
pub fn update(tree: &mut Tree, before: Option<&ProjectFile>, now: &ProjectFile) -> Result<bool, Error> {
    let version = version(tree)?;
    let after = render(now, &version, package(tree)?)?;
    let before = match before {
        Some(before) => render(before, &version, package(&Tree::at(tree.root()))?)?,
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

/// The settings as the tree has them. They name other files, which they are read from.
fn package(tree: &Tree) -> Result<Package, Error> {
    let settings = Path::new(FOLDER).join("package.yaml");
    if !tree.changes(&settings) {
        let directory = Directory::open(tree.root()).map_err(|source| Error::Io {
            action: "read",
            path: tree.root().to_owned(),
            source,
        })?;
        return Ok(Package::load_below(&directory, &settings)?);
    }
    let failed = |action: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    };
    let folder = tempfile::tempdir().map_err(failed("create", &std::env::temp_dir()))?;
    let text = tree.text(&settings)?;
    let named = Package::parse(&text)?.icon;
    let copies = named
        .into_iter()
        .map(PathBuf::from)
        .chain([PathBuf::from("package.yaml")]);
    for name in copies {
        let from = Path::new(FOLDER).join(&name);
        // An icon elsewhere is reported as missing by the reader of the settings.
        let inside = name.components().all(|part| matches!(part, Component::Normal(_)));
        if let Some(content) = tree.read(&from)?.filter(|_| inside) {
            let to = folder.path().join(&name);
            let parent = to.parent().unwrap_or(folder.path());
            fs::create_dir_all(parent).map_err(failed("create", parent))?;
            fs::write(&to, content).map_err(failed("write", &to))?;
        }
    }
    Ok(Package::load(&folder.path().join("package.yaml"))?)
}
