//! Snapshot of a cluster: the input of every decision. Contains observations only, no conclusions.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use serde_json::Value;

use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds;
use crate::base::kinds::OLM_GROUP;
use crate::base::object_ref::ObjectRef;
use crate::kube::client::Cluster;
use crate::kube::conditions::Conditions as _;
use crate::kube::crd::CrdState;
use crate::kube::path::is_segment;
use olmkit::types::{CatalogSource, DeployedCsv, InstallPlan, OperatorGroup, Subscription};

/// OLM's own state.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OlmState {
    /// Those of OLM's CRDs that are established.
    pub crds: BTreeSet<String>,
    /// The Deployments `olm-operator` and `catalog-operator`, wherever they are.
    pub deployments: Vec<Deployment>,
    /// Namespace whose catalogs every namespace sees.
    pub global_namespace: Option<String>,
    /// The image with which OLM unpacks bundles: nodes can pull it, and it contains `/bin/opm`.
    pub opm_image: Option<String>,
    /// `olm.version` of the CSV `packageserver`.
    pub version: Option<String>,
}

/// The CRDs without which no flow works.
pub const NEEDED_CRDS: [&str; 5] = [
    "catalogsources.operators.coreos.com",
    "clusterserviceversions.operators.coreos.com",
    "installplans.operators.coreos.com",
    "operatorgroups.operators.coreos.com",
    "subscriptions.operators.coreos.com",
];

/// A namespace and what of the cluster concerns it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Observation {
    /// The namespace.
    pub namespace: String,
    /// `Active`, `Terminating`. `None` when it does not exist.
    pub namespace_phase: Option<String>,
    /// The API server's version.
    pub server_version: String,
    /// OLM itself.
    pub olm: OlmState,
    /// OperatorGroups of the namespace.
    pub operator_groups: Vec<OperatorGroup>,
    /// Catalogs of the namespace and of the global one.
    pub catalogs: Vec<CatalogSource>,
    /// Subscriptions of the namespace.
    pub subscriptions: Vec<Subscription>,
    /// InstallPlans of the namespace.
    pub install_plans: Vec<InstallPlan>,
    /// CSVs of the namespace, copied ones too.
    pub csvs: Vec<DeployedCsv>,
    /// CSVs of all namespaces, without copies.
    pub all_csvs: Vec<DeployedCsv>,
    /// CRDs of the cluster.
    pub crds: BTreeMap<String, CrdState>,
    /// Unpack Jobs of the namespaces that have catalogs.
    pub jobs: Vec<Job>,
    /// Pods of the namespace and of those with catalogs.
    pub pods: Vec<Pod>,
    /// Warnings of the same namespaces.
    pub events: Vec<Event>,
    /// Deployments of the namespace.
    pub deployments: Vec<Deployment>,
    /// OperatorConditions of the namespace, unparsed.
    pub operator_conditions: Vec<Value>,
    /// `apiVersion kind` of the requested kinds that the cluster serves.
    pub served: BTreeSet<(String, String)>,
    /// APIServices of other servers that do not answer.
    pub dead_api_services: Vec<String>,
}

impl Observation {
    /// Nothing is known but the namespace's name.
    pub fn none(cluster: &Cluster) -> Self {
        Observation {
            namespace: cluster.namespace.clone(),
            ..Observation::default()
        }
    }

    /// Observes the namespace and the related cluster-scoped objects. `asked` are kinds to look up.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Unreadable`].
    pub async fn full(cluster: &Cluster, asked: &BTreeSet<(String, String)>) -> Result<Self, Error> {
        let namespace = cluster.namespace.clone();
        let mut seen = Observation {
            namespace: namespace.clone(),
            ..Observation::default()
        };
        seen.server_version = cluster.server_version().await?;
        let found = cluster.get(&ObjectRef::cluster(kinds::namespace(), &namespace)).await?;
        seen.namespace_phase = found.map(|found| text(&found, "/status/phase").to_owned());
        for crd in cluster.list(kinds::custom_resource_definition(), None, None).await? {
            seen.crds
                .insert(text(&crd, "/metadata/name").to_owned(), CrdState::from_crd(&crd));
        }
        seen.olm = observe_olm(cluster, &seen.crds).await?;
        seen.refresh(cluster).await?;
        seen.all_csvs = cluster
            .list_readable::<DeployedCsv>(kinds::cluster_service_version(), None, None)
            .await?
            .into_iter()
            .filter(|csv| !csv.is_copied())
            .collect();
        seen.dead_api_services = dead_api_services(cluster).await?;
        for (api_version, kind) in asked {
            if cluster.kind_of(api_version, kind).await?.is_some() {
                seen.served.insert((api_version.clone(), kind.clone()));
            }
        }
        Ok(seen)
    }

    /// Updates the objects that change while an installation runs.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Unreadable`].
    pub async fn refresh(&mut self, cluster: &Cluster) -> Result<(), Error> {
        let own = Some(self.namespace.as_str());
        (
            self.operator_groups,
            self.subscriptions,
            self.install_plans,
            self.csvs,
            self.deployments,
        ) = futures::try_join!(
            cluster.list_readable(kinds::operator_group(), own, None),
            cluster.list_readable(kinds::subscription(), own, None),
            cluster.list_readable(kinds::install_plan(), own, None),
            cluster.list_readable(kinds::cluster_service_version(), own, None),
            cluster.list_readable(kinds::deployment(), own, None),
        )?;
        self.operator_conditions = cluster.list(kinds::operator_condition(), own, None).await?;
        let mut namespaces = BTreeSet::from([self.namespace.clone()]);
        namespaces.extend(self.olm.global_namespace.clone());
        namespaces.extend(
            self.subscriptions
                .iter()
                .map(|found| found.spec.source_namespace.clone())
                // Any text. A namespace that cannot exist has no catalogs.
                .filter(|name| is_segment(name)),
        );
        (self.catalogs, self.pods, self.events, self.jobs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for name in &namespaces {
            let name = Some(name.as_str());
            let (catalogs, pods, events, jobs) = futures::try_join!(
                cluster.list_readable(kinds::catalog_source(), name, None),
                cluster.list_readable(kinds::pod(), name, None),
                cluster.list_readable::<Event>(kinds::event(), name, None),
                cluster.list_readable(kinds::job(), name, Some("operatorframework.io/bundle-unpack-ref")),
            )?;
            self.catalogs.extend::<Vec<CatalogSource>>(catalogs);
            self.pods.extend::<Vec<Pod>>(pods);
            self.events.extend(
                events
                    .into_iter()
                    .filter(|event| event.type_.as_deref() == Some("Warning")),
            );
            self.jobs.extend::<Vec<Job>>(jobs);
        }
        Ok(())
    }

    /// The Subscriptions for a package.
    pub fn subscriptions_for<'a>(&'a self, package: &'a str) -> impl Iterator<Item = &'a Subscription> {
        self.subscriptions
            .iter()
            .filter(move |found| found.spec.name == package)
    }

    /// The CSV of that name in the namespace.
    pub fn csv(&self, name: &str) -> Option<&DeployedCsv> {
        self.csvs.iter().find(|csv| csv.name() == name)
    }

    /// The reference of a Subscription of the namespace.
    pub fn reference(&self, subscription: &Subscription) -> ObjectRef {
        let name = subscription.metadata.name.as_deref().unwrap_or_default();
        ObjectRef::namespaced(kinds::subscription(), &self.namespace, name)
    }

    /// The InstallPlan of that name in the namespace.
    pub fn install_plan(&self, name: &str) -> Option<&InstallPlan> {
        self.install_plans
            .iter()
            .find(|plan| plan.metadata.name.as_deref() == Some(name))
    }

    /// The catalog of that name.
    pub fn catalog(&self, namespace: &str, name: &str) -> Option<&CatalogSource> {
        self.catalogs.iter().find(|catalog| {
            catalog.metadata.name.as_deref() == Some(name) && catalog.metadata.namespace.as_deref() == Some(namespace)
        })
    }
}

/// Observes OLM itself.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn observe_olm(cluster: &Cluster, crds: &BTreeMap<String, CrdState>) -> Result<OlmState, Error> {
    let mut state = OlmState::default();
    let suffix = format!(".{OLM_GROUP}");
    state.crds = crds
        .iter()
        .filter(|(name, crd)| name.ends_with(&suffix) && crd.established)
        .map(|(name, _)| name.clone())
        .collect();
    let deployments: Vec<Deployment> = cluster
        .list_readable(
            kinds::deployment(),
            None,
            Some("app in (olm-operator,catalog-operator)"),
        )
        .await?;
    state.global_namespace = deployments.iter().find_map(global_namespace);
    state.opm_image = deployments.iter().find_map(|deployment| flag(deployment, "opmImage"));
    state.deployments = deployments;
    if state.global_namespace.is_none() {
        match cluster.get(&ObjectRef::cluster(kinds::namespace(), "olm")).await {
            Ok(Some(_)) => state.global_namespace = Some("olm".into()),
            Ok(None) => {}
            // The credentials cannot list them.
            Err(error) if error.code() == Some(403) => {}
            Err(error) => return Err(error),
        }
    }
    if state.crds.contains("clusterserviceversions.operators.coreos.com") {
        let servers = cluster
            .list(kinds::cluster_service_version(), None, Some("olm.version"))
            .await?;
        state.version = servers.iter().find_map(|csv| {
            let version = csv.pointer("/metadata/labels/olm.version")?.as_str()?;
            (text(csv, "/metadata/name") == "packageserver").then(|| version.to_owned())
        });
    }
    Ok(state)
}

/// The namespace from which `catalog-operator` is configured to read global catalogs.
fn global_namespace(deployment: &Deployment) -> Option<String> {
    if deployment.metadata.name.as_deref() != Some("catalog-operator") {
        return None;
    }
    flag(deployment, "namespace").or_else(|| deployment.metadata.namespace.clone())
}

/// The value of a flag of the first container: `--name=value` or `--name value`, with one dash or two.
fn flag(deployment: &Deployment, name: &str) -> Option<String> {
    let container = deployment.spec.as_ref()?.template.spec.as_ref()?.containers.first()?;
    let arguments = container.args.as_deref().unwrap_or_default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(bare) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
            continue;
        };
        match bare.split_once('=') {
            Some((found, value)) if found == name => return Some(value.to_owned()),
            None if bare == name => return rest.next().cloned(),
            _ => {}
        }
    }
    None
}

/// Unavailable APIServices that are backed by a Service.
pub(crate) async fn dead_api_services(cluster: &Cluster) -> Result<Vec<String>, Error> {
    let services = cluster.list(kinds::api_service(), None, None).await?;
    Ok(services
        .iter()
        .filter(|service| {
            service.pointer("/spec/service").is_some_and(Value::is_object) && !service.is_true("Available")
        })
        .map(|service| text(service, "/metadata/name").to_owned())
        .collect())
}
