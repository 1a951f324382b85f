//! Metrics that are sampled when they are scraped.
use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};

/// The work of one queue that is not done.
pub(crate) struct Unfinished {
    pub(crate) name: String,
    pub(crate) sample: Box<dyn Fn() -> (f64, f64) + Send + Sync>,
}

impl fmt::Debug for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unfinished")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Collector for Unfinished {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let (sum, longest) = (self.sample)();
        let labels = [("name", self.name.as_str()), ("controller", self.name.as_str())];
        for (name, help, value) in [
            (
                "workqueue_unfinished_work_seconds",
                "Time that running work has taken so far, in all",
                sum,
            ),
            (
                "workqueue_longest_running_processor_seconds",
                "Time that the longest running work has taken so far",
                longest,
            ),
        ] {
            let gauge = ConstGauge::new(value);
            let mut metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
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
    // The second field is the program's name in parentheses, which may hold blanks.
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
