//! Scrapes of `/metrics` as the input of `promtool test rules`.
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde_json::{Value, json};

/// The scrapes of one operator at equal intervals. `None` where it did not answer.
#[derive(Default)]
pub struct Scrapes(pub Vec<Option<String>>);

impl Scrapes {
    /// The series of `metrics` as Prometheus stores them, with the labels that it adds, and their values.
    fn series(&self, metrics: &BTreeSet<String>, job: &str) -> BTreeMap<String, Vec<String>> {
        let mut series: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (place, scrape) in self.0.iter().enumerate() {
            let lines = scrape.iter().flat_map(|text| text.lines());
            for line in lines.filter(|line| !line.starts_with('#')) {
                let Some((series_name, value)) = line.rsplit_once(' ') else {
                    continue;
                };
                let (name, labels) = series_name.split_once('{').unwrap_or((series_name, "}"));
                if !metrics.contains(name) {
                    continue;
                }
                let comma = if labels == "}" { "" } else { "," };
                let key = format!("{name}{{job=\"{job}\",pod=\"{job}-0\"{comma}{labels}");
                let values = series.entry(key).or_default();
                values.resize(place, "_".to_owned());
                values.push(value.to_owned());
            }
            // A series that a scrape lacks ends there, for Prometheus marks it as stale.
            for values in series.values_mut().filter(|values| values.len() == place) {
                let ended = values.last().is_some_and(|last| last == "_" || last == "stale");
                values.push(if ended { "_" } else { "stale" }.to_owned());
            }
        }
        series
    }
}

/// When the alert may do what, in minutes of the rules' time: a scrape each.
pub struct Expected<'a> {
    /// The alert.
    pub alert: &'a str,
    /// Neither pending nor firing up to here.
    pub calm: usize,
    /// Firing here.
    pub fires: usize,
}

/// A test for promtool: `expected` of the rules in `rules.yaml` on these scrapes.
pub fn promtool_test(scrapes: &Scrapes, metrics: &BTreeSet<String>, expected: &Expected) -> Value {
    let Expected { alert, calm, fires } = expected;
    let series: Vec<Value> = scrapes
        .series(metrics, "memcached-operator")
        .into_iter()
        .map(|(name, values)| json!({ "series": name, "values": values.join(" ") }))
        .collect();
    let silent = |minute: usize| json!({ "expr": "count by (alertname) (ALERTS)", "eval_time": format!("{minute}m"), "exp_samples": [] });
    let mut checks: Vec<Value> = (0..=*calm).map(silent).collect();
    checks.push(json!({
        "expr": format!("count by (alertname) (ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}) > bool 0"),
        "eval_time": format!("{fires}m"),
        "exp_samples": [{ "labels": format!("{{alertname=\"{alert}\"}}"), "value": 1 }],
    }));
    json!({
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{ "name": alert, "interval": "1m", "input_series": series, "promql_expr_test": checks }],
    })
}

/// The groups of the PrometheusRule that is shipped, as promtool reads rules.
pub fn rules() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("monitoring/prometheus_rule.yaml");
    let rule: Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    json!({ "groups": rule["spec"]["groups"] })
}

/// A time as Prometheus writes it, in minutes; without one, 0.
pub fn minutes(text: Option<&str>) -> usize {
    let Some(text) = text else { return 0 };
    let (number, unit) = text.split_at(text.len() - 1);
    let number: usize = number.parse().unwrap();
    match unit {
        "m" => number,
        "h" => 60 * number,
        _ => panic!("{text} is not in minutes"),
    }
}

#[test]
fn scrapes_become_series() {
    let scrape = |text: &str| Some(text.to_owned());
    let scrapes = Scrapes(vec![
        scrape("# TYPE a gauge\na 1\nother 5\n"),
        scrape("a 2\nb_total{x=\"y z\"} 0\n"),
        None,
        None,
        scrape("a 3.5\n# EOF\n"),
    ]);
    let metrics = ["a", "b_total"].map(str::to_owned).into();
    let series: Vec<String> = scrapes
        .series(&metrics, "op")
        .into_iter()
        .map(|(name, values)| format!("{name} {}", values.join(" ")))
        .collect();
    assert_eq!(
        series,
        [
            "a{job=\"op\",pod=\"op-0\"} 1 2 stale _ 3.5",
            "b_total{job=\"op\",pod=\"op-0\",x=\"y z\"} _ 0 stale _ _",
        ]
    );
    assert_eq!((minutes(None), minutes(Some("15m")), minutes(Some("1h"))), (0, 15, 60));
}
