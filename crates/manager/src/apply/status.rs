//! Writes the status of an object where it differs.
use std::{collections::BTreeSet, time::Duration};

use kube::api::{ApiResource, Patch};
use serde_json::{Map, Value, json};

use super::{
    Applier, Conflict,
    compare::differences,
    error::Error,
    fields::{Fields, Owner},
    kind_of,
    prepare::hash,
    target::Target,
};
use crate::ObjectKey;

/// The fields of a kind's status.
pub struct StatusFields {
    /// The kind has a status that is written separately.
    pub exists: bool,
    /// `None` if all names are allowed.
    pub names: Option<BTreeSet<String>>,
    /// Conditions are merged by type, so those of other clients need no repetition.
    pub keyed_conditions: bool,
}

impl StatusFields {
    pub fn has(&self, name: &str) -> bool {
        self.exists && self.names.as_ref().is_none_or(|names| names.contains(name))
    }
}

/// The change that a status write made.
pub enum StatusChange {
    /// It is as desired.
    Unchanged,
    /// The object as the API server has it now.
    Written(Value),
    /// Another client writes it too: nothing was written.
    Conflict(Conflict),
}

impl Applier {
    pub(crate) async fn status_fields(&self, resource: &ApiResource) -> Result<StatusFields, Error> {
        let schema = self.schemas.get(resource).await?;
        let conditions = schema.at(&["status", "conditions"]).map(|node| &node.kind);
        Ok(StatusFields {
            // Most kinds have one. If the kind is not described, the write shows it.
            exists: schema.has_status || !schema.is_described(),
            names: schema.status_fields.clone(),
            keyed_conditions: matches!(
                conditions,
                Some(super::schema::Kind::List {
                    merge: super::schema::Merge::Keyed(_),
                    ..
                })
            ),
        })
    }

    /// The fields of the object's status that this field manager has written.
    pub(crate) fn own_status(&self, object: &Value) -> Map<String, Value> {
        let Some(Value::Object(status)) = object.get("status") else {
            return Map::new();
        };
        let own = Owner::of_status(object, &self.manager);
        let own = own.as_ref().and_then(|own| own.fields.get("f:status"));
        let mut status = status.clone();
        // Without owners, as some tools leave it, all fields are taken for own ones.
        if !Owner::are_unknown(object) {
            status.retain(|name, _| own.is_some_and(|own| own.get(&format!("f:{name}")).is_some()));
        }
        status
    }

    /// Makes the status of `object` as desired.
    pub(crate) async fn apply_status(
        &self,
        resource: &ApiResource,
        object: &Value,
        status: Map<String, Value>,
    ) -> Result<StatusChange, Error> {
        let target = Target::of(self, resource, object)?;
        let schema = self.schemas.get(resource).await?;
        static NONE: Fields = Fields::none();
        let own = Owner::of_status(object, &self.manager);
        let owned = own.as_ref().map_or(&NONE, |own| &own.fields);
        let owned = (!Owner::are_unknown(object)).then_some(owned);
        let body = json!({ "status": status });
        let live = json!({ "status": object.get("status").cloned().unwrap_or_else(|| json!({})) });
        let found = differences(&schema, &body, &live, owned);
        let Some(first) = found.first() else {
            return Ok(StatusChange::Unchanged);
        };
        // Another client has changed what this one wrote last.
        let place = place(resource);
        let memory = self.memories.get(&place, &target.key);
        let digest = |object: &Value| Some(hash(&object.get("status")));
        let has_changed = memory.is_about(object) && memory.left != digest(object);
        let changed = has_changed.then(|| memory.desired()).flatten().and_then(|last| {
            let found = differences(&schema, &last, &live, None).into_iter().next()?;
            let owners = Owner::all(object);
            let is_other = |owner: &&Owner| Some(*owner) != own.as_ref() && owner.fields.contains(&found.path);
            let other = Owner::latest(owners.iter().filter(is_other));
            let manager = other.map_or_else(|| format!("{} (another process)", self.manager), Owner::name);
            Some((found.path.to_string(), manager))
        });
        if let Some((field, manager)) = &changed
            && let Some(retry_after) = memory.contest_delay(field)
        {
            let conflict = Conflict {
                field: field.clone(),
                manager: manager.clone(),
                new: false,
                retry_after,
            };
            return Ok(StatusChange::Conflict(conflict));
        }
        tracing::debug!(field = %first.path, "status differs");
        let desired = body.to_string();
        // They would use memory while the request waits.
        drop((body, live, found, own));
        let answer = match patch_status(&target, object, &status).await {
            // The kind has no status after all, or the object no longer exists.
            Err(kube::Error::Api(status)) if status.code == 404 && !schema.is_described() => {
                return Ok(StatusChange::Unchanged);
            }
            answer => {
                answer.map_err(|error| Error::request(format!("write the status of {}", target.describe()), error))?
            }
        };
        let compressed = self.memories.compress(&place, &desired);
        let pause = self.memories.change(&place, &target.key, |memory| {
            memory.left = digest(&answer);
            // The hash is not read: statuses are compared by their fields.
            memory.applied(0, compressed, object, &[], None);
            let (field, manager) = changed.as_ref()?;
            memory.reverted(field, manager)
        });
        if let (Some((field, manager)), Some(retry_after)) = (changed, pause) {
            let conflict = Conflict {
                field,
                manager,
                new: true,
                retry_after: retry_after.max(Duration::from_secs(1)),
            };
            return Ok(StatusChange::Conflict(conflict));
        }
        Ok(StatusChange::Written(answer))
    }

    /// Frees the memory about the status of a deleted object.
    pub(crate) fn forget_status(&self, resource: &ApiResource, key: &ObjectKey) {
        self.memories.remove(&place(resource), key);
    }
}

async fn patch_status(target: &Target<'_>, object: &Value, status: &Map<String, Value>) -> kube::Result<Value> {
    let (resource, key) = (target.resource, &target.key);
    let mut body = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": { "name": &*key.name, "uid": object.pointer("/metadata/uid") },
        "status": status,
    });
    if let Some(namespace) = key.in_namespace() {
        super::set(&mut body, &["metadata", "namespace"], namespace);
    }
    let params = target.apply_params().force();
    let request = target.request();
    let request = request.patch_subresource("status", &key.name, &params, &Patch::Apply(body));
    let request = request.map_err(kube::Error::BuildRequest)?;
    target.applier.client.request(request).await
}

/// The place of memories about the status.
fn place(resource: &ApiResource) -> String {
    format!("{}/status", kind_of(resource))
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    use kube::{Client, client::Body};

    use super::*;

    /// An API server that describes its kind only while it is told to. Notes requests.
    #[derive(Clone, Default)]
    struct Server(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        describes: bool,
        has_status: bool,
        requests: Vec<String>,
    }

    impl Server {
        fn client(&self) -> Client {
            let state = Arc::clone(&self.0);
            let answer = move |request: hyper::Request<Body>| {
                let mut state = state.lock().unwrap();
                state
                    .requests
                    .push(format!("{} {}", request.method(), request.uri().path()));
                let object = json!({ "apiVersion": "example.com/v1", "kind": "Test", "metadata": { "name": "a" } });
                let (code, text) = match request.uri().path() {
                    "/openapi/v3" if !state.describes => (200, json!({ "paths": {} }).to_string()),
                    "/openapi/v3" => {
                        let path = json!({ "serverRelativeURL": "/openapi/v3/apis/example.com/v1?hash=1" });
                        (200, json!({ "paths": { "apis/example.com/v1": path } }).to_string())
                    }
                    "/openapi/v3/apis/example.com/v1" => (200, document().to_string()),
                    _ if state.has_status => (200, object.to_string()),
                    _ => (404, "404 page not found\n".to_owned()),
                };
                let answer = hyper::Response::builder().status(code).body(text);
                std::future::ready(Ok::<_, Infallible>(answer.unwrap()))
            };
            Client::new(tower::service_fn(answer), "default")
        }
    }

    fn document() -> Value {
        json!({ "paths": {}, "components": { "schemas": { "com.example.Test": {
            "type": "object",
            "properties": { "status": { "type": "object", "properties": { "phase": { "type": "string" } } } },
            "x-kubernetes-group-version-kind": [{ "group": "example.com", "version": "v1", "kind": "Test" }],
        } } } })
    }

    fn resource() -> ApiResource {
        ApiResource {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            api_version: "example.com/v1".to_owned(),
            kind: "Test".to_owned(),
            plural: "tests".to_owned(),
        }
    }

    async fn write(applier: &Applier) -> StatusChange {
        let object = json!({ "apiVersion": "example.com/v1", "kind": "Test", "metadata": { "name": "a", "uid": "1" } });
        let status = Map::from_iter([("phase".to_owned(), json!("Running"))]);
        applier.apply_status(&resource(), &object, status).await.unwrap()
    }

    /// The API server can serve the kind of a CRD before it describes it.
    #[tokio::test(start_paused = true)]
    async fn the_status_of_a_kind_that_is_not_described_yet_is_written() {
        let server = Server::default();
        server.0.lock().unwrap().has_status = true;
        let applier = Applier::new(server.client(), "me");
        let fields = applier.status_fields(&resource()).await.unwrap();
        assert!(fields.has("phase") && fields.has("conditions"));
        assert!(matches!(write(&applier).await, StatusChange::Written(_)));

        // The description is asked for again, but not for each object.
        server.0.lock().unwrap().describes = true;
        tokio::time::sleep(Duration::from_secs(6)).await;
        let fields = applier.status_fields(&resource()).await.unwrap();
        assert!(!fields.exists, "the document has no path of a status");
        tokio::time::sleep(Duration::from_secs(600)).await;
        applier.status_fields(&resource()).await.unwrap();
        let requests = &server.0.lock().unwrap().requests;
        let descriptions = requests.iter().filter(|request| request.contains("openapi"));
        assert_eq!(descriptions.count(), 3, "{requests:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_is_not_described_may_have_no_status() {
        let applier = Applier::new(Server::default().client(), "me");
        assert!(matches!(write(&applier).await, StatusChange::Unchanged));
    }
}
