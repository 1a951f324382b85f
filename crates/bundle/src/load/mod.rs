//! Loads a bundle the way operator-sdk loads it, and reports why it cannot.
//!
//! Reading has three steps: the directory into a [`Tree`], the tree into a [`Reading`] with everything that could be
//! decoded and all errors of operator-sdk, and the reading into a [`Bundle`] if there are none.

mod documents;
pub(crate) mod manifest;
pub(crate) mod manifests;
pub(crate) mod media_type;
pub(crate) mod metadata;
pub mod paths;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

pub use manifest::Manifest;
pub use manifests::FIELD_MUST_BE;
pub use media_type::MediaType;
pub use metadata::{CHANNELS, DEFAULT_CHANNEL, MANIFESTS, MEDIA_TYPE, METADATA, Metadata, PACKAGE, PREFIX};
pub use tree::{Entry, Limits, Tree, TreeError};

use olmkit_diagnostics::{Finding, Origin, Rule, Severity, define_rules, json_path};
use olmkit_go::structs::decode::{DecodeError, decode, decode_noting_conversions};
use olmkit_yaml as yaml;

define_rules! {
    LOC_5 = {
        id: "LOC-5",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "The manifests directory must be inside the bundle.",
        why: "An image contains nothing outside the bundle's directory, so the manifests would be missing there.",
        bad: "operators.operatorframework.io.bundle.manifests.v1: ../other/",
        good: "operators.operatorframework.io.bundle.manifests.v1: manifests/",
        since: "0.1.0",
    }
}

/// The rules that a directory breaks if it contains nothing of a bundle: no metadata, no manifests.
pub static NOTHING_FOUND: [&Rule; 2] = [&metadata::LOC_3, &media_type::LOC_6];

/// Why a bundle could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The directory could not be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The input is not a bundle. The message is operator-sdk's. `problems` have the positions.
    #[error("{message}")]
    Bundle {
        /// operator-sdk's message.
        message: String,
        /// Every problem with its place.
        problems: Vec<Finding>,
    },
}

/// One object of the bundle.
#[derive(Debug, Clone)]
pub struct Object {
    /// The file it is in, relative to the bundle root.
    pub path: String,
    /// The tree with positions. Shared with other readings of the file.
    pub node: Arc<yaml::Node>,
    /// The object as written, shared too. Null for a file with nothing in it.
    pub value: Arc<Value>,
    /// The object decoded with Go's types: only for the ClusterServiceVersion and for CustomResourceDefinitions. Fields
    /// have their exact names, nulls are removed, numbers are strings if the field is a string.
    pub typed: Option<Value>,
    /// `typed` has no string that `value` has as a number or a boolean.
    pub is_exact: bool,
    /// The document for typed decoding if it is not the first document (see [`documents`]).
    typed_document: Option<Vec<u8>>,
    /// Keys that occur more than once in one map.
    pub duplicates: Vec<yaml::Duplicate>,
    /// Line of a second YAML document, which every tool ignores or misreads.
    pub second_document: Option<usize>,
}

impl Object {
    /// The kind. Empty when there is none.
    pub fn kind(&self) -> &str {
        self.value.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// The apiVersion. Empty when there is none or it is not a string.
    pub fn api_version(&self) -> &str {
        self.value.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
    }

    /// The group of the apiVersion. Empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// The version of the apiVersion.
    pub fn version(&self) -> &str {
        self.api_version()
            .split_once('/')
            .map_or(self.api_version(), |(_, version)| version)
    }

    /// `metadata.name`. Empty when there is none or it is not a string.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// `metadata.namespace`. Empty when there is none or it is not a string.
    pub fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    /// The string at a JSON pointer. Empty for anything else.
    pub fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The group, version and kind as Go prints them: `apps/v1, Kind=Deployment`.
    pub fn gvk(&self) -> String {
        if self.kind().is_empty() || self.api_version().matches('/').count() > 1 {
            return "/, Kind=".to_string();
        }
        // A version without a group is printed after an empty group.
        format!("{}/{}, Kind={}", self.group(), self.version(), self.kind())
    }

    /// The position of the value at a JSON pointer, or of its nearest existing parent.
    pub fn position(&self, pointer: &str) -> yaml::Position {
        self.nearest(pointer).0.start
    }

    /// The node at a JSON pointer and `true`, or its nearest existing parent and `false`.
    pub fn nearest(&self, pointer: &str) -> (&yaml::Node, bool) {
        let mut shorter = pointer;
        loop {
            if let Some(node) = self.node.pointer(shorter) {
                return (node, shorter.len() == pointer.len());
            }
            match shorter.rsplit_once('/') {
                Some((parent, _)) => shorter = parent,
                None => return (&self.node, false),
            }
        }
    }
}

/// A loaded bundle.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Bundle {
    /// The bundle's root in messages.
    pub root: String,
    /// Every file of the bundle.
    pub tree: Tree,
    /// The annotations.
    pub metadata: Metadata,
    /// The manifests directory relative to the root.
    pub manifests_dir: String,
    /// The type of the manifests.
    pub media_type: MediaType,
    /// Name of the ClusterServiceVersion.
    pub name: String,
    /// All objects in the order of their file names.
    pub objects: Vec<Object>,
}

impl Bundle {
    /// The ClusterServiceVersion.
    pub fn csv(&self) -> Option<&Object> {
        self.objects
            .iter()
            .find(|object| object.kind() == "ClusterServiceVersion")
    }

    /// The CustomResourceDefinitions.
    pub fn crds(&self) -> impl Iterator<Item = &Object> {
        self.objects
            .iter()
            .filter(|object| object.kind() == "CustomResourceDefinition")
    }

    /// The package's name, from the annotations.
    pub fn package(&self) -> &str {
        self.metadata.get(PACKAGE).unwrap_or_default()
    }

    /// The channels from the annotations, without spaces and empty entries.
    pub fn channels(&self) -> Vec<&str> {
        let list = self.metadata.get(CHANNELS).unwrap_or_default();
        list.split(',')
            .map(str::trim)
            .filter(|channel| !channel.is_empty())
            .collect()
    }

    /// The package's default channel, from the annotations.
    pub fn default_channel(&self) -> Option<&str> {
        self.metadata.get(DEFAULT_CHANNEL).filter(|channel| !channel.is_empty())
    }

    /// The bytes of an object's file.
    pub fn bytes(&self, object: &Object) -> &[u8] {
        self.tree.file(&object.path).unwrap_or_default()
    }
}

/// Whatever could be understood of a directory.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reading {
    /// The bundle, as far as it could be read. Unreadable files are missing from it.
    pub bundle: Bundle,
    /// Errors of operator-sdk, in its order. Empty for a bundle that loads.
    pub problems: Vec<Finding>,
    /// operator-sdk's message for these problems.
    pub fatal: Option<String>,
}

/// Loads the bundle in a directory.
///
/// # Errors
/// When the directory cannot be read, or when operator-sdk does not accept it as a bundle.
pub fn load(directory: &Path) -> Result<Bundle, LoadError> {
    let tree = Tree::from_dir(directory, Limits::default())?;
    let reading = read(tree, &paths::relative_to_working_directory(directory));
    match reading.fatal {
        None => Ok(reading.bundle),
        Some(message) => Err(LoadError::Bundle {
            message,
            problems: reading.problems,
        }),
    }
}

/// Decodes a directory. `root` is its name in messages.
pub fn read(tree: Tree, root: &str) -> Reading {
    let mut reading = Reading {
        bundle: Bundle {
            root: root.to_string(),
            tree: Tree::default(),
            metadata: Metadata::default(),
            manifests_dir: "manifests".to_string(),
            media_type: MediaType::Plain,
            name: String::new(),
            objects: Vec::new(),
        },
        problems: Vec::new(),
        fatal: None,
    };
    match metadata::find(&tree, root) {
        Ok(metadata) => reading.bundle.metadata = metadata,
        Err(problem) => reading.stop(*problem),
    }
    let directory = reading.bundle.metadata.manifests_dir();
    if directory == ".." || directory.starts_with("../") {
        reading.stop(
            Finding::from_rule(
                &LOC_5,
                format!("annotation {MANIFESTS} names {directory:?}, which is outside the bundle"),
            )
            .file(&reading.bundle.metadata.file)
            .hint("name a directory of the bundle, normally `manifests/`"),
        );
        reading.bundle.tree = tree;
        return reading;
    }
    let files = manifests::read_files(&tree, &directory);
    match media_type::detect(&tree, root, &directory, &files) {
        Ok(media_type) => reading.bundle.media_type = media_type,
        Err(problem) => reading.stop(*problem),
    }
    let loaded = manifests::load(&tree, root, &directory, files);
    if reading.fatal.is_none() {
        reading.fatal = loaded.fatal;
    }
    reading.problems.extend(loaded.problems);
    reading.bundle.name = loaded.name;
    reading.bundle.objects = loaded.objects;
    reading.bundle.manifests_dir = directory;
    reading.bundle.tree = tree;
    reading
}

impl Reading {
    /// Notes a problem at which operator-sdk stops.
    fn stop(&mut self, problem: Finding) {
        self.fatal.get_or_insert_with(|| problem.message.clone());
        self.problems.push(problem);
    }
}

/// The objects of one directory of a tree, as operator-sdk loads it, and its error message otherwise.
pub fn directory(tree: &Tree, root: &str, directory: &str) -> (Vec<Object>, Option<String>) {
    let loaded = manifests::load(tree, root, directory, manifests::read_files(tree, directory));
    let is_missing = directory != "." && tree.entry(directory).is_none();
    let fatal = loaded.fatal.map(|text| match is_missing {
        // Walking a missing path is a separate error.
        true => format!("[invalid file: <nil>, {text}]"),
        false => text,
    });
    (loaded.objects, fatal)
}

/// Reads YAML text into one of the metadata types.
fn typed_yaml(bytes: &[u8], key: &str) -> Result<Value, Box<Finding>> {
    let mut root = yaml::parse(bytes).map_err(|error| manifest::failed(&error))?;
    manifest::infinite_annotations_as_text(&mut root);
    let value = root.to_json().map_err(|error| manifest::failed(&error))?;
    typed(&root, &value, key)
}

/// Reads one of the metadata types from a parsed document. `None` when it does not fit.
pub fn typed_metadata(node: &yaml::Node, key: &str) -> Option<Value> {
    let mut node = node.clone();
    manifest::infinite_annotations_as_text(&mut node);
    decode(&node.to_json().ok()?, key, true).ok()
}

/// The media type of any directory of a tree.
///
/// # Errors
/// The finding if it cannot be determined.
pub fn media_type_of(tree: &Tree, root: &str, directory: &str) -> Result<MediaType, Box<Finding>> {
    media_type::detect(tree, root, directory, &manifests::read_files(tree, directory))
}

fn typed(node: &yaml::Node, value: &Value, key: &str) -> Result<Value, Box<Finding>> {
    typed_noting_conversions(node, value, key).map(|(typed, _)| typed)
}

fn typed_noting_conversions(node: &yaml::Node, value: &Value, key: &str) -> Result<(Value, bool), Box<Finding>> {
    decode_noting_conversions(value, key, true).map_err(|error| Box::new(misfit(node, &error)))
}

/// The finding of a value that does not fit its type.
fn misfit(node: &yaml::Node, error: &DecodeError) -> Finding {
    let message = format!("error unmarshaling JSON: while decoding JSON: {}", error.message);
    let mut problem = Finding::from_rule(&manifests::LOAD_7, message).path(json_path(&error.pointer));
    problem.position = node.pointer(&error.pointer).map(|node| node.start);
    problem
}

/// The path of a bundle directory argument.
pub fn shown_root(argument: &Path) -> PathBuf {
    PathBuf::from(paths::relative_to_working_directory(argument))
}
