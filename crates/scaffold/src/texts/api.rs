//! The types of a kind, its reconciler, and the statements that name them.

use minijinja::context;

use super::broken;
use crate::layout::{Places, module_path, type_path};
use crate::project_file::{ProjectFile, Resource};
use crate::{Error, names, templates, twin};

/// The file of a version of a kind.
pub(crate) fn types(file: &ProjectFile, resource: &Resource) -> String {
    twin::text(file.templates(), resource)
}

/// What joins a version with the first one, in the function that describes the kind.
pub(crate) fn version_statements(resource: &Resource, first: &Resource) -> [String; 3] {
    let (version, stored, path) = (&resource.version, &first.version, type_path(resource));
    [
        broken(4, &format!("let {version} ="), &format!("Api::of::<{path}>()?;")),
        format!("let api = api.version({version}, \"{stored}\")?;"),
        broken(4, "let api =", &format!("api.sample(&{path}::sample())?;")),
    ]
}

/// What adds the image of a kind to the operator's environment.
pub(crate) fn image_statement(resource: &Resource) -> Option<String> {
    let variable = names::image_variable(&resource.kind);
    let image = resource.image.as_ref()?;
    Some(format!("all.push((\"{variable}\", {:?}));", image.image))
}

/// What starts a reconciler.
pub(crate) fn start_statement(file: &ProjectFile, call: &str) -> String {
    let argument = if file.templates() < 3 { "setup" } else { "manager" };
    format!("{call}::start({argument});")
}

/// The file of a reconciler.
pub(crate) fn controller(file: &ProjectFile, resource: &Resource) -> Result<String, Error> {
    if resource.foreign.is_some() {
        let variables = context! {
            kind => &resource.kind,
            type_path => type_path(resource),
            namespaced => resource.namespaced,
            scope => if resource.namespaced { "Watched" } else { "Cluster" },
            controller_name => Places::of(file, resource).name,
        };
        return templates::render(file.templates(), "api/foreign.rs", variables);
    }
    let image = resource.image.clone().unwrap_or_default();
    let words = image.container_command.split(',').filter(|word| !word.is_empty());
    let variables = context! {
        kind => &resource.kind,
        image => resource.image.is_some(),
        image_variable => names::image_variable(&resource.kind),
        command => words.map(|word| format!("{word:?}")).collect::<Vec<_>>(),
        port => &image.container_port,
        user => &image.run_as_user,
        child => match (resource.image.is_some(), resource.namespaced) {
            (true, _) => "Deployment",
            (false, true) => "ConfigMap",
            (false, false) => "",
        },
        module => names::module(&resource.kind),
        group => &resource.group,
        namespaced => resource.namespaced,
        scope => if resource.namespaced { "Watched" } else { "Cluster" },
        api_path => module_path(&resource.path),
        controller_name => Places::of(file, resource).name,
    };
    templates::render(file.templates(), "api/controller.rs", variables)
}
