//! `olm-spec-descriptors` and `olm-status-descriptors`

use std::collections::BTreeSet;

use olmkit_scorecard::State;
use serde_json::Value;

use super::csv::Csv;
use super::examples::{self, Example};
use super::rules::{Answer, SC_3, SC_6, SC_7, SC_8, SC_9, owned_pointer};
use crate::validate::Checked;

/// Each key of the spec of each example has a descriptor.
pub(super) fn check_spec(csv: &Csv<'_>, answer: &mut Answer) {
    let Some(examples) = start(csv, answer) else { return };
    for example in examples {
        if example.part("spec").is_none() {
            // operator-sdk adds no message.
            answer.result.state = State::Fail;
            let message = format!("the example {} {:?} has no spec", example.kind(), example.name());
            let checked = Checked::new(&SC_3, message);
            answer.add_at(csv.object, &example, checked.hint("add a spec, `{}` if it needs none"));
            continue;
        }
        let keys = match example.keys("spec") {
            Ok(keys) => keys,
            Err(crash) => return crash.into_answer(csv, &example, answer),
        };
        let Some(owned) = owned(csv, &example, answer) else {
            continue;
        };
        let described: BTreeSet<&str> = list(owned, "specDescriptors")
            .iter()
            .map(|entry| text(entry, "path"))
            .collect();
        for key in keys.into_iter().filter(|key| !described.contains(key)) {
            answer.result.fail(format!("{key} does not have a spec descriptor"));
            answer.result.suggest(format!("Add a spec descriptor for {key}"));
            let message = format!("spec.{key} of {} has no descriptor", text(owned, "name"));
            let hint = format!("add an entry with `path: {key}` to specDescriptors, or run with --fix");
            answer.add(at_owned(csv, owned, Checked::new(&SC_7, message).hint(hint)));
        }
    }
}

/// Each owned CRD whose example has a status has descriptors for it.
pub(super) fn check_status(csv: &Csv<'_>, answer: &mut Answer) {
    let Some(examples) = start(csv, answer) else { return };
    for example in examples {
        let Some(owned) = owned(csv, &example, answer) else {
            continue;
        };
        let name = text(owned, "name");
        match example.keys("status") {
            Err(crash) => return crash.into_answer(csv, &example, answer),
            Ok(keys) if keys.is_empty() => {
                let message = format!("the example {} {:?} has no status", example.kind(), example.name());
                answer.add_at(csv.object, &example, Checked::new(&SC_9, message));
                answer.result.suggest(format!(
                "{name} does not have status spec. Note that all objects that represent a physical resource whose state may \
                 vary from the user's desired intent SHOULD have a spec and a status. More info: \
                 https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#spec-and-status"
                ));
            }
            Ok(_) if list(owned, "statusDescriptors").is_empty() => {
                let message = format!("{name} has no status descriptors, but its example has a status");
                let hint = "add statusDescriptors for its fields, or run with --fix";
                answer.add(at_owned(csv, owned, Checked::new(&SC_8, message).hint(hint)));
                answer.result.fail(format!("{name} does not have a status descriptor"));
                answer.result.suggest(format!(
                    "add status descriptor for the crd {name}. If your project is built using Golang you can use the csv \
                     markers. More info: https://sdk.operatorframework.io/docs/building-operators/golang/references/markers/"
                ));
            }
            Ok(_) => {}
        }
    }
}

/// The examples. `None` ends the test.
fn start(csv: &Csv<'_>, answer: &mut Answer) -> Option<Vec<Example>> {
    answer
        .result
        .log(format!("Loaded ClusterServiceVersion: {}", csv.name()));
    match examples::read(csv) {
        Ok(examples) => {
            answer
                .result
                .log(format!("Loaded {} Custom Resources from alm-examples", examples.len()));
            Some(examples)
        }
        Err(error) => {
            examples::unreadable(csv, &error, answer);
            answer.result.error(error);
            None
        }
    }
}

/// The entry for the example's kind and version. The group does not count.
fn owned<'a>(csv: &Csv<'a>, example: &Example, answer: &mut Answer) -> Option<&'a Value> {
    let is_same = |owned: &&Value| text(owned, "kind") == example.kind() && text(owned, "version") == example.version();
    let found = csv.owned().iter().find(is_same);
    if found.is_none() {
        let (name, gvk) = (example.name(), example.gvk());
        let message = format!("the example {name:?} is of {gvk}, and no owned API has this kind and version");
        let hint = "correct its kind and version, or add the API to spec.customresourcedefinitions.owned";
        answer.add_at(csv.object, example, Checked::new(&SC_6, message).hint(hint));
        answer
            .result
            .fail(format!("Failed to find an owned CRD for CR {name} with GVK {gvk}"));
    }
    found
}

fn at_owned(csv: &Csv<'_>, owned: &Value, checked: Checked) -> Checked {
    match csv.object {
        Some(object) => checked.at(object, &owned_pointer(csv.owned(), owned)),
        None => checked,
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}
