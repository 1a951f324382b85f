//! Adds a bundle to templates and catalogs according to its `release-config.yaml`, as `add_bundle_to_fbc.py` of
//! operator-pipelines does after a bundle is merged. Templates keep their layout and comments, which the original does
//! not guarantee. Their content is the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use olmkit::catalog::difference::{self, PackageChange};
use olmkit::catalog::model::{Bundle, PROPERTY_CSV_METADATA};
use olmkit::catalog::render::{MigrateLevel, bundle};
use olmkit::catalog::template::{self, Bundles, Kind};
use olmkit::catalog::{Catalog, load};
use olmkit::fix::Document;
use serde_json::{Value, json};

use super::template::level;
use super::{LocalBundles, PublishError, catalog_text, is_sound};
use crate::files::join;
use crate::overlay::Changes;
use crate::python::bytes;
use crate::repository::Repository;

/// Changes for adding a bundle.
pub struct Additions {
    /// The files to write.
    pub changes: Changes,
    /// Changes in each catalog.
    pub differences: BTreeMap<String, Vec<PackageChange>>,
}

/// One entry of `catalog_templates` with the mapping of its template.
struct TemplateEntry<'a> {
    entry: &'a Value,
    template: &'a str,
    channels: Vec<&'a str>,
    kind: Kind,
    catalogs: Vec<&'a str>,
}

/// Adds a bundle of the repository, whose image is `image`, to templates and catalogs. Bundles that are in no catalog
/// of the operator come from `others`.
///
/// # Errors
/// See [`PublishError`].
pub fn add_to_catalogs(
    repository: &Repository,
    root: &Path,
    (operator, version, image): (&str, &str, &str),
    others: &dyn Bundles,
) -> Result<Additions, PublishError> {
    let folder = format!("operators/{operator}/{version}");
    let path = join(&folder, "release-config.yaml");
    if !repository.files().is_file(&path) {
        let problem = format!("{path} does not exist; it lists the templates and channels for the bundle");
        return Err(PublishError::Refused(problem));
    }
    let config = settings(repository, &path)?;
    let ci_path = format!("operators/{operator}/ci.yaml");
    let ci = settings(repository, &ci_path)?;
    let new = bundle::directory(&root.join(&folder), image).map_err(|error| PublishError::Bundle {
        path: folder.clone(),
        reason: error.to_string(),
    })?;
    let mut additions = Additions {
        changes: Changes::new(),
        differences: BTreeMap::new(),
    };
    let published = Published::new(repository, operator);
    let entries = config.get("catalog_templates").and_then(Value::as_array);
    let entries = entries.ok_or_else(|| wrong(&path, "catalog_templates is missing"))?;
    for entry in entries {
        let wanted = wanted(entry, &ci, &path, &ci_path)?;
        let template_path = format!("operators/{operator}/catalog-templates/{}", wanted.template);
        let known = match additions.changes.get(&template_path) {
            Some(changed) => changed.clone(),
            None if repository.files().is_file(&template_path) => Some(bytes(repository.files(), &template_path)?),
            None => None,
        };
        let text = match known {
            None => created(&wanted, operator, &new)?,
            Some(known) => amended(&known, &wanted, operator, &new).ok_or_else(|| PublishError::Form {
                path: template_path.clone(),
                what: "write it so, or add the bundle yourself".to_owned(),
            })?,
        };
        for catalog in &wanted.catalogs {
            let target = Target {
                operator,
                catalog,
                template: &template_path,
            };
            let others = InCatalogs::new(&published, level(catalog), others);
            render(repository, &target, (&text, wanted.kind), &new, &others, &mut additions)?;
        }
        additions.changes.insert(template_path, Some(text.into_bytes()));
    }
    Ok(additions)
}

/// The bundles of all catalogs of an operator, read when the first one is needed.
struct Published<'a> {
    repository: &'a Repository,
    operator: &'a str,
    bundles: OnceLock<Vec<Bundle>>,
}

impl<'a> Published<'a> {
    fn new(repository: &'a Repository, operator: &'a str) -> Self {
        Self {
            repository,
            operator,
            bundles: OnceLock::new(),
        }
    }

    /// The bundle of an image, for a catalog of a level. One that was migrated cannot be migrated back.
    fn find(&self, image: &str, wanted: MigrateLevel) -> Option<&Bundle> {
        let bundles = self.bundles.get_or_init(|| self.read());
        let is_migrated = |bundle: &Bundle| {
            let mut properties = bundle.properties.iter();
            properties.any(|property| property.kind == PROPERTY_CSV_METADATA)
        };
        bundles
            .iter()
            .find(|bundle| bundle.image == image && (wanted != MigrateLevel::None || !is_migrated(bundle)))
    }

    fn read(&self) -> Vec<Bundle> {
        let mut bundles = Vec::new();
        for path in self.repository.catalogs_of(self.operator) {
            let catalog = path.split('/').next().unwrap_or_default();
            let file = self.repository.operator_catalog_file(catalog, self.operator);
            // A catalog that cannot be read lends nothing.
            let text = file.and_then(|file| bytes(self.repository.files(), &file).ok());
            let blobs = text.and_then(|text| load::text(&String::from_utf8_lossy(&text)).ok());
            let blobs: Catalog = blobs.unwrap_or_default().into_iter().collect();
            bundles.extend(blobs.bundles);
        }
        bundles
    }
}

/// Bundles of the repository's catalogs, and others.
struct InCatalogs<'a> {
    published: &'a Published<'a>,
    level: MigrateLevel,
    others: &'a dyn Bundles,
}

impl<'a> InCatalogs<'a> {
    fn new(published: &'a Published<'a>, level: MigrateLevel, others: &'a dyn Bundles) -> Self {
        Self {
            published,
            level,
            others,
        }
    }
}

impl Bundles for InCatalogs<'_> {
    fn render(&self, reference: &str) -> Result<Catalog, String> {
        match self.published.find(reference, self.level) {
            Some(bundle) => Ok(Catalog {
                bundles: vec![bundle.clone()],
                ..Catalog::default()
            }),
            None => self.others.render(reference),
        }
    }
}

/// A file of settings as a value.
fn settings(repository: &Repository, path: &str) -> Result<Value, PublishError> {
    let bytes = bytes(repository.files(), path)?;
    let value = olmkit_yaml::parse(&bytes).and_then(|node| node.to_json());
    value.map_err(|error| {
        let at = error.position();
        PublishError::Settings {
            place: at.map_or_else(|| path.to_owned(), |at| format!("{path}:{}:{}", at.line, at.column)),
            text: error.to_string(),
        }
    })
}

fn wrong(path: &str, text: impl Into<String>) -> PublishError {
    PublishError::Settings {
        place: path.to_owned(),
        text: text.into(),
    }
}

/// The strings of a list.
fn texts<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    let items = value.get(key).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

/// Reads an entry, and finds the mapping of its template.
fn wanted<'a>(entry: &'a Value, ci: &'a Value, path: &str, ci_path: &str) -> Result<TemplateEntry<'a>, PublishError> {
    let template = entry.get("template_name").and_then(Value::as_str);
    let template = template.filter(|name| is_sound(name));
    let template = template.ok_or_else(|| wrong(path, "template_name is missing or cannot be the name of a file"))?;
    let channels = texts(entry, "channels");
    if channels.is_empty() {
        return Err(wrong(path, format!("{template} has no channels")));
    }
    if let Some(default) = entry
        .get("defaultChannel")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
        && !channels.contains(&default)
    {
        return Err(wrong(
            path,
            format!("defaultChannel {default} is not one of the channels of {template}"),
        ));
    }
    let mapping = ci
        .pointer("/fbc/catalog_mapping")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mapping = mapping
        .into_iter()
        .find(|mapping| mapping.get("template_name").and_then(Value::as_str) == Some(template));
    let mapping = mapping.ok_or_else(|| wrong(ci_path, format!("fbc.catalog_mapping has no template {template}")))?;
    let kind = mapping.get("type").and_then(Value::as_str).and_then(Kind::parse);
    let kind = kind.filter(|kind| *kind != Kind::Substitutes);
    let kind = kind.ok_or_else(|| {
        wrong(
            ci_path,
            format!("the type of {template} is not olm.template.basic or olm.semver"),
        )
    })?;
    let catalogs = texts(mapping, "catalog_names");
    if let Some(odd) = catalogs.iter().find(|name| !is_sound(name)) {
        return Err(wrong(ci_path, format!("{odd:?} cannot be the name of a catalog")));
    }
    Ok(TemplateEntry {
        entry,
        template,
        channels,
        kind,
        catalogs,
    })
}

/// The entry of the bundle in a channel of a basic template.
fn channel_entry(wanted: &TemplateEntry<'_>, new: &Bundle) -> Value {
    let mut entry = json!({"name": new.name});
    for key in ["replaces", "skips", "skipRange"] {
        if let (Some(value), Some(entry)) = (wanted.entry.get(key), entry.as_object_mut()) {
            entry.insert(key.to_owned(), value.clone());
        }
    }
    entry
}

fn channel_blob(name: &str, operator: &str, entry: &Value) -> Value {
    json!({"schema": "olm.channel", "name": name, "package": operator, "entries": [entry]})
}

/// A template that does not exist yet.
fn created(wanted: &TemplateEntry<'_>, operator: &str, new: &Bundle) -> Result<String, PublishError> {
    let template = match wanted.kind {
        Kind::Semver => {
            let mut template =
                json!({"Schema": "olm.semver", "GenerateMajorChannels": true, "GenerateMinorChannels": true});
            for channel in &wanted.channels {
                if let Some(template) = template.as_object_mut() {
                    template.insert((*channel).to_owned(), json!({"Bundles": [{"Image": new.image}]}));
                }
            }
            template
        }
        _ => {
            let default = wanted.entry.get("defaultChannel").cloned();
            let default = default
                .or_else(|| wanted.channels.first().map(|name| json!(name)))
                .unwrap_or_default();
            let entry = channel_entry(wanted, new);
            let mut entries = vec![json!({"schema": "olm.package", "name": operator, "defaultChannel": default})];
            entries.extend(wanted.channels.iter().map(|name| channel_blob(name, operator, &entry)));
            entries.push(json!({"schema": "olm.bundle", "image": new.image}));
            json!({"schema": "olm.template.basic", "entries": entries})
        }
    };
    let text = olmkit_yaml::to_string(&template);
    let text = text.map_err(|error| PublishError::Refused(format!("the template cannot be written: {error}")))?;
    Ok(format!("---\n{text}"))
}

/// A template with the bundle.
fn amended(known: &[u8], wanted: &TemplateEntry<'_>, operator: &str, new: &Bundle) -> Option<String> {
    let mut document = Document::read(known)?;
    match wanted.kind {
        Kind::Semver => {
            for channel in &wanted.channels {
                let image = json!({"Image": new.image});
                match document.value().get(*channel).and_then(|list| list.get("Bundles")) {
                    Some(list) if list.as_array()?.contains(&image) => {}
                    Some(_) => document.append(&format!("/{channel}"), "Bundles", &[image])?,
                    None if document.value().get(*channel).is_some() => return None,
                    None => document.add("", channel, &json!({"Bundles": [image]}))?,
                }
            }
        }
        _ => basic(&mut document, wanted, operator, new)?,
    }
    Some(document.text().to_owned())
}

fn basic(document: &mut Document, wanted: &TemplateEntry<'_>, operator: &str, new: &Bundle) -> Option<()> {
    let is = |blob: &Value, schema: &str| blob.get("schema").and_then(Value::as_str) == Some(schema);
    let entry = channel_entry(wanted, new);
    let blobs = document.value().get("entries")?.as_array()?.clone();
    for (at, blob) in blobs.iter().enumerate() {
        let name = blob.get("name").and_then(Value::as_str).unwrap_or_default();
        let takes = is(blob, "olm.channel") && wanted.channels.contains(&name);
        let has = blob
            .get("entries")
            .and_then(Value::as_array)
            .is_some_and(|known| known.contains(&entry));
        if takes && !has {
            document.append(&format!("/entries/{at}"), "entries", std::slice::from_ref(&entry))?;
        }
    }
    for channel in &wanted.channels {
        let has = |blob: &Value| is(blob, "olm.channel") && blob.get("name").and_then(Value::as_str) == Some(channel);
        if !blobs.iter().any(has) {
            document.append("", "entries", &[channel_blob(channel, operator, &entry)])?;
        }
    }
    let image = json!(new.image);
    if !blobs
        .iter()
        .any(|blob| is(blob, "olm.bundle") && blob.get("image") == Some(&image))
    {
        document.append("", "entries", &[json!({"schema": "olm.bundle", "image": image})])?;
    }
    Some(())
}

/// Output of a rendered template.
struct Target<'a> {
    operator: &'a str,
    catalog: &'a str,
    template: &'a str,
}

/// Renders a template to one catalog.
fn render(
    repository: &Repository,
    target: &Target<'_>,
    (text, kind): (&str, Kind),
    new: &Bundle,
    others: &dyn Bundles,
    additions: &mut Additions,
) -> Result<(), PublishError> {
    let (catalog, operator) = (target.catalog, target.operator);
    let failed = |reason: String| PublishError::Render {
        path: target.template.to_owned(),
        catalog: catalog.to_owned(),
        reason,
    };
    let old: Catalog = match repository.operator_catalog_file(catalog, operator) {
        None => Catalog::default(),
        Some(file) => {
            let bytes = bytes(repository.files(), &file)?;
            let blobs = load::text(&String::from_utf8_lossy(&bytes));
            let blobs = blobs.map_err(|error| failed(format!("{file} is not a catalog: {error}")))?;
            blobs.into_iter().collect()
        }
    };
    // The new bundle last: it is the one with this image.
    let known = LocalBundles::new(old.bundles.iter().chain([new]), others);
    let rendered = template::render(text, Some(kind), &known, level(catalog));
    let rendered = rendered.map_err(|error| failed(error.to_string()))?;
    let differences = difference::by_package(&old, &rendered, None);
    additions.differences.insert(catalog.to_owned(), differences);
    let path = format!("catalogs/{catalog}/{operator}/catalog.yaml");
    additions.changes.insert(path, Some(catalog_text(rendered)?));
    Ok(())
}

#[cfg(test)]
mod tests;
