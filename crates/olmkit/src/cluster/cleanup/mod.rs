//! `cleanup`: removes a package, custom resources first so that the operator can still finish them, and nothing that it
//! shares with others.

mod residue;
mod scope;

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

pub use scope::{Kept, Scope, scope};

use super::Error;
use super::cause::{Cause, Code};
use super::client::{Cluster, ObjectRef};
use super::facts::text;
use super::kinds;
use super::narrator::{Narrator, Step, Story};
use super::observe::{Observation, condition_is_true};

/// How long OLM may still write ClusterRoles for an OperatorGroup that is gone.
const OPERATOR_GROUP_PAUSE: Duration = Duration::from_secs(1);

/// What is to be removed besides Subscription, CSV and catalog.
#[derive(Clone, Debug)]
pub struct Options {
    /// The package.
    pub package: String,
    /// The CRDs that the package owns, with their objects.
    pub crds: bool,
    /// The OperatorGroup, if this tool or operator-sdk made it and nothing else needs it.
    pub operator_groups: bool,
    /// Only say what would be removed.
    pub dry_run: bool,
    /// How long to wait altogether.
    pub timeout: Duration,
    /// CRDs that stay although the package owns them.
    pub keep_crds: Vec<String>,
}

/// What a cleanup did.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The package.
    pub package: String,
    /// Whether anything was found.
    pub found: bool,
    /// What was removed, or would be.
    pub removed: Vec<ObjectRef>,
    /// What was left, and why.
    pub kept: Vec<Kept>,
    /// What blocks.
    pub causes: Vec<Cause>,
    /// When what was done.
    pub steps: Vec<Step>,
}

/// Removes a package from the cluster's namespace.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`]. What blocks is no error but a cause in the report.
pub async fn cleanup(cluster: &Cluster, options: &Options, narrator: &dyn Narrator) -> Result<Report, Error> {
    let mut story = Story::begin(narrator);
    let seen = Observation::full(cluster, &Default::default()).await?;
    let scope = scope(options, &seen);
    let mut run = Run {
        cluster,
        deadline: Instant::now() + options.timeout,
        report: Report {
            package: options.package.clone(),
            kept: scope.kept.clone(),
            ..Report::default()
        },
        dry_run: options.dry_run,
        story: &mut story,
    };
    run.all(&scope, options).await?;
    let mut report = run.report;
    report.found = !report.removed.is_empty() || !report.causes.is_empty();
    report.steps = story.steps;
    Ok(report)
}

struct Run<'a, 'n> {
    cluster: &'a Cluster,
    deadline: Instant,
    report: Report,
    dry_run: bool,
    story: &'a mut Story<'n>,
}

impl Run<'_, '_> {
    async fn all(&mut self, scope: &Scope, options: &Options) -> Result<(), Error> {
        // First, or OLM would install again what is removed below.
        self.remove(&scope.subscriptions).await?;
        let residue = residue::find(self.cluster, scope, options).await?;
        let instances = self.instances(scope).await?;
        if !self.remove(&instances).await? {
            return Ok(());
        }
        for stage in [
            &scope.crds_refs(),
            &scope.csvs,
            &residue.of_csvs,
            &scope.catalogs,
            &residue.of_catalogs,
            &scope.install_plans,
            &scope.groups,
        ] {
            if !self.remove(stage).await? {
                return Ok(());
            }
        }
        if !self.dry_run && !scope.groups.is_empty() {
            // OLM removes these by itself, if at all, within this time.
            tokio::time::sleep(OPERATOR_GROUP_PAUSE).await;
            let left = residue::of_groups(self.cluster, scope).await?;
            self.remove(&left).await?;
        }
        // OLM writes this one again as long as anything carries its label, so it goes last.
        self.remove(&residue.operators).await?;
        Ok(())
    }

    /// The custom resources of the CRDs that go.
    async fn instances(&self, scope: &Scope) -> Result<Vec<ObjectRef>, Error> {
        let mut found = Vec::new();
        for crd in scope.crds.iter().map(|(_, crd)| crd) {
            let kind = crd.instances();
            let objects = self.cluster.list(kind.clone(), None, None).await?;
            found.extend(objects.iter().map(|object| {
                ObjectRef {
                    kind: kind.clone(),
                    namespace: object
                        .pointer("/metadata/namespace")
                        .and_then(Value::as_str)
                        .map(str::to_owned),
                    name: text(object, "/metadata/name").to_owned(),
                }
            }));
        }
        Ok(found)
    }

    /// Removes objects and waits until they are gone. `false` when something blocks.
    async fn remove(&mut self, objects: &[ObjectRef]) -> Result<bool, Error> {
        if self.dry_run {
            let existing = self.existing(objects).await?;
            self.report.removed.extend(existing);
            return Ok(true);
        }
        let mut asked = Vec::new();
        for object in objects {
            if self.cluster.delete(object).await? {
                asked.push(object.clone());
            }
        }
        let mut pause = Duration::from_millis(100);
        let mut waiting = asked;
        loop {
            let mut left = Vec::new();
            for object in waiting {
                match self.cluster.get(&object).await? {
                    Some(found) => {
                        // OLM writes its Operator object again as long as anything carries the label.
                        if found.pointer("/metadata/deletionTimestamp").is_none() {
                            self.cluster.delete(&object).await?;
                        }
                        left.push(object);
                    }
                    None => {
                        self.story.done(format!("{object}: removed"));
                        self.report.removed.push(object);
                    }
                }
            }
            waiting = left;
            let Some(first) = waiting.first() else { return Ok(true) };
            if Instant::now() > self.deadline {
                for object in &waiting {
                    let cause = self.blocked(object).await?;
                    self.report.causes.extend(cause);
                }
                return Ok(false);
            }
            self.story.waiting(format!("{first} to go away"));
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    async fn existing(&self, objects: &[ObjectRef]) -> Result<Vec<ObjectRef>, Error> {
        let mut found = Vec::new();
        for object in objects {
            if self.cluster.get(object).await?.is_some() {
                found.push(object.clone());
            }
        }
        Ok(found)
    }

    /// Why an object does not go.
    async fn blocked(&self, object: &ObjectRef) -> Result<Option<Cause>, Error> {
        let Some(value) = self.cluster.get(object).await? else {
            return Ok(None);
        };
        let operators = self
            .cluster
            .list(
                kinds::deployment(),
                object.namespace.as_deref(),
                Some("olm.owner.kind=ClusterServiceVersion"),
            )
            .await?;
        Ok(Some(blocked(object, &value, &operators)))
    }
}

/// Tells from an object on its way out what keeps it, and who should act. `operators` are Deployments that OLM made near it.
fn blocked(object: &ObjectRef, value: &Value, operators: &[Value]) -> Cause {
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
    let namespace = object
        .namespace
        .as_ref()
        .map(|namespace| format!(" -n {namespace}"))
        .unwrap_or_default();
    let force = format!(
        "kubectl{namespace} patch {resource} {} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
        object.name
    );
    let message = format!("is being deleted and stays; finalizers: {shown}");
    if object.kind.group == kinds::OLM_GROUP || kinds::known(&object.kind.api_version(), &object.kind.kind).is_some() {
        return Cause::passing(
            Code::DeletionBlocked,
            message,
            format!("see that olm-operator runs (olmkit olm status), then run this again; without OLM: {force}"),
        )
        .on(object.clone());
    }
    let down: Vec<&str> = operators
        .iter()
        .filter(|deployment| !condition_is_true(deployment, "Available"))
        .map(|deployment| text(deployment, "/metadata/name"))
        .collect();
    let likely = match (operators.is_empty(), down.as_slice()) {
        (true, _) => "the operator that should remove the finalizer is gone".to_owned(),
        (false, []) => "the operator runs but does not finish: its log tells why".to_owned(),
        (false, names) => format!(
            "the operator that should remove the finalizer is not available: Deployment {}",
            names.join(", ")
        ),
    };
    Cause::passing(
        Code::CustomResourceBlocked,
        message,
        format!("bring the operator back and run this again; or, leaving behind whatever it would have cleaned up outside the object: {force}"),
    )
    .on(object.clone())
    .likely(likely)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        let value = json!({"metadata": {"finalizers": ["cache.example.com/finalizer"]}});
        let down = json!({"metadata": {"name": "cache-operator"}, "status": {"conditions": [{"type": "Available", "status": "False"}]}});
        let cause = blocked(&object, &value, &[down]);
        assert_eq!(cause.code, Code::CustomResourceBlocked);
        assert!(cause.message.contains("cache.example.com/finalizer"));
        assert!(cause.likely.contains("cache-operator"));
        assert!(
            cause
                .remedy
                .contains("kubectl -n shop patch caches.cache.example.com one")
        );
        assert!(blocked(&object, &value, &[]).likely.contains("gone"));
    }
}
