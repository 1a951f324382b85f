//! `extension uninstall` and `cleanup --olm v1`: custom resources first, while the operator can still finish them.
//!
//! Deleting a ClusterExtension deletes its CRDs and its operator at the same time. A custom resource with a finalizer
//! then blocks its CRD, and the package cannot be installed again.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::conditions::condition;
use super::objects::catalog_name;
use super::seen::{ExtensionState, namespace_of};
use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::{ProgressLog, ProgressReporter};
use crate::base::{kinds, names};
use crate::kube::client::Cluster;
use crate::kube::crd::CrdState;
use crate::kube::finalizers::{self, Rule};
use crate::kube::ownership;
use crate::kube::removal::{self, Kept, Report};
use crate::rights::{self, Command};

/// Objects to remove.
#[derive(Clone, Debug)]
pub struct RemoveOptions {
    /// The ClusterExtension; for `cleanup` that of the package's name.
    pub name: String,
    /// Also the ClusterCatalog that `run bundle` created.
    pub with_catalog: bool,
    /// Only objects that olmkit created.
    pub only_ours: bool,
    /// Only report what would be removed.
    pub dry_run: bool,
    /// Total time to wait.
    pub timeout: Duration,
    /// Further finalizers to release if the operator no longer exists.
    pub release_finalizers: Vec<String>,
}

/// Removes a ClusterExtension, the objects that it installed, and the custom resources of its CRDs.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`], [`Error::Usage`]. Objects that block are causes in the report.
pub async fn remove(
    cluster: &Cluster,
    options: &RemoveOptions,
    reporter: &dyn ProgressReporter,
) -> Result<Report, Error> {
    names::check("ClusterExtension", &options.name).map_err(Error::Usage)?;
    finalizers::check_named(&options.release_finalizers).map_err(Error::Usage)?;
    let mut progress = ProgressLog::start(reporter);
    let command = if options.with_catalog {
        Command::CleanupV1
    } else {
        Command::ExtensionUninstall
    };
    let mut report = Report {
        package: options.name.clone(),
        ..Report::default()
    };
    let cluster = &in_its_namespace(cluster, &options.name).await?;
    report.causes = rights::missing_always(cluster, command).await?;
    if !report.causes.is_empty() {
        report.found = true;
        return Ok(report);
    }
    let seen = ExtensionState::read(cluster, &options.name).await?;
    let scope = scope(options, &seen, &mut report);
    let instances = instances(cluster, &scope).await?;
    let all = [
        instances.as_slice(),
        &scope.crds_refs(),
        scope.extension.as_slice(),
        scope.catalog.as_slice(),
    ]
    .concat();
    if options.dry_run {
        report.removed = removal::existing(cluster, &all).await?;
        if scope.extension.is_some() {
            report.removed.extend(deployments(&seen));
        }
    } else {
        report.causes = rights::missing_to_remove(
            cluster,
            command,
            instances.iter().chain(&scope.extension).chain(&scope.catalog),
        )
        .await?;
        if has_no_operator(&scope, &seen) {
            let missing = rights::missing_to_change(cluster, command, &instances).await?;
            report.causes.extend(missing);
        }
        if report.causes.is_empty() {
            let deadline = Instant::now() + options.timeout;
            let mut run = Run {
                cluster,
                seen: &seen,
                named: &options.release_finalizers,
                deadline,
                report: &mut report,
                progress: &mut progress,
            };
            run.all(&scope, &instances).await?;
        }
    }
    report.found = !report.removed.is_empty() || !report.causes.is_empty() || !report.kept.is_empty();
    report.steps = progress.steps;
    Ok(report)
}

/// The cluster with the namespace of a ClusterExtension, where permissions are needed. If the credentials cannot read
/// it, the permission check reports this.
async fn in_its_namespace(cluster: &Cluster, name: &str) -> Result<Cluster, Error> {
    let mut cluster = cluster.clone();
    match cluster.get(&ObjectRef::cluster(kinds::cluster_extension(), name)).await {
        Ok(Some(found)) => {
            if let Some(namespace) = namespace_of(&cluster, &found).await? {
                cluster.namespace = namespace;
            }
        }
        Ok(None) => {}
        Err(error) if error.code() == Some(403) => {}
        Err(error) => return Err(error),
    }
    Ok(cluster)
}

/// Objects to remove.
#[derive(Default)]
struct Scope {
    extension: Option<ObjectRef>,
    crds: Vec<(String, CrdState)>,
    catalog: Option<ObjectRef>,
}

impl Scope {
    fn crds_refs(&self) -> Vec<ObjectRef> {
        let crd = |(name, _): &(String, CrdState)| ObjectRef::cluster(kinds::custom_resource_definition(), name);
        self.crds.iter().map(crd).collect()
    }
}

/// Decides which objects to remove, and records those that are kept.
fn scope(options: &RemoveOptions, seen: &ExtensionState, report: &mut Report) -> Scope {
    let labels = names::labels(&options.name);
    let is_foreign = |object: &Value| options.only_ours && !ownership::is_ours(object, &labels);
    let mut keep = |object: &Value, reference: ObjectRef, way_out: &str| {
        let why = format!(
            "not made by olmkit for this package: {}{way_out}",
            ownership::author(object)
        );
        report.kept.push(Kept::new(reference, why));
    };
    let mut scope = Scope::default();
    match &seen.extension {
        Some(found) if is_foreign(found) => {
            let way_out = format!("; olmkit extension uninstall {} removes it", names::word(&options.name));
            keep(found, seen.object(), &way_out);
        }
        found => {
            scope.extension = found.as_ref().map(|_| seen.object());
            // The CRDs of an interrupted removal may remain without it.
            let crds = seen
                .crds
                .iter()
                .map(|crd| (text(crd, "/metadata/name").to_owned(), CrdState::from_crd(crd)));
            scope.crds = crds.collect();
        }
    }
    let name = catalog_name(&options.name);
    let catalog = seen
        .catalogs
        .iter()
        .find(|found| options.with_catalog && text(found, "/metadata/name") == name);
    if let Some(found) = catalog {
        let reference = ObjectRef::cluster(kinds::cluster_catalog(), &name);
        if is_foreign(found) {
            keep(found, reference, "");
        } else {
            scope.catalog = Some(reference);
        }
    }
    scope
}

/// The Deployments that operator-controller created.
fn deployments(seen: &ExtensionState) -> Vec<ObjectRef> {
    let names = seen
        .place
        .deployments
        .iter()
        .filter_map(|found| found.metadata.name.as_deref());
    names
        .map(|name| ObjectRef::namespaced(kinds::deployment(), &seen.place.namespace, name))
        .collect()
}

/// Returns true if neither the ClusterExtension nor a Deployment of it exists.
fn has_no_operator(scope: &Scope, seen: &ExtensionState) -> bool {
    scope.extension.is_none() && seen.place.deployments.is_empty()
}

/// All custom resources of the CRDs that go.
async fn instances(cluster: &Cluster, scope: &Scope) -> Result<Vec<ObjectRef>, Error> {
    let mut found = Vec::new();
    for (_, crd) in &scope.crds {
        found.extend(removal::instances_of(cluster, crd).await?);
    }
    Ok(found)
}

struct Run<'r, 'n> {
    cluster: &'r Cluster,
    seen: &'r ExtensionState,
    named: &'r [String],
    deadline: Instant,
    report: &'r mut Report,
    progress: &'r mut ProgressLog<'n>,
}

impl Run<'_, '_> {
    async fn all(&mut self, scope: &Scope, instances: &[ObjectRef]) -> Result<(), Error> {
        if has_no_operator(scope, self.seen) {
            self.remove_without_operator(scope, instances).await?;
            if !self.report.causes.is_empty() {
                return Ok(());
            }
        }
        let left = self.remove(instances).await?;
        if !left.is_empty() {
            for object in &left {
                let cause = self.custom_resource(object).await?;
                self.report.causes.extend(cause);
            }
            return Ok(());
        }
        // Without the ClusterExtension, nothing else removes the leftovers of an interrupted removal.
        let orphans = if scope.extension.is_none() {
            scope.crds_refs()
        } else {
            Vec::new()
        };
        for stage in [scope.extension.as_slice(), &orphans] {
            let left = self.remove(stage).await?;
            if !left.is_empty() {
                self.report
                    .causes
                    .extend(left.iter().map(|object| blocked(object, self.seen)));
                return Ok(());
            }
        }
        if !self.gone(scope).await? {
            return Ok(());
        }
        let left = self.remove(scope.catalog.as_slice()).await?;
        self.report
            .causes
            .extend(left.iter().map(|object| blocked(object, self.seen)));
        Ok(())
    }

    /// Custom resources of a ClusterExtension that was deleted before them: nothing else removes their finalizers.
    async fn remove_without_operator(&mut self, scope: &Scope, instances: &[ObjectRef]) -> Result<(), Error> {
        let (cluster, named) = (self.cluster, self.named);
        let find = async || {
            let mut found = Vec::new();
            for (_, crd) in &scope.crds {
                let operands = finalizers::operands(cluster, crd).await?;
                let rule = Rule::new(crd, named);
                found.extend(operands.into_iter().map(|operand| (operand, rule.clone())));
            }
            Ok(found)
        };
        let removed = &mut self.report.removed;
        let causes =
            finalizers::delete_without_operator(cluster, instances, self.deadline, removed, self.progress, find)
                .await?;
        self.report.causes.extend(causes);
        Ok(())
    }

    async fn remove(&mut self, objects: &[ObjectRef]) -> Result<Vec<ObjectRef>, Error> {
        removal::remove(
            self.cluster,
            objects,
            self.deadline,
            &mut self.report.removed,
            self.progress,
        )
        .await
    }

    /// Waits until operator-controller or the garbage collector has deleted CRDs and Deployments.
    async fn gone(&mut self, scope: &Scope) -> Result<bool, Error> {
        let mut waiting: Vec<ObjectRef> = scope.crds_refs();
        if scope.extension.is_some() {
            waiting.extend(deployments(self.seen));
        }
        waiting.retain(|object| !self.report.removed.contains(object));
        loop {
            let left = removal::existing(self.cluster, &waiting).await?;
            for object in waiting.iter().filter(|object| !left.contains(object)) {
                self.progress.done(format!("{object}: removed"));
                self.report.removed.push(object.clone());
            }
            waiting = left;
            let Some(first) = waiting.first() else { return Ok(true) };
            if Instant::now() > self.deadline {
                for object in &waiting {
                    let causes = self.of_left(object, scope).await?;
                    self.report.causes.extend(causes);
                }
                return Ok(false);
            }
            self.progress.waiting(format!("{first} to be deleted"));
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Causes why a CRD or a Deployment still exists: a client created custom resources in the meantime, or no
    /// controller deletes it.
    async fn of_left(&self, object: &ObjectRef, scope: &Scope) -> Result<Vec<Cause>, Error> {
        let mut causes = Vec::new();
        let crd = scope.crds.iter().find(|(name, _)| *name == object.name);
        if let Some((_, crd)) = crd.filter(|_| object.kind == kinds::custom_resource_definition()) {
            for instance in removal::instances_of(self.cluster, crd).await? {
                causes.extend(self.custom_resource(&instance).await?);
            }
        }
        if causes.is_empty() {
            causes.push(blocked(object, self.seen));
        }
        Ok(causes)
    }

    async fn custom_resource(&self, object: &ObjectRef) -> Result<Option<Cause>, Error> {
        let Some(found) = self.cluster.get(object).await? else {
            return Ok(None);
        };
        let selector = super::objects::owned_by(&self.seen.name);
        let namespace = Some(self.seen.place.namespace.as_str());
        let operators = self
            .cluster
            .list(kinds::deployment(), namespace, Some(&selector))
            .await?;
        Ok(Some(removal::blocked(object, &found, &operators, None)))
    }
}

/// The cause why an object of OLM v1 is not deleted.
fn blocked(object: &ObjectRef, seen: &ExtensionState) -> Cause {
    let said = seen
        .extension
        .as_ref()
        .and_then(|found| condition(found, "Progressing"))
        .map(|found| format!("; it last said {}: {}", found.reason, found.message));
    Cause::passing(
        Code::DeletionBlocked,
        format!("is still there{}", said.filter(|_| object.kind == kinds::cluster_extension()).unwrap_or_default()),
        "operator-controller, catalogd and Kubernetes' garbage collector remove it: check that they run (kubectl get pods -A -l app.kubernetes.io/part-of=olm), then run this again",
    )
    .on(object.clone())
}
