//! The file of a webhook, and the statements that name it.

use minijinja::context;

use super::{WIDTH, broken};
use crate::layout::{self, CONVERSION, DEFAULTING, Places, module_path, type_path};
use crate::project_file::{ProjectFile, Resource};
use crate::{Error, Tree, modules, names, templates};

/// The list of all webhooks in a project.
pub(crate) const LIST: &str = "src/webhook/mod.rs";
/// The file of a webhook, of a conversion without versions.
fn text(file: &ProjectFile, resource: &Resource, part: &str) -> Result<String, Error> {
    let variables = context! {
        kind => &resource.kind,
        version => &resource.version,
        module => names::module(&resource.kind),
        api_path => module_path(&resource.path),
        path => layout::webhook(file, resource, part).path,
    };
    templates::render(&format!("api/{part}.rs"), variables)
}

/// The file of a webhook as `create webhook` writes it.
pub(crate) fn written(file: &ProjectFile, resource: &Resource, part: &str) -> Result<String, Error> {
    let text = text(file, resource, part)?;
    if part != CONVERSION {
        return Ok(text);
    }
    let place = layout::webhook(file, resource, part).file;
    let mut tree = Tree::at("");
    tree.write(&place, text);
    add_spokes(&mut tree, file, resource, &place, &resource.webhooks.spokes)?;
    tree.text(&place)
}

/// A statement in a function of a source file, by which a webhook is known.
pub(crate) type Listing = (&'static str, String, String);

/// The code that lists a webhook in the sources.
pub(crate) fn listing(file: &ProjectFile, resource: &Resource, part: &str) -> [Listing; 2] {
    let call = layout::webhook(file, resource, part).call;
    let (function, statement) = match part {
        CONVERSION => converted(file, resource, &call),
        _ => ("webhooks".to_owned(), admitted(resource, part, &call)),
    };
    [
        (LIST, "list".to_owned(), format!("all.push({call}::add);")),
        ("src/packaging.rs", function, statement),
    ]
}

/// Describes an admission webhook for the package.
fn admitted(resource: &Resource, part: &str, call: &str) -> String {
    let kind = type_path(resource);
    let function = if part == DEFAULTING { "mutating" } else { "validating" };
    let path = format!("crate::webhook::{call}::PATH");
    // Broken as rustfmt does: the line is never short enough. If no break helps, rustfmt does not change it.
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
    let function = Places::new(file, resource).function;
    let value = format!("api.converted_at(crate::webhook::{call}::PATH);");
    (function, broken(4, "let api =", &value))
}

/// Adds versions to the file of a conversion.
pub(crate) fn add_spokes(
    tree: &mut Tree,
    file: &ProjectFile,
    hub: &Resource,
    path: &str,
    spokes: &[String],
) -> Result<(), Error> {
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
             /// An object of the hub in `{spoke}`. Fields of the same name are taken over. Write here how the others convert.\n\
             {}\n    same_fields(&object)\n}}\n\n\
             /// Converts back. A field that only `{spoke}` has must have a place in the hub.\n\
             {}\n    same_fields(&object)\n}}\n",
            broken(0, &format!("type {alias} ="), &format!("{};", type_path(version))),
            signature(&format!("{spoke}_from_hub"), kind, &alias),
            signature(&format!("{spoke}_to_hub"), &alias, kind),
        );
        modules::edit(tree, path, |source| {
            source.add_statements("hub", &[format!("hub.spoke({spoke}_from_hub, {spoke}_to_hub);")])?;
            source.add_statements(
                "round_trips",
                &[
                    format!("testing::round_trip::<{alias}, {kind}, _>(&hub(), bytes)?;"),
                    format!("testing::round_trip::<{kind}, {alias}, _>(&hub(), bytes)?;"),
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
