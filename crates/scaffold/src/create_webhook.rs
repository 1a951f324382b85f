//! Webhooks of a kind: defaulting, validation, and conversion between its versions.

use std::path::Path;

use minijinja::context;

use crate::create_api::{self, WIDTH, declare, edit, group_module, in_group, module_path};
use crate::project_file::{ProjectFile, Resource};
use crate::{Error, Report, Tree, manifest, names, record, settings, templates};

/// Webhooks to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Webhook {
    /// The group without the project's domain.
    pub group: String,
    /// The version of the objects; for a conversion, the hub.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// Whether objects are completed before they are stored.
    pub defaulting: bool,
    /// Whether objects are checked before they are stored.
    pub validation: bool,
    /// Whether objects are converted between versions.
    pub conversion: bool,
    /// The versions that are converted to and from the hub; all others if none is given.
    pub spokes: Vec<String>,
    /// Whether to overwrite files.
    pub force: bool,
}

/// The list of all webhooks in a project.
const LIST: &str = "src/webhook/mod.rs";
const DEFAULTING: &str = "defaulting";
const VALIDATION: &str = "validation";
const CONVERSION: &str = "conversion";

/// Adds webhooks of a kind to the project in a folder.
///
/// # Errors
/// When the project has no such kind or has the webhook already, a file is in the way, or a source file lacks its place.
/// Nothing is written then.
pub fn create_webhook(folder: &Path, webhook: &Webhook) -> Result<Report, Error> {
    let mut tree = Tree::at(folder);
    let render = add(&mut tree, webhook)?;
    Ok(Report {
        render,
        ..tree.commit()?
    })
}

/// Puts the webhooks into a tree. Returns whether `make manifests` has to render `config/`.
fn add(tree: &mut Tree, webhook: &Webhook) -> Result<bool, Error> {
    let before = create_api::project_file(tree)?;
    let now = sources(tree, &before, webhook)?;
    record::finish(tree, Some(&before), now)
}

/// Puts the sources of the webhooks into a tree. Returns what PROJECT says then.
pub(crate) fn sources(tree: &mut Tree, before: &ProjectFile, webhook: &Webhook) -> Result<ProjectFile, Error> {
    let known = find(before, &webhook.group, &webhook.version, &webhook.kind)?;
    check(tree, before, &known, webhook)?;
    let mut now = before.clone();
    let mut resource = known.clone();
    resource.webhooks.defaulting |= webhook.defaulting;
    resource.webhooks.validation |= webhook.validation;
    for part in parts(webhook.defaulting, webhook.validation, false) {
        put(tree, before, &resource, part, webhook.force)?;
    }
    if webhook.conversion {
        let fresh = spokes(before, &known, webhook)?;
        let all = known.webhooks.spokes.iter().chain(fresh.iter().filter(|spoke| {
            // With --force the known ones are given again.
            !known.webhooks.spokes.contains(spoke)
        }));
        resource.webhooks.spokes = all.cloned().collect();
        resource.webhooks.conversion = true;
        if known.webhooks.conversion && !webhook.force {
            let path = place(before, &resource, CONVERSION).file;
            add_spokes(tree, before, &resource, &path, &fresh)?;
        } else {
            put(tree, before, &resource, CONVERSION, webhook.force)?;
        }
    }
    now.set_resource(&resource);
    Ok(now)
}

/// The version of a kind that webhooks are for.
pub(crate) fn find(file: &ProjectFile, group: &str, version: &str, kind: &str) -> Result<Resource, Error> {
    let wanted = Resource {
        group: names::group(group, file.domain())?,
        version: version.to_owned(),
        kind: kind.to_owned(),
        ..Resource::default()
    };
    let known = file.resources();
    let found = known
        .into_iter()
        .find(|known| known.is_version_of(&wanted) && known.api);
    found.ok_or_else(|| {
        Error::Usage(format!(
            "the project has no {}/{} {}; olmkit create api creates it",
            wanted.group, wanted.version, wanted.kind
        ))
    })
}

fn check(tree: &Tree, file: &ProjectFile, known: &Resource, webhook: &Webhook) -> Result<(), Error> {
    let usage = |message: String| Err(Error::Usage(message));
    if !webhook.defaulting && !webhook.validation && !webhook.conversion {
        return usage("give --defaulting, --programmatic-validation or --conversion".to_owned());
    }
    if !webhook.spokes.is_empty() && !webhook.conversion {
        return usage("--spoke goes with --conversion".to_owned());
    }
    if !tree.has(LIST)? {
        return usage(format!(
            "the project has no {LIST}: an earlier olmkit started it; olmkit update brings it up to date"
        ));
    }
    if ["Arc", "Denied", "Hub", "Review", "Webhooks"].contains(&known.kind.as_str()) {
        return usage(format!(
            "the kind {} would hide a type of the same name that webhooks are written with",
            known.kind
        ));
    }
    let webhooks = &known.webhooks;
    for (wanted, present, name) in [
        (webhook.defaulting, webhooks.defaulting, "defaulting"),
        (webhook.validation, webhooks.validation, "validating"),
    ] {
        if wanted && present && !webhook.force {
            return usage(format!(
                "{}/{} {} has a {name} webhook; --force writes its file anew",
                known.group, known.version, known.kind
            ));
        }
    }
    if webhook.conversion && file.namespaced() {
        return usage(
            "a definition is converted for the whole cluster, so OLM refuses conversion webhooks of operators that watch \
             only some namespaces; olmkit edit --namespaced=false lets this one watch all"
                .to_owned(),
        );
    }
    Ok(())
}

/// The versions to add to the conversion.
fn spokes(file: &ProjectFile, hub: &Resource, webhook: &Webhook) -> Result<Vec<String>, Error> {
    let usage = |message: String| Err(Error::Usage(message));
    let all = file.resources();
    let kind = format!("{} {}", hub.group, hub.kind);
    let versions: Vec<&Resource> = all.iter().filter(|other| other.api && other.is_kind_of(hub)).collect();
    if let Some(other) = versions
        .iter()
        .find(|other| other.webhooks.conversion && other.version != hub.version)
    {
        return usage(format!(
            "{kind} has the hub {}; give --version {}",
            other.version, other.version
        ));
    }
    let others: Vec<&String> = versions
        .iter()
        .map(|other| &other.version)
        .filter(|version| **version != hub.version)
        .collect();
    let known = &hub.webhooks.spokes;
    let again = |version: &String| known.contains(version) && !webhook.force;
    let mut spokes: Vec<String> = Vec::new();
    for spoke in &webhook.spokes {
        if *spoke == hub.version {
            return usage(format!(
                "{spoke} is the hub, which needs no conversion; give the other versions"
            ));
        }
        if !others.contains(&spoke) {
            return usage(format!("{kind} has no version {spoke}; olmkit create api creates it"));
        }
        if again(spoke) {
            return usage(format!("{kind} converts {spoke} already; --force writes the file anew"));
        }
        if !spokes.contains(spoke) {
            spokes.push(spoke.clone());
        }
    }
    if webhook.spokes.is_empty() {
        spokes.extend(
            others
                .iter()
                .filter(|version| !again(version))
                .map(|version| (*version).clone()),
        );
        if others.is_empty() {
            return usage(format!(
                "{kind} has one version; a conversion needs another, from olmkit create api"
            ));
        }
        if spokes.is_empty() {
            return usage(format!(
                "{kind} converts all its versions already; --force writes the file anew"
            ));
        }
    }
    let left = others
        .into_iter()
        .find(|version| !spokes.contains(version) && !known.contains(version));
    match left {
        Some(left) => usage(format!(
            "{kind} is served in {left} too, and the API server asks for every version; add --spoke {left}"
        )),
        None => Ok(spokes),
    }
}

/// The webhooks of these flags.
pub(crate) fn parts(defaulting: bool, validation: bool, conversion: bool) -> impl Iterator<Item = &'static str> {
    [
        (defaulting, DEFAULTING),
        (validation, VALIDATION),
        (conversion, CONVERSION),
    ]
    .into_iter()
    .filter_map(|(on, part)| on.then_some(part))
}

/// Where a webhook is in the sources.
pub(crate) struct Place {
    /// Its file.
    pub(crate) file: String,
    /// Its module, seen from the list of webhooks.
    pub(crate) call: String,
    /// Where the API server sends objects to.
    pub(crate) path: String,
}

pub(crate) fn place(file: &ProjectFile, resource: &Resource, part: &str) -> Place {
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
    Place {
        file: format!("src/webhook/{}.rs", folders.join("/")),
        call: folders.join("::"),
        path: path(part, &group, version, &singular),
    }
}

/// As kubebuilder names them; but each kind has a path of its own for conversions.
fn path(part: &str, group: &str, version: &str, singular: &str) -> String {
    match part {
        DEFAULTING => format!("/mutate-{group}-{version}-{singular}"),
        VALIDATION => format!("/validate-{group}-{version}-{singular}"),
        _ => format!("/convert-{group}-{singular}"),
    }
}

/// The paths of a version's webhooks: defaulting, validation, conversion.
pub(crate) fn paths(file: &ProjectFile, resource: &Resource) -> [Option<String>; 3] {
    let webhooks = &resource.webhooks;
    let path = |on: bool, part| on.then(|| place(file, resource, part).path);
    [
        path(webhooks.defaulting, DEFAULTING),
        path(webhooks.validation, VALIDATION),
        path(webhooks.conversion, CONVERSION),
    ]
}

fn text(file: &ProjectFile, resource: &Resource, part: &str) -> Result<String, Error> {
    let variables = context! {
        kind => &resource.kind,
        version => &resource.version,
        module => names::module(&resource.kind),
        api_path => module_path(&resource.path),
        path => place(file, resource, part).path,
    };
    templates::render(file.templates(), &format!("api/{part}.rs"), variables)
}

/// The file of a webhook as `create webhook` writes it.
pub(crate) fn written(file: &ProjectFile, resource: &Resource, part: &str) -> Result<String, Error> {
    let text = text(file, resource, part)?;
    if part != CONVERSION {
        return Ok(text);
    }
    let place = place(file, resource, part).file;
    let mut tree = Tree::at("");
    tree.write(&place, text);
    add_spokes(&mut tree, file, resource, &place, &resource.webhooks.spokes)?;
    tree.text(&place)
}

/// A statement in a function of a source file, by which a webhook is known.
pub(crate) type Listing = (&'static str, String, String);

/// What lists a webhook in the sources.
pub(crate) fn listing(file: &ProjectFile, resource: &Resource, part: &str) -> [Listing; 2] {
    let call = place(file, resource, part).call;
    let (function, statement) = match part {
        CONVERSION => converted(file, resource, &call),
        _ => ("webhooks".to_owned(), admitted(resource, part, &call)),
    };
    let list = if file.templates() < 3 { "all" } else { "list" };
    [
        (LIST, list.to_owned(), format!("all.push({call}::add);")),
        ("src/packaging.rs", function, statement),
    ]
}

/// Describes an admission webhook for the package.
fn admitted(resource: &Resource, part: &str, call: &str) -> String {
    let kind = create_api::type_path(resource);
    let function = if part == DEFAULTING { "mutating" } else { "validating" };
    let path = format!("crate::webhook::{call}::PATH");
    // As rustfmt breaks it; it is never short enough for one line. Where no break helps, rustfmt leaves it as it is.
    let first = format!("all.push(Webhook::{function}::<{kind}>(");
    match first.len() + 4 > WIDTH && kind.len() + 9 <= WIDTH {
        false => format!("{first}\n        {path},\n    ));"),
        true => {
            format!("all.push(Webhook::{function}::<\n        {kind},\n    >(\n        {path},\n    ));")
        }
    }
}

/// Describes a conversion, in the function that describes the kind.
fn converted(file: &ProjectFile, resource: &Resource, call: &str) -> (String, String) {
    let function = create_api::Places::of(file, resource).function;
    let value = format!("api.converted_at(crate::webhook::{call}::PATH);");
    (function, create_api::broken(4, "let api =", &value))
}

/// Writes the file of a webhook, and lists it.
fn put(tree: &mut Tree, file: &ProjectFile, resource: &Resource, part: &str, force: bool) -> Result<(), Error> {
    let place = place(file, resource, part);
    tree.create(place.file.clone(), written(file, resource, part)?, force)?;
    declare(tree, Path::new(&place.file))?;
    for (path, function, statement) in listing(file, resource, part) {
        edit(tree, path, |source| source.add_statements(&function, &[statement]))?;
    }
    if part == CONVERSION {
        settings::add_install_modes(tree, settings::ALL_NAMESPACES)?;
        // The tests of conversions need it.
        manifest::depend(tree, "dev-dependencies", ("proptest", PROPTEST), with_dev_dependencies)?;
    }
    Ok(())
}

/// Adds versions to the file of a conversion.
fn add_spokes(tree: &mut Tree, file: &ProjectFile, hub: &Resource, path: &str, spokes: &[String]) -> Result<(), Error> {
    let kind = &hub.kind;
    let all = file.resources();
    for spoke in spokes {
        let Some(version) = all
            .iter()
            .find(|other| other.is_kind_of(hub) && other.version == *spoke)
        else {
            continue;
        };
        let alias = names::display(spoke);
        let text = format!(
            "/// The kind in the version `{spoke}`.\n{}\n\n\
             /// An object of the hub in `{spoke}`. Fields of the same name are taken over; write here how the others convert.\n\
             {}\n    same_fields(&object)\n}}\n\n\
             /// The way back. Whatever `{spoke}` alone knows must have a place in the hub.\n\
             {}\n    same_fields(&object)\n}}\n",
            create_api::broken(
                0,
                &format!("type {alias} ="),
                &format!("{};", create_api::type_path(version))
            ),
            signature(&format!("{spoke}_from_hub"), kind, &alias),
            signature(&format!("{spoke}_to_hub"), &alias, kind),
        );
        edit(tree, path, |source| {
            source.add_statements("hub", &[format!("hub.spoke({spoke}_from_hub, {spoke}_to_hub);")])?;
            source.add_statements(
                "round_trips",
                &[
                    format!("tests::loses_nothing::<{alias}, {kind}>(bytes)?;"),
                    format!("tests::loses_nothing::<{kind}, {alias}>(bytes)?;"),
                ],
            )?;
            source.add_function_before(&format!("{spoke}_from_hub"), &text, "round_trips")
        })?;
    }
    Ok(())
}

fn signature(name: &str, from: &str, to: &str) -> String {
    let line = format!("fn {name}(object: {from}) -> Result<{to}, String> {{");
    match line.len() > WIDTH {
        true => format!("fn {name}(\n    object: {from},\n) -> Result<{to}, String> {{"),
        false => line,
    }
}

const PROPTEST: &str = "proptest = \"1\"\n";

/// Adds a table for it, before the profiles if there are some.
fn with_dev_dependencies(manifest: &str) -> Option<String> {
    let table = format!("[dev-dependencies]\n{PROPTEST}\n");
    Some(match manifest.find("\n[profile.") {
        Some(at) => {
            let mut text = manifest.to_owned();
            text.insert_str(at + 1, &table);
            text
        }
        None => format!("{}\n\n{}\n", manifest.trim_end(), table.trim_end()),
    })
}

/// Takes back what [`with_dev_dependencies`] wrote.
pub(crate) fn without_proptest(manifest: &str) -> String {
    let table = format!("[dev-dependencies]\n{PROPTEST}\n");
    match manifest.strip_suffix(&format!("\n{}\n", table.trim_end())) {
        Some(rest) => rest.to_owned(),
        None => manifest.replace(&table, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_proptest(manifest: &str) -> Result<String, Error> {
        let mut tree = Tree::at("");
        tree.write(manifest::FILE, manifest.to_owned());
        manifest::depend(
            &mut tree,
            "dev-dependencies",
            ("proptest", PROPTEST),
            with_dev_dependencies,
        )?;
        tree.text(manifest::FILE)
    }

    #[test]
    fn proptest_is_added_once_and_taken_back() {
        for text in [
            "[package]\nname = \"a\"\n",
            "[package]\nname = \"a\"\n\n[profile.dev]\ndebug = false\n",
        ] {
            let added = with_proptest(text).unwrap();
            assert!(
                added.parse::<toml::Table>().unwrap().contains_key("dev-dependencies"),
                "{added}"
            );
            assert_eq!(with_proptest(&added).unwrap(), added);
            assert_eq!(without_proptest(&added), text);
        }
        let mine = "[dev-dependencies]\na = \"1\"\n";
        assert_eq!(
            with_proptest(&format!("[package]\n\n{mine}")).unwrap(),
            "[package]\n\n[dev-dependencies]\nproptest = \"1\"\na = \"1\"\n"
        );
        assert!(with_proptest("dev-dependencies = { a = \"1\" }\n").is_err());
        assert!(with_proptest("a = [").is_err());
    }
}
