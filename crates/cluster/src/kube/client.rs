//! The I/O edge: requests for objects as JSON values, repeated while the API server is away.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::path::{checked, collection};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds::{self, Kind};
pub use crate::base::object_ref::ObjectRef;

/// The field manager of everything that this tool writes.
pub const FIELD_MANAGER: &str = "olmkit";

/// How long a request is retried while the API server does not answer, for example during a restart.
const PATIENCE: Duration = Duration::from_secs(60);

/// The same before it has answered once.
const FIRST_PATIENCE: Duration = Duration::from_secs(3);

/// Maximum duration of a single request.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// A connection to a cluster.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    /// True if the API server has answered yet.
    reached: Arc<AtomicBool>,
    /// The namespace that the flows work in.
    pub namespace: String,
    /// The API server's address.
    pub server: String,
}

impl Cluster {
    /// Connects as `kubectl` does: the given kubeconfig, else `KUBECONFIG`, else `~/.kube/config`, else the pod's
    /// service account.
    ///
    /// # Errors
    /// [`Error::Kubeconfig`] and [`Error::NoCluster`]. No request is sent yet.
    pub async fn connect(kubeconfig: Option<&Path>, namespace: Option<&str>) -> Result<Self, Error> {
        let mut config = match kubeconfig {
            Some(path) => {
                let wrap = |source| Error::Kubeconfig {
                    path: Some(path.to_owned()),
                    source: Box::new(source),
                };
                let file = Kubeconfig::read_from(path).map_err(wrap)?;
                kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                    .await
                    .map_err(wrap)?
            }
            None => kube::Config::infer()
                .await
                .map_err(|error| Error::NoCluster(Box::new(error)))?,
        };
        config.connect_timeout = Some(Duration::from_secs(5));
        // Requests are retried in this module, which limits the time and reports the reason.
        config.default_retry = false;
        let agent = concat!("olmkit/", env!("CARGO_PKG_VERSION"));
        kube_manager::connection::set_user_agent(&mut config, agent);
        let namespace = namespace.map_or_else(|| config.default_namespace.clone(), str::to_owned);
        let server = config.cluster_url.to_string();
        let program = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
        let client = kube_manager::connection::client(config).map_err(|source| Error::Request {
            verb: "connect to",
            object: match program {
                None => server.clone(),
                Some(program) => {
                    format!("{server}, for which the kubeconfig takes credentials from program {program:?}")
                }
            },
            source: Box::new(source),
        })?;
        Ok(Cluster {
            client,
            reached: Arc::default(),
            namespace,
            server,
        })
    }

    /// The version of the API server, for example `v1.33.1`.
    ///
    /// # Errors
    /// [`Error::Request`] when it does not answer.
    pub async fn server_version(&self) -> Result<String, Error> {
        let value: Value = self
            .send("get", &"the server's version", || get_raw("/version"))
            .await?;
        Ok(value
            .get("gitVersion")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned())
    }

    /// One object, `None` when it or its kind does not exist.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn get(&self, object: &ObjectRef) -> Result<Option<Value>, Error> {
        let request = object.request()?;
        let answer = self
            .send("get", object, || request.get(&object.name, &GetParams::default()))
            .await;
        match answer {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`Cluster::get`], read into a type.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Unreadable`].
    pub async fn get_as<T: DeserializeOwned>(&self, object: &ObjectRef) -> Result<Option<T>, Error> {
        match self.get(object).await? {
            Some(value) => read(&object.kind.kind, value).map(Some),
            None => Ok(None),
        }
    }

    /// All objects of a kind, in one namespace or in all, sorted by namespace and name. A kind that the cluster does not
    /// serve has none.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn list(&self, kind: Kind, namespace: Option<&str>, labels: Option<&str>) -> Result<Vec<Value>, Error> {
        let request = collection(&kind, namespace)?;
        let mut items = self.pages(&kind, labels, |params| request.list(params), |_| ()).await?;
        // Lists of built-in kinds omit these in their items.
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.entry("apiVersion").or_insert_with(|| kind.api_version().into());
            item.entry("kind").or_insert_with(|| kind.kind.clone().into());
        }
        Ok(items)
    }

    /// The metadata of all objects of a kind in all namespaces, without the managed fields. The API server sends only
    /// that, so the size of the objects does not matter.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn list_metadata(&self, kind: &Kind) -> Result<Vec<Value>, Error> {
        let request = collection(kind, None)?;
        let strip = |item: &mut Value| {
            if let Some(metadata) = item.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
        };
        self.pages(kind, None, |params| request.list_metadata(params), strip)
            .await
    }

    /// Reads a list page by page, and changes each item before it is kept. A kind that the cluster does not serve has
    /// none.
    async fn pages(
        &self,
        kind: &Kind,
        labels: Option<&str>,
        build: impl Fn(&ListParams) -> Result<HttpRequest, RequestError>,
        change: impl Fn(&mut Value),
    ) -> Result<Vec<Value>, Error> {
        let mut params = ListParams {
            label_selector: labels.map(str::to_owned),
            ..ListParams::default()
        }
        .limit(500);
        let mut items = Vec::new();
        loop {
            let answer: Result<Value, Error> = self.send("list", &kind.plural, || build(&params)).await;
            let mut page = match answer {
                Ok(page) => page,
                Err(error) if error.is_not_found() => return Ok(Vec::new()),
                Err(error) => return Err(error),
            };
            if let Some(Value::Array(mut found)) = page.get_mut("items").map(Value::take) {
                found.iter_mut().for_each(&change);
                items.append(&mut found);
            }
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => params.continue_token = Some(token.to_owned()),
                _ => return Ok(items),
            }
        }
    }

    /// As [`Cluster::list`], read into a type.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Unreadable`].
    pub async fn list_as<T: DeserializeOwned>(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<T>, Error> {
        let plural = kind.plural.clone();
        self.list(kind, namespace, labels)
            .await?
            .into_iter()
            .map(|value| read(&plural, value))
            .collect()
    }

    /// As [`Cluster::list_as`], without the objects that do not fit the type. One malformed object of a tenant must not
    /// hide the others. Each is logged as a warning, only by its name.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn list_readable<T: DeserializeOwned>(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<T>, Error> {
        let plural = kind.plural.clone();
        let objects = self.list(kind, namespace, labels).await?;
        Ok(readable(&plural, objects))
    }

    /// Server-side apply with olmkit's field manager. Other managers' fields are kept.
    ///
    /// # Errors
    /// [`Error::Manifest`] for a kind that the cluster does not serve, [`Error::Request`].
    pub async fn apply(&self, manifest: &Value) -> Result<Value, Error> {
        self.apply_with(manifest, &PatchParams::apply(FIELD_MANAGER).force())
            .await
    }

    async fn apply_with(&self, manifest: &Value, params: &PatchParams) -> Result<Value, Error> {
        let object = self.reference(manifest).await?;
        let request = object.request()?;
        self.send("apply", &object, || {
            request.patch(&object.name, params, &Patch::Apply(manifest))
        })
        .await
    }

    /// As [`Cluster::apply`], but does not change an object if another manager owns a field that would change.
    ///
    /// # Errors
    /// [`Error::Manifest`] for a kind that the cluster does not serve, [`Error::Request`], with code 409 for such an object.
    pub async fn apply_unowned(&self, manifest: &Value) -> Result<Value, Error> {
        self.apply_with(manifest, &PatchParams::apply(FIELD_MANAGER)).await
    }

    /// Changes some fields of an object with a merge patch.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn merge(&self, object: &ObjectRef, patch: &Value) -> Result<Value, Error> {
        let request = object.request()?;
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        self.send("change", object, || {
            request.patch(&object.name, &params, &Patch::Merge(patch))
        })
        .await
    }

    /// Removes labels from an object, if it exists.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn unlabel(&self, object: &ObjectRef, labels: &[String]) -> Result<(), Error> {
        let labels: serde_json::Map<String, Value> = labels.iter().map(|label| (label.clone(), Value::Null)).collect();
        match self.merge(object, &json!({"metadata": {"labels": labels}})).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Changes some fields of an object's status with a merge patch.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn merge_status(&self, object: &ObjectRef, patch: &Value) -> Result<Value, Error> {
        let request = object.request()?;
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        self.send("change the status of", object, || {
            request.patch_subresource("status", &object.name, &params, &Patch::Merge(patch))
        })
        .await
    }

    /// Sends a review object, such as a SelfSubjectAccessReview, to the API server. Nothing is stored.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub(crate) async fn ask(&self, question: &Value) -> Result<Value, Error> {
        let text = |name: &str| question.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = format!("/apis/{}/{}s", text("apiVersion"), text("kind").to_lowercase());
        let body = question.to_string().into_bytes();
        self.send("ask", &text("kind"), || post_raw(&path, body.clone())).await
    }

    /// Asks for an object's deletion. `false` when it was not there.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn delete(&self, object: &ObjectRef) -> Result<bool, Error> {
        let request = object.request()?;
        let params = DeleteParams::background();
        match self
            .send::<Value>("delete", object, || request.delete(&object.name, &params))
            .await
        {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The last lines that a container wrote; of its previous instance when `previous`.
    ///
    /// # Errors
    /// [`Error::Request`], for example when the node does not answer.
    pub async fn log_tail(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        previous: bool,
        lines: i64,
    ) -> Result<Vec<String>, Error> {
        let params = kube::api::LogParams {
            container: Some(container.to_owned()),
            previous,
            tail_lines: Some(lines),
            limit_bytes: Some(64 * 1024),
            ..kube::api::LogParams::default()
        };
        let text = self.log_with(namespace, pod, container, &params).await?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Opens a streaming response. It is not retried, because the backend behind the API server may have ended.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub(crate) async fn open(
        &self,
        what: &str,
        path: &str,
    ) -> Result<impl futures::AsyncBufRead + Unpin + use<>, Error> {
        let request = get_raw(path).map_err(|error| Error::BuildRequest {
            verb: "read",
            object: what.to_owned(),
            message: error.to_string(),
        })?;
        let answer = self
            .client
            .request_stream(request)
            .await
            .map_err(|source| Error::Request {
                verb: "read",
                object: what.to_owned(),
                source: Box::new(source),
            })?;
        Ok(Box::pin(answer))
    }

    /// A container's log, at most `limit` bytes.
    ///
    /// # Errors
    /// [`Error::Request`], for example when the node does not answer.
    pub async fn log(&self, namespace: &str, pod: &str, container: &str, limit: u64) -> Result<String, Error> {
        let params = kube::api::LogParams {
            container: Some(container.to_owned()),
            limit_bytes: Some(i64::try_from(limit).unwrap_or(i64::MAX)),
            ..kube::api::LogParams::default()
        };
        self.log_with(namespace, pod, container, &params).await
    }

    async fn log_with(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        params: &kube::api::LogParams,
    ) -> Result<String, Error> {
        for segment in [namespace, pod] {
            checked("read the log of", &pod, segment)?;
        }
        let api = self.pods(namespace);
        api.logs(pod, params).await.map_err(|source| Error::Request {
            verb: "read the log of",
            object: format!("Pod {namespace}/{pod}, container {container}"),
            source: Box::new(source),
        })
    }

    /// The pods of a namespace, for requests that are not about objects.
    pub(crate) fn pods(&self, namespace: &str) -> kube::Api<k8s_openapi::api::core::v1::Pod> {
        kube::Api::namespaced(self.client.clone(), namespace)
    }

    /// Converts a manifest's `apiVersion`, `kind` and metadata to a reference. Looks up unknown kinds in the cluster.
    ///
    /// # Errors
    /// [`Error::Manifest`].
    pub async fn reference(&self, manifest: &Value) -> Result<ObjectRef, Error> {
        let text = |pointer| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let fault = |message: String| Error::Manifest {
            object: format!("{kind} {name}"),
            message,
        };
        if api_version.is_empty() || kind.is_empty() || name.is_empty() {
            return Err(fault("a manifest needs apiVersion, kind and metadata.name".into()));
        }
        let found = match kinds::known(api_version, kind) {
            Some(known) => known,
            None => self
                .kind_of(api_version, kind)
                .await?
                .ok_or_else(|| fault(format!("the cluster does not serve {api_version} {kind}")))?,
        };
        let namespace = text("/metadata/namespace");
        let namespace = found.namespaced.then(|| {
            if namespace.is_empty() {
                self.namespace.clone()
            } else {
                namespace.to_owned()
            }
        });
        Ok(ObjectRef {
            kind: found,
            namespace,
            name: name.to_owned(),
        })
    }

    /// Sends a request and retries it while the failure is transient: for a minute if the API server has answered
    /// before, else for three seconds, so that a wrong address is reported soon.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        object: &impl fmt::Display,
        build: impl Fn() -> Result<HttpRequest, RequestError>,
    ) -> Result<T, Error> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(200);
        loop {
            let request = build().map_err(|error| Error::BuildRequest {
                verb,
                object: object.to_string(),
                message: error.to_string(),
            })?;
            let (method, path, asked) = (
                request.method().clone(),
                request.uri().path().to_owned(),
                Instant::now(),
            );
            let answer = tokio::time::timeout(REQUEST_LIMIT, self.client.request::<T>(request)).await;
            let took = asked.elapsed().as_millis();
            tracing::debug!(%method, path, is_answered = matches!(answer, Ok(Ok(_))), took, "API server");
            let source = match answer {
                Ok(Ok(value)) => {
                    self.reached.store(true, Ordering::Relaxed);
                    return Ok(value);
                }
                Ok(Err(source)) => source,
                Err(_) => kube::Error::Service(format!("no answer within {} s", REQUEST_LIMIT.as_secs()).into()),
            };
            let patience = if self.reached.load(Ordering::Relaxed) {
                PATIENCE
            } else {
                FIRST_PATIENCE
            };
            if !passes(&source) || started.elapsed() + pause > patience {
                return Err(Error::Request {
                    verb,
                    object: object.to_string(),
                    source: Box::new(source),
                });
            }
            tracing::debug!(verb, object = %object, error = %source, "the API server did not answer; asking again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(3));
        }
    }
}

pub(crate) type HttpRequest = hyper::Request<Vec<u8>>;
pub(crate) type RequestError = kube::core::request::Error;

/// A GET of a raw path.
pub(crate) fn get_raw(path: &str) -> Result<HttpRequest, RequestError> {
    hyper::Request::get(path)
        .body(Vec::new())
        .map_err(RequestError::BuildRequest)
}

fn post_raw(path: &str, body: Vec<u8>) -> Result<HttpRequest, RequestError> {
    hyper::Request::post(path)
        .header("content-type", "application/json")
        .body(body)
        .map_err(RequestError::BuildRequest)
}

/// Returns true if a failure is transient: no connection, or a server that reports that it is busy or starting.
fn passes(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 429 | 500 | 502 | 503 | 504),
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
    }
}

/// The objects that fit a type. The others are logged.
fn readable<T: DeserializeOwned>(what: &str, objects: Vec<Value>) -> Vec<T> {
    let fits = |value: Value| {
        let namespace = text(&value, "/metadata/namespace").to_owned();
        match read(what, value) {
            Ok(object) => Some(object),
            Err(Error::Unreadable { object, source }) => {
                // An error about a field's type repeats its value, so only its position is logged.
                let place = match source.is_data() {
                    true => "a field does not have the type in OLM's API".to_owned(),
                    false => source.to_string(),
                };
                tracing::warn!("skipping {object} in namespace {namespace:?}: {place}");
                None
            }
            Err(_) => None,
        }
    };
    objects.into_iter().filter_map(fits).collect()
}

/// Reads a value into a type, naming the object when that fails.
///
/// # Errors
/// [`Error::Unreadable`].
pub fn read<T: DeserializeOwned>(what: &str, value: Value) -> Result<T, Error> {
    let name = value
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    serde_json::from_value(value).map_err(|source| Error::Unreadable {
        object: format!("{what} {name}"),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_malformed_object_does_not_hide_the_others() {
        let subscription = |name: &str, spec: Value| serde_json::json!({"metadata": {"name": name}, "spec": spec});
        let objects = vec![
            subscription(
                "a",
                serde_json::json!({"name": "p", "source": "s", "sourceNamespace": "n"}),
            ),
            subscription("b", serde_json::json!({"name": 7})),
            subscription(
                "c",
                serde_json::json!({"name": "p", "source": "s", "sourceNamespace": "n"}),
            ),
        ];
        let found: Vec<olmkit::types::Subscription> = readable("subscriptions", objects);
        assert_eq!(found.len(), 2);
    }
}
