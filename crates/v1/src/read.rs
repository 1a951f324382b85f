//! A bundle as OLM v1 reads it. Compared with OLM v0, it accepts more file contents, but fewer field values.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use super::metadata;
use super::modes::InstallModes;
use super::property::{self, Property};
use super::stream::{self, ComparedValues, StreamError, Streamed};
use olmkit_base::object::{SetAt as _, pointer_part};
use olmkit_bundle::load::{self, Entry, PACKAGE, Tree};
use olmkit_go::structs::decode::decode;
use olmkit_go::structs::restore::{RestoreError, restore};
use olmkit_yaml::{self as yaml, Node, Position};

const ANNOTATIONS: &str = "metadata/annotations.yaml";
const PROPERTIES: &str = "metadata/properties.yaml";
const MANIFESTS: &str = "manifests";
/// The annotation that OLM v1 collects the properties in.
const OLM_PROPERTIES: &str = "olm.properties";

/// An object of a bundle.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Object {
    /// The file, relative to the bundle's root.
    pub path: String,
    /// The tree with positions. Shared with other readings of the file.
    pub node: Arc<Node>,
    /// The object: a ClusterServiceVersion or a CRD with the fields of its Go type, any other unchanged.
    pub value: Arc<Value>,
}

impl Object {
    /// The string at a JSON pointer. Empty if there is none.
    #[must_use]
    pub fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// The position of the value at a JSON pointer, or of its nearest existing parent.
    #[must_use]
    pub fn place(&self, pointer: &str) -> Place {
        let mut shorter = pointer;
        let node = loop {
            if let Some(node) = self.node.pointer(shorter) {
                break node;
            }
            match shorter.rsplit_once('/') {
                Some((parent, _)) => shorter = parent,
                None => break &self.node,
            }
        };
        Place {
            file: self.path.clone(),
            position: Some(node.start),
            pointer: pointer.to_owned(),
        }
    }
}

/// Finds many positions of one object: the keys of large mappings are indexed, not searched.
#[derive(Debug)]
pub struct Places<'o> {
    object: &'o Object,
    /// The values of mappings that were large, by the address of the mapping.
    large: HashMap<*const Node, HashMap<Cow<'o, str>, &'o Node>>,
}

impl Object {
    /// For looking up many places.
    #[must_use]
    pub fn places(&self) -> Places<'_> {
        Places {
            object: self,
            large: HashMap::new(),
        }
    }
}

impl<'o> Places<'o> {
    /// As [`Object::place`].
    pub fn find(&mut self, pointer: &str) -> Place {
        let mut node: &'o Node = &self.object.node;
        for token in pointer.split('/').skip(1) {
            match self.below(node, token) {
                Some(inner) => node = inner,
                None => break,
            }
        }
        Place {
            file: self.object.path.clone(),
            position: Some(node.start),
            pointer: pointer.to_owned(),
        }
    }

    fn below(&mut self, node: &'o Node, token: &str) -> Option<&'o Node> {
        /// From this number of entries on, an index is faster than the search.
        const LARGE: usize = 32;
        let token = token.replace("~1", "/").replace("~0", "~");
        if !node.items().is_empty() {
            return node.items().get(token.parse::<usize>().ok()?);
        }
        if node.entries().len() < LARGE {
            return node.get(&token);
        }
        let index = self.large.entry(std::ptr::from_ref(node)).or_insert_with(|| {
            let mut index = HashMap::new();
            for (key, value) in node.entries() {
                if let Some(key) = key.key() {
                    index.entry(key).or_insert(value);
                }
            }
            index
        });
        index.get(token.as_str()).copied()
    }
}

/// Position in a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file, relative to the bundle's root.
    pub file: String,
    /// Line and column.
    pub position: Option<Position>,
    /// JSON pointer inside the object.
    pub pointer: String,
}

/// Why OLM v1 cannot read a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ReadError {
    /// OLM v1's message.
    pub message: String,
    /// Position of the error.
    pub place: Place,
}

/// Reader of the objects in a file.
type ReadObjects<'a> = dyn Fn(&str, &[u8]) -> Result<Vec<Streamed>, StreamError> + 'a;

/// A bundle as OLM v1 reads it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Bundle {
    /// The package, from the annotations.
    pub package: String,
    /// The ClusterServiceVersion. The last one, if there are several.
    pub csv: Object,
    /// The definitions.
    pub definitions: Vec<Object>,
    /// Everything else.
    pub others: Vec<Object>,
    /// The facts in `metadata/` that do not concern OLM v1, each a sentence.
    pub metadata: BTreeSet<String>,
}

impl Bundle {
    /// Reads a bundle.
    ///
    /// # Errors
    /// The first problem that OLM v1 meets.
    pub fn read(tree: &Tree) -> Result<Self, ReadError> {
        Self::read_files(tree, &stream::objects)
    }

    /// Reads a bundle to compare it with another one.
    ///
    /// # Errors
    /// As [`Bundle::read`], or all files together have more than [`COMPARED_VALUES`](crate::limits::COMPARED_VALUES).
    pub fn read_to_compare(tree: &Tree) -> Result<Self, ReadError> {
        let values = ComparedValues::default();
        Self::read_files(tree, &|path, bytes| stream::objects_within(path, bytes, Some(&values)))
    }

    /// Reads a bundle that the other loader has read: documents that both parse equally are not parsed again.
    ///
    /// # Errors
    /// As [`Bundle::read`].
    pub fn from_loaded(loaded: &load::Bundle) -> Result<Self, ReadError> {
        let parsed: HashMap<&str, _> = loaded.objects.iter().map(|object| (&*object.path, object)).collect();
        Self::read_files(&loaded.tree, &|path, bytes| {
            let object = parsed.get(path).filter(|_| stream::is_one_document(bytes));
            match object {
                Some(object) => stream::objects_of(
                    path,
                    Streamed {
                        value: Arc::clone(&object.value),
                        node: Arc::clone(&object.node),
                    },
                ),
                None => stream::objects(path, bytes),
            }
        })
    }

    fn read_files(tree: &Tree, objects: &ReadObjects<'_>) -> Result<Self, ReadError> {
        let package = package(tree)?;
        let (mut csv, mut definitions, mut others) = (None, Vec::new(), Vec::new());
        for (path, bytes) in manifests(tree)? {
            let in_file = |message: String, place: Place| ReadError {
                message: format!("error parsing objects in \"{path}\": {message}"),
                place,
            };
            let streamed = objects(&path, bytes).map_err(|error| {
                let place = Place {
                    file: path.clone(),
                    position: error.position,
                    pointer: String::new(),
                };
                in_file(error.message, place)
            })?;
            for object in streamed {
                let mut object = Object {
                    path: path.clone(),
                    node: object.node,
                    value: object.value,
                };
                let key = match object.kind() {
                    "ClusterServiceVersion" => "ClusterServiceVersion",
                    "CustomResourceDefinition" => "v1.CustomResourceDefinition",
                    _ => {
                        others.push(object);
                        continue;
                    }
                };
                let restored = restore(&object.value, key)
                    .map_err(|RestoreError { message, pointer, .. }| in_file(message, object.place(&pointer)))?;
                object.value = Arc::new(restored);
                if key == "ClusterServiceVersion" {
                    csv = Some(object);
                } else {
                    definitions.push(object);
                }
            }
        }
        let mut csv = csv.ok_or_else(|| ReadError {
            message: "no ClusterServiceVersion found in \"manifests\"".to_owned(),
            place: Place {
                file: MANIFESTS.to_owned(),
                ..Place::default()
            },
        })?;
        collect_properties(&mut csv, tree)?;
        Ok(Self {
            package,
            csv,
            definitions,
            others,
            metadata: metadata::facts(tree),
        })
    }

    /// The install modes that the operator supports.
    #[must_use]
    pub fn install_modes(&self) -> InstallModes {
        InstallModes::from_csv(&self.csv.value)
    }
}

/// The definitions of a file, for a comparison.
///
/// # Errors
/// It cannot be read, contains a CRD that does not fit its type, or more values than may still be compared.
pub fn definitions(path: &str, bytes: &[u8], values: &ComparedValues) -> Result<Vec<Object>, ReadError> {
    let streamed = stream::objects_within(path, bytes, Some(values)).map_err(|error| ReadError {
        message: error.message,
        place: Place {
            file: path.to_owned(),
            position: error.position,
            pointer: String::new(),
        },
    })?;
    let mut definitions = Vec::new();
    for object in streamed {
        let mut object = Object {
            path: path.to_owned(),
            node: object.node,
            value: object.value,
        };
        if object.kind() != "CustomResourceDefinition" {
            continue;
        }
        let restored = restore(&object.value, "v1.CustomResourceDefinition").map_err(|error| ReadError {
            place: object.place(&error.pointer),
            message: error.message,
        })?;
        object.value = Arc::new(restored);
        definitions.push(object);
    }
    Ok(definitions)
}

/// A file that cannot be used.
fn at_file(file: &str, message: String) -> ReadError {
    ReadError {
        message,
        place: Place {
            file: file.to_owned(),
            ..Place::default()
        },
    }
}

fn package(tree: &Tree) -> Result<String, ReadError> {
    let bytes = match tree.entry(ANNOTATIONS) {
        Some(Entry::File(bytes)) => bytes,
        Some(Entry::Directory | Entry::LinkedDirectory) => {
            return Err(at_file(ANNOTATIONS, format!("read {ANNOTATIONS}: is a directory")));
        }
        Some(Entry::Unreadable(reason)) => return Err(at_file(ANNOTATIONS, format!("open {ANNOTATIONS}: {reason}"))),
        None => {
            let message = format!("open {ANNOTATIONS}: no such file or directory");
            return Err(at_file(ANNOTATIONS, message));
        }
    };
    let decoded = typed_yaml(ANNOTATIONS, bytes, "AnnotationsFile")?;
    let package = decoded
        .get("annotations")
        .and_then(|annotations| annotations.get(PACKAGE));
    Ok(package.and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// A metadata file as `sigs.k8s.io/yaml` reads it into a Go type.
fn typed_yaml(file: &str, bytes: &[u8], key: &str) -> Result<Value, ReadError> {
    let failed = |error: yaml::Error| ReadError {
        message: match &error {
            yaml::Error::Convert(_) | yaml::Error::Unmarshal(_) => error.to_string(),
            _ => format!("error converting YAML to JSON: {error}"),
        },
        place: Place {
            file: file.to_owned(),
            position: error.position(),
            pointer: String::new(),
        },
    };
    let node = yaml::parse(bytes).map_err(failed)?;
    let value = node.to_json().map_err(failed)?;
    decode(&value, key, true).map_err(|error| ReadError {
        message: format!("error unmarshaling JSON: while decoding JSON: {}", error.message),
        place: Place {
            file: file.to_owned(),
            position: node.pointer(&error.pointer).map(|node| node.start),
            pointer: error.pointer,
        },
    })
}

/// The files of the manifests directory, in the order of their names. It may not contain directories.
fn manifests(tree: &Tree) -> Result<Vec<(String, &[u8])>, ReadError> {
    if !tree.is_directory(MANIFESTS) {
        let message = "stat manifests: no such file or directory".to_owned();
        return Err(at_file(MANIFESTS, message));
    }
    let mut files = Vec::new();
    for (name, entry) in tree.children(MANIFESTS) {
        let path = format!("{MANIFESTS}/{name}");
        match entry {
            Entry::File(bytes) => files.push((path, bytes.as_slice())),
            Entry::Directory => {
                let message = format!(
                    "subdirectories are not allowed within the \"{MANIFESTS}\" directory of the bundle image filesystem: found \
                     \"{path}\""
                );
                // Files before it are read first, and may fail first.
                if let Some(error) = first_failure(&files) {
                    return Err(error);
                }
                return Err(at_file(&path, message));
            }
            Entry::LinkedDirectory => return Err(at_file(&path, format!("read {path}: is a directory"))),
            Entry::Unreadable(reason) => return Err(at_file(&path, format!("open {path}: {reason}"))),
        }
    }
    Ok(files)
}

fn first_failure(files: &[(String, &[u8])]) -> Option<ReadError> {
    let mut tree = Tree::from_files(files.iter().map(|(path, bytes)| (path, bytes.to_vec())));
    let annotations = format!("annotations:\n  {PACKAGE}: any\n");
    tree.insert(ANNOTATIONS, annotations.into_bytes());
    let error = Bundle::read(&tree).err()?;
    error.message.starts_with("error parsing").then_some(error)
}

/// Adds the properties of `metadata/properties.yaml` to those in the annotation of the ClusterServiceVersion.
fn collect_properties(csv: &mut Object, tree: &Tree) -> Result<(), ReadError> {
    let pointer = format!("/metadata/annotations/{}", pointer_part(OLM_PROPERTIES));
    let mut all = Vec::new();
    if let Some(text) = csv.value.pointer(&pointer).and_then(Value::as_str) {
        let properties = property::parse(text).map_err(|message| ReadError {
            message: format!("failed to unmarshal csv.metadata.annotations['olm.properties']: {message}"),
            place: csv.place(&pointer),
        })?;
        all.extend(properties);
    }
    let bytes = match tree.entry(PROPERTIES) {
        None => return Ok(()),
        Some(Entry::File(bytes)) => bytes,
        Some(Entry::Unreadable(reason)) => {
            let message = format!("failed to read properties.yaml file: open {PROPERTIES}: {reason}");
            return Err(at_file(PROPERTIES, message));
        }
        Some(_) => {
            let message = format!("failed to read properties.yaml file: read {PROPERTIES}: is a directory");
            return Err(at_file(PROPERTIES, message));
        }
    };
    if bytes.is_empty() {
        return Ok(());
    }
    let refused = |error: ReadError| ReadError {
        message: format!("failed to unmarshal metadata/properties.yaml: {}", error.message),
        ..error
    };
    let file = typed_yaml(PROPERTIES, bytes, "PropertiesFile").map_err(refused)?;
    let list = file.get("properties").and_then(Value::as_array);
    for (at, property) in list.into_iter().flatten().enumerate() {
        let property = property::property(property).map_err(|message| {
            let message = format!("error unmarshaling JSON: while decoding JSON: {message}");
            let mut error = at_file(PROPERTIES, message);
            let node = yaml::parse(bytes).ok();
            let node = node
                .as_ref()
                .and_then(|node| node.pointer(&format!("/properties/{at}")));
            error.place.position = node.map(|node| node.start);
            refused(error)
        })?;
        all.push(property);
    }
    let text = if all.is_empty() {
        "null".to_owned()
    } else {
        let texts: Vec<String> = all.iter().map(Property::json).collect();
        format!("[{}]", texts.join(","))
    };
    Arc::make_mut(&mut csv.value).set_at(&["metadata", "annotations", OLM_PROPERTIES], json!(text));
    Ok(())
}
