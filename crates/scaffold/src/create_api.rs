//! A kind in a project: its types, its reconciler, what both need elsewhere.

use std::path::{Path, PathBuf};

pub use crate::api::Api;

use crate::layout::{Places, type_path};
use crate::project_file::{ProjectFile, Resource};
use crate::{Error, Report, Tree, collisions, external, layout, modules, names, record, texts};

/// Adds a kind, or a version of a kind, to the project in a directory.
///
/// # Errors
/// When a name is not acceptable or taken, a file is in the way, or a source file lacks its place. Nothing is written then.
pub fn create_api(folder: &Path, api: &Api) -> Result<Report, Error> {
    let mut tree = Tree::at(folder);
    let render = add(&mut tree, api)?;
    Ok(Report {
        render,
        ..tree.commit()?
    })
}

/// Puts the kind into a tree. Returns whether `make manifests` has to render `config/`.
fn add(tree: &mut Tree, api: &Api) -> Result<bool, Error> {
    let before = ProjectFile::read(tree)?;
    let now = sources(tree, &before, api)?;
    record::finish(tree, Some(&before), now)
}

/// Adds the sources of the kind to a tree. Returns the new PROJECT.
fn sources(tree: &mut Tree, before: &ProjectFile, api: &Api) -> Result<ProjectFile, Error> {
    let resource = check(before, api)?;
    let controller = resource.controller && api.controller != Some(false);
    let mut now = before.clone();
    put(tree, &mut now, &resource, api.resource, controller, api.force)?;
    Ok(now)
}

/// Puts the types and the reconciler of a version of a kind into a tree, and the version into PROJECT.
pub(crate) fn put(
    tree: &mut Tree,
    now: &mut ProjectFile,
    resource: &Resource,
    with_types: bool,
    with_controller: bool,
    force: bool,
) -> Result<(), Error> {
    now.set_resource(resource);
    external::depend(tree, resource)?;
    if with_types {
        types(tree, now, resource, force)?;
    }
    if with_controller {
        controller(tree, now, resource, force)?;
    }
    Ok(())
}

fn check(file: &ProjectFile, api: &Api) -> Result<Resource, Error> {
    if let Some(resource) = external::resource(file, api)? {
        return Ok(resource);
    }
    let group = names::group(&api.group, file.domain())?;
    names::version(&api.version)?;
    names::kind(&api.kind)?;
    let plural = api.plural.clone().unwrap_or_else(|| names::plural_of(&api.kind));
    names::plural(&plural)?;
    if let Some(image) = &api.image {
        image.check()?;
        if !api.namespaced || !api.resource || api.controller == Some(false) {
            let needs = "deploy-image writes a kind with a namespace, its types and its reconciler";
            return Err(Error::Usage(needs.to_owned()));
        }
    }
    let known = file.resources();
    let mut resource = Resource {
        group,
        version: api.version.clone(),
        kind: api.kind.clone(),
        plural,
        namespaced: api.namespaced,
        image: api.image.clone(),
        ..Resource::default()
    };
    let same = known.iter().find(|other| other.is_version_of(&resource));
    let kind = known.iter().find(|other| other.is_kind_of(&resource));
    if let Some(same) = same
        && !api.force
        && ((api.resource && same.api) || (api.controller == Some(true) && same.controller))
    {
        return Err(Error::Usage(format!(
            "{}/{} {} exists; --force overwrites its files",
            resource.group, resource.version, resource.kind
        )));
    }
    if let Some(kind) = kind {
        if api.plural.is_none() {
            resource.plural.clone_from(&kind.plural);
        }
        if api.image.is_none() {
            resource.image.clone_from(&kind.image);
        }
        if !api.resource {
            resource.namespaced = kind.namespaced;
        }
        if kind.plural != resource.plural || (kind.api && api.resource && kind.namespaced != resource.namespaced) {
            return Err(Error::Usage(format!(
                "{} {} exists as {} with the plural {}; all versions of a kind have the same scope and plural",
                kind.group,
                kind.kind,
                if kind.namespaced {
                    "a namespaced kind"
                } else {
                    "a kind without namespace"
                },
                kind.plural
            )));
        }
    } else if !api.resource {
        return Err(Error::Usage(format!(
            "{} {} is not a kind of this project; omit --resource=false",
            resource.group, resource.kind
        )));
    }
    collisions::check(file, &known, &resource)?;
    let controls = known
        .iter()
        .any(|other| other.is_kind_of(&resource) && other.controller);
    let had = same.is_some_and(|same| same.controller);
    resource.controller = api.controller.unwrap_or(!controls) || had;
    resource.api = api.resource || same.is_some_and(|same| same.api);
    if let Some(same) = same {
        resource.webhooks = same.webhooks.clone();
    }
    resource.path = match same {
        Some(same) => same.path.clone(),
        None => layout::types_file(file, &resource, kind),
    };
    Ok(resource)
}

fn types(tree: &mut Tree, file: &ProjectFile, resource: &Resource, force: bool) -> Result<(), Error> {
    let path = PathBuf::from(&resource.path);
    tree.create(path.clone(), texts::api::types(resource), force)?;
    modules::declare(tree, &path)?;
    let function = Places::new(file, resource).function;
    let type_path = type_path(resource);
    let resources = file.resources();
    let first = resources.iter().find(|other| other.api && other.is_kind_of(resource));
    let kind = &resource.kind;
    modules::edit(tree, "src/packaging.rs", |source| match first {
        Some(first) if !first.is_version_of(resource) => {
            source.add_statements(&function, &texts::api::version_statements(resource, first))
        }
        _ => {
            source.add_statements("apis", &[format!("all.push({function}()?);")])?;
            let text = format!(
                "/// The kind `{kind}`.\nfn {function}() -> Result<Api, Error> {{\n    use {type_path};\n    \
                 let api = Api::of::<{kind}>()?;\n    let api = api.sample(&{kind}::sample())?;\n    Ok(api)\n}}\n"
            );
            source.add_function(&function, &text)
        }
    })
}

fn controller(tree: &mut Tree, file: &ProjectFile, resource: &Resource, force: bool) -> Result<(), Error> {
    let Places { controller, call, .. } = Places::new(file, resource);
    tree.create(controller.clone(), texts::api::controller(file, resource)?, force)?;
    modules::declare(tree, Path::new(&controller))?;
    if let Some(image) = texts::api::image_statement(resource) {
        modules::edit(tree, "src/packaging.rs", |source| {
            source.add_statements("images", &[image])
        })?;
    }
    modules::edit(tree, "src/controller/mod.rs", |source| {
        source.add_statements("add_all", &[texts::api::add_statement(&call)])
    })
}
