//! Permissions that each command needs, in one table. The documentation is generated from it, the commands check the
//! credentials against it before they change anything, and a test compares it with the API server's audit log.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use super::Error;
use super::cause::{Cause, Code};
use super::client::{Cluster, ObjectRef};
use super::kinds;

mod table;

pub use table::{RIGHTS, markdown};

/// Parallel access reviews.
const AT_ONCE: usize = 16;

/// A command that uses a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    /// `run bundle`
    RunBundle,
    /// `run bundle-upgrade`
    BundleUpgrade,
    /// `cleanup`
    Cleanup,
    /// `subscribe`
    Subscribe,
    /// `diagnose`
    Diagnose,
    /// `migrate check` and `migrate plan`
    Migrate,
    /// `scorecard --cluster`
    Scorecard,
    /// `run bundle` and `run bundle-upgrade` with `--olm v1`
    RunBundleV1,
    /// `cleanup --olm v1`
    CleanupV1,
    /// `extension install`
    ExtensionInstall,
    /// `extension status` and `extension diff`
    ExtensionStatus,
    /// `extension uninstall`
    ExtensionUninstall,
    /// `olm status`
    OlmStatus,
    /// `olm install`
    OlmInstall,
    /// `olm uninstall`
    OlmUninstall,
}

impl Command {
    /// Every command, in the order of the documentation.
    pub const ALL: [Command; 15] = [
        Command::RunBundle,
        Command::BundleUpgrade,
        Command::Cleanup,
        Command::Subscribe,
        Command::Diagnose,
        Command::Migrate,
        Command::Scorecard,
        Command::RunBundleV1,
        Command::CleanupV1,
        Command::ExtensionInstall,
        Command::ExtensionStatus,
        Command::ExtensionUninstall,
        Command::OlmStatus,
        Command::OlmInstall,
        Command::OlmUninstall,
    ];

    /// The command as typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Command::RunBundle => "run bundle",
            Command::BundleUpgrade => "run bundle-upgrade",
            Command::Cleanup => "cleanup",
            Command::Subscribe => "subscribe",
            Command::Diagnose => "diagnose",
            Command::Migrate => "migrate",
            Command::Scorecard => "scorecard --cluster",
            Command::RunBundleV1 => "run bundle --olm v1",
            Command::CleanupV1 => "cleanup --olm v1",
            Command::ExtensionInstall => "extension install",
            Command::ExtensionStatus => "extension status",
            Command::ExtensionUninstall => "extension uninstall",
            Command::OlmStatus => "olm status",
            Command::OlmInstall => "olm install",
            Command::OlmUninstall => "olm uninstall",
        }
    }
}

/// Scope of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the whole cluster.
    Cluster,
    /// In the operator's namespace.
    Namespace,
    /// In the operator's namespace and in those of the catalogs.
    Catalogs,
    /// In OLM's namespace.
    Olm,
    /// In the namespace of catalogd.
    Catalogd,
    /// In `kube-system`.
    KubeSystem,
}

impl Place {
    fn text(self) -> &'static str {
        match self {
            Place::Cluster => "whole cluster",
            Place::Namespace => "operator's namespace",
            Place::Catalogs => "operator's and catalogs' namespaces",
            Place::Olm => "OLM's namespace",
            Place::Catalogd => "catalogd's namespace",
            Place::KubeSystem => "kube-system",
        }
    }
}

/// When a right is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Always.
    Always,
    /// When the catalog is served by a pod.
    CatalogPod,
    /// When the namespace has no OperatorGroup.
    NewGroup,
    /// When an earlier attempt to unpack the bundle image remains.
    OldJobs,
    /// If the bundle contains such objects.
    InBundle,
    /// When such objects will be removed.
    Removed,
    /// If a CRD of the package is kept.
    Kept,
    /// If OLM lost track of its objects, and if a run fails.
    Repair,
    /// Never, but without it something is missing from the result.
    Better(&'static str),
}

impl When {
    fn text(self) -> String {
        match self {
            When::Always => String::new(),
            When::CatalogPod => "the catalog is served by a pod".into(),
            When::NewGroup => "the namespace has no OperatorGroup".into(),
            When::OldJobs => "an earlier attempt to unpack the bundle image remains".into(),
            When::InBundle => "the bundle contains such objects".into(),
            When::Removed => "such objects will be removed".into(),
            When::Kept => "a CRD of the package stays".into(),
            When::Repair => "rolling back, or OLM no longer tracks what it installed".into(),
            When::Better(without) => format!("optional: without it {without}"),
        }
    }
}

/// Verbs on resources that commands need.
#[derive(Debug, Clone, Copy)]
pub struct Right {
    /// The commands.
    pub commands: &'static [Command],
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural names; with a slash and a subresource, if one is meant.
    pub resources: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// Scope.
    pub place: Place,
    /// When.
    pub when: When,
}

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
    let of = |object: &ObjectRef| {
        ["get", "delete"].map(|verb| Question {
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
    // Other namespaces are known only later; only read access is needed there, which fails before anything is written.
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

/// Returns true if a permission is for a kind that a bundle contains.
pub fn in_bundle(right: &Right, bundle_kinds: &BTreeSet<(String, String)>) -> bool {
    right.when == When::InBundle
        && bundle_kinds
            .iter()
            .filter_map(|(api_version, kind)| kinds::known(api_version, kind))
            .any(|kind| kind.group == right.group && right.resources.contains(&kind.plural.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
