//! Checks the credentials with access reviews of the API server.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use super::right::{Command, Place, Right, When};
use super::table::RIGHTS;
use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::object_ref::ObjectRef;
use crate::kube::client::Cluster;

/// Parallel access reviews.
const AT_ONCE: usize = 16;

/// Permissions that a command always needs and the credentials lack, one cause for each resource.
///
/// # Errors
/// [`Error::Request`].
pub async fn missing_always(cluster: &Cluster, command: Command) -> Result<Vec<Cause>, Error> {
    missing(cluster, command, |right| right.when == When::Always).await
}

/// The applicable permissions of a command that the credentials lack, one cause for each resource. Runs before the
/// command changes anything.
///
/// # Errors
/// [`Error::Request`].
pub async fn missing(
    cluster: &Cluster,
    command: Command,
    applies: impl Fn(&Right) -> bool,
) -> Result<Vec<Cause>, Error> {
    let rights = RIGHTS
        .iter()
        .filter(|right| right.commands.contains(&command) && applies(right));
    refused(
        cluster,
        command,
        rights.flat_map(|right| questions(right, &cluster.namespace)).collect(),
    )
    .await
}

/// The missing permissions for removing these objects.
///
/// # Errors
/// [`Error::Request`].
pub async fn missing_to_remove(
    cluster: &Cluster,
    command: Command,
    objects: impl IntoIterator<Item = &ObjectRef>,
) -> Result<Vec<Cause>, Error> {
    missing_on(cluster, command, ["get", "delete"], objects).await
}

/// The missing permissions for changing these objects.
///
/// # Errors
/// [`Error::Request`].
pub async fn missing_to_change(
    cluster: &Cluster,
    command: Command,
    objects: impl IntoIterator<Item = &ObjectRef>,
) -> Result<Vec<Cause>, Error> {
    missing_on(cluster, command, ["get", "patch"], objects).await
}

async fn missing_on(
    cluster: &Cluster,
    command: Command,
    verbs: [&'static str; 2],
    objects: impl IntoIterator<Item = &ObjectRef>,
) -> Result<Vec<Cause>, Error> {
    let of = |object: &ObjectRef| {
        verbs.map(|verb| Question {
            group: object.kind.group.clone(),
            resource: object.kind.plural.clone(),
            subresource: String::new(),
            namespace: object.namespace.clone(),
            verb,
        })
    };
    refused(cluster, command, objects.into_iter().flat_map(of).collect()).await
}

async fn refused(cluster: &Cluster, command: Command, wanted: BTreeSet<Question>) -> Result<Vec<Cause>, Error> {
    let asked = wanted.into_iter().map(|question| async move {
        let allowed = is_allowed(cluster, &question).await?;
        Ok::<_, Error>((question, allowed))
    });
    let answers: Vec<(Question, bool)> = futures::stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
    let mut refused: BTreeMap<(String, Option<String>), Vec<&str>> = BTreeMap::new();
    for (question, _) in answers.into_iter().filter(|(_, allowed)| !allowed) {
        let place = (question.resource(), question.namespace.clone());
        refused.entry(place).or_default().push(question.verb);
    }
    Ok(refused
        .into_iter()
        .map(|((resource, namespace), verbs)| cause(command, &resource, namespace.as_deref(), &verbs))
        .collect())
}

fn cause(command: Command, resource: &str, namespace: Option<&str>, verbs: &[&str]) -> Cause {
    let (place, flag) = match namespace {
        Some(namespace) => (format!("in namespace {namespace}"), format!("-n {namespace}")),
        None => ("in the whole cluster".to_owned(), "--all-namespaces".to_owned()),
    };
    let first = verbs.first().copied().unwrap_or_default();
    Cause::lasting(
        Code::Forbidden,
        format!(
            "no permission to {} {resource} {place}, which {} needs",
            verbs.join(", "),
            command.as_str()
        ),
        format!(
            "use credentials with this permission (--kubeconfig) or ask an administrator; check with kubectl auth can-i {first} {resource} {flag}; docs/reference/permissions.md lists the permissions of every command"
        ),
    )
}

/// One permission as an access review.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    group: String,
    resource: String,
    subresource: String,
    namespace: Option<String>,
    verb: &'static str,
}

impl Question {
    /// As `kubectl` names it.
    fn resource(&self) -> String {
        let mut text = self.resource.clone();
        if !self.group.is_empty() {
            text = format!("{text}.{}", self.group);
        }
        if !self.subresource.is_empty() {
            text = format!("{text}/{}", self.subresource);
        }
        text
    }
}

fn questions(right: &Right, own: &str) -> Vec<Question> {
    // Other namespaces are known only later. Only read access is needed there, which fails before anything is written.
    let namespace = match right.place {
        Place::Cluster => None,
        Place::Namespace | Place::Catalogs => Some(own.to_owned()),
        Place::Olm | Place::Catalogd => return Vec::new(),
        Place::KubeSystem => Some("kube-system".to_owned()),
    };
    let mut found = Vec::new();
    for resource in right.resources {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        for verb in right.verbs {
            found.push(Question {
                group: right.group.to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                namespace: namespace.clone(),
                verb,
            });
        }
    }
    found
}

/// Sends an access review. If the API server does not support them, the request itself will show the result.
async fn is_allowed(cluster: &Cluster, question: &Question) -> Result<bool, Error> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "group": question.group,
            "resource": question.resource,
            "subresource": question.subresource,
            "namespace": question.namespace.as_deref().unwrap_or_default(),
            "verb": question.verb,
        }},
    });
    match cluster.ask(&review).await {
        Ok(answer) => Ok(answer
            .pointer("/status/allowed")
            .and_then(Value::as_bool)
            .unwrap_or(true)),
        Err(error) if matches!(error.code(), Some(403 | 404)) => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::right::in_bundle;

    #[test]
    fn missing_rights_are_named_with_their_place() {
        let cause = cause(Command::Cleanup, "pods", Some("shop"), &["get", "list"]);
        assert_eq!(cause.code, Code::Forbidden);
        assert_eq!(
            cause.message,
            "no permission to get, list pods in namespace shop, which cleanup needs"
        );
        assert!(
            cause.remedy.contains("kubectl auth can-i get pods -n shop"),
            "{}",
            cause.remedy
        );
        let question = Question {
            group: "operators.coreos.com".into(),
            resource: "subscriptions".into(),
            subresource: "status".into(),
            namespace: None,
            verb: "patch",
        };
        assert_eq!(question.resource(), "subscriptions.operators.coreos.com/status");
    }

    #[test]
    fn rights_on_kinds_apply_to_bundles_that_hold_them() {
        let right = Right {
            commands: &[Command::RunBundle],
            group: "rbac.authorization.k8s.io",
            resources: &["clusterroles"],
            verbs: &["patch"],
            place: Place::Cluster,
            when: When::InBundle,
        };
        let kind = |kind: &str| BTreeSet::from([("rbac.authorization.k8s.io/v1".to_owned(), kind.to_owned())]);
        assert!(in_bundle(&right, &kind("ClusterRole")));
        assert!(!in_bundle(&right, &kind("Role")));
        assert!(!in_bundle(
            &Right {
                when: When::Always,
                ..right
            },
            &kind("ClusterRole")
        ));
    }
}
