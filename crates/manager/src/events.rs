//! Events about objects: what `kubectl describe` shows below the object.
//!
//! Events go to the API group `events.k8s.io/v1`. The same event about the same object within six minutes is not created
//! again: its count is increased, as client-go does. Of events about one object that differ, 25 are published at once and
//! then one every five minutes, also as client-go does. (kube-runtime's `Recorder` treats events that differ only in
//! their note as equal and drops the second note.)
use std::{
    collections::HashMap,
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
    time::{Instant, timeout},
};

use crate::{explain, shutdown::CancellationToken};

/// Two equal events closer than this are one event with a higher count.
const SERIES: Duration = Duration::from_mins(6);

/// Capacity of the queue of events; further events are dropped. An operator publishes on changes only, so a full queue
/// means that the API server does not keep up, and reconciling matters more than events then.
const QUEUE_CAPACITY: usize = 1024;

/// The API server's limit for the text of an event, in bytes.
const MAX_NOTE: usize = 1024;

/// Number of events about one object that are published without a pause.
const BURST: f64 = 25.0;

/// After a burst, one event is published in this time.
const REFILL: Duration = Duration::from_mins(5);

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

/// What happened to an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Type of the event.
    pub severity: Severity,
    /// Why the event was published, in CamelCase: `Created`.
    pub reason: &'static str,
    /// What the operator did or attempted, in CamelCase: `Resize`.
    pub action: &'static str,
    /// Description.
    pub note: String,
}

/// Publishes events; clones share the record of published events.
#[derive(Clone)]
pub struct Publisher {
    client: Client,
    controller: String,
    instance: String,
    recent: Arc<Mutex<HashMap<Identity, Recent>>>,
    allowances: Arc<Mutex<Allowances>>,
    queue: mpsc::Sender<(ObjectReference, Event)>,
    dropped: Counter,
}

/// How many events about each object may still be published.
#[derive(Default)]
struct Allowances {
    by_uid: HashMap<String, (f64, Instant)>,
    /// Number of entries at which those that say nothing are removed.
    prune_at: usize,
}

impl Allowances {
    /// Whether one more event about the object `uid` may be published at `now`.
    fn take(&mut self, uid: &str, now: Instant) -> bool {
        let refilled = |left: f64, since: Instant| {
            let gained = now.duration_since(since).as_secs_f64() / REFILL.as_secs_f64();
            (left + gained).min(BURST)
        };
        if self.by_uid.len() >= self.prune_at {
            // An object whose allowance is full again needs no entry.
            self.by_uid.retain(|_, (left, since)| refilled(*left, *since) < BURST);
            self.prune_at = (2 * self.by_uid.len()).max(1024);
        }
        let (left, since) = self.by_uid.get(uid).copied().unwrap_or((BURST, now));
        let left = refilled(left, since);
        let granted = left >= 1.0;
        let left = if granted { left - 1.0 } else { left };
        self.by_uid.insert(uid.to_owned(), (left, now));
        granted
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    uid: String,
    event: Event,
}

struct Recent {
    name: String,
    count: i32,
    last: Instant,
}

/// How to publish one event.
enum Step {
    Create { name: String },
    Count { name: String, count: i32 },
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
        let (queue, mut queued) = mpsc::channel::<(ObjectReference, Event)>(QUEUE_CAPACITY);
        let (controller, instance) = (controller.into(), instance.into());
        let recent = Arc::default();
        let publisher = Self {
            client: client.clone(),
            controller,
            instance,
            recent,
            allowances: Arc::default(),
            queue,
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
                    () = end.cancelled(), if !queued.is_closed() => {
                        queued.close();
                        continue;
                    }
                    next = queued.recv() => next,
                };
                let Some((regarding, event)) = next else { return };
                let error = match timeout(LIMIT, sender.send(&regarding, &event)).await {
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

    /// Publishes `event` about `object` in the background.
    pub fn queue<K: Resource<DynamicType = ()>>(&self, object: &K, event: Event) {
        self.queue_about(object.object_ref(&()), event);
    }

    /// Publishes `event` about the object `regarding` in the background.
    pub fn queue_about(&self, regarding: ObjectReference, event: Event) {
        let uid = regarding.uid.clone().unwrap_or_default();
        let mut allowances = self.allowances.lock().unwrap_or_else(PoisonError::into_inner);
        if !allowances.take(&uid, Instant::now()) {
            self.dropped.inc();
            tracing::debug!(object = %describe(&regarding), reason = event.reason, "event dropped: too many about this object");
            return;
        }
        drop(allowances);
        if let Err(error) = self.queue.try_send((regarding, event)) {
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
        sender.send(&object.object_ref(&()), event).await
    }
}

struct Sender {
    client: Client,
    controller: String,
    instance: String,
    recent: Arc<Mutex<HashMap<Identity, Recent>>>,
}

impl Sender {
    async fn send(&self, regarding: &ObjectReference, event: &Event) -> Result<(), kube::Error> {
        let identity = Identity {
            uid: regarding.uid.clone().unwrap_or_default(),
            event: event.clone(),
        };
        let namespace = regarding.namespace.as_deref().unwrap_or("default");
        let api: Api<ApiEvent> = Api::namespaced(self.client.clone(), namespace);
        match self.step(&identity, regarding) {
            Step::Create { name } => self.create(&api, regarding, event, identity, name).await,
            Step::Count { name, count } => {
                let series = EventSeries {
                    count,
                    last_observed_time: MicroTime(Timestamp::now()),
                };
                let patch = Patch::Merge(json!({ "series": series }));
                match api.patch(&name, &PatchParams::default(), &patch).await {
                    Ok(_) => Ok(()),
                    // Events expire, after an hour by default, and people delete them.
                    Err(kube::Error::Api(status)) if status.code == 404 => {
                        let name = event_name(regarding);
                        self.create(&api, regarding, event, identity, name).await
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    async fn create(
        &self,
        api: &Api<ApiEvent>,
        regarding: &ObjectReference,
        event: &Event,
        identity: Identity,
        name: String,
    ) -> Result<(), kube::Error> {
        api.create(&PostParams::default(), &self.object(regarding, event, &name))
            .await?;
        self.recent().insert(
            identity,
            Recent {
                name,
                count: 1,
                last: Instant::now(),
            },
        );
        Ok(())
    }

    /// Whether this is a new event or one of a series; removes expired entries.
    fn step(&self, identity: &Identity, regarding: &ObjectReference) -> Step {
        let now = Instant::now();
        let mut recent = self.recent();
        recent.retain(|_, known| now.duration_since(known.last) < SERIES);
        match recent.get_mut(identity) {
            Some(known) => {
                known.count = known.count.saturating_add(1);
                known.last = now;
                Step::Count {
                    name: known.name.clone(),
                    count: known.count,
                }
            }
            None => Step::Create {
                name: event_name(regarding),
            },
        }
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, HashMap<Identity, Recent>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn object(&self, regarding: &ObjectReference, event: &Event, name: &str) -> ApiEvent {
        ApiEvent {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(regarding.namespace.clone().unwrap_or_else(|| "default".to_owned())),
                ..ObjectMeta::default()
            },
            action: Some(event.action.to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
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

/// client-go's names: the object's name and a time in hexadecimal.
fn event_name(regarding: &ObjectReference) -> String {
    let name = regarding.name.as_deref().unwrap_or("object");
    format!("{name}.{:x}", Timestamp::now().as_nanosecond())
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
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut_at_a_character() {
        assert_eq!(shorten("short", 10), "short");
        let cut = shorten(&"ü".repeat(600), MAX_NOTE);
        assert!(cut.len() <= MAX_NOTE && cut.ends_with('…'));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_burst_about_one_object_others_are_still_heard() {
        let mut allowances = Allowances::default();
        let published = |allowances: &mut Allowances, uid: &str, count: usize| {
            (0..count).filter(|_| allowances.take(uid, Instant::now())).count()
        };
        assert_eq!(published(&mut allowances, "noisy", 1000), 25);
        assert_eq!(published(&mut allowances, "other", 1), 1);
        tokio::time::advance(Duration::from_secs(301)).await;
        assert_eq!(published(&mut allowances, "noisy", 1000), 1);
        tokio::time::advance(Duration::from_secs(26 * 300)).await;
        for object in 0..1100 {
            assert_eq!(published(&mut allowances, &format!("object {object}"), 1), 1);
        }
        assert!(
            !allowances.by_uid.contains_key("noisy"),
            "full allowances are forgotten"
        );
    }
}
