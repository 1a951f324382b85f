//! Custom resources of the operators that `olm uninstall` removes.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::cause::Cause;
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::kube::client::Cluster;
use crate::kube::crd::CrdState;
use crate::kube::finalizers::{self, Operand, Releases, Rule};
use crate::rights::{self, Command, When};
use olmkit::types::DeployedCsv;

/// The CRDs that operators of OLM own.
#[derive(Debug, Default)]
pub struct Operands {
    crds: BTreeMap<String, Served>,
}

#[derive(Debug)]
struct Served {
    crd: CrdState,
    rule: Rule,
    /// Namespaces that the operators serve. An empty name means all. `None` if the CSVs are deleted already.
    targets: Option<BTreeSet<String>>,
    /// OLM's labels with the packages.
    labels: Vec<String>,
}

impl Operands {
    /// Finds the CRDs that CSVs own, and those that OLM has labeled for CSVs that an interrupted removal deleted.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn find(cluster: &Cluster, csvs: &[DeployedCsv], named: &[String]) -> Result<Self, Error> {
        let mut targets: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for csv in csvs.iter().filter(|csv| !csv.is_copied()) {
            for crd in &csv.spec.customresourcedefinitions.owned {
                targets.entry(&crd.name).or_default().extend(csv_targets(csv));
            }
        }
        let mut found = Operands::default();
        for crd in cluster.list(kinds::custom_resource_definition(), None, None).await? {
            let name = text(&crd, "/metadata/name");
            let crd = CrdState::from_crd(&crd);
            let is_label = |label: &&String| label.starts_with(names::COMPONENT);
            let labels: Vec<String> = crd.labels.keys().filter(is_label).cloned().collect();
            let targets = targets.get(name).cloned();
            if crd.group == kinds::OLM_GROUP || (targets.is_none() && labels.is_empty()) {
                continue;
            }
            let rule = Rule::new(&crd, named);
            let served = Served {
                crd,
                rule,
                targets,
                labels,
            };
            found.crds.insert(name.to_owned(), served);
        }
        Ok(found)
    }

    /// The custom resources that the operators reconcile.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn existing(&self, cluster: &Cluster) -> Result<Vec<(Operand, Rule)>, Error> {
        let mut found = Vec::new();
        for served in self.crds.values() {
            let operands = finalizers::operands(cluster, &served.crd).await?;
            let own = operands.into_iter().filter(|operand| served.includes(&operand.object));
            found.extend(own.map(|operand| (operand, served.rule.clone())));
        }
        Ok(found)
    }

    /// The missing permissions for deleting the custom resources, or for releasing their finalizers.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn missing_rights(&self, cluster: &Cluster, are_deleted: bool) -> Result<Vec<Cause>, Error> {
        let command = Command::OlmUninstall;
        let existing = self.existing(cluster).await?;
        let mut missing = if are_deleted {
            let objects = existing.iter().map(|(operand, _)| &operand.object);
            rights::missing_to_remove(cluster, command, objects).await?
        } else {
            let planned = Releases::planned(&existing);
            let objects = planned.released.iter().map(|released| &released.object);
            rights::missing_to_change(cluster, command, objects).await?
        };
        if !self.crds.is_empty() {
            missing.extend(rights::missing(cluster, command, |right| right.when == When::Operands).await?);
        }
        Ok(missing)
    }

    /// Removes OLM's labels from the CRDs. A repeated removal would else release the finalizers of an operator that was
    /// installed without OLM since then.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn unlabel(&self, cluster: &Cluster) -> Result<(), Error> {
        for (name, served) in self.crds.iter().filter(|(_, served)| !served.labels.is_empty()) {
            let object = ObjectRef::cluster(kinds::custom_resource_definition(), name);
            cluster.unlabel(&object, &served.labels).await?;
        }
        Ok(())
    }
}

impl Served {
    fn includes(&self, object: &ObjectRef) -> bool {
        match (&object.namespace, &self.targets) {
            (Some(namespace), Some(targets)) => targets.contains(namespace) || targets.contains(""),
            _ => true,
        }
    }
}

/// The namespaces that a CSV serves: all, if OLM has not recorded them.
fn csv_targets(csv: &DeployedCsv) -> BTreeSet<String> {
    names::targets(csv.metadata.annotations.as_ref()).unwrap_or_else(|| [String::new()].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_outside_the_served_namespaces_are_not_included() {
        let mut csv = DeployedCsv::default();
        assert_eq!(csv_targets(&csv), BTreeSet::from([String::new()]));
        let annotation = (names::TARGETS_ANNOTATION.to_owned(), "a,b".to_owned());
        csv.metadata.annotations = Some(BTreeMap::from([annotation]));
        let served = |targets| Served {
            crd: CrdState::default(),
            rule: Rule::default(),
            targets,
            labels: Vec::new(),
        };
        let object = |namespace: &str| ObjectRef::namespaced(CrdState::default().instances(), namespace, "one");
        let own = served(Some(csv_targets(&csv)));
        assert!(own.includes(&object("a")) && own.includes(&object("b")) && !own.includes(&object("c")));
        assert!(served(Some(BTreeSet::from([String::new()]))).includes(&object("c")));
        assert!(served(None).includes(&object("c")));
    }
}
