//! `olm uninstall`: deletes Subscriptions, then CSVs while olm-operator still handles their finalizers, then the rest,
//! and the leftovers of upstream's uninstallation.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::namespaces::foreign;
use super::operands::Operands;
use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds::{self, Kind};
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::{ProgressLog, ProgressReporter};
use crate::kube::client::Cluster;
use crate::kube::conditions::Conditions as _;
use crate::kube::finalizers::{self, Releases};
use crate::kube::operator_pods::{self, Deployments};
use crate::kube::owned;
use crate::kube::removal::{self, Kept, Released};
use crate::observe::observation::observe_olm;
use crate::rights::{self, Command};
use olmkit::types::DeployedCsv;

/// Options for removing OLM.
#[derive(Clone, Debug)]
pub struct UninstallOptions {
    /// Namespace of OLM. Found by its Deployments when absent.
    pub namespace: Option<String>,
    /// Remove installed operators too. Their CRDs and custom resources are kept.
    pub with_operators: bool,
    /// Delete the custom resources of installed operators first, while the operators run.
    pub operands: bool,
    /// Further finalizers to release from custom resources that outlive their operator.
    pub release_finalizers: Vec<String>,
    /// Total time to wait.
    pub timeout: Duration,
    /// Only report what would be removed.
    pub dry_run: bool,
}

/// Result of the removal.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct UninstallReport {
    /// Removed objects, in order.
    pub removed: Vec<ObjectRef>,
    /// Namespaces of OLM that are kept because they have other contents, and custom resources with finalizers of other
    /// controllers.
    pub kept: Vec<Kept>,
    /// Kept custom resources without the finalizers of their operator, or those that would lose them.
    pub released: Vec<Released>,
    /// Causes that prevent the removal.
    pub causes: Vec<Cause>,
}

/// Leftovers after deleting OLM's manifests, by name.
const CLUSTER_ROLES: [&str; 3] = [
    "system:controller:operator-lifecycle-manager",
    "aggregate-olm-edit",
    "aggregate-olm-view",
];

/// The OperatorGroup that OLM's manifests create in the namespace for operators that watch all namespaces.
const GLOBAL_GROUP: &str = "global-operators";

/// Name prefix of the ClusterRoleBinding for OLM's service account. Its namespace follows.
const BINDING: &str = "olm-operator-binding-";

/// Removes OLM.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn uninstall(
    cluster: &Cluster,
    options: &UninstallOptions,
    reporter: &dyn ProgressReporter,
) -> Result<UninstallReport, Error> {
    finalizers::check_named(&options.release_finalizers).map_err(Error::Usage)?;
    let mut progress = ProgressLog::start(reporter);
    let csvs: Vec<DeployedCsv> = cluster.list_as(kinds::cluster_service_version(), None, None).await?;
    let installed: Vec<String> = csvs
        .iter()
        .filter(|csv| !csv.is_copied() && csv.name() != "packageserver")
        .map(|csv| format!("{}/{}", csv.namespace(), csv.name()))
        .collect();
    let mut report = UninstallReport::default();
    if !options.dry_run {
        report.causes = rights::missing_always(cluster, Command::OlmUninstall).await?;
        if !report.causes.is_empty() {
            return Ok(report);
        }
    }
    if !installed.is_empty() && !options.with_operators && !options.dry_run {
        report.causes.push(Cause::lasting(
            Code::OperatorsInstalled,
            format!("OLM still manages operators: {}", installed.join(", ")),
            "remove them first (olmkit cleanup PACKAGE -n NAMESPACE), or pass --with-operators: they stop, their CRDs and custom resources are kept; with --delete-operands also, their custom resources are deleted first",
        ));
        return Ok(report);
    }
    let operands = Operands::find(cluster, &csvs, &options.release_finalizers).await?;
    if !options.dry_run {
        report.causes = operands.missing_rights(cluster, options.operands).await?;
        if !report.causes.is_empty() {
            return Ok(report);
        }
    }
    let namespace = own_namespace(cluster, options).await?;
    let namespaces = namespaces(cluster, &namespace).await?;
    let mut run = Run {
        cluster,
        deadline: Instant::now() + options.timeout,
        progress: &mut progress,
        report: &mut report,
        dry_run: options.dry_run,
    };
    // Subscriptions first, because OLM would install the removed versions again.
    run.remove_all(kinds::subscription(), None).await?;
    if options.operands && !run.remove_operands(&operands).await? {
        return Ok(report);
    }
    let operators = operator_pods::deployments(cluster, None, |_| true).await?;
    let olm_works = run.olm_operator_works(&namespace).await?;
    run.remove_csvs(olm_works).await?;
    // The garbage collector cannot find their owner's kind any more when OLM's CRDs are deleted.
    let reference = |(namespace, name): &(String, String)| ObjectRef::namespaced(kinds::deployment(), namespace, name);
    run.remove(operators.iter().map(reference).collect()).await?;
    // Dead without packageserver, and then every deletion of a namespace hangs.
    run.remove(vec![ObjectRef::cluster(
        kinds::api_service(),
        "v1.packages.operators.coreos.com",
    )])
    .await?;
    for kind in [
        kinds::catalog_source(),
        kinds::install_plan(),
        kinds::operator_group(),
        kinds::operator_condition(),
        kinds::operator(),
        kinds::olm_config(),
    ] {
        run.remove_all(kind, None).await?;
    }
    let deployments = ["olm-operator", "catalog-operator", "packageserver"];
    run.remove(
        deployments
            .iter()
            .map(|name| ObjectRef::namespaced(kinds::deployment(), &namespace, name))
            .collect(),
    )
    .await?;
    run.remove_crds().await?;
    run.remove_residue().await?;
    if !run.release(&operands, options.operands, &operators).await? {
        return Ok(report);
    }
    run.remove_namespaces(namespaces).await?;
    // Last: a resumed removal finds OLM's namespace by its name.
    run.remove(vec![ObjectRef::cluster(
        kinds::cluster_role_binding(),
        &format!("{BINDING}{namespace}"),
    )])
    .await?;
    Ok(report)
}

async fn own_namespace(cluster: &Cluster, options: &UninstallOptions) -> Result<String, Error> {
    if let Some(namespace) = &options.namespace {
        return Ok(namespace.clone());
    }
    let state = observe_olm(cluster, &Default::default()).await?;
    let by_deployment = state
        .deployments
        .iter()
        .find_map(|found| found.metadata.namespace.clone());
    if let Some(namespace) = by_deployment {
        return Ok(namespace);
    }
    let bindings = cluster.list(kinds::cluster_role_binding(), None, None).await?;
    let by_binding = bindings
        .iter()
        .find_map(|binding| text(binding, "/metadata/name").strip_prefix(BINDING));
    Ok(by_binding.unwrap_or("olm").to_owned())
}

/// The namespaces that OLM's manifests create: for operators that watch all namespaces, and its own.
async fn namespaces(cluster: &Cluster, own: &str) -> Result<Vec<String>, Error> {
    let groups = cluster.list(kinds::operator_group(), None, None).await?;
    let mut found: Vec<String> = groups
        .iter()
        .filter(|group| text(group, "/metadata/name") == GLOBAL_GROUP)
        .map(|group| text(group, "/metadata/namespace").to_owned())
        .collect();
    // If the API group no longer exists.
    found.push("operators".into());
    found.retain(|namespace| namespace != own);
    found.push(own.to_owned());
    found.dedup();
    Ok(found)
}

struct Run<'a, 'n> {
    cluster: &'a Cluster,
    deadline: Instant,
    progress: &'a mut ProgressLog<'n>,
    report: &'a mut UninstallReport,
    dry_run: bool,
}

impl Run<'_, '_> {
    async fn remove_all(&mut self, kind: Kind, labels: Option<&str>) -> Result<(), Error> {
        let objects = self
            .cluster
            .list(kind.clone(), None, labels)
            .await?
            .iter()
            .map(|object| ObjectRef::from_object(&kind, object))
            .collect();
        self.remove(objects).await
    }

    /// Removes objects and waits until they are deleted. Remaining objects become causes. The removal continues.
    async fn remove(&mut self, objects: Vec<ObjectRef>) -> Result<(), Error> {
        let mut waiting = Vec::new();
        for object in objects {
            if self.dry_run {
                if self.cluster.get(&object).await?.is_some() {
                    self.report.removed.push(object);
                }
            } else if self.cluster.delete(&object).await? {
                waiting.push(object);
            }
        }
        for object in waiting {
            self.progress.waiting(format!("{object} to be deleted"));
            if self.until_gone(&object).await? {
                self.progress.done(format!("{object}: removed"));
                self.report.removed.push(object);
            } else {
                self.report.causes.push(
                    Cause::passing(
                        Code::DeletionBlocked,
                        "is being deleted but still exists",
                        "check its finalizers and, for a namespace, its conditions; then run this again",
                    )
                    .on(object),
                );
            }
        }
        Ok(())
    }

    async fn until_gone(&self, object: &ObjectRef) -> Result<bool, Error> {
        let mut pause = Duration::from_millis(50);
        while self.cluster.get(object).await?.is_some() {
            if Instant::now() > self.deadline {
                return Ok(false);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
        Ok(true)
    }

    async fn olm_operator_works(&self, namespace: &str) -> Result<bool, Error> {
        let object = ObjectRef::namespaced(kinds::deployment(), namespace, "olm-operator");
        Ok(self
            .cluster
            .get(&object)
            .await?
            .is_some_and(|found| found.is_true("Available")))
    }

    /// CSVs have a finalizer that only olm-operator removes. Without it the finalizer is removed here.
    async fn remove_csvs(&mut self, olm_works: bool) -> Result<(), Error> {
        let kind = kinds::cluster_service_version();
        let listed = self.cluster.list(kind.clone(), None, None).await?;
        let (copies, originals): (Vec<&Value>, Vec<&Value>) = listed.iter().partition(|csv| {
            csv.pointer("/metadata/labels")
                .and_then(|labels| labels.get("olm.copiedFrom"))
                .is_some()
        });
        for group in [originals, copies] {
            let objects: Vec<ObjectRef> = group.iter().map(|csv| ObjectRef::from_object(&kind, csv)).collect();
            if self.dry_run || olm_works {
                self.remove(objects).await?;
                continue;
            }
            for object in &objects {
                self.cluster.delete(object).await?;
                match self
                    .cluster
                    .merge(object, &json!({"metadata": {"finalizers": null}}))
                    .await
                {
                    Err(error) if !error.is_not_found() => return Err(error),
                    _ => {}
                }
            }
            self.remove(objects).await?;
        }
        Ok(())
    }

    /// Deletes the custom resources of the operators while the operators run. `false` if something blocks.
    async fn remove_operands(&mut self, operands: &Operands) -> Result<bool, Error> {
        let mut objects = Vec::new();
        for (operand, _) in operands.existing(self.cluster).await? {
            objects.push(operand.object);
        }
        if self.dry_run {
            self.report.removed.extend(objects);
            return Ok(true);
        }
        let removed = &mut self.report.removed;
        let left = removal::remove(self.cluster, &objects, self.deadline, removed, self.progress).await?;
        if left.is_empty() {
            return Ok(true);
        }
        let selector = format!("{}=ClusterServiceVersion", owned::OWNER_KIND);
        let operators = self.cluster.list(kinds::deployment(), None, Some(&selector)).await?;
        let instead = "olmkit olm uninstall --with-operators without --delete-operands";
        for object in &left {
            if let Some(value) = self.cluster.get(object).await? {
                let cause = removal::blocked(object, &value, &operators, Some(instead));
                self.report.causes.push(cause);
            }
        }
        Ok(false)
    }

    /// Releases the operators' finalizers of the custom resources that are kept. `false` if something blocks.
    async fn release(
        &mut self,
        operands: &Operands,
        are_deleted: bool,
        deployments: &Deployments,
    ) -> Result<bool, Error> {
        let cluster = self.cluster;
        if self.dry_run && are_deleted {
            return Ok(true);
        }
        let mut releases = Releases::planned(&operands.existing(cluster).await?);
        if !self.dry_run && !releases.released.is_empty() {
            let running = operator_pods::stopped(cluster, deployments, self.deadline, self.progress).await?;
            if !running.is_empty() {
                self.report.causes.extend(running);
                return Ok(false);
            }
            releases = finalizers::release(cluster, self.progress, async || operands.existing(cluster).await).await?;
        }
        self.report.released.extend(releases.released);
        self.report.kept.extend(releases.kept);
        let is_done = releases.causes.is_empty();
        self.report.causes.extend(releases.causes);
        if is_done && !self.dry_run {
            operands.unlabel(cluster).await?;
        }
        Ok(is_done)
    }

    /// Removes namespaces that contain only objects of Kubernetes and OLM.
    async fn remove_namespaces(&mut self, namespaces: Vec<String>) -> Result<(), Error> {
        for name in namespaces {
            let object = ObjectRef::cluster(kinds::namespace(), &name);
            if self.cluster.get(&object).await?.is_none() {
                continue;
            }
            let why = match foreign(self.cluster, &name).await {
                Ok(None) => None,
                Ok(Some(found)) => Some(format!("it contains {found}, which is not part of OLM")),
                Err(error) if error.code() == Some(403) => {
                    Some(format!("cannot determine whether it has other contents: {error}"))
                }
                Err(error) => return Err(error),
            };
            match why {
                None => self.remove(vec![object]).await?,
                Some(why) => self.report.kept.push(Kept { object, why }),
            }
        }
        Ok(())
    }

    async fn remove_crds(&mut self) -> Result<(), Error> {
        let kind = kinds::custom_resource_definition();
        let suffix = format!(".{}", kinds::OLM_GROUP);
        let crds = self.cluster.list(kind.clone(), None, None).await?;
        let objects = crds
            .iter()
            .filter(|crd| text(crd, "/metadata/name").ends_with(&suffix))
            .map(|crd| ObjectRef::from_object(&kind, crd))
            .collect();
        self.remove(objects).await
    }

    async fn remove_residue(&mut self) -> Result<(), Error> {
        let mut objects: Vec<ObjectRef> = CLUSTER_ROLES
            .iter()
            .map(|name| ObjectRef::cluster(kinds::cluster_role(), name))
            .collect();
        objects.push(ObjectRef::namespaced(
            kinds::role_binding(),
            "kube-system",
            "packageserver-service-auth-reader",
        ));
        let managed = format!("{}=true", owned::MANAGED);
        for place in owned::places() {
            for labels in [owned::OWNER, &managed] {
                let found = self
                    .cluster
                    .list(place.kind.clone(), place.namespace, Some(labels))
                    .await?;
                objects.extend(found.iter().map(|object| ObjectRef::from_object(&place.kind, object)));
            }
        }
        objects.retain(|object| !object.name.starts_with(BINDING));
        objects.sort();
        objects.dedup();
        self.remove(objects).await
    }
}
