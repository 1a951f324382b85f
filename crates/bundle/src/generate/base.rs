//! The CSV that everything is applied to: from the input, from the project, or a bare one.

use serde_json::{Value, json};

use super::collect::{Collection, typed};
use super::typed::Typed;
use super::{Error, Notice, Options, Weight, unknown_fields};
use olmkit_project::schema::display_name;

/// Chooses the base: the first CSV whose name begins with the package's, else a bare one.
pub(super) fn choose(
    found: &Collection,
    project_base: Option<&super::Document>,
    options: &Options,
    notices: &mut Vec<Notice>,
) -> Result<Value, Error> {
    let prefix = format!("{}.", options.package);
    let mut candidates: Vec<Typed> = found.csvs.clone();
    if candidates.is_empty()
        && let Some(document) = project_base
    {
        let base = typed(document.clone(), "ClusterServiceVersion")?;
        notices.extend(unknown_fields::notice(&base));
        candidates.push(base);
    }
    let chosen = candidates.iter().position(|csv| csv.name().starts_with(&prefix));
    for (at, csv) in candidates.iter().enumerate() {
        if Some(at) == chosen {
            continue;
        }
        let message = if csv.name().starts_with(&prefix) {
            "is a second ClusterServiceVersion of the package and is left out; the first one is the base".to_owned()
        } else {
            format!("is left out: its name does not begin with {prefix:?}")
        };
        notices.push(csv.notice(
            Weight::Loss,
            message,
            format!("Keep one ClusterServiceVersion, named {prefix}v<version>; or set --package."),
        ));
    }
    match chosen.and_then(|at| candidates.into_iter().nth(at)) {
        Some(base) => Ok(base.value),
        None => Ok(bare(&options.package)),
    }
}

/// operator-sdk's initial CSV without a base.
pub(crate) fn bare(package: &str) -> Value {
    let display = display_name(package);
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{package}.v0.0.0"),
            "namespace": "placeholder",
            "annotations": {"alm-examples": "[]", "capabilities": "Basic Install"},
        },
        "spec": {
            "displayName": display,
            "description": format!("{display} description. TODO."),
            "icon": [{}],
            "installModes": [
                {"type": "OwnNamespace", "supported": false},
                {"type": "SingleNamespace", "supported": false},
                {"type": "MultiNamespace", "supported": false},
                {"type": "AllNamespaces", "supported": true},
            ],
            "keywords": [package],
            "links": [{"name": display, "url": format!("https://{package}.domain")}],
            "maintainers": [{"email": "your@email.com", "name": "Maintainer Name"}],
            "maturity": "alpha",
            "provider": {"name": "Provider Name", "url": "https://your.domain"},
        },
    })
}
