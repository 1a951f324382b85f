//! Metrics that are sampled when they are scraped.
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use crate::ObjectKey;

/// The sum and the longest of the seconds for which work has been running.
type Sample = Box<dyn Fn() -> (f64, f64) + Send + Sync>;

/// One of the two.
type Of = fn((f64, f64)) -> f64;

/// The work of all queues that is not done, by the queue's name. Clones share the queues: a metric must be described once,
/// however many there are.
#[derive(Clone, Default)]
pub(crate) struct Unfinished(Arc<Mutex<Vec<(String, Sample)>>>);

impl Unfinished {
    pub(crate) fn add(&self, name: &str, sample: Sample) {
        self.lock().push((name.to_owned(), sample));
    }

    /// Queues of one name count as one.
    fn samples(&self) -> BTreeMap<String, (f64, f64)> {
        let mut samples = BTreeMap::new();
        for (name, sample) in self.lock().iter() {
            let (sum, longest) = sample();
            let (all, most) = samples.entry(name.clone()).or_insert((0.0, 0.0));
            *all += sum;
            *most = f64::max(*most, longest);
        }
        samples
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, Sample)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unfinished").finish_non_exhaustive()
    }
}

impl Collector for Unfinished {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let samples = self.samples();
        if samples.is_empty() {
            return Ok(());
        }
        let families: [(&str, &str, Of); 2] = [
            (
                "workqueue_unfinished_work_seconds",
                "Time that running work has taken so far, in all",
                |(sum, _)| sum,
            ),
            (
                "workqueue_longest_running_processor_seconds",
                "Time that the longest running work has taken so far",
                |(_, longest)| longest,
            ),
        ];
        for (name, help, of) in families {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (queue, sample) in &samples {
                let labels = [("name", queue.as_str()), ("controller", queue.as_str())];
                ConstGauge::new(of(*sample)).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// A sample of a gauge for one object.
#[derive(Clone)]
pub struct ObjectSample {
    /// The value.
    pub value: f64,
    /// A label in addition to the namespace and the name.
    pub label: Option<(&'static str, String)>,
}

/// Calls its argument for each object that has a sample.
type Visit = Box<dyn Fn(&mut dyn FnMut(&ObjectKey, ObjectSample)) + Send + Sync>;

/// A gauge with a value for each object of a kind.
pub struct ObjectGauge {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub help: &'static str,
    /// The objects and their samples.
    pub visit: Visit,
}

impl fmt::Debug for ObjectGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectGauge")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Collector for ObjectGauge {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut metric = encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        let mut result = Ok(());
        (self.visit)(&mut |key, sample| {
            if result.is_err() {
                return;
            }
            let namespace = key.in_namespace().map(|namespace| ("namespace", namespace));
            let label = sample.label.as_ref().map(|(name, value)| (*name, value.as_str()));
            let labels: Vec<(&str, &str)> = [namespace, Some(("name", &*key.name)), label]
                .into_iter()
                .flatten()
                .collect();
            result = metric
                .encode_family(&labels)
                .and_then(|family| ConstGauge::new(sample.value).encode(family));
        });
        result
    }
}

/// The process, under the names that Prometheus' own clients use.
#[derive(Debug)]
pub(crate) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        // Outside of Linux there is nothing to report.
        let Some(usage) = usage() else { return Ok(()) };
        let counter = ConstCounter::new(usage.cpu_seconds);
        let metric = encoder.encode_descriptor(
            "process_cpu_seconds",
            "User and system time",
            None,
            counter.metric_type(),
        )?;
        counter.encode(metric)?;
        for (name, help, value) in [
            ("process_resident_memory_bytes", "Resident memory", usage.resident_bytes),
            ("process_open_fds", "Open file descriptors", usage.open_files),
            (
                "process_start_time_seconds",
                "Start of the process, in seconds since the epoch",
                usage.started,
            ),
        ] {
            let gauge = ConstGauge::new(value);
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        Ok(())
    }
}

struct Usage {
    cpu_seconds: f64,
    resident_bytes: f64,
    open_files: f64,
    started: f64,
}

/// Linux reports times in hundredths of a second, whatever the kernel's own clock.
const TICKS: f64 = 100.0;

fn usage() -> Option<Usage> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, which may contain spaces.
    let fields: Vec<f64> = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0.0))
        .collect();
    // Numbered from the third field of proc(5).
    let field = |number: usize| fields.get(number - 3).copied();
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let resident: f64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    let boot: f64 = std::fs::read_to_string("/proc/stat")
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .parse()
        .ok()?;
    Some(Usage {
        cpu_seconds: (field(14)? + field(15)?) / TICKS,
        resident_bytes: resident * 1024.0,
        open_files: std::fs::read_dir("/proc/self/fd").ok()?.count() as f64,
        started: boot + field(22)? / TICKS,
    })
}
