//! Options of a run.

use std::path::PathBuf;
use std::time::Duration;

/// Time that a pod continues after its test's limit: for its files and its log.
pub(super) const GRACE: Duration = Duration::from_secs(60);

/// The image with which operator-sdk 1.42 unpacks bundles.
pub const UNTAR_IMAGE: &str = "quay.io/operator-framework/scorecard-untar@sha256:2e728c5e67a7f4dec0df157a322dd5671212e8ae60f69137463bd4fdfbff8747";
/// The image with which operator-sdk 1.42 collects files.
pub const STORAGE_IMAGE: &str = "quay.io/operator-framework/scorecard-storage@sha256:a3bfda71281393c7794cabdd39c563fb050d3020fd0b642ea164646bdd39a0e2";

/// Security context of the containers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PodSecurity {
    /// Security context for the restricted pod security standard.
    #[default]
    Restricted,
    /// No security context. Images may run as root.
    Legacy,
}

/// Options for running the tests.
#[derive(Debug, Clone)]
pub struct Options {
    /// The pods' service account. The caller decides whether it may be the one in the bundle's configuration.
    pub service_account: String,
    /// Time limit for each test, including the pull of its image.
    pub limit: Duration,
    /// Security context of the containers.
    pub security: PodSecurity,
    /// True to keep the pods.
    pub keep: bool,
    /// Directory for the files of the tests, written below `SUITE/TEST`.
    pub output: PathBuf,
    /// The image with `sleep` and `tar` that provides these files.
    pub storage_image: String,
    /// The image with `sh`, `cat` and `tar` that unpacks the bundle where it must be.
    pub untar_image: String,
    /// True if the bundle is unpacked by that image in any case.
    pub always_untar: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            service_account: "default".to_owned(),
            limit: Duration::from_secs(120),
            security: PodSecurity::default(),
            keep: false,
            output: PathBuf::from("test-output"),
            storage_image: STORAGE_IMAGE.to_owned(),
            untar_image: UNTAR_IMAGE.to_owned(),
            always_untar: false,
        }
    }
}
