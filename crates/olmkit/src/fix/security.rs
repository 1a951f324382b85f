//! Missing fields for the Pod Security Standard `restricted`.

use serde_json::{Value, json};

use super::facts::Facts;
use super::{Action, Proposal, proposal};

/// The missing fields of the security contexts. Fields with another value are kept, because they are deliberate.
pub(super) fn propose(facts: &Facts) -> Vec<Proposal> {
    let Some(csv) = facts.csv() else { return Vec::new() };
    let mut proposals = Vec::new();
    for (at, deployment) in csv.deployments().iter().enumerate() {
        let Some(pod) = deployment.pointer("/spec/template/spec") else {
            continue;
        };
        let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec");
        let mut actions = lacking(
            pod,
            &pointer,
            &[
                ("runAsNonRoot", json!(true)),
                ("seccompProfile", json!({"type": "RuntimeDefault"})),
            ],
        );
        for list in ["initContainers", "containers"] {
            let containers = pod.get(list).and_then(Value::as_array);
            for (at, container) in containers.into_iter().flatten().enumerate() {
                actions.extend(lacking(
                    container,
                    &format!("{pointer}/{list}/{at}"),
                    &[
                        ("allowPrivilegeEscalation", json!(false)),
                        ("capabilities", json!({"drop": ["ALL"]})),
                    ],
                ));
            }
        }
        if !actions.is_empty() {
            let name = deployment.get("name").and_then(Value::as_str).unwrap_or_default();
            let title = format!("restrict the security contexts of deployment {name}");
            proposals.push(proposal(&csv.object.path, title, false, &pointer, actions));
        }
    }
    proposals
}

/// The changes that add the missing fields to the security context of a pod or container.
fn lacking(of: &Value, pointer: &str, fields: &[(&str, Value)]) -> Vec<Action> {
    let context = of.get("securityContext").and_then(Value::as_object);
    let missing = fields
        .iter()
        .filter(|(key, _)| context.is_none_or(|context| !context.contains_key(*key)));
    let add = |map: &str, key: &str, value: Value| Action::Add {
        map: map.to_owned(),
        key: key.to_owned(),
        value,
    };
    if context.is_some() {
        let map = format!("{pointer}/securityContext");
        return missing.map(|(key, value)| add(&map, key, value.clone())).collect();
    }
    let all = missing.map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    vec![add(pointer, "securityContext", Value::Object(all))]
}
