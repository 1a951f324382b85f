//! A kind in a project: its types, its reconciler, what both need elsewhere.

use std::path::{Path, PathBuf};

use minijinja::context;

use crate::edit::RustFile;
use crate::external::{self, External};
use crate::project_file::{self, Image, ProjectFile, Resource};
use crate::{Error, Report, Tree, names, record, templates, twin};

/// A kind to create.
#[derive(Debug, Clone)]
pub struct Api {
    /// The group without the project's domain, `cache`.
    pub group: String,
    /// The version, `v1alpha1`.
    pub version: String,
    /// The kind, `Memcached`.
    pub kind: String,
    /// The plural, if it is not regular.
    pub plural: Option<String>,
    /// Whether objects have a namespace.
    pub namespaced: bool,
    /// Whether to write the types.
    pub resource: bool,
    /// Whether to write a reconciler; if not given, unless another version of the kind has one.
    pub controller: Option<bool>,
    /// The image that objects of the kind run: `--plugins deploy-image`.
    pub image: Option<Image>,
    /// Where a kind of others comes from; without it, Kubernetes' own kinds are known.
    pub external: External,
    /// Whether to overwrite files.
    pub force: bool,
}

/// Adds a kind, or a version of a kind, to the project in a folder.
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

/// The project file of a folder.
pub(crate) fn project_file(tree: &Tree) -> Result<ProjectFile, Error> {
    match tree.read(project_file::NAME)? {
        Some(text) => ProjectFile::parse(&text),
        None => Err(Error::NoProject {
            directory: tree.root().to_owned(),
        }),
    }
}

/// Puts the kind into a tree. Returns whether `make manifests` has to render `config/`.
fn add(tree: &mut Tree, api: &Api) -> Result<bool, Error> {
    let before = project_file(tree)?;
    let now = sources(tree, &before, api)?;
    record::finish(tree, Some(&before), now)
}

/// Puts the sources of the kind into a tree. Returns what PROJECT says then.
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
        check_image(image)?;
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
            "{}/{} {} exists; --force writes its files anew",
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
            "{} {} is not a kind of this project; leave --resource=false away",
            resource.group, resource.kind
        )));
    }
    taken(file, &known, &resource)?;
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
        None => path(file, &resource, kind),
    };
    Ok(resource)
}

/// Refuses to delete a file that is not what was written.
pub(crate) fn unchanged(tree: &Tree, path: &Path, text: &str, force: bool) -> Result<(), Error> {
    if !force && tree.read(path)?.is_some_and(|known| known != text.as_bytes()) {
        return Err(Error::Usage(format!(
            "{} has changed since it was created; --force deletes it nevertheless",
            path.display()
        )));
    }
    Ok(())
}

/// What is given about an image ends up in Rust sources and in a Deployment.
fn check_image(image: &Image) -> Result<(), Error> {
    let wrong = |what: &'static str, value: &str, reason: &str| {
        Err(Error::Name {
            what,
            value: value.to_owned(),
            reason: reason.to_owned(),
        })
    };
    if image.image.is_empty() || image.image.len() > 512 || !image.image.bytes().all(|byte| byte.is_ascii_graphic()) {
        return wrong(
            "--image",
            &image.image,
            "expected an image such as docker.io/library/memcached:1.6",
        );
    }
    if image.container_command.chars().any(char::is_control) {
        return wrong(
            "--image-container-command",
            &image.container_command,
            "control characters are not possible",
        );
    }
    let port = &image.container_port;
    if !port.is_empty()
        && !port
            .parse::<u16>()
            .is_ok_and(|number| number > 0 && number.to_string() == *port)
    {
        return wrong("--image-container-port", port, "expected a number from 1 to 65535");
    }
    let user = &image.run_as_user;
    if !user.is_empty()
        && !user
            .parse::<u32>()
            .is_ok_and(|number| number > 0 && number.to_string() == *user)
    {
        return wrong("--run-as-user", user, "expected the number of a user that is not root");
    }
    Ok(())
}

/// Refuses names that would meet those of another kind.
pub(crate) fn taken(file: &ProjectFile, known: &[Resource], resource: &Resource) -> Result<(), Error> {
    for other in known.iter().filter(|other| !other.is_kind_of(resource)) {
        let foreign = other.foreign.is_some() || resource.foreign.is_some();
        let same_file = names::module(&other.kind) == names::module(&resource.kind);
        if foreign && same_file && !(in_group(other) || in_group(resource)) {
            return Err(Error::Usage(format!(
                "the reconcilers of {} and {} would share the file {}.rs",
                [other.group.as_str(), &other.kind].join(" ").trim(),
                [resource.group.as_str(), &resource.kind].join(" ").trim(),
                names::module(&resource.kind)
            )));
        }
        if foreign {
            continue;
        }
        if other.group != resource.group && !file.multigroup() {
            return Err(Error::Usage(format!(
                "the project has the group {}, and {} would be a second one; olmkit edit --multigroup allows several",
                other.group, resource.group
            )));
        }
        if other.group == resource.group && other.plural == resource.plural {
            return Err(Error::Usage(format!(
                "the kind {} of the group {} has the plural {}; choose another with --plural",
                other.kind, other.group, other.plural
            )));
        }
        if other.group == resource.group && names::module(&other.kind) == names::module(&resource.kind) {
            return Err(Error::Usage(format!(
                "the kinds {} and {} would share the file {}.rs; choose another name",
                other.kind,
                resource.kind,
                names::module(&resource.kind)
            )));
        }
    }
    Ok(())
}

/// The Rust file of a version of a kind, beside those of the other versions.
fn path(file: &ProjectFile, resource: &Resource, kind: Option<&Resource>) -> String {
    let (version, module) = (&resource.version, names::module(&resource.kind));
    match kind.map_or(file.multigroup(), in_group) {
        true => format!("src/api/{}/{version}/{module}.rs", group_module(file, resource)),
        false => format!("src/api/{version}/{module}.rs"),
    }
}

/// Whether a kind's files are in folders of its group. Changing the setting moves no files.
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

/// The modules from `src/api` or `src/controller` down to a file, each declared in the one above.
pub(crate) fn declare(tree: &mut Tree, path: &Path) -> Result<(), Error> {
    let mut child = path
        .file_stem()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut folder = path.parent();
    while let Some(here) = folder.filter(|here| *here != Path::new("src") && !here.as_os_str().is_empty()) {
        let file = here.join("mod.rs");
        let text = match tree.has(&file)? {
            true => tree.text(&file)?,
            false => {
                let name = here
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned())
                    .unwrap_or_default();
                let what = match () {
                    () if here.starts_with("src/api") => "Kinds",
                    () if here.starts_with("src/webhook") => "Webhooks",
                    () => "Reconcilers",
                };
                format!("//! {what} of `{name}`.\n")
            }
        };
        let mut edited = RustFile::new(&file, text)?;
        edited.add_module(&child)?;
        let text = edited.into_text();
        child = here
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        tree.write(file.clone(), text);
        folder = here.parent();
    }
    Ok(())
}

/// Changes a Rust file of the project.
pub(crate) fn edit(
    tree: &mut Tree,
    path: &str,
    change: impl FnOnce(&mut RustFile<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let place = PathBuf::from(path);
    let mut file = RustFile::new(&place, tree.text(path)?)?;
    change(&mut file)?;
    let text = file.into_text();
    tree.write(path, text);
    Ok(())
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
    name: String,
}

impl Places {
    pub(crate) fn of(file: &ProjectFile, resource: &Resource) -> Self {
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
        // The file has functions of its own.
        let function = match function.as_str() {
            "apis" | "grant" | "image" | "images" | "manager" | "project" | "grants" | "webhooks" => {
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

/// The path of a type in the crate.
pub(crate) fn type_path(resource: &Resource) -> String {
    if resource.foreign.is_some() {
        return format!("{}::{}", resource.path, resource.kind);
    }
    let module = names::module(&resource.kind);
    format!("{}::{module}::{}", module_path(&resource.path), resource.kind)
}

/// The width of lines in projects.
pub(crate) const WIDTH: usize = 120;

/// The two sides of an assignment, on one line if they fit there. Where a break does not help, rustfmt makes none.
pub(crate) fn broken(indent: usize, first: &str, second: &str) -> String {
    let one = indent + first.len() + 1 + second.len();
    match one > WIDTH && indent + 4 + second.len() <= WIDTH {
        true => format!("{first}\n{:1$}{second}", "", indent + 4),
        false => format!("{first} {second}"),
    }
}

/// The file of a version of a kind.
pub(crate) fn types_text(file: &ProjectFile, resource: &Resource) -> String {
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

fn types(tree: &mut Tree, file: &ProjectFile, resource: &Resource, force: bool) -> Result<(), Error> {
    let path = PathBuf::from(&resource.path);
    tree.create(path.clone(), types_text(file, resource), force)?;
    declare(tree, &path)?;
    let function = Places::of(file, resource).function;
    let type_path = type_path(resource);
    let resources = file.resources();
    let first = resources.iter().find(|other| other.api && other.is_kind_of(resource));
    let kind = &resource.kind;
    edit(tree, "src/packaging.rs", |source| match first {
        Some(first) if !first.is_version_of(resource) => {
            source.add_statements(&function, &version_statements(resource, first))
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
pub(crate) fn controller_text(file: &ProjectFile, resource: &Resource) -> Result<String, Error> {
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

fn controller(tree: &mut Tree, file: &ProjectFile, resource: &Resource, force: bool) -> Result<(), Error> {
    let Places { controller, call, .. } = Places::of(file, resource);
    tree.create(controller.clone(), controller_text(file, resource)?, force)?;
    declare(tree, Path::new(&controller))?;
    if let Some(image) = image_statement(resource) {
        edit(tree, "src/packaging.rs", |source| {
            source.add_statements("images", &[image])
        })?;
    }
    edit(tree, "src/controller/mod.rs", |source| {
        source.add_statements("start", &[start_statement(file, &call)])?;
        source.add_statements("grants", &[format!("all.extend({call}::grants());")])
    })
}
