//! Metrics of webhooks, under the names of controller-runtime.
use std::time::Instant;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
};

use crate::metrics::Metrics;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    webhook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    webhook: String,
    code: u16,
}

/// The metrics of all webhooks.
#[derive(Clone)]
pub(super) struct Instruments {
    requests: Family<CodeLabels, Counter>,
    seconds: Family<Labels, Histogram, fn() -> Histogram>,
    active: Family<Labels, Gauge>,
}

impl Instruments {
    /// Registers them.
    pub(super) fn new(metrics: &Metrics) -> Self {
        let seconds: fn() -> Histogram = || Histogram::new([0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0]);
        let new = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            active: Family::default(),
        };
        metrics.with(|registry| {
            registry.register(
                "controller_runtime_webhook_requests",
                "Requests to webhooks by status code of HTTP",
                new.requests.clone(),
            );
            registry.register(
                "controller_runtime_webhook_latency_seconds",
                "Duration of requests to webhooks",
                new.seconds.clone(),
            );
            registry.register(
                "controller_runtime_webhook_requests_in_flight",
                "Running requests to webhooks",
                new.active.clone(),
            );
        });
        new
    }

    /// Measures a request to the webhook at `path`.
    pub(super) fn start(&self, path: &str) -> Running {
        let labels = Labels {
            webhook: path.to_owned(),
        };
        let active = self.active.get_or_create(&labels).clone();
        active.inc();
        Running {
            instruments: self.clone(),
            labels,
            active,
            began: Instant::now(),
        }
    }
}

/// A request that is being answered.
pub(super) struct Running {
    instruments: Instruments,
    labels: Labels,
    active: Gauge,
    began: Instant,
}

impl Running {
    /// It was answered with this status code.
    pub(super) fn end(self, code: u16) {
        let labels = CodeLabels {
            webhook: self.labels.webhook.clone(),
            code,
        };
        self.instruments.requests.get_or_create(&labels).inc();
        let seconds = self.instruments.seconds.get_or_create(&self.labels);
        seconds.observe(self.began.elapsed().as_secs_f64());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.active.dec();
    }
}
