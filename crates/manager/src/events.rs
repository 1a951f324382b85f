//! Events about objects: what `kubectl describe` shows below the object.
//!
//! Events go to the API group `events.k8s.io/v1`. The same event about the same object within six minutes is not created
//! again: its count is increased, as client-go does. Of events about one object that differ, 25 are published at once and
//! then one every five minutes, also as client-go does. (kube-runtime's `Recorder` treats events that differ only in
//! their note as equal and drops the second note.) Of normal events about all objects, 1,000 are published at once and then 20 a
//! second: an operator that is that busy should leave the API server to its work. Warnings are not counted in. While objects wait for a
//! reconcile, normal events wait too, except 20 a second.
use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event as ApiEvent, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
};
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use crate::{explain, shutdown::CancellationToken};

/// Two equal events closer than this are one event with a higher count.
const SERIES: Duration = Duration::from_mins(6);

/// Capacity of the queue of events. Further events are dropped. An operator publishes on changes only, so a full queue
/// means that the API server does not keep up, and reconciling matters more than events then.
const QUEUE_CAPACITY: usize = 1024;

/// The API server's limit for the text of an event, in bytes.
const MAX_NOTE: usize = 1024;

/// Number of events about one object that are published without a pause.
const BURST: f64 = 25.0;

/// After a burst, one event is published in this time.
const REFILL: Duration = Duration::from_mins(5);

/// Number of normal events about all objects that are published without a pause.
const TOTAL_BURST: f64 = 1000.0;

/// After that burst, one normal event is published in this time.
const TOTAL_REFILL: Duration = Duration::from_millis(50);

/// While objects wait for a reconcile, one normal event is sent in this time.
const PACE: Duration = Duration::from_millis(50);

/// An event that takes longer is given up: others wait behind it.
const LIMIT: Duration = Duration::from_secs(10);

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Information.
    Normal,
    /// Something may need attention.
    Warning,
}

/// An event about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Type of the event.
    pub severity: Severity,
    /// Why the event was published, in CamelCase: `Created`.
    pub reason: &'static str,
    /// The operator's action or attempt, in CamelCase: `Resize`.
    pub action: &'static str,
    /// Description.
    pub note: String,
}

impl Event {
    /// Information: `reason` in CamelCase, such as `Created`, and the description. The reason is the action too.
    pub fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self {
            severity: Severity::Normal,
            reason,
            action: reason,
            note: note.into(),
        }
    }

    /// As [`normal`](Self::normal), for something that may need attention.
    pub fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::normal(reason, note)
        }
    }

    /// Names what the operator did or attempted, in CamelCase, such as `Resize`.
    #[must_use]
    pub fn action(self, action: &'static str) -> Self {
        Self { action, ..self }
    }
}

/// Publishes events. Clones share the record of published events.
#[derive(Clone)]
pub struct Publisher {
    client: Client,
    controller: String,
    instance: String,
    recent: Arc<Mutex<Recents>>,
    allowances: Arc<Mutex<Allowances>>,
    warnings: mpsc::Sender<Queued>,
    normal: mpsc::Sender<Queued>,
    work: Work,
    dropped: Counter,
}

/// An event that waits until it is sent.
struct Queued {
    regarding: ObjectReference,
    event: Event,
    at: Timestamp,
}

/// Functions that return true while objects wait for a reconcile.
#[derive(Clone, Default)]
struct Work(Arc<Mutex<Vec<Waiting>>>);

type Waiting = Box<dyn Fn() -> bool + Send + Sync>;

impl Work {
    fn is_waiting(&self) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|waiting| waiting())
    }
}

/// The events that wait.
struct Outbox {
    warnings: mpsc::Receiver<Queued>,
    normal: mpsc::Receiver<Queued>,
    work: Work,
    /// Before this time no normal event is sent while objects wait.
    due: Instant,
}

impl Outbox {
    fn close(&mut self) {
        self.warnings.close();
        self.normal.close();
    }

    /// No more events come.
    fn is_closed(&self) -> bool {
        self.warnings.is_closed() && self.normal.is_closed()
    }

    /// The next event to send, warnings first. `None` when the outbox is closed and empty.
    async fn next(&mut self) -> Option<Queued> {
        loop {
            let is_closed = self.is_closed();
            if is_closed && self.warnings.is_empty() && self.normal.is_empty() {
                return None;
            }
            let is_paused = !is_closed && Instant::now() < self.due && self.work.is_waiting();
            tokio::select! {
                biased;
                Some(warning) = self.warnings.recv() => return Some(warning),
                Some(event) = self.normal.recv(), if !is_paused => {
                    self.due = Instant::now() + PACE;
                    return Some(event);
                }
                () = sleep_until(self.due), if is_paused => {}
                // All senders have just been dropped.
                else => {}
            }
        }
    }
}

/// How many events may still be published, and when that was counted.
#[derive(Clone, Copy)]
struct Allowance {
    left: f64,
    since: Instant,
}

impl Allowance {
    /// The allowance at `now`, if one more event is allowed in each `refill`, and `burst` at most.
    fn at(self, now: Instant, refill: Duration, burst: f64) -> Self {
        let gained = now.duration_since(self.since).as_secs_f64() / refill.as_secs_f64();
        Self {
            left: (self.left + gained).min(burst),
            since: now,
        }
    }

    fn spend(&mut self) {
        self.left -= 1.0;
    }
}

/// How many events may still be published: about each object, and normal ones about all.
#[derive(Default)]
struct Allowances {
    by_uid: HashMap<String, Allowance>,
    normal: Option<Allowance>,
    /// Number of entries at which those that say nothing are removed.
    prune_at: usize,
}

impl Allowances {
    /// Returns true if one more event about the object `uid` may be published at `now`.
    fn take(&mut self, uid: &str, severity: Severity, now: Instant) -> bool {
        let full = |burst| Allowance {
            left: burst,
            since: now,
        };
        if self.by_uid.len() >= self.prune_at {
            // An object whose allowance is full again needs no entry.
            self.by_uid.retain(|_, known| known.at(now, REFILL, BURST).left < BURST);
            self.prune_at = (2 * self.by_uid.len()).max(1024);
        }
        let known = self.by_uid.get(uid).copied();
        let mut own = known.unwrap_or(full(BURST)).at(now, REFILL, BURST);
        let mut all = self
            .normal
            .unwrap_or(full(TOTAL_BURST))
            .at(now, TOTAL_REFILL, TOTAL_BURST);
        let counts = severity == Severity::Normal;
        let granted = own.left >= 1.0 && (!counts || all.left >= 1.0);
        if granted {
            own.spend();
            if counts {
                all.spend();
            }
            self.by_uid.insert(uid.to_owned(), own);
        }
        self.normal = Some(all);
        granted
    }
}

/// The events of the last minutes, by a digest of object and event: an operator that works through thousands of objects
/// publishes as many.
#[derive(Default)]
struct Recents {
    by_digest: HashMap<u64, Recent>,
    hasher: RandomState,
    /// Number of entries at which the expired ones are removed.
    prune_at: usize,
}

struct Recent {
    /// The part after the object's name in the event's name.
    suffix: u64,
    count: i32,
    last: Instant,
}

/// How to publish one event.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Create,
    Count { suffix: u64, count: i32 },
}

impl Recents {
    /// Returns true if the event with this digest is new or one of a series.
    fn step(&mut self, digest: u64, now: Instant) -> Step {
        match self.by_digest.get_mut(&digest) {
            Some(known) if now.duration_since(known.last) < SERIES => {
                known.count = known.count.saturating_add(1);
                known.last = now;
                Step::Count {
                    suffix: known.suffix,
                    count: known.count,
                }
            }
            _ => Step::Create,
        }
    }

    /// Notes that the event with this digest was created under a name that ends in `suffix`.
    fn created(&mut self, digest: u64, suffix: u64, now: Instant) {
        if self.by_digest.len() >= self.prune_at {
            self.by_digest
                .retain(|_, known| now.duration_since(known.last) < SERIES);
            self.prune_at = (2 * self.by_digest.len()).max(1024);
        }
        let recent = Recent {
            suffix,
            count: 1,
            last: now,
        };
        self.by_digest.insert(digest, recent);
    }
}

impl Publisher {
    /// A publisher that reports as `controller` from `instance` (the pod), and the task that sends the
    /// [`queue`](Self::queue)d events. `dropped` counts those that are not published.
    ///
    /// When all clones of the publisher are dropped, the task sends the remaining events and ends.
    pub fn new(
        client: Client,
        controller: impl Into<String>,
        instance: impl Into<String>,
        dropped: Counter,
    ) -> (Self, impl Future<Output = ()> + Send) {
        Self::until(CancellationToken::new(), client, controller, instance, dropped)
    }

    /// As [`new`](Self::new), but the task also ends, with the remaining events sent, when `end` is cancelled.
    pub fn until(
        end: CancellationToken,
        client: Client,
        controller: impl Into<String>,
        instance: impl Into<String>,
        dropped: Counter,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (warnings, queued_warnings) = mpsc::channel(QUEUE_CAPACITY);
        let (normal, queued) = mpsc::channel(QUEUE_CAPACITY);
        let work = Work::default();
        let mut outbox = Outbox {
            warnings: queued_warnings,
            normal: queued,
            work: work.clone(),
            due: Instant::now(),
        };
        let (controller, instance) = (controller.into(), instance.into());
        let recent = Arc::default();
        let publisher = Self {
            client: client.clone(),
            controller,
            instance,
            recent,
            allowances: Arc::default(),
            warnings,
            normal,
            work,
            dropped: dropped.clone(),
        };
        // The task must not hold a sender, or the channel would never close.
        let sender = Sender {
            client,
            controller: publisher.controller.clone(),
            instance: publisher.instance.clone(),
            recent: Arc::clone(&publisher.recent),
        };
        let task = async move {
            loop {
                let next = tokio::select! {
                    biased;
                    () = end.cancelled(), if !outbox.is_closed() => {
                        outbox.close();
                        continue;
                    }
                    next = outbox.next() => next,
                };
                let Some(Queued { regarding, event, at }) = next else {
                    return;
                };
                let error = match timeout(LIMIT, sender.send(&regarding, &event, at)).await {
                    Ok(Ok(())) => continue,
                    Ok(Err(error)) => explain::request(&error),
                    Err(_) => format!("no answer within {LIMIT:?}"),
                };
                dropped.inc();
                tracing::warn!(%error, object = %describe(&regarding), reason = event.reason, "cannot publish event");
            }
        };
        (publisher, task)
    }

    /// The name under which events are published.
    pub(crate) fn controller(&self) -> &str {
        &self.controller
    }

    /// Lets normal events wait, except 20 a second, while `waiting` returns true: while objects wait for a reconcile.
    pub(crate) fn give_way(&self, waiting: impl Fn() -> bool + Send + Sync + 'static) {
        let mut all = self.work.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Box::new(waiting));
    }

    /// Publishes `event` about `object` in the background.
    pub fn queue<K: Resource<DynamicType = ()>>(&self, object: &K, event: Event) {
        self.queue_about(object.object_ref(&()), event);
    }

    /// Publishes `event` about the object `regarding` in the background.
    pub fn queue_about(&self, regarding: ObjectReference, event: Event) {
        let uid = regarding.uid.clone().unwrap_or_default();
        let mut allowances = self.allowances.lock().unwrap_or_else(PoisonError::into_inner);
        if !allowances.take(&uid, event.severity, Instant::now()) {
            self.dropped.inc();
            tracing::debug!(object = %describe(&regarding), reason = event.reason, "event dropped: too many, of this object or of all");
            return;
        }
        drop(allowances);
        let queue = match event.severity {
            Severity::Normal => &self.normal,
            Severity::Warning => &self.warnings,
        };
        let at = Timestamp::now();
        if let Err(error) = queue.try_send(Queued { regarding, event, at }) {
            self.dropped.inc();
            tracing::warn!(%error, "event dropped");
        }
    }

    /// Publishes `event` about `object` and waits until it is stored.
    ///
    /// # Errors
    /// When the API server rejects it, as it does in a namespace that is being deleted.
    pub async fn publish<K: Resource<DynamicType = ()>>(&self, object: &K, event: &Event) -> Result<(), kube::Error> {
        let sender = Sender {
            client: self.client.clone(),
            controller: self.controller.clone(),
            instance: self.instance.clone(),
            recent: Arc::clone(&self.recent),
        };
        sender.send(&object.object_ref(&()), event, Timestamp::now()).await
    }
}

struct Sender {
    client: Client,
    controller: String,
    instance: String,
    recent: Arc<Mutex<Recents>>,
}

impl Sender {
    /// Sends an event that happened `at` this time.
    async fn send(&self, regarding: &ObjectReference, event: &Event, at: Timestamp) -> Result<(), kube::Error> {
        let namespace = regarding.namespace.as_deref().unwrap_or("default");
        let api: Api<ApiEvent> = Api::namespaced(self.client.clone(), namespace);
        let (digest, step) = {
            let mut recent = self.recent();
            let digest = recent.hasher.hash_one((&regarding.uid, event));
            (digest, recent.step(digest, Instant::now()))
        };
        let Step::Count { suffix, count } = step else {
            return self.create(&api, regarding, event, at, digest).await;
        };
        let series = EventSeries {
            count,
            last_observed_time: MicroTime(at),
        };
        let patch = Patch::Merge(json!({ "series": series }));
        match api
            .patch(&event_name(regarding, suffix), &PatchParams::default(), &patch)
            .await
        {
            Ok(_) => Ok(()),
            // Events expire, after an hour by default, and people delete them.
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.create(&api, regarding, event, at, digest).await
            }
            Err(error) => Err(error),
        }
    }

    async fn create(
        &self,
        api: &Api<ApiEvent>,
        regarding: &ObjectReference,
        event: &Event,
        at: Timestamp,
        digest: u64,
    ) -> Result<(), kube::Error> {
        let suffix = u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or_default();
        let object = self.object(regarding, event, at, &event_name(regarding, suffix));
        api.create(&PostParams::default(), &object).await?;
        self.recent().created(digest, suffix, Instant::now());
        Ok(())
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recents> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn object(&self, regarding: &ObjectReference, event: &Event, at: Timestamp, name: &str) -> ApiEvent {
        ApiEvent {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(regarding.namespace.clone().unwrap_or_else(|| "default".to_owned())),
                ..ObjectMeta::default()
            },
            action: Some(event.action.to_owned()),
            event_time: Some(MicroTime(at)),
            note: Some(shorten(&event.note, MAX_NOTE)),
            reason: Some(event.reason.to_owned()),
            regarding: Some(regarding.clone()),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(match event.severity {
                Severity::Normal => "Normal".to_owned(),
                Severity::Warning => "Warning".to_owned(),
            }),
            ..ApiEvent::default()
        }
    }
}

/// client-go's names: the object's name and, in hexadecimal, a time in nanoseconds. Where an event cannot have that name,
/// because it is too long or the kind has other names (`system:node`), the UID takes the place of the name.
fn event_name(regarding: &ObjectReference, suffix: u64) -> String {
    let candidates = [regarding.name.as_deref(), regarding.uid.as_deref()];
    let mut names = candidates
        .into_iter()
        .flatten()
        .map(|name| format!("{name}.{suffix:x}"));
    names
        .find(|name| is_dns_subdomain(name))
        .unwrap_or_else(|| format!("object.{suffix:x}"))
}

/// Returns true if the API server takes `name` for most kinds.
fn is_dns_subdomain(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

fn describe(regarding: &ObjectReference) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!(
        "{} {}/{}",
        part(&regarding.kind),
        part(&regarding.namespace),
        part(&regarding.name)
    )
}

/// `text` in at most `limit` bytes, cut at a character.
fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
