//! Selects the checks, and the release that they follow.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::against::Against;
use super::selector::Selector;

/// Release of the reference tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// operator-sdk 1.42, which is what people run.
    #[default]
    OperatorSdk142,
    /// operator-framework/api 0.45, which the next release will have.
    Api045,
}

/// Checks in addition to the default rules.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The release that is followed.
    pub profile: Profile,
    /// Selects optional validators.
    pub selector: Selector,
    /// Values for optional validators.
    pub values: BTreeMap<String, String>,
    /// A JSON file with other categories than the usual ones.
    pub categories_file: Option<String>,
    /// External validators.
    pub external: Vec<PathBuf>,
    /// Starts external validators and container tools.
    pub launcher: crate::process::Launcher,
    /// True if lints run too: those that something proves.
    pub lints: bool,
    /// True if lints run that nothing proves.
    pub unproven: bool,
    /// The directory that external validators get.
    pub directory: PathBuf,
    /// The labels of the image, if the bundle comes from one.
    pub image_labels: Option<BTreeMap<String, String>>,
    /// The release of OLM v1 whose result is reproduced instead of operator-sdk's.
    pub olm_v1: Option<crate::olmv1::Release>,
    /// The bundle that users upgrade from.
    pub against: Option<Arc<Against>>,
}
