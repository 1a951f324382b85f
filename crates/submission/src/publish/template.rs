//! Templates that reproduce a catalog.

use std::collections::{BTreeMap, BTreeSet};

use olmkit::catalog::difference::{self, Change, Thing};
use olmkit::catalog::model::Bundle;
use olmkit::catalog::render::MigrateLevel;
use olmkit::catalog::template::{self, Kind};
use olmkit::catalog::{Catalog, order, property, render, write};
use olmkit::object::Version;
use serde::Serialize;

use super::{LocalBundles, PublishError};
use crate::checks::catalogs::is_4_17_or_later;

/// One entry of `fbc.catalog_mapping` in `ci.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mapping {
    /// The file in `catalog-templates`.
    pub template_name: String,
    /// The catalogs that are rendered from it.
    pub catalog_names: Vec<String>,
    /// The schema of the template.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

/// A template and its rendered catalog.
pub(super) struct Choice {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) rendered: Catalog,
    /// Differences between that catalog and the expected one.
    pub(super) differences: Vec<Change>,
}

/// The migration level that the pipeline uses for the bundles of a catalog.
pub(super) fn level(catalog: &str) -> MigrateLevel {
    if is_4_17_or_later(catalog) {
        MigrateLevel::BundleObjectToCsvMetadata
    } else {
        MigrateLevel::None
    }
}

/// The smallest template that renders to a catalog. If there is none, the basic one with the differences.
pub(super) fn choose(name: &str, wanted: &Catalog, known: &LocalBundles<'_>) -> Result<Choice, PublishError> {
    let mut candidates = semver(wanted);
    candidates.push((Kind::Basic, basic(wanted)?));
    candidates.sort_by_key(|(_, text)| text.len());
    let mut wanted = wanted.clone();
    for bundle in &mut wanted.bundles {
        let migrated = render::migrate(bundle, level(name));
        migrated.map_err(|error| failed(name, "the published catalog", error.to_string()))?;
        render::touch_up(bundle);
    }
    let mut last = None;
    for (kind, text) in candidates {
        let rendered = template::render(&text, Some(kind), known, level(name));
        let rendered = match rendered {
            Ok(rendered) => rendered,
            Err(_) if kind == Kind::Semver => continue,
            Err(error) => return Err(failed(name, "the basic template", error.to_string())),
        };
        let differences = differences(&wanted, &rendered);
        let choice = Choice {
            kind,
            text,
            rendered,
            differences,
        };
        if choice.differences.is_empty() {
            return Ok(choice);
        }
        if kind == Kind::Basic {
            last = Some(choice);
        }
    }
    last.ok_or_else(|| failed(name, "the basic template", "it has no result".to_owned()))
}

fn failed(catalog: &str, path: &str, reason: String) -> PublishError {
    PublishError::Render {
        path: path.to_owned(),
        catalog: catalog.to_owned(),
        reason,
    }
}

/// The differences. Icon and description of the package only if there were any.
fn differences(wanted: &Catalog, rendered: &Catalog) -> Vec<Change> {
    let mut changes = difference::between(wanted, rendered);
    let has = |what: &Thing| match what {
        Thing::Description => wanted.packages.iter().any(|package| !package.description.is_empty()),
        Thing::Icon => wanted.packages.iter().any(|package| package.icon.is_some()),
        _ => true,
    };
    changes.retain(|change| has(&change.what));
    changes
}

/// The blobs, with bundles reduced to their images.
fn basic(catalog: &Catalog) -> Result<String, PublishError> {
    let mut catalog = catalog.clone();
    for bundle in &mut catalog.bundles {
        bundle.properties.clear();
        bundle.related_images.clear();
    }
    let mut blobs = Vec::new();
    let written =
        write::all(&order::blobs(catalog), write::Format::Json, &mut blobs).map_err(|error| error.to_string());
    let text = written.and_then(|()| {
        let text = String::from_utf8_lossy(&blobs);
        template::convert(&text, Kind::Basic, write::Format::Yaml).map_err(|error| error.to_string())
    });
    let text = text.map_err(|error| PublishError::Refused(format!("no basic template can be made: {error}")))?;
    Ok(format!("{}\n", text.trim_end()))
}

/// Semver templates that could render to the catalog: one for each preference of the default channel. None if a channel is called
/// otherwise than such templates call them.
fn semver(catalog: &Catalog) -> Vec<(Kind, String)> {
    const ARCHETYPES: [(&str, &str); 3] = [("candidate", "Candidate"), ("fast", "Fast"), ("stable", "Stable")];
    if !catalog.deprecations.is_empty() || !catalog.customs.is_empty() || catalog.channels.is_empty() {
        return Vec::new();
    }
    let (mut major, mut minor) = (false, false);
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for channel in &catalog.channels {
        let Some((archetype, version)) = channel.name.split_once("-v") else {
            return Vec::new();
        };
        let is_version = version.split('.').all(|part| part.parse::<u64>().is_ok());
        match version.split('.').count() {
            1 if is_version => major = true,
            2 if is_version => minor = true,
            _ => return Vec::new(),
        }
        let entries = channel.entries().iter().map(|entry| entry.name.as_str());
        names.entry(archetype).or_default().extend(entries);
    }
    if names
        .keys()
        .any(|name| !ARCHETYPES.iter().any(|(known, _)| known == name))
    {
        return Vec::new();
    }
    let mut bundles: Vec<(Option<Version>, &Bundle)> =
        catalog.bundles.iter().map(|bundle| (version(bundle), bundle)).collect();
    bundles.sort_by(|left, right| left.0.cmp(&right.0));
    let mut body = format!("GenerateMajorChannels: {major}\nGenerateMinorChannels: {minor}\n");
    for (archetype, key) in ARCHETYPES {
        let Some(wanted) = names.get(archetype) else { continue };
        body.push_str(&format!("{key}:\n  Bundles:\n"));
        for (_, bundle) in bundles
            .iter()
            .filter(|(_, bundle)| wanted.contains(bundle.name.as_str()))
        {
            body.push_str(&format!("  - Image: {}\n", bundle.image));
        }
    }
    let preferences = [
        "",
        "DefaultChannelTypePreference: minor\n",
        "DefaultChannelTypePreference: major\n",
    ];
    let of = |preference| (Kind::Semver, format!("---\nSchema: olm.semver\n{preference}{body}"));
    preferences.map(of).into()
}

/// The version that a bundle has.
pub(super) fn version(bundle: &Bundle) -> Option<Version> {
    let own = property::parse(bundle).ok()?;
    Version::parse(&own.first()?.version).ok()
}

#[cfg(test)]
mod tests {
    use olmkit::catalog::load;

    use super::*;

    struct Nothing;

    impl template::Bundles for Nothing {
        fn render(&self, reference: &str) -> Result<Catalog, String> {
            Err(format!("{reference} is not known"))
        }
    }

    fn bundles(versions: &[&str]) -> Vec<Bundle> {
        let text: String = versions
            .iter()
            .map(|version| {
                format!(
                    "---\nschema: olm.bundle\nname: p.v{version}\npackage: p\nimage: r.io/p:{version}\nproperties:\n\
                     - type: olm.package\n  value: {{packageName: p, version: {version}}}\n"
                )
            })
            .collect();
        let catalog: Catalog = load::text(&text).unwrap().into_iter().collect();
        catalog.bundles
    }

    #[test]
    fn a_catalog_of_a_semver_template_gets_one_again() {
        let own = bundles(&["1.0.0", "1.0.1", "1.1.0", "2.0.0"]);
        let images: String = own
            .iter()
            .map(|bundle| format!("  - Image: {}\n", bundle.image))
            .collect();
        for (head, preference) in [
            ("GenerateMajorChannels: true\nGenerateMinorChannels: true\n", ""),
            (
                "GenerateMajorChannels: true\nGenerateMinorChannels: true\n",
                "DefaultChannelTypePreference: major\n",
            ),
            ("GenerateMajorChannels: false\nGenerateMinorChannels: true\n", ""),
        ] {
            let known = LocalBundles::new(&own, &Nothing);
            let text = format!("---\nSchema: olm.semver\n{preference}{head}Stable:\n  Bundles:\n{images}");
            let published = template::render(&text, None, &known, MigrateLevel::None).unwrap();
            let choice = choose("v4.16", &published, &known).unwrap();
            assert_eq!(choice.text, text);
            assert_eq!(choice.differences, []);
            let mut other = published;
            other.channels[0].entries.as_mut().unwrap()[0].skip_range = "<1.0.0".to_owned();
            let choice = choose("v4.16", &other, &known).unwrap();
            assert_eq!(
                (choice.kind, choice.differences),
                (Kind::Basic, vec![]),
                "an edge that no semver template makes"
            );
        }
    }
}
