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

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of the process. Clones share the same metrics.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
    waited: Family<QueueLabels, Histogram, fn() -> Histogram>,
    results: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    timeouts: Family<ControllerLabels, Counter>,
    seconds: Family<ControllerLabels, Histogram, fn() -> Histogram>,
    active: Family<ControllerLabels, Gauge>,
    limit: Family<ControllerLabels, Gauge>,
    leading: Family<LeaseLabels, Gauge>,
    watch_errors: Family<WatchLabels, Counter>,
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

/// Metrics of the queue of one controller.
#[derive(Clone)]
pub struct QueueMetrics {
    /// Keys in the queue.
    pub depth: Gauge,
    /// Keys added to the queue.
    pub adds: Counter,
    /// Keys requeued after a failure.
    pub retries: Counter,
    /// Seconds that keys spent in the queue.
    pub waited: Histogram,
}

/// Metrics of the workers of one controller.
#[derive(Clone)]
pub struct WorkerMetrics {
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
            results: Family::default(),
            errors: Family::default(),
            timeouts: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            active: Family::default(),
            limit: Family::default(),
            leading: Family::default(),
            watch_errors: Family::default(),
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
            "Keys requeued after a failure",
            self.retries.clone(),
        );
        registry.register(
            "workqueue_queue_duration_seconds",
            "Time that keys spent in the queue",
            self.waited.clone(),
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
            "1 if this process holds the lease, else 0",
            self.leading.clone(),
        );
        registry.register("watch_errors", "Failed watches", self.watch_errors.clone());
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
            success: result("success"),
            requeue_after: result("requeue_after"),
            error: result("error"),
            errors: self.errors.get_or_create(&labels).clone(),
            timeouts: self.timeouts.get_or_create(&labels).clone(),
            seconds: self.seconds.get_or_create(&labels).clone(),
            active: self.active.get_or_create(&labels).clone(),
            limit: self.limit.get_or_create(&labels).clone(),
        }
    }

    /// The gauge that is 1 while this process holds the lease `name`.
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

    /// Registers further metrics of the operator.
    pub fn with(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// All metrics in OpenMetrics text form.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a String does not fail; a scraper would notice an empty response.
        if encode(&mut text, &registry).is_err() {
            text.clear();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_controller_runtime() {
        let metrics = Metrics::new();
        metrics.workers("memcached").success.inc();
        metrics.queue("memcached").depth.set(3);
        metrics.leading("lease").set(1);
        let text = metrics.render();
        for line in [
            "controller_runtime_reconcile_total{controller=\"memcached\",result=\"success\"} 1",
            "workqueue_depth{name=\"memcached\",controller=\"memcached\"} 3",
            "leader_election_master_status{name=\"lease\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
