//! Input of the rules.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::Value;

use super::options::Options;
use crate::bundle::{Bundle, Object};
use crate::crd::instance::Work;

pub use super::csv_view::{Csv, field, items, strings};

/// A bundle with its ClusterServiceVersion at hand.
#[derive(Debug)]
pub struct Context<'a> {
    /// The bundle.
    pub bundle: &'a Bundle,
    /// The options.
    pub options: &'a Options,
    /// The remaining budget for patterns and CEL rules, which all CRDs, examples and stored examples of the bundle share.
    pub work: RefCell<Work>,
}

/// The schemas of the bundle's CRDs by name and version.
pub type Schemas<'a> = HashMap<(&'a str, &'a str), &'a Value>;

impl<'a> Context<'a> {
    /// A bundle with a whole budget.
    pub fn new(bundle: &'a Bundle, options: &'a Options) -> Self {
        let work = RefCell::default();
        Self { bundle, options, work }
    }

    /// The CustomResourceDefinitions by their names. The first one of a name counts.
    pub fn crds_by_name(&self) -> HashMap<&'a str, &'a Object> {
        let mut crds = HashMap::new();
        for crd in self.bundle.crds() {
            crds.entry(crd.name()).or_insert(crd);
        }
        crds
    }

    /// The decoded CRDs by group and kind. The first one counts.
    pub fn crds_by_kind(&self) -> HashMap<(&'a str, &'a str), (&'a Object, &'a Value)> {
        let mut crds = HashMap::new();
        for (crd, typed) in self.bundle.crds().filter_map(|crd| Some((crd, crd.typed.as_ref()?))) {
            let text = |pointer: &str| typed.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let key = (text("/spec/group"), text("/spec/names/kind"));
            crds.entry(key).or_insert((crd, typed));
        }
        crds
    }

    /// The schemas of the first CRD of each name.
    pub fn schemas(&self) -> Schemas<'a> {
        let mut schemas = HashMap::new();
        for (name, crd) in self.crds_by_name() {
            for (version, schema) in crd
                .typed
                .as_ref()
                .map(crate::crd::instance::schemas)
                .unwrap_or_default()
            {
                schemas.entry((name, version)).or_insert(schema);
            }
        }
        schemas
    }
    /// The ClusterServiceVersion, if one was decoded.
    pub fn csv(&self) -> Option<Csv<'a>> {
        let object = self.bundle.csv()?;
        Some(Csv {
            object,
            typed: object.typed.as_ref()?,
        })
    }
}
