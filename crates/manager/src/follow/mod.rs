//! Watches that feed caches.
//!
//! Objects stay JSON text until a projection reads them. So all kinds share the code for lists and watches, and a projection
//! chooses what it reads: a type, all fields or a few.
mod events;
mod listing;
mod source;
mod turns;

use std::{collections::HashSet, io, time::Duration};

use kube::{
    Api, Resource,
    api::ObjectMeta,
    core::{DeserializeGuard, Status, error_boundary::InvalidObject},
    runtime::watcher::{self, Error},
};
use prometheus_client::metrics::counter::Counter;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    ObjectKey,
    backoff::Backoff,
    cache::{Cache, Change, number},
    explain,
    probes::Gate,
    transport::Pulse,
};
use events::{Event, EventType};
use listing::Selection;
pub(crate) use listing::refusal;
use source::{RawObject, Sink, TextSource};
pub(crate) use turns::Turns;

/// Between two attempts to list or to watch. Liveness counts on the cap.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(30),
    jitter: 0.5,
};

/// The longest pause where the API server does not serve the kind: its definition may be about to come. Such a request costs the
/// server little.
const UNSERVED: Duration = Duration::from_secs(2);

/// A failure this long after the previous one begins a new row.
const FORGOTTEN: Duration = Duration::from_secs(120);

/// A watch that stayed open for this long did its work, even if it sent no event.
const WORKED: Duration = Duration::from_secs(5);

/// A watch that is closed sooner, without an event, has failed. client-go has the same rule.
const SHORT: Duration = Duration::from_secs(1);

/// Failures of a watch in a row. kube-runtime's own back-off treats the beginning of a list as a success, so that it would ask
/// for a refused one once a second.
#[derive(Default)]
struct Failures {
    count: u32,
    last: Option<Instant>,
    /// The pause after the last failure.
    paused: Duration,
    /// Since when the current watch is open.
    opened: Option<Instant>,
}

impl Failures {
    /// The API server has granted a watch.
    fn opened(&mut self) {
        self.opened = Some(Instant::now());
    }

    /// How long to wait after one more.
    fn next(&mut self) -> Duration {
        let is_old = self.last.is_some_and(|last| last.elapsed() > FORGOTTEN);
        // A load balancer that cuts quiet connections must not make the pauses longer than the watches.
        let least = self.paused.max(WORKED);
        let has_worked = self.opened.take().is_some_and(|opened| opened.elapsed() >= least);
        if is_old || has_worked {
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.last = Some(Instant::now());
        self.paused = BACKOFF.delay(self.count);
        self.paused
    }
}

/// A watch of one kind, in one namespace or in all, that feeds a cache.
pub struct Follow<T, P, C> {
    /// Opened after the first complete list, refused when the right to list or watch is missing.
    pub gate: Gate,
    /// Projects and stores the objects.
    pub source: Source<T, P, C>,
}

/// How the objects of one watch are projected and stored.
pub struct Source<T, P, C> {
    /// The cache to feed. Several watches may feed one cache if their scopes do not overlap.
    pub cache: Cache<T>,
    /// The namespace that is watched. `None` for all.
    pub scope: Option<String>,
    /// Projects an object. `None` treats it as absent.
    pub project: P,
    /// Called after each change of the cache.
    pub changed: C,
    /// Counts broken watches.
    pub errors: Counter,
}

impl<T, P, C> Follow<T, P, C>
where
    T: Send + Sync,
    P: Send,
    C: Fn(&ObjectKey, Change<T>) + Send,
{
    /// Watches the objects of `api` that `config` selects. Never returns: broken watches are restarted with back-off. Lists are
    /// read object by object, whatever the size of their pages.
    pub async fn run<K>(self, api: Api<K>, config: watcher::Config)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
        P: Fn(K) -> Option<T>,
    {
        let Self { gate, source } = self;
        let project = source.project;
        let source = Source {
            cache: source.cache,
            scope: source.scope,
            project: move |text: &[u8]| Ok(project(serde_json::from_slice(text)?)),
            changed: source.changed,
            errors: source.errors,
        };
        let follow = Follow { gate, source };
        follow.run_text(api, config, Turns::default()).await;
    }

    /// As [`run`](Self::run), with a projection that reads the JSON of an object. Its error is a failure of the watch. Watches that
    /// share `turns` do not all begin at once. The futures of all kinds have one type.
    pub(crate) fn run_text<'a, K>(
        self,
        api: Api<K>,
        config: watcher::Config,
        turns: Turns,
    ) -> impl Future<Output = ()> + Send + use<'a, T, P, C, K>
    where
        T: 'a,
        P: 'a,
        C: 'a,
        K: Resource<DynamicType = ()>,
        P: Fn(&[u8]) -> serde_json::Result<Option<T>>,
    {
        let kind = K::plural(&()).into_owned();
        let pulse = Pulse::default();
        let follow = Self {
            gate: self.gate.following(pulse.clone()),
            source: self.source,
        };
        let selection = Selection::new(api, config, pulse);
        Feeder::new(follow, kind, turns).run(selection)
    }
}

/// Waits until `objects` has none with this name.
///
/// # Errors
/// When the API server rejects the list or the watch.
pub(crate) async fn until_deleted<K: Resource>(objects: Api<K>, name: &str) -> Result<(), kube::Error> {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let selection = Selection::new(objects, config, Pulse::default());
    let parameters = selection.watch_parameters();
    loop {
        let mut exists = false;
        let version = selection.each(|_| {
            exists = true;
            Ok(())
        });
        let version = version.await?;
        if !exists {
            return Ok(());
        }
        let mut events = selection.watch(&parameters, &version).await?;
        while let Some(Ok(event)) = events.next().await {
            if event.r#type == EventType::Deleted {
                return Ok(());
            }
        }
        // The watch is over. A new list tells more than its last event.
        sleep(BACKOFF.base).await;
    }
}

/// An object of kind `K`, or its metadata and the reason if `K` cannot hold it. kube's own reading of [`DeserializeGuard`]
/// reads each object twice.
pub(crate) fn guarded<K: DeserializeOwned>(text: &[u8]) -> serde_json::Result<DeserializeGuard<K>> {
    let error = match serde_json::from_slice(text) {
        Ok(object) => return Ok(DeserializeGuard(Ok(object))),
        Err(error) => explain::without_position(&error.to_string()).to_owned(),
    };
    let metadata = metadata(text)?;
    Ok(DeserializeGuard(Err(InvalidObject { error, metadata })))
}

/// The metadata of an object.
pub(crate) fn metadata(text: &[u8]) -> serde_json::Result<ObjectMeta> {
    #[derive(Deserialize)]
    struct Object {
        #[serde(default)]
        metadata: ObjectMeta,
    }
    Ok(serde_json::from_slice::<Object>(text)?.metadata)
}

/// Feeds a cache with the events of one watch.
struct Feeder<'a> {
    sink: Box<dyn Sink + 'a>,
    gate: Gate,
    errors: Counter,
    turns: Turns,
    /// The plural name of the kind.
    kind: String,
    scope: Option<String>,
    /// Keys of the current list: at its end, keys in the cache that it lacks have been deleted.
    listed: HashSet<ObjectKey>,
    began: Instant,
    failures: Failures,
    /// The API server did not serve the kind when it was last asked.
    is_unserved: bool,
}

impl<'a> Feeder<'a> {
    fn new<T, P, C>(follow: Follow<T, P, C>, kind: String, turns: Turns) -> Self
    where
        T: Send + Sync + 'a,
        P: Fn(&[u8]) -> serde_json::Result<Option<T>> + Send + 'a,
        C: Fn(&ObjectKey, Change<T>) + Send + 'a,
    {
        let Follow { gate, source } = follow;
        Self {
            gate,
            errors: source.errors,
            turns,
            kind,
            scope: source.scope.clone(),
            sink: Box::new(TextSource {
                cache: source.cache,
                scope: source.scope,
                project: source.project,
                changed: source.changed,
            }),
            listed: HashSet::new(),
            began: Instant::now(),
            failures: Failures::default(),
            is_unserved: false,
        }
    }

    async fn run(mut self, selection: Selection) {
        let turns = self.turns.clone();
        loop {
            // Boxed as the request below: both are over for most of the time.
            let list = Box::pin(async {
                self.begin();
                selection.each(|text| self.list(text)).await
            });
            let listed = turns.list(list).await;
            let mut version = match listed {
                Ok(version) if version.is_empty() => {
                    self.failed(Error::NoResourceVersion).await;
                    continue;
                }
                Ok(version) => version,
                Err(error) => {
                    self.failed(Error::InitialListFailed(error)).await;
                    continue;
                }
            };
            self.complete(number(&version));
            while self.watch(&selection, &mut version).await {}
        }
    }

    /// A list begins.
    fn begin(&mut self) {
        self.listed.clear();
        self.began = Instant::now();
        self.sink.rewind();
    }

    /// Takes an object of the list.
    fn list(&mut self, text: &[u8]) -> serde_json::Result<()> {
        let object = RawObject::new(text)?;
        let key = object.revision.key.clone();
        self.sink.store(object, Some(self.began))?;
        self.listed.insert(key);
        Ok(())
    }

    /// The list in this version is complete.
    fn complete(&mut self, version: u64) {
        self.failures = Failures::default();
        self.is_unserved = false;
        let listed = std::mem::take(&mut self.listed);
        self.sink.retain(&listed, self.began, version);
        self.gate.open();
    }

    /// Takes an object that was created, changed or deleted.
    fn take(&mut self, object: RawObject<'_>, is_deleted: bool) -> serde_json::Result<()> {
        if is_deleted {
            self.sink.remove(object);
        } else {
            self.sink.store(object, None)?;
        }
        self.failures = Failures::default();
        Ok(())
    }

    /// Watches once, from `version` on. Returns true if the next watch can continue from the last version. Otherwise the
    /// caller lists all objects again.
    async fn watch(&mut self, selection: &Selection, version: &mut String) -> bool {
        let parameters = selection.watch_parameters();
        let opening = Box::pin(selection.watch(&parameters, version));
        let mut events = match self.turns.watch(opening).await {
            Ok(events) => events,
            Err(error) => {
                // After 404 the kind is another one, with other objects.
                let is_gone = matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 410));
                self.failed(Error::WatchStartFailed(error)).await;
                return !is_gone;
            }
        };
        self.failures.opened();
        // A watch that sends nothing for longer than the API server keeps one is over. kube asks for 290 seconds.
        let silent = Duration::from_secs(u64::from(parameters.timeout.unwrap_or(290)) + 5);
        let opened = Instant::now();
        let mut is_empty = true;
        loop {
            let Ok(Some(event)) = timeout(silent, events.next()).await else {
                if is_empty && opened.elapsed() < SHORT {
                    let closed = io::Error::new(io::ErrorKind::UnexpectedEof, "it was closed at once");
                    self.failed(Error::WatchFailed(kube::Error::ReadEvents(closed))).await;
                }
                return true;
            };
            is_empty = false;
            let error = match event.and_then(|event| self.event(&event, version)) {
                Ok(None) => continue,
                Ok(Some(error)) => error,
                Err(error) => Error::WatchFailed(error),
            };
            let lists_again = match &error {
                Error::NoResourceVersion => true,
                Error::WatchError(status) => status.code == 410,
                _ => false,
            };
            self.failed(error).await;
            if lists_again {
                return false;
            }
        }
    }

    /// Takes an event. Returns the failure that it reports.
    fn event(&mut self, event: &Event<'_>, version: &mut String) -> Result<Option<Error>, kube::Error> {
        let invalid = kube::Error::SerdeError;
        if event.r#type == EventType::Error {
            let status: Status = serde_json::from_slice(event.text()).map_err(invalid)?;
            return Ok(Some(Error::WatchError(status.boxed())));
        }
        let object = RawObject::new(event.text()).map_err(invalid)?;
        if object.version.is_empty() {
            return Ok(Some(Error::NoResourceVersion));
        }
        version.clone_from(&object.version);
        match event.r#type {
            EventType::Bookmark => self.sink.reach(number(version)),
            r#type => self.take(object, r#type == EventType::Deleted).map_err(invalid)?,
        }
        Ok(None)
    }

    /// Reports a failure and waits before the next attempt.
    async fn failed(&mut self, error: Error) {
        let mut delay = self.failures.next();
        let was_unserved = std::mem::replace(&mut self.is_unserved, code(&error) == Some(404));
        if self.is_unserved {
            delay = delay.min(UNSERVED);
        }
        self.errors.inc();
        let kind = &self.kind;
        let namespace = self.scope.as_deref().unwrap_or("all namespaces");
        let retry_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let text = explain::watch(&error);
        if self.is_unserved && was_unserved {
            tracing::debug!(%kind, %namespace, error = %text, retry_ms, "watch failed, restarting it");
        } else {
            tracing::warn!(%kind, %namespace, error = %text, retry_ms, "watch failed, restarting it");
        }
        if code(&error) == Some(403) {
            self.gate.refuse(explain::watch(&error));
        }
        sleep(delay).await;
    }
}

/// The status code with which the API server rejected a request: 403 where the operator lacks the right to list or watch.
fn code(error: &Error) -> Option<u16> {
    use Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
