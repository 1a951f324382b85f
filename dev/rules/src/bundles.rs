//! The bundles, their objects for the API server, and olmkit's findings about them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use olmkit::bundle::load::Bundle;
use olmkit::diagnostics::Finding;
use olmkit::object::Version;
use olmkit::validate::Options;
use olmkit::validate::source::{Source, find_bundles};
use rayon::prelude::*;
use serde_json::{Value, json};

/// The objects of one bundle for an API server.
pub struct Subject {
    /// The directory.
    pub bundle: String,
    /// Its CRDs of apiextensions.k8s.io/v1.
    pub definitions: Vec<Definition>,
    /// Its examples.
    pub examples: Vec<Example>,
    /// The Deployments that OLM makes.
    pub deployments: Vec<Value>,
    /// All manifests.
    pub objects: Vec<Value>,
    /// True if operator-sdk passes it.
    pub passed: bool,
    /// The findings.
    pub findings: Vec<Finding>,
}

/// A CRD.
pub struct Definition {
    /// `metadata.name`.
    pub name: String,
    /// The object.
    pub object: Value,
    /// Findings that predict a rejection by the API server.
    pub refusals: Vec<Finding>,
    /// Findings that predict that the API server drops a field.
    pub dropped: Vec<Finding>,
}

/// An example.
pub struct Example {
    /// Counted from one.
    pub number: usize,
    /// The object.
    pub object: Value,
    /// EX-1.
    pub refusals: Vec<Finding>,
    /// EX-2.
    pub dropped: Vec<Finding>,
    /// EX-3.
    pub incomplete: Vec<Finding>,
}

impl Subject {
    /// The CRDs that examples belong to.
    pub fn used_definitions(&self) -> impl Iterator<Item = &Definition> {
        self.definitions
            .iter()
            .filter(|crd| self.examples.iter().any(|example| crd.defines(&example.object)))
    }

    /// The CRD of an example.
    pub fn definition_of(&self, example: &Example) -> Option<&Definition> {
        self.definitions.iter().find(|crd| crd.defines(&example.object))
    }
}

impl Definition {
    /// `spec.group`.
    pub fn group(&self) -> &str {
        self.object
            .pointer("/spec/group")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn defines(&self, example: &Value) -> bool {
        let text = |pointer: &str| self.object.pointer(pointer).and_then(Value::as_str);
        let api = example.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let group = api.split_once('/').map(|(group, _)| group);
        group.is_some() && text("/spec/group") == group && text("/spec/names/kind") == example["kind"].as_str()
    }
}

/// The bundles below the directories.
pub fn find(folders: &[PathBuf], newest: bool, sample: Option<usize>, seed: u64) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in folders {
        found.extend(find_bundles(folder)?);
    }
    if newest {
        let mut highest: BTreeMap<PathBuf, (Option<Version>, PathBuf)> = BTreeMap::new();
        for path in found {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let candidate = (Version::parse(name.trim_start_matches('v')).ok(), path);
            let operator = candidate.1.parent().map(PathBuf::from).unwrap_or_default();
            match highest.get(&operator) {
                Some(known) if *known >= candidate => {}
                _ => drop(highest.insert(operator, candidate)),
            }
        }
        found = highest.into_values().map(|(_, path)| path).collect();
    }
    if let Some(most) = sample {
        fastrand::Rng::with_seed(seed).shuffle(&mut found);
        found.truncate(most);
        found.sort();
    }
    Ok(found)
}

/// Reads and validates bundles. Those that operator-sdk cannot read either are left out.
pub fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Subject>> {
    let options = Options {
        lints: true,
        ..Options::default()
    };
    let subjects: Result<Vec<Option<Subject>>, anyhow::Error> = paths
        .par_iter()
        .map(|path| {
            let (validated, reading) = Source::directory(path).validate(&options)?;
            let findings: Vec<Finding> = validated.outcome.findings().cloned().collect();
            Ok(reading.fatal.is_none().then(|| {
                subject(
                    path.display().to_string(),
                    validated.outcome.passed(),
                    &reading.bundle,
                    &findings,
                )
            }))
        })
        .collect();
    Ok(subjects?.into_iter().flatten().collect())
}

fn subject(bundle: String, passed: bool, read: &Bundle, findings: &[Finding]) -> Subject {
    let those = |holds: &dyn Fn(&Finding) -> bool| -> Vec<Finding> {
        findings.iter().filter(|finding| holds(finding)).cloned().collect()
    };
    let crds = read.crds().filter(|crd| crd.version() == "v1");
    let definitions = crds
        .map(|crd| {
            let object = format!("CustomResourceDefinition/{}", crd.name());
            let of_crd = |finding: &Finding| finding.object.as_deref() == Some(&object);
            Definition {
                name: crd.name().to_string(),
                object: Value::clone(&crd.value),
                refusals: those(&|finding| of_crd(finding) && finding.rule.starts_with("CRD-")),
                dropped: those(&|finding| of_crd(finding) && finding.rule == "FILE-3"),
            }
        })
        .collect();
    let csv = read.csv().and_then(|csv| csv.typed.as_ref());
    let text = csv.and_then(|csv| csv.pointer("/metadata/annotations/alm-examples")?.as_str());
    let list: Vec<Value> = text
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let examples = list.into_iter().enumerate().map(|(at, object)| {
        let title = format!("example {} of ", at + 1);
        let of = |rule: &str| those(&|finding| finding.rule == rule && finding.message.contains(&title));
        Example {
            number: at + 1,
            refusals: of("EX-1"),
            dropped: of("EX-2"),
            incomplete: of("EX-3"),
            object,
        }
    });
    let list = csv.and_then(|csv| csv.pointer("/spec/install/spec/deployments")?.as_array());
    let deployments = list.into_iter().flatten().map(|deployment| {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": deployment["name"], "namespace": "restricted", "labels": deployment["label"]},
            "spec": deployment["spec"],
        })
    });
    Subject {
        bundle,
        definitions,
        examples: examples.filter(|example| example.object.is_object()).collect(),
        deployments: deployments.collect(),
        objects: read.objects.iter().map(|object| Value::clone(&object.value)).collect(),
        passed,
        findings: findings.to_vec(),
    }
}
