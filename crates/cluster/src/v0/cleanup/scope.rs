//! The objects of a package: a pure function of the observation.

use std::collections::{BTreeMap, BTreeSet};

use super::options::Options;
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::kube::crd::CrdState;
use crate::kube::finalizers::Rule;
use crate::kube::origin::Record;
use crate::kube::path::is_segment;
use crate::kube::removal::Kept;
use crate::observe::observation::Observation;
use crate::v0::crd_origin;
use olmkit::types::{CatalogSource, DeployedCsv, InstallPlan};

/// Objects to remove, in groups that are removed one after the other.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The namespace.
    pub namespace: String,
    /// Subscriptions for the package.
    pub subscriptions: Vec<ObjectRef>,
    /// ClusterServiceVersions of the package.
    pub csvs: Vec<ObjectRef>,
    /// CRDs that exist because of the package and that nothing else needs, by name.
    pub crds: Vec<(String, CrdState)>,
    /// All CRDs that the package owns or created.
    pub owned_crds: BTreeSet<String>,
    /// The CRDs of the package that its operator reconciles, also those that are kept, by name.
    pub operand_crds: Vec<(String, CrdState)>,
    /// Namespaces that the operator serves. An empty name means all. `None` if unknown.
    pub targets: Option<BTreeSet<String>>,
    /// CRDs that other CSVs own, with one such CSV.
    pub owners_elsewhere: BTreeMap<String, String>,
    /// True if a CRD to keep has OLM's label of the package.
    pub labels_kept_crds: bool,
    /// CRDs to keep although no other operator needs them.
    pub unserved_crds: BTreeSet<String>,
    /// Catalogs that were created only for the package.
    pub catalogs: Vec<ObjectRef>,
    /// Plans that installed only the package.
    pub install_plans: Vec<ObjectRef>,
    /// OperatorGroups that nothing needs any more.
    pub groups: Vec<ObjectRef>,
    /// The names of the package's CSVs, including deleted ones.
    pub csv_names: BTreeSet<String>,
    /// The versions that those replaced.
    pub replaced: BTreeSet<String>,
    /// Deployments of the namespace's other CSVs.
    pub deployments_kept: BTreeSet<String>,
    /// Plans with steps for the package, also shared ones: they show which cluster-scoped objects OLM created or is
    /// about to create.
    pub plans: Vec<InstallPlan>,
    /// Objects recorded as created for the package.
    pub recorded: Record,
    /// CSVs of other namespaces: those with the same name share the cluster-scoped objects.
    pub elsewhere: BTreeSet<String>,
    /// The labels of those CSVs, including OLM's component labels.
    pub labels_elsewhere: BTreeSet<String>,
    /// Objects that are kept deliberately.
    pub kept: Vec<Kept>,
}

impl Scope {
    /// Returns true if a custom resource is outside the operator's namespace, so that it may have another owner.
    pub fn is_outside(&self, object: &ObjectRef) -> bool {
        object.namespace.as_deref() != Some(self.namespace.as_str())
    }

    /// Returns true if the package's operator is the one that reconciles a custom resource. OLM does not install two
    /// operators for the same CRD and namespace, but can install one for each namespace.
    pub fn is_served(&self, crd: &str, object: &ObjectRef) -> bool {
        let is_only = !self.owners_elsewhere.contains_key(crd);
        match (&object.namespace, &self.targets) {
            (Some(namespace), Some(targets)) => targets.contains(namespace) || (targets.contains("") && is_only),
            _ => is_only,
        }
    }

    /// The rule for the finalizers of a CRD's custom resources.
    pub fn finalizer_rule(&self, name: &str, crd: &CrdState, named: &[String]) -> Rule {
        let is_of_group = |other: &str| other.split_once('.').is_some_and(|(_, group)| group == crd.group);
        // Another instance of the same operator is not a rival, because it serves other namespaces.
        let has_twin = self.owners_elsewhere.contains_key(name);
        let mut others = self.owners_elsewhere.iter().filter(|_| !has_twin);
        let rival = others.find(|(other, _)| is_of_group(other));
        Rule::new(crd, named).rival(rival.map(|(_, csv)| csv))
    }

    /// The CRDs as references.
    pub fn crds_refs(&self) -> Vec<ObjectRef> {
        self.crds
            .iter()
            .map(|(name, _)| ObjectRef::cluster(kinds::custom_resource_definition(), name))
            .collect()
    }
}

/// Finds the objects of the package. Subscription, CSV and plan each refer to the others, so that one of them is
/// enough. `begun` are CSVs that an earlier cleanup had begun to remove.
pub fn scope(options: &Options, seen: &Observation, recorded: &Record, begun: BTreeSet<String>) -> Scope {
    let mut scope = Scope {
        namespace: seen.namespace.clone(),
        ..Scope::default()
    };
    let object = |kind, name: &str| ObjectRef::namespaced(kind, &seen.namespace, name);
    let names_of_csvs = csv_names(&options.package, seen, begun);
    for subscription in seen.subscriptions_for(&options.package) {
        scope.subscriptions.push(object(
            kinds::subscription(),
            subscription.metadata.name.as_deref().unwrap_or_default(),
        ));
    }
    let csvs: Vec<&DeployedCsv> = seen
        .csvs
        .iter()
        .filter(|csv| !csv.is_copied() && names_of_csvs.contains(csv.name()))
        .collect();
    scope.csvs = csvs
        .iter()
        .map(|csv| object(kinds::cluster_service_version(), csv.name()))
        .collect();
    let created = crd_origin::created(recorded, seen, |csv| names_of_csvs.contains(csv));
    scope.owned_crds = owned_crds(options, seen, &csvs, &names_of_csvs);
    scope.owned_crds.extend(created.iter().cloned());
    crds(options, seen, &created, &names_of_csvs, &mut scope);
    operands(options, seen, &csvs, &names_of_csvs, &mut scope);
    catalogs(options, seen, &mut scope);
    for plan in seen.install_plans.iter().filter(|plan| only_ours(plan, &names_of_csvs)) {
        scope.install_plans.push(object(
            kinds::install_plan(),
            plan.metadata.name.as_deref().unwrap_or_default(),
        ));
    }
    groups(options, seen, &names_of_csvs, &mut scope);
    scope.replaced = csvs
        .iter()
        .map(|csv| csv.spec.replaces.clone())
        .filter(|name| !name.is_empty())
        .collect();
    let stays = |csv: &&DeployedCsv| !csv.is_copied() && !names_of_csvs.contains(csv.name());
    let deployments = seen.csvs.iter().filter(stays).flat_map(DeployedCsv::deployment_names);
    scope.deployments_kept = deployments.map(str::to_owned).collect();
    let others = seen.all_csvs.iter().filter(|csv| csv.namespace() != seen.namespace);
    for other in others {
        scope.elsewhere.insert(other.name().to_owned());
        let labels = other.metadata.labels.iter().flat_map(BTreeMap::keys);
        scope.labels_elsewhere.extend(labels.cloned());
    }
    let plans = seen.install_plans.iter();
    let of_package = plans.filter(|plan| any_ours(plan, &names_of_csvs));
    scope.plans = of_package.cloned().collect();
    scope.recorded = recorded.clone();
    scope.csv_names = names_of_csvs;
    scope
}

/// The names of the package's CSVs: from Subscriptions, from OLM's annotation and label on the CSV, and from plans; and `begun`.
pub(super) fn csv_names(package: &str, seen: &Observation, begun: BTreeSet<String>) -> BTreeSet<String> {
    let mut found = begun;
    for subscription in seen.subscriptions_for(package) {
        found.extend(
            [
                &subscription.status.current_csv,
                &subscription.status.installed_csv,
                &subscription.spec.starting_csv,
            ]
            .into_iter()
            .cloned(),
        );
    }
    let label = names::component_label(package, &seen.namespace);
    for csv in seen.csvs.iter().filter(|csv| !csv.is_copied()) {
        let labelled = csv
            .metadata
            .labels
            .as_ref()
            .is_some_and(|labels| labels.contains_key(&label));
        if labelled || csv.package().is_some_and(|found| found == package) {
            found.insert(csv.name().to_owned());
        }
    }
    for plan in &seen.install_plans {
        let labelled = plan
            .metadata
            .labels
            .as_ref()
            .is_some_and(|labels| labels.contains_key(&label));
        if let (true, [only]) = (labelled, plan.spec.cluster_service_version_names.as_slice()) {
            found.insert(only.clone());
        }
    }
    // Users write the names in Subscriptions and plans. One that no object can have would end the command.
    found.retain(|name| is_segment(name));
    found
}

/// Returns true if a plan has a step for one of these CSVs.
fn any_ours(plan: &InstallPlan, csvs: &BTreeSet<String>) -> bool {
    plan.status.plan.iter().any(|step| csvs.contains(&step.resolving))
}

fn only_ours(plan: &InstallPlan, csvs: &BTreeSet<String>) -> bool {
    let names = &plan.spec.cluster_service_version_names;
    !names.is_empty() && names.iter().all(|name| csvs.contains(name))
}

/// CRDs that the package owns: by its CSVs, by OLM's label, by its plans.
fn owned_crds(
    options: &Options,
    seen: &Observation,
    csvs: &[&DeployedCsv],
    csv_names: &BTreeSet<String>,
) -> BTreeSet<String> {
    let label = names::component_label(&options.package, &seen.namespace);
    let by_csv = csvs.iter().flat_map(|csv| &csv.spec.customresourcedefinitions.owned);
    let by_label = seen.crds.iter().filter(|(_, crd)| crd.labels.contains_key(&label));
    let steps = seen.install_plans.iter().flat_map(|plan| &plan.status.plan);
    let by_plan =
        steps.filter(|step| csv_names.contains(&step.resolving) && step.resource.kind == "CustomResourceDefinition");
    let mut owned: BTreeSet<String> = by_csv.map(|crd| crd.name.clone()).collect();
    owned.extend(by_label.map(|(name, _)| name.clone()));
    owned.extend(by_plan.map(|step| step.resource.name.clone()));
    owned
}

/// Decides which CRDs to delete. CRDs that another package installed, owns or needs are kept, and so are OLM's.
fn crds(
    options: &Options,
    seen: &Observation,
    created: &BTreeSet<String>,
    csv_names: &BTreeSet<String>,
    scope: &mut Scope,
) {
    let label = names::component_label(&options.package, &seen.namespace);
    let users = users_elsewhere(seen, csv_names);
    for name in &scope.owned_crds {
        let Some(crd) = seen.crds.get(name) else {
            continue;
        };
        let is_named = options.named_crds.contains(name);
        let why = if crd.group == kinds::OLM_GROUP {
            "it belongs to OLM".to_owned()
        } else if options.keep_crds.contains(name) {
            "it existed before".to_owned()
        } else if let Some(user) = users.get(name.as_str()) {
            format!("ClusterServiceVersion {user} also needs it")
        } else if is_named {
            String::new()
        } else if !options.crds {
            "--delete-crds=false".to_owned()
        } else if !created.contains(name) {
            format!(
                "it was not created for this package; --delete-crds={name} deletes it with all its custom resources"
            )
        } else {
            String::new()
        };
        if why.is_empty() {
            scope.crds.push((name.clone(), crd.clone()));
            continue;
        }
        let object = ObjectRef::cluster(kinds::custom_resource_definition(), name);
        scope.labels_kept_crds |= crd.labels.contains_key(&label);
        if crd.group != kinds::OLM_GROUP && !users.contains_key(name.as_str()) {
            scope.unserved_crds.insert(name.clone());
        }
        scope.kept.push(Kept { object, why });
    }
}

/// The CRDs that the operator reconciles, and the namespaces that it serves.
fn operands(
    options: &Options,
    seen: &Observation,
    csvs: &[&DeployedCsv],
    names_of_csvs: &BTreeSet<String>,
    scope: &mut Scope,
) {
    let owned = scope.owned_crds.iter().filter(|name| !options.keep_crds.contains(name));
    let served = owned.filter_map(|name| Some((name.clone(), seen.crds.get(name)?.clone())));
    scope.operand_crds = served.filter(|(_, crd)| crd.group != kinds::OLM_GROUP).collect();
    for csv in csvs_elsewhere(seen, names_of_csvs) {
        let user = format!("{}/{}", csv.namespace(), csv.name());
        for crd in &csv.spec.customresourcedefinitions.owned {
            scope.owners_elsewhere.insert(crd.name.clone(), user.clone());
        }
    }
    scope.targets = targets(seen, csvs);
}

/// The namespaces that the CSVs serve: OLM writes them into an annotation. If no CSV exists any more, the OperatorGroup
/// has them.
fn targets(seen: &Observation, csvs: &[&DeployedCsv]) -> Option<BTreeSet<String>> {
    let recorded = csvs
        .iter()
        .filter_map(|csv| names::targets(csv.metadata.annotations.as_ref()));
    let by_csvs: BTreeSet<String> = recorded.flatten().collect();
    if !by_csvs.is_empty() {
        return Some(by_csvs);
    }
    match seen.operator_groups.as_slice() {
        [group] if !group.status.namespaces.is_empty() => Some(group.status.namespaces.iter().cloned().collect()),
        _ => None,
    }
}

/// CSVs of other packages, and of the same package in other namespaces.
fn csvs_elsewhere<'a>(seen: &'a Observation, ours: &BTreeSet<String>) -> impl Iterator<Item = &'a DeployedCsv> {
    seen.all_csvs
        .iter()
        .filter(|csv| !(csv.namespace() == seen.namespace && ours.contains(csv.name())))
}

/// CRDs that CSVs of other packages own or require, with one such CSV.
fn users_elsewhere<'a>(seen: &'a Observation, ours: &BTreeSet<String>) -> BTreeMap<&'a str, String> {
    csvs_elsewhere(seen, ours)
        .flat_map(|csv| {
            let definitions = &csv.spec.customresourcedefinitions;
            let user = format!("{}/{}", csv.namespace(), csv.name());
            definitions
                .owned
                .iter()
                .chain(&definitions.required)
                .map(move |crd| (crd.name.as_str(), user.clone()))
        })
        .collect()
}

/// Catalogs of the package's Subscriptions: only those are removed that olmkit or operator-sdk created only for the
/// package.
fn catalogs(options: &Options, seen: &Observation, scope: &mut Scope) {
    let made = names::catalog_source(&options.package);
    let mut used: BTreeSet<(&str, &str)> = BTreeSet::from([(seen.namespace.as_str(), made.as_str())]);
    used.extend(
        seen.subscriptions_for(&options.package)
            .map(|found| (found.spec.source_namespace.as_str(), found.spec.source.as_str())),
    );
    for (namespace, name) in used {
        let Some(catalog) = seen.catalog(namespace, name) else {
            continue;
        };
        let object = ObjectRef::namespaced(kinds::catalog_source(), namespace, name);
        let other = seen.subscriptions.iter().find(|found| {
            found.spec.name != options.package && found.spec.source == name && found.spec.source_namespace == namespace
        });
        match other {
            Some(other) => scope.kept.push(Kept {
                object,
                why: format!(
                    "Subscription {} also uses it",
                    other.metadata.name.as_deref().unwrap_or_default()
                ),
            }),
            None if !made_for_one_package(catalog, &made) => scope.kept.push(Kept {
                object,
                why: "it was not created for this package only".into(),
            }),
            None => scope.catalogs.push(object),
        }
    }
}

/// Returns true if olmkit or operator-sdk created a catalog. operator-sdk marks it with an annotation.
fn made_for_one_package(catalog: &CatalogSource, name: &str) -> bool {
    let label = catalog
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(names::MANAGED_BY.0))
        .is_some_and(|value| value == names::MANAGED_BY.1);
    let annotation = catalog
        .metadata
        .annotations
        .as_ref()
        .is_some_and(|found| found.contains_key(names::INJECTED_BUNDLES_ANNOTATION));
    let by_operator_sdk = annotation && catalog.spec.publisher == "operator-sdk";
    catalog.metadata.name.as_deref() == Some(name) && (label || by_operator_sdk)
}

/// The OperatorGroup is removed if olmkit or operator-sdk created it and the namespace has no other operator.
fn groups(options: &Options, seen: &Observation, ours: &BTreeSet<String>, scope: &mut Scope) {
    for group in seen
        .operator_groups
        .iter()
        .filter(|group| group.metadata.name.as_deref() == Some(names::OPERATOR_GROUP))
    {
        let object = ObjectRef::namespaced(
            kinds::operator_group(),
            &seen.namespace,
            group.metadata.name.as_deref().unwrap_or_default(),
        );
        let subscription = seen
            .subscriptions
            .iter()
            .find(|found| found.spec.name != options.package);
        let csv = seen
            .csvs
            .iter()
            .find(|csv| !csv.is_copied() && !ours.contains(csv.name()));
        if !options.operator_groups {
            scope.kept.push(Kept {
                object,
                why: "--delete-operator-groups=false".into(),
            });
        } else if let Some(other) = subscription {
            scope.kept.push(Kept {
                object,
                why: format!(
                    "Subscription {} needs it",
                    other.metadata.name.as_deref().unwrap_or_default()
                ),
            });
        } else if let Some(other) = csv {
            scope.kept.push(Kept {
                object,
                why: format!("ClusterServiceVersion {} needs it", other.name()),
            });
        } else {
            scope.groups.push(object);
        }
    }
}
