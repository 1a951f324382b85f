//! The types of scorecard (`scorecard.operatorframework.io/v1alpha3`): its configuration and its test results.
//!
//! A custom test is a program in an image. It finds the bundle in [`bundle_directory`] and prints a [`TestStatus`]:
//!
//! ```
//! use olmkit_scorecard::{TestResult, TestStatus, bundle_directory};
//!
//! let mut result = TestResult::new("has-license");
//! if !bundle_directory().join("LICENSE").exists() {
//!     result.fail("the bundle has no LICENSE");
//! }
//! println!("{}", TestStatus::from(result));
//! ```

mod config;
mod result;

use std::path::PathBuf;

pub use config::{Configuration, Metadata, MountPath, Stage, Storage, StorageSpec, TestConfiguration};
pub use result::{API_VERSION, State, Test, TestList, TestResult, TestStatus};

/// The directory of the bundle in a test's container: `/bundle`.
#[must_use]
pub fn bundle_directory() -> PathBuf {
    PathBuf::from("/bundle")
}

/// The namespace that the test runs in, which scorecard passes on as `SCORECARD_NAMESPACE`.
#[must_use]
pub fn namespace() -> Option<String> {
    std::env::var("SCORECARD_NAMESPACE")
        .ok()
        .filter(|name| !name.is_empty())
}

/// The directory whose files scorecard collects after the test, if the configuration has storage for it: `SCORECARD_STORAGE`.
#[must_use]
pub fn storage_directory() -> Option<PathBuf> {
    std::env::var_os("SCORECARD_STORAGE")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}
