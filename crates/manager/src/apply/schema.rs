//! The structure of kinds, as the API server's OpenAPI documents describe it: list keys, atomic fields, defaults, quantities.
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper::Request;
use kube::{Client, api::ApiResource};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    document::{self, Document},
    error::Error,
};

/// Documents are reloaded after this time, and only before a write. A CRD may have changed.
const MAX_AGE: Duration = Duration::from_secs(60);

/// A kind that no document describes is looked for again after this time. The API server can serve the kind of a CRD before it
/// describes it.
const ABSENT_AGE: Duration = Duration::from_secs(5);

/// A reference deeper than this is treated as a field without a schema. No kind of Kubernetes comes near.
const MAX_DEPTH: usize = 64;

/// The schema of one kind: an arena of nodes. A field without a node is a plain scalar, or has no schema.
#[derive(Debug, Default)]
pub struct Schema {
    nodes: Vec<Node>,
    root: Option<usize>,
    /// True if the kind has a `status` subresource, so that an apply of the object ignores its status.
    pub has_status: bool,
    /// The names of the status' fields. `None` if all names are allowed.
    pub status_fields: Option<BTreeSet<String>>,
}

/// The facts about one field that the comparison needs.
#[derive(Debug, Default)]
pub struct Node {
    pub kind: Kind,
    pub default: Option<Value>,
    pub nullable: bool,
}

/// How values of a field are merged and compared.
#[derive(Debug, Default)]
pub enum Kind {
    /// Compared as JSON. Maps are merged, lists are one value: as server-side apply treats what has no schema.
    #[default]
    Plain,
    /// A quantity of a built-in kind, which the API server stores in its shortest form.
    Quantity,
    /// A time of a built-in kind, which the API server stores in UTC.
    Time,
    /// A map or an object.
    Map {
        /// One value instead of one per field.
        atomic: bool,
        fields: BTreeMap<Box<str>, usize>,
        /// Of all other keys.
        rest: Option<usize>,
        /// True if keys beyond `fields` are declared: then an additional key is content.
        open: bool,
    },
    /// A list.
    List { merge: Merge, item: Option<usize> },
}

/// How a list is merged.
#[derive(Debug, Default, PartialEq)]
pub enum Merge {
    /// It is one value.
    #[default]
    Atomic,
    /// Its entries are a set of scalars.
    Set,
    /// Its entries have these fields as key.
    Keyed(Vec<String>),
}

impl Schema {
    /// Returns false if no document describes the kind, or none does yet.
    pub fn is_described(&self) -> bool {
        self.root.is_some()
    }

    /// The node of the object.
    pub fn root(&self) -> Option<&Node> {
        self.node(self.root?)
    }

    pub fn node(&self, index: usize) -> Option<&Node> {
        self.nodes.get(index)
    }

    /// The node of the field `name` of an object with this node.
    pub fn field<'s>(&'s self, node: Option<&'s Node>, name: &str) -> Option<&'s Node> {
        match &node?.kind {
            Kind::Map { fields, rest, .. } => self.node(fields.get(name).copied().or(*rest)?),
            _ => None,
        }
    }

    /// Returns true if an object with this node cannot have the field `name`.
    pub fn rejects(&self, node: Option<&Node>, name: &str) -> bool {
        let is_closed = node.is_some_and(|node| matches!(node.kind, Kind::Map { open: false, .. }));
        is_closed && self.field(node, name).is_none()
    }

    /// The node of the entries of a list with this node.
    pub fn item<'s>(&'s self, node: Option<&'s Node>) -> Option<&'s Node> {
        match &node?.kind {
            Kind::List { item, .. } => self.node((*item)?),
            _ => None,
        }
    }

    /// The node at a path of field names.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().fold(self.root(), |node, name| self.field(node, name))
    }

    /// The key of an entry of a keyed list. A missing part has its default.
    pub fn key(&self, item: Option<&Node>, names: &[String], entry: &Value) -> Map<String, Value> {
        let part = |name: &String| {
            let value = entry.get(name).filter(|value| !value.is_null());
            let default = || self.field(item, name).and_then(|node| node.default.as_ref());
            Some((name.clone(), value.or_else(default)?.clone()))
        };
        names.iter().filter_map(part).collect()
    }
}

/// A part of an OpenAPI v3 document. The parts in lists and maps are boxed, as these have room for several entries, and most have one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Raw {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "allOf")]
    #[allow(clippy::vec_box)]
    all_of: Vec<Box<Raw>>,
    #[serde(rename = "type")]
    kind: Option<String>,
    format: Option<String>,
    properties: BTreeMap<String, Box<Raw>>,
    items: Option<Box<Raw>>,
    #[serde(rename = "additionalProperties")]
    additional: Option<Additional>,
    default: Option<Value>,
    nullable: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    list_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-map-type")]
    map_type: Option<String>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    preserve: bool,
    #[serde(rename = "x-kubernetes-group-version-kind")]
    kinds: Vec<GroupVersionKind>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Additional {
    Schema(Box<Raw>),
    Allowed(bool),
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct GroupVersionKind {
    group: String,
    version: String,
    kind: String,
}

const PREFIX: &str = "#/components/schemas/";

/// The definition `name`. `None` if there is none, or it is malformed.
fn definition(definitions: &HashMap<String, String>, name: &str) -> Option<Raw> {
    serde_json::from_str(definitions.get(name)?).ok()
}

impl Document {
    fn schema(&self, resource: &ApiResource) -> Schema {
        #[derive(Deserialize)]
        struct Named {
            #[serde(rename = "x-kubernetes-group-version-kind", default)]
            kinds: Vec<GroupVersionKind>,
        }
        let wanted = GroupVersionKind {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
        };
        let schemas = &self.definitions;
        let is_wanted =
            |text: &str| serde_json::from_str::<Named>(text).is_ok_and(|named| named.kinds.contains(&wanted));
        let Some((name, _)) = schemas.iter().find(|(_, text)| is_wanted(text)) else {
            return Schema::default();
        };
        let mut builder = Builder {
            schemas,
            nodes: Vec::new(),
            known: HashMap::new(),
        };
        let root = builder.named(name, 0);
        let suffix = format!("/{}/{{name}}/status", resource.plural);
        let mut nodes = builder.nodes;
        nodes.shrink_to_fit();
        Schema {
            nodes,
            root,
            has_status: self.status_paths.iter().any(|path| path.ends_with(&suffix)),
            status_fields: self.status_fields(name),
        }
    }

    fn status_fields(&self, name: &str) -> Option<BTreeSet<String>> {
        let schemas = &self.definitions;
        let mut status = definition(schemas, name)?.properties.remove("status")?;
        let referred = status
            .reference
            .as_deref()
            .or_else(|| status.all_of.first()?.reference.as_deref());
        if let Some(name) = referred.and_then(|reference| reference.strip_prefix(PREFIX)) {
            status = Box::new(definition(schemas, name)?);
        }
        let open = status.preserve || !matches!(status.additional, None | Some(Additional::Allowed(false)));
        (!open).then(|| status.properties.into_keys().collect())
    }
}

struct Builder<'d> {
    schemas: &'d HashMap<String, String>,
    nodes: Vec<Node>,
    /// Nodes of definitions, by name. `None` for those that need none.
    known: HashMap<String, Option<usize>>,
}

impl Builder<'_> {
    /// The node of a definition.
    fn named(&mut self, name: &str, depth: usize) -> Option<usize> {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let raw = &definition(self.schemas, name)?;
        let last = name.rsplit('.').next().unwrap_or(name);
        let builtin = name.starts_with("io.k8s.apimachinery.");
        let scalar = match last {
            "Quantity" if builtin => Some(Kind::Quantity),
            "Time" | "MicroTime" if builtin => Some(Kind::Time),
            _ => None,
        };
        if let Some(kind) = scalar {
            let node = self.push(Node {
                kind,
                ..Node::default()
            });
            self.known.insert(name.to_owned(), Some(node));
            return Some(node);
        }
        if raw.properties.is_empty() && raw.additional.is_none() && raw.items.is_none() {
            let node = self.build(raw, depth);
            self.known.insert(name.to_owned(), node);
            return node;
        }
        // Reserved first: a definition may refer to itself.
        let node = self.push(Node::default());
        self.known.insert(name.to_owned(), Some(node));
        let built = self.content(raw, depth);
        if let Some(place) = self.nodes.get_mut(node) {
            *place = built;
        }
        Some(node)
    }

    fn push(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The node of a field, `None` for a plain scalar.
    fn build(&mut self, raw: &Raw, depth: usize) -> Option<usize> {
        if depth > MAX_DEPTH {
            return None;
        }
        let referred = raw.reference.as_deref().or(match raw.all_of.as_slice() {
            [inner] => inner.reference.as_deref(),
            _ => None,
        });
        if let Some(name) = referred.and_then(|reference| reference.strip_prefix(PREFIX)) {
            let node = self.named(name, depth + 1);
            let overrides = raw.nullable || raw.map_type.is_some() || meaningful(raw.default.as_ref());
            if !overrides {
                return node;
            }
            // The same with what this field adds.
            let mut own = match node.and_then(|node| self.nodes.get(node)) {
                Some(Node {
                    kind: Kind::Quantity, ..
                }) => Node {
                    kind: Kind::Quantity,
                    ..Node::default()
                },
                Some(Node { kind: Kind::Time, .. }) => Node {
                    kind: Kind::Time,
                    ..Node::default()
                },
                Some(Node {
                    kind:
                        Kind::Map {
                            atomic,
                            fields,
                            rest,
                            open,
                        },
                    ..
                }) => Node {
                    kind: Kind::Map {
                        atomic: *atomic,
                        fields: fields.clone(),
                        rest: *rest,
                        open: *open,
                    },
                    ..Node::default()
                },
                _ => Node::default(),
            };
            if let (Kind::Map { atomic, .. }, Some(map_type)) = (&mut own.kind, raw.map_type.as_deref()) {
                *atomic = map_type == "atomic";
            }
            own.nullable = raw.nullable;
            own.default.clone_from(&raw.default);
            return Some(self.push(own));
        }
        let node = self.content(raw, depth);
        let plain = matches!(node.kind, Kind::Plain) && !node.nullable && node.default.is_none();
        (!plain).then(|| self.push(node))
    }

    fn content(&mut self, raw: &Raw, depth: usize) -> Node {
        let kind = match raw.kind.as_deref() {
            Some("array") => Kind::List {
                merge: match raw.list_type.as_deref() {
                    Some("set") => Merge::Set,
                    Some("map") if !raw.list_keys.is_empty() => Merge::Keyed(raw.list_keys.clone()),
                    _ => Merge::Atomic,
                },
                item: raw.items.as_deref().and_then(|items| self.build(items, depth + 1)),
            },
            Some("object") => {
                let additional = match &raw.additional {
                    Some(Additional::Schema(schema)) => Some(schema.as_ref()),
                    _ => None,
                };
                let open = raw.preserve || !matches!(raw.additional, None | Some(Additional::Allowed(false)));
                if raw.properties.is_empty() && additional.is_none() && raw.map_type.is_none() && !open {
                    Kind::Plain
                } else {
                    let mut fields = BTreeMap::new();
                    for (name, field) in &raw.properties {
                        if let Some(node) = self.build(field, depth + 1) {
                            fields.insert(name.as_str().into(), node);
                        }
                    }
                    Kind::Map {
                        atomic: raw.map_type.as_deref() == Some("atomic"),
                        fields,
                        rest: additional.and_then(|schema| self.build(schema, depth + 1)),
                        open,
                    }
                }
            }
            _ => Kind::Plain,
        };
        Node {
            kind,
            default: raw.default.clone(),
            nullable: raw.nullable,
        }
    }
}

/// Documents give each struct the default `{}`, which is none.
fn meaningful(default: Option<&Value>) -> bool {
    default.is_some_and(|default| default.as_object().is_none_or(|map| !map.is_empty()))
}

/// The schemas of an API server, loaded when they are first needed. Clones share them.
#[derive(Clone)]
pub struct Schemas {
    client: Client,
    known: Arc<Mutex<HashMap<(String, String), CachedSchema>>>,
    /// One request at a time.
    loading: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone)]
struct CachedSchema {
    schema: Arc<Schema>,
    at: Instant,
    hash: String,
}

/// The list of all documents.
const INDEX: &str = "/openapi/v3";

#[derive(Default, Deserialize)]
struct Index {
    #[serde(default)]
    paths: HashMap<String, IndexEntry>,
}

impl Index {
    /// The URL of a document with the hash of its content. Empty if there is none.
    fn url(&self, path: &str) -> String {
        self.paths.get(path).map(|entry| entry.url.clone()).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct IndexEntry {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

impl Schemas {
    pub fn new(client: Client) -> Self {
        Self {
            client,
            known: Arc::default(),
            loading: Arc::default(),
        }
    }

    /// The schema of a kind. A kind that the API server does not describe has an empty one.
    pub async fn get(&self, resource: &ApiResource) -> Result<Arc<Schema>, Error> {
        if let Some(known) = self.known(resource) {
            return Ok(known.schema);
        }
        self.load_all(&[resource]).await?;
        Ok(self.known(resource).map(|known| known.schema).unwrap_or_default())
    }

    /// As [`get`](Self::get), but no older than a minute.
    pub async fn fresh(&self, resource: &ApiResource) -> Result<Arc<Schema>, Error> {
        if let Some(known) = self.recent(resource) {
            return Ok(known.schema);
        }
        let _one = self.loading.lock().await;
        match self.recent(resource) {
            Some(known) => Ok(known.schema),
            None => self.load(resource, self.known(resource)).await,
        }
    }

    /// Returns true if [`fresh`](Self::fresh) has the answer without a request.
    pub fn is_fresh(&self, resource: &ApiResource) -> bool {
        self.recent(resource).is_some()
    }

    fn recent(&self, resource: &ApiResource) -> Option<CachedSchema> {
        self.known(resource).filter(|known| known.at.elapsed() < MAX_AGE)
    }

    fn known(&self, resource: &ApiResource) -> Option<CachedSchema> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&key(resource));
        known
            .filter(|known| known.schema.is_described() || known.at.elapsed() < ABSENT_AGE)
            .cloned()
    }

    /// Loads the schemas of kinds that are not known. Kinds of one group and version share a document.
    pub async fn load_all(&self, resources: &[&ApiResource]) -> Result<(), Error> {
        let _one = self.loading.lock().await;
        let mut by_path: BTreeMap<String, Vec<&ApiResource>> = BTreeMap::new();
        for resource in resources.iter().filter(|resource| self.known(resource).is_none()) {
            by_path.entry(path(resource)).or_default().push(resource);
        }
        if by_path.is_empty() {
            return Ok(());
        }
        let index = self.index().await?;
        for (path, resources) in by_path {
            let url = index.url(&path);
            let document = self.document(&url).await?;
            for resource in resources {
                let schema = document.as_ref().map(|document| Arc::new(document.schema(resource)));
                self.note(resource, schema.unwrap_or_default(), url.clone());
            }
        }
        Ok(())
    }

    async fn load(&self, resource: &ApiResource, before: Option<CachedSchema>) -> Result<Arc<Schema>, Error> {
        let url = self.index().await?.url(&path(resource));
        let schema = match before {
            Some(known) if known.hash == url => known.schema,
            _ => match self.document(&url).await? {
                Some(document) => Arc::new(document.schema(resource)),
                None => Arc::default(),
            },
        };
        self.note(resource, Arc::clone(&schema), url);
        Ok(schema)
    }

    async fn index(&self) -> Result<Index, Error> {
        let request = Request::get(INDEX)
            .body(Vec::new())
            .map_err(|error| Error::bug(error.to_string()))?;
        Ok(found(INDEX, self.client.request(request).await)?.unwrap_or_default())
    }

    /// The document at a URL of the index. `None` without a URL, or if the API server has none.
    async fn document(&self, url: &str) -> Result<Option<Document>, Error> {
        if url.is_empty() {
            return Ok(None);
        }
        // With a hash that has just become old, the API server redirects.
        let (document, _) = url.split_once('?').unwrap_or((url, ""));
        found(document, document::read(&self.client, document).await)
    }

    fn note(&self, resource: &ApiResource, schema: Arc<Schema>, hash: String) {
        let at = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key(resource), CachedSchema { schema, at, hash });
    }
}

/// The name of the document with a kind.
fn path(resource: &ApiResource) -> String {
    match resource.group.as_str() {
        "" => format!("api/{}", resource.version),
        group => format!("apis/{group}/{}", resource.version),
    }
}

/// A document. `None` if the API server has none, or does not let the operator read it.
fn found<T>(url: &str, answer: Result<T, kube::Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(document) => Ok(Some(document)),
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404 | 406) => Ok(None),
        Err(error) => Err(Error::request(format!("read {url}"), error)),
    }
}

fn key(resource: &ApiResource) -> (String, String) {
    (resource.api_version.clone(), resource.kind.clone())
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    fn read(document: &Value) -> Document {
        let mut reader = document::Reader::default();
        reader.feed(document.to_string().as_bytes()).unwrap();
        reader.document
    }

    /// The schema of a kind `Test` with these properties.
    pub fn schema(properties: &Value) -> Schema {
        let document = json!({
            "paths": { "/apis/example.com/v1/namespaces/{namespace}/tests/{name}/status": {} },
            "components": { "schemas": {
                "com.example.Test": {
                    "type": "object",
                    "properties": properties,
                    "x-kubernetes-group-version-kind": [{ "group": "example.com", "version": "v1", "kind": "Test" }],
                },
                "io.k8s.apimachinery.pkg.api.resource.Quantity": { "oneOf": [{ "type": "string" }, { "type": "number" }] },
                "io.k8s.apimachinery.pkg.apis.meta.v1.Time": { "type": "string", "format": "date-time" },
                "com.example.Tree": {
                    "type": "object",
                    "properties": { "children": { "type": "array", "items": { "$ref": "#/components/schemas/com.example.Tree" } } },
                },
            } },
        });
        let document = read(&document);
        let resource = ApiResource {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            api_version: "example.com/v1".to_owned(),
            kind: "Test".to_owned(),
            plural: "tests".to_owned(),
        };
        document.schema(&resource)
    }

    #[test]
    fn recursive_definitions_and_unknown_kinds_are_read() {
        let tree = schema(&json!({ "tree": { "$ref": "#/components/schemas/com.example.Tree" } }));
        assert!(tree.has_status);
        let children = tree.at(&["tree", "children"]).unwrap();
        let inner = tree.field(tree.item(Some(children)), "children").unwrap();
        assert!(matches!(
            inner.kind,
            Kind::List {
                merge: Merge::Atomic,
                ..
            }
        ));
        let document = read(&json!({}));
        let other = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "Other".to_owned(),
            plural: "others".to_owned(),
        };
        assert!(document.schema(&other).root().is_none());
    }
}
