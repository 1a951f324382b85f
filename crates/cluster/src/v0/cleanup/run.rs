//! The steps of a cleanup.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::options::Options;
use super::scope::{self, Scope, scope};
use super::{operands, residue, resume};
use crate::base::cause::Cause;
use crate::base::error::Error;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::{ProgressLog, ProgressReporter};
use crate::base::{kinds, names};
use crate::kube::client::Cluster;
use crate::kube::finalizers::{self, Releases};
use crate::kube::late;
use crate::kube::operator_pods::{self, Deployments};
use crate::kube::removal::{self, Kept, Report};
use crate::observe::observation::Observation;
use crate::rights::{self, Command, When};
use crate::v0::{cluster_objects, record};

/// Removes a package from the cluster's namespace.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`], [`Error::Usage`] if a named CRD does not belong to the package. Objects
/// that block are not errors but causes in the report.
pub async fn cleanup(cluster: &Cluster, options: &Options, reporter: &dyn ProgressReporter) -> Result<Report, Error> {
    names::check("package", &options.package).map_err(Error::Usage)?;
    finalizers::check_named(&options.release_finalizers).map_err(Error::Usage)?;
    let mut progress = ProgressLog::start(reporter);
    let missing = rights::missing_always(cluster, Command::Cleanup).await?;
    if !missing.is_empty() {
        return Ok(refused(options, missing));
    }
    let deadline = Instant::now() + options.timeout;
    let begun = resume::begun(cluster, &options.package).await?;
    let seen = settled(cluster, options, &begun, &mut progress).await?;
    let recorded = record::read(cluster, &options.package).await?;
    let mut scope = scope(options, &seen, &recorded, begun.clone());
    check_named(options, &seen, &scope)?;
    keep_shared(cluster, options, &mut scope).await?;
    if !options.dry_run {
        let missing = missing_rights(cluster, options, &scope).await?;
        if !missing.is_empty() {
            return Ok(refused(options, missing));
        }
    }
    let mut run = Run {
        cluster,
        deadline,
        report: Report {
            package: options.package.clone(),
            kept: scope.kept.clone(),
            ..Report::default()
        },
        dry_run: options.dry_run,
        begun,
        progress: &mut progress,
    };
    run.all(&scope, options).await?;
    let mut report = run.report;
    report.found = !report.removed.is_empty() || !report.causes.is_empty() || !report.released.is_empty();
    report.steps = progress.steps;
    Ok(report)
}

/// Observes the cluster after OLM has completed all plans of the package: a CSV can have Succeeded before the last
/// objects of its bundle exist, and OLM creates them even after the plan is deleted. Half of the time is reserved for
/// the removal.
async fn settled(
    cluster: &Cluster,
    options: &Options,
    begun: &BTreeSet<String>,
    progress: &mut ProgressLog<'_>,
) -> Result<Observation, Error> {
    let mut seen = Observation::full(cluster, &Default::default()).await?;
    if options.dry_run {
        return Ok(seen);
    }
    let csvs = scope::csv_names(&options.package, &seen, begun.clone());
    let is_ours = |csv: &str| csvs.contains(csv);
    if cluster_objects::complete(cluster, is_ours, options.timeout / 2, &mut seen, progress).await? {
        seen = Observation::full(cluster, &Default::default()).await?;
    }
    Ok(seen)
}

/// Nothing was changed, because permissions are missing.
fn refused(options: &Options, causes: Vec<Cause>) -> Report {
    Report {
        package: options.package.clone(),
        found: true,
        causes,
        ..Report::default()
    }
}

/// The missing permissions for removing the objects in scope.
async fn missing_rights(cluster: &Cluster, options: &Options, scope: &Scope) -> Result<Vec<Cause>, Error> {
    let residue = residue::find(cluster, scope, options).await?;
    let mut objects = [
        &scope.subscriptions,
        &scope.install_plans,
        &scope.csvs,
        &scope.catalogs,
        &scope.groups,
        &residue.of_csvs,
        &residue.of_catalogs,
        &residue::of_apis(cluster, scope).await?,
        &scope.crds_refs(),
    ]
    .map(|part| part.as_slice())
    .concat();
    objects.extend(removal::existing(cluster, &residue.operators).await?);
    for (_, crd) in &scope.crds {
        objects.extend(removal::instances_of(cluster, crd).await?);
    }
    objects.extend(operands::to_delete(cluster, scope, options).await?);
    let mut missing = rights::missing_to_remove(cluster, Command::Cleanup, &objects).await?;
    let planned = Releases::planned(&operands::to_release(cluster, scope, options).await?);
    let released = planned.released.iter().map(|released| &released.object);
    missing.extend(rights::missing_to_change(cluster, Command::Cleanup, released).await?);
    let stays = |right: &rights::Right| right.when == When::Kept && scope.labels_kept_crds;
    missing.extend(rights::missing(cluster, Command::Cleanup, stays).await?);
    Ok(missing)
}

struct Run<'a, 'n> {
    cluster: &'a Cluster,
    deadline: Instant,
    report: Report,
    dry_run: bool,
    /// The CSVs that an earlier cleanup had begun to remove.
    begun: BTreeSet<String>,
    progress: &'a mut ProgressLog<'n>,
}

impl Run<'_, '_> {
    async fn all(&mut self, scope: &Scope, options: &Options) -> Result<(), Error> {
        if !self.dry_run && !scope.csvs.is_empty() {
            let names = scope.csv_names.union(&scope.replaced).cloned().collect();
            // A resumed cleanup has recorded its names already.
            if self.begun != names {
                resume::note(self.cluster, &options.package, &names).await?;
            }
        }
        // First, because OLM would install the removed version again.
        self.remove(&scope.subscriptions).await?;
        // OLM would create the objects of an unfinished plan again.
        self.remove(&scope.install_plans).await?;
        let residue = residue::find(self.cluster, scope, options).await?;
        self.report.kept.extend(residue.kept);
        let csvs = |csv: &str| scope.csv_names.contains(csv);
        let deployments = operator_pods::deployments(self.cluster, Some(&scope.namespace), csvs).await?;
        let instances = operands::to_delete(self.cluster, scope, options).await?;
        if scope.csvs.is_empty() && deployments.is_empty() && !self.dry_run {
            let (cluster, removed) = (self.cluster, &mut self.report.removed);
            let find = async || operands::all(cluster, scope, options).await;
            let causes =
                finalizers::delete_without_operator(cluster, &instances, self.deadline, removed, self.progress, find)
                    .await?;
            self.report.causes.extend(causes);
            if !self.report.causes.is_empty() {
                return Ok(());
            }
        }
        if !self.remove(&instances).await? {
            return Ok(());
        }
        // Other clients may have created objects in the meantime.
        let mut scope = scope.clone();
        let before = scope.kept.len();
        keep_shared(self.cluster, options, &mut scope).await?;
        self.report.kept.extend(scope.kept.iter().skip(before).cloned());
        let scope = &scope;
        let roles = residue::of_apis(self.cluster, scope).await?;
        for stage in [&scope.crds_refs(), &scope.csvs, &residue.of_csvs, &roles] {
            if !self.remove(stage).await? {
                return Ok(());
            }
        }
        // After the webhooks of the operator, which could reject the change. Before the OperatorGroup, which has the
        // served namespaces.
        if !self.release(scope, options, &deployments).await? {
            return Ok(());
        }
        for stage in [&scope.catalogs, &residue.of_catalogs, &scope.groups] {
            if !self.remove(stage).await? {
                return Ok(());
            }
        }
        let operators = self
            .remove_operators(scope, options, residue.operators, &residue.labelled)
            .await?;
        if !self.dry_run && !self.report.removed.is_empty() {
            self.late(scope, &operators, options).await?;
        }
        Ok(())
    }

    /// Removes the Operator object last, because OLM creates it again while any object has its label. OLM labels a CRD
    /// late while its cache still has the CSV, so the labels are removed as long as the Operator object exists. Returns
    /// the removed objects: none if a label is kept.
    async fn remove_operators(
        &mut self,
        scope: &Scope,
        options: &Options,
        operators: Vec<ObjectRef>,
        labelled: &[ObjectRef],
    ) -> Result<Vec<ObjectRef>, Error> {
        /// Time for one deletion, much longer than OLM needs to create the object again.
        const ATTEMPT: Duration = Duration::from_secs(5);
        if self.dry_run {
            self.remove(&operators).await?;
            return Ok(operators);
        }
        loop {
            if let Some(labelled) = unlabel(self.cluster, scope, options, labelled).await? {
                let why = format!(
                    "OLM creates it again while {labelled} has its label, and you have no permission to remove that label"
                );
                let existing = removal::existing(self.cluster, &operators).await?;
                let kept = existing.into_iter().map(|operator| Kept::new(operator, why.clone()));
                self.report.kept.extend(kept);
                return Ok(Vec::new());
            }
            let attempt = Instant::now() + ATTEMPT;
            if attempt >= self.deadline {
                self.remove(&operators).await?;
                return Ok(operators);
            }
            let removed = &mut self.report.removed;
            let left = removal::remove(self.cluster, &operators, attempt, removed, self.progress).await?;
            if left.is_empty() {
                return Ok(operators);
            }
        }
    }

    /// Removes objects that OLM wrote late: the ClusterRoles of an OperatorGroup, the Operator object, and objects of a
    /// plan that OLM was executing: CSV, CRDs and other cluster-scoped objects. Removes labels that OLM wrote late.
    ///
    /// OLM creates the Operator object until the garbage collector has deleted the objects that the CSV owned. In a young
    /// cluster that takes up to a minute: the garbage collector looks for new kinds every 30 seconds, and notices no
    /// deleted CSV before it has found that kind.
    async fn late(&mut self, scope: &Scope, operators: &[ObjectRef], options: &Options) -> Result<(), Error> {
        let (cluster, progress) = (self.cluster, &mut *self.progress);
        let csvs: Vec<ObjectRef> = scope
            .csv_names
            .iter()
            .map(|name| ObjectRef::namespaced(kinds::cluster_service_version(), &scope.namespace, name))
            .collect();
        let crds = scope.crds_refs();
        progress.waiting("OLM to notice");
        let mut late = late::remove(cluster, self.deadline, async || {
            unlabel(cluster, scope, options, &[]).await?;
            let mut found = residue::of_groups(cluster, scope).await?;
            found.extend(residue::of_apis(cluster, scope).await?);
            found.extend(residue::of_plans(cluster, scope, options).await?);
            for operator in operators {
                let Some(value) = cluster.get(operator).await? else {
                    continue;
                };
                if let Some(components) = removal::components(&value, 1) {
                    progress.waiting(format!("{components} to be deleted"));
                }
                found.push(operator.clone());
            }
            found.extend(removal::existing(cluster, &csvs).await?);
            found.extend(removal::existing(cluster, &crds).await?);
            Ok(found)
        })
        .await?;
        if late.iter().any(|object| csvs.contains(object)) {
            let left = residue::find(cluster, scope, options).await?;
            self.remove(&[left.of_csvs, left.operators].concat()).await?;
        }
        // Objects that this cleanup does not know have the label. A removal that was blocked has its cause already.
        let unexplained = if self.report.causes.is_empty() { operators } else { &[] };
        for object in unexplained {
            if let Some(value) = cluster.get(object).await? {
                let cause = removal::blocked(object, &value, &[], None);
                self.report.causes.push(cause);
            }
        }
        late.retain(|object| !self.report.removed.contains(object));
        self.report.removed.extend(late);
        Ok(())
    }

    /// Releases the operator's finalizers of the custom resources that are kept. `false` if something blocks.
    async fn release(&mut self, scope: &Scope, options: &Options, deployments: &Deployments) -> Result<bool, Error> {
        let cluster = self.cluster;
        let mut releases = Releases::planned(&operands::to_release(cluster, scope, options).await?);
        if !self.dry_run && !releases.released.is_empty() {
            let running = operator_pods::stopped(cluster, deployments, self.deadline, self.progress).await?;
            if !running.is_empty() {
                self.report.causes.extend(running);
                return Ok(false);
            }
            let find = async || operands::remaining(cluster, scope, options).await;
            releases = finalizers::release(cluster, self.progress, find).await?;
        }
        self.report.released.extend(releases.released);
        self.report.kept.extend(releases.kept);
        self.report.causes.extend(releases.causes);
        Ok(self.report.causes.is_empty())
    }

    /// Removes objects and waits until they are deleted. `false` if something blocks.
    async fn remove(&mut self, objects: &[ObjectRef]) -> Result<bool, Error> {
        if self.dry_run {
            let existing = removal::existing(self.cluster, objects).await?;
            self.report.removed.extend(existing);
            return Ok(true);
        }
        let removed = &mut self.report.removed;
        let left = removal::remove(self.cluster, objects, self.deadline, removed, self.progress).await?;
        if left.is_empty() {
            return Ok(true);
        }
        let (namespace, selector) = (self.cluster.namespace.as_str(), "olm.owner.kind=ClusterServiceVersion");
        let operators = self
            .cluster
            .list(kinds::deployment(), Some(namespace), Some(selector))
            .await?;
        let package = names::word(&self.report.package);
        let instead = format!("olmkit cleanup {package} -n {namespace} --delete-all=false");
        for object in &left {
            if let Some(value) = self.cluster.get(object).await? {
                let cause = removal::blocked(object, &value, &operators, Some(&instead));
                self.report.causes.push(cause);
            }
        }
        Ok(false)
    }
}

/// Removes the package's label from CRDs and other cluster-scoped objects that are kept. Returns an object that keeps the
/// label, because the credentials cannot change it: for the API server, changing a ClusterRole requires the permission
/// to grant all its rules.
async fn unlabel(
    cluster: &Cluster,
    scope: &Scope,
    options: &Options,
    labelled: &[ObjectRef],
) -> Result<Option<ObjectRef>, Error> {
    let label = names::component_label(&options.package, &scope.namespace);
    let kind = kinds::custom_resource_definition();
    let crds = cluster.list(kind.clone(), None, Some(&label)).await?;
    let crds = crds.iter().map(|crd| ObjectRef::from_object(&kind, crd));
    let kept_crds: Vec<ObjectRef> = crds
        .filter(|crd| scope.kept.iter().any(|kept| kept.object == *crd))
        .collect();
    let label = [label];
    let mut left = None;
    for object in kept_crds.iter().chain(labelled) {
        match cluster.unlabel(object, &label).await {
            Err(error) if error.code() == Some(403) && labelled.contains(object) => left = Some(object.clone()),
            other => other?,
        }
    }
    Ok(left)
}

/// A CRD that is named but not the package's is a mistake, which must not go unnoticed.
fn check_named(options: &Options, seen: &Observation, scope: &Scope) -> Result<(), Error> {
    let foreign = options
        .named_crds
        .iter()
        .find(|name| seen.crds.contains_key(*name) && !scope.owned_crds.contains(*name));
    let Some(name) = foreign else { return Ok(()) };
    let owned: Vec<&str> = scope.owned_crds.iter().map(String::as_str).collect();
    Err(Error::Usage(format!(
        "--delete-crds={name}: package {} does not own that CRD; it owns {}",
        options.package,
        if owned.is_empty() {
            "none".to_owned()
        } else {
            owned.join(", ")
        }
    )))
}

/// Keeps CRDs with custom resources outside the operator's namespace. To delete such a CRD, the user must name it.
async fn keep_shared(cluster: &Cluster, options: &Options, scope: &mut Scope) -> Result<(), Error> {
    let label = names::component_label(&options.package, &scope.namespace);
    let mut going = Vec::new();
    for (name, crd) in std::mem::take(&mut scope.crds) {
        let mut others = Vec::new();
        if !options.named_crds.contains(&name) {
            others = removal::instances_of(cluster, &crd).await?;
            others.retain(|object| scope.is_outside(object) && !(options.operands && scope.is_served(&name, object)));
        }
        let Some(first) = others.first() else {
            going.push((name, crd));
            continue;
        };
        let object = ObjectRef::cluster(kinds::custom_resource_definition(), &name);
        scope.labels_kept_crds |= crd.labels.contains_key(&label);
        let why = format!(
            "{} of its custom resources are outside namespace {}, such as {first}; --delete-crds={name} deletes it with all its custom resources",
            others.len(),
            scope.namespace
        );
        scope.unserved_crds.insert(name);
        scope.kept.push(Kept { object, why });
    }
    scope.crds = going;
    Ok(())
}
