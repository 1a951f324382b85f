//! The Operator Lifecycle Manager: its definitions, its singletons, its two operators as processes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use futures::future::try_join_all;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::access::Access;
use crate::api_server::flag;
use crate::pki::Pki;
use crate::process::{Process, read_to_string};
use crate::tools::{Olm, Programs};
use crate::{Error, arguments};

const LIMIT: Duration = Duration::from_secs(90);
const FIELD_MANAGER: &str = "kube-testbed";

/// Installs OLM into the running control plane.
pub(crate) async fn start(
    programs: &Programs,
    root: &Path,
    pki: &Pki,
    access: &Access,
    processes: &mut Vec<Process>,
) -> Result<(), Error> {
    let Some(olm) = &programs.olm else { return Ok(()) };
    let client = access.client().await?;
    apply_definitions(&client, &olm.crds).await?;
    for (plural, object) in singletons() {
        apply(&client, plural, object).await?;
    }
    start_processes(olm, root, pki, access, &client, processes).await
}

/// The files below `deploy/chart/crds` of OLM's module, each one definition.
async fn apply_definitions(client: &Client, directory: &Path) -> Result<(), Error> {
    let mut definitions = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io("read", directory))? {
        let path = entry.map_err(Error::io("read", directory))?.path();
        let text = read_to_string(&path)?;
        let definition: Value = serde_yaml::from_str(&text).map_err(|source| Error::Manifest {
            path: path.clone(),
            source,
        })?;
        definitions.push(definition);
    }
    let applied = definitions
        .into_iter()
        .map(|definition| apply(client, "customresourcedefinitions", definition));
    let applied = try_join_all(applied).await?;
    try_join_all(applied.iter().map(|definition| established(client, definition)))
        .await
        .map(drop)
}

async fn established(client: &Client, definition: &DynamicObject) -> Result<(), Error> {
    let name = definition.metadata.name.clone().unwrap_or_default();
    let resource = resource(&definition_kind(), "customresourcedefinitions");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let what = format!("see CustomResourceDefinition {name} established");
    let established = kube::runtime::wait::await_condition(api, &name, |object: Option<&DynamicObject>| {
        object
            .and_then(|object| object.data.pointer("/status/conditions")?.as_array().cloned())
            .is_some_and(|conditions| {
                conditions.iter().any(|condition| {
                    condition.get("type") == Some(&json!("Established"))
                        && condition.get("status") == Some(&json!("True"))
                })
            })
    });
    match tokio::time::timeout(LIMIT, established).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(Error::NotReady {
            name: "kube-apiserver",
            what: "established definition",
            seconds: LIMIT.as_secs(),
            reason: format!("{what}: {error}"),
            log: String::new(),
        }),
        Err(_) => Err(Error::NotReady {
            name: "kube-apiserver",
            what: "established definition",
            seconds: LIMIT.as_secs(),
            reason: what,
            log: String::new(),
        }),
    }
}

/// Objects that OLM's installation creates in addition to its Deployments. Without the catalog of operatorhub.io: an
/// unreachable catalog in the global namespace makes every resolution fail.
fn singletons() -> Vec<(&'static str, Value)> {
    let namespace = |name: &str, level: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": level}}});
    vec![
        ("namespaces", namespace("olm", "restricted")),
        ("namespaces", namespace("operators", "baseline")),
        (
            "olmconfigs",
            json!({"apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": {"name": "cluster"}}),
        ),
        (
            "operatorgroups",
            json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "global-operators", "namespace": "operators"}}),
        ),
        (
            "operatorgroups",
            json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "olm-operators", "namespace": "olm"},
                "spec": {"targetNamespaces": ["olm"]}}),
        ),
    ]
}

async fn start_processes(
    olm: &Olm,
    root: &Path,
    pki: &Pki,
    access: &Access,
    client: &Client,
    processes: &mut Vec<Process>,
) -> Result<(), Error> {
    let logs = root.join("logs");
    let environment = [
        ("KUBECONFIG", access.kubeconfig().as_os_str().to_owned()),
        ("OPERATOR_NAMESPACE", "olm".into()),
        ("OPERATOR_NAME", "olm-operator".into()),
    ];
    let mut operator = Process::start(
        "olm-operator",
        &logs,
        &olm.olm,
        arguments!["--namespace=olm"],
        &environment,
    )?;
    // TLS moves the health server from 8080, which the other operator uses, to 8443.
    let arguments = arguments![
        flag("kubeconfig", access.kubeconfig()),
        "--namespace=olm",
        flag("tls-cert", pki.path("apiserver.crt")),
        flag("tls-key", pki.path("apiserver.key")),
        flag("client-ca", pki.path("ca.crt")),
    ];
    let mut catalog = Process::start("catalog-operator", &logs, &olm.catalog, arguments, &[])?;
    let kind = GroupVersionKind::gvk("operators.coreos.com", "v1", "OperatorGroup");
    let groups: Api<DynamicObject> = Api::namespaced_with(client.clone(), "olm", &resource(&kind, "operatorgroups"));
    operator
        .wait_until(
            "OperatorGroup olm/olm-operators with its namespaces resolved",
            LIMIT,
            async || {
                let group = groups.get("olm-operators").await.map_err(|error| error.to_string())?;
                match group.data.pointer("/status/namespaces/0") {
                    Some(_) => Ok(()),
                    None => Err("status.namespaces is empty".to_owned()),
                }
            },
        )
        .await?;
    catalog.check()?;
    processes.push(operator);
    processes.push(catalog);
    Ok(())
}

async fn apply(client: &Client, plural: &str, object: Value) -> Result<DynamicObject, Error> {
    let (kind, name) = (text(&object, "/kind"), text(&object, "/metadata/name"));
    let what = format!("apply {kind} {name}");
    let group_version = text(&object, "/apiVersion");
    let (group, version) = group_version.split_once('/').unwrap_or(("", &group_version));
    let resource = resource(&GroupVersionKind::gvk(group, version, &kind), plural);
    let api: Api<DynamicObject> = match object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.patch(
        &name,
        &PatchParams::apply(FIELD_MANAGER).force(),
        &Patch::Apply(&object),
    )
    .await
    .map_err(Error::request(what))
}

fn resource(kind: &GroupVersionKind, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(kind, plural)
}

fn definition_kind() -> GroupVersionKind {
    GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
}

fn text(object: &Value, pointer: &str) -> String {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
