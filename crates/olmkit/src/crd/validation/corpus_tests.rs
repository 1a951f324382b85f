//! CRD findings of operator-sdk over recorded bundles, see `OLMKIT_CORPUS`.

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;
use serde_json::Value;

use super::*;
use crate::yaml;
use test_support::corpus;

/// operator-sdk's recorded findings for the CRDs of a bundle. `None` if it did not check them.
fn recorded(file: &Path) -> Option<Vec<String>> {
    let record: Value = serde_json::from_str(&std::fs::read_to_string(file).ok()?).expect("record");
    let outputs = record["default"]["stdout"]["outputs"].as_array()?;
    let messages = outputs.iter().filter_map(|output| output["message"].as_str());
    let ours = messages.filter_map(|message| message.strip_prefix("Error: Field "));
    let fields = ["spec.", "metadata."];
    Some(
        ours.filter(|rest| fields.iter().any(|field| rest.starts_with(field)))
            .map(|rest| format!("Field {rest}"))
            .collect(),
    )
}

fn ours(manifests: &Path) -> Vec<String> {
    let mut messages = Vec::new();
    let entries = std::fs::read_dir(manifests).into_iter().flatten().flatten();
    for entry in entries {
        let Ok(bytes) = std::fs::read(entry.path()) else {
            continue;
        };
        let Some(Ok(node)) = yaml::documents_with_lookahead(&bytes, 30).next() else {
            continue;
        };
        if node.get("kind").and_then(Node::as_str) != Some("CustomResourceDefinition") {
            continue;
        }
        let version = match node.get("apiVersion").and_then(Node::as_str) {
            Some("apiextensions.k8s.io/v1") => ApiVersion::V1,
            Some("apiextensions.k8s.io/v1beta1") => ApiVersion::V1Beta1,
            _ => continue,
        };
        let found = validate(&node, version).unwrap_or_default();
        messages.extend(
            found
                .iter()
                .filter(|finding| finding.kept_by_operator_sdk())
                .map(ToString::to_string),
        );
    }
    messages
}

#[test]
fn findings_agree_with_operator_sdk() {
    let Some(corpus) = corpus("") else { return };
    let address = Regex::new("0x[0-9a-f]+").expect("pattern");
    let sorted = |messages: Vec<String>| {
        let mut messages: Vec<String> = messages
            .iter()
            .map(|message| address.replace_all(message, "0x0").trim().to_owned())
            .collect();
        messages.sort();
        messages
    };
    let sets = [("micro", "micro/expected"), ("bundles", "expected/validate")];
    let (mut compared, mut differing) = (BTreeMap::new(), Vec::new());
    for (bundles, expected) in sets {
        for entry in std::fs::read_dir(corpus.join(expected)).into_iter().flatten().flatten() {
            if entry.path().extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let name = entry
                .path()
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let Some(wanted) = recorded(&entry.path()) else {
                continue;
            };
            let (ours, wanted) = (
                sorted(ours(&corpus.join(bundles).join(&name).join("manifests"))),
                sorted(wanted),
            );
            *compared.entry(bundles).or_insert(0) += 1;
            if ours != wanted {
                differing.push(format!("{name}:\n  ours   {ours:?}\n  wanted {wanted:?}"));
            }
        }
    }
    println!("bundles compared: {compared:?}, differing: {}", differing.len());
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// CRDs of published bundles are installed on clusters, so the API server accepts their schemas. Rejected ones are
/// listed here with the reason.
#[test]
fn schemas_of_published_bundles_are_sound() {
    let Some(corpus) = corpus("") else { return };
    let (mut checked, mut unsound) = (0, Vec::new());
    for bundle in std::fs::read_dir(corpus.join("bundles"))
        .into_iter()
        .flatten()
        .flatten()
    {
        for entry in std::fs::read_dir(bundle.path().join("manifests"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let Ok(bytes) = std::fs::read(entry.path()) else {
                continue;
            };
            let Some(Ok(node)) = yaml::documents_with_lookahead(&bytes, 30).next() else {
                continue;
            };
            let is_v1 = node.get("apiVersion").and_then(Node::as_str) == Some("apiextensions.k8s.io/v1");
            if !is_v1 || node.get("kind").and_then(Node::as_str) != Some("CustomResourceDefinition") {
                continue;
            }
            checked += 1;
            let found = validate(&node, ApiVersion::V1).unwrap_or_default();
            for finding in found.iter().filter(|finding| !finding.kept_by_operator_sdk()) {
                unsound.push(format!("{}: {}", entry.path().display(), finding.message));
            }
        }
    }
    println!("CRDs checked: {checked}, findings: {}", unsound.len());
    assert!(unsound.is_empty(), "{}", unsound.join("\n"));
}
