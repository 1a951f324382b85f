//! `olm-spec-descriptors` and `olm-status-descriptors`

use std::collections::BTreeSet;

use olmkit_scorecard::{State, TestResult};
use serde_json::Value;

use super::builtin::Csv;
use super::examples::{self, Example};

/// Each key of the spec of each example has a descriptor.
pub(super) fn check_spec(csv: &Csv<'_>, result: &mut TestResult) {
    let Some(examples) = start(csv, result) else { return };
    for example in examples {
        if example.part("spec").is_none() {
            // operator-sdk says nothing more about it.
            result.state = State::Fail;
            continue;
        }
        let keys = match example.keys("spec") {
            Ok(keys) => keys,
            Err(crash) => return crash.into_result(result),
        };
        let Some(owned) = owned(csv, &example, result) else {
            continue;
        };
        let described: BTreeSet<&str> = list(owned, "specDescriptors")
            .iter()
            .map(|entry| text(entry, "path"))
            .collect();
        for key in keys.into_iter().filter(|key| !described.contains(key)) {
            result.fail(format!("{key} does not have a spec descriptor"));
            result.suggest(format!("Add a spec descriptor for {key}"));
        }
    }
}

/// Each owned CRD whose example has a status has descriptors for it.
pub(super) fn check_status(csv: &Csv<'_>, result: &mut TestResult) {
    let Some(examples) = start(csv, result) else { return };
    for example in examples {
        let Some(owned) = owned(csv, &example, result) else {
            continue;
        };
        let name = text(owned, "name");
        match example.keys("status") {
            Err(crash) => return crash.into_result(result),
            Ok(keys) if keys.is_empty() => result.suggest(format!(
                "{name} does not have status spec. Note that all objects that represent a physical resource whose state may \
                 vary from the user's desired intent SHOULD have a spec and a status. More info: \
                 https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#spec-and-status"
            )),
            Ok(_) if list(owned, "statusDescriptors").is_empty() => {
                result.fail(format!("{name} does not have a status descriptor"));
                result.suggest(format!(
                    "add status descriptor for the crd {name}. If your project is built using Golang you can use the csv \
                     markers. More info: https://sdk.operatorframework.io/docs/building-operators/golang/references/markers/"
                ));
            }
            Ok(_) => {}
        }
    }
}

/// The examples; `None` ends the test.
fn start(csv: &Csv<'_>, result: &mut TestResult) -> Option<Vec<Example>> {
    result.log(format!("Loaded ClusterServiceVersion: {}", csv.name()));
    match examples::read(csv) {
        Ok(examples) => {
            result.log(format!("Loaded {} Custom Resources from alm-examples", examples.len()));
            Some(examples)
        }
        Err(error) => {
            result.error(error);
            None
        }
    }
}

/// The entry for the example's kind and version; the group does not count.
fn owned<'a>(csv: &Csv<'a>, example: &Example, result: &mut TestResult) -> Option<&'a Value> {
    let is_same = |owned: &&Value| text(owned, "kind") == example.kind() && text(owned, "version") == example.version();
    let found = csv.owned().iter().find(is_same);
    if found.is_none() {
        let (name, gvk) = (example.name(), example.gvk());
        result.fail(format!("Failed to find an owned CRD for CR {name} with GVK {gvk}"));
    }
    found
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}
