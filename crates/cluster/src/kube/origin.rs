//! Finds the creator of an object from its metadata and the InstallPlan that names it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::base::json::text;
use olmkit::types::InstallPlan;

/// Objects that a package created, with UIDs: CRDs by name, other objects as `ClusterRole/name`.
pub type Record = BTreeMap<String, String>;

/// The client names under which OLM writes objects of bundles.
const OLM: [&str; 2] = ["catalog", "olm"];

/// Origin of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// Its UID.
    pub uid: String,
    /// When it was created.
    pub created: Option<jiff::Timestamp>,
    /// The clients that wrote the defining fields of the object.
    pub authors: BTreeSet<String>,
}

impl Origin {
    /// For a CRD: the clients that wrote its group, which is immutable. They are its creator, and clients that applied
    /// it later.
    pub fn of_crd(crd: &Value) -> Self {
        Self::with_authors(crd, |fields| fields.pointer("/f:spec/f:group").is_some())
    }

    /// Of an object of another kind: its authors wrote anything but metadata.
    pub fn from_object(object: &Value) -> Self {
        let is_content = |name: &String| name != "f:metadata";
        Self::with_authors(object, |fields| {
            fields.as_object().is_some_and(|fields| fields.keys().any(is_content))
        })
    }

    fn with_authors(object: &Value, is_authors: impl Fn(&Value) -> bool) -> Self {
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        let entries = entries.into_iter().flatten();
        Origin {
            uid: text(object, "/metadata/uid").to_owned(),
            created: text(object, "/metadata/creationTimestamp").parse().ok(),
            authors: entries
                .filter(|entry| entry.get("fieldsV1").is_some_and(&is_authors))
                .map(|entry| text(entry, "/manager").to_owned())
                .collect(),
        }
    }

    /// Returns true if only OLM wrote it.
    pub fn is_olms_alone(&self) -> bool {
        !self.authors.is_empty() && self.authors.iter().all(|name| is_olm(name))
    }

    /// Returns true if a step with this status created this object, and not one that used its name later. A step that
    /// created it can still be `Present`: if OLM fails to write the plan's status, it executes the plan again and finds
    /// its own object. Then only OLM has written the object, and not before the plan existed.
    pub fn is_created_by(&self, status: &str, plan: &InstallPlan) -> bool {
        let began = plan.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let done = plan
            .status
            .conditions
            .iter()
            .find(|found| found.kind == "Installed" && found.is_true());
        let executed = done.and_then(|found| found.last_transition_time.as_ref()?.parse::<jiff::Timestamp>().ok());
        let ended = executed.map(|time| time.saturating_add(EXECUTION_LIMIT).unwrap_or(jiff::Timestamp::MAX));
        if began.is_none() || self.created < began || ended.is_some_and(|ended| self.created > Some(ended)) {
            return false;
        }
        match status {
            "Created" | "WaitingForApi" => self.authors.iter().any(|name| is_olm(name)),
            "Present" => self.is_olms_alone(),
            _ => false,
        }
    }
}

fn is_olm(manager: &str) -> bool {
    OLM.contains(&manager)
}

/// Time after the one in its `Installed` condition in which a plan may still have created objects: OLM records that
/// time before it executes the plan (`transitionInstallPlanState`), and truncates it to seconds.
const EXECUTION_LIMIT: jiff::SignedDuration = jiff::SignedDuration::from_mins(1);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writers_of_more_than_metadata_are_authors() {
        let origin = Origin::from_object(&json!({"metadata": {"uid": "u1", "managedFields": [
            {"manager": "kubectl-label", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
            {"manager": "helm", "fieldsV1": {"f:metadata": {}, "f:rules": {}}},
            {"manager": "catalog", "fieldsV1": {"f:aggregationRule": {}}},
        ]}}));
        assert_eq!(origin.uid, "u1");
        assert_eq!(
            origin.authors,
            BTreeSet::from(["catalog".to_owned(), "helm".to_owned()])
        );
        assert!(!origin.is_olms_alone());
        assert!(!Origin::default().is_olms_alone(), "nothing is known");
    }
}
