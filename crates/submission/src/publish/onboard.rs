//! Bringing an operator to file-based catalogs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use olmkit::catalog::Catalog;
use olmkit::catalog::difference::Change;
use olmkit::catalog::render::reference::ImageTemplate;
use olmkit::catalog::template::Bundles;

use super::package::{self, Missing};
use super::template::{Choice, Mapping, choose};
use super::{LocalBundles, PublishError, catalog_text, ci};
use crate::files::join;
use crate::overlay::Changes;
use crate::platforms::Platforms;
use crate::python::Node;
use crate::repository::{CATALOG_FILES, Operator, Repository};

/// Source of the graph.
pub enum Origin {
    /// Published catalogs by name, such as `v4.20`.
    Catalogs(BTreeMap<String, Catalog>),
    /// The operator's directory with bundles.
    Folder {
        /// The image of each bundle; by default that of community-operators-prod.
        images: Option<ImageTemplate>,
        /// The versions of OpenShift.
        platforms: Platforms,
    },
}

/// Input of a migration.
pub struct Onboarding<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// Its root on disk.
    pub root: &'a Path,
    /// The operator.
    pub operator: &'a str,
    /// True if existing templates, mapping and catalogs may be replaced.
    pub replace: bool,
}

/// The result.
pub struct Onboarded {
    /// The files to write.
    pub changes: Changes,
    /// The templates.
    pub mapping: Vec<Mapping>,
    /// Differences between templates and catalogs, by catalog. Nothing should be written then.
    pub differences: Vec<(String, Change)>,
    /// Reasons why bundles of the directory are not in a channel, as sentences.
    pub left_out: Vec<String>,
    /// Catalogs of the operator that no template is for any more.
    pub unmapped: Vec<String>,
}

/// A template with the catalogs that are rendered from it.
struct Group {
    choice: Choice,
    catalogs: Vec<String>,
}

impl Onboarding<'_> {
    /// Works out templates, mapping and catalogs.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn run(&self, origin: Origin, others: &dyn Bundles) -> Result<Onboarded, PublishError> {
        let operator = self.repository.operator(self.operator);
        let operator = operator.ok_or_else(|| PublishError::NoOperator(self.operator.to_owned()))?;
        // The pipeline fails on an empty ci.yaml. Onboarding gives it its first keys.
        let is_empty = matches!(operator.config()?.root.value, crate::python::Value::None);
        if !is_empty && operator.uses_catalogs()? && !self.replace {
            return Err(PublishError::Enabled(self.operator.to_owned()));
        }
        let package = package_of(&operator);
        let (catalogs, left_out) = match origin {
            Origin::Catalogs(catalogs) => (of_package(catalogs, &package)?, Vec::new()),
            Origin::Folder { images, platforms } => {
                let images = match images {
                    Some(images) => images,
                    None => self.community_images()?,
                };
                let members = package::members(&operator, self.root, &images, &platforms)?;
                of_folder(&operator, &package, members)?
            }
        };
        let mut groups: Vec<Group> = Vec::new();
        let mut onboarded = Onboarded {
            changes: Changes::new(),
            mapping: Vec::new(),
            differences: Vec::new(),
            left_out,
            unmapped: Vec::new(),
        };
        for (name, catalog) in &catalogs {
            let choice = choose(name, catalog, &LocalBundles::new(&catalog.bundles, others))?;
            let differences = choice.differences.iter().cloned();
            onboarded
                .differences
                .extend(differences.map(|change| (name.clone(), change)));
            self.write_catalog(name, catalog_text(choice.rendered.clone())?, &mut onboarded.changes);
            match groups.iter_mut().find(|group| group.choice.text == choice.text) {
                Some(group) => group.catalogs.push(name.clone()),
                None => groups.push(Group {
                    choice,
                    catalogs: vec![name.clone()],
                }),
            }
        }
        self.write_templates(&operator, groups, &mut onboarded)?;
        let own = self.repository.catalogs_of(self.operator).into_iter();
        let own = own.filter_map(|path| Some(path.split_once('/')?.0.to_owned()));
        onboarded.unmapped = own.filter(|name| !catalogs.contains_key(name)).collect();
        Ok(onboarded)
    }

    /// The images that the community pipeline builds: the first registry that `config.yaml` allows, with name and version.
    fn community_images(&self) -> Result<ImageTemplate, PublishError> {
        let refuse = |reason: &str| PublishError::NoImages(reason.to_owned());
        if self.repository.organization().as_deref() != Some("community-operators") {
            return Err(refuse(
                "this is not the community's repository, in which they follow from name and version",
            ));
        }
        let registries = self.repository.config()?.root.get("allowed_bundle_registries");
        let first = registries.and_then(|list| list.items().first()).and_then(Node::as_str);
        let first = first.ok_or_else(|| refuse("config.yaml has no allowed_bundle_registries"))?;
        let template = format!("{}/{}:{{{{.Version}}}}", first.trim_end_matches('/'), self.operator);
        template
            .parse()
            .map_err(|_| refuse("allowed_bundle_registries of config.yaml has braces"))
    }

    fn write_catalog(&self, name: &str, text: Vec<u8>, changes: &mut Changes) {
        let directory = format!("catalogs/{name}/{}", self.operator);
        let [wanted, others @ ..] = CATALOG_FILES;
        for other in others.map(|other| join(&directory, other)) {
            if self.repository.files().is_file(&other) {
                changes.insert(other, None);
            }
        }
        changes.insert(join(&directory, wanted), Some(text));
    }

    /// Writes templates and `ci.yaml`, and removes the templates that the mapping named before.
    fn write_templates(
        &self,
        operator: &Operator,
        groups: Vec<Group>,
        onboarded: &mut Onboarded,
    ) -> Result<(), PublishError> {
        let directory = format!("operators/{}/catalog-templates", self.operator);
        for old in operator
            .config()?
            .root
            .get("fbc")
            .and_then(|fbc| fbc.get("catalog_mapping"))
            .map(Node::items)
            .unwrap_or_default()
        {
            let name = old
                .get("template_name")
                .and_then(Node::as_str)
                .filter(|name| super::is_sound(name));
            let path = name.map(|name| join(&directory, name));
            if let Some(path) = path.filter(|path| self.repository.files().is_file(path)) {
                onboarded.changes.insert(path, None);
            }
        }
        let is_only = groups.len() == 1;
        for Group { choice, catalogs } in groups {
            let schema = choice.kind.schema();
            let name = match catalogs.first() {
                Some(first) if !is_only => format!("{first}.yaml"),
                _ if schema == "olm.semver" => "semver.yaml".to_owned(),
                _ => "basic.yaml".to_owned(),
            };
            let path = join(&directory, &name);
            let is_ours = onboarded.changes.contains_key(&path);
            if self.repository.files().is_file(&path) && !is_ours && !self.replace {
                let problem = format!("{path} already exists; pass --replace to overwrite it");
                return Err(PublishError::Refused(problem));
            }
            onboarded.changes.insert(path, Some(choice.text.into_bytes()));
            onboarded.mapping.push(Mapping {
                template_name: name,
                catalog_names: catalogs,
                kind: schema,
            });
        }
        let path = operator.config()?.file.clone();
        let text = if self.repository.files().is_file(&path) {
            let bytes = crate::python::bytes(self.repository.files(), &path)?;
            String::from_utf8_lossy(&bytes).into_owned()
        } else {
            String::new()
        };
        let changed = ci::with_mapping(&text, &onboarded.mapping).ok_or_else(|| PublishError::Form {
            what: format!(
                "write it so, or add the mapping yourself: {}",
                serde_json::json!(onboarded.mapping)
            ),
            path: path.clone(),
        })?;
        onboarded.changes.insert(path, Some(changed.into_bytes()));
        Ok(())
    }
}

/// The package: the one with the directory's name if a bundle belongs to it, else that of the first bundle.
fn package_of(operator: &Operator) -> String {
    let named = operator.bundles.iter().filter_map(|bundle| bundle.package().ok());
    let mut named = named.filter(|name| !name.is_empty());
    let first = named.next().unwrap_or_else(|| operator.name.clone());
    if named.any(|name| name == operator.name) {
        return operator.name.clone();
    }
    first
}

/// Each catalog's contents for a package. Catalogs without it are omitted.
fn of_package(catalogs: BTreeMap<String, Catalog>, package: &str) -> Result<Versioned, PublishError> {
    let names: Vec<String> = catalogs.keys().cloned().collect();
    let mut found = Versioned::new();
    for (name, mut catalog) in catalogs {
        catalog.packages.retain(|blob| blob.name == package);
        catalog.channels.retain(|blob| blob.package == package);
        catalog.bundles.retain(|blob| blob.package == package);
        catalog.deprecations.retain(|blob| blob.package == package);
        catalog.customs.retain(|blob| blob.package == package);
        if let Some(inline) = catalog.bundles.iter().find(|bundle| bundle.image.is_empty()) {
            let bundle = inline.name.clone();
            return Err(PublishError::Inline { catalog: name, bundle });
        }
        if !catalog.packages.is_empty() || !catalog.bundles.is_empty() {
            found.insert(name, catalog);
        }
    }
    if found.is_empty() {
        return Err(PublishError::NoCatalog {
            package: package.to_owned(),
            catalogs: names.join(", "),
        });
    }
    Ok(found)
}

/// Catalogs by name.
type Versioned = BTreeMap<String, Catalog>;

/// The catalogs from the bundles of a directory, and the bundles that fit into none.
fn of_folder(
    operator: &Operator,
    package: &str,
    members: Vec<package::Member>,
) -> Result<(Versioned, Vec<String>), PublishError> {
    let mode = package::mode(operator)?;
    let (members, others): (Vec<_>, Vec<_>) = members.into_iter().partition(|member| member.blob.package == package);
    let foreign = |member: &package::Member| format!("{} is of the package {}", member.blob.name, member.blob.package);
    let mut left_out: Vec<String> = others.iter().map(foreign).collect();
    let platforms: BTreeSet<_> = package::platforms(&members);
    if members.is_empty() {
        let problem = format!("operators/{} has no bundle, and no catalog has one", operator.name);
        return Err(PublishError::Refused(problem));
    }
    if platforms.is_empty() {
        let problem = format!(
            "no bundle of {} supports a supported version of OpenShift",
            operator.name
        );
        return Err(PublishError::Refused(problem));
    }
    let mut catalogs = Versioned::new();
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unskipped: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for platform in platforms {
        let name = format!("v{}", platform.short());
        let (catalog, losses) = package::catalog(&members, package, mode, platform);
        for channel in losses.unskipped {
            unskipped.entry(channel).or_default().push(name.clone());
        }
        for Missing { bundle, channel } in losses.missing {
            let key = format!("{bundle} has no place in {channel}");
            missing.entry(key).or_default().push(name.clone());
        }
        if catalog.channels.is_empty() {
            let problem = format!("no bundle of {} for {name} names a channel", operator.name);
            return Err(PublishError::Refused(problem));
        }
        catalogs.insert(name, catalog);
    }
    left_out.extend(missing.into_iter().map(|(what, catalogs)| {
        let catalogs = catalogs.join(", ");
        format!("{what} of {catalogs}: the newest bundle does not lead to it, so the index has dropped it")
    }));
    left_out.extend(unskipped.into_iter().map(|(channel, catalogs)| {
        let catalogs = catalogs.join(", ");
        format!(
            "skips in {channel} of {catalogs} that name bundles in its own replaces chain: opm would reject the channel, because the bundles below would be stranded"
        )
    }));
    Ok((catalogs, left_out))
}
