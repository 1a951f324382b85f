//! The result of a scrape.
use super::*;
use crate::{
    ObjectKey,
    samples::{ObjectGauge, ObjectSample},
};

#[test]
fn names_are_those_of_controller_runtime() {
    let metrics = Metrics::new();
    metrics.workers("memcached").success.inc();
    metrics.queue("memcached").depth.set(3);
    metrics.leading("lease").set(1);
    metrics.requests("api:443").count("200", "GET");
    metrics.sample_queue("memcached", || (3.5, 2.5));
    let text = metrics.render();
    for line in [
        "controller_runtime_reconcile_total{controller=\"memcached\",result=\"success\"} 1",
        "workqueue_depth{name=\"memcached\",controller=\"memcached\"} 3",
        "leader_election_master_status{name=\"lease\"} 1",
        "rest_client_requests_total{code=\"200\",method=\"GET\",host=\"api:443\"} 1",
        "workqueue_unfinished_work_seconds{name=\"memcached\",controller=\"memcached\"} 3.5",
        "workqueue_longest_running_processor_seconds{name=\"memcached\",controller=\"memcached\"} 2.5",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    if cfg!(target_os = "linux") {
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split(' ').nth(1).unwrap().parse().unwrap()
        };
        assert!(value("process_cpu_seconds_total ") >= 0.0);
        assert!(value("process_resident_memory_bytes ") > 1e6);
        assert!(value("process_open_fds ") > 2.0);
        assert!(value("process_start_time_seconds ") > 1.7e9);
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn each_metric_is_described_once() {
    let metrics = Metrics::new();
    assert!(!metrics.render().contains("unfinished"), "there is no queue");
    for controller in ["memcached", "greeting"] {
        metrics.sample_queue(controller, || (3.5, 2.5));
    }
    metrics.sample_queue("memcached", || (1.0, 1.0));
    let text = metrics.render();
    let mut types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    types.sort_unstable();
    let all = types.len();
    types.dedup();
    assert_eq!(types.len(), all, "{text}");
    let samples: Vec<&str> = text.lines().filter(|line| line.starts_with("workqueue_")).collect();
    assert_eq!(
        samples,
        [
            "workqueue_unfinished_work_seconds{name=\"greeting\",controller=\"greeting\"} 3.5",
            "workqueue_unfinished_work_seconds{name=\"memcached\",controller=\"memcached\"} 4.5",
            "workqueue_longest_running_processor_seconds{name=\"greeting\",controller=\"greeting\"} 2.5",
            "workqueue_longest_running_processor_seconds{name=\"memcached\",controller=\"memcached\"} 2.5",
        ]
    );
}

#[test]
fn a_gauge_has_a_value_for_each_object() {
    let metrics = Metrics::new();
    let gauge = |name, samples: Vec<(ObjectKey, ObjectSample)>| ObjectGauge {
        name,
        help: "Pots",
        visit: Box::new(move |each| {
            for (key, sample) in &samples {
                let label = sample.label.clone();
                each(
                    key,
                    ObjectSample {
                        value: sample.value,
                        label,
                    },
                );
            }
        }),
    };
    let sample = |value, label: Option<&str>| ObjectSample {
        value,
        label: label.map(|text| ("reason", text.to_owned())),
    };
    let pots = gauge(
        "pots",
        vec![
            (ObjectKey::new("kitchen", "tea"), sample(3.0, None)),
            (ObjectKey::new("", "wide"), sample(0.5, None)),
        ],
    );
    let broken = gauge(
        "pots_broken",
        vec![(ObjectKey::new("kitchen", "tea"), sample(1.0, Some("a \"crack\"")))],
    );
    metrics.with(|registry| registry.register_collector(Box::new(pots)));
    metrics.with(|registry| registry.register_collector(Box::new(broken)));
    let text = metrics.render();
    let found: Vec<&str> = text.lines().filter(|line| line.starts_with("pots")).collect();
    let expected = [
        "pots{namespace=\"kitchen\",name=\"tea\"} 3.0",
        "pots{name=\"wide\"} 0.5",
        "pots_broken{namespace=\"kitchen\",name=\"tea\",reason=\"a \\\"crack\\\"\"} 1.0",
    ];
    assert_eq!(found, expected, "{text}");
}
