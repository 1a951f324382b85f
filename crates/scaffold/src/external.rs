//! Reconcilers of external kinds, which Kubernetes or another operator defines.

pub use crate::api::External;

use crate::api::Api;
use crate::project_file::{Foreign, ProjectFile, Resource};
use crate::{Error, Tree, collisions, manifest, names};

/// API groups of Kubernetes: the short name without domain, and the full name.
const GROUPS: &[(&str, &str)] = &[
    ("core", ""),
    ("admissionregistration", "admissionregistration.k8s.io"),
    ("apps", "apps"),
    ("autoscaling", "autoscaling"),
    ("batch", "batch"),
    ("certificates", "certificates.k8s.io"),
    ("coordination", "coordination.k8s.io"),
    ("discovery", "discovery.k8s.io"),
    ("events", "events.k8s.io"),
    ("networking", "networking.k8s.io"),
    ("node", "node.k8s.io"),
    ("policy", "policy"),
    ("rbac", "rbac.authorization.k8s.io"),
    ("scheduling", "scheduling.k8s.io"),
    ("storage", "storage.k8s.io"),
];

/// The entry in PROJECT for an external kind. `None` for the project's own kinds.
pub(crate) fn resource(file: &ProjectFile, api: &Api) -> Result<Option<Resource>, Error> {
    let given = &api.external;
    let known = GROUPS
        .iter()
        .find(|(short, full)| !api.group.is_empty() && (*short == api.group || *full == api.group));
    let own = names::group(&api.group, file.domain()).ok();
    let resources = file.resources();
    let is_own = resources
        .iter()
        .any(|known| known.foreign.is_none() && own.as_ref() == Some(&known.group) && known.kind == api.kind);
    let core = match (&given.path, known) {
        (Some(_), _) => None,
        (None, Some(known)) if !api.resource && !is_own => Some(known),
        (None, _) if given.domain.is_some() || given.module.is_some() => {
            let message = "--external-api-domain and --external-api-module require --external-api-path";
            return Err(Error::Usage(message.to_owned()));
        }
        (None, _) => return Ok(None),
    };
    if api.resource && given.path.is_some() {
        let message = "--external-api-path is for a kind that others define: give --resource=false";
        return Err(Error::Usage(message.to_owned()));
    }
    if api.controller == Some(false) || api.image.is_some() {
        let message = "an external kind supports only a reconciler";
        return Err(Error::Usage(message.to_owned()));
    }
    names::version(&api.version)?;
    names::kind_of_others(&api.kind)?;
    let plural = api.plural.clone().unwrap_or_else(|| names::plural_of(&api.kind));
    names::plural(&plural)?;
    let (group, path) = match core {
        Some((module, full)) => (
            (*full).to_owned(),
            format!("k8s_openapi::api::{module}::{}", api.version),
        ),
        None => {
            let path = given.path.clone().unwrap_or_default();
            (
                names::external_group(&api.group, given.domain.as_deref())?,
                names::rust_path(&path)?,
            )
        }
    };
    let module = given.module.clone().unwrap_or_default();
    if !module.is_empty() {
        names::dependency(&module)?;
    }
    let resource = Resource {
        group,
        version: api.version.clone(),
        kind: api.kind.clone(),
        plural,
        namespaced: api.namespaced,
        controller: true,
        path,
        foreign: Some(Foreign {
            core: core.is_some(),
            module,
        }),
        ..Resource::default()
    };
    if !api.force && resources.iter().any(|known| known.is_version_of(&resource)) {
        return Err(Error::Usage(format!(
            "the project has a reconciler of {} {} already; --force overwrites its file",
            resource.group, resource.kind
        )));
    }
    collisions::check(file, &resources, &resource)?;
    Ok(Some(resource))
}

/// The line in Cargo.toml.
fn line(resource: &Resource) -> Result<Option<(String, String)>, Error> {
    match &resource.foreign {
        Some(foreign) if !foreign.module.is_empty() => {
            let (name, version) = names::dependency(&foreign.module)?;
            Ok(Some((name.to_owned(), format!("{name} = \"{version}\"\n"))))
        }
        _ => Ok(None),
    }
}

/// Adds the dependency of a kind to Cargo.toml, unless it is there.
pub(crate) fn depend(tree: &mut Tree, resource: &Resource) -> Result<(), Error> {
    let Some((name, line)) = line(resource)? else {
        return Ok(());
    };
    manifest::depend(tree, "dependencies", (&name, &line), |_| None)
}

/// Takes the dependency of a kind out again, if no other kind of the project needs it.
pub(crate) fn forget(tree: &mut Tree, left: &ProjectFile, resource: &Resource) -> Result<(), Error> {
    let Some((_, line)) = line(resource)? else {
        return Ok(());
    };
    if !left.resources().iter().any(|other| other.foreign == resource.foreign) {
        let text = tree.text(manifest::FILE)?;
        tree.write(manifest::FILE, text.replacen(&format!("\n{line}"), "\n", 1));
    }
    Ok(())
}
