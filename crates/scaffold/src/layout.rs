//! Where kinds and their webhooks are in the sources of a project, and what they are called there.

use crate::names;
use crate::project_file::{ProjectFile, Resource};

/// The Rust file of a version of a kind, next to the files of the other versions.
pub(crate) fn types_file(file: &ProjectFile, resource: &Resource, kind: Option<&Resource>) -> String {
    let (version, module) = (&resource.version, names::module(&resource.kind));
    match kind.map_or(file.multigroup(), in_group) {
        true => format!("src/api/{}/{version}/{module}.rs", group_module(file, resource)),
        false => format!("src/api/{version}/{module}.rs"),
    }
}

/// Returns true if a kind's files are in the directories of its group. Changing the setting moves no files.
pub(crate) fn in_group(resource: &Resource) -> bool {
    resource.path.split('/').count() == 5
}

/// The module of a group: its part before the project's domain.
pub(crate) fn group_module(file: &ProjectFile, resource: &Resource) -> String {
    let short = resource.group.strip_suffix(&format!(".{}", file.domain()));
    names::module(short.unwrap_or(&resource.group))
}

/// `crate::api::v1alpha1` for `src/api/v1alpha1/memcached.rs`.
pub(crate) fn module_path(path: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    folder.replacen("src", "crate", 1).replace('/', "::")
}

/// The path of a type in the crate.
pub(crate) fn type_path(resource: &Resource) -> String {
    if resource.foreign.is_some() {
        return format!("{}::{}", resource.path, resource.kind);
    }
    let module = names::module(&resource.kind);
    format!("{}::{module}::{}", module_path(&resource.path), resource.kind)
}

/// Where a kind is in the sources.
pub(crate) struct Places {
    /// The function in `src/packaging.rs` that describes the kind.
    pub(crate) function: String,
    /// The file of the reconciler.
    pub(crate) controller: String,
    /// Its module, seen from `src/controller/mod.rs`.
    pub(crate) call: String,
    /// Its name in logs and metrics.
    pub(crate) name: String,
}

impl Places {
    pub(crate) fn new(file: &ProjectFile, resource: &Resource) -> Self {
        let module = names::module(&resource.kind);
        let singular = resource.kind.to_lowercase();
        let (function, controller, call, name) = match in_group(resource) {
            true => {
                let group = group_module(file, resource);
                (
                    format!("{group}_{module}"),
                    format!("src/controller/{group}/{module}.rs"),
                    format!("{group}::{module}"),
                    format!("{group}-{singular}"),
                )
            }
            false => (module.clone(), format!("src/controller/{module}.rs"), module, singular),
        };
        // The file already has functions with these names.
        let function = match function.as_str() {
            "apis" | "image" | "images" | "manager" | "project" | "webhooks" => {
                format!("{function}_")
            }
            _ => function,
        };
        Self {
            function,
            controller,
            call,
            name,
        }
    }
}

pub(crate) const DEFAULTING: &str = "defaulting";
pub(crate) const VALIDATION: &str = "validation";
pub(crate) const CONVERSION: &str = "conversion";

/// The webhooks of these flags.
pub(crate) fn webhooks(defaulting: bool, validation: bool, conversion: bool) -> impl Iterator<Item = &'static str> {
    [
        (defaulting, DEFAULTING),
        (validation, VALIDATION),
        (conversion, CONVERSION),
    ]
    .into_iter()
    .filter_map(|(on, part)| on.then_some(part))
}

/// Where a webhook is in the sources, and in the cluster.
pub(crate) struct WebhookPlace {
    /// Its file.
    pub(crate) file: String,
    /// Its module, seen from the list of webhooks.
    pub(crate) call: String,
    /// Where the API server sends objects to.
    pub(crate) path: String,
}

pub(crate) fn webhook(file: &ProjectFile, resource: &Resource, part: &str) -> WebhookPlace {
    let module = names::module(&resource.kind);
    let module = format!("{}_{part}", module.trim_end_matches('_'));
    let mut folders = Vec::new();
    if in_group(resource) {
        folders.push(group_module(file, resource));
    }
    if part != CONVERSION {
        folders.push(resource.version.clone());
    }
    folders.push(module);
    let (group, version) = (resource.group.replace('.', "-"), &resource.version);
    let singular = resource.kind.to_lowercase();
    WebhookPlace {
        file: format!("src/webhook/{}.rs", folders.join("/")),
        call: folders.join("::"),
        path: webhook_path(part, &group, version, &singular),
    }
}

/// The paths of kubebuilder, except that each kind has a separate path for conversions.
fn webhook_path(part: &str, group: &str, version: &str, singular: &str) -> String {
    match part {
        DEFAULTING => format!("/mutate-{group}-{version}-{singular}"),
        VALIDATION => format!("/validate-{group}-{version}-{singular}"),
        _ => format!("/convert-{group}-{singular}"),
    }
}

/// The paths of a version's webhooks: defaulting, validation, conversion.
pub(crate) fn webhook_paths(file: &ProjectFile, resource: &Resource) -> [Option<String>; 3] {
    let webhooks = &resource.webhooks;
    let path = |on: bool, part| on.then(|| webhook(file, resource, part).path);
    [
        path(webhooks.defaulting, DEFAULTING),
        path(webhooks.validation, VALIDATION),
        path(webhooks.conversion, CONVERSION),
    ]
}
