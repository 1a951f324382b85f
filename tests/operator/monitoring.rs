//! The alerts in `monitoring/`, and dashboards for controller-runtime.
use std::{
    collections::BTreeSet,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::Command,
};

use memcached_operator::{api::v1alpha1::Phase, operand};
use serde_json::{Value, json};

use crate::{
    clients::{free_port, go_build},
    lab::{Lab, UNAVAILABLE, eventually},
    warm::{Program, Server},
};

/// The words of a query that name metrics: identifiers without a parenthesis after them that are not keywords.
pub fn metrics(query: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    let mut rest = query;
    // Labels and quoted strings name no metrics.
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '{' || c == '"' || c == '[') {
        rest = &rest[start..];
        let skip = |close: char| rest[1..].find(close).map_or(rest.len(), |end| end + 2);
        let end = match rest.chars().next().unwrap() {
            '{' => skip('}'),
            '"' => skip('"'),
            '[' => skip(']'),
            _ => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        if word.contains('_') && word.chars().all(is_word) && !after.starts_with('(') {
            found.insert(word.to_owned());
        }
        rest = after;
    }
    found
}

#[test]
fn words_of_a_query() {
    let query = "histogram_quantile(0.99, sum by (le) (rate(a_bucket{b_c=\"d_e\"}[10m]))) > 10 * f_g";
    assert_eq!(metrics(query).into_iter().collect::<Vec<_>>(), ["a_bucket", "f_g"]);
}

/// The metrics of kubebuilder's two dashboards (plugin `grafana/v1-alpha` of operator-sdk 1.42), with the labels by which they group. Job,
/// namespace, pod and instance come from the scrape.
const DASHBOARDS: [(&str, &[&str]); 11] = [
    ("controller_runtime_active_workers", &[]),
    ("controller_runtime_reconcile_errors_total", &[]),
    ("controller_runtime_reconcile_total", &[]),
    ("process_cpu_seconds_total", &[]),
    ("process_resident_memory_bytes", &[]),
    ("workqueue_adds_total", &["name"]),
    ("workqueue_depth", &[]),
    ("workqueue_queue_duration_seconds_bucket", &["name", "le"]),
    ("workqueue_retries_total", &["name"]),
    ("workqueue_unfinished_work_seconds", &[]),
    ("workqueue_work_duration_seconds_bucket", &["name", "le"]),
];

/// No panel is empty, not even before the first failure.
#[tokio::test]
async fn dashboards_of_kubebuilder_find_their_metrics() {
    let lab = Lab::new("dashboards").await;
    let operator = lab.operator().await;
    let (_, text) = operator.get("metrics", "/metrics").await;
    for (name, labels) in DASHBOARDS {
        let mut series = text.lines().filter_map(|line| line.strip_prefix(name));
        let found = series.find(|rest| rest.starts_with([' ', '{']));
        let found = found.unwrap_or_else(|| panic!("{name} is not served: {text}"));
        for label in labels {
            assert!(found.contains(&format!("{label}=\"")), "{name}{found} lacks {label}");
        }
    }
}

/// The rules of the PrometheusRule.
fn rules() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("monitoring/prometheus_rule.yaml");
    let rule: Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let groups = rule["spec"]["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    rules.cloned().collect()
}

#[test]
fn each_alert_links_to_its_runbook() {
    let page = include_str!("../../docs/memcached/runbooks.md");
    let rules = rules();
    for rule in &rules {
        let alert = rule["alert"].as_str().unwrap();
        assert!(page.contains(&format!("\n## {alert}\n")), "no section about {alert}");
        let address = format!(
            "{}/blob/main/docs/memcached/runbooks.md#{}",
            env!("CARGO_PKG_REPOSITORY"),
            alert.to_lowercase()
        );
        assert_eq!(rule["annotations"]["runbook_url"], address);
    }
    assert_eq!(rules.len(), page.matches("\n## ").count(), "each section has an alert");
}

/// Every metric that an alert asks for is served by an operator that leads and has reconciled something.
#[tokio::test]
async fn alerts_ask_for_metrics_that_exist() {
    let rules = rules();
    let asked: BTreeSet<String> = rules
        .iter()
        .flat_map(|rule| metrics(rule["expr"].as_str().unwrap()))
        // The exporter of a server serves these, and Prometheus adds the label.
        .filter(|name| !name.starts_with("memcached_items_") && name != operand::OWNER)
        .collect();
    let lab = Lab::new("alerts").await;
    let operator = lab.operator_with(&["--leader-elect"], &[]).await;
    lab.memcached("sample", json!({})).await;
    lab.running("sample").await;
    lab.memcached("broken", json!({ "size": 2, "image": UNAVAILABLE }))
        .await;
    lab.reaches("broken", Phase::Degraded).await;
    eventually("the metrics", async || {
        let (_, text) = operator.get("metrics", "/metrics").await;
        let served: BTreeSet<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        let missing: Vec<&String> = asked.iter().filter(|name| !served.contains(name.as_str())).collect();
        if !missing.is_empty() {
            println!("not served: {missing:?}");
        }
        missing.is_empty().then_some(())
    })
    .await;
    assert!(asked.len() >= 8, "{asked:?}");
    println!(
        "{} alerts ask for {} metrics, all of them served",
        rules.len(),
        asked.len()
    );
    // The leader is the one that the first alert looks for.
    let (_, text) = operator.get("metrics", "/metrics").await;
    let leads = "leader_election_master_status{name=\"memcached-operator.cache.example.com\"} 1";
    assert!(text.contains(leads), "{text}");
    // Each Memcached has its own values.
    let namespace = &lab.namespace;
    for line in [
        format!("memcached_servers_wanted{{namespace=\"{namespace}\",name=\"sample\"}} 1.0"),
        format!("memcached_servers_ready{{namespace=\"{namespace}\",name=\"sample\"}} 1.0"),
        format!("memcached_servers_wanted{{namespace=\"{namespace}\",name=\"broken\"}} 2.0"),
        format!("memcached_servers_ready{{namespace=\"{namespace}\",name=\"broken\"}} 0.0"),
        format!("memcached_degraded{{namespace=\"{namespace}\",name=\"broken\",reason=\"ImagePullBackOff\"}} 1.0"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let degraded = text.lines().filter(|line| line.starts_with("memcached_degraded{"));
    assert_eq!(degraded.count(), 1, "{text}");
}

/// The exporter in a sidecar serves the metrics of the alert about evictions.
#[tokio::test]
async fn the_exporter_of_a_server_serves_the_metrics_that_alerts_ask_for() {
    let Some(program) = Program::find() else { return };
    let directory = tempfile::tempdir().unwrap();
    let exporter = directory.path().join("exporter");
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/operator/exporter");
    let package = "github.com/prometheus/memcached_exporter/cmd/memcached_exporter";
    if go_build(&module, package, &exporter).is_none() {
        return;
    }
    let server = Server::start(&program, json!({}), directory.path());
    server.store(10).await;
    let port = free_port();
    let mut exporter = Command::new(exporter)
        .arg(format!("--memcached.address=localhost:{}", server.port))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .spawn()
        .unwrap();
    let text = eventually("the exporter has read the server", async || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.contains("\nmemcached_up 1\n").then_some(text)
    })
    .await;
    exporter.kill().unwrap();
    exporter.wait().unwrap();
    let asked = rules()
        .into_iter()
        .flat_map(|rule| metrics(rule["expr"].as_str().unwrap()))
        .filter(|name| name.starts_with("memcached_items_"))
        .collect::<BTreeSet<String>>();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for name in asked {
        assert!(
            text.lines().any(|line| line.starts_with(&format!("{name} "))),
            "{name} is not in\n{text}"
        );
    }
    assert!(text.contains("\nmemcached_current_items 10\n"), "{text}");
}

/// The ServiceMonitor selects the Service that `config/` has, by its labels and the name of its port.
#[test]
fn the_service_monitor_fits_the_service() {
    let read = |path: &str| -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let (monitor, service) = (
        read("monitoring/service_monitor.yaml"),
        read("config/metrics/service.yaml"),
    );
    // Without a namespaceSelector it looks in its own namespace only.
    assert_eq!(monitor["metadata"]["namespace"], service["metadata"]["namespace"]);
    let wanted = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
    assert!(!wanted.is_empty());
    for (label, value) in wanted {
        assert_eq!(&service["metadata"]["labels"][label], value, "{label}");
    }
    let endpoints = monitor["spec"]["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 1);
    let ports = service["spec"]["ports"].as_array().unwrap();
    assert!(
        ports.iter().any(|port| port["name"] == endpoints[0]["port"]),
        "{ports:?}"
    );
    assert_eq!(endpoints[0]["scheme"], "https", "the default of --metrics-secure");
    assert_eq!(endpoints[0]["path"], "/metrics");
}

/// The PodMonitor selects the servers, and its label is that of the alert about evictions.
#[test]
fn the_pod_monitor_fits_the_servers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("monitoring/pod_monitor.yaml");
    let monitor: Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let object = json!({ "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": { "name": "sample" },
        "spec": {} });
    let labels = operand::labels(&serde_json::from_value(object).unwrap());
    let wanted = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
    assert!(!wanted.is_empty());
    for (label, value) in wanted {
        assert_eq!(Some(labels[label].as_str()), value.as_str(), "{label}");
    }
    assert_eq!(monitor["spec"]["podTargetLabels"], json!([operand::OWNER]));
}
