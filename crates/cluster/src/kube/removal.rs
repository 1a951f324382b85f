//! Removes objects and waits until they are deleted.

use std::time::{Duration, Instant};

use super::client::Cluster;
use super::conditions::Conditions as _;
use super::crd::CrdState;
use serde::Serialize;
use serde_json::Value;

use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::{ProgressLog, Step};
use crate::base::{kinds, names};

/// Removes objects and reports each removed one. `removed` collects them. Returns the objects that still exist at the
/// end of the time limit.
///
/// # Errors
/// [`Error::Request`].
pub async fn remove(
    cluster: &Cluster,
    objects: &[ObjectRef],
    deadline: Instant,
    removed: &mut Vec<ObjectRef>,
    progress: &mut ProgressLog<'_>,
) -> Result<Vec<ObjectRef>, Error> {
    let mut waiting = Vec::new();
    for object in objects {
        if cluster.delete(object).await? {
            waiting.push(object.clone());
        }
    }
    let mut pause = Duration::from_millis(100);
    loop {
        let mut left = Vec::new();
        for object in waiting {
            match cluster.get(&object).await? {
                Some(found) => {
                    // OLM creates its Operator object again while any object has the label.
                    if found.pointer("/metadata/deletionTimestamp").is_none() {
                        cluster.delete(&object).await?;
                    }
                    left.push(object);
                }
                None => {
                    progress.done(format!("{object}: removed"));
                    removed.push(object);
                }
            }
        }
        waiting = left;
        let Some(first) = waiting.first() else {
            return Ok(waiting);
        };
        if Instant::now() > deadline {
            return Ok(waiting);
        }
        progress.waiting(match waiting.len() - 1 {
            0 => format!("{first} to be deleted"),
            others => format!("{first} and {others} other objects to be deleted"),
        });
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// Waits until an object is deleted.
pub(crate) async fn gone(cluster: &Cluster, object: &ObjectRef) -> Result<(), Error> {
    const LIMIT: u64 = 60;
    let began = Instant::now();
    while cluster.get(object).await?.is_some() {
        if began.elapsed().as_secs() >= LIMIT {
            return Err(Error::NotGone {
                object: object.clone(),
                seconds: LIMIT,
            });
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// Result of a cleanup.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// The package.
    pub package: String,
    /// True if anything was found.
    pub found: bool,
    /// Removed objects, or those that would be.
    pub removed: Vec<ObjectRef>,
    /// Kept objects, with the reasons.
    pub kept: Vec<Kept>,
    /// Kept custom resources without the operator's finalizers, or those that would lose them.
    pub released: Vec<Released>,
    /// The causes that block the removal.
    pub causes: Vec<Cause>,
    /// The steps done, with their times.
    pub steps: Vec<Step>,
}

/// A kept object, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Kept {
    /// The object.
    pub object: ObjectRef,
    /// The reason for keeping it.
    pub why: String,
}

impl Kept {
    /// A kept object.
    pub fn new(object: ObjectRef, why: String) -> Self {
        Self { object, why }
    }
}

/// A custom resource that outlives its operator, and lost the operator's finalizers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Released {
    /// The object.
    pub object: ObjectRef,
    /// The released finalizers.
    pub finalizers: Vec<String>,
}

/// The objects of a CRD, in all namespaces.
pub(crate) async fn instances_of(cluster: &Cluster, crd: &CrdState) -> Result<Vec<ObjectRef>, Error> {
    let kind = crd.instances();
    let objects = cluster.list_metadata(&kind).await?;
    Ok(objects
        .iter()
        .map(|object| ObjectRef::from_object(&kind, object))
        .collect())
}

/// The objects that exist.
pub(crate) async fn existing(cluster: &Cluster, objects: &[ObjectRef]) -> Result<Vec<ObjectRef>, Error> {
    let mut found = Vec::new();
    for object in objects {
        if cluster.get(object).await?.is_some() {
            found.push(object.clone());
        }
    }
    Ok(found)
}

/// The cause why an object that is being deleted still exists, and who should act. `operators` are the Deployments that
/// OLM created for the operator. `instead` is a command that uninstalls the operator without its cleanup.
pub(crate) fn blocked(object: &ObjectRef, value: &Value, operators: &[Value], instead: Option<&str>) -> Cause {
    let finalizers: Vec<&str> = value
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let shown = if finalizers.is_empty() {
        "none".to_owned()
    } else {
        finalizers.join(", ")
    };
    let resource = object.kind.resource();
    let resource = names::word(&resource);
    let namespace = object
        .namespace
        .as_ref()
        .map(|namespace| format!(" -n {namespace}"))
        .unwrap_or_default();
    let force = format!(
        "kubectl{namespace} patch {resource} {} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
        names::word(&object.name)
    );
    if value.pointer("/metadata/deletionTimestamp").is_none() {
        let (message, remedy) = match components(value, 5) {
            None => (
                "was deleted, and another client creates it again".to_owned(),
                "find the client in its metadata.managedFields, then run this again".to_owned(),
            ),
            Some(components) => (
                format!("was deleted, and OLM creates it again while objects have its label: {components}"),
                format!(
                    "wait until the garbage collector has deleted the objects that had an owner, or remove the label {}{} from them, then run this again",
                    names::COMPONENT,
                    object.name
                ),
            ),
        };
        return Cause::passing(Code::DeletionBlocked, message, remedy).on(object.clone());
    }
    let message = format!("is being deleted but finalizers keep it: {shown}");
    if object.kind.group == kinds::OLM_GROUP || kinds::known(&object.kind.api_version(), &object.kind.kind).is_some() {
        return Cause::passing(
            Code::DeletionBlocked,
            message,
            format!("check that olm-operator runs (olmkit olm status), then run this again; without OLM: {force}"),
        )
        .on(object.clone());
    }
    let down: Vec<&str> = operators
        .iter()
        .filter(|deployment| !deployment.is_true("Available"))
        .map(|deployment| text(deployment, "/metadata/name"))
        .collect();
    let likely = match (operators.is_empty(), down.as_slice()) {
        (true, _) => "the operator that should remove the finalizer no longer exists".to_owned(),
        (false, []) => "the operator runs but does not finish: see its log".to_owned(),
        (false, names) => format!(
            "the operator that should remove the finalizer is not available: Deployment {}",
            names.join(", ")
        ),
    };
    let instead = instead.map(|instead| format!("{instead}, or ")).unwrap_or_default();
    Cause::passing(
        Code::CustomResourceDeletionBlocked,
        message,
        format!("restore the operator and run this again; or skip its cleanup and leave the external resources that it manages: {instead}{force}"),
    )
    .on(object.clone())
    .likely(likely)
}

/// The objects for which OLM keeps an Operator object, with names for at most `shown`. `None` for other kinds.
pub(crate) fn components(operator: &Value, shown: usize) -> Option<String> {
    let refs = operator.pointer("/status/components/refs")?.as_array()?;
    let named = refs.iter().take(shown).map(|found| {
        let (kind, namespace, name) = (text(found, "/kind"), text(found, "/namespace"), text(found, "/name"));
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{kind} {namespace}{slash}{name}")
    });
    let named: Vec<String> = named.collect();
    let others = match refs.len().saturating_sub(shown) {
        0 => String::new(),
        others => format!(" and {others} other objects"),
    };
    (!named.is_empty()).then(|| named.join(", ") + &others)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_blocked_custom_resource_tells_finalizer_and_operator() {
        let kind = kinds::Kind {
            group: "cache.example.com".into(),
            version: "v1".into(),
            kind: "Cache".into(),
            plural: "caches".into(),
            namespaced: true,
        };
        let object = ObjectRef::namespaced(kind, "shop", "one");
        let value = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["cache.example.com/finalizer"]}});
        let down = json!({"metadata": {"name": "cache-operator"}, "status": {"conditions": [{"type": "Available", "status": "False"}]}});
        let cause = blocked(
            &object,
            &value,
            &[down],
            Some("olmkit cleanup cache --delete-all=false"),
        );
        assert_eq!(cause.code, Code::CustomResourceDeletionBlocked);
        assert!(cause.message.contains("cache.example.com/finalizer"));
        assert!(cause.likely.contains("cache-operator"));
        assert!(
            cause
                .remedy
                .contains("kubectl -n shop patch caches.cache.example.com one")
        );
        assert!(
            cause
                .remedy
                .contains("olmkit cleanup cache --delete-all=false, or kubectl")
        );
        assert!(blocked(&object, &value, &[], None).likely.contains("no longer exists"));
    }

    /// The API server accepts almost any name of a ClusterRole.
    #[test]
    fn names_of_objects_are_quoted_in_commands() {
        let object = ObjectRef::cluster(kinds::cluster_role(), "a$(id)");
        let value = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}});
        let cause = blocked(&object, &value, &[], None);
        assert!(cause.remedy.contains("io 'a$(id)' --type=merge"), "{}", cause.remedy);
        let cause = crate::base::cause::name_taken(object, "kubectl created it");
        assert!(cause.remedy.ends_with("io 'a$(id)'"), "{}", cause.remedy);
    }

    #[test]
    fn an_object_that_is_created_again_names_the_reason() {
        let object = ObjectRef::cluster(kinds::operator(), "cache.shop");
        let role = json!({"kind": "ClusterRole", "name": "cache-viewer"});
        let value = json!({"metadata": {}, "status": {"components": {"refs": [role]}}});
        let cause = blocked(&object, &value, &[], None);
        assert!(
            cause.message.ends_with("its label: ClusterRole cache-viewer"),
            "{}",
            cause.message
        );
        assert!(
            cause.remedy.contains("operators.coreos.com/cache.shop"),
            "{}",
            cause.remedy
        );
        let account = json!({"kind": "ServiceAccount", "namespace": "shop", "name": "cache"});
        let value = json!({"status": {"components": {"refs": vec![account; 7]}}});
        assert_eq!(
            components(&value, 1).unwrap(),
            "ServiceAccount shop/cache and 6 other objects"
        );
        let thing = blocked(&object, &json!({"metadata": {}}), &[], None);
        assert!(thing.message.contains("another client"), "{}", thing.message);
    }
}
