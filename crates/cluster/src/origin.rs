//! Who made an object: what its metadata and the InstallPlan that names it show.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::json::text;
use olmkit::types::InstallPlan;

/// What a package brought, with UIDs: CRDs by name, other objects as `ClusterRole/name`.
pub type Record = BTreeMap<String, String>;

/// The client names under which OLM writes objects of bundles.
const OLM: [&str; 2] = ["catalog", "olm"];

/// Where an object comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// Its UID.
    pub uid: String,
    /// When it was created.
    pub created: Option<jiff::Timestamp>,
    /// The clients that wrote what makes the object what it is.
    pub authors: BTreeSet<String>,
}

impl Origin {
    /// Of a CRD: its authors wrote its group, which nobody can change. They are its creator, and whoever claimed it later.
    pub fn of_crd(crd: &Value) -> Self {
        Self::with_authors(crd, |fields| fields.pointer("/f:spec/f:group").is_some())
    }

    /// Of an object of another kind: its authors wrote anything but metadata.
    pub fn of(object: &Value) -> Self {
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

    /// Returns true if nobody but OLM wrote it.
    pub fn is_olms_alone(&self) -> bool {
        !self.authors.is_empty() && self.authors.iter().all(|name| is_olm(name))
    }

    /// Returns true if a step with this status created it: this very object, not one that took its name later. A step that did can still
    /// say `Present`: when OLM fails to write the plan's status, it carries the plan out again and finds its own object. Then
    /// nobody but OLM has written it, and not before the plan existed.
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

/// How long after the time in its `Installed` condition a plan may still have created objects: OLM takes that time before it
/// begins to carry the plan out (`transitionInstallPlanState`), and truncates it to seconds.
const EXECUTION_LIMIT: jiff::SignedDuration = jiff::SignedDuration::from_mins(1);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_wrote_more_than_metadata_is_an_author() {
        let origin = Origin::of(&json!({"metadata": {"uid": "u1", "managedFields": [
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
