//! Compares the API server's audit log with the table.

use std::collections::BTreeSet;

use kube_testbed::AuditEvent;
use olmkit_cluster::rights::{Command, Place, RIGHTS, Right, When};

use super::NAMESPACE;
use super::accounts::{ACCOUNTS, name};
use crate::catalogd::SYSTEM;
use crate::harness::Cluster;

/// Returns true if the scenes require it.
fn is_exercised(command: Command, when: When) -> bool {
    match when {
        When::OldJobs | When::Repair | When::Kept | When::Operands | When::Better(_) => false,
        When::CatalogPod => command == Command::RunBundle,
        _ => true,
    }
}

/// One use of a right: resource, verb, and the place that the request named.
type Use = (String, String, String, String);

/// Compares the table with the API server's audit log.
pub async fn compare(cluster: &Cluster, commands: &[Command], own_group: &str) {
    let events = cluster.plane.audit_events().unwrap();
    let (mut unlisted, mut unused) = (Vec::new(), Vec::new());
    for command in commands {
        let user = format!("system:serviceaccount:{ACCOUNTS}:{}", name(*command));
        let uses: BTreeSet<Use> = events
            .iter()
            .filter(|event| event.user.username == user)
            .flat_map(uses)
            .filter(|(group, ..)| ![own_group, "second.example.com", "authorization.k8s.io"].contains(&group.as_str()))
            .collect();
        assert!(!uses.is_empty(), "{command:?}");
        let rights = || RIGHTS.iter().filter(|right| right.commands.contains(command));
        for used in &uses {
            if !rights().any(|right| covers(right, used)) {
                unlisted.push(format!("{command:?}: {used:?}"));
            }
        }
        for right in rights().filter(|right| is_exercised(*command, right.when)) {
            for (resource, verb) in right
                .resources
                .iter()
                .flat_map(|one| right.verbs.iter().map(move |verb| (one, verb)))
            {
                let is_used = |used: &Use| covers(right, used) && used.1 == *resource && used.2 == *verb;
                let is_unseen = UNSEEN.contains(&(*command, format!("{verb} {resource}").as_str()))
                    // Only OLM's own objects can be removed.
                    || *command == Command::OlmUninstall && *verb != "list";
                if !is_unseen && !uses.iter().any(is_used) {
                    unused.push(format!("{command:?}: {verb} {resource}"));
                }
            }
        }
    }
    assert!(
        unlisted.is_empty(),
        "permissions are needed that the table does not have: {unlisted:#?}"
    );
    assert!(unused.is_empty(), "the table has unused permissions: {unused:#?}");
}

/// Permissions that are needed and that these scenes do not require, or that no request shows.
const UNSEEN: &[(Command, &str)] = &[
    // Asked for by the API server when a ClusterRole or a binding is written.
    (Command::OlmInstall, "escalate clusterroles"),
    (Command::OlmInstall, "bind clusterroles"),
    // Objects of the Subscription or the CatalogSource may have been deleted with it.
    (Command::Cleanup, "get installplans"),
    (Command::Cleanup, "get configmaps"),
    (Command::Cleanup, "get services"),
    (Command::Cleanup, "get deployments"),
    // The bundles have no webhooks, and nothing is in need of a network policy.
    (Command::Cleanup, "get networkpolicies"),
    (Command::Cleanup, "delete networkpolicies"),
    (Command::Cleanup, "get rolebindings"),
    (Command::Cleanup, "delete rolebindings"),
    (Command::Cleanup, "get mutatingwebhookconfigurations"),
    (Command::Cleanup, "delete mutatingwebhookconfigurations"),
    (Command::Cleanup, "get validatingwebhookconfigurations"),
    (Command::Cleanup, "delete validatingwebhookconfigurations"),
    // Without waiting for packageserver.
    (Command::OlmInstall, "get clusterserviceversions"),
];

fn uses(event: &AuditEvent) -> Vec<Use> {
    let Some(object) = &event.object_ref else {
        return Vec::new();
    };
    let resource = if object.subresource.is_empty() {
        object.resource.clone()
    } else {
        format!("{}/{}", object.resource, object.subresource)
    };
    let used = |verb: &str| {
        (
            object.api_group.clone(),
            resource.clone(),
            verb.to_owned(),
            object.namespace.clone(),
        )
    };
    let code = event.code();
    let mut found = vec![used(&event.verb)];
    // An apply that creates is a patch in the log.
    if event.verb == "patch" && code == 201 {
        found.push(used("create"));
    }
    found
}

fn covers(right: &Right, (group, resource, verb, namespace): &Use) -> bool {
    let place = match right.place {
        Place::Cluster => true,
        Place::Namespace => namespace == NAMESPACE,
        Place::Catalogs => namespace == NAMESPACE || namespace == "olm",
        Place::Olm => namespace == "olm",
        Place::Catalogd => namespace == SYSTEM,
        Place::KubeSystem => namespace == "kube-system",
    };
    let of_group = right.group == group || right.group == "*";
    let of_resource = right.resources.contains(&resource.as_str()) || right.resources == ["*"];
    place && of_group && of_resource && right.verbs.contains(&verb.as_str())
}
