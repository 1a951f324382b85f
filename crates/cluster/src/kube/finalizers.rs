//! Finalizers of custom resources whose operator is uninstalled.
//!
//! Only the operator removes its finalizers. If custom resources outlive it, their finalizers block the deletion of
//! each of them and of its namespace, so the commands release these finalizers.
//!
//! A finalizer belongs to the operator if its domain is the API group of the CRD, such as `cache.example.com/finalizer`
//! for group `cache.example.com`. The domain may start with the kind, the plural, or the word `finalizer`, such as
//! `finalizer.memcacheds.cache.example.com`. Other subdomains and parent domains can belong to other controllers, so
//! the user must name such finalizers. Finalizers of Kubernetes are never released.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use super::client::Cluster;
use super::crd::CrdState;
use super::removal::{self, Kept, Released};
use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::ProgressLog;

/// Parallel requests.
const AT_ONCE: usize = 8;

/// Attempts for one object while other clients change it.
const ATTEMPTS: usize = 20;

/// Limit for repeated searches while a finalizer is added again.
const SEARCHES: usize = 10;

/// The pause before the next search.
const PAUSE: Duration = Duration::from_secs(1);

/// Time to wait for custom resources whose operator no longer exists, before their finalizers are released.
const WITHOUT_OPERATOR: Duration = Duration::from_secs(10);

/// Finalizers that Kubernetes and its garbage collector own.
const OF_KUBERNETES: [&str; 3] = ["foregroundDeletion", "orphan", "kubernetes"];

/// Domains of Kubernetes' own finalizers.
const KUBERNETES_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];

/// A custom resource with its finalizers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The object.
    pub object: ObjectRef,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

/// The custom resources of a CRD, in all namespaces.
///
/// # Errors
/// [`Error::Request`].
pub async fn operands(cluster: &Cluster, crd: &CrdState) -> Result<Vec<Operand>, Error> {
    let kind = crd.instances();
    let objects = cluster.list_metadata(&kind).await?;
    let operand = |object: &Value| Operand {
        object: ObjectRef::from_object(&kind, object),
        finalizers: finalizers(object),
    };
    Ok(objects.iter().map(operand).collect())
}

fn finalizers(object: &Value) -> Vec<String> {
    let list = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    let names = list.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Decides which finalizers belong to the operator of a CRD.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    group: String,
    /// Labels that may precede the group.
    prefixes: Vec<String>,
    named: Vec<String>,
    /// Another operator that may own finalizers of the group.
    rival: Option<String>,
}

impl Rule {
    /// The rule for a CRD. `named` are finalizers that the user assigns to the operator.
    pub fn new(crd: &CrdState, named: &[String]) -> Self {
        Rule {
            group: crd.group.clone(),
            prefixes: vec![
                crd.kind.to_lowercase(),
                crd.plural.clone(),
                "finalizer".into(),
                "finalizers".into(),
            ],
            named: named.to_vec(),
            rival: None,
        }
    }

    /// Adds an operator that stays and owns another CRD in the group: only named finalizers are released then.
    #[must_use]
    pub fn rival(mut self, rival: Option<&String>) -> Self {
        self.rival = rival.cloned();
        self
    }

    /// Returns true if the operator owns a finalizer.
    pub fn owns(&self, finalizer: &str) -> bool {
        if is_of_kubernetes(finalizer) {
            return false;
        }
        self.named.iter().any(|named| named == finalizer) || (self.rival.is_none() && self.is_of_group(finalizer))
    }

    fn is_of_group(&self, finalizer: &str) -> bool {
        let Some(prefix) = domain(finalizer).strip_suffix(self.group.as_str()) else {
            return false;
        };
        let is_known = |label: &str| self.prefixes.iter().any(|known| known == label);
        !self.group.is_empty()
            && (prefix.is_empty()
                || prefix
                    .strip_suffix('.')
                    .is_some_and(|prefix| prefix.split('.').all(is_known)))
    }

    /// The finalizers that the operator owns, and the others.
    pub fn split(&self, finalizers: &[String]) -> (Vec<String>, Vec<String>) {
        finalizers.iter().cloned().partition(|finalizer| self.owns(finalizer))
    }

    /// The reason for keeping finalizers.
    fn why(&self, kept: &[String]) -> String {
        let list = kept.join(", ");
        match &self.rival {
            Some(rival) if kept.iter().any(|finalizer| self.is_of_group(finalizer)) => format!(
                "ClusterServiceVersion {rival} owns a CRD of the same group and may own its finalizers {list}; --release-finalizers=NAME releases one"
            ),
            _ => format!("the operator does not own its finalizers {list}"),
        }
    }
}

/// The domain of a finalizer: the part before the slash, or all of it.
fn domain(finalizer: &str) -> &str {
    finalizer.split_once('/').map_or(finalizer, |(domain, _)| domain)
}

fn is_of_kubernetes(finalizer: &str) -> bool {
    let domain = domain(finalizer);
    let is_below = |parent: &str| {
        let prefix = domain.strip_suffix(parent);
        prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    };
    OF_KUBERNETES.contains(&finalizer) || KUBERNETES_DOMAINS.into_iter().any(is_below)
}

/// Rejects names of finalizers that must not be released.
///
/// # Errors
/// The message.
pub fn check_named(named: &[String]) -> Result<(), String> {
    let rejected = named.iter().find(|name| name.is_empty() || is_of_kubernetes(name));
    match rejected {
        Some(name) => Err(format!(
            "--release-finalizers={}: Kubernetes owns this finalizer, so olmkit does not release it",
            name.escape_debug()
        )),
        None => Ok(()),
    }
}

/// Result of a release.
#[derive(Clone, Debug, Default)]
pub struct Releases {
    /// Objects that lost finalizers.
    pub released: Vec<Released>,
    /// Objects with other finalizers.
    pub kept: Vec<Kept>,
    /// Objects that could not be changed.
    pub causes: Vec<Cause>,
}

impl Releases {
    /// The result that a release of these objects would have.
    pub fn planned<'a>(objects: impl IntoIterator<Item = &'a (Operand, Rule)>) -> Self {
        let mut planned = Releases::default();
        for (operand, rule) in objects {
            let (own, others) = rule.split(&operand.finalizers);
            planned.add(&operand.object, own, &others, rule);
        }
        planned
    }

    fn add(&mut self, object: &ObjectRef, own: Vec<String>, others: &[String], rule: &Rule) {
        if !own.is_empty() {
            self.released.push(Released {
                object: object.clone(),
                finalizers: own,
            });
        }
        if !others.is_empty() {
            self.kept.push(Kept::new(object.clone(), rule.why(others)));
        }
    }
}

/// Releases the operator's finalizers of the objects that `find` returns. It searches again until nothing is left to
/// release, because an operator that is still stopping can add a finalizer again.
///
/// # Errors
/// [`Error::Request`] if the API server does not answer. Objects that it rejects are causes in the result.
pub async fn release(
    cluster: &Cluster,
    progress: &mut ProgressLog<'_>,
    mut find: impl AsyncFnMut() -> Result<Vec<(Operand, Rule)>, Error>,
) -> Result<Releases, Error> {
    let mut found = find().await?;
    // The finalizers of other controllers, before the release.
    let mut all = Releases {
        kept: Releases::planned(&found).kept,
        ..Releases::default()
    };
    for _ in 0..SEARCHES {
        found.retain(|(operand, rule)| {
            let is_rejected = |cause: &Cause| cause.object.as_ref() == Some(&operand.object);
            operand.finalizers.iter().any(|finalizer| rule.owns(finalizer)) && !all.causes.iter().any(is_rejected)
        });
        if found.is_empty() {
            break;
        }
        progress.waiting(format!("{} custom resources to lose their finalizers", found.len()));
        let changes = found
            .iter()
            .map(|(operand, rule)| async move { release_one(cluster, &operand.object, rule).await });
        let changes: Vec<Change> = futures::stream::iter(changes).buffered(AT_ONCE).try_collect().await?;
        for change in changes {
            match change {
                Change::Released(released) if all.released.iter().any(|seen| seen.object == released.object) => {}
                Change::Released(released) => {
                    let list = released.finalizers.join(", ");
                    progress.done(format!("{}: released {list}", released.object));
                    all.released.push(released);
                }
                Change::Rejected(cause) => all.causes.push(*cause),
                Change::Nothing => {}
            }
        }
        tokio::time::sleep(PAUSE).await;
        found = find().await?;
    }
    Ok(all)
}

/// Deletes custom resources whose operator no longer exists. Another installation of the operator has some time to
/// finish them, then their finalizers are released. `find` returns the custom resources of the operator.
///
/// # Errors
/// As [`release`].
pub async fn delete_without_operator(
    cluster: &Cluster,
    objects: &[ObjectRef],
    deadline: Instant,
    removed: &mut Vec<ObjectRef>,
    progress: &mut ProgressLog<'_>,
    mut find: impl AsyncFnMut() -> Result<Vec<(Operand, Rule)>, Error>,
) -> Result<Vec<Cause>, Error> {
    let soon = deadline.min(Instant::now() + WITHOUT_OPERATOR);
    let left = removal::remove(cluster, objects, soon, removed, progress).await?;
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let releases = release(cluster, progress, async || {
        let mut found = find().await?;
        found.retain(|(operand, _)| left.contains(&operand.object));
        Ok(found)
    });
    Ok(releases.await?.causes)
}

/// The result for one object.
enum Change {
    Released(Released),
    Rejected(Box<Cause>),
    Nothing,
}

async fn release_one(cluster: &Cluster, object: &ObjectRef, rule: &Rule) -> Result<Change, Error> {
    for _ in 0..ATTEMPTS {
        let current = match cluster.get(object).await {
            Ok(Some(current)) => current,
            Ok(None) => return Ok(Change::Nothing),
            Err(error) => return rejected(object, error),
        };
        let (own, others) = rule.split(&finalizers(&current));
        if own.is_empty() {
            return Ok(Change::Nothing);
        }
        // The version prevents that a finalizer which another client adds in this moment is lost.
        let version = text(&current, "/metadata/resourceVersion");
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": others}});
        match cluster.merge(object, &patch).await {
            Ok(_) => {
                return Ok(Change::Released(Released {
                    object: object.clone(),
                    finalizers: own,
                }));
            }
            Err(error) if error.is_not_found() => return Ok(Change::Nothing),
            Err(error) if error.code() == Some(409) => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(error) => return rejected(object, error),
        }
    }
    let message = "its finalizers cannot be released, because another client changes it all the time";
    let cause = Cause::passing(
        Code::CustomResourceDeletionBlocked,
        message,
        "find this client in metadata.managedFields, stop it, and run this again",
    );
    Ok(Change::Rejected(Box::new(cause.on(object.clone()))))
}

/// An answer of the API server becomes a cause. A server that does not answer ends the command.
fn rejected(object: &ObjectRef, error: Error) -> Result<Change, Error> {
    if error.code().is_none() {
        return Err(error);
    }
    let cause = Cause::passing(
        Code::CustomResourceDeletionBlocked,
        format!("its finalizers cannot be released: {error}"),
        "make the API server accept changes of this object, and run this again",
    );
    Ok(Change::Rejected(Box::new(cause.on(object.clone()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(named: &[&str]) -> Rule {
        let crd = CrdState {
            group: "cache.example.com".into(),
            kind: "Memcached".into(),
            plural: "memcacheds".into(),
            ..CrdState::default()
        };
        let named: Vec<String> = named.iter().map(|&name| name.to_owned()).collect();
        Rule::new(&crd, &named)
    }

    #[test]
    fn finalizers_in_the_group_belong_to_the_operator() {
        for own in [
            "cache.example.com/finalizer",
            "cache.example.com",
            "memcacheds.cache.example.com",
            "memcached.cache.example.com/cleanup",
            "finalizer.cache.example.com",
            "finalizers.memcacheds.cache.example.com/x",
        ] {
            assert!(rule(&[]).owns(own), "{own}");
        }
        for other in [
            "foregroundDeletion",
            "orphan",
            "kubernetes.io/pvc-protection",
            "storage.k8s.io/x",
            "example.com/finalizer",
            "backup.cache.example.com/finalizer",
            "mycache.example.com/finalizer",
            "other.io/cache.example.com",
            "finalizer",
            "",
        ] {
            assert!(!rule(&[]).owns(other), "{other}");
        }
    }

    #[test]
    fn named_finalizers_belong_to_the_operator_except_those_of_kubernetes() {
        let rule = rule(&["uninstall-helm-release", "orphan", "apps.kubernetes.io/x"]);
        assert!(rule.owns("uninstall-helm-release"));
        assert!(!rule.owns("orphan") && !rule.owns("apps.kubernetes.io/x"));
        for name in ["orphan", "kubernetes.io/x", "a.k8s.io", ""] {
            assert!(check_named(&[name.to_owned()]).is_err(), "{name}");
        }
        assert!(check_named(&["notk8s.io/x".to_owned(), "helm".to_owned()]).is_ok());
    }

    #[test]
    fn kubernetes_groups_keep_their_finalizers() {
        let crd = CrdState {
            group: "gateway.networking.k8s.io".into(),
            ..CrdState::default()
        };
        assert!(!Rule::new(&crd, &[]).owns("gateway.networking.k8s.io/finalizer"));
    }

    #[test]
    fn an_operator_in_the_same_group_makes_the_owner_uncertain() {
        let rival = "shop/other.v1".to_owned();
        let rule = rule(&["cache.example.com/named"]).rival(Some(&rival));
        let finalizers = ["cache.example.com/finalizer", "cache.example.com/named"].map(str::to_owned);
        let (own, others) = rule.split(&finalizers);
        assert_eq!(own, ["cache.example.com/named"]);
        assert_eq!(others, ["cache.example.com/finalizer"]);
        assert!(rule.why(&others).contains("shop/other.v1"));
    }

    #[test]
    fn a_plan_lists_released_and_kept_finalizers() {
        let kind = CrdState::default().instances();
        let operand = |name: &str, finalizers: &[&str]| Operand {
            object: ObjectRef::namespaced(kind.clone(), "shop", name),
            finalizers: finalizers.iter().map(|&finalizer| finalizer.to_owned()).collect(),
        };
        let objects = [
            operand("own", &["cache.example.com/finalizer"]),
            operand("both", &["cache.example.com/finalizer", "other.io/x"]),
            operand("none", &[]),
        ]
        .map(|operand| (operand, rule(&[])));
        let planned = Releases::planned(&objects);
        assert_eq!(planned.released.len(), 2);
        assert_eq!(planned.kept.len(), 1);
        assert_eq!(planned.kept[0].object.name, "both");
        assert_eq!(
            planned.kept[0].why,
            "the operator does not own its finalizers other.io/x"
        );
    }
}
