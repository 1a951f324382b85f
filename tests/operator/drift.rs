//! Changes of applied fields are reverted.
use std::collections::BTreeMap;

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, Secret, Service},
        events::v1::Event,
        policy::v1::PodDisruptionBudget,
    },
};
use kube::{
    Api, Resource,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, TypeMeta},
};
use kube_manager::drift::differs;
use memcached_operator::operand;
use serde::Serialize;
use serde_json::{Value, json};

use crate::lab::{IMAGE, Lab, eventually, value};

/// Paths of all values in `applied`, each as JSON pointer.
fn leaves(applied: &Value, path: &str, found: &mut Vec<String>) {
    match applied {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            leaves(
                value,
                &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")),
                found,
            )
        }),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(index, value)| leaves(value, &format!("{path}/{index}"), found)),
        _ => found.push(path.to_owned()),
    }
}

/// Another value that the API server accepts in the place of `value`, as far as it accepts any.
fn another(path: &str, value: &Value) -> Value {
    match value {
        Value::Bool(value) => json!(!value),
        Value::Number(number) => json!(number.as_i64().unwrap() + 1),
        Value::String(text) => json!(match text.as_str() {
            "TCP" => "UDP",
            "IfNotPresent" => "Always",
            "RuntimeDefault" => "Unconfined",
            "ALL" => "NET_RAW",
            "AlwaysAllow" => "IfHealthyBudget",
            "FallbackToLogsOnError" => "File",
            "RollingUpdate" if path.contains("updateStrategy") => "OnDelete",
            // Values of Secrets are in Base64.
            _ if path.starts_with("/data/") => "b3RoZXI=",
            _ if path.ends_with("/requests/memory") => "64Mi",
            _ if path.ends_with("/limits/memory") => "256Mi",
            "memcached" if path.ends_with("/targetPort") || path.ends_with("/port") => "other",
            text if text.parse::<u32>().is_ok() => "7",
            _ => "other",
        }),
        other => panic!("{path}: {other}"),
    }
}

/// Changes every field of `applied` in turn and waits until the change is reverted. Returns the immutable fields.
async fn disturb<K>(lab: &Lab, applied: &K) -> Vec<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize,
{
    disturb_some(lab, applied, |_| true).await
}

/// As [`disturb`], for the fields whose paths meet the condition.
async fn disturb_some<K>(lab: &Lab, applied: &K, is_meant: impl Fn(&str) -> bool) -> Vec<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize,
{
    let name = applied.meta().name.clone().unwrap();
    let applied = value(applied);
    let resource = kube::api::ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(lab.client.clone(), &lab.namespace, &resource);
    let by_hand = PatchParams {
        field_manager: Some("another".to_owned()),
        ..PatchParams::default()
    };
    let mut paths = Vec::new();
    for part in ["/metadata/labels", "/spec", "/data"] {
        if let Some(applied) = applied.pointer(part) {
            leaves(applied, part, &mut paths);
        }
    }
    // These are merge keys: with another name it is another entry, and the applied one is missing, which
    // `a_renamed_container_comes_back` covers.
    let merge_keys = [
        "/containers/0/name",
        "/topologySpreadConstraints/0/topologyKey",
        "/whenUnsatisfiable",
    ];
    paths.retain(|path| is_meant(path) && !merge_keys.iter().any(|key| path.ends_with(key)));
    twice_for_each_value(&mut paths);
    let mut fixed = Vec::new();
    for path in paths {
        let before = applied.pointer(&path).unwrap();
        let mut generation = None;
        // Retries if only the status was written since, as by a controller that is late on a busy machine.
        let replaced = loop {
            let mut live = value(&api.get(&name).await.unwrap());
            let now = live["metadata"]["generation"].as_i64();
            assert!(
                generation.is_none_or(|before| before == now),
                "{path}: written between read and write although the object was settled"
            );
            generation = Some(now);
            *live.pointer_mut(&path).unwrap_or_else(|| panic!("{path} is not there")) = another(&path, before);
            let changed: DynamicObject = serde_json::from_value(live).unwrap();
            assert_eq!(
                changed.types.as_ref().map(|types: &TypeMeta| types.kind.as_str()),
                Some(&*K::kind(&()))
            );
            let parameters = kube::api::PostParams {
                field_manager: by_hand.field_manager.clone(),
                ..Default::default()
            };
            match api.replace(&name, &parameters, &changed).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                other => break other,
            }
        };
        match replaced {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 422 => {
                fixed.push(path);
                continue;
            }
            Err(error) => panic!("{path}: {error}"),
        }
        eventually(&format!("{} {path} is reverted", K::kind(&())), async || {
            let live = api.get_opt(&name).await.unwrap()?;
            differs(
                &json!({ "metadata": applied["metadata"], "spec": applied["spec"], "data": applied["data"] }),
                &value(&live),
            )
            .is_none()
            .then_some(())
        })
        .await;
        settle(lab, &api, &name).await;
    }
    fixed
}

/// Keeps two fields of each list that is one value: the third change of a value counts as a conflict, which the operator
/// answers later and later.
fn twice_for_each_value(paths: &mut Vec<String>) {
    let keyed = [
        "containers",
        "volumes",
        "volumeMounts",
        "ports",
        "env",
        "topologySpreadConstraints",
    ];
    let mut seen = BTreeMap::new();
    paths.retain(|path| {
        let parts: Vec<&str> = path.split('/').collect();
        let is_value = |pair: &[&str]| pair[1].parse::<usize>().is_ok() && !keyed.contains(&pair[0]);
        let Some(end) = parts.windows(2).position(is_value) else {
            return true;
        };
        let count = seen.entry(parts[..=end].join("/")).or_insert(0);
        *count += 1;
        *count <= 2
    });
}

/// Waits until the object no longer changes and the Memcached is running.
async fn settle(lab: &Lab, api: &Api<DynamicObject>, name: &str) {
    lab.running("sample").await;
    let mut last = None;
    eventually("the object is settled", async || {
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        let now = api.get(name).await.unwrap().metadata.resource_version;
        let same = now == last;
        last = now;
        same.then_some(())
    })
    .await;
}

#[tokio::test]
async fn every_field_of_the_deployment() {
    let lab = Lab::new("drift-deployment").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 1 })).await;
    let memcached = lab.running("sample").await;
    let fixed = disturb(&lab, &operand::deployment(&memcached, IMAGE)).await;
    let selector = "/spec/selector/matchLabels/";
    let template = "/spec/template/metadata/labels/";
    for path in &fixed {
        let expected = path.starts_with(selector)
            || [operand::OWNER, "app.kubernetes.io~1instance", "app.kubernetes.io~1name"]
                .iter()
                .any(|label| *path == format!("{template}{label}"))
            || path == "/spec/strategy/type";
        assert!(expected, "cannot change {path}");
    }
    lab.event("sample", "Reverted").await;
}

#[tokio::test]
async fn every_field_of_the_stateful_set_and_its_lists() {
    let lab = Lab::new("drift-set").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 1, "workload": "StatefulSet" }))
        .await;
    let memcached = lab.running("sample").await;
    assert_eq!(
        disturb(&lab, &operand::server_list(&memcached)).await,
        Vec::<String>::new()
    );
    assert_eq!(disturb(&lab, &operand::binding(&memcached)).await, Vec::<String>::new());
    let set = operand::stateful_set(&memcached, IMAGE);
    // `every_field_of_the_deployment` covers the pods, which are the same.
    let of_set = |path: &str| !path.starts_with("/spec/template/spec/");
    for path in disturb_some(&lab, &set, of_set).await {
        let is_fixed = ["/spec/selector/", "/spec/podManagementPolicy", "/spec/serviceName"];
        let is_selected = [operand::OWNER, "app.kubernetes.io~1instance", "app.kubernetes.io~1name"];
        let is_label = |label: &&str| path == format!("/spec/template/metadata/labels/{label}");
        let expected = is_fixed.iter().any(|fixed| path.starts_with(fixed)) || is_selected.iter().any(is_label);
        assert!(expected, "cannot change {path}");
    }
}

#[tokio::test]
async fn every_field_of_the_service_and_the_budget() {
    let lab = Lab::new("drift-others").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    let memcached = lab.running("sample").await;
    assert_eq!(
        disturb(&lab, &operand::service(&memcached)).await,
        ["/spec/clusterIP", "/spec/type"]
    );
    assert_eq!(
        disturb(&lab, &operand::budget(&memcached, 0)).await,
        Vec::<String>::new()
    );
}

/// Another key in a selector removes all pods from it.
#[tokio::test]
async fn keys_that_others_add_to_selectors_are_removed() {
    let lab = Lab::new("drift-selectors").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    is_the_selector_again::<Service>(&lab, "/spec/selector").await;
    is_the_selector_again::<PodDisruptionBudget>(&lab, "/spec/selector/matchLabels").await;
}

/// Adds a key to the selector at `path`, and waits until it is removed and reported.
async fn is_the_selector_again<K>(lab: &Lab, path: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let resource = kube::api::ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(lab.client.clone(), &lab.namespace, &resource);
    let selector = async || {
        let object = value(&api.get("sample").await.unwrap());
        object.pointer(path).unwrap().clone()
    };
    let before = selector().await;
    let add = json!([{ "op": "add", "path": format!("{path}/by-hand"), "value": "yes" }]);
    let add = Patch::Json::<()>(serde_json::from_value(add).unwrap());
    let by_hand = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    api.patch("sample", &by_hand, &add).await.unwrap();
    eventually(&format!("the selector of the {}", K::kind(&())), async || {
        (selector().await == before).then_some(())
    })
    .await;
    let reverted = format!("{} sample: ", K::kind(&()));
    eventually("an event about it", async || {
        let events = lab.api::<Event>().list(&ListParams::default()).await.unwrap();
        let is_reverted = |event: &&Event| event.reason.as_deref() == Some("Reverted");
        let mut notes = events.iter().filter(is_reverted).filter_map(|event| event.note.clone());
        notes.find(|note| note.starts_with(&reverted) && note.ends_with("changed by kubectl-edit"))
    })
    .await;
}

#[tokio::test]
async fn deleted_objects_come_back() {
    let lab = Lab::new("deleted-objects").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    comes_back::<Service>(&lab, "sample").await;
    comes_back::<PodDisruptionBudget>(&lab, "sample").await;
    comes_back::<Deployment>(&lab, "sample").await;
    assert_eq!(lab.running("sample").await.status.unwrap().nodes.len(), 2);
    lab.change("sample", json!({ "workload": "StatefulSet" })).await;
    lab.running("sample").await;
    comes_back::<ConfigMap>(&lab, "sample-servers").await;
    comes_back::<Secret>(&lab, "sample-binding").await;
    comes_back::<StatefulSet>(&lab, "sample").await;
    assert_eq!(lab.running("sample").await.status.unwrap().servers.len(), 2);
}

async fn comes_back<K>(lab: &Lab, name: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + serde::de::DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let api = lab.api::<K>();
    let before = api.get(name).await.unwrap().meta().uid.clone();
    api.delete(name, &DeleteParams::default()).await.unwrap();
    eventually(&format!("{} comes back", K::kind(&())), async || {
        let now = api.get_opt(name).await.unwrap()?;
        (now.meta().uid != before && now.meta().deletion_timestamp.is_none()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_renamed_container_comes_back() {
    let lab = Lab::new("renamed").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({})).await;
    lab.running("sample").await;
    let rename =
        json!({ "spec": { "template": { "spec": { "containers": [{ "name": "other", "image": "other:1" }] } } } });
    lab.api::<Deployment>()
        .patch("sample", &PatchParams::default(), &Patch::Merge(rename))
        .await
        .unwrap();
    eventually("the container is back", async || {
        let deployment = lab.api::<Deployment>().get("sample").await.unwrap();
        let containers = deployment.spec?.template.spec?.containers;
        containers
            .iter()
            .any(|container| container.name == "memcached" && container.image.as_deref() == Some(IMAGE))
            .then_some(())
    })
    .await;
}

/// Fields that the operator does not apply are kept.
#[tokio::test]
async fn fields_of_others_stay() {
    let lab = Lab::new("others-fields").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 1 })).await;
    lab.running("sample").await;
    let theirs = json!({
        "metadata": { "annotations": { "example.com/cost-centre": "7" } },
        "spec": { "revisionHistoryLimit": 3 },
    });
    lab.api::<Deployment>()
        .patch("sample", &PatchParams::default(), &Patch::Merge(theirs))
        .await
        .unwrap();
    lab.change("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let deployment = lab.api::<Deployment>().get("sample").await.unwrap();
    assert_eq!(deployment.metadata.annotations.unwrap()["example.com/cost-centre"], "7");
    assert_eq!(deployment.spec.unwrap().revision_history_limit, Some(3));
}

#[tokio::test]
async fn a_status_written_by_another_client_is_corrected() {
    let lab = Lab::new("status-drift").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({})).await;
    lab.running("sample").await;
    let memcacheds = lab.api::<memcached_operator::api::v1alpha1::Memcached>();
    let lie = json!({ "status": { "readyReplicas": 42, "nodes": ["nowhere"] } });
    memcacheds
        .patch_status("sample", &PatchParams::default(), &Patch::Merge(lie))
        .await
        .unwrap();
    eventually("the status is true again", async || {
        let status = memcacheds.get("sample").await.unwrap().status?;
        (status.ready_replicas == Some(1) && status.nodes == lab.pods("sample").await).then_some(())
    })
    .await;
}
