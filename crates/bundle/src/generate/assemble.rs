//! Combines the parts.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::collect::{Collection, collect};
use super::files::{Names, supported};
use super::typed::Typed;
use super::{
    Error, Input, Notice, OPERATOR_SDK_BUILDER, Options, accounts, almexamples, base, definitions, images, strict,
    unknown_fields, webhooks,
};
use olmkit_base::object::{PathPart, SetAt as _};
use olmkit_go::structs::encode;

type Assembled = (Value, Vec<(String, Value)>, Option<Value>);

pub(super) fn assemble(mut input: Input, options: &Options, notices: &mut Vec<Notice>) -> Result<Assembled, Error> {
    let project_base = input.base.clone();
    // A failed command before the pipe leaves no input. operator-sdk then overwrites the bundle.
    if input.documents.is_empty() {
        return Err(Error::Empty);
    }
    if options.strict {
        strict::without_repetitions(&mut input.documents, notices);
    }
    let found = collect(input, notices)?;
    unknown_fields::report(&found, notices);
    let mut csv = base::choose(&found, project_base.as_ref(), options, notices)?;
    let kept = strict::BaseValues::from_base(&csv);
    let related = images::related(&found, notices)?;
    csv.set_at(&["spec", "relatedImages"], Value::Array(related));
    version(&mut csv, options)?;
    let split = accounts::split(&found, options);
    install(&found, &split, &mut csv);
    definitions::apply(&found, &mut csv);
    csv.set_at(
        &["spec", "webhookdefinitions"],
        Value::Array(webhooks::definitions(&found, notices)),
    );
    annotate(&found, options, &mut csv);
    watch_namespace(&mut csv);
    strict::report(&found, &split, &csv, options, notices);
    strict::upgrade_edges(&mut csv, options);
    if options.strict {
        strict::improve(&found, &kept, &mut csv);
    } else {
        strict::compare(&kept, &csv, notices);
    }

    let csv_file = format!("{}.clusterserviceversion.yaml", options.package.to_lowercase());
    PathPart::new(csv_file.as_str()).map_err(|reason| Error::Package(reason.to_string()))?;
    let mut manifests = vec![(csv_file, finish(&csv))];
    let mut names = Names::default();
    for (origin, object) in objects(&found, &split) {
        let (name, double) = names.of(&object).map_err(|reason| Error::Object {
            origin: origin.document.origin.clone(),
            object: origin.document.object(),
            reason: reason.to_string(),
        })?;
        if double {
            notices.push(strict::doubled(&origin, &name));
        }
        manifests.push((name, object));
    }
    let scorecard = found
        .scorecard
        .as_ref()
        .filter(|scorecard| !scorecard.name().is_empty())
        .map(|scorecard| encode::encode(&scorecard.value, "Configuration"));
    let csv = manifests.first().map(|(_, csv)| csv.clone()).unwrap_or_default();
    Ok((csv, manifests, scorecard))
}

/// Name and version, if a version was given.
fn version(csv: &mut Value, options: &Options) -> Result<(), Error> {
    let Some(version) = &options.version else { return Ok(()) };
    super::check_version(version)?;
    csv.set_at(&["metadata", "name"], format!("{}.v{version}", options.package).into());
    csv.set_at(&["spec", "version"], version.clone().into());
    Ok(())
}

/// Deployments and permissions. A strategy other than `deployment` is not changed.
fn install(found: &Collection, split: &accounts::Split, csv: &mut Value) {
    let strategy = csv
        .pointer("/spec/install/strategy")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if !strategy.is_empty() && strategy != "deployment" {
        return;
    }
    let deployments: Vec<Value> = found
        .deployments
        .iter()
        .map(|deployment| {
            let mut entry = Map::new();
            entry.insert("name".into(), deployment.name().into());
            entry.insert(
                "spec".into(),
                deployment.value.get("spec").cloned().unwrap_or_else(|| json!({})),
            );
            if let Some(labels) = deployment.value.pointer("/metadata/labels") {
                entry.insert("label".into(), labels.clone());
            }
            Value::Object(entry)
        })
        .collect();
    csv.set_at(
        &["spec", "install"],
        json!({
            "strategy": "deployment",
            "spec": {
                "clusterPermissions": split.cluster_permissions,
                "permissions": split.permissions,
                "deployments": deployments,
            },
        }),
    );
}

fn annotate(found: &Collection, options: &Options, csv: &mut Value) {
    let builder = if options.strict {
        super::builder()
    } else {
        OPERATOR_SDK_BUILDER.to_owned()
    };
    let annotations = BTreeMap::from([
        ("alm-examples", almexamples::text(&found.custom_resources)),
        ("createdAt", options.created_at.clone()),
        ("operators.operatorframework.io/builder", builder),
        ("operators.operatorframework.io/project_layout", options.layout.clone()),
    ]);
    for (key, value) in annotations {
        if options.strict && value == "unknown" {
            continue;
        }
        csv.set_at(&["metadata", "annotations", key], value.into());
    }
}

/// OLM sets the namespaces to watch as an annotation of the pod. An existing variable is changed to read it.
fn watch_namespace(csv: &mut Value) {
    let deployments = csv
        .pointer_mut("/spec/install/spec/deployments")
        .and_then(Value::as_array_mut);
    for deployment in deployments.into_iter().flatten() {
        let containers = deployment
            .pointer_mut("/spec/template/spec/containers")
            .and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let variables = container.get_mut("env").and_then(Value::as_array_mut);
            for variable in variables.into_iter().flatten() {
                if variable.get("name").and_then(Value::as_str) == Some("WATCH_NAMESPACE") {
                    *variable = json!({
                        "name": "WATCH_NAMESPACE",
                        "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}},
                    });
                }
            }
        }
    }
}

/// The CSV for printing: in its type's form, without status, and without the creation time that Go prints as null in
/// every embedded metadata.
pub(super) fn finish(csv: &Value) -> Value {
    let mut csv = encode::encode(csv, "ClusterServiceVersion");
    if let Some(map) = csv.as_object_mut() {
        map.remove("status");
    }
    remove_creation_timestamp(&mut csv);
    // `cleanup` was added to the type later, and older versions of OLM do not support it. It is removed if it has no
    // effect.
    let cleanup = csv
        .pointer("/spec/cleanup")
        .is_some_and(|cleanup| cleanup == &json!({"enabled": false}));
    if cleanup && let Some(Value::Object(spec)) = csv.get_mut("spec") {
        spec.remove("cleanup");
    }
    csv
}

/// Go's own rule: an object that has the field loses it and is not searched further.
fn remove_creation_timestamp(value: &mut Value) {
    let Some(map) = value.as_object_mut() else { return };
    if map.remove("creationTimestamp").is_some() {
        return;
    }
    for member in map.values_mut() {
        match member {
            Value::Object(_) => remove_creation_timestamp(member),
            Value::Array(list) => list.iter_mut().for_each(remove_creation_timestamp),
            _ => {}
        }
    }
}

/// The objects that become files, in the order of writing, without their namespaces.
fn objects(found: &Collection, split: &accounts::Split) -> Vec<(Typed, Value)> {
    let mut objects = Vec::new();
    let mut add = |object: &Typed, key: &str| {
        let mut value = encode::encode(&object.value, key);
        without_namespace(&mut value);
        objects.push((object.clone(), value));
    };
    for definition in &found.definitions {
        let beta = definition.document.group_version().1 == "v1beta1";
        add(
            definition,
            if beta {
                "v1beta1.CustomResourceDefinition"
            } else {
                "v1.CustomResourceDefinition"
            },
        );
    }
    for service in &found.services {
        add(service, "Service");
    }
    for other in found.others.iter().filter(|other| supported(other.kind())) {
        let typed = Typed {
            document: other.clone(),
            value: other.value.clone(),
        };
        let mut value = other.value.clone();
        without_namespace(&mut value);
        objects.push((typed, value));
    }
    let mut add = |object: &Typed| {
        let mut value = encode::encode(&object.value, object.document.kind());
        without_namespace(&mut value);
        objects.push((object.clone(), value));
    };
    split.files.iter().for_each(&mut add);
    objects
}

fn without_namespace(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("namespace");
    }
}
