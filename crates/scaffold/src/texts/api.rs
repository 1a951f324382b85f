//! The types of a kind, its controller, and the statements that name them.

use minijinja::context;

use super::{broken, chain, function};
use crate::layout::{Places, module_path, type_path};
use crate::project_file::{ProjectFile, Resource};
use crate::{Error, names, templates, twin};

/// The file of a version of a kind.
pub(crate) fn types(resource: &Resource) -> String {
    twin::text(resource)
}

/// The statements that join a version with the first one, in the function that describes the kind.
pub(crate) fn version_statements(resource: &Resource, first: &Resource) -> [String; 3] {
    let (version, stored, path) = (&resource.version, &first.version, type_path(resource));
    [
        broken(4, &format!("let {version} ="), &format!("Api::of::<{path}>()?;")),
        format!("let api = api.version({version}, \"{stored}\")?;"),
        broken(4, "let api =", &format!("api.sample(&{path}::sample())?;")),
    ]
}

/// The statement that adds the image of a kind to the operator's environment.
pub(crate) fn image_statement(resource: &Resource) -> Option<String> {
    let variable = names::image_variable(&resource.kind);
    let image = resource.image.as_ref()?;
    Some(format!("all.push((\"{variable}\", {:?}));", image.image))
}

/// The statement that adds a controller.
pub(crate) fn add_statement(call: &str) -> String {
    format!("to.add({call}::controller());")
}

/// The file of a controller.
pub(crate) fn controller(file: &ProjectFile, resource: &Resource) -> Result<String, Error> {
    let (kind, name) = (&resource.kind, Places::new(file, resource).name);
    let variable = names::variable(kind);
    let (object, context) = (format!("{variable}: &{kind}"), format!("context: &Context<{kind}>"));
    let method = |name: &str, context: &str| {
        let name = format!("async fn {name}");
        function(4, &name, &["&self", &object, context], "Result<Outcome, Error>")
    };
    let declaration = |calls: &[&str]| {
        let (name, reconciler) = (format!("{name:?}"), format!("{kind}Reconciler"));
        chain("Controller::new", &[&name, &reconciler], calls)
    };
    let without_context = format!("_: &Context<{kind}>");
    if resource.foreign.is_some() {
        let variables = context! {
            kind,
            variable,
            plural => &resource.plural,
            type_path => type_path(resource),
            declaration => declaration(&[".without_status()"]),
            reconcile => method("reconcile", &without_context),
        };
        return templates::render("api/foreign.rs", variables);
    }
    let image = resource.image.clone().unwrap_or_default();
    let words = image.container_command.split(',').filter(|word| !word.is_empty());
    let finalizer = format!(".finalizer(\"{}/finalizer\")", resource.group);
    let (child, owns, arguments) = match (resource.image.is_some(), resource.namespaced) {
        (true, _) => (
            "Deployment",
            ".owns::<Deployment>(\"runs the pods\")",
            vec![&*object, "image: &str"],
        ),
        (false, true) => ("ConfigMap", ".owns::<ConfigMap>(\"holds the message\")", vec![&*object]),
        (false, false) => ("", "", Vec::new()),
    };
    let calls: Vec<&str> = [owns, &finalizer].into_iter().filter(|call| !call.is_empty()).collect();
    let child_function = format!("fn {}", names::module(child));
    let variables = context! {
        kind,
        variable,
        image => resource.image.is_some(),
        image_variable => names::image_variable(kind),
        command => words.map(|word| format!("{word:?}")).collect::<Vec<_>>(),
        port => &image.container_port,
        user => &image.run_as_user,
        child,
        child_function => function(0, &child_function, &arguments, &format!("Result<{child}, Error>")),
        module => names::module(kind),
        namespaced => resource.namespaced,
        api_path => module_path(&resource.path),
        controller_name => &name,
        declaration => declaration(&calls),
        reconcile => method("reconcile", if child.is_empty() { &without_context } else { &context }),
        cleanup => method("cleanup", &context),
    };
    templates::render("api/controller.rs", variables)
}
