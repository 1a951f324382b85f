//! A bundle of a repository, as far as the checks need it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::files::{Files, join};
use crate::python::text::shown;
use crate::python::{Document, EMPTY, EMPTY_LIST, Node, Raise, View, read_document};
use crate::versions::Semantic;

/// The annotation that names the package.
pub(crate) const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";
/// The annotations that name the directories of manifests and metadata.
pub(crate) const MANIFESTS: &str = "operators.operatorframework.io.bundle.manifests.v1";
pub(crate) const METADATA: &str = "operators.operatorframework.io.bundle.metadata.v1";
/// The annotation that names the channels.
pub(crate) const CHANNELS: &str = "operators.operatorframework.io.bundle.channels.v1";
/// The annotation that names the default channel.
pub(crate) const DEFAULT_CHANNEL: &str = "operators.operatorframework.io.bundle.channel.default.v1";
/// Maximum number of channels of a bundle: an upgrade graph is built for each of them.
const MOST_CHANNELS: usize = 500;
/// The annotation that names the versions of OpenShift.
pub(crate) const OPENSHIFT: &str = "com.redhat.openshift.versions";

/// A bundle: the directory `operators/OPERATOR/VERSION`.
pub(crate) struct Bundle {
    files: Arc<dyn Files>,
    pub(crate) operator: String,
    pub(crate) version: String,
    annotations: OnceLock<Result<Document, Raise>>,
    channels: OnceLock<Result<BTreeSet<String>, Raise>>,
    facts: OnceLock<Facts>,
}

/// Data of a ClusterServiceVersion for the rules on all bundles of an operator, so that the rest need not be kept in
/// memory.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// `metadata.name`.
    pub(crate) name: Result<CsvName, Raise>,
    /// `spec`, reduced to `replaces` and `skips`.
    pub(crate) replaces: Result<Document, Raise>,
    pub(crate) skips: Result<Document, Raise>,
    /// The annotation `olm.skipRange`.
    pub(crate) skip_range: Result<Document, Raise>,
}

/// `metadata.name` of a ClusterServiceVersion in two parts.
#[derive(Debug, Clone)]
pub(crate) struct CsvName {
    /// The part before the first dot.
    pub(crate) operator: String,
    /// The rest, without `v`.
    pub(crate) version: String,
    pub(crate) semantic: Result<Semantic, String>,
}

impl fmt::Display for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bundle({}/{})", self.operator, self.version)
    }
}

impl Bundle {
    pub(crate) fn new(files: Arc<dyn Files>, operator: &str, version: String) -> Self {
        Self {
            files,
            operator: operator.to_owned(),
            version,
            annotations: OnceLock::new(),
            channels: OnceLock::new(),
            facts: OnceLock::new(),
        }
    }

    pub(crate) fn files(&self) -> &dyn Files {
        &*self.files
    }

    /// The directory.
    pub(crate) fn root(&self) -> String {
        format!("operators/{}/{}", self.operator, self.version)
    }

    /// The path of a file in the bundle.
    pub(crate) fn path(&self, inside: &str) -> String {
        join(&self.root(), inside)
    }

    /// The file of the ClusterServiceVersion.
    pub(crate) fn csv_file(&self) -> Result<String, Raise> {
        let directory = self.path("manifests");
        let names = self.files.list(&directory);
        for ending in [".clusterserviceversion.yaml", ".clusterserviceversion.yml"] {
            if let Some(name) = names.iter().find(|name| name.ends_with(ending)) {
                return Ok(join(&directory, name));
            }
        }
        let problem = format!("no file *.clusterserviceversion.yaml in {directory}");
        Err(Raise::other(problem).in_file(&directory))
    }

    /// Reads the ClusterServiceVersion.
    pub(crate) fn csv(&self) -> Result<Document, Raise> {
        let document = read_document(&*self.files, &self.csv_file()?)?;
        if !matches!(document.root.value, crate::python::Value::Dict(_)) {
            let problem = format!("the ClusterServiceVersion is {}, not a mapping", document.root.kind());
            return Err(document.view().raise(problem));
        }
        let _ = self.facts.set(Facts::new(self, &Ok(&document)));
        Ok(document)
    }

    /// Data for the rules on all bundles.
    pub(crate) fn facts(&self) -> &Facts {
        if let Some(facts) = self.facts.get() {
            return facts;
        }
        let csv = self.csv();
        self.facts
            .get_or_init(|| Facts::new(self, &csv.as_ref().map_err(Clone::clone)))
    }

    /// The name in the ClusterServiceVersion.
    pub(crate) fn name(&self) -> Result<&CsvName, Raise> {
        self.facts().name.as_ref().map_err(Clone::clone)
    }

    /// `metadata/annotations.yaml`.
    fn annotations_file(&self) -> Result<&Document, Raise> {
        let read = || {
            let path = self.path("metadata/annotations.yaml");
            let document = match read_document(&*self.files, &path) {
                Err(raise) if raise.kind == crate::python::RaiseKind::FileNotFound => Document::empty(&path),
                result => result?,
            };
            match document.root.value {
                crate::python::Value::Dict(_) => Ok(document),
                crate::python::Value::None => Ok(Document {
                    root: EMPTY.clone(),
                    ..document
                }),
                _ => {
                    let problem = format!("the file is {}, not a mapping", document.root.kind());
                    Err(document.view().raise(problem))
                }
            }
        };
        self.annotations.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// The annotations. An empty mapping without any.
    pub(crate) fn annotations(&self) -> Result<View<'_>, Raise> {
        let view = self.annotations_file()?.view().get_or("annotations", &EMPTY)?;
        Ok(if view.is_true() {
            view
        } else {
            View { node: &EMPTY, ..view }
        })
    }

    /// The package that the annotations name. Empty without.
    pub(crate) fn package(&self) -> Result<String, Raise> {
        let annotations = self.annotations()?;
        let package = annotations.get(PACKAGE)?;
        if package.is_none() && annotations.node.get(PACKAGE).is_none() {
            return Ok(String::new());
        }
        Ok(shown(package.node))
    }

    /// The channels.
    pub(crate) fn channels(&self) -> Result<&BTreeSet<String>, Raise> {
        let read = || {
            let annotations = self.annotations()?;
            if matches!(annotations.node.value, crate::python::Value::Dict(_))
                && annotations.node.get(CHANNELS).is_none()
            {
                return Ok(BTreeSet::new());
            }
            let names = annotations.item(CHANNELS)?;
            let channels: BTreeSet<String> = names.text()?.split(',').map(|name| name.trim().to_owned()).collect();
            if channels.len() > MOST_CHANNELS {
                return Err(names.raise(format!("{self} is in more than {MOST_CHANNELS} channels")));
            }
            Ok(channels)
        };
        self.channels.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// The default channel.
    pub(crate) fn default_channel(&self) -> Result<Option<String>, Raise> {
        let annotations = self.annotations()?;
        if matches!(annotations.node.value, crate::python::Value::Dict(_))
            && annotations.node.get(DEFAULT_CHANNEL).is_none()
        {
            return Ok(None);
        }
        let channel = annotations.item(DEFAULT_CHANNEL)?;
        Ok(Some(shown(channel.node).trim().to_owned()))
    }
}

impl Facts {
    fn new(bundle: &Bundle, csv: &Result<&Document, Raise>) -> Self {
        let csv = csv.as_ref().map_err(|raise| (*raise).clone());
        let part = |view: Result<View<'_>, Raise>| {
            view.map(|view| Document {
                file: view.file.to_owned(),
                root: Node {
                    start: view.at,
                    ..view.node.clone()
                },
            })
        };
        let spec = || csv.clone().and_then(|csv| csv.view().get_or("spec", &EMPTY));
        let skip_range = csv.clone().and_then(|csv| {
            let metadata = csv.view().get_or("metadata", &EMPTY)?;
            metadata.get_or("annotations", &EMPTY)?.get("olm.skipRange")
        });
        Self {
            name: csv.clone().and_then(|csv| name(bundle, csv)),
            replaces: part(spec().and_then(|spec| spec.get("replaces"))),
            skips: part(spec().and_then(|spec| spec.get_or("skips", &EMPTY_LIST))),
            skip_range: part(skip_range),
        }
    }
}

fn name(bundle: &Bundle, csv: &Document) -> Result<CsvName, Raise> {
    let name = csv.view().item("metadata")?.item("name")?;
    let text = name.text()?;
    let Some((operator, version)) = text.split_once('.') else {
        return Err(name.raise(format!(
            "metadata.name {text:?} of {bundle} has no dot between operator and version; name it {}.vVERSION",
            bundle.operator
        )));
    };
    let version = version.trim_start_matches('v').to_owned();
    Ok(CsvName {
        operator: operator.to_owned(),
        semantic: Semantic::parse(&version),
        version,
    })
}
