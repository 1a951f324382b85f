//! `migrate`: reads the installed operators of OLM v0 for a move to OLM v1. Does not change the cluster.

use std::collections::{BTreeMap, HashMap};

use olmkit::olmv1::migrate::{self, Assessment, Eligibility, Installation};
use serde_json::Value;

use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds;
use crate::kube::client::Cluster;

mod offers;

use offers::Offers;

/// Excludes the copies of ClusterServiceVersions that OLM v0 creates in every watched namespace.
const ORIGINALS: &str = "!olm.copiedFrom";

/// Data that decides whether the operators of OLM v0 can move.
#[derive(Debug)]
pub struct Installed {
    namespace: Option<String>,
    subscriptions: Vec<Value>,
    csvs: Vec<Value>,
    /// The OperatorGroups by namespace.
    groups: BTreeMap<String, Vec<Value>>,
    conditions: Vec<Value>,
    catalogs: Vec<Value>,
    extensions: Vec<Value>,
    /// The contents of the ClusterCatalogs, if they were queried.
    offers: Option<Offers>,
}

impl Installed {
    /// Reads the whole cluster, also for the Subscriptions of one namespace: another namespace may have the same package.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn read(cluster: &Cluster, namespace: Option<&str>) -> Result<Self, Error> {
        let subscriptions = cluster.list(kinds::subscription(), None, None).await?;
        let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for group in cluster.list(kinds::operator_group(), None, None).await? {
            let namespace = text(&group, "/metadata/namespace").to_owned();
            groups.entry(namespace).or_default().push(group);
        }
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            groups,
            subscriptions,
            csvs: cluster
                .list(kinds::cluster_service_version(), None, Some(ORIGINALS))
                .await?,
            conditions: cluster.list(kinds::operator_condition(), None, None).await?,
            catalogs: cluster.list(kinds::catalog_source(), None, None).await?,
            extensions: cluster.list(kinds::cluster_extension(), None, None).await?,
            offers: None,
        })
    }

    /// Queries the ClusterCatalogs for the packages of the Subscriptions, which decides C7. `false` if the cluster does
    /// not serve ClusterCatalogs.
    ///
    /// # Errors
    /// [`Error::Request`] if the API server does not answer. The result for a package names the catalogs that do not
    /// answer.
    pub async fn ask_catalogs(&mut self, cluster: &Cluster) -> Result<bool, Error> {
        let subscriptions = self.subscriptions.iter().filter(|one| self.is_asked_for(one));
        let packages: Vec<&str> = subscriptions.map(|one| text(one, "/spec/name")).collect();
        if packages.is_empty() {
            return Ok(true);
        }
        self.offers = offers::read(cluster, &packages).await?;
        Ok(self.offers.is_some())
    }

    /// Returns true if each Subscription can move.
    #[must_use]
    pub fn assess(&self) -> Vec<Assessment> {
        self.installations().iter().map(migrate::assess).collect()
    }

    /// The ClusterCatalogs and ClusterExtensions that would replace the Subscriptions that can move, with or without
    /// consent, and the assessment of the others. C7 is omitted, because one of these ClusterCatalogs satisfies it.
    #[must_use]
    pub fn plan(&self) -> (Vec<Value>, Vec<Assessment>) {
        let (mut movable, mut others) = (Vec::new(), Vec::new());
        for mut installation in self.installations() {
            installation.offered = None;
            let assessment = migrate::assess(&installation);
            match assessment.eligibility {
                Eligibility::Eligible | Eligibility::NeedsConsent => movable.push(installation),
                _ => others.push(assessment),
            }
        }
        (migrate::plan(&movable), others)
    }

    fn is_asked_for(&self, subscription: &Value) -> bool {
        match &self.namespace {
            Some(namespace) => text(subscription, "/metadata/namespace") == namespace,
            None => true,
        }
    }

    fn installations(&self) -> Vec<Installation<'_>> {
        let (csvs, conditions) = (by_name(&self.csvs), by_name(&self.conditions));
        let catalogs = by_name(&self.catalogs);
        let subscriptions = self.subscriptions.iter();
        subscriptions
            .filter(|subscription| self.is_asked_for(subscription))
            .map(|subscription| {
                let namespace = text(subscription, "/metadata/namespace");
                let csv = text(subscription, "/status/installedCSV");
                let home = text(subscription, "/spec/sourceNamespace");
                Installation {
                    subscription,
                    csv: csvs.get(&(namespace, csv)).copied(),
                    groups: self.groups.get(namespace).map_or(&[], Vec::as_slice),
                    condition: conditions.get(&(namespace, csv)).copied(),
                    catalog: catalogs.get(&(home, text(subscription, "/spec/source"))).copied(),
                    subscriptions: &self.subscriptions,
                    extensions: &self.extensions,
                    offered: self
                        .offers
                        .as_ref()
                        .and_then(|offers| offers.get(text(subscription, "/spec/name"))),
                }
            })
            .collect()
    }
}

/// Objects by namespace and name.
fn by_name(objects: &[Value]) -> HashMap<(&str, &str), &Value> {
    let key = |object| (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    objects.iter().map(|object| (key(object), object)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    /// A user with permission to create objects in a namespace can create very many. Each Subscription would be
    /// compared with each of them.
    #[test]
    fn countless_operator_groups_are_not_named_for_each_subscription() {
        let count = 1_500;
        let object = |number: usize, spec: Value| json!({"metadata": {"namespace": "n", "name": format!("o{number}")}, "spec": spec});
        let subscription = |number: usize| {
            let mut subscription = object(number, json!({"name": format!("p{number}")}));
            subscription["status"] = json!({"installedCSV": format!("o{number}")});
            subscription
        };
        let group = |number| {
            object(
                number,
                json!({"targetNamespaces": ["n"], "serviceAccountName": "x".repeat(200)}),
            )
        };
        let installed = Installed {
            namespace: None,
            subscriptions: (0..count).map(subscription).collect(),
            csvs: (0..count).map(|number| object(number, json!({}))).collect(),
            groups: BTreeMap::from([("n".to_owned(), (0..count).map(group).collect())]),
            conditions: (0..count).map(|number| object(number, json!({}))).collect(),
            catalogs: Vec::new(),
            extensions: Vec::new(),
            offers: None,
        };
        let start = Instant::now();
        let assessments = installed.assess();
        let took = start.elapsed();
        let text = serde_json::to_string(&assessments).unwrap();
        let input = count * 1_000;
        assert!(text.len() < 8 * input, "{}", text.len());
        assert!(text.contains("1490 OperatorGroups beyond 10"), "{text:.2000}");
        assert!(assessments.iter().all(|one| !one.installed.is_empty()));
        assert!(took < Duration::from_secs(20), "{took:?}");
        assert_eq!(installed.plan().0, Vec::<Value>::new());
    }
}
