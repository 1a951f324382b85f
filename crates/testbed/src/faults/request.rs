//! Parses the verb and resource of a request.
use std::time::Instant;

use http::{Method, Uri};

/// Verb of a request, as in the API server's audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Lists objects.
    List,
    /// Watches objects.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Patches an object.
    Patch,
    /// Deletes one object or several.
    Delete,
}

impl Verb {
    /// The verbs that write.
    pub const WRITES: [Self; 4] = [Self::Create, Self::Update, Self::Patch, Self::Delete];

    /// Returns true if it writes.
    pub fn is_write(self) -> bool {
        Self::WRITES.contains(&self)
    }
}

/// A request that passed the proxy, or met a fault there.
#[derive(Debug, Clone)]
pub struct ProxiedRequest {
    /// Its verb.
    pub verb: Verb,
    /// Plural name of the resource, and the subresource: `memcacheds/status`. Empty for other paths.
    pub resource: String,
    /// Namespace. Empty for cluster-wide requests.
    pub namespace: String,
    /// Name. Empty for lists, watches and creations.
    pub name: String,
    /// True for a dry run, which stores nothing.
    pub dry_run: bool,
    /// When it arrived.
    pub at: Instant,
    /// The body.
    pub body: Vec<u8>,
    /// The server's answer, or the proxy's, and its time.
    pub answer: Option<(u16, Instant)>,
}

impl ProxiedRequest {
    /// Reads method and path.
    pub(crate) fn new(method: &Method, uri: &Uri, body: Vec<u8>) -> Self {
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        let grouped = parts.next() == Some("apis");
        // The version, after the group.
        for _ in 0..if grouped { 2 } else { 1 } {
            parts.next();
        }
        let mut rest: Vec<&str> = parts.collect();
        let mut namespace = "";
        if let ["namespaces", name, _, ..] = rest.as_slice() {
            namespace = name;
            rest.drain(..2);
        }
        let (resource, name, subresource) = match rest.as_slice() {
            [resource] => (*resource, "", ""),
            [resource, name] => (*resource, *name, ""),
            [resource, name, subresource, ..] => (*resource, *name, *subresource),
            [] => ("", "", ""),
        };
        let asks = |wanted: &[&str]| {
            let mut parts = uri.query().unwrap_or_default().split('&');
            parts.any(|part| wanted.contains(&part))
        };
        let watches = asks(&["watch=true", "watch=1"]);
        let verb = match *method {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ if watches => Verb::Watch,
            _ if name.is_empty() => Verb::List,
            _ => Verb::Get,
        };
        let resource = match subresource {
            "" => resource.to_owned(),
            subresource => format!("{resource}/{subresource}"),
        };
        Self {
            verb,
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            dry_run: asks(&["dryRun=All"]),
            at: Instant::now(),
            body,
            answer: None,
        }
    }
}
