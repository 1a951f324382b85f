//! Metrics of an operator process.
//!
//! Names and labels are those of controller-runtime and client-go where they measure the same thing, so that existing
//! dashboards and alerts work. Labels come from closed sets only: no object names.
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::{
    exposition,
    samples::{Process, Unfinished},
};

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = exposition::OPEN_METRICS;

/// All metrics of the process. Clones share the same metrics.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
    waited: Family<QueueLabels, Histogram, fn() -> Histogram>,
    worked: Family<QueueLabels, Histogram, fn() -> Histogram>,
    unfinished: Unfinished,
    results: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    timeouts: Family<ControllerLabels, Counter>,
    panics: Family<ControllerLabels, Counter>,
    seconds: Family<ControllerLabels, Histogram, fn() -> Histogram>,
    active: Family<ControllerLabels, Gauge>,
    limit: Family<ControllerLabels, Gauge>,
    leading: Family<LeaseLabels, Gauge>,
    watch_errors: Family<WatchLabels, Counter>,
    unreadable: Family<WatchLabels, Gauge>,
    requests: Family<RequestLabels, Counter>,
    events_dropped: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: String,
}

/// client-go has the controller's name under both labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    name: String,
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseLabels {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    controller: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: String,
    method: String,
    host: String,
}

/// Metrics of the requests to one API server.
#[derive(Clone)]
pub struct RequestMetrics {
    family: Family<RequestLabels, Counter>,
    host: String,
}

impl RequestMetrics {
    /// Counts a request. `code` is `<error>` if there was no answer.
    pub fn count(&self, code: &str, method: &str) {
        let labels = RequestLabels {
            code: code.to_owned(),
            method: method.to_owned(),
            host: self.host.clone(),
        };
        self.family.get_or_create(&labels).inc();
    }
}

/// Metrics of the queue of one controller.
#[derive(Clone)]
pub struct QueueMetrics {
    /// Keys in the queue. None before the first is taken.
    pub depth: Gauge,
    /// Keys added to the queue.
    pub adds: Counter,
    /// Keys requeued after a failure, or with a delay.
    pub retries: Counter,
    /// Seconds that keys spent in the queue.
    pub waited: Histogram,
    /// Seconds that the work on keys took.
    pub worked: Histogram,
}

/// Metrics of the workers of one controller.
#[derive(Clone)]
pub struct WorkerMetrics {
    /// The controller.
    pub controller: Arc<str>,
    /// Successful reconciles.
    pub success: Counter,
    /// Successful reconciles that asked for a requeue.
    pub requeue_after: Counter,
    /// Failed reconciles, as a value of the label `result`.
    pub error: Counter,
    /// Failed reconciles, as a separate metric.
    pub errors: Counter,
    /// Reconciles cancelled by the time limit.
    pub timeouts: Counter,
    /// Reconciles that panicked.
    pub panics: Counter,
    /// Duration of reconciles in seconds.
    pub seconds: Histogram,
    /// Running reconciles.
    pub active: Gauge,
    /// Maximum number of concurrent reconciles.
    pub limit: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// The metrics of a process, all of them registered.
    pub fn new() -> Self {
        let waited: fn() -> Histogram = || Histogram::new([1e-3, 1e-2, 1e-1, 1.0, 10.0, 60.0, 300.0]);
        let seconds: fn() -> Histogram = || {
            Histogram::new([
                0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
            ])
        };
        let metrics = Self {
            registry: Arc::default(),
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            waited: Family::new_with_constructor(waited),
            worked: Family::new_with_constructor(waited),
            unfinished: Unfinished::default(),
            results: Family::default(),
            errors: Family::default(),
            timeouts: Family::default(),
            panics: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            active: Family::default(),
            limit: Family::default(),
            leading: Family::default(),
            watch_errors: Family::default(),
            unreadable: Family::default(),
            requests: Family::default(),
            events_dropped: Counter::default(),
        };
        metrics.with(|registry| metrics.register(registry));
        metrics
    }

    /// Names without `_total`: the text form adds it to counters.
    fn register(&self, registry: &mut Registry) {
        registry.register("workqueue_depth", "Keys in the queue", self.depth.clone());
        registry.register("workqueue_adds", "Keys added to the queue", self.adds.clone());
        registry.register(
            "workqueue_retries",
            "Keys requeued after a failure, or with a delay",
            self.retries.clone(),
        );
        registry.register(
            "workqueue_queue_duration_seconds",
            "Time that keys spent in the queue",
            self.waited.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "Time that the work on keys took",
            self.worked.clone(),
        );
        registry.register(
            "controller_runtime_reconcile",
            "Reconciles by result",
            self.results.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_errors",
            "Failed reconciles",
            self.errors.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_timeouts",
            "Reconciles cancelled by the time limit",
            self.timeouts.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_panics",
            "Reconciles that panicked",
            self.panics.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Duration of reconciles",
            self.seconds.clone(),
        );
        registry.register(
            "controller_runtime_active_workers",
            "Running reconciles",
            self.active.clone(),
        );
        registry.register(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles",
            self.limit.clone(),
        );
        registry.register(
            "leader_election_master_status",
            "1 if this process has the lease, else 0",
            self.leading.clone(),
        );
        registry.register("watch_errors", "Failed watches", self.watch_errors.clone());
        registry.register(
            "unreadable_objects",
            "Watched objects that cannot be deserialized",
            self.unreadable.clone(),
        );
        registry.register(
            "rest_client_requests",
            "Requests to the API server by status code, method and host; code <error> for those without an answer",
            self.requests.clone(),
        );
        registry.register(
            "events_dropped",
            "Events that were not published",
            self.events_dropped.clone(),
        );
        registry.register_collector(Box::new(self.unfinished.clone()));
        registry.register_collector(Box::new(Process));
    }

    /// The metrics of the queue of `controller`.
    pub fn queue(&self, controller: &str) -> QueueMetrics {
        let labels = QueueLabels {
            name: controller.to_owned(),
            controller: controller.to_owned(),
        };
        QueueMetrics {
            depth: self.depth.get_or_create(&labels).clone(),
            adds: self.adds.get_or_create(&labels).clone(),
            retries: self.retries.get_or_create(&labels).clone(),
            waited: self.waited.get_or_create(&labels).clone(),
            worked: self.worked.get_or_create(&labels).clone(),
        }
    }

    /// The metrics of the workers of `controller`.
    pub fn workers(&self, controller: &str) -> WorkerMetrics {
        let labels = ControllerLabels {
            controller: controller.to_owned(),
        };
        let result = |result| {
            self.results
                .get_or_create(&ResultLabels {
                    controller: controller.to_owned(),
                    result,
                })
                .clone()
        };
        WorkerMetrics {
            controller: controller.into(),
            success: result("success"),
            requeue_after: result("requeue_after"),
            error: result("error"),
            errors: self.errors.get_or_create(&labels).clone(),
            timeouts: self.timeouts.get_or_create(&labels).clone(),
            panics: self.panics.get_or_create(&labels).clone(),
            seconds: self.seconds.get_or_create(&labels).clone(),
            active: self.active.get_or_create(&labels).clone(),
            limit: self.limit.get_or_create(&labels).clone(),
        }
    }

    /// The gauge that is 1 while this process has the lease `name`.
    pub fn leading(&self, name: &str) -> Gauge {
        self.leading
            .get_or_create(&LeaseLabels { name: name.to_owned() })
            .clone()
    }

    /// Counts the errors of the watch of `resource`.
    pub fn watch_errors(&self, resource: &str) -> Counter {
        self.watch_errors
            .get_or_create(&WatchLabels {
                resource: resource.to_owned(),
            })
            .clone()
    }

    /// The number of objects of `resource` that cannot be deserialized.
    pub fn unreadable(&self, resource: &str) -> Gauge {
        self.unreadable
            .get_or_create(&WatchLabels {
                resource: resource.to_owned(),
            })
            .clone()
    }

    /// Counts the requests to the API server at `host`.
    pub fn requests(&self, host: &str) -> RequestMetrics {
        RequestMetrics {
            family: self.requests.clone(),
            host: host.to_owned(),
        }
    }

    /// Counts events that were not published.
    pub fn events_dropped(&self) -> Counter {
        self.events_dropped.clone()
    }

    /// Samples `unfinished`, the seconds that running work has taken (the sum, and the longest), at each scrape.
    pub fn sample_queue(&self, controller: &str, unfinished: impl Fn() -> (f64, f64) + Send + Sync + 'static) {
        self.unfinished.add(controller, Box::new(unfinished));
    }

    /// Registers further metrics of the operator.
    pub fn with(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// All metrics in the form that a client with this `Accept` header asks for, and the media type: OpenMetrics, or the older text
    /// form, which is the default as in Go programs.
    pub fn render_for(&self, accept: &str) -> (&'static str, String) {
        let open = self.render();
        match exposition::prefers_open_metrics(accept) {
            true => (exposition::OPEN_METRICS, open),
            false => (exposition::PLAIN, exposition::plain(&open)),
        }
    }

    /// All metrics in OpenMetrics text form.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a String does not fail. A scraper would notice an empty response.
        if encode(&mut text, &registry).is_err() {
            text.clear();
        }
        text
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
