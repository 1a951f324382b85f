//! Input of the fixes.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::bundle::load::{self, Reading, Tree};
use crate::crd::instance::schemas;
use crate::validate::Csv;

/// A bundle in the form that fixes need.
pub(super) struct Facts {
    pub reading: Reading,
}

/// An owned API.
pub(super) struct Owned<'a> {
    /// Its entry in the ClusterServiceVersion.
    pub entry: &'a Value,
    /// JSON pointer to that.
    pub pointer: String,
    /// Its schema in the CRD.
    pub schema: Option<&'a Value>,
}

/// The owned CRDs of a ClusterServiceVersion.
pub(super) const OWNED: &str = "/spec/customresourcedefinitions/owned";

impl Facts {
    pub fn new(tree: &Tree, root: &str) -> Self {
        Self {
            reading: load::read(tree.clone(), root),
        }
    }

    /// The ClusterServiceVersion of a bundle that loads, if its file contains only this.
    pub fn csv(&self) -> Option<Csv<'_>> {
        let object = self.reading.bundle.csv()?;
        let is_alone = self.reading.fatal.is_none() && object.second_document.is_none();
        Some(Csv {
            object,
            typed: object.typed.as_ref()?,
        })
        .filter(|_| is_alone)
    }

    /// The owned APIs with a kind and a version.
    pub fn owned<'a>(&'a self, csv: &Csv<'a>) -> Vec<Owned<'a>> {
        let schemas = self.schemas();
        let entries = csv.list(OWNED).iter().enumerate();
        entries
            .map(|(at, entry)| Owned {
                entry,
                pointer: format!("{OWNED}/{at}"),
                schema: schemas.get(&(text(entry, "name"), text(entry, "version"))).copied(),
            })
            .collect()
    }

    /// The schemas of the CRDs by name and version. The first one counts.
    fn schemas(&self) -> HashMap<(&str, &str), &Value> {
        let (mut all, mut seen) = (HashMap::new(), HashSet::new());
        for crd in self.reading.bundle.crds().filter(|crd| seen.insert(crd.name())) {
            for (version, schema) in crd.typed.as_ref().map(schemas).unwrap_or_default() {
                all.insert((crd.name(), version), schema);
            }
        }
        all
    }

    /// The examples in `alm-examples`. `None` if they cannot be read.
    pub fn examples(csv: &Csv<'_>) -> Option<Vec<Value>> {
        match csv.annotation("alm-examples") {
            None | Some("") => Some(Vec::new()),
            Some(text) => serde_json::from_str(text).ok(),
        }
    }
}

impl Owned<'_> {
    /// `Kind/version` in titles.
    pub fn shown(&self) -> String {
        format!("{} {}", text(self.entry, "kind"), text(self.entry, "version"))
    }

    /// The name of the group of fixes for this API.
    pub fn group(&self) -> String {
        format!("api {}", self.pointer)
    }

    /// Returns true if a custom resource is of this API, as scorecard sees it.
    pub fn is_of(&self, example: &Value) -> bool {
        let api_version = text(example, "apiVersion");
        let version = api_version.split_once('/').map_or(api_version, |(_, version)| version);
        text(example, "kind") == text(self.entry, "kind") && version == text(self.entry, "version")
    }
}

/// The string in a field. Empty if it is missing.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
