//! Prometheus metrics of the server.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::Index;

/// Upper bounds of the durations of calls, in seconds.
const BUCKETS: [f64; 8] = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 1.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    call: String,
    code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PackageLabel {
    package: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// Results of attempts to load an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexLoad {
    /// The prepared index was used.
    Prepared,
    /// A new one was built.
    Built,
    /// The catalog could not be served. The previous index remains in use.
    Failed,
}

/// The server's metrics. Clones count together.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    seconds: Histogram,
    packages: Gauge,
    bundles: Gauge,
    entries: Gauge,
    broken: Family<PackageLabel, Gauge>,
    indexes: Family<ResultLabel, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut inner = Inner {
            registry: Registry::with_prefix("olmkit_catalog"),
            calls: Family::default(),
            seconds: Histogram::new(BUCKETS),
            packages: Gauge::default(),
            bundles: Gauge::default(),
            entries: Gauge::default(),
            broken: Family::default(),
            indexes: Family::default(),
        };
        let registry = &mut inner.registry;
        registry.register(
            "calls",
            "Calls of the registry API by their status",
            inner.calls.clone(),
        );
        registry.register_with_unit(
            "call_duration",
            "Time until a call begins to answer",
            Unit::Seconds,
            inner.seconds.clone(),
        );
        registry.register("packages", "Packages that are served", inner.packages.clone());
        registry.register("bundles", "Bundles that are served", inner.bundles.clone());
        registry.register(
            "channel_entries",
            "Channel entries that are served",
            inner.entries.clone(),
        );
        registry.register(
            "broken_package",
            "1 for each package of the catalog that is wrong and not served",
            inner.broken.clone(),
        );
        registry.register(
            "indexes",
            "Attempts to take up the catalog: prepared, built or failed",
            inner.indexes.clone(),
        );
        Metrics(Arc::new(inner))
    }
}

impl Metrics {
    /// Counts a call. Unknown calls count together, because clients may invent any number of names.
    pub fn call(&self, call: &str, code: tonic::Code, duration: Duration) {
        let call = if code == tonic::Code::Unimplemented {
            "other"
        } else {
            call
        };
        let labels = CallLabels {
            call: call.to_owned(),
            code: format!("{code:?}"),
        };
        self.0.calls.get_or_create(&labels).inc();
        self.0.seconds.observe(duration.as_secs_f64());
    }

    /// Records the index that is served from now on.
    pub fn serving(&self, index: &Index) {
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (bundles, entries) = index.counts();
        self.0.packages.set(count(index.packages().len() as u64));
        self.0.bundles.set(count(bundles));
        self.0.entries.set(count(entries));
        self.0.broken.clear();
        for broken in index.broken() {
            let label = PackageLabel {
                package: broken.package.clone(),
            };
            self.0.broken.get_or_create(&label).set(1);
        }
    }

    /// Notes how an attempt to get an index ended.
    pub fn index_loaded(&self, load: IndexLoad) {
        let result = match load {
            IndexLoad::Prepared => "prepared",
            IndexLoad::Built => "built",
            IndexLoad::Failed => "failed",
        };
        self.0.indexes.get_or_create(&ResultLabel { result }).inc();
    }

    /// All metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.0.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_name_and_status() {
        let metrics = Metrics::default();
        metrics.call("GetPackage", tonic::Code::Ok, Duration::from_micros(20));
        metrics.call("GetPackage", tonic::Code::Ok, Duration::from_micros(20));
        metrics.call("GetPackage", tonic::Code::Unknown, Duration::from_micros(20));
        metrics.call("MadeUp1", tonic::Code::Unimplemented, Duration::ZERO);
        metrics.call("MadeUp2", tonic::Code::Unimplemented, Duration::ZERO);
        metrics.index_loaded(IndexLoad::Built);
        let text = metrics.text();
        for line in [
            "olmkit_catalog_calls_total{call=\"GetPackage\",code=\"Ok\"} 2",
            "olmkit_catalog_calls_total{call=\"GetPackage\",code=\"Unknown\"} 1",
            "olmkit_catalog_calls_total{call=\"other\",code=\"Unimplemented\"} 2",
            "olmkit_catalog_call_duration_seconds_count 5",
            "olmkit_catalog_indexes_total{result=\"built\"} 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(!text.contains("MadeUp"), "{text}");
    }
}
