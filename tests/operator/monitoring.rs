//! The alerts in `monitoring/`.
use std::{collections::BTreeSet, path::Path};

use serde_json::{Value, json};

use crate::lab::{Lab, eventually};

/// The words of a query that name metrics: identifiers without a parenthesis after them that are not keywords.
fn metrics(query: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    let mut rest = query;
    // Labels and texts name no metrics.
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

/// Every metric that an alert asks for is served by an operator that leads and has reconciled something.
#[tokio::test]
async fn alerts_ask_for_metrics_that_exist() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("monitoring/prometheus_rule.yaml");
    let rule: Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rules = rule["spec"]["groups"][0]["rules"].as_array().unwrap();
    let asked: BTreeSet<String> = rules
        .iter()
        .flat_map(|rule| metrics(rule["expr"].as_str().unwrap()))
        .collect();
    let lab = Lab::new("alerts").await;
    let operator = lab.operator_with(&["--leader-elect"], &[]).await;
    lab.memcached("sample", json!({})).await;
    lab.running("sample").await;
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
}
