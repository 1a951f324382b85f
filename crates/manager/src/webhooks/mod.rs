//! A server of admission and conversion webhooks.
//!
//! With a [manager](crate::Manager), pass them to [`serve_webhooks`](crate::Manager::serve_webhooks). Alone:
//!
//! ```no_run
//! # use kube::CustomResource;
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! use kube_manager::{
//!     certificates::Certificates,
//!     metrics::Metrics,
//!     webhooks::{Denied, Webhooks},
//! };
//!
//! # #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! # #[kube(group = "shop.example.com", version = "v1", kind = "Cache", namespaced)]
//! # struct CacheSpec { size: i32 }
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let certificates = Certificates::find()?;
//! let server = Webhooks::new(&Metrics::new())
//!     .validating("/validate-shop-example-com-v1-cache", |review| async move {
//!         let cache: Option<Cache> = review.object;
//!         match cache {
//!             Some(cache) if cache.spec.size % 2 == 0 => Err(Denied::field("spec.size", "must be odd")),
//!             _ => Ok(()),
//!         }
//!     })
//!     .bind("[::]:9443".parse()?, &certificates)
//!     .await?;
//! tokio::join!(server.serve(), certificates.follow());
//! # Ok(())
//! # }
//! ```
mod admission;
mod conversion;
mod hub;
mod metrics;
mod options;
pub mod testing;

use std::{
    collections::BTreeMap, error::Error as StdError, future::Future, net::SocketAddr, panic::AssertUnwindSafe,
    pin::Pin, sync::Arc, time::Duration,
};

use futures::FutureExt as _;
use hyper::{
    Method, Request, StatusCode,
    body::{Body, Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
};
use olmkit_front::{Bodies, BodyError, BodyLimits};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::timeout;

pub use admission::{Denied, Review, Warnings};
pub use hub::{Hub, same_fields};
use metrics::Instruments;
pub use options::Options;

use crate::{
    certificates::{self, Certificates},
    listener::{self, Answer, BindError, Handle, Listener, Wire, text},
    metrics::Metrics,
};

/// Larger admission requests are refused, and how many times their size the handlers take. controller-runtime has the same
/// limit: two objects of the largest size that etcd takes, and what comes around them.
const ADMISSION: (usize, usize) = (7 << 20, 4);
/// Larger conversion requests are refused: they can hold many objects, which are converted one after the other.
const CONVERSION: (usize, usize) = (64 << 20, 1);
/// Time for a request. The API server waits ten seconds by default, and at most thirty.
const TIME_LIMIT: Duration = Duration::from_secs(30);

type Reply = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send>>;
type Handler = Arc<dyn Fn(Bytes) -> Reply + Send + Sync>;

#[derive(Clone)]
struct Route {
    handler: Handler,
    limit: usize,
    weight: usize,
}

/// Webhooks by path. A handler is cancelled when its request ends: after 30 seconds, or when the API server no longer waits.
#[must_use]
pub struct Webhooks {
    routes: BTreeMap<String, Route>,
    instruments: Instruments,
}

impl Webhooks {
    /// No webhooks yet. Their metrics are registered in `metrics`. A process has one set of webhooks.
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            routes: BTreeMap::new(),
            instruments: Instruments::new(metrics),
        }
    }

    /// Serves a validating webhook for objects of type `T` at `path`. `validate` may return `Ok(vec![…])` with
    /// [warnings](Warnings) in place of `Ok(())`.
    pub fn validating<T, F, R, W>(self, path: &str, validate: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(Review<T>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Result<W, Denied>> + Send + 'static,
        W: Into<Warnings> + Send + 'static,
    {
        self.route(path, ADMISSION, move |body| {
            let validate = validate.clone();
            Box::pin(admission::validate(body, validate))
        })
    }

    /// Serves a mutating webhook for objects of type `T` at `path`: the object as it comes back replaces what was sent.
    /// Fields that `T` does not know stay, except those in lists that are changed.
    pub fn mutating<T, F, R>(self, path: &str, mutate: F) -> Self
    where
        T: DeserializeOwned + Serialize + Send + 'static,
        F: Fn(T, Review<T>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Result<T, Denied>> + Send + 'static,
    {
        self.route(path, ADMISSION, move |body| {
            let mutate = mutate.clone();
            Box::pin(admission::mutate(body, mutate))
        })
    }

    /// Serves the conversion webhook of a CRD at `path`. `convert` gets an object and the `apiVersion` that is wanted. It
    /// writes the new content. Labels and annotations that it writes replace the old ones, so that an annotation can keep what
    /// a version has no field for. An empty map removes them, those that it leaves out stay. The rest of `metadata` comes from
    /// the old object, since the API server lets a conversion change nothing else there.
    pub fn converting<F>(self, path: &str, convert: F) -> Self
    where
        F: Fn(Value, &str) -> Result<Value, String> + Clone + Send + Sync + 'static,
    {
        self.route(path, CONVERSION, move |body| {
            let answer = conversion::convert(&body, &convert);
            Box::pin(std::future::ready(answer))
        })
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    fn route(
        mut self,
        path: &str,
        (limit, weight): (usize, usize),
        handler: impl Fn(Bytes) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let route = Route {
            handler: Arc::new(handler),
            limit,
            weight,
        };
        self.routes.insert(path.to_owned(), route);
        self
    }

    /// Listens on `address`.
    ///
    /// # Errors
    /// When the address is in use or not assigned to this machine, or TLS cannot be set up.
    pub async fn bind(self, address: SocketAddr, certificates: &Certificates) -> Result<Server, Error> {
        Ok(Server {
            listener: {
                let wire = Wire::Tls(certificates.acceptor(None)?);
                Listener::bind(address, listener::webhooks())?.with_wire(wire)
            },
            bodies: Bodies::new(BodyLimits::default()),
            routes: Arc::new(self.routes),
            instruments: self.instruments,
        })
    }
}

/// The server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot listen.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// It has no certificate.
    #[error(transparent)]
    Certificate(#[from] certificates::Error),
}

/// A server that listens.
pub struct Server {
    listener: Listener,
    routes: Arc<BTreeMap<String, Route>>,
    instruments: Instruments,
    bodies: Bodies,
}

impl Server {
    /// The address it listens on, with the assigned port if port 0 was requested.
    ///
    /// # Errors
    /// When the operating system does not return it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.address()
    }

    /// Serves requests until the future is dropped.
    pub async fn serve(self) {
        self.serve_until(std::future::pending()).await;
    }

    /// Serves requests until `stop` completes and all are answered. Connections are accepted until no request has come for a
    /// second: the API server learns a moment later than this process that it stops.
    pub async fn serve_until(self, stop: impl Future<Output = ()>) {
        let (routes, instruments, bodies) = (self.routes, self.instruments, self.bodies);
        let answer = move |request: Request<Incoming>, handle: Handle| {
            let (routes, instruments, bodies) = (Arc::clone(&routes), instruments.clone(), bodies.clone());
            async move {
                let answer = answer(&routes, &instruments, &bodies, Some(&handle), request).await;
                if answer.status().is_success() {
                    handle.prove();
                }
                answer
            }
        };
        self.listener.serve(answer, stop).await;
    }
}

async fn answer<B>(
    routes: &BTreeMap<String, Route>,
    instruments: &Instruments,
    bodies: &Bodies,
    handle: Option<&Handle>,
    request: Request<B>,
) -> Answer
where
    B: Body<Error: Into<Box<dyn StdError + Send + Sync>>>,
{
    let Some((path, route)) = routes.get_key_value(request.uri().path()) else {
        return text(StatusCode::NOT_FOUND, "no webhook has this path\n".to_owned());
    };
    if request.method() != Method::POST {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed: use POST\n".to_owned(),
        );
    }
    let running = instruments.start(path);
    let answer = match timeout(TIME_LIMIT, reply(route, bodies, handle, request)).await {
        Ok(Ok(answer)) => json(answer),
        Ok(Err((status, why))) => text(status, format!("{why}\n")),
        Err(_) => text(StatusCode::GATEWAY_TIMEOUT, "the webhook took too long\n".to_owned()),
    };
    running.end(answer.status().as_u16());
    answer
}

async fn reply<B>(
    route: &Route,
    bodies: &Bodies,
    handle: Option<&Handle>,
    request: Request<B>,
) -> Result<Vec<u8>, (StatusCode, String)>
where
    B: Body<Error: Into<Box<dyn StdError + Send + Sync>>>,
{
    let body = bodies
        .read(request.into_body(), route.limit, route.weight, handle)
        .await;
    let body = body.map_err(|error| {
        let status = match error {
            BodyError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::Slow => StatusCode::REQUEST_TIMEOUT,
            BodyError::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        (status, error.to_string())
    })?;
    // The weight includes the handler's parsed body.
    let (body, _room) = (body.bytes, body.room);
    // Not in a separate task, which would outlive a request that takes too long. A panic ends only this request, because
    // nothing that the handler used is visible here afterwards.
    let done = AssertUnwindSafe(async { (route.handler)(body).await }).catch_unwind();
    match done.await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(why)) => Err((StatusCode::BAD_REQUEST, why)),
        Err(_) => Err((StatusCode::INTERNAL_SERVER_ERROR, "the webhook panicked".to_owned())),
    }
}

fn json(value: Vec<u8>) -> Answer {
    let mut answer = Answer::new(value.into());
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use serde_json::{Value, json};
    use tokio::time::Instant;
    use tokio_util::sync::{CancellationToken, DropGuard};

    use super::*;

    async fn panics(_: Review<Value>) -> Result<(), Denied> {
        panic!("on purpose")
    }

    /// Webhooks that end in one way each. The guard is dropped when the handler is.
    fn webhooks(metrics: &Metrics, guard: DropGuard) -> Webhooks {
        let guard = Arc::new(std::sync::Mutex::new(Some(guard)));
        let hang = move |_: Review<Value>| {
            let guard = guard.lock().unwrap().take();
            async move {
                let _guard = guard;
                std::future::pending::<Result<(), Denied>>().await
            }
        };
        Webhooks::new(metrics)
            .validating("/hang", hang)
            .validating("/panic", panics)
            .converting("/convert", |_, _| panic!("on purpose"))
    }

    async fn answer(webhooks: &Webhooks, request: Request<Full<Bytes>>) -> Answer {
        let bodies = Bodies::new(BodyLimits::default());
        super::answer(&webhooks.routes, &webhooks.instruments, &bodies, None, request).await
    }

    fn request(path: &str, body: &Value) -> Request<Full<Bytes>> {
        let request = Request::builder().method(Method::POST).uri(path);
        request.body(Full::new(body.to_string().into())).unwrap()
    }

    fn review() -> Value {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u1", "operation": "CREATE", "name": "sample",
            "kind": {"group": "shop.example.com", "version": "v1", "kind": "Cache"},
            "resource": {"group": "shop.example.com", "version": "v1", "resource": "caches"},
            "userInfo": {}, "object": {},
        }})
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_ends_with_its_request() {
        let metrics = Metrics::new();
        let ended = CancellationToken::new();
        let webhooks = webhooks(&metrics, ended.clone().drop_guard());
        let start = Instant::now();
        let answer = answer(&webhooks, request("/hang", &review())).await;
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(start.elapsed(), TIME_LIMIT);
        assert!(ended.is_cancelled(), "the handler still runs");
        let text = metrics.render();
        assert!(text.contains("requests_in_flight{webhook=\"/hang\"} 0"), "{text}");
    }

    #[tokio::test]
    async fn a_panic_ends_its_request_only() {
        let metrics = Metrics::new();
        let webhooks = webhooks(&metrics, CancellationToken::new().drop_guard());
        let conversion = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
            "uid": "u1", "desiredAPIVersion": "shop.example.com/v2",
            "objects": [{"apiVersion": "shop.example.com/v1", "kind": "Cache", "metadata": {}}],
        }});
        for (path, body) in [("/panic", review()), ("/convert", conversion)] {
            let answer = answer(&webhooks, request(path, &body)).await;
            assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR, "{path}");
        }
        let text = metrics.render();
        assert!(text.contains("webhook=\"/panic\",code=\"500\"} 1"), "{text}");
    }
}
